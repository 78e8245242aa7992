"""``python -m compile_lens``, and one command in a process with limits, as a server for coding agents runs it."""

from __future__ import annotations

import json
import os
import sys


def main(request: int) -> None:
    """Run the command that a file holds as JSON, ``words`` and ``memory``; ``request`` is the file's number."""
    from .child.limits import limit_memory
    from .cli import main as command

    with os.fdopen(request, "rb") as file:
        known = json.load(file)
    limit_memory(known["memory"])
    words = known["words"]
    sys.argv[:] = ["compile-lens", *words]
    sys.orig_argv[:] = [sys.executable, "-m", "compile_lens", *words]
    sys.path.insert(0, "")  # the place of a script's folder, which `run` writes to
    sys.exit(command(words))


if __name__ == "__main__":
    from .cli import main as command

    sys.exit(command())
