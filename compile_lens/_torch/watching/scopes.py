"""Whose compile it is: which watches are open for a thread.

A watch sees what the thread that opened it compiles, and the threads started from there. A thread that no watch
started (of a pool that was there before, or one of autograd's) is seen where there is no doubt whose it is: where one
watch is open, or several that stand in each other.
"""

from __future__ import annotations

import threading
import time
import weakref

from ..ground import hooks
from .draft import Scope, Visiting


class _Local(threading.local):
    scopes: tuple[Scope, ...] | None = None
    visiting: list[Visiting | None] | None = None


_local = _Local()
_open: list[Scope] = []
_started: weakref.WeakKeyDictionary[threading.Thread, tuple[Scope, ...]] = weakref.WeakKeyDictionary()
_owner: dict[int, tuple[Scope, ...]] = {}
"""Of the number of a frame that Dynamo compiles, whose it is: its backward may be compiled in another thread."""


def enter(whole: bool = False) -> Scope:
    """Open a watch on this thread, inside of those that are open there; or one of the ``whole`` process."""
    scope = Scope(() if whole else _here(), whole)
    if not whole:
        _local.scopes = (*scope.parents, scope)
    _open.append(scope)
    return scope


def leave(scope: Scope) -> None:
    """Close a watch; it may be repeated."""
    scope.open = False
    if scope.ended is None:
        scope.ended = time.perf_counter()
    if scope in _open:
        _open.remove(scope)
    if not _open:
        _owner.clear()
    _local.scopes = tuple(s for s in _here() if s.open)


def owners(who: str = "") -> tuple[Scope, ...]:
    """The open watches that see what this thread does now; none while a capture works on it.

    ``who`` is doing something: where it cannot be told for which watch, each of them notes it.
    """
    if not _open or hooks.capturing():
        return ()
    found = tuple(s for s in _open if s.whole)
    own = tuple(s for s in _here() if s.open)
    if own:
        return (*found, *own)
    others = [s for s in _open if not s.whole]
    inner = max(others, key=lambda s: len(s.parents), default=None)
    if all(s is inner or (inner is not None and s in inner.parents) for s in others):
        return (*found, *others)
    if who:
        for scope in others:
            scope.doubtful[who] += 1
    return found


def own_frame(frame_id: int, scopes: tuple[Scope, ...]) -> None:
    """Remember whose a frame is."""
    _owner[frame_id] = scopes


def owners_of(frame_id: int | None) -> tuple[Scope, ...]:
    """The open watches that saw Dynamo compile a frame; those of this thread where none did."""
    found = tuple(s for s in _owner.get(-1 if frame_id is None else frame_id, ()) if s.open)
    return found or owners()


def _here() -> tuple[Scope, ...]:
    """The watches that were opened on this thread, or on the one that started it."""
    scopes = _local.scopes
    if scopes is None:
        mine = threading.get_ident()
        # Not ``current_thread``, which would make an object for a thread that is not Python's.
        thread = next((t for t in threading.enumerate() if t.ident == mine), None)
        scopes = _local.scopes = _started.get(thread, ()) if thread is not None else ()
    return scopes


def started(thread: threading.Thread) -> None:
    """This thread starts another: what that one compiles is seen by the same watches."""
    found = tuple(s for s in _here() if s.open)
    if found:
        _started[thread] = found


def current() -> Visiting | None:
    """What Dynamo is asked about on this thread, if a watch sees it."""
    stack = _local.visiting
    return stack[-1] if stack else None


def asked() -> bool:
    """Whether Dynamo is asked about a frame on this thread, be it one that no watch sees."""
    return bool(_local.visiting)


def push(visiting: Visiting | None) -> None:
    """Dynamo begins to look at a frame; ``None``: at one that no watch sees."""
    if _local.visiting is None:
        _local.visiting = []
    _local.visiting.append(visiting)


def pop() -> None:
    """Dynamo is done with the last frame."""
    if _local.visiting:
        _local.visiting.pop()
