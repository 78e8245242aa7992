"""The style sheet of a page of its own; what stands in a notebook has its styles inline."""

from __future__ import annotations

import importlib.resources


def sheet(widest: int = 1280) -> str:
    """Its text, for a page that grows up to so many pixels of CSS."""
    files = importlib.resources.files("compile_lens.views.html")
    rules = files.joinpath("lens.css").read_text(encoding="utf-8")
    return f"{rules}main {{ max-width: {widest}px; }}\n"
