"""Sections, anchors, links and code blocks of a page in Markdown."""

from __future__ import annotations

import re
from pathlib import Path

FENCED = re.compile(r"^```.*?^```$", re.M | re.S)


def slug(title: str) -> str:
    """Return the anchor of a heading, by the rule of GitHub and MyST."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def headings(text: str) -> list[str]:
    """Return the anchors of all headings, in their order."""
    return [slug(title) for title in re.findall(r"^#+ (.+)$", FENCED.sub("", text), re.M)]


def links(text: str) -> list[tuple[str, str]]:
    """Return path and anchor of each link that stays in the repository; either may be empty."""
    targets = re.findall(r"\]\(([^()\s]+)\)", FENCED.sub("", text))
    return [(path, anchor) for path, _, anchor in (t.partition("#") for t in targets) if "://" not in path]


def sections(page: Path) -> dict[str, str]:
    """Return the text before the first section as ``page``, and each section as ``page#anchor``."""
    first, *rest = re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.M)
    return {page.stem: first} | {f"{page.stem}#{slug(text.partition(chr(10))[0])}": text for text in rest}


def blocks(text: str, language: str) -> list[str]:
    """Return the code blocks in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)
