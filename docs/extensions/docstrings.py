"""Docstrings as this project writes them, and the languages of its code, for Sphinx."""

from __future__ import annotations

from typing import Any

from pygments.lexers.c_cpp import CppLexer
from sphinx.application import Sphinx

ATTRIBUTES = ("attribute", "data", "property")

_kept: dict[str, list[str]] = {}


def keep(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Note the text of an attribute, before napoleon takes what stands before a colon for its type."""
    if what in ATTRIBUTES:
        _kept[name] = list(lines)


def give_back(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put the text of an attribute back: the type is in its annotation, and a colon is one of prose."""
    if what in ATTRIBUTES:
        lines[:] = _kept.pop(name)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_lexer("metal", CppLexer)  # Pygments has none of its own; this one finds no error in it
    app.connect("autodoc-process-docstring", keep, priority=400)
    app.connect("autodoc-process-docstring", give_back, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
