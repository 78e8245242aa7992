"""Keeps child processes for this program's requests: a function and its arguments, run in another process."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import math
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .. import errors
from ..errors import ChildError
from . import context, exceptions, imports, launcher, message, nesting, pickling, worker
from .child import Child, Start
from .nesting import LIMIT, Nesting

_children: dict[tuple[tuple[str, str], ...], Child] = {}
_lock = threading.RLock()


def call(
    function: str,
    *args: Any,
    environment: dict[str, str] | None = None,
    first: tuple[str, ...] = (),
    failed: Callable[[str, str], BaseException] | None = None,
    within: str = "",
    group: str = "",
    along: Any = None,
    seconds: float | None = None,
) -> tuple[Any, pickling.Parcel]:
    """``function(*args)`` in the child: what it returned (plain data), and the parcel in which ``args`` went.

    Args:
        function: ``"module:name"``.
        environment: variables of a child of its own, for what is decided when a library is imported.
        first: names of modules that a new child imports while the request is made.
        failed: makes the error anew that had a capture with it, of its message and the capture as JSON.
        within: ``"module:name"`` of a context in which the child imports what ``args`` need.
        group: the same of a context for a rank and a number of processes, if the program has a process group.
        seconds: the function gets a child of its own, which ends with it, or after so many seconds; then ``TooLong`` is
            raised.
        along: knows how more kinds of objects cross, as ``crossing.pack`` takes it.

    What it prints is printed here. Raises ``CannotCross`` before anything was run; what it raises is raised here.

    While a child process loads a request, the function runs in that process: a module that captures when it is imported
    would else start child after child.
    """
    if Nesting.loading:
        with nesting.loading(False):
            return worker.named(function)(*args), pickling.Parcel()
    nesting.check()
    if not sys.executable:
        raise pickling.CannotCross("this program has no Python executable to start another process with")
    with _lock, _of_its_own(seconds):
        if any(
            child.busy for child in _children.values()
        ):  # a signal's handler, or a stream of the program's
            raise pickling.CannotCross("this thread waits for the child process already")
        apart: pickling.SendingRules | None = pickling.SendingRules()
        while apart is not None:
            child = _child(environment or {}, first)  # it gets ready while the request is made
            body = pickling.pack(args, along, apart)
            if not child.registered <= body.registered:  # it holds what this program has no more
                child.close()
                child = _child(environment or {}, first)
            child.registered |= body.registered
            head = {
                "call": function,
                "within": within,
                "group": (group, context.process_group() if group else None),
                "environment": {**os.environ, **(environment or {})},
                "files": imports.loaded(),
                **context.current(),
            }
            new = child.new
            limit = math.inf if seconds is None else seconds
            reply = child.ask(pickle.dumps((head, body.data), protocol=pickle.HIGHEST_PROTOCOL), limit)
            if reply.get("anew") and not new:  # what it did for other requests is in the way
                child.close()
                continue
            apart = _otherwise(apart, reply, body)
    if "stuck" in reply:
        raise pickling.CannotCross(reply["stuck"], reply["said_how"])
    if "error" in reply:
        raise _error(reply["error"], failed)
    return reply["value"], body


@contextlib.contextmanager
def _of_its_own(seconds: float | None) -> Iterator[None]:
    """Put the children that are kept aside where a request gets one of its own, and end that afterwards."""
    if seconds is None:
        yield
        return
    kept = dict(_children)
    _children.clear()
    try:
        yield
    finally:
        for child in _children.values():
            child.close()
        _children.clear()
        _children.update(kept)


def _otherwise(
    apart: pickling.SendingRules, reply: dict[str, Any], body: pickling.Parcel
) -> pickling.SendingRules | None:
    """Return how to send the request again after the child could not take a part of it; None if it could, or never
    will."""
    if "differs" in reply:
        if reply["differs"] in apart.by_value:
            raise pickling.CannotCross(
                f"{reply['differs'].replace(':', '.')} is not what its module makes it"
            )
        return dataclasses.replace(apart, by_value=apart.by_value | {reply["differs"]})
    part = reply.get("part", -1)
    if "stuck" not in reply or not 0 <= part < len(body.parts) or not body.parts[part]:
        return None
    pieces = body.parts[part]
    alone = frozenset([pieces[0].where] if len(pieces) == 1 else [""])  # which of them it is, one by one
    return None if alone <= apart.left else dataclasses.replace(apart, left=apart.left | alone)


def ready(first: tuple[str, ...] = (), start: Start = launcher.start) -> None:
    """Start the child if none is kept, so that it imports ``first`` while the caller does something else."""
    with _lock, contextlib.suppress(ChildError):  # whoever calls next is told
        # Whether one that is kept still serves, the call finds out.
        if sys.executable and () not in _children and not Nesting.loading and Nesting.depth < LIMIT:
            _child({}, first, start)


def close() -> None:
    """End every child; the next request starts a new one."""
    with _lock:
        for child in _children.values():
            child.close()
        _children.clear()


@atexit.register
def _leave() -> None:
    """End every child, also one that a thread waits for: that thread will not be waited for."""
    Child.leaving = True
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


def _child(environment: dict[str, str], first: tuple[str, ...], start: Start = launcher.start) -> Child:
    if Child.leaving:
        raise ChildError("this program is ending: no child process is started")
    key = tuple(sorted(environment.items()))
    written = context.versions_of_modules()
    child = _children.get(key)
    if child is not None:
        changed = any(child.known.get(name, when) != when for name, when in written.items())
        if changed or not child.alive:
            child.close()
            child = None
    if child is None:
        child = _children[key] = Child(
            "compile_lens.child.worker",
            {**os.environ, **environment, message.FIRST: " ".join(first)},
            start=start,
        )
    child.known.update(written)
    return child


def _error(answer: dict[str, Any], failed: Callable[[str, str], BaseException] | None) -> BaseException:
    original = exceptions.unpack(answer["raised"])
    if answer["capture"] and failed is not None:
        error = failed(answer["message"], answer["capture"])
        error.__cause__ = original
        return error
    ours = getattr(errors, answer["type"], None) if answer["module"] == errors.LensError.__module__ else None
    if ours is not None:
        return ours(answer["message"])  # type: ignore[no-any-return]
    if isinstance(original, Exception):
        return original
    return ChildError(f"{answer['type']} in the child process: {answer['message']}\n{answer['traceback']}")
