"""Server loop of the child process: it reads requests, runs each, and writes the result.

Started by ``child.py`` through ``boot.py``. ``message.py`` has the frames of requests, which are pickled, and of
replies, which are JSON.
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

IDLE = 1800.0
"""Seconds without a request after which the child ends by itself."""

YOUNG = 200_000
"""Objects that may be made before the collector looks at them, in a process that does nothing else."""


def main(replies: int) -> None:
    """Serve until the caller closes the pipe, or is silent for long."""
    gc.set_threshold(YOUNG, 20, 100)
    serve(replies, _answer, _prepare)


def _prepare() -> None:
    with quick_imports(), warnings.catch_warnings():
        warnings.simplefilter(
            "ignore"
        )  # what libraries say of themselves is not of the program, which may forbid it
        load()  # while the caller makes its request
        from . import placement as placement  # it imports torch: not before imports are quick


Report = Callable[[dict[str, Any]], None]
"""Sends plain data before the answer, to a caller that reads them."""


def serve(replies: int, answer: Callable[[bytes, Report], dict[str, Any]], ready: Callable[[], None]) -> None:
    """Answer each request, once ``ready`` has returned, until the caller closes the pipe or is silent for long.

    An answer is plain data. Standard input is empty for it, and what it prints goes to the caller.
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
        output.fresh()
        reply = answer(data, functools.partial(pipes.report, number))
        output.flush()
        if not pipes.own:
            _end_of_fork(reply)
        pipes.put(number, json.dumps(reply).encode())
        gc.collect()  # nobody waits for it now


class Pipes:
    """The two pipes to the caller. They are this process's alone: one that is forked from it has none."""

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
                with contextlib.suppress(OSError):  # the program closed what was not its own
                    os.close(fd)
            self._fds = ()  # a fork of the fork may have others of these numbers

    def get(self) -> tuple[int, bytes] | None:
        """The next request and its number; ``None`` when there will be no more."""
        if not select.select([self._fds[0]], [], [], IDLE)[0]:
            return None
        head = self._exactly(message.HEAD.size)
        if len(head) < message.HEAD.size:
            return None
        number, length = message.head(head)
        return number, self._exactly(length)

    def put(self, number: int, data: bytes) -> None:
        """Send a reply."""
        left = memoryview(message.framed(number, data))
        while left:
            left = left[os.write(self._fds[1], left) :]

    def report(self, number: int, data: dict[str, Any]) -> None:
        """Send what is known before the reply; nothing in a process that was forked from this one."""
        if self.own:
            self.put(message.EARLY + number, json.dumps(data).encode())

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        while len(data) < count and (part := os.read(self._fds[0], min(count - len(data), 1 << 20))):
            data += part
        return bytes(data)


def _end_of_fork(reply: dict[str, Any]) -> None:
    """The function forked, and this is the other process: the request is not its own to answer, so it ends here."""
    error = reply.get("error")
    if error is not None:
        sys.stderr.write(error["traceback"])
    os._exit(0 if error is None else 1)


def load() -> None:
    """Import what the caller says that its requests will need."""
    for name in os.environ.pop(message.FIRST, "").split():
        importlib.import_module(name)


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """For the duration, libraries are imported in the least time; what they are afterwards is the same.

    A first request is mostly imports. They make much that stays, so looking for garbage meanwhile and later, among it,
    takes a fifth of the time. And torch asks for the place of each operator that it registers, for which the standard
    library also reads and splits the file that it is in, to give lines of text that torch does not use; and for the
    module of it, for which it looks through the files of all modules.
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
        done: list[int] = []
        group, rank = head["group"]
        with named(group)(*rank) if rank else contextlib.nullcontext():
            try:
                within = named(head["within"])() if head["within"] else contextlib.nullcontext()
                with within, nesting.loading():
                    args = _unpack(body, done)
            except placement.Differs as error:
                return {"differs": str(error)}
            except UsageError as error:
                anew = getattr(error, "anew", False)
                return {"stuck": str(error), "said_how": True, "part": len(done) - 1, "anew": anew}
            except Exception as error:  # a module that fails to import here, whatever it raises
                message = f"{type(error).__name__} in the child: {error}"
                return {"stuck": message, "said_how": False, "part": len(done) - 1}
            return {"value": call(*args)}
    except BaseException as error:
        return {"error": _error(error), "anew": getattr(error, "anew", False)}
    finally:
        placement.restore()


def _unpack(body: bytes, done: list[int]) -> Any:
    """Return what was sent; what follows it in ``body`` only has to be loaded, such as operators that the code names.

    ``done`` gets the end of each part that was loaded.
    """
    from . import placement

    stream = io.BytesIO(body)
    loader = pickle.Unpickler(stream)
    sent = loader.load()
    done.append(stream.tell())
    while stream.tell() < len(body):
        loader.load()
        done.append(stream.tell())
    placement.check()
    return sent


def named(path: str) -> Any:
    """Return the object at ``"module:name"``."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def _adopt_context(head: dict[str, Any]) -> None:
    """Search for modules where the caller does, stand where it stands, and know the texts that only it has."""
    import linecache

    sys.path[:] = head["path"]
    sys.argv[:] = head["arguments"]
    importlib.invalidate_caches()
    _Environment.follow(head["environment"])
    if head["folder"]:
        os.chdir(head["folder"])
    linecache.cache.update(head["lines"])
    # Functions of a script or of notebook cells belong to a module of this name.
    main = types.ModuleType("__main__")
    sys.modules.update(dict.fromkeys(imports.SCRIPT, main))
    for name, values in head["modules"].items():
        module = sys.modules.get(name)
        if module is not None:
            vars(module).update(values)
    imports.AsThere.files, imports.AsThere.values = head["files"], head["modules"]


class _Environment:
    """The caller's variables. What libraries set here for themselves stays."""

    last: ClassVar[dict[str, str]] = dict(os.environ)

    @classmethod
    def follow(cls, now: dict[str, str]) -> None:
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
