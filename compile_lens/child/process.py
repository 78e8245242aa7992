"""Keeps child processes, and talks to them."""

from __future__ import annotations

import atexit
import base64
import contextlib
import json
import os
import pickle
import selectors
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from .. import errors
from ..errors import LensError
from . import crossing, imports, life, message, start
from .output import Heard

BEAT = 0.5
"""Seconds between two looks at a child that says nothing."""

STOPPED = 20.0
"""Seconds for which a child may be held by a signal before it is given up."""


class ChildError(LensError, RuntimeError):
    """The child process could not be started, or ended in the middle of a request."""


class Child:
    """One process that runs requests, one at a time, until it is closed."""

    def __init__(self, environment: dict[str, str], first: tuple[str, ...] = ()) -> None:
        self.owner = os.getpid()
        self.known: dict[str, int] = {}
        self.busy = False
        self._number = message.READY
        self._come = bytearray()
        self._held_since: float | None = None
        self._replies, theirs = os.pipe()
        try:
            self._process, self._life = start.start(
                "compile_lens.child.worker",
                {**os.environ, **environment, message.FIRST: " ".join(first)},
                (theirs,),
            )
        except OSError as error:
            os.close(self._replies)
            raise ChildError(f"no child process could be started with {sys.executable!r}: {error}") from error
        finally:
            os.close(theirs)
        pipes = [self._process.stdin, self._process.stdout, self._process.stderr]
        self._requests, *said = [pipe.fileno() for pipe in pipes if pipe is not None]
        self._heard = [Heard(name, fd) for name, fd in zip(("stdout", "stderr"), said)]
        for fd in (self._requests, self._replies):
            os.set_blocking(fd, False)

    @property
    def alive(self) -> bool:
        """Whether it can take a request."""
        if self.owner != os.getpid() or self._process.returncode is not None:
            return False
        return not life.ended(self._process.pid) and not self._come

    def ask(self, data: bytes) -> dict[str, Any]:
        """Send a request and wait for the reply. What the child prints meanwhile is printed here.

        Raises ``ChildError`` if the child ends meanwhile, is held for long, or answers anything else.
        """
        self.busy = True
        try:
            if self._number == message.READY:
                self._reply(message.READY, b"")
            self._number += 1
            reply = self._reply(self._number, message.framed(self._number, data))
            found: dict[str, Any] = json.loads(reply)
        except (message.Broken, ValueError) as error:
            self.close()
            raise ChildError(f"the child process was ended: {error}") from None
        except BaseException:  # interrupted: the reply would be taken for that of the next request
            self.close()
            raise
        finally:
            self.busy = False
        return found

    def _reply(self, number: int, sent: bytes) -> bytes:
        """The message of that number, while ``sent`` goes out."""
        left = memoryview(sent)
        show = number != message.READY
        looked = time.monotonic()
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._replies, selectors.EVENT_READ)
            for heard in self._heard:
                if heard.open:
                    waiting.register(heard.fd, selectors.EVENT_READ, heard)
            if left:
                waiting.register(self._requests, selectors.EVENT_WRITE)
            while True:
                events = waiting.select(BEAT)
                for key, _ in events:
                    if key.fd == self._requests:
                        left = left[self._write(left) :]
                        if not left:
                            waiting.unregister(self._requests)
                    elif key.data is not None:
                        key.data.hear(show)
                        if not key.data.open:
                            waiting.unregister(key.fd)
                    elif not self._read():
                        raise self._ending(show)
                reply = message.taken(self._come, number)
                if reply is not None:
                    self._hear(show)  # what was said before it is in the pipes
                    return reply
                if time.monotonic() - looked > BEAT:
                    looked = time.monotonic()
                    self._look(looked, show)

    def _write(self, data: memoryview) -> int:
        try:
            return os.write(self._requests, data[:1048576])
        except BlockingIOError:
            return 0
        except OSError:  # it is gone: the pipe of replies says so
            return len(data)

    def _read(self) -> bool:
        """Take what there is of the reply; whether more may come."""
        try:
            data = os.read(self._replies, 1 << 20)
        except BlockingIOError:
            return True
        self._come += data
        return bool(data)

    def _hear(self, show: bool) -> None:
        for heard in self._heard:
            heard.hear(show)

    def _look(self, now: float, show: bool) -> None:
        """Whether it is still at work. A process that it forked may hold its pipes open when it is gone."""
        if os.getpid() != self.owner:
            raise message.Broken("it is the child of another process, which forked this one")
        pid = self._process.pid
        if life.ended(pid):
            raise self._ending(show)
        if not life.stopped(pid):
            self._held_since = None
        elif self._held_since is None:
            self._held_since = now
        elif now - self._held_since > STOPPED:
            raise message.Broken(
                f"it was stopped by a signal, and did not go on within {STOPPED:.0f} seconds"
            )

    def _ending(self, show: bool) -> ChildError:
        self._hear(show)
        code = life.end(self._process)
        if _leaving:
            return ChildError("this program is ending, and so did the child process")
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        what = "in the middle of its work" if show else "before it began to work"
        last = self._heard[1].last.strip().splitlines()[-5:]
        return ChildError(f"the child process ended {how} {what}" + "".join(f"\n  {x}" for x in last))

    def end(self) -> None:
        """End the process, and all that it started. Its pipes stay open for whoever waits for a reply."""
        if self.owner == os.getpid():
            life.end(self._process)

    def close(self) -> None:
        """End it, and forget it."""
        self.end()
        self.forget()

    def forget(self) -> None:
        """Close the pipes of this process alone: a process that was forked from the owner has its own."""
        self._process.returncode = self._process.returncode or 0  # nothing is left to wait for
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        for heard in self._heard:
            heard.open = False
        for fd in (self._replies, self._life):
            if fd >= 0:
                os.close(fd)
        self._replies = self._life = -1


_children: dict[tuple[tuple[str, str], ...], Child] = {}
_lock = threading.RLock()
_leaving = False


def call(
    function: str,
    *args: Any,
    environment: dict[str, str] | None = None,
    first: tuple[str, ...] = (),
    failed: Callable[[str, str], BaseException] | None = None,
) -> tuple[Any, crossing.Parcel]:
    """``function(*args)`` in the child: what it returned (plain data), and the parcel in which ``args`` went.

    Args:
        function: ``"module:name"``.
        environment: variables of a child of its own, for what is decided when a library is imported.
        first: names of modules that a new child imports while the request is made.
        failed: makes the error anew that had a capture with it, of its message and the capture as JSON.

    What it prints is printed here. Raises ``CannotCross`` before anything was run; what it raises is raised here.
    """
    if not sys.executable:
        raise crossing.CannotCross("this program has no Python executable to start another process with")
    with _lock:
        if any(
            child.busy for child in _children.values()
        ):  # a signal's handler, or a stream of the program's
            raise crossing.CannotCross("this thread waits for the child process already")
        child = _child(environment or {}, first)  # it gets ready while the request is made
        body = crossing.packed(args)
        head = {
            "call": function,
            "environment": {**os.environ, **(environment or {})},
            "files": imports.loaded(),
            **crossing.surroundings(),
        }
        reply = child.ask(pickle.dumps((head, body.data), protocol=pickle.HIGHEST_PROTOCOL))
    if "stuck" in reply:
        raise crossing.CannotCross(reply["stuck"])
    if "error" in reply:
        raise _error(reply["error"], failed)
    return reply["value"], body


def ready(first: tuple[str, ...] = ()) -> None:
    """Start the child if none is kept, so that it imports ``first`` while the caller does something else."""
    with _lock, contextlib.suppress(ChildError):  # whoever calls next is told
        # Whether one that is kept still serves, the call finds out.
        if sys.executable and () not in _children:
            _child({}, first)


def close() -> None:
    """End every child; the next request starts a new one."""
    with _lock:
        for child in _children.values():
            child.close()
        _children.clear()


@atexit.register
def _leave() -> None:
    """End every child, also one that a thread waits for: that thread will not be waited for."""
    global _leaving
    _leaving = True
    for child in list(_children.values()):
        child.end()


def _forked() -> None:
    """A process that was forked from this one has children of its own, and nobody in it holds the lock."""
    global _lock
    _lock = threading.RLock()
    for child in list(_children.values()):
        child.forget()
    _children.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _child(environment: dict[str, str], first: tuple[str, ...]) -> Child:
    if _leaving:
        raise ChildError("this program is ending: no child process is started")
    key = tuple(sorted(environment.items()))
    written = crossing.versions_of_modules()
    child = _children.get(key)
    if child is not None:
        changed = any(child.known.get(name, when) != when for name, when in written.items())
        if changed or not child.alive:
            child.close()
            child = None
    if child is None:
        child = _children[key] = Child(environment, first)
    child.known.update(written)
    return child


def _error(said: dict[str, Any], failed: Callable[[str, str], BaseException] | None) -> BaseException:
    try:
        original: BaseException = pickle.loads(base64.b64decode(said["packed"]))
    except Exception:  # it is of a class that does not survive pickling
        original = RuntimeError(f"{said['original']}: {said['said']}")
    if said["capture"] and failed is not None:
        error = failed(said["message"], said["capture"])
        error.__cause__ = original
        return error
    ours = getattr(errors, said["type"], None) if said["module"] == errors.__name__ else None
    if ours is not None:
        return ours(said["message"])  # type: ignore[no-any-return]
    if isinstance(original, Exception):
        original.add_note(said["traceback"]) if hasattr(original, "add_note") else None
        return original
    return ChildError(f"{said['type']} in the child process: {said['message']}\n{said['traceback']}")
