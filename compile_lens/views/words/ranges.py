"""In words, which sizes or numbers a form takes where one became a symbol."""

from __future__ import annotations

import re

from compile_lens.record.compilation import DynamicDim
from compile_lens.record.failed_guards import made_for
from compile_lens.record.messages import plain_source

_MOST = 3


def takes(symbol: DynamicDim) -> str:
    """``for any size from 4 to 1024 where x.size(0) % 2 == 0``: what the guards of the form leave."""
    if symbol.constraints is None:
        return "with guards that are not known"
    source = plain_source(symbol.source)
    own, others = [], []
    for condition in symbol.constraints:
        about, words = made_for(condition)
        if about == source:
            own.append(words)
        elif condition == f"not math.isnan({source})":
            own.append("other than nan")
        else:
            others.append(condition)
    kind = "size" if symbol.is_dimension else "float" if symbol.symbol.startswith(_FLOATS) else "int"
    told = " ".join(filter(None, (f"for any {kind}", _joined(own))))
    more = f" and {len(others) - _MOST} more" if len(others) > _MOST else ""
    return f"{told} where {' and '.join(others[:_MOST])}{more}" if others else told


def _joined(own: list[str]) -> str:
    """``at least 4`` and ``at most 9`` as ``from 4 to 9``, which torch asks in one or in two; ranges first."""
    low = next((words for words in own if words.startswith(_LOW)), "")
    high = next((words for words in own if words.startswith(_HIGH)), "")
    rest = [words for words in own if words not in (low, high)]
    if low and high:
        return _and([f"from {low.removeprefix(_LOW)} to {high.removeprefix(_HIGH)}", *rest])
    ranges = [f"from {words}" for words in rest if _RANGE.fullmatch(words)]
    others = [words for words in rest if not _RANGE.fullmatch(words)]
    return _and([*ranges, *(f"of {end}" for end in (low, high) if end), *others])


def _and(told: list[str]) -> str:
    return " and ".join(told)


_FLOATS = ("zf", "zuf")
"""How torch's names of symbols begin that are floats."""
_LOW, _HIGH = "at least ", "at most "
_RANGE = re.compile(r"\S+ to \S+")
