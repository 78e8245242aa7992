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
    said: list[str] = []
    came: list[str] = []
    for use in found:
        cid, key, name = use.address
        where = f"{cid} {key}" if len(capture.compilations) > 1 else key
        outputs = use.node.outputs if use.node is not None and types else ()
        made = f" makes {', '.join(dict.fromkeys(t.dtype for t in outputs))}" if outputs else ""
        said.append(f"{where}: {name}, {use.name}{made}{lines(chain.lines(use.address))}")
        source = _sources(capture, chain, use) if not types else ""
        if source:
            came.append(f"{where}: {use.name} comes of {source}")
    return Explained(few(said, "places", "capture.compilations[i].graphs"), few(came, "places"))


def _sources(capture: Record, chain: Chain, use: Use) -> str:
    """What of the program became an operator, as Dynamo saw it; ``""`` where the record does not say."""
    cid = use.address[0]
    graph = next((c.graphs.get("dynamo") for c in capture.compilations if c.id == cid), None)
    if graph is None or use.node is None or use.address not in chain:
        return ""
    names = {name for one, key, name in chain.ancestors(use.address) if (one, key) == (cid, "dynamo")}
    calls = [n.target for n in graph.nodes if n.name in names and n.op.startswith("call_")]
    return ", ".join(dict.fromkeys(calls))
