"""The whole text of a result, of which ``str`` returns the first lines."""

from __future__ import annotations

from compile_lens.results.text_forms import TextForms


def full(result: object) -> str:
    """Return the full text page of a result; for an object with a single text, that text."""
    return result.text("full") if isinstance(result, TextForms) else str(result)
