"""Times of each launch of a generated wrapper, measured by lines added around it."""

from __future__ import annotations

import ast
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch.fx

from ...record import syntax
from ...record.kernel import Code
from ..ground.recorder import Draft

BEGIN, NOTE, CLOCK = "compile_lens_begin", "compile_lens_note", "compile_lens_clock"
"""Names that the instrumented module uses."""

EMPTY_MEASUREMENTS = 2_000
"""Number of empty measurements from which the cost of the clock is computed."""


@dataclasses.dataclass
class GraphTimes:
    """Times of one graph, in seconds.

    Attributes:
        calls: time of each call of the wrapper.
        launches: times of each launch, by its line in the module.
        lines: the lines that are timed.
    """

    calls: list[float] = dataclasses.field(default_factory=list)
    launches: dict[int, list[float]] = dataclasses.field(default_factory=dict)
    lines: frozenset[int] = frozenset()


class LaunchTimes:
    """The times of all graphs of a program, whose wrappers are instrumented.

    Attributes:
        graphs: times by compile id and phase.
        cost: seconds that the clock adds to each launch, which are
            subtracted.
    """

    def __init__(self) -> None:
        self.graphs: dict[tuple[str, str], GraphTimes] = {}
        self.cost = _cost()

    def trace(self, compile_id: str, gm: torch.fx.GraphModule) -> None:
        """Do nothing: times need no graph."""

    def instrumented(self, text: str, code: Code, draft: Draft, lowering: Any) -> str:
        """Return the text of a module with a clock around each launch of ``code``."""
        compile_id = draft.id
        ends = _ends(text)
        lines = {line for kernel in code.kernels for line in kernel.launch_lines if line in ends}
        self.graphs[compile_id, code.phase] = GraphTimes(lines=frozenset(lines))
        graph = f"{compile_id} {code.phase}"
        timed_text: list[str] = []
        closing: dict[int, str] = {}
        for number, line in enumerate(text.split("\n"), 1):
            indent = line[: len(line) - len(line.lstrip())]
            if number in lines:
                timed_text.append(f"{indent}{BEGIN} = {CLOCK}()")
                closing[ends[number]] = f"{indent}{NOTE}({graph!r}, {number}, {BEGIN})"
            timed_text.append(line)
            if number in closing:
                timed_text.append(closing.pop(number))
        return "\n".join(timed_text)

    def attach(self, module: Any, compile_id: str, phase: str) -> None:
        """Set the clock in a module built from instrumented text, and time its calls."""
        graph = self.graphs[compile_id, phase]
        setattr(module, CLOCK, time.perf_counter)
        setattr(module, NOTE, self._note)
        module.call = _timed_call(module.call, graph.calls)

    def reset(self) -> None:
        """Discard all times."""
        for graph in self.graphs.values():
            graph.calls.clear()
            graph.launches.clear()

    def _note(self, graph: str, line: int, begin: float) -> None:
        seconds = time.perf_counter() - begin
        compile_id, _, phase = graph.rpartition(" ")
        launches = self.graphs[compile_id, phase].launches
        launches.setdefault(line, []).append(max(seconds - self.cost, 0.0))


def _timed_call(call: Callable[[list[Any]], Any], seconds: list[float]) -> Callable[[list[Any]], Any]:
    @functools.wraps(call)
    def timed(args: list[Any]) -> Any:
        begin = time.perf_counter()
        try:
            return call(args)
        finally:
            seconds.append(time.perf_counter() - begin)

    return timed


def _ends(text: str) -> dict[int, int]:
    """Return the last line of each simple statement in a function, by its first line."""
    try:
        tree = syntax.parse(text)
    except SyntaxError:  # the reader of the code reports it
        return {}
    inside = [
        node
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign))
    ]
    return {node.lineno: node.end_lineno or node.lineno for node in inside}


def _cost() -> float:
    """Return the seconds that the clock measures around nothing."""
    seconds = []
    for _ in range(EMPTY_MEASUREMENTS):
        begin = time.perf_counter()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)
