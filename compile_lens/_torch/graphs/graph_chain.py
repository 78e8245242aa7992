"""The graphs of one compile on their way to Inductor, and the one whose rewrites are recorded now."""

from __future__ import annotations

import dataclasses

from ..ground.recorder import Draft, Slot
from .provenance import Lineage


@dataclasses.dataclass
class InferenceTrace:
    """The graph that AOTAutograd traced without a joint graph, before the passes that run over joint graphs.

    ``origins`` are those of its nodes and of its bodies', by name, each with the reason if there are none.
    """

    lineage: Lineage
    origins: dict[str, tuple[tuple[str, ...], str]]


@dataclasses.dataclass
class GraphChain:
    """Written by ``aot`` as the graphs appear, from Dynamo's on.

    Attributes:
        captured: Dynamo's graph; None for a backward that is compiled long after the rest.
        in_pre_grad: its pre-grad passes run.
        prepared: their result, once they are done: the graph that AOTAutograd traces.
        joint: the joint graph, if there is one.
        inference_trace: its counterpart, if there is none.
        current: the graph whose rewrites are recorded at the moment.
        saved: names of the values saved for the backward; None while not known.
        results: how many values returned by the forward are the function's own, as torch reports.
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
        """The graph that AOTAutograd traces, and its stage."""
        return (self.captured, "dynamo") if self.prepared is None else (self.prepared, "pre_grad")


CHAIN: Slot[GraphChain] = Slot()


def chain_of(draft: Draft) -> GraphChain:
    """Return the chain of this compile."""
    return CHAIN.of(draft) or CHAIN.put(draft, GraphChain())


def joint_of(draft: Draft) -> Lineage | None:
    """The joint graph of this compile, if there is one."""
    chain = CHAIN.of(draft)
    return chain.joint if chain is not None else None
