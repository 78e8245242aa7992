"""What switches would change, as users hold it."""

from __future__ import annotations

from typing import Any, cast

from ..errors import UsageError
from ..record.what_if import WhatIfRecord
from .capture import Capture
from .difference import Difference


class WhatIf(WhatIfRecord):
    """What ``compile_lens.what_if`` returns: a ``WhatIfRecord``, and what can be asked of it."""

    def diff(self, name: str) -> Difference:
        """What a switch changes at every level. Raises ``UsageError`` for one that was not captured."""
        from ..measures.difference.difference import difference

        made = {trial.name: trial.capture for trial in self.trials if trial.capture is not None}
        if name not in made:
            raise UsageError(f"{name!r} was not captured; captured were {', '.join(made) or 'none'}")
        return difference(self.base, cast(Capture, made[name]), Difference)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON data, without the captures."""
        return {
            "function": self.function,
            "trials": [
                {
                    "name": t.name,
                    "settings": list(t.settings),
                    "meaning": t.meaning,
                    "figures": {name: list(pair) for name, pair in t.figures},
                    "failure": t.failure,
                }
                for t in self.trials
            ],
            "helpful": [t.name for t in self.helpful],
            "left_out": [list(pair) for pair in self.left_out],
            "interrupted": self.interrupted,
        }

    def __repr__(self) -> str:
        best = self.helpful[0].name if self.helpful else "none of them helps"
        return f"<WhatIf of {self.function}: {len(self.trials)} trials, {best}>"

    def __str__(self) -> str:
        from ..views.what_if import page

        return page(self)
