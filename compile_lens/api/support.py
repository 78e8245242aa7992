"""Operator support of backends by torch's own tables, and operators of a capture that a target lacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..devices.models import resolve
from ..errors import UsageError
from ..measures import operators
from ..measures.chain import walk
from ..record.compilation import PHASES, Compilation
from ..record.device import DeviceModel
from ..record.graph import Frame, Graph, Node
from ..record.messages import NO_COMPILATION
from ..record.support import BACKENDS, TYPES_NOTE, Implementation, Support, Unsupported, UnsupportedOperator
from ..results.capture import Capture

COMPOSITE_NOTE = (
    "An operator that is made of others works on a device that has those. The table does not say which they are: "
    "capture a call of it, and call capture.unsupported(target)."
)


def support(op: Any) -> Support:
    """Return the backends that implement an ATen operator, and how Inductor lowers it.

    The source is the table that torch's build reads (``native_functions.yaml``), so it covers devices that this build
    lacks.

    Args:
        op: a name (``"sort"``, ``"aten.sort.stable"``), an operator (``torch.ops.aten.sort``), or a torch function that
            is one operator (``torch.sort``). A name without an overload means all overloads except those with ``out=``.

    Raises:
        UsageError: there is no such operator (the message names similar ones), or the function is not a single one.
    """
    from .._torch.operators import support as tables

    overloads = tables.overloads(op)
    names = tables.names_of(op)
    notes = [TYPES_NOTE]
    if any(i.kind == "composite" for o in overloads for i in o.implementations):
        notes.append(COMPOSITE_NOTE)
    name = op if isinstance(op, str) else ".".join(filter(None, names))
    return Support(name, overloads, tables.source(names[0]), tuple(notes))


def lacking(capture: Capture, target: str | DeviceModel | Path) -> Unsupported:
    """Return the operators and dtypes of a capture that a target lacks.

    It looks up the operators that eager PyTorch dispatches, those of Inductor's input graphs, and the library calls of
    the generated code, in the record and torch's tables.

    Args:
        target: as for ``capture`` (``"mps"``, ``"h100"``).

    Raises:
        UsageError: the target is not known.
    """
    from .._torch.operators import support as tables

    device = resolve(target).device
    if device not in BACKENDS:
        raise UsageError(f"target={target!r} is a {device!r}, for which torch's table is not complete")
    uses = _Uses()
    for compilation in capture.compilations:
        uses.add(compilation)
    lacks: list[UnsupportedOperator] = []
    unknown: list[str] = []
    for op, places in uses.places.items():
        implementation = tables.lookup(op, device)
        if implementation is None:
            unknown.append(op)
        elif implementation.kind in ("none", "on the CPU"):
            frames = tuple(uses.frames.get(op, {}))
            lacks.append(
                UnsupportedOperator(
                    op,
                    tuple(places),
                    frames,
                    _reason(implementation),
                    _compiled(op, tuple(places), implementation, device),
                )
            )
    lacks += operators.unsupported_types(capture, device)
    asked_for = target.name if isinstance(target, DeviceModel) else str(target)
    return Unsupported(
        capture.function,
        asked_for,
        device,
        tuple(uses.places),
        tuple(lacks),
        tuple(unknown),
        tables.source(),
        tuple(_notes(capture, device, asked_for)),
    )


class _Uses:
    """Operators by name, with the places and the Python lines of their uses."""

    def __init__(self) -> None:
        self.places: dict[str, dict[str, None]] = {}
        self.frames: dict[str, dict[Frame, None]] = {}

    def add(self, compilation: Compilation) -> None:
        graphs = {s.key: s for s in compilation.stages if isinstance(s, Graph)}
        for phase in PHASES:
            for _, node in walk(graphs[phase]) if phase in graphs else ():
                if _is_operator(node):
                    self._use(_plain(node.target), f"{phase} graph", node.innermost)
            code = compilation.code.get(phase)
            lowered = (
                {n.name: n for _, n in walk(graphs[key])} if (key := f"{phase}.post_grad") in graphs else {}
            )
            for kernel in code.kernels if code is not None else ():
                if kernel.language == "extern" and (name := _called(kernel.name)):
                    frames = [f for o in kernel.origins if o in lowered for f in lowered[o].innermost]
                    self._use(name, f"library call in {phase}", tuple(frames))
        for op in compilation.eager or ():
            if op.name.startswith("aten."):
                self._use(_plain(op.name), f"eager {op.phase}", ())

    def _use(self, name: str, place: str, frames: tuple[Frame, ...]) -> None:
        self.places.setdefault(name, {})[place] = None
        self.frames.setdefault(name, {}).update(dict.fromkeys(frames))


def _is_operator(node: Node) -> bool:
    return node.op == "call_function" and node.target.startswith("aten.")


def _plain(target: str) -> str:
    return target.removesuffix(".default")


def _called(name: str) -> str:
    """Return the operator of a library call (``aten.sort.stable``, ``aten.addmm.out``); ``""`` for another library."""
    plain = _plain(name.partition("#")[0].removeprefix("torch.ops."))
    if plain.startswith("extern_kernels."):
        function = plain.removeprefix("extern_kernels.")
        return f"aten.{function}.out" if function.isidentifier() else ""
    return plain if plain.startswith("aten.") else ""


def _reason(implementation: Implementation) -> str:
    if implementation.kind == "on the CPU":
        return f"{implementation.backend} hands it to the CPU, with a copy there and back"
    return f"no implementation for {implementation.backend}"


def _compiled(op: str, places: tuple[str, ...], implementation: Implementation, device: str) -> str:
    from .._torch.operators import support as tables

    called = any(place.startswith("library call") for place in places)
    handed = any(place.endswith(" graph") for place in places)
    if implementation.kind == "on the CPU":
        return ""
    if called:
        return "the generated code calls it, and would fail there"
    if not handed:
        return "only eager PyTorch dispatches it: the compiled graphs have other operators in its place"
    fate = tables.lowering_kind(op)
    if fate == "lowering" and tables.may_call(op):
        return "Inductor generates code for it or calls it, as the case may be: compiled code may fail too"
    if fate in ("lowering", "decomposition"):
        return f"Inductor generates code for it: compiled code needs no kernel of {device}'s, eager code does"
    if fate in ("library call", "not registered"):
        return "Inductor calls it as it is: compiled code would fail too"
    if fate == "library or template":
        return (
            "Inductor calls a library for it unless a setting allows a template: compiled code may fail too"
        )
    return ""


def _notes(capture: Capture, device: str, target: str) -> Iterator[str]:
    captured_device = (
        capture.target.model.device if capture.target else capture.environment.device.partition(":")[0]
    )
    if captured_device != device:
        yield (
            f"The operators are those that PyTorch chose for {captured_device}. For {target} it may choose others (for "
            f"attention it does); capture(…, target={target!r}) has those."
        )
    notes = dict.fromkeys(
        c.eager_note or "they were not counted" for c in capture.compilations if c.eager is None
    )
    for note in notes:
        yield f"The operators of eager PyTorch are not known: {note}."
    if not capture.compilations:
        reason = capture.nothing_compiled
        yield (
            f"Nothing was compiled: {reason}."
            if reason
            else f"{NO_COMPILATION[0].upper()}{NO_COMPILATION[1:]}."
        )
    yield TYPES_NOTE
