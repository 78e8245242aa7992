"""Programs of several ranks as users hold them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..record.ranks import RanksRecord
from .program import Program


class Ranks(RanksRecord):
    """What ``compile_lens.merge`` and ``compile_lens.rehearse`` return: programs by rank, and what differs between
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
        """What differs, and the collectives and buckets of each rank, as plain JSON data."""
        from ..views.ranks.files import to_dict

        return to_dict(self)

    def save(self, path: str | Path) -> Path:
        """Write it to ``path``; the ending chooses the form: .html .md .txt .json.

        The file appears whole or not at all. Raises ``UsageError`` for another ending or an unwritable place.
        """
        from ..views.ranks.files import save

        return save(self, path)

    def __repr__(self) -> str:
        from ..views.ranks.outline import verdict

        return f"<Ranks {', '.join(map(str, self.ranks))}: {verdict(self)}>"

    def __str__(self) -> str:
        from ..views.program.text import told
        from ..views.ranks.outline import sheet

        return told(sheet(self), None, None)

    def _repr_mimebundle_(
        self, include: Iterable[str] | None = None, exclude: Iterable[str] | None = None
    ) -> dict[str, str]:
        from ..views.mime import bundle
        from ..views.program.html import told
        from ..views.ranks.outline import sheet

        return bundle(
            {"text/plain": lambda: str(self), "text/html": lambda: told(sheet(self))}, include, exclude
        )
