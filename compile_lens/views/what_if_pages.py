"""The difference that each switch of a what-if makes: HTML below its entry, and a live page of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from compile_lens.measures.diff.levels import difference
from compile_lens.record.difference import DifferenceRecord
from compile_lens.record.what_if import Trial, WhatIfRecord

from .live.diff import page as page_of
from .render.files import write_text
from .render.html import body
from .render.html.markup import div, note, tag, text
from .subjects import diff
from .subjects.what_if import rows

PAGES = 12
"""Live pages of differences that stand beside one page; each holds both captures."""

MOST = 1_000_000
"""Characters of HTML that the differences of one page take; the entries beyond them say how to ask for theirs."""


def differences(record: WhatIfRecord, pages: Mapping[str, str] | None = None) -> dict[str, str]:
    """HTML of the difference of each trial, by its key; ``pages`` are files of live pages by switch."""
    inserts, left = {}, MOST
    for trial in rows(record):
        shown = body(diff.document(_difference(record, trial)))
        if len(shown) > left:
            shown = note(f"its difference is too long for this page: {text(f'.diff({trial.name!r})')}")
        left -= len(shown)
        page = (pages or {}).get(trial.name, "")
        link = div(tag("a", "its difference as a live page", "", "", f'href="{quote(page)}"')) if page else ""
        inserts[trial.name] = link + shown
    return inserts


def save_pages(record: WhatIfRecord, target: Path) -> dict[str, str]:
    """Write the live pages of the first differences beside ``target``; their file names by switch."""
    pages: dict[str, str] = {}
    for trial in rows(record)[:PAGES]:
        name = re.sub(r"[^\w.]+", "-", trial.name)
        beside = target.with_name(f"{target.stem}-{name}{target.suffix}")
        write_text(beside, page_of(_difference(record, trial)))
        pages[trial.name] = beside.name
    return pages


def _difference(record: WhatIfRecord, trial: Trial) -> DifferenceRecord:
    assert trial.capture is not None  # one that changes a figure has one
    return difference(record.base, trial.capture, DifferenceRecord)
