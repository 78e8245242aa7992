"""The texts of what users hold: short, whole, for an issue, and for a budget of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .document_forms import DocumentForms

if TYPE_CHECKING:
    from ..views.summaries.summary import Summary

FORMS = {
    "short": "at most 25 lines",
    "full": "everything that the text page has",
    "issue": "Markdown of at most 30 lines",
}


class TextForms(DocumentForms):
    """A subject with a Summary as well: its shorter texts."""

    def _summary(self) -> Summary:
        raise NotImplementedError

    def text(self, form: str = "short") -> str:
        """Return the result as text: ``"short"`` (at most 25 lines), ``"full"``, or ``"issue"`` (Markdown of at most 30
        lines).

        Raises:
            UsageError: another form.
        """
        if form not in FORMS:
            valid = ", ".join(f"{name!r} ({what})" for name, what in FORMS.items())
            raise UsageError(f"text({form!r}): there is no such form; use one of {valid}")
        if form == "full":
            from ..views.render.text import page

            return page(self._document())
        from ..views.summaries.short_text import issue, text

        return issue(self._summary()) if form == "issue" else text(self._summary())

    def brief(self, max_tokens: int = 2000) -> str:
        """Return facts, their evidence, what not to conclude and what to ask next, for a coding agent: at most
        ``max_tokens`` tokens, each counted as three bytes of UTF-8.

        Raises:
            UsageError: ``max_tokens`` is no whole number, or less than 200.
        """
        from ..views.summaries.short_text import brief

        return brief(self._summary()).text(max_tokens)

    def brief_dict(self, max_tokens: int | None = None) -> dict[str, Any]:
        """Return the brief as plain data; with ``max_tokens`` its JSON keeps that budget."""
        from ..views.summaries.short_text import brief

        return brief(self._summary()).to_dict(max_tokens)

    def _plain(self) -> str:
        from ..views.summaries.short_text import in_file

        return in_file(self._summary())

    def __str__(self) -> str:
        return self.text()
