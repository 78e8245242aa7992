"""Values of the compiled function against eager's values for inputs that differ by one unit in the last place."""

from __future__ import annotations

import pytest
import torch

from compile_lens.trials.rounding import as_far

pytestmark = pytest.mark.torch

ONES = torch.ones(3)


@pytest.mark.parametrize(
    ("mine", "others", "expected"),
    [
        (torch.ones(2), [torch.ones(2), ONES], True),  # eager, too, returns another size for other inputs
        (torch.ones(2), [ONES, ONES], False),
        (ONES + 1e-3, [ONES + 1e-3], True),
        (ONES + 1e-3, [ONES], False),
        (ONES + 1e-3, [torch.ones(2)], False),  # no value of this size to compare with
        (ONES.double(), [ONES.double()], False),
    ],
)
def test_a_tensor(mine: torch.Tensor, others: list[torch.Tensor], expected: bool) -> None:
    assert as_far(mine, ONES, others) is expected
