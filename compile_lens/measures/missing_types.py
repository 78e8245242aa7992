"""Tensors of a capture whose type a device does not have at all."""

from __future__ import annotations

from compile_lens.measures.chain import walk
from compile_lens.record.capture import Record
from compile_lens.record.compilation import PHASES
from compile_lens.record.graph import Frame, Graph
from compile_lens.record.support import NO_TYPES, UnsupportedOperator


def lacking(capture: Record, device: str) -> tuple[UnsupportedOperator, ...]:
    """What makes or is such a tensor, by type and operator, with the Python lines; those handed to Inductor."""
    found: dict[tuple[str, str], dict[Frame, None]] = {}
    for compilation in capture.compilations:
        for stage in compilation.stages:
            if not isinstance(stage, Graph) or stage.key not in PHASES:
                continue
            for _, node in walk(stage):
                name = "an input" if node.op == "placeholder" else node.target.removesuffix(".default")
                for tensor in node.outputs if node.op != "output" else ():
                    if tensor.dtype in NO_TYPES.get(device, ()):
                        found.setdefault((tensor.dtype, name), {}).update(dict.fromkeys(node.innermost))
    return tuple(
        UnsupportedOperator(name, (), tuple(frames), f"it is {dtype}, a type that {device} does not have")
        for (dtype, name), frames in found.items()
    )
