"""The style sheet of a page of its own; what stands in a notebook has its styles inline."""

from __future__ import annotations

import importlib.resources


def sheet() -> str:
    """Its text."""
    files = importlib.resources.files("compile_lens.views.html")
    return files.joinpath("lens.css").read_text(encoding="utf-8")
