"""HTML of slides and sheets: one file each, which loads nothing and prints one page for each section."""

from __future__ import annotations

import html
from pathlib import Path

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

CSS = (Path(__file__).with_name("sheet.css")).read_text(encoding="utf-8")
LICENCE = {
    "en": "CC BY 4.0, the compile_lens developers",
    "zh": "CC BY 4.0，compile_lens 开发者",
}

FIT = """\
for (const page of document.querySelectorAll("section")) {
  const box = page.querySelector("main") || page;
  for (let size = 1; size > 0.5 && box.scrollHeight > box.clientHeight + 1; size -= 0.02)
    page.style.setProperty("--fit", size);
}
"""
"""Makes the type of a page smaller until all of it is on the page: fonts differ from machine to machine."""

KEYS = """\
addEventListener("keydown", event => {
  const step = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  const all = [...document.querySelectorAll("section")];
  const near = slide => Math.abs(slide.getBoundingClientRect().top + slide.offsetHeight / 2 - innerHeight / 2);
  const now = all.reduce((best, slide) => near(slide) < near(best) ? slide : best);
  (all[all.indexOf(now) + step] || now).scrollIntoView({block: "center"});
});
"""
"""Moves from slide to slide."""

_markdown = MarkdownIt("commonmark").enable("table")
_pygments = HtmlFormatter(style="default", nowrap=True)


def page(kind: str, title: str, language: str, sections: list[str]) -> str:
    """Return a file of slides, ``"slides"``, or of printed sheets, ``"sheets"``."""
    size = "13.3333in 7.5in" if kind == "slides" else "A4"
    style = f"@page {{ size: {size}; margin: 0; }}\n{CSS}\n{_pygments.get_style_defs('pre')}"
    script = FIT + (KEYS if kind == "slides" else "")
    return (
        f'<!DOCTYPE html>\n<html lang="{"zh-CN" if language == "zh" else "en"}">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}\n</style>\n"
        f'<body class="{kind}">\n{"".join(sections)}\n<script>\n{script}</script>\n</body>\n</html>\n'
    )


def prose(markdown: str) -> str:
    """Return the HTML of a Markdown text; links become their words."""
    return str(_markdown.render(markdown))


def python(code: str) -> str:
    """Return coloured HTML of Python code."""
    return str(highlight(code, PythonLexer(stripnl=False), _pygments))
