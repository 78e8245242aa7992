"""Collectives that a program calls, inside of graphs and outside."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame


@dataclass(frozen=True)
class Collective:
    """A call in which all processes of a group take part.

    Attributes:
        name: torch's name (``all_reduce``).
        arguments: what it is called with that is no tensor: the reduction, sizes, the group.
        inputs: the tensors that this process gives (``float32[4, s0]``).
        bytes: of those tensors, counted from their sizes; ``None`` where a size is not known.
        line: the line of the program that calls it; ``None`` where no line did.
    """

    name: str
    arguments: str = ""
    inputs: tuple[str, ...] = ()
    bytes: int | None = None
    line: Frame | None = None


@dataclass(frozen=True)
class EagerCollective:
    """A collective that Python called outside of all graphs.

    Attributes:
        collective: what was called.
        graphs_before: how many graphs a backend had been called with before.
        all_ranks: whether all processes of the program take part, and not a part of them.
    """

    collective: Collective
    graphs_before: int
    all_ranks: bool = True


@dataclass(frozen=True)
class Bucket:
    """Gradients that DDP reduces together: how many bytes, and of how many parameters."""

    bytes: int
    parameters: int
