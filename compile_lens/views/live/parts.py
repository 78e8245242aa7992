"""The parts of the page's data, plain and as the page carries them."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import zlib
from collections.abc import Iterator

from compile_lens.record.capture import Record
from compile_lens.record.graph import Graph

from ..findings import findings
from .code import Codes
from .core import core
from .findings import finding_part, findings_data, told
from .graphs import Graphs
from .index import index, part_name
from .items import Items
from .texts import Texts

SMALL = 30_000
"""Characters of JSON of the largest part that is packed together with others."""

LARGE = 500_000
"""Characters of JSON from which on a part is made quick to read and to write."""

LATE = "m"
"""How names of parts begin that few readers open: machine code. Each stands by itself, so that nothing waits for it."""

LEVEL = 9
LEVEL_LARGE = 6
"""Of compression. The last hundredths of a large part take as long as all of it before."""


def parts(capture: Record) -> dict[str, object]:
    """The parts as plain JSON data, by name: ``core``, ``index``, and one for each stage seen, for the machine code
    of each kernel, for each finding and for the story."""
    items = Items(capture)
    texts = Texts(capture, items)
    data: dict[str, object] = {"core": core(capture, items, texts), "index": index(capture, items, texts)}
    graphs, codes = Graphs(capture, items, texts), Codes(capture, items, texts)
    for seen in items.stages:
        of = graphs.of if isinstance(seen.stage, Graph) else codes.of
        data[part_name(seen)] = of(seen)
    data.update(codes.forms)
    data["story"] = told(capture, items)
    for finding in findings(capture):
        if not finding.missing:
            data[finding_part(finding)] = findings_data(finding, items)
    return data


def encoded(capture: Record) -> dict[str, str]:
    """The parts as the page carries them: ``packed`` JSON. The same capture gives the same text.

    Small parts stand together under the name ``small``: they are shorter so, and quick to read in one go.
    """
    small: list[str] = []
    large: dict[str, str] = {}
    with no_collection():
        for name, part in parts(capture).items():
            text = _json(part)
            if len(text) <= SMALL and not name.startswith(LATE):
                small.append(f"{_json(name)}:{text}")
            elif len(text) < LARGE and not name.startswith(LATE):
                large[name] = packed(text)
            else:
                large[name] = packed(_json(_late(part)), LEVEL_LARGE)
    return {"small": packed(f"{{{','.join(small)}}}"), **large}


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pauses the collector of reference cycles: here are none, and millions of objects to look through."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _late(part: object) -> object:
    """A part whose bodies are texts: a page reads a text at once, and thousands of boxes when it draws them."""
    if isinstance(part, dict) and "bodies" in part:
        return {**part, "bodies": [_json(body) for body in part["bodies"]]}
    return part


def packed(text: str, level: int = LEVEL) -> str:
    """A text compressed, in base 91."""
    return based(zlib.compress(text.encode("utf-8"), level))


def based(data: bytes) -> str:
    """Bytes in base 91: 13 bits in two signs, an odd last sign has 6. On every page a sixtieth shorter than base 85.

    Of what ASCII prints the signs leave out the four that JSON or a script's element could misread.
    """
    pairs = _pairs()
    digits: list[str] = []
    whole = len(data) // 13 * 13
    for at in range(0, whole, 13):
        bits = int.from_bytes(data[at : at + 13], "big")
        digits += (
            pairs[bits >> 91],
            pairs[bits >> 78 & 8191],
            pairs[bits >> 65 & 8191],
            pairs[bits >> 52 & 8191],
            pairs[bits >> 39 & 8191],
            pairs[bits >> 26 & 8191],
            pairs[bits >> 13 & 8191],
            pairs[bits & 8191],
        )
    left = 8 * (len(data) - whole)
    bits = int.from_bytes(data[whole:], "big")
    while left > 6:
        left -= 13
        digits.append(pairs[(bits >> left if left >= 0 else bits << -left) & 8191])
    if left > 0:
        digits.append(_SIGNS[bits << 6 - left & 63])
    return "".join(digits)


_SIGNS = "".join(sign for sign in map(chr, range(33, 127)) if sign not in '"<\\')


@functools.cache
def _pairs() -> tuple[str, ...]:
    """Two signs for each 13 bits, the lower first."""
    return tuple(_SIGNS[bits % 91] + _SIGNS[bits // 91] for bits in range(8192))


def _json(part: object) -> str:
    return json.dumps(part, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
