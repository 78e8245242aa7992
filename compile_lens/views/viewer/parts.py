"""The parts of the page's data, plain and as the page carries them."""

from __future__ import annotations

import base64
import json
import zlib

from compile_lens.graph import Graph
from compile_lens.record import Capture

from .code import Codes
from .core import core
from .graphs import Graphs
from .index import index, part_name
from .items import Items
from .texts import Texts

LEVEL = 9
"""Of compression."""


SMALL = 30_000
"""Characters of JSON of the largest part that is packed together with others."""


def parts(capture: Capture) -> dict[str, object]:
    """The parts as plain JSON data, by name: ``core``, ``index``, then one for each stage that was seen."""
    items = Items(capture)
    texts = Texts(capture, items)
    made: dict[str, object] = {"core": core(capture, items, texts), "index": index(capture, items)}
    graphs, codes = Graphs(items, texts), Codes(capture, items, texts)
    for seen in items.stages:
        of = graphs.of if isinstance(seen.stage, Graph) else codes.of
        made[part_name(seen)] = of(seen)
    return made


def encoded(capture: Capture) -> dict[str, str]:
    """The parts as the page carries them: ``packed`` JSON. The same capture gives the same text.

    Small parts stand together under the name ``small``: they are shorter so, and quick to read in one go.
    """
    small: dict[str, object] = {}
    large: dict[str, str] = {}
    for name, part in parts(capture).items():
        text = _json(part)
        if len(text) <= SMALL:
            small[name] = part
        else:
            large[name] = packed(text)
    return {"small": packed(_json(small)), **large}


def packed(text: str) -> str:
    """A text compressed, in base 85: a sixteenth shorter than base 64, on every page.

    Three signs of RFC 1924 are others here, so that the result stands in HTML as it is.
    """
    return base64.b85encode(zlib.compress(text.encode("utf-8"), LEVEL)).decode("ascii").translate(_SIGNS)


_SIGNS = str.maketrans("<>&", ".:,")


def _json(part: object) -> str:
    return json.dumps(part, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
