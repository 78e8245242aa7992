"""Undo steps that also run if an interrupt falls between a change and its undo.

``with Undo() as undo, undo:`` runs the steps twice: if an interrupt comes while the inner block exits, the outer one
does the remaining steps. A step is added before the change that it undoes, so it must be harmless if the change was not
made or was already undone.

Not covered: a second interrupt while the steps run after a first; one between the return of a function that changes a
value and returns the old one, and the assignment of its result; and one inside ``contextlib``, after which a
generator-based context manager of ours ends only when the exception is released.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Undo = TypeVar("_Undo", bound="Undo")


class Undo:
    """Steps to do at the end in reverse order. Each can be repeated."""

    def __init__(self) -> None:
        self._steps: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def add(self, step: Callable[..., object], *args: Any) -> None:
        """Add a step; call this before making the change."""
        self._steps.append((step, args))

    def enter(self, manager: Any) -> Any:
        """Enter a patch of one of torch's configs."""
        self.add(_leave, manager)
        return manager.__enter__()

    def close(self) -> None:
        """Do the remaining steps. If one fails, do the others and raise the first error."""
        failed: Exception | None = None
        while self._steps:
            step, args = self._steps[-1]
            try:
                step(*args)
            except Exception as error:
                failed = failed or error
            del self._steps[-1:]
        if failed is not None:
            raise failed

    def __enter__(self: _Undo) -> _Undo:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _leave(patch: Any) -> None:
    try:
        patch.__exit__(None, None, None)
    except AssertionError as error:
        # Torch's patch raises this if it was not entered yet or already left, as after an interrupt.
        if "prior" not in str(error):
            raise
