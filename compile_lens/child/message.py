"""Frames of requests and replies: a mark, a number and a length, then the bytes.

A reply has the number of its request. Nothing else is ever taken for one: not bytes that the program wrote to a
descriptor of ours, not what a process that was forked from the child says.
"""

from __future__ import annotations

import struct

HEAD = struct.Struct("<8sQQ")
MARK = b"\x93lens\r\n\x1a"

FIRST = "COMPILE_LENS_FIRST"
"""The variable that names the modules which a child imports while it waits for its first request."""

EARLY = 1 << 63
"""Added to the number of a request: what its child reports before the reply."""

READY = 0
"""The number of the first reply, which answers nothing: the child is ready."""


class Broken(Exception):
    """The bytes received are no message, or not the expected one."""


def framed(number: int, data: bytes) -> bytes:
    """The bytes of a message."""
    return HEAD.pack(MARK, number, len(data)) + data


def head(data: bytes | bytearray) -> tuple[int, int]:
    """Number and length from the first bytes of a message. Raises ``Broken``."""
    mark, number, length = HEAD.unpack_from(data)
    if mark != MARK:
        raise Broken("it wrote something else where replies are read")
    return number, length


def taken(data: bytearray, *numbers: int) -> tuple[int, bytes] | None:
    """The next message and which of these numbers it has, if all of it is there; it is removed from ``data``. Raises
    ``Broken``."""
    if len(data) < HEAD.size:
        return None
    received, length = head(data)
    if received not in numbers:
        raise Broken("it answered another request than the one that it was sent")
    if len(data) < HEAD.size + length:
        return None
    body = bytes(data[HEAD.size : HEAD.size + length])
    del data[: HEAD.size + length]
    return received, body
