"""What a number is asked to be, and whether a figure is, is not, or cannot be known to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compile_lens.errors import UsageError
from compile_lens.record.figures import AtLeast, Figure

FORMS = "a number for equal, at_most=, at_least= or within=(low, high)"


@dataclass(frozen=True)
class Bounds:
    """The least and the most that a number may be; ``None``: no limit on that side."""

    low: int | None
    high: int | None

    @classmethod
    def of(
        cls,
        what: str,
        equal: Any = None,
        at_most: Any = None,
        at_least: Any = None,
        within: Any = None,
    ) -> Bounds:
        """The bounds that one of the forms gives. Raises ``UsageError`` for none, several, or one that is no number."""
        given = {"equal": equal, "at_most": at_most, "at_least": at_least, "within": within}
        named = {name: value for name, value in given.items() if value is not None}
        if len(named) != 1:
            said = ", ".join(f"{name}={value!r}" for name, value in named.items()) or "nothing"
            raise UsageError(f"{what} was given {said}: give one of {FORMS}")
        ((name, value),) = named.items()
        if name == "within":
            if not (isinstance(value, (tuple, list)) and len(value) == 2):
                raise UsageError(
                    f"{what}: within={value!r} is not two numbers: write within=(low, high), both included"
                )
            low, high = (_whole(what, "within", number) for number in value)
            if low > high:
                raise UsageError(f"{what}: within={value!r} is empty: the first number is the lower one")
            return cls(low, high)
        number = _whole(what, name, value)
        return cls(
            None if name == "at_most" else number,
            None if name == "at_least" else number,
        )

    def holds(self, figure: Figure | AtLeast) -> bool | None:
        """Whether a figure is within them; ``None`` where what is known of it does not say."""
        least: int = figure if isinstance(figure, Figure) else figure.least
        most: int | None = figure if isinstance(figure, Figure) else figure.most
        if (self.high is not None and least > self.high) or (
            self.low is not None and most is not None and most < self.low
        ):
            return False
        if (self.high is not None and (most is None or most > self.high)) or (
            self.low is not None and least < self.low
        ):
            return None
        return True

    def __str__(self) -> str:
        if self.low is None:
            return f"at most {self.high:,}"
        if self.high is None:
            return f"at least {self.low:,}"
        return f"{self.low:,}" if self.low == self.high else f"{self.low:,} to {self.high:,}"


def _whole(what: str, name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"{what}: {name}={value!r} is not a whole number from 0: give {FORMS}")
    return int(value)
