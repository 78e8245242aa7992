"""Memory by Python line or by name: what is live at the peak, and what the forward saves for the backward.

A tensor counts for the line of the operator that makes it, split equally among several lines. Parameters, buffers and
other inputs have no line: they exist before the call. Saving a tensor in the memory of an input or a result takes no
memory of its own. The figures are modelled, as in ``Memory``: the allocator is not queried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from compile_lens.errors import UsageError
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node, Ref
from compile_lens.record.memory import Buffer, Memory, SavedTensor

from .address import Address, line_address
from .call_results import CallResults, tensor_text
from .chain import Chain
from .input_names import InputNames, input_names
from .links import unknown_node_origins
from .memo import memoized
from .memory_budget import TANGENT

BY = ("line", "name")

VALUE, GRADIENT, COPY, PART, UNKNOWN = "value", "gradient", "copy", "intermediate", "unknown"
"""``MemoryRow.kind`` beside those of ``InputName``."""


@dataclass(frozen=True)
class MemoryRow:
    """Memory of one line, or of equal tensors of one name.

    Attributes:
        name: ``"model.py:25"``; the qualified name of a parameter or buffer, the name of another input, the expression
            that made a value. ``"gradient with respect to emb.weight"`` is a result of the backward; ``"backward of
            self.emb(i)"`` is an intermediate of the backward of that expression, which the forward may compute, such
            as the mask of a relu. Equal tensors of repeated modules are one row: ``"blocks.*.up.weight"``.
        kind: ``parameter``, ``buffer``, ``input``, ``copy`` (of one of these, as in another layout), ``value`` (of the
            forward, also if recomputed), ``gradient`` (of the backward), ``intermediate`` (of the call that it is named
            after, such as the mask of a dropout or the sum of a mean), or ``unknown``; ``""`` for a line, which may
            have several.
        peak: bytes live at the peak; ``None`` if the peak is not known.
        share: share of the peak, from 0 to 1.
        saved: bytes saved for the backward: 0 for a tensor in the memory of an input or a result; ``None`` if a size is
            not known.
        tensors: number of tensors in the row.
        saved_tensors: number of these that are saved for the backward.
        live_tensors: number of these that are live at the peak.
        names: names of the parameters, buffers and inputs.
        modules: paths of the modules that made the tensors.
        line: the line; ``None`` if there is none.
        tensor: dtype and shape of each tensor, as its call returns it, ``"float32[8, 64]"``; ``""`` if they differ or
            are not known.
        addresses: addresses of the tensors in the chain.
    """

    name: str
    kind: str = ""
    peak: int | None = None
    share: float | None = None
    saved: int | None = 0
    tensors: int = 0
    saved_tensors: int = 0
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    line: Frame | None = None
    tensor: str = ""
    addresses: tuple[Address, ...] = ()
    live_tensors: int = 0

    @property
    def expression(self) -> str:
        """Text of the call, or of its line if the call is not known; ``""`` without a line."""
        return "" if self.line is None else self.line.expression


@dataclass(frozen=True)
class MemoryUse:
    """Result of ``capture.memory()``. All figures are bytes, modelled.

    Attributes:
        by: ``line`` or ``name``.
        rows: largest first, by the larger of live bytes at the peak and saved bytes.
        peak: bytes live at once, at most, in one graph; ``None`` if not known for any graph.
        place: the compile id and the phase of the peak: ``"0/0 backward"``.
        saved: bytes saved for the backward by all graphs; ``None`` if a size is not known or no partition was observed.
        partitions: number of graphs whose saved tensors were observed.
        allocated: bytes that all graphs allocate in one call, results and gradients included, without inputs; ``None``
            if a size is not known. See ``Memory.allocated``.
        missing: why figures are not known.
    """

    by: str
    rows: tuple[MemoryRow, ...] = ()
    peak: int | None = None
    place: str = ""
    saved: int | None = None
    missing: tuple[str, ...] = ()
    partitions: int = 0
    allocated: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain JSON data."""
        return {
            "by": self.by,
            "peak": self.peak,
            "place": self.place,
            "saved": self.saved,
            "allocated": self.allocated,
            "rows": [
                {
                    "name": row.name,
                    "kind": row.kind,
                    "expression": row.expression,
                    "peak": row.peak,
                    "share": row.share,
                    "saved": row.saved,
                    "tensors": row.tensors,
                    "saved_tensors": row.saved_tensors,
                    "live_tensors": row.live_tensors,
                    "names": list(row.names),
                    "modules": list(row.modules),
                    "line": row.line.address if row.line is not None else None,
                    "tensor": row.tensor,
                }
                for row in self.rows
            ],
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        from compile_lens.record.delegates import delegate

        text: str = delegate("MemoryUse.__str__")(self)
        return text


@memoized
def memory_use(capture: Record, by: str = "line") -> MemoryUse:
    """Return the memory of a capture by line or by name.

    Args:
        by: ``"line"`` or ``"name"``.

    Raises:
        UsageError: for another ``by``.
    """
    if by not in BY:
        raise UsageError(f"by={by!r} is not one of {', '.join(map(repr, BY))}")
    missing: dict[str, None] = {}
    origins_unknown = unknown_node_origins(capture)
    if origins_unknown:
        missing[f"which lines hold memory: {origins_unknown}"] = None
    peaks = []
    for compilation in capture.compilations:
        for memory in compilation.memory:
            if memory.peak is None:
                missing[f"the peak of {compilation.id} {memory.phase}: {memory.note}"] = None
            else:
                peaks.append((memory.peak, compilation, memory))
        if "backward" in compilation.phases and compilation.partition is None:
            missing[f"what {compilation.id} saves for the backward was not seen"] = None
    table = _Table(capture, by, bool(origins_unknown))
    top = max(peaks, key=lambda one: one[0]) if peaks else None
    if top is not None:
        missing.update(dict.fromkeys(table.add_peak(*top[1:])))
    sizes: list[int | None] = []
    for compilation in capture.compilations:
        for tensor in compilation.partition.saved if compilation.partition is not None else ():
            sizes.append(0 if tensor.alias_of else tensor.nbytes)
            table.add_saved(compilation, tensor)
    known = [size for size in sizes if size is not None]
    allocated = [memory.allocated for compilation in capture.compilations for memory in compilation.memory]
    partitions = sum(compilation.partition is not None for compilation in capture.compilations)
    return MemoryUse(
        by,
        table.rows(top[0] if top is not None else None),
        top[0] if top is not None else None,
        f"{top[1].id} {top[2].phase}" if top is not None else "",
        sum(known) if partitions and len(known) == len(sizes) else None,
        tuple(missing),
        partitions,
        None if None in allocated or not allocated else sum(size or 0 for size in allocated),
    )


@dataclass(frozen=True)
class _Item:
    """One tensor: its kind and name, and the call that made it."""

    kind: str
    name: str
    tensor: str = ""
    frames: tuple[Frame, ...] = ()
    module: str = ""
    address: Address | None = None


@dataclass
class _Sum:
    """Sums of one row. A line may have a fraction of a tensor's bytes, so bytes are rounded only after adding up."""

    item: _Item
    line: Frame | None
    peak: float = 0.0
    saved: float = 0.0
    unknown: bool = False
    saved_tensors: int = 0
    live_tensors: int = 0
    tensors: dict[Address | str, None] = field(default_factory=dict)
    kinds: dict[str, None] = field(default_factory=dict)
    names: dict[str, None] = field(default_factory=dict)
    modules: dict[str, None] = field(default_factory=dict)
    shapes: dict[str, None] = field(default_factory=dict)


class _Table:
    """The rows of a capture."""

    def __init__(self, capture: Record, by: str, origins_unknown: bool) -> None:
        self._by, self._origins_unknown = by, origins_unknown
        self._chain = Chain(capture)
        self._names = input_names(capture)
        self._graphs = {(c.id, graph.key): graph for c in capture.compilations for graph in c.graphs.values()}
        self._nodes = {key: {node.name: node for node in graph.nodes} for key, graph in self._graphs.items()}
        self._results = CallResults(capture, self._chain)
        self._gradients = {
            c.id: dict(_gradients(c, self._names)) for c in capture.compilations if "backward" in c.phases
        }
        self._copied = {c.id: set(_copied(c)) for c in capture.compilations}
        self._sums: dict[object, _Sum] = {}

    def add_peak(self, compilation: Compilation, memory: Memory) -> Iterator[str]:
        """Add the buffers live at the peak; yield a sentence if their sizes do not add up to it."""
        rest, at = memory.peak or 0, memory.peak_line
        taken_over = {buffer.reuses for buffer in memory.buffers if buffer.alloc_line <= at}
        for buffer in memory.buffers:
            gone = buffer.name in taken_over or 0 < buffer.free_line <= at
            if buffer.base or not buffer.nbytes or buffer.alloc_line > at or gone:
                continue
            rest -= buffer.nbytes
            for one in self._shared(self._of_buffer(compilation, memory.phase, buffer)):
                one[0].peak += buffer.nbytes * one[1]
                one[0].live_tensors += 1
        if rest:
            more = (
                "of tensors that are not known"
                if rest > 0
                else "fewer than those of the tensors that are live"
            )
            yield f"the peak: {abs(rest):,} bytes of it are {more}"

    def add_saved(self, compilation: Compilation, tensor: SavedTensor) -> None:
        """Add a tensor that the forward saves."""
        item = self._of_origins(compilation.id, "joint", tensor.origins, tensor.node, not tensor.alias_of)
        for one, part in self._shared(item):
            one.saved_tensors += 1
            if not tensor.alias_of:
                one.saved += (tensor.nbytes or 0) * part
                one.unknown |= tensor.nbytes is None

    def rows(self, peak: int | None) -> tuple[MemoryRow, ...]:
        """Return the rows, largest first, by the larger of live bytes at the peak and saved bytes."""
        rows = [self._row(one, peak) for one in self._sums.values()]
        rows.sort(
            key=lambda row: (
                -max(row.peak or 0, row.saved or 0),
                -(row.peak or 0),
                -(row.saved or 0),
                row.name,
            )
        )
        return tuple(rows)

    def _row(self, one: _Sum, peak: int | None) -> MemoryRow:
        live = round(one.peak)
        names = tuple(one.names)
        name = one.item.name
        if self._by == "line":
            address = line_address(one.line.file, one.line.line) if one.line is not None else None
            name = self._chain.texts.short(address) if address is not None else ""
        elif len(names) > 1:
            name = pattern(names[0])
        kinds = tuple(one.kinds)
        return MemoryRow(
            name,
            kinds[0] if self._by == "name" or one.line is None else "",
            None if peak is None else live,
            live / peak if peak else None,
            None if one.unknown else round(one.saved),
            len(one.tensors),
            one.saved_tensors,
            names,
            tuple(one.modules),
            one.line,
            next(iter(one.shapes)) if len(one.shapes) == 1 else "",
            tuple(address for address in one.tensors if isinstance(address, tuple)),
            one.live_tensors,
        )

    def _shared(self, item: _Item) -> Iterator[tuple[_Sum, float]]:
        """Yield the rows that share a tensor, and the share of each."""
        frames: tuple[Frame | None, ...] = item.frames or (None,)
        if self._by == "name":  # after its first expression
            frames = frames[:1]
        for frame in frames:
            line = None
            if self._by == "name":
                key: object = (item.kind, frame or pattern(item.name), pattern(item.module))
                line = frame
            elif frame is None:
                key = item.kind
            else:
                line = frame.whole_line
                key = (frame.file, frame.line)
            one = self._sums.setdefault(key, _Sum(item, line))
            one.tensors[item.address or item.name] = None
            one.kinds[item.kind] = None
            one.shapes[item.tensor] = None
            if item.module:
                one.modules[item.module] = None
            if frame is None:
                one.names[item.name] = None
            yield one, 1 / len(frames)

    def _of_buffer(self, compilation: Compilation, phase: str, buffer: Buffer) -> _Item:
        """Return the item of a buffer of the generated code: the value of a node, else the result of its loop."""
        stage = f"{phase}.post_grad"
        if buffer.origins or buffer.kind == "input":
            own_memory = buffer.kind != "input"
            return self._of_origins(
                compilation.id, stage, buffer.origins or (buffer.name,), buffer.name, own_memory
            )
        lowered = [one for one in compilation.lowered if one.phase == phase]
        loop = self._nodes.get((compilation.id, f"{phase}.loops"), {}).get(buffer.loop)
        if loop is None:
            return _Item(UNKNOWN, buffer.name)
        whole = [one.node for one in lowered if one.buffer == loop.name]
        parts = [one.node for one in lowered if loop.name in one.parts] or [*reversed(loop.origins)]
        item = self._of_origins(compilation.id, stage, tuple(whole or parts), buffer.name, own_memory=True)
        if whole or item.kind not in (VALUE, GRADIENT):
            return item
        address = (compilation.id, f"{phase}.loops", loop.name)
        kind = GRADIENT if item.kind == GRADIENT and item.frames else PART
        return replace(item, kind=kind, tensor=tensor_text(loop), address=address)

    def _of_origins(
        self, cid: str, stage: str, origins: tuple[str, ...], fallback: str, own_memory: bool = False
    ) -> _Item:
        """Return the item of a tensor by its origins. A tensor with ``own_memory`` and the value of an input is a copy
        of that input."""
        origin = next((one for one in origins if one in self._nodes.get((cid, stage), {})), "")
        if not origin or self._origins_unknown:
            return _Item(UNKNOWN, fallback)
        address = (cid, stage, origin)
        node = self._nodes[cid, stage][origin]
        gradient = self._gradients.get(cid, {}).get(origin) if stage.startswith("backward.") else None
        tensor = tensor_text(node)
        if gradient is not None:
            return _Item(GRADIENT, *gradient, address=address)
        if node.op == "placeholder" and origin.startswith(TANGENT):
            return _Item(GRADIENT, "gradient with respect to a result", tensor, address=address)
        address = self._joint(address) or address
        viewed = self._without_views(address)
        for one in (address, viewed):
            if (given := self._names.of(*one)) is not None:
                saved = stage.startswith("backward.") and address[2] in self._copied[cid]
                if own_memory or saved:
                    return _Item(COPY, given.name, tensor, address=address)
                return _Item(given.kind, given.name, tensor_text(self._nodes[one[:2]][one[2]]), address=one)
        frames = self._chain.lines(viewed, derivatives=False) if viewed in self._chain else ()
        frames = tuple({(f.file, f.within): f for f in frames}.values())
        source = self._nodes[viewed[:2]].get(viewed[2], node)
        kind = GRADIENT if source is not None and source.derivative else VALUE
        module = source.module if source is not None else ""
        if self._results.is_assigned(viewed):  # the columns are those of the target, `y[0]`
            frames = tuple(dict.fromkeys(frame.whole_line for frame in frames))
        first = frames[0] if frames else None
        expression = first.expression if first is not None else ""
        name = f"backward of {expression}" if kind == GRADIENT and expression else expression or fallback
        if kind == VALUE and frames and self._results.is_part(viewed):
            kind = PART
        elif kind == VALUE and frames:
            tensor = self._results.shape(viewed) or tensor
        return _Item(kind if frames else UNKNOWN, name, tensor, frames, module, viewed)

    def _without_views(self, address: Address) -> Address:
        """Return the node that computes the base of a view: a linear layer reshapes its input."""
        cid, stage, name = address
        nodes = self._nodes.get((cid, stage), {})
        while (node := nodes.get(name)) is not None and node.kind == "view" and node.inputs[:1]:
            if node.target == "operator.getitem":  # one of several results is no view of them
                break
            name = node.inputs[0]
        return (cid, stage, name) if name in nodes else address

    def _joint(self, address: Address) -> Address | None:
        """Return the joint-graph node of a node of a later stage."""
        cid, stage, name = address
        while stage != "joint":
            graph, node = self._graphs.get((cid, stage)), self._nodes.get((cid, stage), {}).get(name)
            if graph is None or node is None:
                return None
            known = self._nodes.get((cid, graph.before), {})
            origin = next((one for one in node.origins if one in known), "")
            if not origin:
                return None
            stage, name = graph.before, origin
        return cid, stage, name


def _copied(compilation: Compilation) -> Iterator[str]:
    """Yield the nodes of the joint graph that the forward saves in memory of its own."""
    for tensor in compilation.partition.saved if compilation.partition is not None else ():
        if tensor.nbytes and not tensor.alias_of:
            yield from tensor.origins or (tensor.node,)


def _gradients(compilation: Compilation, names: InputNames) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield the result nodes of the backward after passes, each with "gradient with respect to …" and dtype and
    shape."""
    graph, joint = compilation.graphs.get("backward.post_grad"), compilation.graphs.get("joint")
    if not isinstance(graph, Graph) or not isinstance(joint, Graph):
        return
    given = [n.name for n in joint.nodes if n.op == "placeholder" and not n.name.startswith(TANGENT)]
    nodes = {node.name: node for node in graph.nodes}
    output = next((node for node in graph.nodes if node.op == "output"), None)
    results = output.args[0] if output is not None and output.args else ()
    if not isinstance(results, tuple) or len(results) != len(given):
        return
    for result, source in zip(results, given, strict=True):
        name = names.of(compilation.id, "joint", source)
        node: Node | None = nodes.get(result.name) if isinstance(result, Ref) else None
        if not isinstance(result, Ref) or name is None:
            continue
        while node is not None:
            yield node.name, (f"gradient with respect to {name.name}", tensor_text(nodes[result.name]))
            node = nodes.get(node.inputs[0]) if node.kind == "view" and node.inputs else None
            node = node if node is not None and len(node.outputs) == 1 else None


def pattern(path: str) -> str:
    """Return a qualified name with ``*`` for each number in it: ``"blocks.*.up.weight"``."""
    return re.sub(r"(?<![^.\s])\d+(?![^.])", "*", path)
