"""Lifetime of child processes: each ends with its caller, and its own descendants with it.

The caller keeps the write end of a pipe without writing to it; however the caller ends, the system closes that end.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Protocol

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

POLL_SECONDS = 1.0
"""Seconds between two checks of the caller where the system sends no signal at its end."""


class Process(Protocol):
    """A process that this one started, such as a ``subprocess.Popen``."""

    pid: int
    returncode: int | None

    def kill(self) -> None: ...
    def wait(self) -> int: ...


# The caller's side ------------------------------------------------------------------------------------------


def ended(pid: int) -> bool:
    """Return True if a process that this one started has ended; the exit code remains to be collected."""
    return _state(pid) in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)


def stopped(pid: int) -> bool:
    """Return True if a process that this one started is stopped by a signal."""
    return _state(pid) in (os.CLD_STOPPED, os.CLD_TRAPPED)


def _state(pid: int) -> int:
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
        letter = done.stdout.strip()[:1]
        return {"": os.CLD_EXITED, "Z": os.CLD_EXITED, "T": os.CLD_STOPPED}.get(letter, 0)
    kinds = os.WEXITED | os.WSTOPPED | os.WCONTINUED
    try:
        status = os.waitid(os.P_PID, pid, kinds | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # other code already waited for it
        return os.CLD_EXITED
    return 0 if status is None else status.si_code


def end(process: Process) -> int:
    """Kill a session leader and its descendants, and return its exit code."""
    if process.returncode is None:
        # The process id cannot be reused before it is waited for.
        for _ in range(2):  # twice, for processes that were started meanwhile
            others = _descendants(process.pid)
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
            for pid in others:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        process.kill()
    return process.wait()


def _descendants(leader: int) -> list[int]:
    """Return the ids of a session leader's descendants, also of those in other groups and sessions."""
    parents: dict[int, int] = {}
    members = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):  # without /proc only the group is ended
        with contextlib.suppress(OSError, ValueError):
            fields = stat.read_bytes().rpartition(b")")[2].split()
            parent, session = int(fields[1]), int(fields[3])
            pid = int(stat.parent.name)
            parents[pid] = parent
            if session == leader:
                members.add(pid)
    known = {leader}
    while known:
        known = {pid for pid, parent in parents.items() if parent in known} - members
        members |= known
    return sorted(members - {leader})


# In the process itself --------------------------------------------------------------------------------------


def bind(end_of_pipe: int, caller: int) -> None:
    """Make this process and its group end when ``caller`` ends or closes its end of the pipe."""
    if os.getpgrp() != os.getpid():
        return  # not a leader: killing the group would hit others
    if not _signalled(end_of_pipe) or os.getppid() != caller:
        threading.Thread(target=_watch, args=(end_of_pipe, caller), daemon=True).start()


def _signalled(end_of_pipe: int) -> bool:
    """Have the kernel kill the group when the pipe closes, even while native code runs or the process is stopped.
    Return False if this system cannot."""
    if fcntl is None or not (sys.platform == "linux" and hasattr(fcntl, "F_SETSIG")):
        return False
    try:
        fcntl.fcntl(end_of_pipe, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(end_of_pipe, fcntl.F_SETSIG, signal.SIGKILL)
        flags = fcntl.fcntl(end_of_pipe, fcntl.F_GETFL)
        fcntl.fcntl(end_of_pipe, fcntl.F_SETFL, flags | os.O_ASYNC)
    except (OSError, AttributeError):
        return False
    return True


def _watch(end_of_pipe: int, caller: int) -> None:
    poll = select.poll()
    poll.register(end_of_pipe, 0)
    while not poll.poll(POLL_SECONDS * 1000) and os.getppid() == caller:
        pass
    os.killpg(os.getpgrp(), signal.SIGKILL)
