"""A value of the compiled function beside those that eager computes from inputs one unit in the last place apart."""

from __future__ import annotations

import pytest
import torch

from compile_lens.trials.rounding import as_far

pytestmark = pytest.mark.torch

ONES = torch.ones(3)


@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        (torch.ones(2), [torch.ones(2), ONES], True),  # eager, too, has another size from other inputs
        (torch.ones(2), [ONES, ONES], False),
        (ONES + 1e-3, [ONES + 1e-3], True),
        (ONES + 1e-3, [ONES], False),
        (ONES + 1e-3, [torch.ones(2)], False),  # nothing of this size to compare with
        (ONES.double(), [ONES.double()], False),
    ],
)
def test_a_tensor(mine: torch.Tensor, others: list[torch.Tensor], expected: bool) -> None:
    assert as_far(mine, ONES, others) is expected
