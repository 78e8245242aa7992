"""Text in drawings: its width, shortening, and the short exact form of a tensor's type."""

from __future__ import annotations

import functools
import math
import re
import unicodedata

from compile_lens.record.graph import Node, Tensor

CHAR_WIDTH = 0.602
"""Advance of one character in ems of the common monospace fonts (DejaVu Sans Mono, Menlo, Courier: 0.60)."""

SHORT_DTYPES = {
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint64": "u64",
    "uint32": "u32",
    "uint16": "u16",
    "uint8": "u8",
    "bool": "b8",
    "complex32": "c32",
    "complex64": "c64",
    "complex128": "c128",
}
"""FX's short names; any other dtype keeps its full name."""

# XML 1.0 cannot represent these, not even as references; a lone surrogate has no UTF-8 form either.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BREAKS = re.compile(r"\s+")


# Invisible characters that reverse or hide neighbouring text.
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


def clean(text: str) -> str:
    """Return ``text`` with characters that XML and UTF-8 cannot represent replaced by U+FFFD, and invisible ones and
    those that change the direction of text as escapes."""
    return _HIDDEN.sub(_written_out, _NO_XML.sub("\ufffd", text))


def _written_out(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    """Return ``text`` cleaned, with each run of white space, line breaks included, as one space."""
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()  # nearly all texts, and there are many
    return _BREAKS.sub(" ", clean(text)).strip()


def columns(text: str) -> int:
    """Return the width of ``text`` in monospace columns: East Asian wide characters and emoji take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(1 if c < "\x80" else _columns_of(c) for c in text)


@functools.lru_cache(maxsize=10_000)
def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def width(text: str, size: float) -> float:
    """Return the width of ``text`` in pixels, in a monospace font of ``size`` pixels."""
    return math.ceil(columns(text) * CHAR_WIDTH * size * 10) / 10


def shorten(text: str, limit: int) -> str:
    """Return ``text`` on one line, in at most ``limit`` columns, with ``…`` for its omitted middle."""
    if len(text) <= limit and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()  # nearly all texts, and there are many
    # Only the ends remain, so a very long text need not be scanned whole. A column needs a character,
    # but a character may need no column (marks), so the factor is generous.
    if len(text) > 16 * limit:
        text = text[: 8 * limit] + text[-8 * limit :]
        cut = True
    else:
        cut = False
    text = one_line(text)
    if columns(text) <= limit and not cut:
        return text
    available = max(limit - 1, 0)
    head = _fitting(text, available - available // 2)
    tail = _fitting(text[::-1], available // 2)[::-1]
    return f"{head}…{tail}"


def _fitting(text: str, limit: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _columns_of(character)
        if used > limit or index >= 8 * max(limit, 1):
            return text[:index]
    return text


@functools.lru_cache(maxsize=10_000)
def tensor_text(tensor: Tensor) -> str:
    """Return type and shape in short exact form: ``f32[1000, 64]``, ``i64[]``, ``f32[s0, 64]``."""
    dtype = tensor.dtype.removeprefix("torch.")
    return f"{SHORT_DTYPES.get(dtype, dtype)}[{', '.join(str(size) for size in tensor.shape)}]"


def outputs_text(node: Node) -> str:
    """Return the text of an edge for the outputs of ``node``: one or two tensors, or their number; ``""`` if none is
    known."""
    if not node.outputs:
        return ""
    if len(node.outputs) > 2:
        return f"{len(node.outputs)} tensors"
    return ", ".join(tensor_text(t) for t in node.outputs)
