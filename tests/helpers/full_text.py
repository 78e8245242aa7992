"""The whole text of a result, where ``str`` gives its first lines."""

from __future__ import annotations

from compile_lens.results.text_forms import TextForms


def full(result: object) -> str:
    """Return all that a result's text page has; of what has one text only, that."""
    return result.text("full") if isinstance(result, TextForms) else str(result)
