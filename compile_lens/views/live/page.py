"""The page of a capture: the static rendering of its Document, and the live layer that takes its place.

The static layer is right without any script, style sheet, id or outside file, as in an untrusted notebook or on a
code host. Where scripts run, the live layer stands in its place.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from compile_lens.record.capture import Record

from ..render import html
from ..render.formats import mimebundle as of_document
from ..render.html.markup import around, dark_where_preferred
from ..render.html.markup import text as escaped
from ..subjects.capture import document
from ..words import stamp
from ..words.characters import short
from .parts import based, encoded, no_collection, packed


def fragment(capture: Record, *, standalone: bool = False) -> str:
    """The capture as one ``<div class="compile-lens">``. The same capture gives the same text.

    ``standalone``: it has a page of its own, whose address may remember what is open and pinned.
    """
    own = " data-standalone" if standalone else ""
    # Both wait for Graphviz, each for a process of its own.
    with no_collection(), ThreadPoolExecutor(max_workers=1) as beside:
        alive = beside.submit(live, capture)
        shown = static(capture, standalone)
        return f'<div class="compile-lens"{own}>\n{shown}{alive.result()}</div>\n'


def static(capture: Record, standalone: bool = False) -> str:
    """The layer that needs no script."""
    return html.static(document(capture), standalone=standalone)


def page(capture: Record) -> str:
    """The capture as a page of its own: the fragment, and a policy that forbids outside requests."""
    env = capture.environment
    facts = [capture.function, f"torch {env.torch}", stamp.device(capture), capture.created[:10]]
    title = " · ".join(escaped(short(fact, 120)) for fact in facts if fact)
    generator = f'<meta name="generator" content="compile_lens {escaped(env.compile_lens)}">\n'
    whole = fragment(capture, standalone=True)
    return around(whole, title, f"{generator}<style>\n{dark_where_preferred('.compile-lens')}</style>\n")


def mimebundle(
    capture: Record, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
) -> dict[str, str]:
    """The capture as ``text/html`` and ``text/plain``."""
    return of_document(lambda: document(capture), include, exclude, lambda: fragment(capture))


def live(capture: Record) -> str:
    """HTML that makes the page around it interactive: its data and its script."""
    return alive(encoded(capture))


def alive(parts: dict[str, str], *, compare: bool = False) -> str:
    """The end of a page that comes alive: the style of its outside, its parts and the script that reads them.

    Args:
        parts: the data of the page by name, packed.
        compare: the page has several captures, and what the script needs for them.
    """
    data = compact({**_inside(compare), **parts})
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
def _inside(compare: bool) -> dict[str, str]:
    """The script and the style of the page's inside, packed. The addition for several captures stands inside the
    script, whose names it uses."""
    if not compare:
        names = {"script": "viewer.min.js.zlib", "style": "viewer.min.css.zlib"}
        return {kind: based(_bytes(name)) for kind, name in names.items()}
    script = built("viewer.min.js").removesuffix(_CLOSING) + built("compare.min.js") + _CLOSING
    return {"script": packed(script), "style": packed(built("viewer.min.css") + built("compare.min.css"))}


_CLOSING = "})();"
"""The end of the script, as ``build.mjs`` writes it."""
