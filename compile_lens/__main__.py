"""``python -m compile_lens``, and one command in a process with limits, as a server for coding agents runs it."""

from __future__ import annotations

import contextlib
import json
import os
import sys


def main(request: int) -> None:
    """Run the command that a file holds as JSON, ``words`` and ``memory``; ``request`` is the file's number."""
    from .cli import main as command

    with os.fdopen(request, "rb") as file:
        known = json.load(file)
    _limit(known["memory"])
    words = known["words"]
    sys.argv[:] = ["compile-lens", *words]
    sys.orig_argv[:] = [sys.executable, "-m", "compile_lens", *words]
    sys.path.insert(0, "")  # the place of a script's folder, which `run` writes to
    sys.exit(command(words))


def _limit(memory: int) -> None:
    """Have the system refuse memory beyond the limit, and write no core files, which may be as large."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, most in ((resource.RLIMIT_DATA, memory), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(
            OSError, ValueError
        ):  # the caller's own limit is lower, or the system has none
            resource.setrlimit(kind, (most, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    from .cli import main as command

    sys.exit(command())
