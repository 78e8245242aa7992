"""``%%compile_lens``: a notebook's cell, watched."""

from __future__ import annotations

import ast
from typing import Any

from ..errors import UsageError
from .watch import Watching


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext compile_lens`` brings the cell magic ``%%compile_lens [NAME]``.

    The cell runs as it would without it, watched as by ``compile_lens.watch``; then the program is shown. It is kept in
    the variable ``NAME`` where one is given. An error of the cell is raised when the program was shown.
    """

    def compile_lens(line: str, cell: str) -> None:
        watched(shell, line.strip(), cell)

    shell.register_magic_function(compile_lens, "cell", "compile_lens")


def watched(shell: Any, name: str, cell: str) -> None:
    """Run a cell of a shell, watched, and show the program."""
    from IPython.display import display

    if name and not name.isidentifier():
        raise UsageError(
            f"%%compile_lens {name}: this is no name of a variable; write for example %%compile_lens program"
        )
    text = shell.transform_cell(cell)
    file = shell.compile.cache(text, shell.execution_count, raw_code=cell)  # so that its lines are found
    tree = ast.parse(text, file)
    # As IPython does: the value of the last expression is shown.
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    watching = Watching("a cell")
    try:
        with watching:
            exec(compile(tree, file, "exec"), shell.user_ns)
            if last is not None:
                exec(compile(ast.Interactive([last]), file, "single"), shell.user_ns)
    finally:
        if watching.program is not None:
            if name:
                shell.user_ns[name] = watching.program
            display(watching.program)
