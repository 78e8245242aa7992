"""The page of the playground: a public entry page, and the scripts and styles for a reader with the token."""

from __future__ import annotations

import base64
import functools
import hashlib
import json

from . import page
from .page import built


def entry_page() -> str:
    """Return the page that asks for the token; it has no data of the reader."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<title>play · compile_lens</title>\n<style>body { margin: 0 }</style>\n"
        '<link rel="icon" href="data:,">\n</head>\n<body>\n'
        f"<script>{built('entry.min.js')}</script>\n</body>\n</html>\n"
    )


@functools.cache
def bundle() -> dict[str, str]:
    """Return the script and the styles that the entry page loads: those around the capture and those inside it."""
    return {
        "script": page.script("play", before=built("editor.min.js")),
        "style": built("play.min.css"),
        "inside": _inside(),
    }


def widget_module() -> str:
    """Return the script of the notebook widget as an anywidget module, including its styles."""
    around = built("play.min.css") + built("widget.min.css")
    styles = json.dumps({"around": around, "inside": _inside()})
    return f"const styles$={styles},widget$={{}};\n{page.script('widget')}\nexport default widget$;\n"


def _inside() -> str:
    """Return the styles of capture and comparison pages, with the height of the panel beside the editor."""
    return page.style("compare") + built("beside.min.css")


def policy(address: str) -> str:
    """Return the security policy of the page: it allows our two scripts and the socket at ``address``."""
    scripts = " ".join(_hashed(text) for text in (built("entry.min.js"), bundle()["script"]))
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
        f"connect-src ws://{address}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
