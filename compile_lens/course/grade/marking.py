"""Marks one exercise of one student: the main loop of a student's own process, which the grader starts."""

from __future__ import annotations

import ast
import importlib
import json
import linecache
import os
import sys
import types
from typing import Any

from ...child import fork, limits, process, worker
from ...engine.entry import FIRST
from ...views.words.characters import flat
from .. import checking, wording
from ..checking import MAX_CHARACTERS
from ..lessons import exercise
from ..wording import message
from . import figures, submission

RIGHT, WRONG, EMPTY, MISSING, RAISED, ALTERED = "right", "wrong", "empty", "missing", "raised", "altered"
"""Outcomes of an exercise that this process reports."""

CONTENT = "the submitted notebook"
"""Name of the file that a student's code is said to be in."""

Functions = dict[tuple[str, str], tuple[Any, Any]]


def main(replies: int) -> None:
    """Answer the grader's requests, each about one exercise, until it closes the pipe."""
    worker.serve(replies, _answer, _prepare)


def _prepare() -> None:
    limits.limit_memory(int(os.environ.pop("COMPILE_LENS_GRADE_MEMORY")))
    if os.environ.pop("COMPILE_LENS_GRADE_FORK", ""):
        # Captures for another device need a process that has run nothing: there is one now, and not later.
        process.ready(FIRST, fork.start)
    for name in ("torch", "compile_lens", "compile_lens.api.capture"):
        importlib.import_module(name)


def _answer(data: bytes, _report: worker.Report) -> dict[str, Any]:
    request = json.loads(data)
    if not request:  # the first: this process is ready
        return {}
    wording.language(request["language"])
    sys.path[:0] = [request["folder"]] if request["folder"] not in sys.path else []
    before = _functions()
    numbers: tuple[float | None, ...] = ()
    try:
        if request.get("measured"):
            outcome, reasons, numbers = _measured(request["text"], request["key"])
        else:
            outcome, reasons = _marked(request["text"], request["key"])
    except submission.Unreadable as error:
        outcome, reasons = MISSING, [str(error)]
    except (
        BaseException
    ) as error:  # also SystemExit: the request is answered, whatever the student's code does
        outcome, reasons = RAISED, [message("raised", error=_line(error))]
    if changed := _changed(before):
        outcome, reasons, numbers = ALTERED, [message("altered", name=changed)], ()
    return {"outcome": outcome, "reasons": [flat(reason) for reason in reasons], "figures": numbers}


def _marked(text: str, key: str) -> tuple[str, list[str]]:
    tried, reasons = checking.judged(exercise(key), _function(text, key))
    return (RIGHT if not reasons else WRONG if tried else EMPTY), list(reasons)


def _measured(text: str, key: str) -> tuple[str, list[str], tuple[float | None, ...]]:
    numbers, reasons = figures.measured(exercise(key), _function(text, key))
    return (RIGHT if numbers else WRONG), reasons, numbers


def _function(text: str, key: str) -> Any:
    """Run the statements that the function needs, in a module of their own, and return it. Raises ``Unreadable`` if the
    notebook gives none."""
    book = submission.read(text)
    if not book.checks(key):
        raise submission.Unreadable(book.damage(key) or message("no check", key=key))
    statements, given = book.function(key)
    tree = ast.Module([one.node for one in statements], [])
    run = ast.unparse(tree)
    linecache.cache[CONTENT] = (len(run), None, run.splitlines(keepends=True), CONTENT)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(run, CONTENT, "exec"), vars(module))
    return eval(compile(ast.Expression(given), CONTENT, "eval"), vars(module))


def _functions() -> Functions:
    """Return this package's functions, with their code: what a mark is made by."""
    modules = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == __name__.partition(".")[0]}
    return {
        (name, key): (value, value.__code__)
        for name, module in modules.items()
        for key, value in list(vars(module).items())
        if isinstance(value, types.FunctionType)
    }


def _changed(before: Functions) -> str:
    """Return a function of this package that the student's code replaced; ``""`` if there is none."""
    now = {name: vars(module) for name, module in sys.modules.items() if hasattr(module, "__dict__")}
    for (name, key), (value, code) in before.items():
        if now.get(name, {}).get(key) is not value or getattr(value, "__code__", None) is not code:
            return f"{name}.{key}"
    return ""


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_CHARACTERS]
