"""A capture sets up torch's rules for result types once, and again if a rule was added since."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._inductor import dtype_propagation, utils
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND

from compile_lens import capture, versions
from compile_lens._torch.ground import hooks
from compile_lens._torch.inductor import pipeline  # noqa: F401  # registers the hook

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

Rules = dtype_propagation.DtypePropagationOpsHandler


def told() -> dict[str, Any]:
    """The rules of the singleton, each as the function that it calls and its arguments."""
    return {
        name: (rule.func, rule.keywords)
        for name, rule in vars(Rules._instance).items()
        if isinstance(rule, functools.partial)
    }


@pytest.fixture
def looked() -> Iterator[Any]:
    """Runs the test as during a capture."""
    with hooks.in_place(), hooks.compiling(types.SimpleNamespace(kept={})):  # type: ignore[arg-type]
        yield


@pytest.mark.skipif(versions.torch_version() >= (2, 15), reason="this torch does so itself")
def test_a_capture_sets_them_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0
    real = Rules.__init__

    def counting(self: Any) -> None:
        nonlocal count
        count += 1
        real(self)

    monkeypatch.setattr(Rules, "__init__", counting)
    capture(lambda x: (x.sin() * 2 + x.cos()).exp(), torch.rand(16))
    assert count == 1


def test_they_are_those_that_torch_sets_up() -> None:
    capture(lambda x: (x.sin() * 2 + x.cos()).exp(), torch.rand(16))
    found = told()
    vars(Rules._instance).clear()
    if hasattr(Rules, "_rules_key"):
        Rules._rules_key = None
    Rules()
    assert len(found) > 90 and found == told()


def test_a_rule_that_came_since_is_there(looked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    Rules()
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND.ALWAYS_BOOL
    monkeypatch.setitem(utils.op_dtype_propagation_rules, "sin", utils.OpDtypeRule(kind, None))
    monkeypatch.setitem(utils.op_dtype_propagation_rules, "made_up", utils.OpDtypeRule(kind, None))
    handler = Rules()
    try:
        assert handler.made_up.keywords == handler.sin.keywords == {"type_promotion_kind": kind}
    finally:
        monkeypatch.undo()
        del handler.made_up
        assert Rules().sin.keywords != {"type_promotion_kind": kind}
