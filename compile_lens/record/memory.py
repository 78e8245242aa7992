"""Memory of the generated code: buffers allocated, reused and freed, and tensors that the forward saves."""

from __future__ import annotations

from dataclasses import dataclass

UNKNOWN_KIND = "unknown"
"""``Buffer.kind`` of a value that a forward returns, if it was not observed which of these are saved."""


@dataclass(frozen=True)
class Buffer:
    """One buffer of the generated ``call()``.

    Attributes:
        name: its name in the wrapper module; ``buf1[1]`` for a result of a library call without a name of its own.
        kind: ``input``, ``intermediate``, ``output``, ``saved`` (for the backward), or ``unknown``: one of
            the last two.
        nbytes: its size in bytes for the observed sizes; ``None`` if that depends on data.
        alloc_line, free_line: lines of the wrapper module that allocate and free it; 0: on entry, not before the end.
            Results of a library call are allocated at the line of the call. An input that is not donated belongs to
            the caller: it is live to the end, even if the code deletes its reference.
        reuses: the buffer whose memory it takes over; ``""`` if none.
        base: the buffer of which it is a part or a view; ``""`` if none.
        donated: whether it is an input whose memory the code may take over, since its caller no longer needs it.
        origins: names of the nodes of ``"<phase>.post_grad"`` whose value it contains; empty for an intermediate of a
            kernel's algorithm (such as the parts of a mean).
        loop: the node of ``"<phase>.loops"`` that writes it; ``""`` for an input, or if not known.
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
    loop: str = ""


@dataclass(frozen=True)
class Memory:
    """The buffers of one phase. Modelled from the order of the wrapper module: the allocator is not queried.

    ``peak`` is the most bytes live at once, including inputs and outputs, ``peak_line`` the first line of the wrapper
    module with that many (0: on entry). It leaves out the allocator's rounding, workspace of library calls and
    constants of the module. If ``peak`` is not known, it is ``None``, and ``note`` says why.
    """

    phase: str
    buffers: tuple[Buffer, ...] = ()
    peak: int | None = None
    peak_line: int = 0
    note: str = ""

    @property
    def allocated(self) -> int | None:
        """Bytes that the code allocates: buffers with memory of their own, results included, without inputs and the
        workspace of library calls. ``None`` if a size is not known."""
        sizes = [b.nbytes for b in self.buffers if b.kind != "input" and not b.reuses and not b.base]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) and not self.note else None

    @property
    def reused(self) -> tuple[Buffer, ...]:
        """The buffers that take over the memory of another buffer."""
        return tuple(b for b in self.buffers if b.reuses)

    @property
    def freed(self) -> tuple[Buffer, ...]:
        """The buffers freed before the end whose memory no other buffer takes over; views are left out."""
        taken = {b.reuses for b in self.buffers}
        return tuple(b for b in self.buffers if b.free_line and not b.base and b.name not in taken)

    @property
    def donated(self) -> tuple[Buffer, ...]:
        """The inputs whose memory the code may take over."""
        return tuple(b for b in self.buffers if b.donated)


@dataclass(frozen=True)
class SavedTensor:
    """A tensor that the forward saves for the backward.

    Attributes:
        node: its name in the partitioner's graph: the joint graph after Inductor's passes.
        nbytes: its size in bytes; for a tensor with memory of its own the whole allocation; ``None`` if it depends on
            data or is not known, 0 for a saved symbolic size.
        origins: the nodes of the recorded ``"joint"`` that it corresponds to or replaces.
        alias_of: the input or result of the forward, or the other saved tensor, whose memory contains it, if any:
            saving it then takes no memory of its own. A saved input aliases itself, unless the compiled forward saves
            a copy, such as a convolution's input converted to channels last.
    """

    node: str
    nbytes: int | None = None
    origins: tuple[str, ...] = ()
    alias_of: str = ""


@dataclass(frozen=True)
class Partition:
    """Tensors that the forward saves for the backward, in the chosen partition and in the default partitioner's.

    The min-cut partitioner, which Inductor uses, recomputes values in the backward that are cheaper to compute than to
    save. ``recomputed`` names the nodes of the joint graph that both halves compute, without views. If AOTAutograd's
    default partitioner was not run, ``default`` is ``None``, and ``note`` says why.
    """

    saved: tuple[SavedTensor, ...] = ()
    recomputed: tuple[str, ...] = ()
    default: tuple[SavedTensor, ...] | None = None
    note: str = ""


def saved_bytes(tensors: tuple[SavedTensor, ...]) -> int | None:
    """Return the bytes of saved tensors without those in the memory of an input or a result; ``None`` if unknown."""
    sizes = [k.nbytes for k in tensors if not k.alias_of]
    known = [s for s in sizes if s is not None]
    return sum(known) if len(known) == len(sizes) else None
