"""Frames of requests and replies: a magic mark, a number and a length, then the payload.

A reply carries the number of its request. Mark and number tell it from stray bytes that the program writes to the
descriptor.
"""

from __future__ import annotations

import struct

HEAD = struct.Struct("<8sQQ")
MARK = b"\x93lens\r\n\x1a"

FIRST = "COMPILE_LENS_FIRST"
"""Environment variable with the names of modules that a child imports before its first request."""

EARLY = 1 << 63
"""Offset added to a request's number to mark a report that precedes the reply."""

READY = 0
"""Number of the message by which a child reports that it is ready."""


class ProtocolError(Exception):
    """The received bytes are not a message, or not the expected one."""


def framed(number: int, data: bytes) -> bytes:
    """Return the bytes of a message."""
    return HEAD.pack(MARK, number, len(data)) + data


def head(data: bytes | bytearray) -> tuple[int, int]:
    """Return the number and the length in a message's header. Raises ``ProtocolError``."""
    mark, number, length = HEAD.unpack_from(data)
    if mark != MARK:
        raise ProtocolError("it wrote something other than a reply")
    return number, length


def next_message(data: bytearray, *numbers: int) -> tuple[int, bytes] | None:
    """Remove the next message from ``data`` and return its number and payload; None if it is incomplete. Raises
    ``ProtocolError`` if its number is not in ``numbers``."""
    if len(data) < HEAD.size:
        return None
    received, length = head(data)
    if received not in numbers:
        raise ProtocolError("it answered a request other than the one it was sent")
    if len(data) < HEAD.size + length:
        return None
    body = bytes(data[HEAD.size : HEAD.size + length])
    del data[: HEAD.size + length]
    return received, body
