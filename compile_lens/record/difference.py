"""Difference between two captures: the causes, and the changes at each level."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from .capture import Record

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
"""Values of ``Change.kind``."""

LEVELS = {
    "settings": "options and environment",
    "breaks": "graph breaks, skipped frames and recompiles",
    "lines": "Python lines, by the operations that Dynamo read from them",
    "operators": "ATen operators handed to Inductor",
    "rewrites": "patterns that Inductor's passes rewrote",
    "lowering": "operators that were inlined, or given a buffer",
    "fusion": "operators that are now fused, or no longer",
    "kernels": "kernels and library calls",
    "memory": "buffers whose memory another value takes over",
    "figures": "counts and bytes",
    "saved": "tensors that the forward saves for the backward",
    "code": "lines of code that compute the same",
    "guards": "conditions under which the code is reused",
}
"""Levels of changes, causes before effects, each with a title."""

FIGURES = (
    "graphs", "graph_breaks", "recompiles", "launches", "groups", "extern", "bytes", "peak", "saved",
)  # fmt: skip
"""Names of the compared counts and bytes of a whole capture."""

EFFECTS = ("kernels", "memory", "figures", "saved", "code")
"""Levels that are effects: if one of them is the first that differs, the cause is not in the records."""


@dataclass(frozen=True)
class Change:
    """One difference.

    Attributes:
        level: a key of ``LEVELS``.
        kind: ``added`` (only the second has it), ``removed`` (only the first has it) or ``changed``.
        text: the difference, as a sentence without a full stop.
        lines: its Python lines, as ``model.py:12: y = x.sort()``; those of the first capture if it was removed, else of
            the second.
        facts: evidence from the records: reasons, in the compiler's words; for ``code`` the lines that differ.
        name: for ``figures`` the name of the figure, else ``""``.
        before, after: for ``figures`` its two values, ``None`` if not known or not a single number; ``basis`` says
            whether they are measured or modelled.
        follows: whether it may be just a consequence of another change of its level, or of an earlier one.
    """

    level: str
    kind: str
    text: str
    lines: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    name: str = ""
    before: int | None = None
    after: int | None = None
    basis: str = ""
    follows: bool = False


class _Figures(dict[str, tuple[int | None, int | None]]):
    """Figures by name, each before and after."""

    def __missing__(self, name: object) -> NoReturn:
        raise KeyError(f"no figure {name!r} differs; what differs: {', '.join(self) or 'none'}")


@dataclass(frozen=True, repr=False)
class DifferenceRecord:
    """The difference between two captures, as plain data.

    Attributes:
        a, b: one line for each: function, target and torch version.
        causes: the changes that explain the others, as far as the records show: those of ``settings``, and of
            the first level below it with a difference.
        changes: all differences, by level.
        unknown: stages and settings that could not be compared, and why.
        captures: the two captures, which ``to_dict`` leaves out.
    """

    a: str
    b: str
    causes: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    unknown: tuple[str, ...] = ()
    captures: tuple[Record, ...] = ()

    def at(self, level: str) -> tuple[Change, ...]:
        """Return the changes of one level; raise ``KeyError`` for an unknown level."""
        if level not in LEVELS:
            raise KeyError(f"no level {level!r}; there are {', '.join(LEVELS)}")
        return tuple(change for change in self.changes if change.level == level)

    @property
    def unexplained(self) -> bool:
        """True if the cause of the first level that differs is not in the records."""
        return any(cause.level in EFFECTS for cause in self.causes[:1])

    @property
    def figures(self) -> dict[str, tuple[int | None, int | None]]:
        """The figures that differ, each before and after; another name raises ``KeyError`` with the valid ones."""
        return _Figures({change.name: (change.before, change.after) for change in self.at("figures")})

    def __bool__(self) -> bool:
        """Return True if anything differs."""
        return bool(self.changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as plain JSON data."""
        return {
            "a": self.a,
            "b": self.b,
            "differs": bool(self),
            "causes": [asdict(change) for change in self.causes],
            "changes": {
                level: [asdict(change) for change in self.at(level)] for level in LEVELS if self.at(level)
            },
            "unknown": list(self.unknown),
        }
