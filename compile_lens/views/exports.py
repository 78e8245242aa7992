"""Saving of captures, what-ifs and divergences, with the pictures or pages next to them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from compile_lens.errors import UsageError
from compile_lens.measures.diff.levels import difference
from compile_lens.record.capture import Record
from compile_lens.record.codec import to_json
from compile_lens.record.compilation import Compilation
from compile_lens.record.difference import DifferenceRecord
from compile_lens.record.divergence import DivergenceRecord
from compile_lens.record.files import check_place, path_of, write_text
from compile_lens.record.graph import Graph
from compile_lens.record.what_if import Trial, WhatIfRecord

from .language import chosen
from .live.compare import page as diff_page
from .live.page import page
from .render import html
from .render.formats import CAPTURE, form_of, save
from .render.html import body
from .render.html.markup import div, note, tag, text
from .subjects import diff, divergence
from .subjects.capture import document
from .subjects.what_if import rows


def save_capture(capture: Record, path: str | os.PathLike[str], lang: str | None = None) -> Path:
    """Write a capture in the format of the ending of ``path`` (``CAPTURE``); ``lang`` is the language of a page.

    An SVG file has one graph: ``x.svg`` has Inductor's input graph of the forward (or else the joint or the Dynamo
    graph). A backward is written as ``x-backward.svg``, and further compilations as ``x-1.0.svg`` and
    ``x-1.0-backward.svg`` by compile id.

    Returns:
        The path of the file, or of the first if there are several.

    Raises:
        UsageError: there is no page in ``lang``, the ending is not in ``CAPTURE``, the path cannot be written, or there
            is no graph to draw.
    """
    chosen(lang)
    target = path_of(path)
    form = form_of(target, CAPTURE)
    check_place(target)
    if form == ".svg":
        for file, svg in _pictures(capture, target):
            write_text(file, svg)
        return target
    return save(
        target,
        CAPTURE,
        lambda: document(capture),
        html=lambda: page(capture, lang=lang),
        json=lambda: to_json(capture),
    )


def _pictures(capture: Record, target: Path) -> list[tuple[Path, str]]:
    from .drawing.svg import to_svgs

    wanted: list[tuple[Path, str, Graph]] = []
    for compilation in capture.compilations:
        for ending, graph in _drawn_graphs(compilation):
            extra = (
                f"-{compilation.id.replace('/', '.')}"
                if wanted and compilation is not capture.compilations[0]
                else ""
            )
            name = _fitting(target.stem, f"{_file_name(extra)}{ending}{target.suffix}")
            title = f"{capture.function}: {graph.key} of {compilation.id}"
            wanted.append((target if not wanted else target.with_name(name), title, graph))
    if not wanted:
        from .words.outcome import verdict

        raise UsageError(f"there is no graph to draw: {verdict(capture)}; save as .html or .txt to see why")
    drawn = to_svgs([graph for _, _, graph in wanted], titles=[title for _, title, _ in wanted])
    return [(file, svg) for (file, _, _), svg in zip(wanted, drawn, strict=True)]


def _drawn_graphs(compilation: Compilation) -> list[tuple[str, Graph]]:
    graphs = compilation.graphs
    graphs_of = [
        ("", graphs[key]) for key in ("forward", "inference", "joint", "pre_grad", "dynamo") if key in graphs
    ][:1]
    return [*graphs_of, ("-backward", graphs["backward"])] if "backward" in graphs else graphs_of


def _file_name(text: str) -> str:
    # Records are untrusted: compile ids must not lead out of the folder.
    return "".join(char if char.isalnum() or char in "-._" else "_" for char in text)


def _fitting(stem: str, rest: str) -> str:
    """Return a name of at most 255 bytes, the limit of file systems, by cutting the stem."""
    while len(os.fsencode(stem + rest)) > 255 and stem:
        stem = stem[:-1]
    return stem + rest


PAGES = 12
"""Maximum live pages of differences written next to a page; each has both captures."""

MAX_CHARACTERS = 1_000_000
"""Maximum characters of HTML for the differences on one page; further entries tell how to get theirs."""


def differences(record: WhatIfRecord, pages: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the HTML of the difference of each trial, by its key; ``pages`` are files of live pages by switch."""
    inserts, left = {}, MAX_CHARACTERS
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
    """Write the live pages of the first differences next to ``target``; return their file names by switch."""
    pages: dict[str, str] = {}
    for trial in rows(record)[:PAGES]:
        name = re.sub(r"[^\w.]+", "-", trial.name)
        beside = target.with_name(f"{target.stem}-{name}{target.suffix}")
        write_text(beside, diff_page(_difference(record, trial)))
        pages[trial.name] = beside.name
    return pages


def divergence_page(record: DivergenceRecord, target: Path) -> str:
    """Return the page of a divergence, and write the capture page of its code next to ``target``; each links to the
    other."""
    beside = target.with_name(_fitting(target.stem, f"-code{target.suffix}"))
    write_text(
        beside,
        page(record.capture, _link(f"compiled against eager: {divergence.headline(record)}", target.name)),
    )
    shown = divergence.document(record)
    return html.page(shown, above=_link("the code: graphs, fusion, kernels and their lines", beside.name))


def _link(words: str, file: str) -> str:
    link = tag("a", text(words), "color:inherit", extra=f'href="{quote(file)}"')
    return tag("nav", link, "padding:8px 14px;font-size:14px")


def _difference(record: WhatIfRecord, trial: Trial) -> DifferenceRecord:
    assert trial.capture is not None  # a trial that changes a figure has one
    return difference(record.base, trial.capture, DifferenceRecord)
