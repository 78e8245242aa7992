"""Forwarding of the child's standard output and standard error to the caller's."""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import io
import os
import sys
from collections.abc import Callable
from typing import Any

NAMES = ("stdout", "stderr")

CHUNK_BYTES = 1 << 16

MAX_CHUNKS = 16
"""Maximum chunks read at once; a full pipe holds no more."""

KEPT_CHARACTERS = 4000
"""Characters of the last output that an error reports if the child ends."""


class OutputReader:
    """The caller's end of one output pipe; it writes to the current ``sys.stdout`` or ``sys.stderr``."""

    def __init__(self, name: str, fd: int) -> None:
        self.name, self.fd = name, fd
        self.last = ""
        self.open = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(fd, False)

    def read(self, show: bool) -> int:
        """Read the available output, at most one full pipe, write it if ``show`` is set, and return its size in
        bytes."""
        size = 0
        for _ in range(MAX_CHUNKS):  # a child that never stops writing must not block the caller
            if not self.open:
                break
            try:
                data = os.read(self.fd, CHUNK_BYTES)
            except BlockingIOError:
                break
            size += len(data)
            self.open = bool(data)
            text = self._decoder.decode(data, final=not data)
            self.last = (self.last + text)[-KEPT_CHARACTERS:]
            if show and text:
                _write(getattr(sys, self.name), text)
        return size


def _write(stream: Any, text: str) -> None:
    if stream is None:  # a program without a console
        return
    try:
        stream.write(text)
    except UnicodeEncodeError:
        encoding = getattr(stream, "encoding", None) or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


# In the child ----------------------------------------------------------------------------------------------


class OutputWriter:
    """The child's standard output and error. Python and C write without buffers, so that their output stays in
    order."""

    def __init__(self) -> None:
        self._kept = [os.dup(fd) for fd in (1, 2)]
        self._flush = _unbuffered()

    def reset(self) -> None:
        """Restore both streams, whatever an earlier request did to them."""
        for kept, fd, name in zip(self._kept, (1, 2), NAMES):
            os.dup2(kept, fd)
            raw = io.FileIO(fd, "wb", closefd=False)
            stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)

    def flush(self) -> None:
        """Flush the streams of Python and of C."""
        for name in NAMES:
            with contextlib.suppress(Exception):  # the program may have replaced the stream
                getattr(sys, name).flush()
        self._flush()


def _unbuffered() -> Callable[[], Any]:
    """Turn off buffering in C's streams and return a function that flushes them."""
    try:
        library: Any = ctypes.CDLL(None)
        for name in ("stdout", "__stdoutp"):  # the second is its name in macOS
            with contextlib.suppress(ValueError):
                stream = ctypes.c_void_p.in_dll(library, name)
                library.setvbuf(stream, None, 2 if sys.platform != "win32" else 4, 0)
        return lambda: library.fflush(None)
    except (OSError, AttributeError, TypeError):
        return lambda: None
