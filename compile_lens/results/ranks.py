"""Programs of several ranks as users hold them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..record.ranks import RanksRecord
from .program import Program


class Ranks(RanksRecord):
    """Result of ``compile_lens.merge`` and ``compile_lens.rehearse``: programs by rank, and the differences between
    them; ``ranks[2]`` is the program of rank 2."""

    def __getitem__(self, rank: int) -> Program:
        if rank not in self.ranks:
            raise KeyError(f"no rank {rank}; there are {', '.join(map(str, self.ranks))}")
        record = self.programs[self.ranks.index(rank)]
        return Program(lambda: record)

    def at(self, level: str) -> tuple[Any, ...]:
        """The differences of one level. Raises ``KeyError`` for a level that there is not."""
        from ..record.ranks import LEVELS

        if level not in LEVELS:
            raise KeyError(f"no level {level!r}; there are {', '.join(LEVELS)}")
        return tuple(one for one in self.differences if one.level == level)

    def to_dict(self) -> dict[str, Any]:
        """Return the differences, and the collectives and buckets of each rank, as plain JSON data."""
        from ..views.subjects.ranks import to_dict

        return to_dict(self)

    def save(self, path: str | Path) -> Path:
        """Write it to ``path``; the ending chooses the form: .html .md .txt .json.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.render.files import RANKS, plain_json, save
        from ..views.subjects.ranks import document

        return save(path, RANKS, lambda: document(self), json=lambda: plain_json(self.to_dict()))

    def __repr__(self) -> str:
        from ..views.subjects.ranks import verdict

        return f"<Ranks {', '.join(map(str, self.ranks))}: {verdict(self)}>"

    def __str__(self) -> str:
        from ..views.render.text import page
        from ..views.subjects.ranks import document

        return page(document(self))

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, str]:
        from ..views.render.files import mimebundle
        from ..views.subjects.ranks import document

        return mimebundle(lambda: document(self), include, exclude)
