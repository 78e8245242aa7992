"""Dynamo's cache entries on a code object, and its treatment of the next frame of that code.

Torch can drop all entries of a code object, or mark one as dead; a dead one stays in the list and counts against the
limits. So if a capture left entries among the program's own, all are dropped, and the program's are put back, each with
its guards, code and backend.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterable
from typing import Any

from torch._C._dynamo import eval_frame

from .undo import Undo


@dataclasses.dataclass
class CompiledCode:
    """A code object that Dynamo compiled for a capture, and Dynamo's state of it from before.

    Attributes:
        state: Dynamo's own dictionary of the state of its frames (such as their number).
        before: a copy of that state from before the capture.
        dead: number of the program's own entries that were dead before.
        kept: the program's entries, while the list is dropped and rebuilt.
        dropped: True once the list is dropped.
        done: True once nothing of the capture is left there.
    """

    code: types.CodeType
    state: dict[str, Any]
    before: dict[str, Any]
    dead: int
    kept: list[_Saved] | None = None
    dropped: bool = False
    done: bool = False

    @classmethod
    def of(cls, code: types.CodeType, state: dict[str, Any]) -> CompiledCode:
        return cls(code, state, dict(state), sum(map(_is_dead, _entries(code))))

    @property
    def frame_id(self) -> int | None:
        """The frame number in its compile ids."""
        number = self.state.get("_id", self.before.get("_id"))
        return number if isinstance(number, int) else None

    @property
    def numbered(self) -> bool:
        """True if that number was assigned during the capture."""
        return self.frame_id is not None and "_id" not in self.before


def remember(visited: list[CompiledCode], code: types.CodeType, given: tuple[Any, ...]) -> CompiledCode:
    """Record a code object that Dynamo is about to compile for a capture; ``given`` are the arguments of Dynamo's
    callback."""
    known = next((v for v in visited if v.code is code), None)
    if known is None:
        state = next((a for a in given if isinstance(a, dict)), {})
        known = CompiledCode.of(code, state)
        visited.append(known)
    return known


def drop_entries(visited: CompiledCode, ours: Callable[[Any], bool]) -> None:
    """Drop the entries that a capture left on a code object; ``ours`` recognises its backends. The program's
    entries stay.

    It may be called again after an interrupt. If another thread is compiling the same code, or this torch cannot put
    entries back, ours stay as dead entries, which match nothing.
    """
    if visited.kept is None:
        alive = [e for e in _entries(visited.code) if not _is_dead(e)]
        kept = [e for e in alive if not ours(e.backend)]
        if _in_progress(visited.code) or ((kept or visited.dead) and not can_put_back()):
            for entry in alive:
                if ours(entry.backend):
                    _invalidate(entry)
            return
        visited.kept = [_Saved.of(e) for e in kept]
    if not visited.dropped:
        # Dynamo never evaluates a frame that it was told to skip, so only the entries must be preserved.
        eval_frame.reset_code(visited.code)
        _forget_resume_code(visited)
        visited.dropped = True
    there = {id(e.guard_manager) for e in _entries(visited.code)}
    for saved in reversed(visited.kept):  # torch inserts new entries at the front
        if id(saved.guard_manager) not in there:
            saved.put_back(visited)
    while sum(map(_is_dead, _entries(visited.code))) < visited.dead:
        _Saved.blank(visited.code).put_back(visited)
        _invalidate(_entries(visited.code)[0])
    visited.done = True


def _forget_resume_code(visited: CompiledCode) -> None:
    """Drop the cached resume functions of a function that the program never compiled (a copy of ours), since they keep
    it alive."""
    from torch._dynamo.resume_execution import ContinueExecutionCache

    cache = getattr(ContinueExecutionCache, "cache", {})
    if not visited.before and visited.code in cache:
        cache[visited.code] = {}


def _entries(code: types.CodeType) -> list[Any]:
    return list(eval_frame._debug_get_cache_entry_list(code))


def _is_dead(entry: Any) -> bool:
    return "Deleted" in type(entry.guard_manager).__name__


def _invalidate(entry: Any) -> None:
    """Mark an entry as dead, as torch does when an object that it guards on dies."""
    from torch._dynamo.guards import DeletedGuardManagerWrapper

    manager = entry.guard_manager
    state, entry_in_c = getattr(manager, "extra_state", None), getattr(manager, "cache_entry", None)
    if state is not None and entry_in_c is not None:
        state.invalidate(entry_in_c, DeletedGuardManagerWrapper("the capture that made it is over"))


def forget_skips(codes: Iterable[types.CodeType]) -> None:
    """Let Dynamo evaluate skipped frames of these codes again; codes with entries, or being compiled, stay
    unchanged."""
    in_progress = _codes_in_progress()
    for code in codes:
        if not _entries(code) and not any(code is other for other in in_progress):
            eval_frame.reset_code(code)


def _in_progress(code: types.CodeType) -> bool:
    """Return True if Dynamo is compiling a frame of the code on any thread."""
    return any(code is other for other in _codes_in_progress())


def _codes_in_progress() -> list[types.CodeType]:
    from torch._dynamo.convert_frame import CatchErrorsWrapper

    catch_errors = inspect.unwrap(CatchErrorsWrapper.__call__).__code__
    codes: list[types.CodeType] = []
    for top in sys._current_frames().values():
        frame: types.FrameType | None = top
        while frame is not None:
            if frame.f_code is catch_errors:
                codes.append(getattr(frame.f_locals.get("frame"), "f_code", catch_errors))
            frame = frame.f_back
    return codes


@functools.cache
def can_put_back() -> bool:
    """Return True if entries can be put back with this torch and Python; tried once, on a function of our own."""
    ran: list[int] = []

    def function(value: Any) -> None:
        ran.append(value)

    # A copy of the code: a watch makes Dynamo skip our functions and those nested in them.
    function.__code__ = function.__code__.replace()
    saved = _Saved.blank(function.__code__)
    try:
        saved.put_back(CompiledCode.of(function.__code__, {}))
        managers = [e.guard_manager for e in _entries(function.__code__)]
    except Exception:  # this torch may fail in any way; then entries cannot be put back
        return False
    return not ran and managers == [saved.guard_manager]


@dataclasses.dataclass
class _Saved:
    """One entry, kept while its list is dropped."""

    code: types.CodeType
    guard_manager: Any
    compile_id: Any
    backend: Any
    region: int

    @classmethod
    def of(cls, entry: Any) -> _Saved:
        region = getattr(entry, "isolate_recompiles_id", -1)
        return cls(entry.code, entry.guard_manager, entry.compile_id, entry.backend, region)

    @classmethod
    def blank(cls, code: types.CodeType) -> _Saved:
        from torch._dynamo.guards import GuardManagerWrapper

        return cls(code.replace(), GuardManagerWrapper(), None, None, -1)

    def put_back(self, visited: CompiledCode) -> None:
        """Begin a frame of the code and return this entry to Dynamo for it; the frame itself does not run."""
        reply = _Reply(self, visited)
        with Undo() as undo, undo:
            _in_region(undo, self.region)
            match_no_entry(undo)
            stop_frames_of(undo, visited.code, self.code)
            _begin_frame(undo, reply)


class _Reply:
    """A Dynamo callback that returns a saved entry."""

    def __init__(self, saved: _Saved, visited: CompiledCode) -> None:
        code = visited.code
        self.saved, self.before = saved, visited.before
        self._torchdynamo_orig_backend = saved.backend
        self.function, self.arguments = _callable_of(code)

    def __call__(self, frame: Any, entry: Any, frame_state: dict[str, Any]) -> Any:
        from torch._dynamo.types import ConvertFrameReturn, GuardedCode, wrap_guarded_code

        if frame.f_code is not self.function.__code__:  # the frame of the trace function that stops it
            return ConvertFrameReturn(apply_to_code=False)
        saved = self.saved
        frame_state.update(self.before)
        region = f"Torch-Compiled Region: {saved.compile_id}"
        return wrap_guarded_code(GuardedCode(saved.code, saved.guard_manager, saved.compile_id, region))


COMPILES, MATCHES_ONLY, RUNS_EAGERLY = "asked", "fitting", "left"


def next_frame_treatment(code: types.CodeType) -> str:
    """Return how Dynamo will treat the next frame of a code.

    ``COMPILES``: Dynamo is called if no entry matches. ``MATCHES_ONLY``: Dynamo is not called, and only a matching
    entry runs. ``RUNS_EAGERLY``: the frame runs eagerly, whatever its entries. ``""``: not known. Torch does not expose
    this, so a frame of the code that matches no entry is begun here and stopped before it runs.
    """
    probe = _Probe(code)
    lookups: list[bool] = []
    try:
        with Undo() as undo, undo:
            match_no_entry(undo, lookups.append)
            stop_frames_of(undo, code)
            stopped = _begin_frame(undo, probe)
    except Exception:  # this torch may fail in any way; then the treatment is unknown
        return ""
    if not stopped:
        return ""
    if probe.called:
        return COMPILES
    return MATCHES_ONLY if lookups else RUNS_EAGERLY


class _Probe:
    """A Dynamo callback that records whether it was called and compiles nothing. No entry belongs to its backend."""

    def __init__(self, code: types.CodeType) -> None:
        self.called = False
        self._torchdynamo_orig_backend = object()
        self.function, self.arguments = _callable_of(code)

    def __call__(self, frame: Any, entry: Any, frame_state: dict[str, Any]) -> Any:
        from torch._dynamo.types import ConvertFrameReturn

        self.called = self.called or frame.f_code is self.function.__code__
        return ConvertFrameReturn(apply_to_code=False)


def _begin_frame(undo: Undo, callback: _Reply | _Probe) -> bool:
    """Begin a frame with this Dynamo callback; return True if the frame was stopped before its first instruction."""
    before = eval_frame.get_eval_frame_callback()
    undo.add(eval_frame.set_eval_frame, before)
    eval_frame.set_eval_frame(callback)
    try:
        callback.function(*callback.arguments)
    except StoppedFrame:
        return True
    finally:  # at once, or Dynamo would call it for the frames of the undo steps
        eval_frame.set_eval_frame(before)
    return False


def _callable_of(code: types.CodeType) -> tuple[types.FunctionType, tuple[None, ...]]:
    """Return a function with this code, and arguments with which it can be called."""
    cells = tuple(types.CellType() for _ in code.co_freevars)
    function = types.FunctionType(code, {}, closure=cells)
    named = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    function.__kwdefaults__ = dict.fromkeys(named)
    return function, (None,) * code.co_argcount


class StoppedFrame(BaseException):
    """Raised to end a frame before its first instruction."""


def stop_frames_of(undo: Undo, *codes: types.CodeType) -> Callable[..., None]:
    """Stop every frame of these codes on this thread before it runs; return the trace function that does so, since
    Python calls it in a frame of its own."""

    stopped = frozenset(map(id, codes))

    def stop(frame: types.FrameType, event: str, arg: Any) -> None:
        if id(frame.f_code) in stopped:
            raise StoppedFrame

    undo.add(sys.settrace, sys.gettrace())
    sys.settrace(stop)
    return stop


def match_no_entry(undo: Undo, on_lookup: Callable[[bool], Any] = bool) -> None:
    """Let no entry match a frame on this thread, even if its guards pass; call ``on_lookup`` for each lookup,
    with True if one would match."""
    me = threading.get_ident()

    def reject(hit: bool) -> bool:
        if threading.get_ident() == me:
            on_lookup(hit)
            return False
        return all(b(hit) for b in other_hooks if b is not None)

    other_hooks: list[Any] = []
    undo.add(lambda: [eval_frame.set_guard_complete_hook(before) for before in other_hooks])
    other_hooks.append(eval_frame.set_guard_complete_hook(reject))


def _in_region(undo: Undo, region: int) -> None:
    """Put entries into the region ``region``, if this torch isolates compiles in regions."""
    enter = getattr(eval_frame, "set_eval_frame_isolate_recompiles_id", None)
    if enter is not None:
        undo.add(enter, eval_frame.get_eval_frame_isolate_recompiles_id())
        enter(region)
