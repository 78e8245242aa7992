"""Memory of the generated code: what it sets aside, reuses and frees, and what the forward keeps."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_KIND = "unknown"
"""``Buffer.kind`` of what a forward returns, if it was not seen which of it is saved."""


@dataclass(frozen=True)
class Buffer:
    """One buffer that the generated ``call()`` holds.

    Attributes:
        name: its name in the wrapper module; one result of a library call that is never given a name of its
            own is ``buf1[1]``.
        kind: ``input``, ``intermediate``, ``output``, ``saved`` (for the backward), or ``unknown``: one of
            the last two.
        nbytes: its size, at the sizes that were seen; ``None`` where that depends on data.
        alloc_line, free_line: lines of the wrapper module at which it is there and gone; 0: on entry, not before the
            end. Results of a library call are there at the line of the call. An input that is not donated belongs
            to the caller: it is there to the end, also where the call lets go of it.
        reuses: the buffer whose memory it takes over; ``""`` if it does not.
        base: the buffer that it is a part or a view of; ``""`` if it is none.
        donated: an input whose memory the code may take over: its caller does not need it any more.
        origins: names of the nodes of ``"<phase>.post_grad"`` whose value it holds; none for what exists only
            inside a kernel's algorithm (the parts of a mean, say).
    """

    name: str
    kind: str
    nbytes: int | None = None
    alloc_line: int = 0
    free_line: int = 0
    reuses: str = ""
    base: str = ""
    donated: bool = False
    origins: tuple[str, ...] = ()


@dataclass(frozen=True)
class Memory:
    """The buffers of one phase. Modelled from the order of the wrapper module: the allocator is not queried.

    ``peak`` is the most bytes that are live at once, inputs and outputs among them, ``peak_line`` the first
    line of the wrapper module at which they are (0: on entry). It counts no rounding of the allocator, no work
    space inside of library calls and no constants of the module. ``peak`` is ``None``, and ``note`` says why,
    where it is not known.
    """

    phase: str
    buffers: tuple[Buffer, ...] = ()
    peak: int | None = None
    peak_line: int = 0
    note: str = ""

    @property
    def allocated(self) -> int | None:
        """Bytes that the code sets aside: buffers with memory of their own, results among them, without inputs. What
        library calls need inside of them is not counted. ``None`` where a size is not known."""
        sizes = [b.nbytes for b in self.buffers if b.kind != "input" and not b.reuses and not b.base]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) and not self.note else None

    @property
    def reused(self) -> tuple[Buffer, ...]:
        """The buffers that take over the memory of another."""
        return tuple(b for b in self.buffers if b.reuses)

    @property
    def freed(self) -> tuple[Buffer, ...]:
        """The buffers whose memory goes back before the end: no other takes it over, and none is a part of it."""
        taken = {b.reuses for b in self.buffers}
        return tuple(b for b in self.buffers if b.free_line and not b.base and b.name not in taken)

    @property
    def donated(self) -> tuple[Buffer, ...]:
        """The inputs whose memory the code may take over."""
        return tuple(b for b in self.buffers if b.donated)


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that the forward keeps for the backward.

    Attributes:
        node: its name in the graph that the partitioner was given: the joint graph after Inductor's passes.
        nbytes: its size, and of what lies in no other memory the size of all that is set aside for it; ``None``
            where that depends on data or is not known, 0 for a symbolic size that is kept.
        origins: the nodes of the recorded ``"joint"`` that it is, or stands in for.
        alias_of: the input or result of the forward, or the tensor that is kept as well, in whose memory it lies, if
            it does: keeping it then takes no memory of its own. An input shares with itself, unless the compiled
            forward keeps a copy of it, as it does of a convolution's where it turns them to channels last.
    """

    node: str
    nbytes: int | None = None
    origins: tuple[str, ...] = ()
    alias_of: str = ""


@dataclass(frozen=True)
class Partition:
    """Tensors that the forward saves for the backward: the partition that was chosen, and the default partitioner's.

    The min-cut partitioner, which Inductor uses, computes in the backward again what is cheaper to compute
    than to keep. ``recomputed`` names the nodes of the joint graph that both halves compute (views left out).
    ``saved`` says where the compiled forward returns each. ``default`` is ``None``, and ``note`` says why, where
    AOTAutograd's default partitioner was not asked.
    """

    saved: tuple[SavedTensor, ...] = ()
    recomputed: tuple[str, ...] = ()
    default: tuple[SavedTensor, ...] | None = None
    note: str = ""


def saved_bytes(kept: tuple[SavedTensor, ...]) -> int | None:
    """Bytes that keeping takes: what lies in the memory of an input or a result takes none. ``None`` if unknown."""
    sizes = [k.nbytes for k in kept if not k.alias_of]
    known = [s for s in sizes if s is not None]
    return sum(known) if len(known) == len(sizes) else None
