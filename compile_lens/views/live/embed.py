"""What makes the page come alive: one script for each page, with its data, its style and nothing from outside.

Scripts and styles stand in ``web/``; ``npm run build`` in ``tests/viewer`` bundles them into ``built/``, which is
all that a user's machine has of them. A test says when what is there was built from others.
"""

from __future__ import annotations

import functools
import importlib.resources
import json

from compile_lens.record.capture import Record

from .parts import based, encoded


def live(capture: Record) -> str:
    """HTML that makes the page around it interactive: its data and its script."""
    return alive(encoded(capture))


def alive(parts: dict[str, str], page: str = "viewer") -> str:
    """What stands at the end of a page that comes alive: the style of its outside, its parts and the script that
    reads them. ``parts`` are packed, by name: what brings them to life is added here, that of ``page``, a capture's
    or ``comparison``."""
    data = compact({**_inside(page), **parts})
    return (
        f"<style>{built('host.min.css')}</style>"
        f'<script type="application/json" class="cl-data">{data}</script>\n'
        f"<script>{built('boot.min.js')}</script>\n"
    )


def compact(parts: dict[str, str]) -> str:
    """Packed parts as JSON without blanks: base 91 and plain names hold nothing that a script's element misreads."""
    return json.dumps(parts, separators=(",", ":"))


def built(name: str) -> str:
    """A built file that stands in the page as it is: ``boot.min.js``, ``host.min.css``. Those of the two
    kinds of pages are for readers of this folder: a page has them from the packed files beside them.
    """
    return _bytes(name).decode("utf-8").rstrip("\n")


def _bytes(name: str) -> bytes:
    return importlib.resources.files(__package__).joinpath("built").joinpath(name).read_bytes()


@functools.cache
def _inside(page: str) -> dict[str, str]:
    """The script and the style of the page's inside, packed."""
    return {"script": based(_bytes(f"{page}.min.js.zlib")), "style": based(_bytes(f"{page}.min.css.zlib"))}
