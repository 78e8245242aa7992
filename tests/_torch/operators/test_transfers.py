"""Names of functions in readable form."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from compile_lens._torch.operators.transfers import display_name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (math.sqrt, "math.sqrt"),
        (len, "len"),
        (torch.nn.Linear, "torch.nn.modules.linear.Linear"),
    ],
)
def test_a_function_has_the_name_of_its_module_before_its_own(value: Any, name: str) -> None:
    assert display_name(value) == name
