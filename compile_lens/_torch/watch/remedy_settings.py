"""Torch's settings for a program that runs in a process of its own."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import os
from collections.abc import Iterable
from typing import Any

import torch
import torch._dynamo
from torch._dynamo import config, eval_frame

from ...record import syntax
from ...record.missing import Missing
from ...record.remedies import (
    DYNAMIC,
    FLAGS,
    ISOLATE,
    LIMIT,
    MARK_DYNAMIC,
    NEVER_IN_FORCE,
    REORDER_LOGGING,
    SETTING,
    TOTAL_LIMIT,
    DimensionMark,
    Remedy,
)
from .observers import hidden_from_dynamo

_STATIC = "assume_static_by_default"
"""Setting that ``torch.compile(dynamic=True)`` turns off while it compiles."""


class RemedySettings:
    """Remedies set in this process, with the number of frame evaluations in which each was in force."""

    def __init__(self, remedies: Iterable[Remedy]) -> None:
        self._remedies = tuple(remedies)
        self._evaluations = 0
        self._effective: dict[str, int] = {}
        self._expected: dict[str, tuple[str, Any]] = {}
        self._unavailable: dict[str, str] = {}
        self._marks = [mark for remedy in self._remedies for mark in remedy.marks]

    def apply(self) -> None:
        """Apply the remedies; nothing is restored, since the process ends with the program."""
        for remedy in self._remedies:
            kind = remedy.kind
            if kind == DYNAMIC:
                self._set(kind, _STATIC, False)
            elif kind in FLAGS:
                self._set(kind, kind, True)
            elif kind in (LIMIT, TOTAL_LIMIT):
                self._set(kind, kind, remedy.value)
            elif kind == REORDER_LOGGING:
                functions = {_named(name) for name in remedy.functions}
                self._set(kind, kind, set(getattr(config, kind, ())) | functions)
            elif kind == ISOLATE:
                self._isolate()
        _applied.append(self)

    def _set(self, kind: str, name: str, value: Any) -> None:
        if not hasattr(config, name):
            self._unavailable[kind] = f"{NEVER_IN_FORCE}: this torch has no torch._dynamo.config.{name}"
            return
        setattr(config, name, value)
        self._expected[kind] = (name, value)

    def _isolate(self) -> None:
        real = eval_frame.OptimizeContext.__init__
        if ISOLATE not in inspect.signature(real).parameters:
            self._unavailable[ISOLATE] = f"{NEVER_IN_FORCE}: this torch has no isolate_recompiles"
            return

        @functools.wraps(real)
        def isolated(*args: Any, **kwargs: Any) -> None:
            self._count(ISOLATE)
            real(*args, **{**kwargs, ISOLATE: True})

        eval_frame.OptimizeContext.__init__ = isolated

    def _count(self, kind: str) -> None:
        self._effective[kind] = self._effective.get(kind, 0) + 1

    def evaluate(self, frame: Any) -> None:
        """Mark the frame's arguments as dynamic, and count the settings in force."""
        self._evaluations += 1
        for kind, (name, value) in self._expected.items():
            current = getattr(config, name)
            if value <= current if isinstance(value, set) else value == current:
                self._count(kind)
        for mark in self._marks:
            if _mark(mark, frame):
                self._count(MARK_DYNAMIC)

    def missing(self) -> tuple[Missing, ...]:
        """Return the settings that were not in force in every evaluation, each with the reason."""
        lost = []
        for remedy in self._remedies:
            kind = remedy.kind
            count = self._effective.get(kind, 0)
            reason = self._unavailable.get(kind, "")
            if not reason and kind in (MARK_DYNAMIC, ISOLATE):
                never = {
                    MARK_DYNAMIC: f"{NEVER_IN_FORCE}: no call had the tensor, or it could not be marked",
                    ISOLATE: f"{NEVER_IN_FORCE}: torch.compile was called before it could be set",
                }
                reason = "" if count else never[kind]
            elif not reason and count < self._evaluations:
                often = f"in force in {count} of {self._evaluations} frame evaluations" if count else (
                    NEVER_IN_FORCE
                )  # fmt: skip
                reason = f"{often}: the program sets it itself, or compiles in a thread of its own"
            if reason:
                lost.append(Missing(f"{SETTING}{kind}", reason))
        return tuple(lost)


_applied: list[RemedySettings] = []


@hidden_from_dynamo
def on_evaluation(frame: Any) -> None:
    """Apply all remedies to a frame before Dynamo evaluates it."""
    for settings in _applied:
        settings.evaluate(frame)


def _mark(mark: DimensionMark, frame: Any) -> bool:
    code = frame.f_code
    name = os.path.basename(mark.file)
    if (code.co_name, code.co_firstlineno) != (mark.function.rpartition(".")[2], mark.line):
        return False
    if name != os.path.basename(code.co_filename) and name.endswith(".py"):
        return False
    try:
        tensor = _value(syntax.parse(mark.tensor, mode="eval").body, frame.f_locals)
        torch._dynamo.mark_dynamic(tensor, mark.dim)
    except Exception:  # there is no such value, or torch cannot mark it
        return False
    return True


def _value(node: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of a name, attribute or item. Raises if there is none or the expression is another."""
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Attribute):
        return getattr(_value(node.value, names), node.attr)
    if isinstance(node, ast.Subscript):
        return _value(node.value, names)[ast.literal_eval(node.slice)]
    raise ValueError(f"{ast.unparse(node)} is not a name")


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module or "builtins"), name)
