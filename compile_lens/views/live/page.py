"""The page of a capture: the static rendering of its Document, and the live layer that takes its place.

The static layer is right without any script, style sheet, id or outside file, as in an untrusted notebook or on a
code host. Where scripts run, the live layer stands in its place, and reads the data in parts.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.resources
import json
import zlib
from collections.abc import Iterator

from compile_lens.record.capture import Record
from compile_lens.record.graph import Graph

from ..findings import findings
from ..language import TAGS, chosen
from ..render import html
from ..render.html.markup import around, dark_where_preferred
from ..render.html.markup import text as escaped
from ..subjects.capture import document
from ..summaries.capture_summary import summary
from ..summaries.short_text import issue
from ..words import stamp
from ..words.characters import block, short
from ..words.sentences import ENGLISH
from .code import Codes
from .core import core
from .findings import finding_part, findings_data, story_data
from .graphs import Graphs
from .index import index, part_name
from .items import Items
from .texts import Texts
from .translation import in_language, translation


def fragment(capture: Record, lang: str | None = None, *, standalone: bool = False) -> str:
    """The capture as one ``<div class="compile-lens">``. The same capture gives the same text.

    Args:
        lang: the language of the live layer; ``None`` for the one in use (``views/language.py``).
        standalone: it has a page of its own, whose address may remember what is open and pinned.
    """
    language = chosen(lang)
    # Imported here: while an interpreter ends, which is when the page of a script is written, it no longer can be.
    from concurrent.futures import ThreadPoolExecutor

    own = " data-standalone" if standalone else ""
    own += f' lang="{TAGS[language]}"' if language != ENGLISH else ""
    # Both wait for Graphviz, each for a process of its own.
    with no_collection(), ThreadPoolExecutor(max_workers=1) as beside:
        alive = beside.submit(live, capture, standalone, language)
        shown = in_language(static(capture, standalone), language)
        return f'<div class="compile-lens"{own}>\n{shown}{alive.result()}</div>\n'


def static(capture: Record, standalone: bool = False) -> str:
    """The layer that needs no script."""
    return html.static(document(capture), standalone=standalone)


def page(capture: Record, above: str = "", lang: str | None = None) -> str:
    """The capture as a page of its own: the fragment, under some HTML, and a policy that forbids outside requests."""
    env = capture.environment
    facts = [capture.function, f"torch {env.torch}", stamp.device(capture), capture.created[:10]]
    title = " · ".join(escaped(short(fact, 120)) for fact in facts if fact)
    generator = f'<meta name="generator" content="compile_lens {escaped(env.compile_lens)}">\n'
    language = chosen(lang)
    whole = above + fragment(capture, language, standalone=True)
    style = f"<style>\n{dark_where_preferred('.compile-lens')}</style>\n"
    return around(whole, title, generator + style, language=TAGS[language])


def live(capture: Record, standalone: bool = False, language: str = ENGLISH) -> str:
    """HTML that makes the page around it interactive: its data and its script."""
    codes = (code for compilation in capture.compilations for code in compilation.code.values())
    several = standalone or any(len(code.kernels) > 1 for code in codes) or capture.budget_curve is not None
    data = encoded(capture, language)
    if several:
        data["issue"] = packed(_json(block(issue(summary(capture)))))
    return alive(data, "answers" if several else "", language)


def alive(parts: dict[str, str], addition: str = "", language: str = ENGLISH) -> str:
    """The end of a page that comes alive: the style of its outside, its parts and the script that reads them.

    Args:
        parts: the data of the page by name, packed.
        addition: what the script needs besides: ``answers`` for a page of its own or of several kernels,
            ``compare`` for one of several captures.
        language: the language that the live layer is shown in.
    """
    data = compact({**_inside(addition, language), **parts})
    return (
        f"<style>{built('host.min.css')}</style>"
        f'<script type="application/json" class="cl-data">{data}</script>\n'
        f"<script>{built('boot.min.js')}</script>\n"
    )


def compact(parts: dict[str, str]) -> str:
    """Packed parts as JSON without blanks: base 91 and plain names hold nothing that a script's element misreads."""
    return json.dumps(parts, separators=(",", ":"))


def built(name: str) -> str:
    """The text of a built file, such as ``boot.min.js``."""
    return _bytes(name).decode("utf-8").rstrip("\n")


def _bytes(name: str) -> bytes:
    return importlib.resources.files(__package__).joinpath("built").joinpath(name).read_bytes()


@functools.cache
def _inside(addition: str, language: str) -> dict[str, str]:
    """The script and the style of the page's inside, packed, and the words of another language. An addition stands
    inside the script, whose names it uses; what translates begins before it."""
    if language != ENGLISH:
        words = packed(_json(translation(language)))
        shown = built("translation.min.js") + script(addition)
        return {"script": packed(shown), "style": packed(style(addition)), "words": words}
    if not addition:
        names = {"script": "viewer.min.js.zlib", "style": "viewer.min.css.zlib"}
        return {kind: based(_bytes(name)) for kind, name in names.items()}
    return {"script": packed(script(addition)), "style": packed(style(addition))}


def script(addition: str, before: str = "") -> str:
    """The script with an addition, if any, which stands inside it, and what that needs ``before`` it."""
    added = built(f"{addition}.min.js") if addition else ""
    return built("viewer.min.js").removesuffix(_CLOSING) + before + added + _CLOSING


def style(addition: str) -> str:
    """The style of the page's inside, with that of an addition, if any."""
    return built("viewer.min.css") + (built(f"{addition}.min.css") if addition else "")


_CLOSING = "})();"
"""The end of the script, as ``build.mjs`` writes it."""


SMALL = 30_000
"""Characters of JSON of the largest part that is packed together with others."""

LARGE = 500_000
"""Characters of JSON from which on a part is made quick to read and to write."""

LATE = "m"
"""Prefix of the names of parts that few readers open: machine code. Each stands alone, so that nothing waits for it."""

LEVEL = 9
LEVEL_LARGE = 6
"""Levels of compression; the last hundredths of a large part take as long as all of it before."""


def parts(capture: Record, language: str = ENGLISH) -> dict[str, object]:
    """The parts as plain JSON data, by name: ``core``, ``index``, and one for each stage seen, for the machine code
    of each kernel, for each finding and for the story."""
    items = Items(capture)
    texts = Texts(capture, items)
    data = _stage_parts(capture, items, texts)
    data["story"] = story_data(capture, items, language)
    for finding in findings(capture):
        if not finding.missing:
            data[finding_part(finding)] = findings_data(finding, items, language)
    return data


def _stage_parts(capture: Record, items: Items, texts: Texts, code: bool = True) -> dict[str, object]:
    """``core``, ``index`` and a part for each stage; without ``code``, for each graph alone."""
    data: dict[str, object] = {"core": core(capture, items, texts), "index": index(capture, items, texts)}
    graphs, codes = Graphs(capture, items, texts), Codes(capture, items, texts) if code else None
    for seen in items.stages:
        if isinstance(seen.stage, Graph):
            data[part_name(seen)] = graphs.of(seen)
        elif codes is not None:
            data[part_name(seen)] = codes.of(seen)
    if codes is not None:
        data.update(codes.forms)
    return data


def encoded(capture: Record, language: str = ENGLISH) -> dict[str, str]:
    """The parts as the page carries them: ``packed`` JSON. The same capture gives the same text.

    Small parts stand together under the name ``small``: they are shorter so, and quick to read in one go.
    """
    small: list[str] = []
    large: dict[str, str] = {}
    with no_collection():
        for name, part in parts(capture, language).items():
            text = _json(part)
            if len(text) <= SMALL and not name.startswith(LATE):
                small.append(f"{_json(name)}:{text}")
            elif len(text) < LARGE and not name.startswith(LATE):
                large[name] = packed(text)
            else:
                large[name] = packed(_json(_late(part)), LEVEL_LARGE)
    return {"small": packed(f"{{{','.join(small)}}}"), **large}


def plain_parts(capture: Record, language: str = ENGLISH) -> dict[str, str]:
    """The parts as JSON, by name, each for itself and not packed: for a page that gets new ones while it is open."""
    with no_collection():
        return {name: _json(part) for name, part in parts(capture, language).items()}


def traced_parts(capture: Record) -> dict[str, str]:
    """The same of what was traced, before it is lowered: what a page needs to show its sources and graphs."""
    with no_collection():
        items = Items(capture)
        data = _stage_parts(capture, items, Texts(capture, items), code=False)
        return {name: _json(part) for name, part in data.items()}


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
