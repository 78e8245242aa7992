"""Where an operator stands, and what type its results have."""

from __future__ import annotations

from collections.abc import Iterable

from compile_lens.measures.chain import Chain
from compile_lens.measures.operators import Use
from compile_lens.record.capture import Record

from .kernels import lines
from .model import Explained, few


def stands(capture: Record, found: Iterable[Use], types: bool = False) -> Explained:
    """Each place with its Python lines; with ``types`` also the types of its results."""
    chain = Chain(capture)
    said = []
    for use in found:
        cid, key, name = use.address
        where = f"{cid} {key}" if len(capture.compilations) > 1 else key
        outputs = use.node.outputs if use.node is not None and types else ()
        made = f" makes {', '.join(dict.fromkeys(t.dtype for t in outputs))}" if outputs else ""
        said.append(f"{where}: {name}, {use.name}{made}{lines(chain.lines(use.address))}")
    return Explained(few(said, "places", "capture.compilations[i].graphs"))
