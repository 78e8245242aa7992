"""The page of a program: its Document, and a script that adds Find, keys and addresses."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from compile_lens.record.program import ProgramRecord

from ..render import html
from ..subjects.program import document
from .page import built

_NONE: Mapping[str, str] = MappingProxyType({})


def page(program: ProgramRecord, captures: Mapping[str, str] = _NONE, notes: Sequence[str] = ()) -> str:
    """Return the page of a program. ``captures`` are names of files beside it, by compile id; ``notes`` follow the
    program's notes."""
    whole = document(program)
    whole = dataclasses.replace(whole, notes=(*whole.notes, *notes))
    data = json.dumps(dict(captures), separators=(",", ":")).replace("<", "\\u003c")
    live = (
        f"<style>{built('program.min.css')}</style>"
        f'<script type="application/json" class="cl-captures">{data}</script>'
        f"<script>{built('program.min.js')}</script>\n"
    )
    return html.page(whole, live=live)
