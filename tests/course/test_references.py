"""The reference functions of the exercises do what the exercises state."""

from __future__ import annotations

import torch

from compile_lens.course.lessons import fourteen


def test_numbers_are_moved_up_and_scaled_down_where_they_need_it() -> None:
    assert fourteen.fitted(torch.tensor([-1.0, 0.0, 3.0])).tolist() == [0.0, 0.25, 1.0]
    assert fourteen.fitted(torch.tensor([0.25, 0.5])).tolist() == [0.25, 0.5]
    assert fourteen.fitted(torch.tensor([0.5, 2.0])).tolist() == [0.25, 1.0]


def test_a_mask_keeps_twice_the_number_or_nothing() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0], [0.25, 0.5, 0.75]])
    assert fourteen.masked(x).tolist() == [0.0, 4.0, 6.0]
