"""What runs in the child process: reads requests, runs each, writes what came of it.

Started by ``process.py`` as ``python -m compile_lens.child.worker``. A request is a length and pickled bytes, a reply a
length and JSON.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import importlib
import inspect
import io
import json
import os
import pickle
import select
import struct
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any, BinaryIO, ClassVar

IDLE = 1800.0
"""Seconds without a request after which the child ends by itself."""

AT_ONCE = ("compile_lens._torch.targets.early", "compile_lens.capture")
"""What every request needs."""

YOUNG = 200_000
"""Objects that may be made before the collector looks at them, in a process that does nothing else."""

LENGTH = struct.Struct("<Q")


def main() -> None:
    """Serve until the caller closes the pipe, or is silent for long."""
    requests = os.fdopen(os.dup(0), "rb", 0)
    replies = os.fdopen(os.dup(1), "wb", 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a library prints must not end up among the replies
    gc.set_threshold(YOUNG, 20, 100)
    with quick_imports():
        load()  # while the caller makes its request
    while (data := _read(requests)) is not None:
        reply = json.dumps(_served(data)).encode()
        replies.write(LENGTH.pack(len(reply)) + reply)
        gc.collect()  # nobody waits for it now


def load() -> None:
    """Import what every request needs."""
    for name in AT_ONCE:
        importlib.import_module(name)


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """For the duration, libraries are imported in the least time; what they are afterwards is the same.

    A first request is mostly imports. They make much that stays, so looking for garbage meanwhile and later, among it,
    takes a fifth of the time. And torch asks for the place of each operator that it registers, for which the standard
    library also reads and splits the file that it is in, to give lines of text that torch does not use.
    """
    gc.disable()
    original = inspect.getframeinfo
    inspect.getframeinfo = lambda frame, context=1: original(frame, 0)
    try:
        yield
    finally:
        inspect.getframeinfo = original
        gc.freeze()
        gc.enable()


def _read(requests: BinaryIO) -> bytes | None:
    if not select.select([requests], [], [], IDLE)[0]:
        return None
    head = _exactly(requests, LENGTH.size)
    return _exactly(requests, LENGTH.unpack(head)[0]) if len(head) == LENGTH.size else None


def _exactly(source: BinaryIO, count: int) -> bytes:
    parts = []
    while count and (part := source.read(count)):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def _served(data: bytes) -> dict[str, Any]:
    said, warned = io.StringIO(), io.StringIO()
    reply: dict[str, Any]
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(warned):
        try:
            head, body = pickle.loads(data)
            _look_like(head)
            module, _, name = head["call"].partition(":")
            call = getattr(importlib.import_module(module), name)
            try:
                args = pickle.loads(body)
            except Exception as error:  # a module that fails to import here, whatever it raises
                reply = {"stuck": f"{type(error).__name__} in the child: {error}"}
            else:
                reply = {"value": call(*args)}
        except BaseException as error:
            reply = {"error": _error(error)}
    return {**reply, "stdout": said.getvalue(), "stderr": warned.getvalue()}


def _look_like(head: dict[str, Any]) -> None:
    """Search for modules where the caller does, stand where it stands, and know the texts that only it has."""
    import linecache

    sys.path[:] = head["path"]
    importlib.invalidate_caches()
    if head["folder"]:
        os.chdir(head["folder"])
    linecache.cache.update(head["lines"])
    # Functions of a script or of notebook cells belong to a module of this name.
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    for name, values in head["modules"].items():
        module = sys.modules.get(name)
        if module is not None:
            vars(module).update(values)
    _Late.values = head["modules"]
    if _Late not in sys.meta_path:
        sys.meta_path.insert(0, _Late)


class _Late:
    """Sets the plain globals of a module that is imported while a request runs."""

    values: ClassVar[dict[str, dict[str, Any]]] = {}

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> Any:
        if name not in cls.values:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        real = spec.loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            real(module)
            vars(module).update(cls.values.get(name, {}))

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _error(error: BaseException) -> dict[str, Any]:
    capture = getattr(error, "capture", None)
    original = error.__cause__ if capture is not None else error
    try:
        packed = base64.b64encode(pickle.dumps(original)).decode()
        pickle.loads(base64.b64decode(packed))
    except Exception:  # an exception of the program's that does not survive pickling: its text does
        packed = ""
    return {
        "type": type(error).__name__,
        "module": type(error).__module__,
        "message": str(error),
        "original": type(original).__name__,
        "said": str(original),
        "traceback": "".join(traceback.format_exception(error)),
        "packed": packed,
        "capture": capture.to_json() if capture is not None else "",
    }


if __name__ == "__main__":
    # ``-m`` made this file ``__main__``, a name that requests need for the caller's own.
    importlib.import_module("compile_lens.child.worker").main()
