"""What lowering makes of each ATen node: inlined into the loops that read it, or realised, and why.

Nothing is asked of torch beforehand. Every operation that lowering registers (a loop with a buffer, a library
call) is seen as it is registered: which functions of torch are in progress says who wanted it, and what torch
asked last about the value (is it reused, has it too many reads) is answered again, with the figures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ...record.graph import Graph, Node
from ...record.lowering import Lowered
from ..ground import hook_points
from ..ground.hooks import slot_hook
from ..ground.recorder import Draft, Slot
from . import line_origins, realize_reasons, scheduler_nodes

LOWERED = "torch._inductor.graph:GraphLowering.run_node"
REGISTERED = "torch._inductor.graph:GraphLowering.register_operation"
REUSED = "torch._inductor.ir:StorageBox.should_realize_on_reuse"
EXCEEDED = "torch._inductor.ir:StorageBox.has_exceeded_max_reads"
ESSENTIAL = (LOWERED, REGISTERED, REUSED, EXCEEDED)
"""Without one of these a reason would be missing, or wrong: then nothing is said of lowering."""


@dataclasses.dataclass(slots=True)
class Made:
    """An operation that lowering registered: for which node, and why."""

    name: str
    node: str
    operation: Any
    found: realize_reasons.Found

    @property
    def extern(self) -> bool:
        """Whether it is a call of a library, or of a kernel of which Inductor knows no loop."""
        return type(self.operation).__name__ not in ("ComputedBuffer", "ConcatKernel")

    @property
    def mutates(self) -> bool:
        """Whether it overwrites a buffer that was there before."""
        return bool(self.operation.get_mutation_names())


class Watch:
    """The lowering of one phase. It holds what lowering returned for as long as the phase is compiled."""

    def __init__(self) -> None:
        self.sites = realize_reasons.Sites()
        self.asked = realize_reasons.Asked()
        self.made: dict[str, Made] = {}
        self.values: dict[str, list[Any]] = {}
        self.copies: dict[str, tuple[Any, bool]] = {}
        self.traced: dict[str, dict[str, None]] = {}


WATCH: Slot[Watch] = Slot()


def begin(draft: Draft) -> None:
    """Start following the lowering of one phase, if the running torch has what that takes."""
    lost = [path for path in ESSENTIAL if hook_points.find(path) is None]
    if lost:
        draft.recorder.note(
            f"what lowering inlined, and why it did not, is unknown: {hook_points.lacks(lost[0])}"
        )
        return
    WATCH.put(draft, Watch())


def end(draft: Draft, phase: str, loops: Sequence[Node]) -> None:
    """Keep what became of each node that computes something; ``loops`` are those of the record."""
    watch = WATCH.take(draft)
    graph = draft.graph(f"{phase}.post_grad")
    if watch is not None and watch.made and graph is not None and loops:
        draft.lowered += finish(watch, phase, graph, loops)


def record(draft: Draft, loop: Any) -> None:
    """Note whose operations the body of a loop holds (a node of the scheduler, before fusion).

    Inductor's own origins of a loop also name what it reads through a view, and does not compute.
    """
    watch = WATCH.of(draft)
    body: Any = getattr(loop, "_body", None)
    if watch is None or body is None or not hasattr(body, "root_block"):
        return
    for block in (body.root_block, *body.subblocks.values()):
        for operation in block.graph.nodes:
            for name in operation.meta.get(line_origins.KEY, ()):
                watch.traced.setdefault(name, {})[loop.get_name()] = None


def cut(draft: Draft, loop: Node) -> Node:
    """A loop without the origins that others compute, and it does not, by what their bodies hold.

    Where the lowering of one node makes several loops (the copy of a scatter's base, parts of a ``cat``, a reduction in
    two steps), Inductor says of each that it computes what any of them takes.
    """
    watch = WATCH.of(draft)
    if watch is None or loop.op != "loop":
        return loop
    traced = watch.traced
    if not any(loop.name in traced.get(name, ()) for name in loop.origins):
        return loop
    kept = tuple(name for name in loop.origins if name not in traced or loop.name in traced[name])
    return loop if kept == loop.origins else dataclasses.replace(loop, origins=kept)


def finish(watch: Watch, phase: str, graph: Graph, loops: Sequence[Node]) -> list[Lowered]:
    """An entry for each node of ``graph`` that computes something and is in a loop, in the graph's order."""
    kinds = {loop.name: loop.op for loop in loops if loop.op != "placeholder"}
    computing: dict[str, list[str]] = {}
    for loop in loops:
        for origin in loop.origins if loop.name in kinds else ():
            if loop.op == "loop":  # a call is also said to compute what its arguments were made of
                computing.setdefault(origin, []).append(loop.name)
    computes = [p + n.name for p, n in _walk(graph) if n.compute and n.op.startswith("call_")]
    written, owner = _values(watch, set(computes))
    own: dict[str, list[Made]] = {}
    for made in watch.made.values():
        own.setdefault(owner.get(made.name, made.node), []).append(made)
    calls = {made.node for made in watch.made.values() if made.extern}
    results = {p + name for p, n in _walk(graph) if n.op == "output" for name in n.inputs}
    entries = []
    for name in computes:
        mine = [made for made in own.get(name, ()) if made.name in kinds]
        found = watch.traced.get(name, () if mine else computing.get(name, ()))
        # A copy that it made of another's value is the other's.
        others = {copy for copy in watch.copies if owner.get(copy, name) != name == watch.made[copy].node}
        buffer, parts = _split(mine, written.get(name, ()), kinds)
        inside = {made.name for made in (buffer, *parts) if made is not None}
        inside.update(loop for loop in found if loop not in others)
        if not inside:
            continue  # it was optimised away, or nothing needs it
        reason, shown, where = _why(calls, name, buffer or parts[0]) if mine else ("", "", "")
        if buffer is not None and name in results and reason != "output":
            shown = f"{shown}; it is a result of the graph as well".removeprefix("; ")
        entries.append(
            Lowered(
                phase,
                name,
                tuple(loop for loop in kinds if loop in inside),
                buffer.name if buffer is not None else "",
                tuple(made.name for made in parts),
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


def _values(watch: Watch, computing: Collection[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Which operations write the value of each node, and to which node each such operation belongs.

    A node that returns the value of another (a view) owns nothing. A copy of an expression is the first buffer
    that the expression gets; a copy that only a view needs belongs to the node that is viewed.
    """
    written: dict[str, list[str]] = {}
    owner: dict[str, str] = {}
    nodes: dict[int, str] = {}
    for name, boxes in watch.values.items():
        for box in boxes:
            nodes.setdefault(id(box), name)
    for copy, (box, expression) in watch.copies.items():
        name = nodes.get(id(box), "")
        if name in computing and copy in watch.made:
            if expression or watch.made[copy].node not in computing:
                owner[copy] = name
                if expression:
                    written.setdefault(name, []).append(copy)
    for name, boxes in watch.values.items():
        for box in boxes:
            operation = _operation(box)
            if operation in watch.made and owner.setdefault(operation, name) == name:
                if operation not in written.setdefault(name, []):
                    written[name].append(operation)
    return written, owner


def _operation(box: Any) -> str:
    """The operation that writes a value; ``""`` where it has no buffer, or is an input or a constant."""
    data = getattr(box, "data", box) if type(box).__name__ == "StorageBox" else box
    if type(data).__name__ == "MultiOutput":  # one result of a library call
        data = data.inputs[0]
    return getattr(data, "operation_name", None) or ""


def _split(
    mine: list[Made], written: Collection[str], kinds: dict[str, str]
) -> tuple[Made | None, list[Made]]:
    """The operation that writes a node's value, and those that write parts of it.

    What overwrites comes last: it completes the value.
    """
    mutating = [made for made in mine if made.mutates]
    values = [made for made in mine if made.name in written]
    calls = [made for made in mine if made.extern and kinds[made.name] != "nop"]
    found = mutating[-1:] or values[:1] or calls[-1:]
    buffer = found[0] if found else None
    rest = [m for m in mine if m is not buffer and (m.name in written or kinds[m.name] != "nop")]
    if buffer is None and not rest:
        return (mine[0] if mine else None), []
    return buffer, rest


def _why(calls: Collection[str], node: str, made: Made) -> tuple[str, str, str]:
    """The reason for an operation, once it is known what became of those that asked for it."""
    found = made.found
    if found.reason != realize_reasons.ASKED:
        return found.reason, found.shown, found.where
    asking = found.readers or (made.node,)
    others = [n for n in asking if n != node]
    called = [n for n in others if n in calls]
    shown = f"asked for by {', '.join(called or others)}" if others else "its own lowering asks for it"
    return ("extern" if called else "hint"), shown, found.where


@slot_hook(LOWERED, WATCH)
def lowered(watch: Watch, real: Any, lowering: Any, node: Any) -> Any:
    """A node was lowered: its value is an expression still, or has a buffer already."""
    result = real(lowering, node)
    if node.op == "call_function":
        boxes = [_unwrapped(value) for value in (result if isinstance(result, (list, tuple)) else (result,))]
        watch.values[scheduler_nodes.prefix(lowering) + node.name] = boxes
    return result


def _unwrapped(value: Any) -> Any:
    """The storage under the views of a value."""
    while type(value).__name__ != "StorageBox" and not hasattr(value, "operation_name"):
        inner = getattr(value, "data", None)
        if inner is None:
            break
        value = inner
    return value


@slot_hook("torch._inductor.ir:ExternKernel.copy_input", WATCH)
def copied(watch: Watch, real: Any, value: Any) -> Any:
    """A value is copied, for another layout: if it is an expression still, the copy is where it is computed."""
    box = _unwrapped(value)
    expression = not hasattr(getattr(box, "data", box), "layout")
    copy = real(value)
    name = _operation(_unwrapped(copy))
    if name in watch.made:
        watch.copies[name] = (box, expression)
    return copy


@slot_hook(REUSED, WATCH)
def reused(watch: Watch, real: Any, box: Any, users: Any, *args: Any, **kwargs: Any) -> Any:
    """Inductor asks whether a value that is read more than once should be realised."""
    answer = real(box, users, *args, **kwargs)
    if answer:
        watch.asked.reused, watch.asked.users = box.data, users
        watch.asked.by_nodes = kwargs.get("graph_reuse", True)
    return answer


@slot_hook(EXCEEDED, WATCH)
def exceeded(watch: Watch, real: Any, box: Any) -> Any:
    """Inductor asks whether the expression of a value has grown too large."""
    answer = real(box)
    if answer:
        watch.asked.exceeded = box.data
    return answer


@slot_hook(REGISTERED, WATCH)
def registered(watch: Watch, real: Any, lowering: Any, operation: Any) -> Any:
    """An operation was registered: a value has a buffer from now on."""
    name = real(lowering, operation)
    current = getattr(lowering, "current_node", None)
    prefix = scheduler_nodes.prefix(lowering)
    found = realize_reasons.find(watch.sites, watch.asked, operation, current, prefix)
    watch.made[name] = Made(name, prefix + current.name if current is not None else "", operation, found)
    return name
