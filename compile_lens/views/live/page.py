"""The page of a capture: the static rendering of its Document, and the live layer that replaces it.

The static layer works without scripts, style sheets, ids and outside files, as in an untrusted notebook or on a code
host. If scripts run, the live layer replaces it and reads the data in parts.
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
    """Return the capture as one ``<div class="compile-lens">``. The output is deterministic.

    Args:
        lang: language of the live layer; None for the current one (``views/language.py``).
        standalone: True for a complete page, whose address may store what is open and pinned.
    """
    language = chosen(lang)
    # Imported here, not at exit, when the page of a script is written and the import would fail.
    from concurrent.futures import ThreadPoolExecutor

    own = " data-standalone" if standalone else ""
    own += f' lang="{TAGS[language]}"' if language != ENGLISH else ""
    # Both wait for Graphviz, each for its own process.
    with no_collection(), ThreadPoolExecutor(max_workers=1) as beside:
        alive = beside.submit(live, capture, standalone, language)
        shown = in_language(static(capture, standalone), language)
        return f'<div class="compile-lens"{own}>\n{shown}{alive.result()}</div>\n'


def static(capture: Record, standalone: bool = False) -> str:
    """Return the static layer."""
    return html.static(document(capture), standalone=standalone)


def page(capture: Record, above: str = "", lang: str | None = None) -> str:
    """Return the capture as a complete page: the HTML ``above``, the fragment, and a policy that forbids outside
    requests."""
    env = capture.environment
    facts = [capture.function, f"torch {env.torch}", stamp.device(capture), capture.created[:10]]
    title = " · ".join(escaped(short(fact, 120)) for fact in facts if fact)
    generator = f'<meta name="generator" content="compile_lens {escaped(env.compile_lens)}">\n'
    language = chosen(lang)
    whole = above + fragment(capture, language, standalone=True)
    style = f"<style>\n{dark_where_preferred('.compile-lens')}</style>\n"
    return around(whole, title, generator + style, language=TAGS[language])


def live(capture: Record, standalone: bool = False, language: str = ENGLISH) -> str:
    """Return the HTML that makes the page interactive: its data and script."""
    codes = (code for compilation in capture.compilations for code in compilation.code.values())
    several = standalone or any(len(code.kernels) > 1 for code in codes) or capture.budget_curve is not None
    data = encoded(capture, language)
    if several:
        data["issue"] = packed(_json(block(issue(summary(capture)))))
    return alive(data, "answers" if several else "", language)


def alive(parts: dict[str, str], addition: str = "", language: str = ENGLISH) -> str:
    """Return the end of a live page: the outer style, the data parts, and the script that reads them.

    Args:
        parts: the data of the page by name, packed.
        addition: extra script: ``answers`` for a complete page or several kernels, ``compare`` for several captures.
        language: language of the live layer.
    """
    data = compact({**_inside(addition, language), **parts})
    return (
        f"<style>{built('host.min.css')}</style>"
        f'<script type="application/json" class="cl-data">{data}</script>\n'
        f"<script>{built('boot.min.js')}</script>\n"
    )


def compact(parts: dict[str, str]) -> str:
    """Return packed parts as compact JSON; base 91 and plain names are safe in a script element."""
    return json.dumps(parts, separators=(",", ":"))


def built(name: str) -> str:
    """Return the text of a built file, such as ``boot.min.js``."""
    return _bytes(name).decode("utf-8").rstrip("\n")


def _bytes(name: str) -> bytes:
    return importlib.resources.files(__package__).joinpath("built").joinpath(name).read_bytes()


@functools.cache
def _inside(addition: str, language: str) -> dict[str, str]:
    """Return the inner script and style, packed, and the translation for another language. The addition is inside the
    script, whose names it uses; the translation script starts before it."""
    if language != ENGLISH:
        words = packed(_json(translation(language)))
        shown = built("translation.min.js") + script(addition)
        return {"script": packed(shown), "style": packed(style(addition)), "words": words}
    if not addition:
        names = {"script": "viewer.min.js.zlib", "style": "viewer.min.css.zlib"}
        return {kind: based(_bytes(name)) for kind, name in names.items()}
    return {"script": packed(script(addition)), "style": packed(style(addition))}


def script(addition: str, before: str = "") -> str:
    """Return the script with the addition, if any, inside it, preceded by ``before``."""
    added = built(f"{addition}.min.js") if addition else ""
    return built("viewer.min.js").removesuffix(_CLOSING) + before + added + _CLOSING


def style(addition: str) -> str:
    """Return the inner style, with that of the addition, if any."""
    return built("viewer.min.css") + (built(f"{addition}.min.css") if addition else "")


_CLOSING = "})();"
"""End of the script, as written by ``build.mjs``."""


MAX_PACKED_CHARACTERS = 30_000
"""Maximum characters of JSON of a part that is packed together with others."""

LARGE = 500_000
"""Minimum characters of JSON of a part that is optimized for quick reading and writing."""

LATE = "m"
"""Name prefix of rarely opened parts (machine code); each is separate, so that nothing waits for it."""

LEVEL = 9
LEVEL_LARGE = 6
"""Compression levels; the last percent of a large part would double the time."""


def parts(capture: Record, language: str = ENGLISH) -> dict[str, object]:
    """Return the parts as plain JSON data, by name: ``core``, ``index``, and one for each stage, each kernel's machine
    code, each finding and the story."""
    items = Items(capture)
    texts = Texts(capture, items)
    data = _stage_parts(capture, items, texts)
    data["story"] = story_data(capture, items, language)
    for finding in findings(capture):
        if not finding.missing:
            data[finding_part(finding)] = findings_data(finding, items, language)
    return data


def _stage_parts(capture: Record, items: Items, texts: Texts, code: bool = True) -> dict[str, object]:
    """Return ``core``, ``index`` and a part for each stage; without ``code``, only for graphs."""
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
    """Return the parts as ``packed`` JSON, as in the page. The output is deterministic.

    Small parts are combined under the name ``small``, which is shorter and quick to read.
    """
    small: list[str] = []
    large: dict[str, str] = {}
    with no_collection():
        for name, part in parts(capture, language).items():
            text = _json(part)
            if len(text) <= MAX_PACKED_CHARACTERS and not name.startswith(LATE):
                small.append(f"{_json(name)}:{text}")
            elif len(text) < LARGE and not name.startswith(LATE):
                large[name] = packed(text)
            else:
                large[name] = packed(_json(_late(part)), LEVEL_LARGE)
    return {"small": packed(f"{{{','.join(small)}}}"), **large}


def plain_parts(capture: Record, language: str = ENGLISH) -> dict[str, str]:
    """Return the parts as uncompressed JSON, by name, for a page that is updated while open."""
    with no_collection():
        return {name: _json(part) for name, part in parts(capture, language).items()}


def traced_parts(capture: Record) -> dict[str, str]:
    """Return the same for a capture that is not lowered yet: the parts for its sources and graphs."""
    with no_collection():
        items = Items(capture)
        data = _stage_parts(capture, items, Texts(capture, items), code=False)
        return {name: _json(part) for name, part in data.items()}


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Pause the garbage collector for the duration: there are no cycles here, but millions of objects to scan."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _late(part: object) -> object:
    """Return a part with its bodies as JSON texts, which a page parses only when it draws them."""
    if isinstance(part, dict) and "bodies" in part:
        return {**part, "bodies": [_json(body) for body in part["bodies"]]}
    return part


def packed(text: str, level: int = LEVEL) -> str:
    """Return a text compressed, in base 91."""
    return based(zlib.compress(text.encode("utf-8"), level))


def based(data: bytes) -> str:
    """Return bytes in base 91: 13 bits in two characters, 6 in an odd last one; 1/60 shorter than base 85. The four
    printable ASCII characters that JSON or a script element could misread are not used.
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
    """Return the two characters for each value of 13 bits, low one first."""
    return tuple(_SIGNS[bits % 91] + _SIGNS[bits // 91] for bits in range(8192))


def _json(part: object) -> str:
    return json.dumps(part, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
