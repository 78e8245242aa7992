"""Child processes of this program, kept between requests; a request is a function and its arguments."""

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
    make_sender: Any = None,
    seconds: float | None = None,
) -> tuple[Any, pickling.Parcel]:
    """Run ``function(*args)`` in the child. Return its result, plain data, and the parcel that carried ``args``.

    Args:
        function: ``"module:name"``.
        environment: extra environment variables, for settings that a library reads at import; such requests use another
            child.
        first: names of modules that a new child imports while the request is being packed.
        failed: rebuilds an error that carried a capture, from its message and the capture as JSON.
        within: ``"module:name"`` of a context manager in which the child loads ``args``.
        group: ``"module:name"`` of a context manager that takes rank and world size, used if the program has a process
            group.
        seconds: time limit; the request then gets a separate child that ends with it. ``TooLong`` is raised after it.
        make_sender: creates the sender of further kinds of objects, as in ``pickling.pack``.

    The function's output and exceptions reappear here. Raises ``CannotCross`` if the request cannot be sent; nothing
    has run then.

    In a child that is loading a request the function runs in that process itself; a module that captures when it is
    imported would otherwise start children without end.
    """
    if Nesting.loading:
        with nesting.loading(False):
            return worker.named(function)(*args), pickling.Parcel()
    nesting.check()
    if not sys.executable:
        raise pickling.CannotCross("this program has no Python executable to start another process with")
    with _lock, _separate_child(seconds):
        if any(child.busy for child in _children.values()):  # called in a signal handler or a stream's write
            raise pickling.CannotCross("this thread is already waiting for the child process")
        rules: pickling.SendingRules | None = pickling.SendingRules()
        while rules is not None:
            child = _child(environment or {}, first)  # it starts up while the request is packed
            body = pickling.pack(args, make_sender, rules)
            if not child.registered <= body.registered:  # a registration is no longer in this program
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
            if reply.get("retry_in_new_process") and not new:  # earlier requests left their mark
                child.close()
                continue
            rules = _next_rules(rules, reply, body)
    if "cannot_load" in reply:
        raise pickling.CannotCross(reply["cannot_load"], reply["has_advice"])
    if "error" in reply:
        raise _error(reply["error"], failed)
    return reply["value"], body


@contextlib.contextmanager
def _separate_child(seconds: float | None) -> Iterator[None]:
    """Give a request with a time limit a separate child and end that child afterwards."""
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


def _next_rules(
    rules: pickling.SendingRules, reply: dict[str, Any], body: pickling.Parcel
) -> pickling.SendingRules | None:
    """Return the rules for sending the request again after the child could not load a part; None if
    nothing was wrong, or no rule helps."""
    if "differs" in reply:
        if reply["differs"] in rules.by_value:
            raise pickling.CannotCross(
                f"{reply['differs'].replace(':', '.')} is not what its module makes it"
            )
        return dataclasses.replace(rules, by_value=rules.by_value | {reply["differs"]})
    part = reply.get("part", -1)
    if "cannot_load" not in reply or not 0 <= part < len(body.parts) or not body.parts[part]:
        return None
    pieces = body.parts[part]
    alone = frozenset([pieces[0].where] if len(pieces) == 1 else [""])  # "" means one at a time
    return None if alone <= rules.left else dataclasses.replace(rules, left=rules.left | alone)


def ready(first: tuple[str, ...] = (), start: Start = launcher.start) -> None:
    """Start the child if there is none, so that it imports ``first`` while the caller continues."""
    with _lock, contextlib.suppress(ChildError):  # the next call reports it
        # The call itself checks if an existing child still runs.
        if sys.executable and () not in _children and not Nesting.loading and Nesting.depth < LIMIT:
            _child({}, first, start)


def close() -> None:
    """End every child; the next request starts a new one."""
    with _lock:
        for child in _children.values():
            child.close()
        _children.clear()


@atexit.register
def _end_children() -> None:
    """End every child at exit, even one that a thread waits for: the program does not wait for it."""
    Child.leaving = True
    for child in list(_children.values()):
        child.end()


def _forked() -> None:
    """Reset the state in a forked process: the children belong to the parent, and no thread holds the lock."""
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
    module_times = context.versions_of_modules()
    child = _children.get(key)
    if child is not None:
        changed = any(child.module_times.get(name, when) != when for name, when in module_times.items())
        if changed or not child.alive:
            child.close()
            child = None
    if child is None:
        child = _children[key] = Child(
            "compile_lens.child.worker",
            {**os.environ, **environment, message.FIRST: " ".join(first)},
            start=start,
        )
    child.module_times.update(module_times)
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
