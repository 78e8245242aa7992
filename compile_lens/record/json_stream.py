"""Streaming reader of foreign JSON: memory is bounded, whatever the size of the file."""

from __future__ import annotations

import codecs
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHUNK_BYTES = 1 << 20
"""Bytes read at a time."""

MAX_CHARACTERS = 1 << 22
"""Most characters of one element of the list, or of a value outside it."""

MAX_DEPTH = 150
"""Most levels of lists and objects in an element."""


_IN_NUMBERS = "0123456789.eE+-"  # and the empty text, at the end of the buffer
_SPACE = re.compile(r"[ \t\n\r]*")


class JsonStreamError(ValueError):
    """Error with the reason why a file is not read further."""


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python's limit
        raise JsonStreamError(f"a number in it has {len(digits):,} digits") from None


def elements(path: Path, key: str) -> Iterator[Any]:
    """Yield the elements of a JSON list, or of the list under ``key`` of an object, from a possibly compressed file
    (``.gz``).

    Raises:
        OSError: if the file cannot be read or decompressed.
        JsonStreamError: if it is not JSON, has no such list, or one of its values exceeds a limit.
    """
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rb") as file:
            yield from _Stream(file).elements(key)
    except (EOFError, zlib.error) as error:
        raise OSError(f"it cannot be unpacked: {error}") from None


class _Stream:
    def __init__(self, file: Any) -> None:
        self._file = file
        self._text, self._at, self._ended = "", 0, False
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._scan = json.JSONDecoder(parse_int=_whole, parse_constant=lambda _: None).raw_decode

    def elements(self, key: str) -> Iterator[Any]:
        first = self._next()
        if first == "[":
            yield from self._list()
        elif first == "{":
            for name in self._names():
                if name == key and self._peek() == "[":
                    self._at += 1
                    yield from self._list()
                    return
                self._value()
            raise JsonStreamError(f"it has no list {key!r}")
        else:
            raise JsonStreamError("it holds neither a list nor an object")

    def _names(self) -> Iterator[Any]:
        while self._peek() == '"':
            name = self._value()
            if self._next() != ":":
                raise JsonStreamError("it is not JSON")
            yield name
            if self._next() != ",":
                return

    def _list(self) -> Iterator[Any]:
        if self._peek() == "]":
            return
        while True:
            yield self._value()
            after = self._next()
            if after == "]":
                return
            if after != ",":
                raise JsonStreamError("it is not JSON, or is cut off")

    def _value(self) -> Any:
        self._peek()
        while True:
            try:
                value, end = self._scan(self._text, self._at)
            except RecursionError:
                raise JsonStreamError("a value in it is nested too deeply") from None
            except JsonStreamError:
                raise
            except ValueError:
                value, end = None, -1
            # A number may continue after the buffer.
            if end >= 0 and (self._text[end : end + 1] not in _IN_NUMBERS or self._ended):
                break
            if self._ended:
                raise JsonStreamError("it is not JSON, or is cut off")
            if len(self._text) - self._at > MAX_CHARACTERS:
                raise JsonStreamError(f"one value in it is longer than {MAX_CHARACTERS:,} characters")
            self._more(max(CHUNK_BYTES, len(self._text) - self._at))
        if end - self._at > MAX_CHARACTERS:
            raise JsonStreamError(f"one value in it is longer than {MAX_CHARACTERS:,} characters")
        self._at = end
        if is_deeper(value, MAX_DEPTH):
            raise JsonStreamError(f"a value in it is nested over {MAX_DEPTH} levels deep")
        return value

    def _peek(self) -> str:
        """Return the next character that is no white space; ``""`` at the end."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return self._text[self._at]
            if self._ended:
                return ""
            self._more(CHUNK_BYTES)

    def _next(self) -> str:
        character = self._peek()
        self._at += 1
        return character

    def _more(self, size: int) -> None:
        data = self._file.read(size)
        self._ended = not data
        try:
            text = self._decode.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise JsonStreamError("it is not UTF-8 text") from None
        self._text, self._at = self._text[self._at :] + text, 0


def is_deeper(value: Any, most: int) -> bool:
    """Return True if lists and objects are nested more than ``most`` levels deep."""
    level = [value]
    for _ in range(most + 1):
        containers = [item for item in level if isinstance(item, (dict, list))]
        level = [
            inner for item in containers for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not containers:
            return False
    return True
