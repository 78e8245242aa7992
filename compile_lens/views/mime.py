"""What is given to who asks for it by MIME type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from .paper import DEFAULT_WIDTH


class _Page(Protocol):
    def __call__(self, thing: Any, /, *, width: int | None, ascii: bool | None) -> str: ...


def text_and_html(
    thing: Any,
    page: _Page,
    fragment: Callable[[Any], str],
    include: Iterable[str] | None,
    exclude: Iterable[str] | None,
) -> dict[str, str]:
    """What ``page`` and ``fragment`` make of a thing, as IPython asks for it in a notebook.

    Args:
        include: MIME types to give; ``None`` for all of them.
        exclude: MIME types to leave out, also of those included.
    """
    makers: dict[str, Callable[[], str]] = {
        "text/plain": lambda: page(thing, width=DEFAULT_WIDTH, ascii=False),
        "text/html": lambda: fragment(thing),
    }
    return bundle(makers, include, exclude)


def bundle(
    makers: Mapping[str, Callable[[], str]], include: Iterable[str] | None, exclude: Iterable[str] | None
) -> dict[str, str]:
    """What is made for each MIME type that is asked for."""
    wanted = set(makers) if include is None else set(include)
    wanted -= set(exclude or ())
    return {kind: make() for kind, make in makers.items() if kind in wanted}
