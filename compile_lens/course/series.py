"""A series of captures that differ in one number: a slider in a lesson, also in a page without a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..results.document_forms import DocumentDisplay

if TYPE_CHECKING:
    from ..results.capture import Capture
    from ..views.document import Document


class Series(DocumentDisplay):
    """Captures by the value of the parameter ``name``; ``captures`` are in the order of the slider."""

    def __init__(self, name: str, captures: dict[str, Capture]) -> None:
        self.name, self.captures = name, captures

    def __repr__(self) -> str:
        return f"<Series by {self.name}: {', '.join(self.captures)}>"

    def _document(self) -> Document:
        from ..views.subjects.series import document

        return document(self.name, self.captures)

    def _fragment(self) -> str:
        from ..views.live.series import fragment

        return fragment(self.name, self.captures)


def series(name: str, captures: Mapping[object, Capture]) -> Series:
    """Return a series, which a notebook shows as a slider over the pages of the captures.

    The captures are in the cell, so the slider also works in exported HTML. Without scripts there is a table of the
    launches and bytes of each.

    Args:
        name: the parameter that differs, such as ``"rows"``.
        captures: at least two captures of one function, by the value of the parameter.

    Raises:
        UsageError: if there are fewer than two, or one of them is no capture.
    """
    from ..results.capture import Capture

    wrong = next((one for one in captures.values() if not isinstance(one, Capture)), None)
    if wrong is not None:
        raise UsageError(
            f"a series consists of captures, not of {type(wrong).__name__}: {{n: capture(f, x) …}}"
        )
    if len(captures) < 2:
        raise UsageError(f"a series needs at least two captures, and this one has {len(captures)}")
    return Series(name, {str(value): capture for value, capture in captures.items()})
