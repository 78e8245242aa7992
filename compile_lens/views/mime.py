"""What is given to who asks for it by MIME type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping


def bundle(
    makers: Mapping[str, Callable[[], str]], include: Iterable[str] | None, exclude: Iterable[str] | None
) -> dict[str, str]:
    """What is made for each MIME type that is asked for."""
    wanted = set(makers) if include is None else set(include)
    wanted -= set(exclude or ())
    return {kind: make() for kind, make in makers.items() if kind in wanted}
