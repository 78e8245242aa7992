"""Documents by MIME type, as IPython asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from .document import Document
from .render import html, text


def mimebundle(
    document: Callable[[], Document],
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
    inserts: Callable[[], Mapping[str, str]] = dict,
    live: Callable[[], str] = str,
) -> dict[str, str]:
    """A Document as ``text/html`` and ``text/plain``.

    Args:
        include: MIME types to give; ``None`` for all of them.
        exclude: MIME types to leave out, also of those included.
        inserts: HTML to put under entries, by their keys.
        live: HTML that makes the fragment interactive.
    """
    writers: dict[str, Callable[[], str]] = {
        "text/plain": lambda: text.page(document(), text.DEFAULT_WIDTH, ascii=False),
        "text/html": lambda: html.fragment(document(), inserts(), live()),
    }
    return bundle(writers, include, exclude)


def bundle(
    writers: Mapping[str, Callable[[], str]], include: Iterable[str] | None, exclude: Iterable[str] | None
) -> dict[str, str]:
    """The text of each MIME type that is wanted."""
    wanted = set(writers) if include is None else set(include)
    wanted -= set(exclude or ())
    return {kind: write() for kind, write in writers.items() if kind in wanted}
