"""Ctrl-C that nothing caught: after it Python ends by SIGINT, also where a report was written in between."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any


class Interrupt:
    """That a program ended by an interrupt, as Python remembers it until it ends.

    Python notes it when code that it was given as text (a script, ``exec("…")``) raises ``KeyboardInterrupt``, and
    forgets it when the next such code begins, as each namedtuple that is made does: so does what writes a report, and
    also what the program itself does at exit, after which plain Python no longer ends by the signal."""

    def __init__(self) -> None:
        self._remembered = True
        sys.addaudithook(self._audit)  # it stays until Python ends, which is soon

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if (
            event == "exec" and getattr(args[0], "co_filename", "") == "<string>"
        ):  # of exec and eval of a text
            self._remembered = False

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Keep the interrupt as it is while the block runs."""
        remembered = self._remembered
        try:
            yield
        finally:
            if remembered:
                with contextlib.suppress(KeyboardInterrupt):
                    exec("raise KeyboardInterrupt")
