"""The result of lowering for each ATen node: inlined into the loops that read it, or realised, and why.

Every operation that lowering registers (a loop with a buffer, a library call) is observed at its registration, without
queries to torch. Torch's functions on the stack show who requested it, and torch's last check of the value (reuse,
number of reads) is repeated with its figures.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ...record import claims
from ...record.graph import Graph, Node
from ...record.lowering import Lowered
from ..ground.hooks import slot_hook
from ..ground.recorder import Draft, Slot
from . import line_origins, realize_reasons, scheduler_nodes

RUN_NODE = "torch._inductor.graph:GraphLowering.run_node"
REGISTER = "torch._inductor.graph:GraphLowering.register_operation"
REALIZE_ON_REUSE = "torch._inductor.ir:StorageBox.should_realize_on_reuse"
EXCEEDED_READS = "torch._inductor.ir:StorageBox.has_exceeded_max_reads"


@dataclasses.dataclass(slots=True)
class RegisteredOperation:
    """An operation that lowering registered, with its node and the reason."""

    name: str
    node: str
    operation: Any
    reason: realize_reasons.Reason

    @property
    def extern(self) -> bool:
        """True for a library call, or a kernel without a loop in Inductor's IR."""
        return type(self.operation).__name__ not in ("ComputedBuffer", "ConcatKernel")

    @property
    def calls_user_kernel(self) -> bool:
        """True if it launches one of the program's own Triton kernels."""
        return type(self.operation).__name__ == "UserDefinedTritonKernel"

    @property
    def mutates(self) -> bool:
        """True if it overwrites an existing buffer."""
        return bool(self.operation.get_mutation_names())


class LoweringWatch:
    """The observed lowering of one phase, with the values that lowering returned, during the phase's compile."""

    def __init__(self) -> None:
        self.sites = realize_reasons.Sites()
        self.queries = realize_reasons.Queries()
        self.operations: dict[str, RegisteredOperation] = {}
        self.values: dict[str, list[Any]] = {}
        self.copies: dict[str, tuple[Any, bool]] = {}
        self.called: set[str] = set()  # nodes that became library calls


WATCH: Slot[LoweringWatch] = Slot()

Traced = dict[str, dict[str, None]]
TRACED: Slot[Traced] = Slot()
"""Names of the loops with operations of a node in their bodies, by node."""


def begin(draft: Draft) -> None:
    """Start observing the lowering of one phase."""
    TRACED.put(draft, {})
    # Needed even if reasons cannot be observed: only ``REGISTER`` shows which nodes became calls.
    WATCH.put(draft, LoweringWatch())


def end(draft: Draft, phase: str, loops: Sequence[Node]) -> None:
    """Record the result for each node that computes; ``loops`` are those of the record."""
    watch, traced = WATCH.take(draft), TRACED.take(draft)
    graph = draft.graph(f"{phase}.post_grad")
    if watch is not None and watch.operations and graph is not None and loops:
        draft.lowered += finish(watch, traced or {}, phase, graph, loops)


def record(draft: Draft, loop: Any) -> None:
    """Record the nodes whose operations are in the body of a loop (a scheduler node before fusion).

    Inductor's own origins of a loop also include nodes that it only reads through a view.
    """
    traced, watch = TRACED.of(draft), WATCH.of(draft)
    body: Any = getattr(loop, "_body", None)
    if traced is None or watch is None or body is None or not hasattr(body, "root_block"):
        return
    for block in (body.root_block, *body.subblocks.values()):
        _attribute_stores(watch.called, block.graph)
        for operation in block.graph.nodes:
            meta = operation.meta
            for name in (*meta.get(line_origins.KEY, ()), *meta.get(line_origins.INDICES, ())):
                traced.setdefault(name, {})[loop.get_name()] = None


def _attribute_stores(called: Collection[str], graph: Any) -> None:
    """Attribute a store requested by a call to the node whose value is stored: the call only needs its argument in
    memory."""
    key = line_origins.KEY
    stores = [node for node in graph.nodes if node.op == "call_method" and node.target == "store"]
    aside = {*stores, *(node.args[2] for node in stores)}
    computing = {name for node in graph.nodes if node not in aside for name in node.meta.get(key, ())}
    for store in stores:
        names, value = store.meta.get(key, ()), store.args[3]
        if names and all(name in called for name in names) and computing.isdisjoint(names):
            for node in (store, store.args[2]):
                node.meta[key] = value.meta.get(key, names)


def without_foreign_origins(draft: Draft, loops: Sequence[Node]) -> list[Node]:
    """Return the loops with corrected origins: without nodes that only other loops or calls compute, and with those
    whose operations are in their bodies (constants are inlined even if they have a buffer).

    A launch of the program's own kernel has only that origin. If the lowering of one node creates several loops (the
    copy of a scatter's base, parts of a ``cat``, a reduction in two steps), Inductor gives each the origins of all. An
    argument of the program's own kernel, or of an operator that writes to it, is stored during the lowering of that,
    and shares its origins. If operations were not observed, a node that several loops share is omitted from all.
    """
    loops = [_launch(draft, loop) for loop in loops]
    called = {loop.origins[0] for loop in loops if loop.op == "extern" and len(loop.origins) == 1}
    if claims.LOOP_ORIGINS in draft.recorder.lacking:
        shared = Counter(name for loop in loops if loop.op == "loop" for name in loop.origins)
        own_origins = ([n for n in loop.origins if shared[n] < 2 and n not in called] for loop in loops)
        return [_with_origins(loop, origins) for loop, origins in zip(loops, own_origins)]
    traced = TRACED.of(draft) or {}

    tracker = line_origins.TRACKER.of(draft)
    computed: dict[str, list[str]] = {}
    for name in tracker.symbolic if tracker is not None else ():
        for loop_name in traced.get(name, ()) if name not in called else ():
            computed.setdefault(loop_name, []).append(name)
    others = called | traced.keys()

    def own(loop: Node) -> list[str]:
        inlined = [name for name in computed.get(loop.name, ()) if name not in loop.origins]
        if not loop.origins:
            return []
        if not any(loop.name in traced.get(name, ()) for name in loop.origins):
            return [*inlined, *loop.origins]
        own_names = (n for n in loop.origins if n not in others or loop.name in traced.get(n, ()))
        return [*inlined, *own_names]

    return [_with_origins(loop, own(loop)) for loop in loops]


def _launch(draft: Draft, loop: Node) -> Node:
    """Return a launch of the program's own kernel with only its own origin; any other loop unchanged."""
    watch = WATCH.of(draft)
    own = watch.operations.get(loop.name) if watch is not None and loop.op == "extern" else None
    if own is None or not own.calls_user_kernel or own.node not in loop.origins:
        return loop
    return dataclasses.replace(loop, origins=(own.node,))


def _with_origins(loop: Node, origins: list[str]) -> Node:
    if loop.op != "loop" or origins == list(loop.origins):
        return loop
    return dataclasses.replace(loop, origins=tuple(origins), no_origin="" if origins else NOT_OBSERVED)


NOT_OBSERVED = "which of several loops computes it was not observed"


def finish(
    watch: LoweringWatch, traced: Traced, phase: str, graph: Graph, loops: Sequence[Node]
) -> list[Lowered]:
    """Return an entry for each node of ``graph`` that computes and is in a loop, in the graph's order."""
    kinds = {loop.name: loop.op for loop in loops if loop.op != "placeholder"}
    computing: dict[str, list[str]] = {}
    for loop in loops:
        for origin in loop.origins if loop.name in kinds else ():
            if loop.op == "loop":  # the origins of a call also include the nodes that compute its arguments
                computing.setdefault(origin, []).append(loop.name)
    computes = [p + n.name for p, n in _walk(graph) if n.compute and n.op.startswith("call_")]
    written, owner = _values(watch, set(computes))
    own: dict[str, list[RegisteredOperation]] = {}
    for operation in watch.operations.values():
        own.setdefault(owner.get(operation.name, operation.node), []).append(operation)
    calls = {operation.node for operation in watch.operations.values() if operation.extern}
    results = {p + name for p, n in _walk(graph) if n.op == "output" for name in n.inputs}
    entries = []
    for name in computes:
        own_operations = [operation for operation in own.get(name, ()) if operation.name in kinds]
        computing_loops = traced.get(name, () if own_operations else computing.get(name, ()))
        # A copy of another node's value belongs to that node.
        others = {
            copy for copy in watch.copies if owner.get(copy, name) != name == watch.operations[copy].node
        }
        buffer, parts = _value_and_parts(own_operations, written.get(name, ()), kinds)
        inside = {operation.name for operation in (buffer, *parts) if operation is not None}
        inside.update(loop for loop in computing_loops if loop not in others)
        if not inside:
            continue  # it was optimised away or is unused
        reason, shown, where = _why(calls, name, buffer or parts[0]) if own_operations else ("", "", "")
        if buffer is not None and name in results and reason != "output":
            shown = f"{shown}; it is also a result of the graph".removeprefix("; ")
        entries.append(
            Lowered(
                phase,
                name,
                tuple(loop for loop in kinds if loop in inside),
                buffer.name if buffer is not None else "",
                tuple(operation.name for operation in parts),
                reason,
                shown,
                where,
            )
        )
    return entries


def _walk(graph: Graph, path: str = "") -> Iterator[tuple[str, Node]]:
    for node in graph.nodes:
        yield path, node
    for name, body in graph.subgraphs:
        yield from _walk(body, f"{path}{name}/")


def _values(watch: LoweringWatch, computing: Collection[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return the operations that write the value of each node, and the node that owns each operation.

    A node that returns another's value (a view) owns nothing. A copy of an expression is the expression's first buffer;
    a copy that only a view needs belongs to the viewed node.
    """
    written: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    nodes: dict[int, str] = {}
    for name, boxes in watch.values.items():
        for box in boxes:
            nodes.setdefault(id(box), name)
    for copy, (box, expression) in watch.copies.items():
        name = nodes.get(id(box), "")
        if name in computing and copy in watch.operations:
            if expression or watch.operations[copy].node not in computing:
                owner[copy] = name
                if expression:
                    written.setdefault(name, []).append(copy)
    for name, boxes in watch.values.items():
        for box in boxes:
            operation = _operation(box)
            if operation in watch.operations and owner.setdefault(operation, name) == name:
                if operation not in written.setdefault(name, []):
                    written[name].append(operation)
    return written, owner


def _operation(box: Any) -> str:
    """Return the name of the operation that writes a value; ``""`` without a buffer, or for an input or constant."""
    data = getattr(box, "data", box) if type(box).__name__ == "StorageBox" else box
    if type(data).__name__ == "MultiOutput":  # one result of a library call
        data = data.inputs[0]
    return getattr(data, "operation_name", None) or ""


def _value_and_parts(
    own_operations: list[RegisteredOperation], written: Collection[str], kinds: dict[str, str]
) -> tuple[RegisteredOperation | None, list[RegisteredOperation]]:
    """Return the operation that writes a node's value, and those that write parts of it.

    An operation that overwrites is preferred, the last one, since it completes the value.
    """
    mutating = [operation for operation in own_operations if operation.mutates]
    values = [operation for operation in own_operations if operation.name in written]
    calls = [operation for operation in own_operations if operation.extern and kinds[operation.name] != "nop"]
    candidates = mutating[-1:] or values[:1] or calls[-1:]
    buffer = candidates[0] if candidates else None
    rest = [m for m in own_operations if m is not buffer and kinds[m.name] != "nop"]
    if buffer is None and not rest:
        return (own_operations[0] if own_operations else None), []
    return buffer, rest


def _why(calls: Collection[str], node: str, operation: RegisteredOperation) -> tuple[str, str, str]:
    """Return reason, evidence and place for an operation, once the results for its readers are known."""
    reason = operation.reason
    if reason.reason != realize_reasons.UNDECIDED:
        return reason.reason, reason.shown, reason.where
    readers = reason.readers or (operation.node,)
    others = [n for n in readers if n != node]
    called = [n for n in others if n in calls]
    shown = f"requested by {', '.join(called or others)}" if others else "its own lowering requires it"
    return ("extern" if called else "hint"), shown, reason.where


@slot_hook(RUN_NODE, WATCH, claims.LOWERING)
def keep_value(watch: LoweringWatch, real: Any, lowering: Any, node: Any) -> Any:
    """Record the value of a lowered node, an expression or a buffer."""
    result = real(lowering, node)
    if node.op == "call_function":
        boxes = [_unwrapped(value) for value in (result if isinstance(result, (list, tuple)) else (result,))]
        watch.values[scheduler_nodes.prefix(lowering) + node.name] = boxes
    return result


def _unwrapped(value: Any) -> Any:
    """Return the storage beneath the views of a value."""
    while type(value).__name__ != "StorageBox" and not hasattr(value, "operation_name"):
        inner = getattr(value, "data", None)
        if inner is None:
            break
        value = inner
    return value


@slot_hook("torch._inductor.ir:ExternKernel.copy_input", WATCH, claims.LOWERING)
def keep_copy(watch: LoweringWatch, real: Any, value: Any) -> Any:
    """Record a copy into another layout; if the value is still an expression, the copy computes it."""
    box = _unwrapped(value)
    expression = not hasattr(getattr(box, "data", box), "layout")
    copy = real(value)
    name = _operation(_unwrapped(copy))
    if name in watch.operations:
        watch.copies[name] = (box, expression)
    return copy


@slot_hook(REALIZE_ON_REUSE, WATCH, claims.LOWERING)
def keep_reuse(watch: LoweringWatch, real: Any, box: Any, users: Any, *args: Any, **kwargs: Any) -> Any:
    """Record Inductor's decision to realise a value that is read more than once."""
    realise = real(box, users, *args, **kwargs)
    if realise:
        watch.queries.reused, watch.queries.users = box.data, users
        watch.queries.by_nodes = kwargs.get("graph_reuse", True)
    return realise


@slot_hook(EXCEEDED_READS, WATCH, claims.LOWERING)
def keep_excess(watch: LoweringWatch, real: Any, box: Any) -> Any:
    """Record Inductor's decision that the expression of a value has grown too large."""
    realise = real(box)
    if realise:
        watch.queries.exceeded = box.data
    return realise


@slot_hook(REGISTER, WATCH, *line_origins.ANNOUNCED)
def register_operation(watch: LoweringWatch, real: Any, lowering: Any, operation: Any) -> Any:
    """Record a registered operation, with which a value gets a buffer."""
    name = real(lowering, operation)
    current = getattr(lowering, "current_node", None)
    prefix = scheduler_nodes.prefix(lowering)
    reason = realize_reasons.reason_for(watch.sites, watch.queries, operation, current, prefix)
    own = watch.operations[name] = RegisteredOperation(
        name, prefix + current.name if current is not None else "", operation, reason
    )
    if own.extern:
        watch.called.add(own.node)
    return name
