"""Differences of kernels, of their lines, of counts and bytes, and of the tensors saved for the backward."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from compile_lens.record.capture import Record
from compile_lens.record.difference import ADDED, CHANGED, FIGURES, REMOVED, Change
from compile_lens.record.figures import MODELLED, AtLeast, Figure
from compile_lens.record.kernel import Kernel
from compile_lens.record.missing import AbsentStage, NotApplicable

from ..operators import called
from ..quantities import Quantity, of_name
from .matching import Match
from .operators import counted, name
from .side import Side

LANGUAGES = {"extern": "a library call"}


@dataclass(frozen=True)
class Work:
    """A kernel, its compile id, and the post-grad nodes that it computes, by their numbers."""

    cid: str
    kernel: Kernel
    nodes: frozenset[int]


def works(side: Side, phase: str) -> list[Work]:
    """Return the kernels of a phase."""
    numbers = side.numbers(f"{phase}.post_grad")
    return [
        Work(c.id, kernel, frozenset(numbers[n] for n in side.computed(phase, c.id, kernel)))
        for c, _, kernel in side.kernels(phase)
    ]


def paired(ones: list[Work], twos: list[Work], pairs: Mapping[int, int]) -> dict[int, int]:
    """Match kernels that compute the same nodes, then those that share most of them."""
    partners: dict[int, int] = {}
    taken: set[int] = set()
    by_node: dict[int, list[int]] = {}
    whole: dict[tuple[str, frozenset[int]], list[int]] = {}
    for number, work in enumerate(twos):
        whole.setdefault((_call_or_kernel(work), work.nodes), []).append(number)
        for node in work.nodes:
            by_node.setdefault(node, []).append(number)
    mapped = [frozenset(pairs.get(n, -1) for n in work.nodes) for work in ones]
    for number, work in enumerate(ones):
        same = whole.get((_call_or_kernel(work), mapped[number]), [])
        if same:
            partners[number] = same.pop(0)
            taken.add(partners[number])
    for number, nodes in enumerate(mapped):
        if number in partners:
            continue
        shared = Counter(other for node in nodes for other in by_node.get(node, ()) if other not in taken)
        if shared:
            partners[number] = max(shared, key=lambda n: (shared[n], -n))
            taken.add(partners[number])
    return partners


def _call_or_kernel(work: Work) -> str:
    """Return ``call`` or ``kernel``, with the name if no node is known for it."""
    way = "call" if work.kernel.language == "extern" else "kernel"
    return way if work.nodes else f"{way} {_called(work.kernel)}"


def kernels(where: str, sides: tuple[Side, Side], phases: tuple[str, str], match: Match) -> Iterator[Change]:
    """Yield kernels that are new or gone, and those that compute other nodes or in another way."""
    ones, twos = (works(side, phase) for side, phase in zip(sides, phases))
    same = paired(ones, twos, match.pairs)
    taken = set(same.values())
    alone = [(0, work, REMOVED, "gone") for n, work in enumerate(ones) if n not in same]
    alone += [(1, work, ADDED, "new") for n, work in enumerate(twos) if n not in taken]
    for side, work, kind, verb in alone:
        subject = title(sides[side], phases[side], work)
        yield Change("kernels", kind, f"{where}{subject} is {verb}", sides[side].kernel_lines(work.kernel))
    for one, two in same.items():
        before, after = ones[one], twos[two]
        how = list(_differences(sides, phases, before, after, match))
        places, subject = sides[1].kernel_lines(after.kernel), title(sides[1], phases[1], after)
        if how:
            yield Change("kernels", CHANGED, f"{where}{subject} {'; '.join(how)}", places)
        else:
            yield from code(f"{where}{subject}", before.kernel, after.kernel, places)


def title(side: Side, phase: str, work: Work) -> str:
    """Return a kernel as a noun phrase: ``the pointwise kernel triton_poi_fused_add``."""
    return _called(work.kernel, _computed(side, phase, work))


def _called(kernel: Kernel, computed: str = "") -> str:
    """Return a kernel as a noun phrase: its name without the number, or its operators if the name is generic."""
    if kernel.language == "extern":
        return f"the library call {called(kernel.name)}"
    bare = re.sub(r"_[0-9]+$", "", kernel.name)
    return f"the {kernel.kind} kernel {f'of {computed}' if computed and bare in UNNAMED else bare}"


UNNAMED = ("generated_kernel", "mps_lib")
"""Generic kernel names, which Inductor's Metal backend gives to every kernel."""


def _computed(side: Side, phase: str, work: Work) -> str:
    stage = side.stage(f"{phase}.post_grad")
    return counted(name(stage[n].node) for n in sorted(work.nodes))


def _differences(
    sides: tuple[Side, Side], phases: tuple[str, str], before: Work, after: Work, match: Match
) -> Iterator[str]:
    one, two = before.kernel, after.kernel
    if one.language != two.language:
        ways = [LANGUAGES.get(k.language, f"a {k.language} kernel") for k in (one, two)]
        yield f"was {ways[0]}, and is {ways[1]}"
    elif one.kind != two.kind:
        yield f"was of kind {one.kind}, and is {two.kind}"
    elif one.language == "extern" and called(one.name) != called(two.name):
        yield f"was {called(one.name)}"
    if one.launches != two.launches:
        yield f"was launched {times(one.launches)}, and is {times(two.launches)}"
    yield from _work(sides, phases, before, after, match)


def _work(
    sides: tuple[Side, Side], phases: tuple[str, str], before: Work, after: Work, match: Match
) -> Iterator[str]:
    """Yield operators that a kernel gained or lost.

    An operator that both kernels compute, in another number, is not reported: the graph merges equal operators, so the
    number is no measure of the kernel's work. Its lines show that.
    """
    stages = [side.stage(f"{phase}.post_grad") for side, phase in zip(sides, phases)]
    old, new = (
        Counter(name(stage[n].node) for n in work.nodes) for stage, work in zip(stages, (before, after))
    )
    back = {two: one for one, two in match.pairs.items()}
    more = [
        name(stages[1][n].node)
        for n in sorted(after.nodes)
        if (back[n] not in before.nodes if n in back else name(stages[1][n].node) not in old)
    ]
    less = [
        name(stages[0][n].node)
        for n in sorted(before.nodes)
        if (match.pairs[n] not in after.nodes if n in match.pairs else name(stages[0][n].node) not in new)
    ]
    if more:
        yield f"also computes {counted(more, {one: new[one] for one in more if one in old})}"
    left = {name(item.node) for item in stages[1]}
    gone = [one for one in less if one not in left]
    moved = [one for one in less if one in left]
    if moved:
        yield f"no longer computes {counted(moved, {one: old[one] for one in moved if one in new})}"
    if gone:
        yield f"no longer computes {counted(gone)}, which {'is' if len(gone) == 1 else 'are'} gone"


def times(count: int) -> str:
    """Return ``count`` in words: ``once``, ``twice``, ``3 times``; ``not at all`` for 0."""
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count:,} times")


def code(title: str, one: Kernel, two: Kernel, places: tuple[str, ...]) -> Iterator[Change]:
    """Yield the differing lines of two kernels that compute the same."""
    first, second = lines(one), lines(two)
    differing = hunks(first, second)
    if not differing:
        return
    if max(len(first), len(second)) > MAX_LINES:
        yield Change("code", CHANGED, f"{title} reads otherwise", places)
        return
    yield differing_lines(title, signed(first, second, differing), places)


def signed(one: list[str], two: list[str], differing: Iterable[Hunk]) -> list[str]:
    """Return the differing lines: ``-`` before those of the first text, ``+`` before those of the second."""
    return [
        text
        for before, after in differing
        for text in (*(f"-{one[n]}" for n in before), *(f"+{two[n]}" for n in after))
    ]


def differing_lines(title: str, shown: list[str], places: tuple[str, ...] = ()) -> Change:
    """Return the change of a text with its differing lines."""
    words = "1 line differs" if len(shown) == 1 else f"{len(shown)} lines differ"
    return Change("code", CHANGED, f"{title}: {words}", places, tuple(shown))


def figures(a: Record, b: Record) -> Iterator[Change]:
    """Yield changed counts and bytes of the whole capture."""
    for figure in FIGURES:
        before, after = (_applied(record, figure) for record in (a, b))
        if _value(before) == _value(after):
            continue
        title = figure.replace("_", " ")
        sides = (("before", before), ("after", after))
        facts = tuple(f"{side}: {why.reason}" for side, why in sides if isinstance(why, AbsentStage))
        text = f"{title}: {_words(before)} became {_words(after)}"
        bases = [q.basis for q in (after, before) if not isinstance(q, AbsentStage)]
        basis = MODELLED if MODELLED in bases else next(iter(bases), "")
        text += f" ({basis})" if basis else ""
        yield Change("figures", CHANGED, text, (), facts, figure, _number(before), _number(after), basis)


def _applied(record: Record, figure: str) -> Quantity:
    """Return a figure; 0 if there is nothing to count, as in a graph without a backward, which saves nothing for it."""
    quantity = of_name(record, figure)
    declined = record.failure is not None or record.options.backward == "no"
    return Figure(0) if isinstance(quantity, NotApplicable) and not declined else quantity


def _value(quantity: Quantity) -> object:
    if isinstance(quantity, AbsentStage):
        return None
    return quantity.count if isinstance(quantity, AtLeast) else quantity


def _number(quantity: Quantity) -> int | None:
    return int(quantity) if isinstance(quantity, Figure) else None


def _words(quantity: Quantity) -> str:
    if isinstance(quantity, AbsentStage):
        return "not known"
    return f"{quantity:,}" if isinstance(quantity, Figure) else str(quantity)


def saved(sides: tuple[Side, Side], joint: Match) -> Iterator[Change]:
    """Yield tensors that the forward saves for the backward on only one side."""
    sizes: list[dict[int, int | None]] = []
    for side in sides:
        numbers = side.numbers("joint")
        sizes.append(
            {
                numbers[c.id, origin]: one.nbytes
                for c in side.capture.compilations
                if c.partition is not None
                for one in c.partition.saved
                for origin in one.origins[:1]
                if (c.id, origin) in numbers
            }
        )
    mapped = {joint.pairs[n]: size for n, size in sizes[0].items() if n in joint.pairs}
    lost = {n: size for n, size in sizes[0].items() if n not in joint.pairs}
    for kind, side, some in (
        (REMOVED, sides[1], {n: s for n, s in mapped.items() if n not in sizes[1]}),
        (REMOVED, sides[0], lost),
        (ADDED, sides[1], {n: s for n, s in sizes[1].items() if n not in mapped}),
    ):
        stage = side.stage("joint")
        for number, size in some.items():
            node = stage[number]
            what = f"the result of {name(node.node)}" if node.node.op == "call_function" else "an input"
            size_words = "size unknown" if size is None else f"{size:,} bytes"
            verb = "is saved for the backward" if kind == ADDED else "is no longer saved for the backward"
            yield Change("saved", kind, f"{what} ({size_words}) {verb}", side.lines([node.address]))


_HASHES = re.compile(r"'backend_hash': '[^']*'|kernel_name'?[:=] ?'[^']*'")
_NUMBERED = re.compile(r"\b((?:cpp|triton|mps)_\w*?fused\w*?)_\d+\b")
_NAME = re.compile(
    r"\b(arg|primals_|tangents_|buf|tmp|in_ptr|out_ptr|in_out_ptr|ks|x|r|s|u)(\d+(?:_\d+)*)\b(?=(\s*=(?!=))?)"
)

MAX_LINES = 4_000
"""Longest kernel text, in lines, that is compared line by line."""

Hunk = tuple[range, range]
"""Lines of the first text, counted from 0, and the lines of the second that replace them."""


def lines(kernel: Kernel) -> list[str]:
    """Return the lines of a kernel without numbers of kernels and hashes, which carry no meaning."""
    return [_NUMBERED.sub(r"\1", line).rstrip() for line in _HASHES.sub("", kernel.source).splitlines()]


_CALL = re.compile(r"^( *)def call\(.*\n((?:\1 .*\n|\s*\n)+)", re.MULTILINE)


def calls(module: str) -> list[str]:
    """Return the lines of a module's ``call``, without comments, which name nodes of the program."""
    body = [line for call in _CALL.finditer(module) for line in call[2].splitlines()]
    bare = (_NUMBERED.sub(r"\1", line.partition("  # ")[0]).rstrip() for line in body)
    return [line for line in bare if line and not line.lstrip().startswith("#")]


def hunks(one: list[str], two: list[str]) -> list[Hunk]:
    """Return the places where two texts differ.

    Lines are aligned without the numbers in variable names. Variables of aligned lines must then correspond, from
    their definitions on: ``tmp1 - tmp2`` and ``tmp2 - tmp1`` differ, a renamed variable does not.
    Texts longer than ``MAX_LINES`` are compared as a whole.
    """
    if max(len(one), len(two)) > MAX_LINES:
        return [] if one == two else [(range(len(one)), range(len(two)))]
    bare = [[_NAME.sub(r"\1", line) for line in text] for text in (one, two)]
    differing: list[Hunk] = []
    names = _Names()
    for step, a, a_end, b, b_end in difflib.SequenceMatcher(
        None, bare[0], bare[1], autojunk=False
    ).get_opcodes():
        if step == "equal":
            differing += [
                (range(a + n, a + n + 1), range(b + n, b + n + 1))
                for n in range(a_end - a)
                if not names.agree(one[a + n], two[b + n])
            ]
        else:
            differing.append((range(a, a_end), range(b, b_end)))
    return differing


class _Names:
    """Correspondence of variable names between two texts."""

    def __init__(self) -> None:
        self._forth: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def agree(self, one: str, two: str) -> bool:
        """Return True if the variables of two lines correspond; bind those that the lines define."""
        pairs = [(a[0], b[0], a[3]) for a, b in zip(_NAME.finditer(one), _NAME.finditer(two))]
        alike = all([self._same(a, b) for a, b, assigned in pairs if not assigned])
        for a, b, assigned in pairs:
            if assigned:
                self._bind(a, b)
        return alike

    def _same(self, a: str, b: str) -> bool:
        if a not in self._forth and b not in self._back:
            self._bind(a, b)
        return self._forth.get(a) == b

    def _bind(self, a: str, b: str) -> None:
        self._back.pop(self._forth.pop(a, ""), None)
        self._forth.pop(self._back.pop(b, ""), None)
        self._forth[a], self._back[b] = b, a
