"""Steps that are undone: patches of torch's configs that an interrupt kept from being entered, or that exit twice."""

from __future__ import annotations

import pytest
import torch

from compile_lens._torch.ground.undo import Undo

pytestmark = pytest.mark.torch


class Interrupted:
    """A patch with an interrupt before it is entered."""

    def __init__(self) -> None:
        self.patch = torch._dynamo.config.patch(accumulated_recompile_limit=7)

    def __enter__(self) -> None:
        raise KeyboardInterrupt

    def __exit__(self, *error: object) -> None:
        self.patch.__exit__(None, None, None)


def test_an_interrupt_before_a_patch_is_in_force_reaches_the_caller() -> None:
    before = torch._dynamo.config.accumulated_recompile_limit
    with pytest.raises(KeyboardInterrupt), Undo() as undo, undo:
        undo.enter(Interrupted())
    assert torch._dynamo.config.accumulated_recompile_limit == before


def test_a_patch_is_left_once_however_often_it_is_undone() -> None:
    before = torch._dynamo.config.accumulated_recompile_limit
    with Undo() as undo, undo:
        patch = torch._dynamo.config.patch(accumulated_recompile_limit=before + 1)
        undo.enter(patch)
        assert torch._dynamo.config.accumulated_recompile_limit == before + 1
        patch.__exit__(None, None, None)  # as in a teardown that an interrupt cut short
    assert torch._dynamo.config.accumulated_recompile_limit == before


def test_another_failure_of_a_step_is_told() -> None:
    class Wrong:
        def __enter__(self) -> None: ...
        def __exit__(self, *error: object) -> None:
            raise AssertionError("something else")

    with pytest.raises(AssertionError, match="something else"), Undo() as undo, undo:
        undo.enter(Wrong())
