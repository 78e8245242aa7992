"""Undo steps that also run if an interrupt falls between a change and its undo.

``with Undo() as undo, undo:`` takes down twice what was set up: if an interrupt comes while the inner one is left, the
outer one does the remaining steps. A step is added before the change that it undoes, so it must do no harm if the
change was not made, or was undone already.

Not covered: a second interrupt while the first one's take-down runs; one between the return of a function that changes
something and returns the old value, and the end of the line that keeps it; and one in a line of ``contextlib``, after
which a context manager of ours that is a generator ends only when the exception is released.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Undo = TypeVar("_Undo", bound="Undo")


class Undo:
    """Steps to do at the end, the last first. Each can be repeated."""

    def __init__(self) -> None:
        self._steps: list[tuple[Callable[..., object], tuple[Any, ...]]] = []

    def add(self, step: Callable[..., object], *args: Any) -> None:
        """Do this at the end; to be called before the change is made."""
        self._steps.append((step, args))

    def enter(self, manager: Any) -> Any:
        """Enter a patch of one of torch's configs."""
        self.add(_leave, manager)
        return manager.__enter__()

    def close(self) -> None:
        """Do the remaining steps. A step that fails does not stop the others."""
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
        # What torch's patch says where it was not entered yet, or was left already: an interrupt came between.
        if "prior" not in str(error):
            raise
