"""Output of the child on standard output and standard error, and its way to the caller's own."""

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

CHUNK = 1 << 16

FULL = 16
"""Chunks that a pipe holds at most."""

KEPT = 4000
"""Characters that are remembered, to be said if the child ends."""


class OutputReader:
    """The caller's end of one of the two: what comes is written to ``sys.stdout`` or ``sys.stderr`` of now."""

    def __init__(self, name: str, fd: int) -> None:
        self.name, self.fd = name, fd
        self.last = ""
        self.open = True
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        os.set_blocking(fd, False)

    def read(self, show: bool) -> int:
        """Take what is there, all that a pipe can hold, and write it if it is to be shown. Return its bytes."""
        size = 0
        for _ in range(FULL):  # a child that never stops to write must not hold the caller
            if not self.open:
                break
            try:
                data = os.read(self.fd, CHUNK)
            except BlockingIOError:
                break
            size += len(data)
            self.open = bool(data)
            text = self._decoder.decode(data, final=not data)
            self.last = (self.last + text)[-KEPT:]
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
    """The child's two descriptors. Python and C write to them at once, so that what they say stays in order."""

    def __init__(self) -> None:
        self._kept = [os.dup(fd) for fd in (1, 2)]
        self._flush = _unbuffered()

    def fresh(self) -> None:
        """Whatever an earlier request did to them, they are as they should be."""
        for kept, fd, name in zip(self._kept, (1, 2), NAMES):
            os.dup2(kept, fd)
            raw = io.FileIO(fd, "wb", closefd=False)
            stream = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)

    def flush(self) -> None:
        """Nothing is held back."""
        for name in NAMES:
            with contextlib.suppress(Exception):  # the program may have put anything there
                getattr(sys, name).flush()
        self._flush()


def _unbuffered() -> Callable[[], Any]:
    """C's streams write at once; how to flush them where that cannot be had."""
    try:
        library: Any = ctypes.CDLL(None)
        for name in ("stdout", "__stdoutp"):  # the second is its name in macOS
            with contextlib.suppress(ValueError):
                stream = ctypes.c_void_p.in_dll(library, name)
                library.setvbuf(stream, None, 2 if sys.platform != "win32" else 4, 0)
        return lambda: library.fflush(None)
    except (OSError, AttributeError, TypeError):
        return lambda: None
