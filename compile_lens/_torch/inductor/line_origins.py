"""Origins of the lines in a kernel: the node of ``"<phase>.post_grad"`` for which each line was generated.

Origins are tracked during the compile, not parsed from the text. When a node is lowered, the bodies of its loops are
wrapped to announce its name when they run; when a body is traced, each operation stores the announced name; during
codegen, each line is tagged with the names of the current operation, and keeps them through indentation, wrapping and
reordering until the kernel's text is assembled. So a load belongs to the node that reads the value, a store to the node
whose value is stored, and the lines that initialise, accumulate and combine a reduction to the reduction. A line shared
by several nodes, because common subexpressions are eliminated, has all of them, in order.
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
"""The claims that rest on the names stored with the operations of a loop's body."""

KEY = "compile_lens_lines"
"""Attribute, and key of ``meta``, with names of nodes on objects of one compile."""

INDICES = "compile_lens_lines of its index"
"""Key of an operation's ``meta`` with the names of the nodes that compute its index."""

SHARED = "compile_lens_lines of its lines"
"""Key of an operation's ``meta`` with the names that its lines share."""

Names = dict[str, None]
"""Node names in order. All copies of a line share one object, so that a later user of the line is added to all."""


_WHOLE = slice(0, None)


class Line(str):
    """A line of code with the nodes for which it was generated."""

    __slots__ = ("names",)
    names: Names

    def __getitem__(self, index: Any) -> Line:
        if index == _WHOLE:  # a buffer is copied into another, without a common indentation
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
    """Announced names, traced operations and generated lines of one phase, during its compile."""

    def __init__(self) -> None:
        from torch._inductor import virtualized

        self.virtual = virtualized.V
        # Read for every generated line, so directly from the thread-local storage of V, without V's own calls.
        self.key = getattr(getattr(virtualized, "_interpreter", None), "_key", "")
        local = getattr(virtualized, "threadlocal", None)
        self.local: Any = local if self.key and hasattr(local, "__dict__") else None
        self.idle = getattr(virtualized, "NullHandler", None)  # V's value while nothing is interpreted
        self.announced: list[tuple[str, ...]] = []
        self.symbolic: Names = {}  # nodes whose constants or index expressions were traced
        self.indices: Names = {}  # nodes whose values became the index of the next operation
        self.writing: list[Names] = []
        self.texts: list[list[tuple[str, Names | None]]] = []

    @contextlib.contextmanager
    def writes(self, names: Names) -> Iterator[None]:
        """Tag every line generated in this block with ``names``."""
        self.writing.append(names)
        try:
            yield
        finally:
            self.writing.pop()

    def now(self) -> Names:
        """Return the nodes for which lines are currently generated."""
        return self.writing[-1] if self.writing else dict.fromkeys(self.running())

    def running(self) -> tuple[str, ...]:
        """Return the nodes of the operation being interpreted."""
        node = self.operation()
        return _names_of(node) if node is not None else ()

    def tracing(self) -> tuple[str, ...]:
        """Return the nodes whose operation is being traced. A body that is traced again announces nothing, but is
        interpreted."""
        return self.announced[-1] if self.announced else self.running()

    def operation(self) -> Any:
        """Return the operation of a loop's body being interpreted, or None."""
        if self.local is None:
            return getattr(self.virtual.interpreter, "current_node", None)
        thread_values = self.local.__dict__
        return getattr(thread_values[self.key], "current_node", None) if self.key in thread_values else None

    def announcing(self, name: str, body: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``body`` wrapped so that it announces ``name`` while it runs."""
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
    """Start tracking the lines of one phase, if this torch has the hooks."""
    if claims.LOOP_ORIGINS not in draft.recorder.lacking:
        TRACKER.put(draft, Tracker())


def end(draft: Draft) -> None:
    """Drop the tracker."""
    TRACKER.take(draft)


def resolve(draft: Draft, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Return the kernels with the origins of their lines; kernels without generated source are unchanged."""
    tracker = TRACKER.of(draft)
    if claims.LOOPS in draft.recorder.lacking:
        # The loops were not observed, so a store for a call's argument has the origin of the call.
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
        # Inductor has no origin for a loop that changes the layout of an input, but its lines do.
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


# Lowering: loops announce the node for which they were created.
@slot_hook(LOOPS_INIT, TRACKER, *ANNOUNCED)
def announce_loop(tracker: Tracker, real: Any, ir_node: Any, *args: Any, **kwargs: Any) -> Any:
    """Make the body of a new loop announce the node being lowered."""
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
    """Announce the loop's node around the body with the store, which is larger than the loop's own body."""
    body = real(buffer, *args, **kwargs)
    name = getattr(getattr(buffer.data, "inner_fn", None), KEY, None)
    return body if name is None else tracker.announcing(name, body)


# Tracing: operations store the announced names.
@slot_hook(CREATE_NODE, TRACKER, *ANNOUNCED)
def tag_operation(tracker: Tracker, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Tag a traced operation of a loop's body with its nodes and those that compute its index."""
    node = real(*args, **kwargs)
    names = tracker.tracing()
    if names:
        node.meta[KEY] = names
    interpreted = None if tracker.announced else tracker.operation()
    if interpreted is not None and INDICES in interpreted.meta:
        node.meta[INDICES] = interpreted.meta[INDICES]
    elif tracker.indices and node.op == "call_method":
        node.meta[INDICES], tracker.indices = tracker.indices, {}
    return node


def _names_of(node: Any) -> tuple[str, ...]:
    """Return the names of an operation; one added by a later pass (a conversion) has those of its operand."""
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


# Codegen: lines are tagged with the names of the current operation.
@factory_hook(WRITELINE, claims.KERNEL_LINES)
def tag_line(real: Any) -> Any:
    """Tag a line as it is written; a line copied from another buffer already has its names.

    A transformer has tens of thousands of lines, so calls are avoided.
    """

    def writeline(buffer: Any, line: Any, *args: Any, **kwargs: Any) -> Any:
        # Passing *args takes twice as long as naming the arguments.
        result = real(buffer, line, *args, **kwargs) if args or kwargs else real(buffer, line)
        stack = _local.stack  # as ``in_slot(TRACKER)``
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
                    thread_values = tracker.local.__dict__ if tracker.local is not None else None
                    if thread_values is not None and (
                        tracker.key not in thread_values or type(thread_values[tracker.key]) is tracker.idle
                    ):
                        return result  # most lines, namely those of the wrapper
                    operation = tracker.operation()
                    if operation is None:
                        return result
                    meta = operation.meta  # as ``_shared_names``, mostly without a call
                    names = meta[SHARED] if SHARED in meta else _shared_names(operation)
            lines = buffer._lines
            if names and lines:
                last = lines[-1]
                if type(last) is not str:
                    _tag_at(lines, -1, names)
                elif kind is Line and len(last) == len(line) > 0:  # it was copied unchanged
                    lines[-1] = line
                elif last and "gdc" not in last:  # as ``_keep`` does
                    lines[-1] = new_line = Line(last)
                    new_line.names = names
        except Exception as error:
            failed(WRITELINE, error)
        return result

    return writeline


def _shared_names(operation: Any) -> Names:
    """Return the names of an operation as one dict that all its lines share."""
    names: Names | None = operation.meta.get(SHARED)
    if names is None:
        names = operation.meta[SHARED] = dict.fromkeys(_names_of(operation))
    return names


def _line_names(line: Any) -> Names | None:
    # A deferred line, which may be dropped later, has its text in ``line``.
    text = line if isinstance(line, str) else getattr(line, "line", None)
    return text.names if type(text) is Line else None


def _tag_at(lines: list[Any], position: int, names: Names) -> None:
    line = lines[position]
    if isinstance(line, str):
        # Inductor's Triton codegen filters lines of launch control (gdc) by their exact type.
        if line.strip() and "gdc" not in line:
            lines[position] = tagged_line(line, names)
    elif isinstance(getattr(line, "line", None), str):
        line.line = tagged_line(line.line, names)


@slot_hook("torch._inductor.codegen.common:CSE.generate", TRACKER, claims.KERNEL_LINES)
def tag_expression(
    tracker: Tracker, real: Any, cse: Any, buffer: Any, expr: Any, *args: Any, **kwargs: Any
) -> Any:
    """Tag the variable of an expression: a new one with its line, or an existing one with the same value."""
    if tracker.writing:
        names = tracker.writing[-1]
    else:
        operation = tracker.operation()
        meta = {SHARED: {}} if operation is None else operation.meta
        names = meta[SHARED] if SHARED in meta else _shared_names(operation)
    if not names:
        return real(cse, buffer, expr, *args, **kwargs)
    fresh = dict(names)
    tracker.writing.append(fresh)  # as ``writes``, inlined since it runs for every expression
    try:
        variable = real(cse, buffer, expr, *args, **kwargs)
    finally:
        tracker.writing.pop()
    if variable is not getattr(expr, "value", expr):
        known = getattr(variable, KEY, None)  # reading ``__dict__`` would create one more object per variable
        if known is None:
            setattr(variable, KEY, fresh)
        else:
            known.update(names)
    return variable


@slot_hook("torch._inductor.codegen.common:CSEProxy.reduction", TRACKER, claims.KERNEL_LINES)
def tag_reduction(
    tracker: Tracker, real: Any, proxy: Any, dtype: Any, src_dtype: Any, kind: Any, value: Any, *args: Any
) -> Any:
    """Tag a reduction; the same reduction of the same value is generated once for all nodes that use it."""
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
    """Tag the lines that initialise a reduction, which are generated long after it, once the loops are known."""
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
    """Keep the tags of lines in which the C++ backend renames variables after writing them."""
    names = [_line_names(line) for line in buffer._lines]
    result = real(buffer, *args, **kwargs)
    if result is None:
        moved, first = buffer._lines, 0
    else:  # the lines are in a loop now, after its header and brace
        moved = result._lines
        first = next((i for i, line in enumerate(moved) if str(line).strip() == "{"), 0) + 1
    for position, own in enumerate(names, first):
        if own and position < len(moved):
            _tag_at(moved, position, own)
    return result


for _name in ("replace_acc_name", "replace_cascade_sum_with_add", "move_code_under_inner_loop"):
    hook(f"torch._inductor.codegen.cpp:{_name}", claims.KERNEL_LINES)(_retag_rewritten)


# The text is assembled: the names of its lines are recorded with it.
@slot_hook(GETVALUE, TRACKER, claims.KERNEL_LINES)
def keep_text(tracker: Tracker, real: Any, buffer: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the names of a buffer's lines when it is joined to a text."""
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
