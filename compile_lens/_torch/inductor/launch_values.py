"""Values that each launch of a generated wrapper writes, with those of the graph before Inductor's passes.

A line added after the last launch that writes a buffer passes the buffer to the observer. Then the graph runs in its
own dtypes and in float64, only as far as that value needs, so that neither run stores more values than are still
needed.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.utils._python_dispatch import _disable_current_modes

from ...record import syntax
from ...record.kernel import Code
from ..graphs import cpu_execution
from ..graphs.graph_chain import CHAIN
from ..graphs.reference_run import NotRunError, ReferenceGraph, ReferenceRun, nodes_needed
from ..ground.recorder import Draft
from ..ground.storage import address

VALUES = "compile_lens_values"
"""Name of the observer in the text of a module."""

NO_FORWARD = "the call of the forward that it belongs to is not known"
OTHER_SHAPE = "its buffer has another shape or type"


@dataclasses.dataclass(frozen=True)
class Sample:
    """One value, compiled and eager, valid until its reader returns.

    Attributes:
        call: index of the call of the function.
        run: index of the run of this code.
        node: name in the graph before the passes; ``value`` is the node that computes the elements.
        again: recomputes the eager value, optionally with inputs changed by a function, and under a mode.
    """

    compile_id: str
    phase: str
    call: int
    run: int
    node: str
    value: str
    buffer: str
    line: int
    compiled: torch.Tensor
    eager: torch.Tensor
    wide: torch.Tensor
    again: Callable[..., torch.Tensor]


@dataclasses.dataclass
class ValueGraph:
    """The code of one phase, and its values.

    Attributes:
        nodes: node in the graph before the passes, for each buffer of the text.
        lines: line of the launch that first writes a buffer.
        inputs: names of the wrapper's arguments, in order.
        written: positions of the arguments that the wrapper writes.
        lowered: names of the nodes that remain after the passes.
        missing: reasons for values that were not compared, by node.
    """

    nodes: dict[str, str] = dataclasses.field(default_factory=dict)
    lines: dict[str, int] = dataclasses.field(default_factory=dict)
    inputs: list[str] = dataclasses.field(default_factory=list)
    written: frozenset[int] = frozenset()
    lowered: frozenset[str] = frozenset()
    missing: dict[str, str] = dataclasses.field(default_factory=dict)
    calls: int = 0


@dataclasses.dataclass
class OpenCall:
    """One run of a graph's code in a call of the function, with its reference runs and the addresses of its results."""

    inputs: dict[str, Any]
    own: ReferenceRun
    wide: ReferenceRun
    call: int = 0
    memory: set[int] = dataclasses.field(default_factory=set)


class LaunchValues:
    """The values of all graphs of a program, each passed to ``reader`` while the wrappers run.

    Code for an absent ``device`` runs on the CPU, as do its reference runs.

    Attributes:
        references: graphs before the passes, by compile id.
        graphs: code by compile id and phase.
    """

    def __init__(self, reader: Callable[[Sample], None], device: torch.device | None = None) -> None:
        self._device = device
        self.references: dict[str, ReferenceGraph] = {}
        self.graphs: dict[tuple[str, str], ValueGraph] = {}
        self._reader = reader
        self._calls: Callable[[], int] = lambda: 0
        self._open: dict[str, list[OpenCall]] = {}
        self._running: dict[tuple[str, str], OpenCall | None] = {}

    def trace(self, compile_id: str, gm: torch.fx.GraphModule) -> None:
        """Copy the graph before Inductor's passes."""
        self.references[compile_id] = ReferenceGraph(
            gm if self._device is None else cpu_execution.graph_on_cpu(gm, self._device)
        )

    def instrumented(self, text: str, code: Code, draft: Draft, lowering: Any) -> str:
        """Return the text of a module with a line after the last launch that writes each buffer."""
        graph = self.graphs[draft.id, code.phase] = ValueGraph()
        self._open.pop(draft.id, None)
        self._calls = lambda: len(draft.recorder.frames.calls)
        reference = self.references.get(draft.id)
        if reference is None:
            return text
        nodes, graph.lowered = _values_of_buffers(draft, lowering, reference)
        launch_lines = {line for kernel in code.kernels for line in kernel.launch_lines}
        points = _Points(text, nodes, launch_lines)
        graph.nodes = {buffer: nodes[buffer] for buffer in points.ends}
        graph.lines = points.writers
        graph.inputs = list(lowering.graph_input_names)
        names = getattr(lowering, "mutated_inputs", ())
        donated = getattr(lowering, "bw_donated_idxs", None) or ()
        graph.written = frozenset((*donated, *(i for i, n in enumerate(graph.inputs) if n in names)))
        return points.text(f"{draft.id} {code.phase}")

    def attach(self, module: Any, compile_id: str, phase: str) -> None:
        """Make a module built from instrumented text pass on its values."""
        graph = self.graphs[compile_id, phase]
        setattr(module, VALUES, self._observe)
        call = module.call

        @functools.wraps(call)
        def observed(args: list[Any]) -> Any:
            opened = None
            with contextlib.suppress(Exception):  # a comparison that fails must not affect the call
                opened = self._begin(compile_id, phase, graph, list(args))
            self._running[compile_id, phase] = opened
            try:
                result = call(args)
            finally:
                self._running.pop((compile_id, phase), None)
            if opened is not None and phase != "forward":
                opened.own.release()
                opened.wide.release()
            elif opened is not None and (compile_id, "backward") in self.graphs:
                opened.memory = _memory(result)
                self._open.setdefault(compile_id, []).append(opened)
            return result

        module.call = observed

    def _begin(self, compile_id: str, phase: str, graph: ValueGraph, args: list[Any]) -> OpenCall | None:
        graph.calls += 1
        reference = self.references.get(compile_id)
        if reference is None:
            return None
        arguments = {
            name: value.clone() if place in graph.written and isinstance(value, torch.Tensor) else value
            for place, (name, value) in enumerate(zip(graph.inputs, args))
        }
        if phase == "backward":
            return self._forward_of(compile_id, arguments, args)
        phases = [phase] if phase == "inference" else ["forward", "backward"]
        names = [
            n for p in phases if (compile_id, p) in self.graphs for n in self._compared_nodes(compile_id, p)
        ]
        wanted = nodes_needed(reference, names)
        opened = OpenCall(
            arguments,
            ReferenceRun(reference, wanted),
            ReferenceRun(reference, wanted.copy(), wide=True),
            max(self._calls() - 1, 0),
        )
        opened.own.give(arguments)
        opened.wide.give(arguments)
        return opened

    def _compared_nodes(self, compile_id: str, phase: str) -> list[str]:
        return list(self.graphs[compile_id, phase].nodes.values())

    def _forward_of(self, compile_id: str, arguments: dict[str, Any], args: list[Any]) -> OpenCall | None:
        """Return the forward's call whose results a backward takes, with the incoming gradients added; None if
        unclear."""
        memory = _memory(args)
        calls = self._open.get(compile_id, [])
        common = [len(memory & one.memory) for one in calls]
        best = [one for one, count in zip(calls, common) if count == max(common)]
        if len(best) != 1:
            return None
        tangents = {name: value for name, value in arguments.items() if name.startswith("tangents")}
        opened = best[0]
        opened.inputs |= tangents
        opened.own.give(tangents)
        opened.wide.give(tangents)
        return opened

    def _observe(self, graph_name: str, buffers: dict[str, Any]) -> None:
        with _disable_current_modes():  # AOTAutograd's own mode observes the operators of the first call
            self._read(graph_name, buffers)

    def _read(self, graph_name: str, buffers: dict[str, Any]) -> None:
        compile_id, _, phase = graph_name.rpartition(" ")
        graph, opened = self.graphs[compile_id, phase], self._running.get((compile_id, phase))
        reference = self.references[compile_id]
        for buffer, compiled in buffers.items():
            node = graph.nodes[buffer]
            value = reference.value_of(node)
            if opened is None:
                graph.missing[value] = NO_FORWARD
                continue
            try:
                self._compare(compile_id, phase, opened, buffer, compiled)
            except NotRunError as error:
                graph.missing[value] = str(error)
            except Exception as error:  # an observer must not affect the call
                graph.missing[value] = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"
        if opened is not None and phase == "forward":  # the remaining values are kept for the backward
            with contextlib.suppress(Exception):  # packing only saves memory
                opened.wide.pack(opened.own)

    def _compare(self, compile_id: str, phase: str, opened: OpenCall, buffer: str, compiled: Any) -> None:
        """Pass one value to the reader; it is freed before the next is computed."""
        graph, reference = self.graphs[compile_id, phase], self.references[compile_id]
        node = graph.nodes[buffer]
        value = reference.value_of(node)
        eager, wide = opened.own.take(node), opened.wide.take(node)
        if compiled.shape != eager.shape or compiled.dtype != eager.dtype:
            graph.missing[value] = OTHER_SHAPE
            return
        if wide.shape != eager.shape:
            raise NotRunError("its shape in float64 differs")
        self._reader(
            Sample(
                compile_id,
                phase,
                opened.call,
                graph.calls - 1,
                node,
                value,
                buffer,
                graph.lines.get(buffer, 0),
                compiled.detach(),
                eager,
                wide,
                functools.partial(_again, reference, dict(opened.inputs), node),
            )
        )


def _again(
    reference: ReferenceGraph,
    inputs: dict[str, Any],
    node: str,
    change: Callable[[list[torch.Tensor]], None] | None = None,
    mode: Any = None,
) -> torch.Tensor:
    run = ReferenceRun(reference, Counter({node: 1}))
    if change is not None:
        inputs = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in inputs.items()}
        change([v for v in inputs.values() if isinstance(v, torch.Tensor)])
    run.give(inputs)
    with mode or contextlib.nullcontext():
        value = run.take(node)
    assert isinstance(value, torch.Tensor)
    return value


def _memory(values: Any) -> set[int]:
    tensors = [v for v in values if isinstance(v, torch.Tensor)] if isinstance(values, (list, tuple)) else []
    return {address(t) for t in tensors if t.layout == torch.strided and t.numel()} - {0}


# Buffers and nodes ------------------------------------------------------------------------------------------------


def _values_of_buffers(
    draft: Draft, lowering: Any, reference: ReferenceGraph
) -> tuple[dict[str, str], frozenset[str]]:
    """Return the node before the passes with the value of each buffer, and all nodes that remain after the passes."""
    chain = CHAIN.of(draft)
    if chain is None or chain.current is None:
        return {}, frozenset()
    lowered = {node.name for node in lowering.module.graph.nodes}
    before = chain.joint or (chain.inference_trace.lineage if chain.inference_trace is not None else None)

    def original(node: torch.fx.Node) -> str:
        assert chain is not None and chain.current is not None
        name = chain.current.value_of(node, lowered)
        if name and name not in reference.nodes and before is not None:
            name = before.value_of_new(name, chain.current.names)
        return name if name in reference.nodes else ""

    remaining = frozenset(filter(None, (original(node) for node in lowering.module.graph.nodes)))
    nodes: dict[str, str] = {}
    taken: set[str] = set()
    for buffer in lowering.buffers:
        node = getattr(buffer, "origin_node", None)
        name = buffer.get_name()
        container = type(getattr(buffer, "layout", None)).__name__ == "MultiOutputLayout"
        if node is None or container or not _keeps_value(lowering, name, node):
            continue
        value = original(node)
        if value and value not in taken:
            taken.add(value)
            nodes[name] = value
    return nodes, remaining


def _keeps_value(lowering: Any, name: str, node: torch.fx.Node) -> bool:
    """Return True if the last write of a buffer computes its node."""
    if name not in getattr(lowering, "mutated_buffers", ()):
        return True
    writers = [op for op in lowering.operations if name in op.get_mutation_names()]
    return bool(writers) and node in getattr(writers[-1], "origins", ())


class _Points:
    """The places in a text at which buffers have their final values: after the last statement that can write them.

    Attributes:
        ends: the last line of that statement, by buffer.
        writers: line of the launch that first writes a buffer.
    """

    def __init__(self, text: str, nodes: dict[str, str], launch_lines: set[int]) -> None:
        self._text = text
        self.ends: dict[str, int] = {}
        self.writers: dict[str, int] = {}
        self._aliases: dict[str, str] = {}
        self._indents: dict[int, int] = {}
        self._alive: set[str] = set()
        try:
            tree = syntax.parse(text)
        except SyntaxError:  # the reader of the code reports it
            return
        calls = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "call"]
        for statement in _statements(calls[-1].body) if calls else ():
            self._visit(statement, launch_lines)
        self.ends = {name: line for name, line in self.ends.items() if name in nodes}

    def _visit(self, statement: ast.stmt, launch_lines: set[int]) -> None:
        if isinstance(statement, ast.Delete):
            self._alive -= {t.id for t in statement.targets if isinstance(t, ast.Name)}
            return
        end = statement.end_lineno or statement.lineno
        self._indents[end] = statement.col_offset
        names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
        names |= {alias for name in names if (alias := self._owner(name)) != name}
        launches = statement.lineno in launch_lines
        if isinstance(statement, ast.Assign) and isinstance(target := statement.targets[0], ast.Name):
            source = _source(statement.value)
            self._alive.add(target.id)
            self._aliases.pop(target.id, None)
            if isinstance(statement.value, ast.Subscript) and source:  # one result of several
                self.ends[target.id] = end
                self.writers[target.id] = self.writers.get(source, 0)
                return
            if source:
                self._aliases[target.id] = self._owner(source)
                return
            if not launches:
                return
        elif not isinstance(statement, ast.Expr):
            return
        for name in names & self._alive:
            self.ends[name] = end
            if launches:
                self.writers.setdefault(name, statement.lineno)

    def _owner(self, name: str) -> str:
        return self._aliases.get(name, name)

    def text(self, graph: str) -> str:
        """Return the text with an added line at each place."""
        at: dict[int, list[str]] = {}
        for name, end in self.ends.items():
            at.setdefault(end, []).append(name)
        lines: list[str] = []
        for number, line in enumerate(self._text.split("\n"), 1):
            lines.append(line)
            if number in at:
                values = ", ".join(f"{name!r}: {name}" for name in at[number])
                lines.append(f"{' ' * self._indents[number]}{VALUES}({graph!r}, {{{values}}})")
        return "\n".join(lines)


def _statements(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that run once per call, in order."""
    flat: list[ast.stmt] = []
    for statement in body:
        flat += _statements(statement.body) if isinstance(statement, ast.With) else [statement]
    return flat


def _source(value: ast.expr) -> str:
    """Return the buffer of which an expression is an element or a view; ``""`` for any other value."""
    if isinstance(value, ast.Subscript):
        value = value.value
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "reinterpret_tensor" and value.args:
        value = value.args[0]
    return value.id if isinstance(value, ast.Name) else ""
