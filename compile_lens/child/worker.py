"""Server loop of the child process: read a request, run it, write the reply.

``child.py`` starts it through ``boot.py``. Requests are pickled, replies are JSON, both framed by ``message.py``.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import inspect
import io
import json
import os
import pickle
import select
import sys
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from ..errors import UsageError
from . import exceptions, imports, message, nesting
from .output import OutputWriter

IDLE_SECONDS = 1800.0
"""Seconds without a request after which the child exits."""

GC_THRESHOLD = 200_000
"""Allocations before a collection of the youngest generation; high, since the worker collects after each reply."""


def main(replies: int) -> None:
    """Serve until the caller closes the pipe or sends nothing for ``IDLE_SECONDS``."""
    gc.set_threshold(GC_THRESHOLD, 20, 100)
    serve(replies, _answer, _prepare)


def _prepare() -> None:
    with quick_imports(), warnings.catch_warnings():
        # The program may turn warnings into errors; those of libraries at import are not the program's.
        warnings.simplefilter("ignore")
        load()  # while the caller packs its request
        from . import placement as placement  # imports torch, so it belongs under quick_imports


Report = Callable[[dict[str, Any]], None]
"""Function that sends plain data to the caller before the reply."""


def serve(replies: int, answer: Callable[[bytes, Report], dict[str, Any]], ready: Callable[[], None]) -> None:
    """Call ``ready``, then answer requests until the caller closes the pipe or sends nothing for ``IDLE_SECONDS``.

    ``answer`` returns plain data. Its standard input is empty, and its output goes to the caller.
    """
    pipes = Pipes(os.dup(0), replies)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    output = OutputWriter()
    ready()
    output.flush()
    pipes.put(message.READY, b"")
    while (request := pipes.get()) is not None:
        number, data = request
        output.reset()
        reply = answer(data, functools.partial(pipes.report, number))
        output.flush()
        if not pipes.own:
            _end_of_fork(reply)
        pipes.put(number, json.dumps(reply).encode())
        gc.collect()  # here no caller waits for it


class Pipes:
    """The two pipes to the caller; a process forked from this one closes its copies."""

    def __init__(self, requests: int, replies: int) -> None:
        self._fds: tuple[int, ...] = (requests, replies)
        self._owner = os.getpid()
        os.register_at_fork(after_in_child=self._forked)

    @property
    def own(self) -> bool:
        """True in the process that the caller started, False in one that was forked from it."""
        return os.getpid() == self._owner

    def _forked(self) -> None:
        if not self.own:
            for fd in self._fds:
                with contextlib.suppress(OSError):  # the program closed it already
                    os.close(fd)
            self._fds = ()  # in a second fork these numbers may be other files

    def get(self) -> tuple[int, bytes] | None:
        """Return the next request's number and data; None at end of file or after ``IDLE_SECONDS``."""
        if not select.select([self._fds[0]], [], [], IDLE_SECONDS)[0]:
            return None
        head = self._exactly(message.HEAD.size)
        if len(head) < message.HEAD.size:
            return None
        number, length = message.head(head)
        return number, self._exactly(length)

    def put(self, number: int, data: bytes) -> None:
        """Send a reply."""
        unsent = memoryview(message.framed(number, data))
        while unsent:
            unsent = unsent[os.write(self._fds[1], unsent) :]

    def report(self, number: int, data: dict[str, Any]) -> None:
        """Send data before the reply; do nothing in a fork of this process."""
        if self.own:
            self.put(message.EARLY + number, json.dumps(data).encode())

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count and (part := os.read(self._fds[0], min(count - len(data), 1 << 20))):
            data += part
        return bytes(data)


def _end_of_fork(reply: dict[str, Any]) -> None:
    """Exit a process that the request's function forked: only its parent may reply."""
    error = reply.get("error")
    if error is not None:
        sys.stderr.write(error["traceback"])
    os._exit(0 if error is None else 1)


def load() -> None:
    """Import the modules that the caller named for its requests."""
    for name in os.environ.pop(message.FIRST, "").split():
        importlib.import_module(name)


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Speed up imports for the duration, without a change to the imported modules.

    A first request is mostly imports. Imports create many permanent objects; scanning them takes a fifth of the time,
    so collection is off meanwhile and they are frozen. Torch also asks ``inspect`` for the frame and the module of each
    operator that it registers: ``getframeinfo`` would read the whole source file for lines that torch does not use, and
    ``getmodule`` would search the files of all modules.
    """
    gc.disable()
    frameinfo, getmodule = inspect.getframeinfo, inspect.getmodule

    def module_of(it: Any, _filename: str | None = None) -> Any:
        module = sys.modules.get(it.f_globals.get("__name__", "")) if inspect.isframe(it) else None
        if module is not None and getattr(module, "__file__", None) == it.f_code.co_filename:
            return module
        return getmodule(it, _filename)

    inspect.getframeinfo = lambda frame, context=1: frameinfo(frame, 0)
    inspect.getmodule = module_of  # type: ignore[assignment]
    try:
        yield
    finally:
        inspect.getframeinfo, inspect.getmodule = frameinfo, getmodule
        gc.freeze()
        gc.enable()


def _answer(data: bytes, _report: Report) -> dict[str, Any]:
    from . import placement

    try:
        head, body = pickle.loads(data)
        _adopt_context(head)
        placement.begin()
        call = named(head["call"])
        part_ends: list[int] = []
        group, rank = head["group"]
        with named(group)(*rank) if rank else contextlib.nullcontext():
            try:
                within = named(head["within"])() if head["within"] else contextlib.nullcontext()
                with within, nesting.loading():
                    args = _unpack(body, part_ends)
            except placement.Differs as error:
                return {"differs": str(error)}
            except UsageError as error:
                retry = getattr(error, "retry_in_new_process", False)
                return {
                    "cannot_load": str(error),
                    "has_advice": True,
                    "part": len(part_ends) - 1,
                    "retry_in_new_process": retry,
                }
            except Exception as error:  # importing a module may raise anything
                message = f"{type(error).__name__} in the child: {error}"
                return {"cannot_load": message, "has_advice": False, "part": len(part_ends) - 1}
            return {"value": call(*args)}
    except BaseException as error:
        return {"error": _error(error), "retry_in_new_process": getattr(error, "retry_in_new_process", False)}
    finally:
        placement.restore()


def _unpack(body: bytes, part_ends: list[int]) -> Any:
    """Return the arguments in ``body``, and load the parts after them, such as operators that the code names.

    The end offset of each loaded part is appended to ``part_ends``.
    """
    from . import placement

    stream = io.BytesIO(body)
    loader = pickle.Unpickler(stream)
    sent = loader.load()
    part_ends.append(stream.tell())
    while stream.tell() < len(body):
        loader.load()
        part_ends.append(stream.tell())
    placement.check()
    return sent


def named(path: str) -> Any:
    """Return the object at ``"module:name"``."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _adopt_context(head: dict[str, Any]) -> None:
    """Use the caller's sys.path, argv, environment, working directory and in-memory source lines."""
    import linecache

    sys.path[:] = head["path"]
    sys.argv[:] = head["arguments"]
    importlib.invalidate_caches()
    _Environment.adopt(head["environment"])
    if head["folder"]:
        os.chdir(head["folder"])
    linecache.cache.update(head["lines"])
    # Functions of a script or of notebook cells have ``__main__`` as their module.
    main = types.ModuleType("__main__")
    sys.modules.update(dict.fromkeys(imports.SCRIPT, main))
    for name, values in head["modules"].items():
        module = sys.modules.get(name)
        if module is not None:
            vars(module).update(values)
    imports.CallerFinder.files, imports.CallerFinder.values = head["files"], head["modules"]


class _Environment:
    """The caller's environment variables; those that libraries set in this process stay."""

    last: ClassVar[dict[str, str]] = dict(os.environ)

    @classmethod
    def adopt(cls, now: dict[str, str]) -> None:
        for name in cls.last.keys() - now.keys():
            os.environ.pop(name, None)
        for name, value in now.items():
            if cls.last.get(name) != value:
                os.environ[name] = value
        cls.last = now


def _error(error: BaseException) -> dict[str, Any]:
    capture = getattr(error, "capture", None)
    original = error.__cause__ if capture is not None else error
    assert original is not None  # a capture that failed has its reason
    return {
        "type": type(error).__name__,
        "module": type(error).__module__,
        "message": str(error),
        "traceback": "".join(traceback.format_exception(error)),
        "raised": exceptions.pack(original),
        "capture": capture.to_json() if capture is not None else "",
    }
