"""The errors of compile_lens: one base class, a few types, each with a message that names the next step.

A traceback names them as users catch them, ``compile_lens.UsageError``, so ``__module__`` names the package.
"""

from __future__ import annotations


class LensError(Exception):
    """Base class of every error that compile_lens raises on purpose."""

    __module__ = "compile_lens"


class UsageError(LensError, ValueError):
    """An argument is not usable: the message names the value, the valid ones and the next step."""

    __module__ = "compile_lens"


class RecordError(LensError, ValueError):
    """A record cannot be read: it is corrupt, not a record, or written by a newer compile_lens."""

    __module__ = "compile_lens"


def needs_torch(what: str) -> ModuleNotFoundError:
    """Return the error to raise if something has to run torch and torch is not installed."""
    message = (
        f"{what} runs torch, which is not installed here: install it (https://pytorch.org/get-started/locally), or "
        "open a record that was made elsewhere, which needs no torch: compile_lens.load('capture.json')"
    )
    return ModuleNotFoundError(message, name="torch")


class StageMissing(LensError, KeyError):
    """A requested stage was not observed; the message says why."""

    __module__ = "compile_lens"

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0]) if self.args else ""


class LayoutError(LensError):
    """Graphviz could not place a graph (missing, failed, or over its time limit)."""

    __module__ = "compile_lens"


class BuildError(LensError, RuntimeError):
    """Generated code cannot be built on this machine; the message names what is missing and what to do."""

    __module__ = "compile_lens"


class ChildError(LensError, RuntimeError):
    """The child process of a capture for a target could not be started, or ended during the capture.

    It crashed, ran out of memory, or was ended by another process. The next capture starts a new one.

    Attributes:
        code: its exit code, negative for a signal; ``None`` if it did not end by itself.
        last: the end of its standard error.
        began: whether it was ready for requests.
    """

    __module__ = "compile_lens"

    def __init__(self, message: str, code: int | None = None, last: str = "", began: bool = True) -> None:
        super().__init__(message)
        self.code, self.last, self.began = code, last, began
