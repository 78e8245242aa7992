"""Reads, reduces and checks the PNGs of this folder."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

SIGNATURE = b"\x89PNG\r\n\x1a\n"
MOST_COLOURS = 256
EXACT = 160
"""Colours of a reduced picture that are preserved exactly: backgrounds, lines and inks. The rest blends letters."""

Pixels = npt.NDArray[np.uint8]


def reduced(png: bytes) -> bytes:
    """Return the same picture in 256 colours, packed. Takes a browser's output: 8 bits, RGB or RGBA."""
    pixels = decoded(png)
    height, width, _ = pixels.shape
    flat = pixels.reshape(-1, 3).astype(np.uint32)
    codes = flat[:, 0] << 16 | flat[:, 1] << 8 | flat[:, 2]
    colours, numbers, counts = np.unique(codes, return_inverse=True, return_counts=True)
    split = np.stack([colours >> 16, colours >> 8 & 255, colours & 255], axis=1).astype(np.int32)
    palette = _palette(split, counts)
    distances = ((split[:, None, :] - palette[None, :, :]) ** 2).sum(axis=2)
    indexed = distances.argmin(axis=1).astype(np.uint8)[numbers].reshape(height, width)
    rows = b"".join(b"\0" + row.tobytes() for row in indexed)
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    return joined(
        [(b"IHDR", header), (b"PLTE", palette.astype(np.uint8).tobytes()), (b"IDAT", zlib.compress(rows, 9))]
    )


def _palette(colours: npt.NDArray[np.int32], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    """Return the most frequent colours, and the means of boxes of the others: median cut (Heckbert 1982)."""
    order = np.argsort(-counts, kind="stable")
    if len(order) <= MOST_COLOURS:
        return colours
    kept, others = order[:EXACT], order[EXACT:]
    boxes = [others]
    while len(boxes) < MOST_COLOURS - EXACT:
        spans = [np.ptp(colours[box], axis=0) for box in boxes]
        widest = max(range(len(boxes)), key=lambda i: int(spans[i].max()))
        box = boxes.pop(widest)
        box = box[np.argsort(colours[box][:, spans[widest].argmax()], kind="stable")]
        boxes += [box[: len(box) // 2], box[len(box) // 2 :]]
    means = [np.average(colours[box], axis=0, weights=counts[box]).round() for box in boxes]
    return np.concatenate([colours[kept], np.array(means, dtype=np.int32)])


def decoded(png: bytes) -> Pixels:
    """Return its pixels, without their opacity: height × width × 3."""
    blocks = list(chunks(png))
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", dict(blocks)[b"IHDR"])
    if depth != 8 or kind not in (2, 6) or interlaced:
        raise ValueError(f"is of a form that no browser writes: {depth} bits, colour type {kind}")
    wide = 4 if kind == 6 else 3
    data = zlib.decompress(b"".join(body for name, body in blocks if name == b"IDAT"))
    stride = width * wide
    rows = []
    above = bytearray(stride)
    for at in range(0, height * (stride + 1), stride + 1):
        above = _unfiltered(data[at], bytearray(data[at + 1 : at + 1 + stride]), above, wide)
        rows.append(above)
    whole = np.frombuffer(b"".join(rows), dtype=np.uint8)
    return whole.reshape(height, width, wide)[:, :, :3]


def _unfiltered(filter_: int, row: bytearray, above: bytearray, wide: int) -> bytearray:
    """Return a row of bytes as it was before its filter (PNG specification, section 9)."""
    if filter_ == 1:
        for i in range(wide, len(row)):
            row[i] = (row[i] + row[i - wide]) & 255
    elif filter_ == 2:
        return bytearray((np.frombuffer(row, np.uint8) + np.frombuffer(above, np.uint8)).tobytes())
    elif filter_ == 3:
        for i in range(len(row)):
            left = row[i - wide] if i >= wide else 0
            row[i] = (row[i] + (left + above[i]) // 2) & 255
    elif filter_ == 4:
        for i in range(len(row)):
            left, corner = (row[i - wide], above[i - wide]) if i >= wide else (0, 0)
            guess = left + above[i] - corner
            far = abs(guess - left), abs(guess - above[i]), abs(guess - corner)
            row[i] = (row[i] + (left, above[i], corner)[far.index(min(far))]) & 255
    return row


def joined(parts: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a PNG of these chunks, and its end."""
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in (*parts, (b"IEND", b""))
    )


def chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and content of every chunk of a PNG. Raises ``ValueError`` if it is truncated or damaged."""
    at = len(SIGNATURE)
    while at < len(png):
        try:
            (length,), kind = struct.unpack_from(">I", png, at), png[at + 4 : at + 8]
            body = png[at + 8 : at + 8 + length]
            (sum_,) = struct.unpack_from(">I", png, at + 8 + length)
        except struct.error:
            raise ValueError("is cut short") from None
        if sum_ != zlib.crc32(kind + body):
            raise ValueError(f"is damaged in chunk {kind!r}")
        yield kind, body
        at += 12 + length


def flaw(png: bytes, size: tuple[int, int], largest: int) -> str:
    """Return the flaw of a picture of this width and height in at most ``largest`` bytes, ``""`` if it has none."""
    if not png.startswith(SIGNATURE):
        return "is not a PNG"
    try:
        blocks = dict(chunks(png))
    except ValueError as error:
        return str(error)
    if b"IEND" not in blocks:
        return "is cut short"
    width, height = struct.unpack_from(">II", blocks[b"IHDR"])
    if (width, height) != size:
        return f"is {width} × {height} pixels, not {size[0]} × {size[1]}"
    if len(png) > largest:
        return f"takes {len(png):,} bytes; at most {largest:,} are allowed"
    return ""
