"""The live page of a series: a slider selects the shown capture. It needs no notebook kernel and no server."""

from __future__ import annotations

import json
from collections.abc import Mapping

from compile_lens.record.capture import Record

from ..language import chosen
from ..render import html
from ..subjects.series import document
from .page import alive, packed, plain_parts
from .translation import in_language

END = "</div>\n"


def fragment(name: str, captures: Mapping[str, Record]) -> str:
    """Return HTML for a notebook: a table, replaced by the slider if scripts run."""
    language = chosen()
    parts = {"comparison": packed(json.dumps({"name": name, "values": list(captures)}))}
    for number, capture in enumerate(captures.values()):
        parts[f"column {number}"] = packed(json.dumps(plain_parts(capture, language)))
    shown = in_language(html.fragment(document(name, captures)), language).removesuffix(END)
    return f"{shown}{alive(parts, 'series', language)}{END}"
