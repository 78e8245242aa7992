"""The graphs of one compile from Dynamo to Inductor, and the one whose rewrites are being recorded."""

from __future__ import annotations

import dataclasses

from ..ground.recorder import Draft, Slot
from .provenance import Lineage


@dataclasses.dataclass
class InferenceTrace:
    """AOTAutograd's traced graph where there is no joint graph, before the passes that run over joint graphs.

    ``origins`` are those of the nodes in it and its bodies, by name, each with the reason if there are none.
    """

    lineage: Lineage
    origins: dict[str, tuple[tuple[str, ...], str]]


@dataclasses.dataclass
class GraphChain:
    """The graphs of one compile, set by ``aot`` as they appear.

    Attributes:
        captured: Dynamo's graph; None for a backward that is compiled later.
        in_pre_grad: True while pre-grad passes run over it.
        prepared: the result of these passes, which AOTAutograd traces.
        joint: the joint graph, or None.
        inference_trace: the traced graph, if there is no joint graph.
        current: the graph whose rewrites are being recorded.
        saved: names of the values saved for the backward; None while unknown.
        results: number of the forward's outputs that are the function's own, as torch reports.
    """

    captured: Lineage | None = None
    in_pre_grad: bool = False
    prepared: Lineage | None = None
    joint: Lineage | None = None
    inference_trace: InferenceTrace | None = None
    current: Lineage | None = None
    saved: tuple[str, ...] | None = None
    results: int | None = None

    @property
    def traced(self) -> tuple[Lineage | None, str]:
        """The graph that AOTAutograd traces, and its stage key."""
        return (self.captured, "dynamo") if self.prepared is None else (self.prepared, "pre_grad")


CHAIN: Slot[GraphChain] = Slot()


def chain_of(draft: Draft) -> GraphChain:
    """Return the chain of this compile, creating it if needed."""
    return CHAIN.of(draft) or CHAIN.put(draft, GraphChain())


def joint_of(draft: Draft) -> Lineage | None:
    """Return the joint graph of this compile, or None."""
    chain = CHAIN.of(draft)
    return chain.joint if chain is not None else None
