"""The main loop of a student's process, which marks one exercise per request of the grader."""

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
"""Outcomes that a student's process reports for an exercise."""

SUBMISSION_FILE = "the submitted notebook"
"""File name under which a student's code is compiled."""

Functions = dict[tuple[str, str], tuple[Any, Any]]


def main(replies: int) -> None:
    """Answer the grader's requests, each about one exercise, until it closes the pipe."""
    worker.serve(replies, _answer, _prepare)


def _prepare() -> None:
    limits.limit_memory(int(os.environ.pop("COMPILE_LENS_GRADE_MEMORY")))
    if os.environ.pop("COMPILE_LENS_GRADE_FORK", ""):
        # Captures for another device need a process that has run nothing yet, so prepare it before any student code.
        process.ready(FIRST, fork.start)
    for name in ("torch", "compile_lens", "compile_lens.api.capture"):
        importlib.import_module(name)


def _answer(data: bytes, _report: worker.Report) -> dict[str, Any]:
    request = json.loads(data)
    if not request:  # the first request, which only waits until this process is ready
        return {}
    wording.language(request["language"])
    sys.path[:0] = [request["folder"]] if request["folder"] not in sys.path else []
    before = _functions()
    numbers: tuple[float | None, ...] = ()
    try:
        if request.get("measured"):
            outcome, reasons, numbers = _measure(request["text"], request["key"])
        else:
            outcome, reasons = _judge(request["text"], request["key"])
    except submission.Unreadable as error:
        outcome, reasons = MISSING, [str(error)]
    except BaseException as error:  # SystemExit as well, so that every request is answered
        outcome, reasons = RAISED, [message("raised", error=_error_line(error))]
    if changed := _changed(before):
        outcome, reasons, numbers = ALTERED, [message("altered", name=changed)], ()
    return {"outcome": outcome, "reasons": [flat(reason) for reason in reasons], "figures": numbers}


def _judge(text: str, key: str) -> tuple[str, list[str]]:
    tried, reasons = checking.judged(exercise(key), _function(text, key))
    return (RIGHT if not reasons else WRONG if tried else EMPTY), list(reasons)


def _measure(text: str, key: str) -> tuple[str, list[str], tuple[float | None, ...]]:
    numbers, reasons = figures.measured(exercise(key), _function(text, key))
    return (RIGHT if numbers else WRONG), reasons, numbers


def _function(text: str, key: str) -> Any:
    """Run the statements that an exercise's function needs in a new ``__main__`` module, and return the function.
    Raises ``Unreadable`` if the notebook checks none."""
    book = submission.read(text)
    if not book.checks(key):
        raise submission.Unreadable(book.damage(key) or message("no check", key=key))
    statements, given = book.function(key)
    tree = ast.Module([one.node for one in statements], [])
    run = ast.unparse(tree)
    linecache.cache[SUBMISSION_FILE] = (len(run), None, run.splitlines(keepends=True), SUBMISSION_FILE)
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(run, SUBMISSION_FILE, "exec"), vars(module))
    return eval(compile(ast.Expression(given), SUBMISSION_FILE, "eval"), vars(module))


def _functions() -> Functions:
    """Return this package's functions with their code objects, to detect later that one was replaced."""
    modules = {n: m for n, m in sys.modules.items() if n.partition(".")[0] == __name__.partition(".")[0]}
    return {
        (name, key): (value, value.__code__)
        for name, module in modules.items()
        for key, value in list(vars(module).items())
        if isinstance(value, types.FunctionType)
    }


def _changed(before: Functions) -> str:
    """Return the name of a function of this package that the student's code replaced; ``""`` if there is none."""
    now = {name: vars(module) for name, module in sys.modules.items() if hasattr(module, "__dict__")}
    for (name, key), (value, code) in before.items():
        if now.get(name, {}).get(key) is not value or getattr(value, "__code__", None) is not code:
            return f"{name}.{key}"
    return ""


def _error_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:MAX_CHARACTERS]
