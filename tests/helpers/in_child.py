"""Functions that tests run in the child process; each disturbs it as a program might."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

from compile_lens.child import message


def main(answer: int) -> None:
    """Report how this process was started, through the pipe ``answer``; needs no torch."""
    with os.fdopen(answer, "w") as pipe:
        json.dump(interpreter(), pipe)


def echo(value: Any) -> Any:
    return value


def pid() -> int:
    return os.getpid()


def fork_and_return() -> list[int]:
    """Fork; both processes return from here."""
    mine = os.getpid()
    other = os.fork()
    return [mine, other]


def fork_and_raise() -> int:
    if (other := os.fork()) == 0:
        raise RuntimeError("of the fork alone")
    return other


def fork_in_c() -> int:
    """Fork in C, invisibly to Python."""
    return int(ctypes.CDLL(None).fork())


def write_everywhere() -> str:
    """Write a reply to an earlier request, on every possible descriptor."""
    for fd in range(3, 40):
        try:
            os.write(fd, message.framed(1, b'{"value": "stale"}'))
        except OSError:
            continue
    return "own"


def sleeper(apart: bool) -> int:
    """Start a grandchild that does not end by itself."""
    nothing = subprocess.DEVNULL
    started = subprocess.Popen(
        ["sleep", "1000"], start_new_session=apart, stdin=nothing, stdout=nothing, stderr=nothing
    )
    return started.pid


def sleeper_then_death() -> None:
    print(sleeper(False))
    os.kill(os.getpid(), signal.SIGKILL)


def sleepers_then_work() -> None:
    print(os.getpid(), sleeper(False), flush=True)
    time.sleep(1000)


def stop(again: float = 0.0) -> str:
    """Stop this process with a signal; with ``again``, it is resumed after that many seconds."""
    if again:
        subprocess.Popen(["sh", "-c", f"sleep {again}; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)
    return "went on"


def interpreter() -> dict[str, Any]:
    """Return the effects of the interpreter's options."""
    flags = {name: getattr(sys.flags, name) for name in dir(sys.flags) if name[0] != "_"}
    plain = {name: value for name, value in flags.items() if isinstance(value, (int, bool))}
    return {"flags": plain, "warnings": sys.warnoptions, "options": dict(sys._xoptions)}


def around() -> dict[str, Any]:
    return {"argv": sys.argv, "variable": os.environ.get("OF_THE_TEST"), "path": sys.path}


def talk() -> None:
    """Write through Python, through C, through the shell, and to a descriptor."""
    library = ctypes.CDLL(None)
    print("python 1")
    library.printf(b"c 2\n")
    print("python 3", end="")
    library.puts(b", c 4")
    os.system("echo shell 5")
    os.write(1, b"descriptor 6 \xff\n")
    print("warned in python", file=sys.stderr)
    os.write(2, b"warned on the descriptor\n")


def talk_much() -> None:
    for i in range(20_000):
        print(f"line {i} of many")


def last_words() -> None:
    ctypes.CDLL(None).printf(b"on the way out\n")
    os.write(2, b"the reason\n")
    os.abort()
