"""Registrations of a program with torch include its own functions, and none that Dynamo registers for itself."""

from __future__ import annotations

import functools

import pytest
import torch
import torch._dynamo.polyfills.loader  # registers Dynamo's own functions
from torch._dynamo.variables.functions import PolyfilledFunctionVariable

from compile_lens._torch.operators import registrations

pytestmark = pytest.mark.torch


def test_only_the_program_s_substitutes_are_its_registrations() -> None:
    handlers = PolyfilledFunctionVariable._get_polyfill_handlers()
    assert functools.reduce in handlers, "one of Dynamo's own"
    before = {one.where for one in registrations.collect({}) if one.kind == "substitute"}
    assert not any("functools" in where or "itertools" in where for where in before)

    def original(x: int) -> int:
        return x

    @torch.compiler.substitute_in_graph(original)
    def substitute(x: int) -> int:
        return x + 0

    try:
        every = (one for one in registrations.collect({}) if one.kind == "substitute")
        (own,) = (one for one in every if one.where not in before)
        assert own.by.__name__ == "substitute" and own.where.startswith("torch.compiler.substitute_in_graph(")
    finally:
        for function in (original, substitute):
            handlers.pop(function, None)
