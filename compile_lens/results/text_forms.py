"""Texts of results: short, full, for an issue, and for a token budget."""

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
    """A result that also has a Summary for shorter texts. ``_translated``: these also exist in Chinese."""

    _translated = False

    def _summary(self) -> Summary:
        raise NotImplementedError

    def _summary_in(self, language: str) -> Summary:
        """Return the Summary in a language; in English if its texts are not translated."""
        from ..views.translated_summary import in_language

        return in_language(self._summary(), language) if self._translated else self._summary()

    def text(self, form: str = "short", lang: str | None = None) -> str:
        """Return the result as text: ``"short"`` (at most 25 lines), ``"full"``, or ``"issue"`` (Markdown of at most 30
        lines).

        ``lang`` is ``"en"`` or, for the shorter texts of a capture, ``"zh"``; the default is that of
        ``course.language``. Texts of the program and torch are not translated.

        Raises:
            UsageError: for another form or language, or a text that only exists in English.
        """
        from ..views.language import chosen

        if form not in FORMS:
            valid = ", ".join(f"{name!r} ({what})" for name, what in FORMS.items())
            raise UsageError(f"text({form!r}): there is no such form; use one of {valid}")
        language = chosen(lang)
        if lang not in (None, "en") and (form == "full" or not self._translated):
            raise UsageError(
                f"text({form!r}, lang={lang!r}): this text is in English; 'short' and 'issue' of a capture are in both "
                "languages, and so is its page: capture.save('page.html', lang='zh')"
            )
        if form == "full":
            from ..views.render.text import page

            return page(self._document())
        from ..views.summaries.short_text import issue, text

        summary = self._summary_in(language)
        return issue(summary) if form == "issue" else text(summary)

    def brief(self, max_tokens: int = 2000) -> str:
        """Return facts, their evidence, invalid conclusions and next questions, for a coding agent, in at most
        ``max_tokens`` tokens, each counted as three bytes of UTF-8.

        Raises:
            UsageError: if ``max_tokens`` is no integer, or less than 200.
        """
        from ..views.summaries.short_text import brief

        return brief(self._summary()).text(max_tokens)

    def brief_dict(self, max_tokens: int | None = None) -> dict[str, Any]:
        """Return the brief as plain data, whose JSON fits the budget ``max_tokens`` if given."""
        from ..views.summaries.short_text import brief

        return brief(self._summary()).to_dict(max_tokens)

    def _plain(self) -> str:
        from ..views.language import chosen
        from ..views.summaries.short_text import in_file

        return in_file(self._summary_in(chosen()))

    def __str__(self) -> str:
        return self.text()
