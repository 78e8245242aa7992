"""The graphs of one compile on their way to Inductor: what each was made of, and which one is followed now."""

from __future__ import annotations

import dataclasses

from ..ground.recorder import Draft, Slot
from .provenance import Lineage


@dataclasses.dataclass
class Untouched:
    """What AOTAutograd traced where there is no joint graph, before the passes that run over joint graphs.

    ``origins`` are those of its nodes and of its bodies', by name, each with the reason where there are none.
    """

    lineage: Lineage
    origins: dict[str, tuple[tuple[str, ...], str]]


@dataclasses.dataclass
class Followed:
    """Written by ``aot`` as the graphs come by, from the one that Dynamo captured on.

    Attributes:
        captured: Dynamo's graph; ``None`` for a backward that is compiled when the rest is long done.
        in_pre_grad: its pre-grad passes run.
        prepared: what they left, once they are done: the graph that AOTAutograd traces.
        joint: the joint graph, where there is one.
        untouched: what stands for it, where there is none.
        now: the graph whose rewrites are noted at the moment.
        saved: names of what the forward keeps for the backward; ``None`` while it is not known.
        results: how many values the forward returns that are the function's own, as torch said it.
    """

    captured: Lineage | None = None
    in_pre_grad: bool = False
    prepared: Lineage | None = None
    joint: Lineage | None = None
    untouched: Untouched | None = None
    now: Lineage | None = None
    saved: tuple[str, ...] | None = None
    results: int | None = None

    @property
    def traced(self) -> tuple[Lineage | None, str]:
        """The graph that AOTAutograd traces, and its stage."""
        return (self.captured, "dynamo") if self.prepared is None else (self.prepared, "pre_grad")


FOLLOWED: Slot[Followed] = Slot()


def of(draft: Draft) -> Followed:
    """What is known of the graphs of this compile."""
    return FOLLOWED.of(draft) or FOLLOWED.put(draft, Followed())


def joint(draft: Draft) -> Lineage | None:
    """The joint graph of this compile, if there is one."""
    followed = FOLLOWED.of(draft)
    return followed.joint if followed is not None else None
