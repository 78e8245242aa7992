"""Errors planted in Inductor's compiled code, without this project's code: the wrapper's ``call`` is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch


def plant(monkeypatch: pytest.MonkeyPatch, change: Callable[[Any, list[Any]], Any]) -> list[int]:
    """Replace what every generated module returns by ``change(outputs, inputs)``; return a list that counts its calls.

    ``inputs`` are those of the module, and ``change`` may write to them.
    """
    from torch._inductor.graph import GraphLowering

    real = GraphLowering._compile_to_module_lines
    ran: list[int] = []

    def wrong(lowering: Any, *args: Any, **kwargs: Any) -> Any:
        module = real(lowering, *args, **kwargs)
        right = module.call

        def call(inputs: list[Any]) -> Any:
            held = list(inputs)
            outputs = right(inputs)
            ran.append(1)
            return change(outputs, held)

        module.call = call
        return module

    monkeypatch.setattr(GraphLowering, "_compile_to_module_lines", wrong)
    return ran


def off_by_a_little(outputs: Any, inputs: list[Any]) -> Any:
    """Make every returned tensor too large by one hundredth."""
    return tuple(x + 0.01 if isinstance(x, torch.Tensor) and x.is_floating_point() else x for x in outputs)
