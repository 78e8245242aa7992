"""``%%compile_lens``: a notebook's cell, watched."""

from __future__ import annotations

import re
import threading
from typing import Any

from ..errors import UsageError
from .watch import WatchContext, ending


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext compile_lens`` brings the cell magic ``%%compile_lens [NAME]``.

    The cell runs as it would without it, watched as by ``compile_lens.watch``; then the program is shown, after an
    error of the cell. It is kept in the variable ``NAME`` where one is given. ``%compile_lens [NAME]``, as a line,
    watches the rest of its cell.
    """

    def compile_lens(line: str, cell: str | None = None) -> None:
        if cell is None:
            _Watched(shell, line.strip())
        else:  # who calls it by itself, as a notebook that was made a script does
            shell.run_cell(f"%%compile_lens {line}\n{cell}").raise_error()

    shell.register_magic_function(compile_lens, "line_cell", "compile_lens")
    transforms = shell.input_transformers_cleanup
    transforms[:] = [*(each for each in transforms if not isinstance(each, _Cell)), _Cell(shell)]


class _Cell:
    """Makes the head of a cell a line of it, so that the shell itself runs the rest: what awaits something, what it
    shows of the last line, and errors are as without it."""

    has_side_effects = (
        True  # not while a cell is typed: one that begins with %% is complete after a blank line
    )

    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, lines: list[str]) -> list[str]:
        head = re.match(r"%%compile_lens(?:[ \t]+(.*?))?[ \t]*$", lines[0].rstrip("\r\n")) if lines else None
        if head is None or (head[1] or "").startswith("?"):
            return lines
        at = next((i for i, line in enumerate(lines) if i and line.strip()), len(lines))
        rest = "".join(lines[at:])
        transformed = self._shell.transform_cell(rest).splitlines(keepends=True) if rest else []
        opens = f"get_ipython().run_line_magic('compile_lens', {head[1] or ''!r})\n"
        return [opens, *lines[1:at], *transformed]


class _Watched:
    """The rest of the cell that runs now, watched until it is over; then the program is shown."""

    def __init__(self, shell: Any, name: str) -> None:
        if name and not name.isidentifier():
            raise UsageError(
                f"%%compile_lens {name}: this is no name of a variable; write for example %%compile_lens program"
            )
        self._shell = shell
        self._name = name
        self._result = shell.displayhook.exec_result  # what the shell notes of the cell
        self._thread = threading.get_ident()
        self._within = 0
        self._watching = WatchContext("a cell")
        try:
            self._watching.__enter__()
            shell.events.register("pre_execute", self._begins)
            shell.events.register("post_execute", self._is_over)
        except BaseException as error:  # an interrupt: the cell does not begin, and nothing ends it
            self._forget()
            self._watching.close(ending(error))
            raise

    def _forget(self) -> None:
        for event, callback in (("pre_execute", self._begins), ("post_execute", self._is_over)):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)

    def _begins(self) -> None:
        """A cell that this one runs."""
        self._within += threading.get_ident() == self._thread

    def _is_over(self) -> None:
        """This cell, or one that it ran."""
        if threading.get_ident() != self._thread:  # another one may run in another thread
            return
        self._within -= 1
        if self._within >= 0:
            return
        from IPython.display import display

        self._forget()
        error = getattr(self._result, "error_in_exec", None)
        self._watching.close("the block ended" if error is None else ending(error))
        if self._name:
            self._shell.user_ns[self._name] = self._watching.program
        display(self._watching.program)
