"""The page of a capture: the static rendering of its Document, and the live layer that takes its place.

The static layer is right without any script, style sheet, id or outside file, as in an untrusted notebook or on a
code host. Where scripts run, the live layer stands in its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from compile_lens.record.capture import Record

from ..mime import bundle
from ..render import html, text
from ..render.html.dark import wished
from ..render.html.markup import text as escaped
from ..render.html.sheet import around
from ..subjects.capture import document
from ..words import stamp
from ..words.characters import short
from .embed import live
from .parts import no_collection


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
    return around(whole, title, f"{generator}<style>\n{wished('.compile-lens')}</style>\n")


def mimebundle(
    capture: Record, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
) -> dict[str, str]:
    """The capture as ``text/html`` and ``text/plain``, as IPython asks for it.

    Args:
        include: MIME types to give; ``None`` for all of them.
        exclude: MIME types to leave out, also of those included.
    """
    writers = {
        "text/plain": lambda: text.page(document(capture), text.DEFAULT_WIDTH, ascii=False),
        "text/html": lambda: fragment(capture),
    }
    return bundle(writers, include, exclude)
