"""Start of a child process as a fork of this one, which has already imported what the child needs."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import BinaryIO, NoReturn

from . import lifetime
from .nesting import Nesting

FORKS = sys.platform == "linux"
"""True if a process that imported torch can be forked; macOS's libraries do not allow it."""


class ForkedProcess:
    """A forked process, with the part of ``subprocess.Popen`` that ``Child`` uses."""

    def __init__(self, pid: int, stdin: BinaryIO, stdout: BinaryIO, stderr: BinaryIO) -> None:
        self.pid = pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self.returncode: int | None = None

    def kill(self) -> None:
        """Kill the process unless it was waited for: its id may have been reused then."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait for the end of the process and return its exit code; ``-n`` after signal ``n``."""
        if self.returncode is None:
            try:
                self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except ChildProcessError:  # other code already waited for it
                self.returncode = 0
        return self.returncode


def start(
    module: str, environment: Mapping[str, str], fds: Sequence[int] = (), cwd: str | None = None
) -> tuple[ForkedProcess, int]:
    """Start a process as ``launcher.start`` does, but by a fork that inherits this process's modules and their state.

    The caller must be single-threaded and must not have run user code.
    """
    pipes = [os.pipe() for _ in range(4)]
    (requests, to_requests), *outputs, (life, to_life) = pipes
    caller = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        for pipe in pipes:
            for fd in pipe:
                os.close(fd)
        raise
    if not pid:
        theirs = (requests, outputs[0][1], outputs[1][1])
        ours = {fd for pipe in pipes for fd in pipe} - {life}
        _run(module, environment, fds, cwd, theirs, ours, (life, caller))
    for fd in (requests, outputs[0][1], outputs[1][1], life):
        os.close(fd)
    readers = [os.fdopen(read, "rb", 0) for read, _ in outputs]
    return ForkedProcess(pid, os.fdopen(to_requests, "wb", 0), *readers), to_life


def _run(
    module: str,
    environment: Mapping[str, str],
    fds: Sequence[int],
    cwd: str | None,
    standard: tuple[int, int, int],
    ours: set[int],
    life: tuple[int, int],
) -> NoReturn:
    """Run the forked process to its end."""
    code = 1
    try:
        os.setsid()
        for number, fd in enumerate(standard):
            os.dup2(fd, number)
        for fd in ours:
            os.close(fd)
        os.environ.clear()
        os.environ.update(environment)
        if cwd is not None:
            os.chdir(cwd)
        Nesting.depth += 1
        lifetime.bind(*life)
        importlib.import_module(module).main(*fds)
        code = 0
    except BaseException:  # SystemExit too: the caller's code must not run here
        traceback.print_exc()
    finally:
        os._exit(code)
