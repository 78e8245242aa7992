"""Watching of a whole program: ``with compile_lens.watch() as program:`` and ``@compile_lens.watch``."""

from __future__ import annotations

import datetime
import functools
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any, TypeVar, overload

from ..errors import UsageError
from ..record.program import ProgramRecord
from ..results.program import Program

_F = TypeVar("_F", bound=Callable[..., Any])


class WatchContext:
    """A watch: a context manager that returns a ``Program``, or a decorator that watches each call.

    Attributes:
        program: the program observed so far; for a decorated function that of its last call.
    """

    def __init__(
        self,
        name: str = "",
        arguments: tuple[str, ...] = (),
        kept: Callable[[ProgramRecord], None] | None = None,
        whole: bool = False,
        keeps: bool = True,
    ) -> None:
        self._keeps = keeps
        self._name = name
        self._arguments = arguments
        self._kept = kept
        self._whole = whole
        self._watch: Any = None
        self.program: Program | None = None

    def __enter__(self) -> Program:
        if self._watch is not None:
            raise UsageError("this watch is open already; call compile_lens.watch() for another one")
        from .._torch.watch.program_watch import ProgramWatch

        try:
            self._watch = watch = ProgramWatch(self._whole, keeps=self._keeps)
            records = _Records(watch, self._name or _where(), self._arguments)
            self.program = Program(records.record, records.kept)
            kept = self._kept
            watch.open(None if kept is None else lambda seen: kept(records.of(seen, "")))
            return self.program
        except BaseException as error:  # an interrupt: ``__exit__`` is not called
            self.close(ending(error))
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.close(ending(error) if error is not None else "the block ended")

    def close(self, ended: str) -> None:
        """Stop watching; ``ended`` is the reason. It may be called again."""
        watch = self._watch
        if watch is not None:
            try:
                watch.close(ended)
            finally:  # again, in case an interrupt stopped the first call
                watch.close(ended)
                self._watch = None

    def __call__(self, function: _F) -> _F:
        if not callable(function):
            raise UsageError(f"watch decorates a function, not {type(function).__name__}: {function!r}")
        if any(asks(function) for asks in _RUNS_LATER):
            raise UsageError(
                f"watch cannot decorate {getattr(function, '__qualname__', function)!r}, a generator or coroutine: its "
                "call ends before it runs; write `with compile_lens.watch() as program:` around what runs it"
            )
        name = self._name or getattr(function, "__qualname__", type(function).__name__)

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            watching = WatchContext(name)
            with watching as program:
                vars(watched)["program"] = program
                return function(*args, **kwargs)

        return watched  # type: ignore[return-value]


@overload
def watch() -> WatchContext: ...
@overload
def watch(function: _F) -> _F: ...
def watch(function: Any = None) -> Any:
    """Watch what ``torch.compile`` does in a block of a program, without changing it.

    ``with compile_lens.watch() as program:`` observes every frame evaluation of Dynamo, in this thread and in threads
    that it starts: graphs, graph breaks, recompiles with the failed guard, code that ran eagerly, each source line,
    compile times. Backend, settings, caches and results are not changed. ``print(program)`` shows the result,
    ``program.save("program.json")`` saves it.

    ``@compile_lens.watch`` on a function watches each of its calls; ``function.program`` is that of the last call.

    Watching lowers nothing itself; ``compile_lens.capture`` examines one function in depth.

    Args:
        function: the function to decorate; without it a ``WatchContext`` is returned.

    Raises:
        UsageError: ``function`` is not callable, or its call ends before it runs (a generator, ``async def``).
    """
    return WatchContext() if function is None else WatchContext()(function)


_RUNS_LATER = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)


class _Records:
    """Records of a watch: a new one on each request while it is open, then the final one."""

    def __init__(self, watch: Any, name: str, arguments: tuple[str, ...]) -> None:
        self._watch = watch
        self._name = name
        self._arguments = arguments
        self._created = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        self._last: ProgramRecord | None = None
        self._kept: list[Any] = []

    def record(self) -> ProgramRecord:
        if self._last is not None:
            return self._last
        ended = self._watch.ended
        record = self.of(self._watch.observations(), ended or "")
        if ended is not None:
            self._kept = self._watch.kept()
            self._last, self._watch = record, None  # release the other observations
        return record

    def kept(self, number: int) -> tuple[Any, list[str]]:
        """Return the retained graph of this number, or None, and the code that was observed for it."""
        graphs = self._kept if self._watch is None else self._watch.kept()
        return graphs[number] if number < len(graphs) else (None, [])

    def of(self, seen: Any, ended: str) -> ProgramRecord:
        """Return the record of a watch's observations."""
        from ..engine.environment import environment
        from ..engine.record import in_cells

        record = ProgramRecord(
            name=self._name,
            arguments=self._arguments,
            environment=environment("", ""),
            ended=ended,
            created=self._created,
            **vars(seen),
        )
        return in_cells(record)


def ending(error: BaseException) -> str:
    """Return a description of the error that ended a program."""
    if isinstance(error, SystemExit):
        return f"exit {error.code!r}"
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _where() -> str:
    """Return the file and line, outside of this package, where the watch was opened."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    if frame is None:
        return ""
    from ..engine.record import shown

    return f"{shown(frame.f_code.co_filename)}:{frame.f_lineno}"
