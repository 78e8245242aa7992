"""``%%compile_lens``: cell magic that watches a notebook cell."""

from __future__ import annotations

import re
import threading
from typing import Any

from ..errors import UsageError
from .watch import WatchContext, ending


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic ``%%compile_lens [NAME]``, on ``%load_ext compile_lens``.

    The cell runs unchanged, watched as by ``compile_lens.watch``; then the program is shown, even after an error, and
    stored in the variable ``NAME`` if given. The line magic ``%compile_lens [NAME]`` watches the rest of its cell.
    """

    def compile_lens(line: str, cell: str | None = None) -> None:
        if cell is None:
            _Watched(shell, line.strip())
        else:  # called directly, as in a notebook exported as a script
            shell.run_cell(f"%%compile_lens {line}\n{cell}").raise_error()

    shell.register_magic_function(compile_lens, "line_cell", "compile_lens")
    transforms = shell.input_transformers_cleanup
    transforms[:] = [*(each for each in transforms if not isinstance(each, _Cell)), _Cell(shell)]


class _Cell:
    """Input transformer that turns the cell magic into a line magic, so that the shell itself runs the rest: ``await``,
    the display of the last line and errors work as usual."""

    has_side_effects = True  # not used to check for completeness while a cell is typed

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
    """A watch of the rest of the running cell, which shows the program when the cell ends."""

    def __init__(self, shell: Any, name: str) -> None:
        if name and not name.isidentifier():
            raise UsageError(
                f"%%compile_lens {name}: this is not the name of a variable; write, for example, %%compile_lens "
                "program"
            )
        self._shell = shell
        self._name = name
        self._result = shell.displayhook.exec_result  # the shell's result of this cell
        self._thread = threading.get_ident()
        self._inner_cells = 0
        self._watching = WatchContext("a cell")
        try:
            self._watching.__enter__()
            shell.events.register("pre_execute", self._cell_started)
            shell.events.register("post_execute", self._cell_ended)
        except (
            BaseException
        ) as error:  # an interrupt: the cell does not run, so that nothing else closes the watch
            self._forget()
            self._watching.close(ending(error))
            raise

    def _forget(self) -> None:
        for event, callback in (("pre_execute", self._cell_started), ("post_execute", self._cell_ended)):
            if callback in self._shell.events.callbacks[event]:
                self._shell.events.unregister(event, callback)

    def _cell_started(self) -> None:
        """Count a nested cell that this cell runs."""
        self._inner_cells += threading.get_ident() == self._thread

    def _cell_ended(self) -> None:
        """End the watch at the end of this cell, not of a nested one."""
        if threading.get_ident() != self._thread:  # a cell in another thread
            return
        self._inner_cells -= 1
        if self._inner_cells >= 0:
            return
        from IPython.display import display

        self._forget()
        error = getattr(self._result, "error_in_exec", None)
        self._watching.close("the block ended" if error is None else ending(error))
        if self._name:
            self._shell.user_ns[self._name] = self._watching.program
        display(self._watching.program)
