"""Differences of guards, the conditions under which compiled code is reused, by the value that they check.

Guards that differ only in the program's name for the value are equal. For a changed guard the sentence names the part
that changed; guards of only one capture are counted by compilation. The facts are torch's own texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter

from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation, Guard
from compile_lens.record.difference import ADDED, CHANGED, REMOVED, Change
from compile_lens.record.messages import all_names, resume_line
from compile_lens.record.messages import plain_name as function_of

from ..input_names import readable
from .inputs import MAX_NAMED
from .settings import other_side, plain, unmatched

_TENSOR = re.compile(
    r"check_tensor\(.*, (?P<class>\w+), DispatchKeySet\((?P<keys>[^)]*)\), torch\.(?P<type>\w+), "
    r"device=(?P<device>\w+), requires_grad=(?P<requires_grad>\w+), "
    r"size=(?P<size>\[[^\]]*\]), stride=(?P<stride>\[[^\]]*\])\)"
)
PARTS = {
    "type": "type",
    "size": "size",
    "stride": "stride",
    "requires_grad": "requires_grad",
    "device": "device",
    "class": "class",
    "keys": "dispatch keys",
}
"""Parts of a tensor that a guard checks, in the order of the sentence."""


FUNCTIONS = ("CLOSURE_MATCH", "FUNCTION_MATCH")
"""Kinds of guards that require a called function to be the one that was compiled."""


@dataclass(frozen=True)
class _Own:
    """A guard that the other capture lacks."""

    guard: Guard
    compilation: Compilation

    @property
    def name(self) -> str:
        return readable(self.guard.source)

    @cached_property
    def tensor(self) -> re.Match[str] | None:
        return _TENSOR.match(self.guard.text)

    @property
    def words(self) -> str:
        """The guard as a Python expression if it checks one value, else torch's text."""
        text, source = self.guard.text, self.guard.source
        if self.tensor is not None:
            return f"the tensor `{self.name}`"
        if self.guard.kind in FUNCTIONS and source:
            return f"that `{self.name}` is the same function ({self.guard.kind})"
        return f"{self.name}{text[len(source) :]}" if source and text.startswith(source) else fact(self.guard)


def fact(guard: Guard) -> str:
    """Return a guard in torch's words, without the attributes that every tensor guard checks."""
    tensor = _TENSOR.match(guard.text)
    return plain(tensor[0] if tensor is not None else guard.text or f"{guard.kind} {guard.source}".strip())


def guards(a: Record, b: Record) -> Iterator[Change]:
    """Yield the guards that differ between two captures."""
    only_before: list[_Own] = []
    only_after: list[_Own] = []
    for kind, (_, own) in unmatched(_texts(a), _texts(b), itemgetter(0)):
        (only_before if kind == REMOVED else only_after).append(own)
    for before, after in _paired(only_before, only_after):
        facts = (fact(before.guard), fact(after.guard))
        yield Change("guards", CHANGED, _became(before, after), (), tuple(dict.fromkeys(facts)))
    for kind, some in ((REMOVED, only_before), (ADDED, only_after)):
        if other_side(a, b, kind).lacks(claims.GUARDS):
            continue
        by_graph: dict[str, list[_Own]] = {}
        for own in some:
            by_graph.setdefault(own.compilation.id, []).append(own)
        for owns in by_graph.values():
            yield Change("guards", kind, _counted(kind, owns), (), tuple(fact(own.guard) for own in owns))


def _texts(record: Record) -> Iterator[tuple[str, _Own]]:
    """Yield each guard, and its text without the names of the program's variables."""
    for compilation in record.compilations:
        names: dict[str, str] = {}
        for guard in compilation.guards:
            yield plain(guard.text or guard.kind, names), _Own(guard, compilation)


def _paired(only_before: list[_Own], only_after: list[_Own]) -> list[tuple[_Own, _Own]]:
    """Pair guards of the same value, then the remaining tensors in order; remove them from the lists."""
    matches: list[tuple[_Own, _Own]] = []
    for key in (_value, _tensor):
        by_key: dict[object, list[_Own]] = {}
        for two in only_after:
            by_key.setdefault(key(two), []).append(two)
        pairs = [
            (one, others.pop(0)) for one in only_before if key(one) and (others := by_key.get(key(one), []))
        ]
        taken = {id(own) for pair in pairs for own in pair}
        for some in (only_before, only_after):
            some[:] = [own for own in some if id(own) not in taken]
        matches += pairs
    return matches


def _value(own: _Own) -> object:
    return (own.guard.kind, own.tensor is None, own.guard.source) if own.guard.source else None


def _tensor(own: _Own) -> object:
    return own.tensor is not None


def _became(before: _Own, after: _Own) -> str:
    x, y = before.tensor, after.tensor
    if x is None or y is None:
        return f"{before.words} became {after.words}"
    parts = [f"{title} {x[part]} became {y[part]}" for part, title in PARTS.items() if x[part] != y[part]]
    return f"tensor `{after.name}`: {', '.join(parts) or 'other attributes are checked'}"


def _counted(kind: str, owns: list[_Own]) -> str:
    name = owns[0].compilation.function
    of = f"{function_of(name)}, where it goes on," if resume_line(name) is not None else function_of(name)
    verb = "new" if kind == ADDED else "gone"
    if len(owns) == 1:
        return f"1 guard of {of} is {verb}: {owns[0].words}"
    tensors = [f"`{own.name}`" for own in owns if own.tensor is not None]
    rest = len(owns) - len(tensors)
    parts = [f"tensor{'s' * (len(tensors) > 1)} {all_names(tensors, MAX_NAMED)}"] if tensors else []
    parts += [f"{rest} other{'s' * (rest > 1)}"] if rest and tensors else []
    return f"{len(owns)} guards of {of} are {verb}{': ' * bool(parts)}{', '.join(parts)}"
