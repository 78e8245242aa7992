"""Memory of the generated code: what it sets aside, reuses and frees, and what the forward keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Buffer:
    """One buffer that the generated ``call()`` holds.

    Attributes:
        name: its name in the wrapper module.
        kind: ``input``, ``intermediate``, ``output`` or ``saved`` (for the backward).
        nbytes: its size; ``None`` where that depends on data.
        born, dead: lines of the wrapper module at which it is there and gone; 0: on entry, not before the end.
        reuses: the buffer whose memory it takes over; ``""`` if it is set aside anew.
        donated: an input whose memory the code may take over: its caller does not need it any more.
        origins: names of the nodes of ``"<phase>.post_grad"`` whose value it holds.
    """

    name: str
    kind: str
    nbytes: int | None = None
    born: int = 0
    dead: int = 0
    reuses: str = ""
    donated: bool = False
    origins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memory:
    """The buffers of one phase. Modelled from the order of the wrapper module: the allocator is not asked.

    ``peak`` is the most bytes that are held at once, inputs and outputs among them, ``peak_line`` the line of
    the wrapper module at which they are; ``peak`` is ``None``, and ``note`` says why, where it is not known.
    """

    phase: str
    buffers: tuple[Buffer, ...] = ()
    peak: int | None = None
    peak_line: int = 0
    note: str = ""


@dataclass(frozen=True)
class Kept:
    """A tensor that the forward keeps for the backward: the node of the joint graph, and its size."""

    node: str
    nbytes: int | None = None


@dataclass(frozen=True)
class Partition:
    """What the forward keeps for the backward: the choice that was made, and the default partitioner's.

    The min-cut partitioner, which Inductor uses, computes in the backward again what is cheaper to compute
    than to keep. ``recomputed`` names the nodes of the joint graph that both halves compute. ``default`` is
    ``None``, and ``note`` says why, where the default partitioner could not be asked.
    """

    chosen: tuple[Kept, ...] = ()
    recomputed: tuple[str, ...] = ()
    default: tuple[Kept, ...] | None = None
    note: str = ""
