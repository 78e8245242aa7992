"""A program captured for two targets, as the columns of a comparison."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ..._torch.operators import support
from ...devices import models
from ...measures.compare.table import across
from ...record.comparison import Column
from ...results.capture import Capture
from ...results.comparison import Comparison
from .faults import error_data
from .settings import Settings

HERE = "this machine"
"""Name of the column without a target."""


def comparison_of(
    settings: Settings, capture: Callable[[Settings], Capture], file: str = ""
) -> tuple[Comparison | None, dict[str, Any] | None]:
    """Return the comparison of a program's two targets (None if neither was captured) and the error (None if there is
    none).

    Args:
        capture: function that captures the program with the given settings.
        file: file name of the program, for lines of errors.
    """
    columns: list[Column] = []
    faults: dict[str, dict[str, Any]] = {}
    for target in (settings.target, settings.beside):
        name = target or HERE
        try:
            captured = capture(dataclasses.replace(settings, target=target, beside=""))
        except Exception as error:  # even one of the program: the other target may not run that line
            faults[name] = fault = error_data(error, file)
            columns.append(Column(name, getattr(error, "capture", None), _words(fault)))
        else:
            columns.append(Column(name, captured, "", support.features(_device(target, captured))))
    there = [column.capture for column in columns if column.capture is not None and not column.failure]
    comparison = across(there[0].function, columns, Comparison) if there else None
    return comparison, _joined(faults) if faults else None


def _device(target: str, capture: Capture) -> str:
    return models.resolve(target).device if target else capture.environment.device


def _words(fault: dict[str, Any]) -> str:
    place = f"line {fault['line']}" if fault["line"] else ""
    return ": ".join(filter(None, (place, fault["type"], fault["message"])))


def _joined(faults: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a single error for both targets; it names them unless both failed in the same way."""
    first, *others = faults.values()
    if first in others:
        return first
    if not others:
        (name,) = faults
        return {**first, "message": f"{name}: {first['message']}"}
    return {
        **first,
        "type": "",
        "message": "\n".join(f"{name}: {_words(one)}" for name, one in faults.items()),
    }
