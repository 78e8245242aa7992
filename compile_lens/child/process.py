"""Keeps child processes, and talks to them."""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from typing import Any

from .. import errors
from ..errors import CaptureError, LensError
from ..record import Capture
from . import crossing
from .worker import LENGTH


class ChildError(LensError, RuntimeError):
    """The child process could not be started, or ended in the middle of a request."""


class Child:
    """One process that runs requests, one at a time, until it is closed."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.owner = os.getpid()
        self.known: dict[str, int] = {}
        self._said = tempfile.TemporaryFile()
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        places = [package, *(p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p)]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "compile_lens.child.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **environment},
                start_new_session=True,  # an interrupt is for the caller, who then closes the child
            )
        except OSError as error:
            raise ChildError(f"no child process could be started with {sys.executable!r}: {error}") from error

    @property
    def alive(self) -> bool:
        """Whether it can take a request."""
        return self._process.poll() is None and self.owner == os.getpid()

    def ask(self, data: bytes) -> dict[str, Any]:
        """Send a request and wait for the reply. Raises ``ChildError`` if the child ends meanwhile."""
        pipe_in, pipe_out = self._process.stdin, self._process.stdout
        assert pipe_in is not None and pipe_out is not None
        try:
            pipe_in.write(LENGTH.pack(len(data)))
            pipe_in.write(data)
            pipe_in.flush()
            head = pipe_out.read(LENGTH.size)
            reply = pipe_out.read(LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else b""
        except OSError:
            head = reply = b""
        except BaseException:  # interrupted: the reply would be taken for that of the next request
            self.close()
            raise
        if not reply:
            raise ChildError(self._ending())
        found: dict[str, Any] = json.loads(reply)
        return found

    def close(self) -> None:
        """End it."""
        if self.owner == os.getpid():
            self._process.kill()
            self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:  # what was not sent goes with it
                    continue
        self._said.close()

    def _ending(self) -> str:
        code = self._process.wait()
        self._said.seek(0)
        last = self._said.read().decode(errors="replace").strip().splitlines()[-5:]
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        return f"the child process ended {how} in the middle of its work" + "".join(f"\n  {x}" for x in last)


_children: dict[tuple[tuple[str, str], ...], Child] = {}
_lock = threading.RLock()


def call(function: str, *args: Any, environment: dict[str, str] | None = None) -> tuple[Any, crossing.Parcel]:
    """``function(*args)`` in the child: what it returned (plain data), and the parcel in which ``args`` went.

    Args:
        function: ``"module:name"``.
        environment: variables of a child of its own, for what is decided when a library is imported.

    What it prints is printed here. Raises ``CannotCross`` before anything was run; what it raises is raised here.
    """
    if not sys.executable:
        raise crossing.CannotCross("this program has no Python executable to start another process with")
    with _lock:
        child = _child(environment or {})  # it gets ready while the request is made
        body = crossing.packed(args)
        head = {"call": function, **crossing.surroundings()}
        reply = child.ask(pickle.dumps((head, body.data), protocol=pickle.HIGHEST_PROTOCOL))
    for name in ("stdout", "stderr"):
        if reply[name]:
            print(reply[name], end="", file=getattr(sys, name))
    if "stuck" in reply:
        raise crossing.CannotCross(reply["stuck"])
    if "error" in reply:
        raise _error(reply["error"])
    return reply["value"], body


def ready() -> None:
    """Start the child if none is kept, so that it gets ready while the caller does something else."""
    with _lock, contextlib.suppress(ChildError):  # whoever calls next is told
        # Whether one that is kept still serves, the call finds out.
        if sys.executable and () not in _children:
            _child({})


def close() -> None:
    """End every child; the next request starts a new one."""
    with _lock:
        for child in _children.values():
            child.close()
        _children.clear()


atexit.register(close)


def _child(environment: dict[str, str]) -> Child:
    key = tuple(sorted(environment.items()))
    written = crossing.versions_of_modules()
    child = _children.get(key)
    if child is not None:
        changed = any(child.known.get(name, when) != when for name, when in written.items())
        if changed or not child.alive:
            child.close()
            child = None
    if child is None:
        child = _children[key] = Child(environment)
    child.known.update(written)
    return child


def _error(said: dict[str, Any]) -> BaseException:
    try:
        original: BaseException = pickle.loads(base64.b64decode(said["packed"]))
    except Exception:  # it is of a class that does not survive pickling
        original = RuntimeError(f"{said['original']}: {said['said']}")
    if said["capture"]:
        failed = CaptureError(said["message"], Capture.from_json(said["capture"]))
        failed.__cause__ = original
        return failed
    ours = getattr(errors, said["type"], None) if said["module"] == errors.__name__ else None
    if ours is not None and ours is not CaptureError:
        return ours(said["message"])  # type: ignore[no-any-return]
    if isinstance(original, Exception):
        original.add_note(said["traceback"]) if hasattr(original, "add_note") else None
        return original
    return ChildError(f"{said['type']} in the child process: {said['message']}\n{said['traceback']}")
