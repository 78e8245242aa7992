"""Origins of the lines inside a kernel: the node of ``"<phase>.post_grad"`` for which each line was generated.

Nothing is read back from the finished text. A name travels with the work: while a node is lowered, its loops learn to
announce it whenever their body runs; while a body is traced, each operation of the trace keeps the announced name;
during codegen, each line keeps the names of the operation in progress, through indentation, wrapping and reordering,
until the kernel's text is put together. So a value's load belongs to the node that asked for it, a store to the node
whose value is stored, and the lines that prepare, accumulate and combine a reduction to the reduction. A line that
serves several nodes, because the compiler found their expressions equal, keeps all of them, in order.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from ...record import claims
from ...record.kernel import Kernel, LineOrigin
from ..ground.hooks import _local, factory_hook, failed, hook, slot_hook
from ..ground.recorder import Draft, Slot
from . import line_text, scheduler_nodes

LOOPS_INIT = "torch._inductor.ir:Loops.__post_init__"
STORE_FUNCTION = "torch._inductor.ir:ComputedBuffer.get_store_function"
CREATE_NODE = "torch._inductor.loop_body:LightTracer.create_node"
WRITELINE = "torch._inductor.utils:IndentedBuffer.writeline"
GETVALUE = "torch._inductor.utils:IndentedBuffer.getvaluewithlinemap"
ANNOUNCED = (claims.KERNEL_LINES, claims.LOOP_ORIGINS, claims.LOWERING)
"""The claims that rest on the names that operations of a loop's body keep."""

KEY = "compile_lens_lines"
"""Attribute, and key of ``meta``, under which the objects of one compile keep names of nodes."""

INDICES = "compile_lens_lines of its index"
"""Key of ``meta`` under which an operation keeps the names of nodes that compute its index."""

SHARED = "compile_lens_lines of its lines"
"""Key of ``meta`` under which an operation keeps the names that its lines share."""

Names = dict[str, None]
"""Node names in order. Copies of one line share one, so that a later user of the line reaches all."""


_WHOLE = slice(0, None)


class Line(str):
    """A line of code with the nodes for which it was generated."""

    __slots__ = ("names",)
    names: Names

    def __getitem__(self, index: Any) -> Line:
        if index == _WHOLE:  # a buffer is copied into another, without what all its lines begin with
            return self
        line = Line(str.__getitem__(self, index))  # as ``tagged``, without a call
        line.names = self.names
        return line

    def replace(self, *args: Any) -> Line:
        return tagged_line(str.replace(self, *args), self.names)


def tagged_line(text: str, names: Names) -> Line:
    """Return ``text`` as a line that was generated for the nodes ``names``."""
    line = Line(text)
    line.names = names
    return line


class Tracker:
    """Announced names, traced operations and generated lines of one phase. It lives as long as the phase is
    compiled."""

    def __init__(self) -> None:
        from torch._inductor import virtualized

        self.virtual = virtualized.V
        # Asked for every line that Inductor writes: where V keeps it in this thread, without V's own calls.
        self.key = getattr(getattr(virtualized, "_interpreter", None), "_key", "")
        local = getattr(virtualized, "threadlocal", None)
        self.local: Any = local if self.key and hasattr(local, "__dict__") else None
        self.idle = getattr(virtualized, "NullHandler", None)  # held while nothing is interpreted
        self.announced: list[tuple[str, ...]] = []
        self.symbolic: Names = {}  # nodes whose constants or index expressions were traced
        self.indices: Names = {}  # nodes whose values became the index of the next operation
        self.writing: list[Names] = []
        self.texts: list[list[tuple[str, Names | None]]] = []

    @contextlib.contextmanager
    def writes(self, names: Names) -> Iterator[None]:
        """Tag every line generated meanwhile with ``names``."""
        self.writing.append(names)
        try:
            yield
        finally:
            self.writing.pop()

    def now(self) -> Names:
        """Return the nodes for which a line is generated now."""
        return self.writing[-1] if self.writing else dict.fromkeys(self.running())

    def running(self) -> tuple[str, ...]:
        """Return the nodes of the operation that is being interpreted."""
        node = self.operation()
        return _names_of(node) if node is not None else ()

    def tracing(self) -> tuple[str, ...]:
        """Return the nodes whose operation is being traced. A body that runs to be traced again announces nothing, but
        is interpreted."""
        return self.announced[-1] if self.announced else self.running()

    def operation(self) -> Any:
        """Return the operation of a loop's body that is being interpreted, or None."""
        if self.local is None:
            return getattr(self.virtual.interpreter, "current_node", None)
        held = self.local.__dict__
        return getattr(held[self.key], "current_node", None) if self.key in held else None

    def announcing(self, name: str, body: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``body``, which announces ``name`` while it runs."""
        announced, names = self.announced, (name,)

        def announces(*args: Any, **kwargs: Any) -> Any:
            announced.append(names)
            try:
                return body(*args, **kwargs)
            finally:
                announced.pop()

        setattr(announces, KEY, name)
        return announces


TRACKER: Slot[Tracker] = Slot()


def begin(draft: Draft) -> None:
    """Start tracking the lines of one phase, if the running torch has the hooks for it."""
    if claims.LOOP_ORIGINS not in draft.recorder.lacking:
        TRACKER.put(draft, Tracker())


def end(draft: Draft) -> None:
    """Drop the tracker."""
    TRACKER.take(draft)


def resolve(draft: Draft, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Return the kernels with the origins of their lines; those that Inductor did not generate itself are
    unchanged."""
    tracker = TRACKER.of(draft)
    if claims.LOOPS in draft.recorder.lacking:
        # The loops were not asked what they compute: a store for a call bears the origin of the call.
        calls = {name for kernel in kernels if not kernel.source for name in kernel.origins[:1]}
        return tuple(_without_origins(kernel, calls if kernel.source else ()) for kernel in kernels)
    if tracker is None or claims.KERNEL_LINES in draft.recorder.lacking:
        return tuple(kernels)
    return tuple(_with_origins(tracker, kernel) if kernel.source else kernel for kernel in kernels)


def _without_origins(kernel: Kernel, calls: Collection[str]) -> Kernel:
    origins = tuple(name for name in kernel.origins if name not in calls)
    return dataclasses.replace(kernel, origins=origins, no_origin="" if origins else NOT_OBSERVED)


NOT_OBSERVED = "the loops that it runs were not observed"


def _with_origins(tracker: Tracker, kernel: Kernel) -> Kernel:
    lines = _lines(tracker, kernel)
    if not kernel.origins:
        # Of a loop that changes the layout of an input Inductor keeps no origin; its lines know it.
        origins = tuple(dict.fromkeys(name for line in lines for name in line.origins))
        kernel = dataclasses.replace(kernel, origins=origins, no_origin="" if origins else kernel.no_origin)
    return dataclasses.replace(kernel, lines=lines)


def _lines(tracker: Tracker, kernel: Kernel) -> tuple[LineOrigin, ...]:
    texts = kernel.source.splitlines()
    names = line_text.align(texts, tracker.texts, kernel.origins)
    if names is None:
        return ()
    reasons = line_text.reasons(kernel.language, texts, [bool(n) for n in names])
    return tuple(
        LineOrigin(number, (), reason) if reason else LineOrigin(number, tuple(origins or ()))
        for number, (reason, origins) in enumerate(zip(reasons, names, strict=True), 1)
        if reason is not None
    )


# Lowering: loops announce the node that made them.
@slot_hook(LOOPS_INIT, TRACKER, *ANNOUNCED)
def announce_loop(tracker: Tracker, real: Any, ir_node: Any, *args: Any, **kwargs: Any) -> Any:
    """Let the body of a new loop announce the node that is being lowered."""
    result = real(ir_node, *args, **kwargs)
    body = ir_node.inner_fn
    lowering = tracker.virtual.graph
    node = getattr(lowering, "current_node", None)
    if node is None:
        return result
    name = scheduler_nodes.prefix(lowering) + node.name
    if getattr(body, KEY, None) != name:
        object.__setattr__(ir_node, "inner_fn", tracker.announcing(name, body))
    several = getattr(ir_node, "inner_fns", None)  # scans and sorts of several values
    if several:
        object.__setattr__(ir_node, "inner_fns", tuple(tracker.announcing(name, f) for f in several))
    return result


@slot_hook(STORE_FUNCTION, TRACKER, *ANNOUNCED)
def store_function(tracker: Tracker, real: Any, buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """Announce the loop's node around the body of a buffer with its store, which is more than the loop's own body."""
    body = real(buffer, *args, **kwargs)
    name = getattr(getattr(buffer.data, "inner_fn", None), KEY, None)
    return body if name is None else tracker.announcing(name, body)


# Tracing: operations keep what is announced.
@slot_hook(CREATE_NODE, TRACKER, *ANNOUNCED)
def tag_operation(tracker: Tracker, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Tag a traced operation of a loop's body, and what computes its index."""
    node = real(*args, **kwargs)
    names = tracker.tracing()
    if names:
        node.meta[KEY] = names
    again = None if tracker.announced else tracker.operation()
    if again is not None and INDICES in again.meta:
        node.meta[INDICES] = again.meta[INDICES]
    elif tracker.indices and node.op == "call_method":
        node.meta[INDICES], tracker.indices = tracker.indices, {}
    return node


def _names_of(node: Any) -> tuple[str, ...]:
    """Return the names of an operation; one that a later pass added (a conversion) has those of its operand."""
    names: tuple[str, ...] | None = node.meta.get(KEY)
    if names is None:
        names = ()
        pending, seen = list(node.all_input_nodes), {node}
        while pending and not names:
            operand = pending.pop(0)
            if operand not in seen:
                seen.add(operand)
                names = operand.meta.get(KEY, ())
                pending += operand.all_input_nodes
        node.meta[KEY] = names
    return names


# Writing: lines keep the names of the operation in progress.
@factory_hook(WRITELINE, claims.KERNEL_LINES)
def tag_line(real: Any) -> Any:
    """Tag a line that is written; one copied from a buffer into another has its names already.

    A transformer has tens of thousands of lines: hence as few calls as possible.
    """

    def writeline(buffer: Any, line: Any, *args: Any, **kwargs: Any) -> Any:
        # A call that passes on what there is takes twice as long as one that names it.
        result = real(buffer, line, *args, **kwargs) if args or kwargs else real(buffer, line)
        stack = _local.stack  # as ``kept(TRACKER)``
        draft = stack[-1] if stack else None
        if draft is None or TRACKER not in draft.slots:
            return result
        try:
            tracker = draft.slots[TRACKER]
            kind = type(line)
            names = line.names if kind is Line else None if kind is str else _line_names(line)
            if names is None:
                if tracker.writing:
                    names = tracker.writing[-1]
                else:
                    held = tracker.local.__dict__ if tracker.local is not None else None
                    if held is not None and (
                        tracker.key not in held or type(held[tracker.key]) is tracker.idle
                    ):
                        return result  # most lines: those of the wrapper
                    operation = tracker.operation()
                    if operation is None:
                        return result
                    kept = operation.meta  # as ``_shared_names``, mostly without a call
                    names = kept[SHARED] if SHARED in kept else _shared_names(operation)
            lines = buffer._lines
            if names and lines:
                last = lines[-1]
                if type(last) is not str:
                    _tag_at(lines, -1, names)
                elif kind is Line and len(last) == len(line) > 0:  # it was copied as it stands
                    lines[-1] = line
                elif last and "gdc" not in last:  # as ``_keep`` does
                    lines[-1] = new_line = Line(last)
                    new_line.names = names
        except Exception as error:
            failed(WRITELINE, error)
        return result

    return writeline


def _shared_names(operation: Any) -> Names:
    """Return the names of an operation as its lines keep them: one dict for all of them."""
    names: Names | None = operation.meta.get(SHARED)
    if names is None:
        names = operation.meta[SHARED] = dict.fromkeys(_names_of(operation))
    return names


def _line_names(line: Any) -> Names | None:
    # A line that may yet be dropped holds its text.
    text = line if isinstance(line, str) else getattr(line, "line", None)
    return text.names if type(text) is Line else None


def _tag_at(lines: list[Any], position: int, names: Names) -> None:
    line = lines[position]
    if isinstance(line, str):
        # Triton's code generator filters its launch control by exact type.
        if line.strip() and "gdc" not in line:
            lines[position] = tagged_line(line, names)
    elif isinstance(getattr(line, "line", None), str):
        line.line = tagged_line(line.line, names)


@slot_hook("torch._inductor.codegen.common:CSE.generate", TRACKER, claims.KERNEL_LINES)
def tag_expression(
    tracker: Tracker, real: Any, cse: Any, buffer: Any, expr: Any, *args: Any, **kwargs: Any
) -> Any:
    """Tag the variable of an expression: a new one, with its line, or one that holds the same value already."""
    if tracker.writing:
        names = tracker.writing[-1]
    else:
        operation = tracker.operation()
        kept = {SHARED: {}} if operation is None else operation.meta
        names = kept[SHARED] if SHARED in kept else _shared_names(operation)
    if not names:
        return real(cse, buffer, expr, *args, **kwargs)
    fresh = dict(names)
    tracker.writing.append(fresh)  # as ``writes``, which costs more: this runs for every expression
    try:
        variable = real(cse, buffer, expr, *args, **kwargs)
    finally:
        tracker.writing.pop()
    if variable is not getattr(expr, "value", expr):
        known = getattr(variable, KEY, None)  # its ``__dict__`` would be one more object for each variable
        if known is None:
            setattr(variable, KEY, fresh)
        else:
            known.update(names)
    return variable


@slot_hook("torch._inductor.codegen.common:CSEProxy.reduction", TRACKER, claims.KERNEL_LINES)
def tag_reduction(
    tracker: Tracker, real: Any, proxy: Any, dtype: Any, src_dtype: Any, kind: Any, value: Any, *args: Any
) -> Any:
    """Tag a reduction. The same reduction of the same value is written once, however many nodes ask for it."""
    names = tracker.now()
    kernel = getattr(proxy, "kernel", None)
    if not names or kernel is None:
        return real(proxy, dtype, src_dtype, kind, value, *args)
    written = vars(kernel).setdefault(KEY, {})
    shared = written.setdefault((str(src_dtype), str(kind), str(value)), {})
    shared.update(names)
    with tracker.writes(shared):
        return real(proxy, dtype, src_dtype, kind, value, *args)


@slot_hook("torch._inductor.codegen.cpp:CppKernel._gen_reduction_prefix", TRACKER, claims.KERNEL_LINES)
def reduction_prefix(tracker: Tracker, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Tag the lines that prepare a reduction, which are written when the loops are known, long after the reduction."""
    write = real(*args, **kwargs)
    from torch._inductor.utils import IndentedBuffer

    names = tracker.now()

    def later(*args: Any, **kwargs: Any) -> Any:
        with tracker.writes(names):
            prefix = write(*args, **kwargs)
            if isinstance(prefix, str):
                text, prefix = prefix, IndentedBuffer()
                prefix.splice(text)
            return prefix

    return later


def _retag_rewritten(draft: Draft, real: Any, buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep the tags of lines in which C++ renames variables after they were written."""
    names = [_line_names(line) for line in buffer._lines]
    result = real(buffer, *args, **kwargs)
    if result is None:
        moved, first = buffer._lines, 0
    else:  # the lines stand in a loop of their own now, behind its header and brace
        moved = result._lines
        first = next((i for i, line in enumerate(moved) if str(line).strip() == "{"), 0) + 1
    for position, own in enumerate(names, first):
        if own and position < len(moved):
            _tag_at(moved, position, own)
    return result


for _name in ("replace_acc_name", "replace_cascade_sum_with_add", "move_code_under_inner_loop"):
    hook(f"torch._inductor.codegen.cpp:{_name}", claims.KERNEL_LINES)(_retag_rewritten)


# The text is put together: the names of its lines are kept beside it.
@slot_hook(GETVALUE, TRACKER, claims.KERNEL_LINES)
def keep_text(tracker: Tracker, real: Any, buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """Keep the names of the lines of a buffer that is turned into text."""
    result = real(buffer, *args, **kwargs)
    if len(buffer._lines) > 1 and _any_tagged(buffer._lines):
        tracker.texts.append([pair for line in buffer._lines for pair in _text(line)])
    return result


def _any_tagged(lines: list[Any]) -> bool:
    return any(_line_names(line) for line in lines if type(line) is not str)


def _text(line: Any) -> list[tuple[str, Names | None]]:
    if type(line) is str and "\n" not in line:
        bare = line.strip()
        return [(bare, None)] if bare else []
    text = line() if callable(line) else line
    if not isinstance(text, str):  # dropped, or a marker
        return []
    return [(part.strip(), _line_names(line)) for part in str(text).split("\n") if part.strip()]
