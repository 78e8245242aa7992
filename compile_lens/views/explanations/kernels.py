"""Kernels of a capture by Python line, and the reasons why there are not fewer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from compile_lens.errors import UsageError
from compile_lens.measures import operators
from compile_lens.measures.chain import Chain
from compile_lens.measures.fusion import why
from compile_lens.measures.fusion_answer import NOT_FUSED, Why
from compile_lens.measures.library_calls import COLLECTIVE, CUSTOM, no_templates, provider_of, template_remedy
from compile_lens.measures.members import Subject, resolve
from compile_lens.measures.unfused_pairs import UnfusedPair, unfused_pairs
from compile_lens.record.autotuning import TEMPLATES
from compile_lens.record.capture import Record
from compile_lens.record.decision import CUSTOM_REMEDY, REASONS
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.support import NEEDS

from ..findings.fusion import Groups
from ..findings.places import Place, places, size
from ..words import labels, outcome, quantities
from ..words.quantities import launched
from . import MAX_LINES, Explanation, few

TWO_PHASES = (
    "Forward and backward are two graphs, each compiled by itself, since an input needs a gradient: nothing fuses "
    "across them."
)
FORWARD_ALONE = (
    "backward=False leaves the forward alone; under torch.no_grad() there is one graph, for inference."
)

COMBO = (
    "options={'combo_kernels': True} lets one launch do the work of independent kernels, and moves no fewer bytes "
    "(what_if tries it)"
)

LANGUAGE = {"extern": "library call"}


def kernels(capture: Record, phase: str = "", only: Sequence[str] = ()) -> Explanation:
    """Return every kernel of a capture, or of one phase, and why those of one graph are separate.

    ``only`` selects languages (``"extern"``). Boundaries between graphs (a graph break, the backward) are also
    explained.
    """
    seen = [place for place in places(capture) if not phase or place.phase == phase]
    facts: list[str] = []
    for place in seen:
        code = place.compilation.code.get(place.phase)
        if code is not None:
            shown = (k for k in code.kernels if not only or k.language in only)
            facts += [kernel_summary(capture, place, code, kernel) for kernel in shown]
    if only and not facts:  # none: list the others instead
        return kernels_there(capture, seen)
    if only:  # for library calls, reasons between kernels do not apply
        called = (kernel for place in seen for kernel in _calls(place))
        told_of = dict.fromkeys(_of_library(capture, operators.called(kernel.name)) for kernel in called)
        why_called, to_try = ([words[n] for words in told_of] for n in (0, 1))
        return Explanation(
            few(facts, "kernels", "capture.kernels"),
            few(why_called, "calls"),
            tuple(dict.fromkeys(filter(None, to_try))),
        )
    reasons = list(across(capture, seen))
    remedies = [FORWARD_ALONE] if TWO_PHASES in reasons else []
    if len({place.compilation.id for place in seen}) > 1:
        remedies += hints(capture)
    for place in seen:
        for line, found_why in _between(capture, place):
            reasons.append(line)
            remedies.append(found_why.remedy)
            _add_calls(capture, found_why, reasons, remedies)
    return Explanation(
        few(facts, "kernels", "capture.kernels"),
        few(reasons, "pairs", "capture.why(a, b)"),
        tuple(dict.fromkeys(filter(None, remedies))),
    )


def kernels_there(capture: Record, seen: Sequence[Place]) -> Explanation:
    """Return every kernel of some phases, without reasons."""
    codes = [(place, place.compilation.code.get(place.phase)) for place in seen]
    facts = (
        kernel_summary(capture, place, code, k)
        for place, code in codes
        if code is not None
        for k in code.kernels
    )
    return Explanation(few(facts, "kernels", "capture.kernels"))


def of_two(capture: Record, a: Subject, b: Subject, phase: str = "") -> tuple[str, ...]:
    """Return sentences with the groups that contain each of two subjects of ``capture.why``, and the Python lines of
    the subject, or of the group if the subject is not an operator."""
    one, two, common = resolve(capture, a, b, phase)
    chain = Chain(capture)
    sentences: list[str] = []
    for place in places(capture):
        at = (place.compilation.id, place.phase)
        graph = place.graph("groups")
        if graph is None or (common and at not in common):
            continue
        named = Groups(place)
        for thing in (one, two):
            loops = set(thing.places.get(at, ()))
            own = next(iter(thing.nodes.get(at, ())), None)
            for node in graph.nodes:
                if loops & {node.name, *node.members}:
                    of_lines = lines(chain.lines(own or place.at("groups", node.name), derivatives=False))
                    sentences.append(f"{place.title}: {thing.name} is in {named.named(node.name)}{of_lines}")
    return few(sentences, "groups", "capture.compilations[i].graphs['….groups']")


def _calls(place: Place) -> Iterator[Kernel]:
    """Yield the library calls of one graph."""
    code = place.compilation.code.get(place.phase)
    yield from (k for k in (code.kernels if code is not None else ()) if k.language == "extern")


def of_calls(capture: Record, reason: Why) -> tuple[tuple[str, str], ...]:
    """Return the reason for each library call between two kernels, and what to try (``""`` for nothing)."""
    return tuple(_of_library(capture, name) for name in reason.calls)


def _add_calls(capture: Record, answer: Why, reasons: list[str], remedies: list[str]) -> None:
    for reason, remedy in of_calls(capture, answer):
        reasons.append(reason)
        remedies.append(remedy)


def _of_library(capture: Record, name: str) -> tuple[str, str]:
    """Return why an operator is a library call, as far as known, and what to try."""
    provider = provider_of(name)
    if provider == CUSTOM:
        return f"{name}: a custom operator, which Inductor calls as it is", CUSTOM_REMEDY
    if provider == COLLECTIVE:
        return f"{name}: a collective, which torch.distributed runs between the ranks", ""
    feature, words = NEEDS.get(operators.base_name(name), ("", ""))
    if feature:
        return (
            f"{name}: Inductor generates {words} itself where its backend can, and within limits; here it did not",
            f"compile_lens.support({name!r}) says which of its backends can",
        )
    operator = operators.base_name(name)
    if operator in TEMPLATES:
        reason = no_templates(capture, operator)
        return (
            f"{name}: {'' if reason else 'by default '}a library computes it; code next to it is not fused "
            f"with it{f': {reason}' if reason else ''}",
            template_remedy(capture, operator),
        )
    return (
        f"{name}: Inductor calls a library for it",
        f"compile_lens.support({name!r}) says what Inductor has for it",
    )


def by_bytes(capture: Record, phase: str = "") -> Explanation:
    """Return the kernels by bytes moved, and the pairs of groups that move some bytes twice; most first."""
    moved = [
        (-((kernel.reads or 0) + (kernel.writes or 0)), kernel_summary(capture, place, code, kernel, True))
        for place in places(capture)
        if (not phase or place.phase == phase)
        and (code := place.compilation.code.get(place.phase)) is not None
        for kernel in code.kernels
    ]
    lines_by_bytes = (line for _, line in sorted(moved, key=lambda one: one[0]))
    stake = groups(capture, phase)
    return Explanation(few(lines_by_bytes, "kernels", "capture.kernels"), stake.why, stake.to_try)


def kernel_summary(capture: Record, place: Place, code: Code, kernel: Kernel, size: bool = False) -> str:
    """Return a kernel in one line: name, kind, launches (or bytes moved if ``size``), and its Python lines."""
    often = labels.traffic(kernel) or "bytes unknown" if size else launched(code, kernel)
    kind = LANGUAGE.get(kernel.language, kernel.kind)
    return f"{place.title}: {kernel.name}, {kind}, {often}{lines(Chain(capture).lines(kernel, derivatives=False))}"


def lines(frames: Iterable[Frame], most: int = 3) -> str:
    """Return Python lines with their text, to append to a name; ``""`` if none is known."""
    known = list({(f.file, f.line): f for f in frames}.values())
    if not known:
        return ""
    if len(known) == 1:
        return f" ← {labels.place(known[0])}: {known[0].text.strip()}".rstrip(": ")
    return f" ← {labels.places(known, most)}"


def across(capture: Record, seen: Sequence[Place]) -> Iterator[str]:
    """Yield the reasons for several graphs, each with its own kernels."""
    if {"forward", "backward"} <= {place.phase for place in seen}:
        yield TWO_PHASES
    if len({place.compilation.id for place in seen}) > 1:
        yield from ended(capture)


def ended(capture: Record) -> Iterator[str]:
    """Yield the graph breaks and recompiles by which one function became several graphs."""
    for ending in capture.breaks:
        what = ending.reason.strip().partition("\n")[0]
        yield f"A graph break{lines(ending.frames[-1:])}: {what or labels.UNSAID}"
    yield from recompiled(capture)


def recompiled(capture: Record) -> Iterator[str]:
    """Yield the recompiles with their failed guards."""
    for again in capture.recompiles:
        guards = "; ".join(again.guards) or labels.UNSAID
        yield f"{again.id} is a recompile of {labels.readable(again.function)}: {guards}"


def hints(capture: Record) -> Iterator[str]:
    """Yield the advice against each graph break: what follows from its line, then the compiler's own."""
    for ending in capture.breaks:
        for hint in filter(None, map(str.strip, outcome.reason(ending).hint.splitlines())):
            yield f"{hint} ({labels.place(ending.frames[-1])})" if ending.frames else hint


def _between(capture: Record, place: Place) -> Iterator[tuple[str, Why]]:
    """Yield the pairs of kernels of one graph that are not fused, as a sentence and as a ``Why``; most bytes first."""
    code = place.compilation.code.get(place.phase)
    if code is None or len(code.kernels) < 2 or place.graph("groups") is None:
        return
    kernel_of = {group: k for k in code.kernels for group in k.groups}
    pairs = [
        pair
        for pair in unfused_pairs(capture, place.compilation.id, place.phase)
        if kernel_of.get(pair.first) is not kernel_of.get(pair.second)
    ]
    shown = set()
    for pair in ranked(pairs):
        first, second = (kernel_of[g].name if g in kernel_of else g for g in (pair.first, pair.second))
        shown.add(frozenset((first, second)))
        yield _pair_sentence(place, first, second, pair.why), pair.why
    order = sorted(code.kernels, key=lambda k: min(k.launch_lines, default=0))
    for one, two in pairwise(order) if len(order) <= MAX_LINES else ():
        if one.name != two.name and {one.name, two.name} not in shown:
            try:
                reason = why(capture, one, two, f"{place.compilation.id} {place.phase}")
            except UsageError:  # the record lacks their loops
                continue
            if reason.verdict == NOT_FUSED:
                if _combine(capture, place, one, two, reason):
                    reason = replace(reason, remedy=COMBO)
                yield _pair_sentence(place, one.name, two.name, reason), reason


def _combine(capture: Record, place: Place, one: Kernel, two: Kernel, reason: Why) -> bool:
    """Return True if Inductor could run both in one launch (combo kernels): independent pointwise Triton loops over one
    dimension."""
    if reason.remedy or reason.sentence != REASONS["no shared data"].sentence:
        return False
    plain = all(
        k.language == "triton" and k.kind == "pointwise" and "ynumel" not in k.source for k in (one, two)
    )
    if not plain or "combo_kernels" in dict(capture.options.options):
        return False
    graph = place.graph("groups")
    needs = {node.name: node.inputs for node in graph.nodes} if graph is not None else {}
    return not any(_reaches(needs, a.groups, set(b.groups)) for a, b in ((one, two), (two, one)))


def _reaches(needs: Mapping[str, Iterable[str]], start: Iterable[str], wanted: set[str]) -> bool:
    """Return True if ``start`` depends on something ``wanted``, directly or indirectly."""
    seen: set[str] = set()
    pending = list(start)
    while pending:
        for before in needs.get(pending.pop(), ()):
            if before not in seen:
                seen.add(before)
                pending.append(before)
    return bool(seen & wanted)


def ranked(pairs: Iterable[UnfusedPair]) -> list[UnfusedPair]:
    """Return the pairs, most bytes first; pairs with a library call, which never fuse, come last."""
    return sorted(pairs, key=lambda pair: (pair.why.reason == "extern", -(pair.why.saved or 0)))


def _pair_sentence(place: Place, first: str, second: str, reason: Why) -> str:
    saved = f" One kernel would move at most {size(reason.saved)} less." if reason.saved else ""
    pair = f", that is {reason.pair}" if any(reason.words) else ""
    return f"{place.title}: {first} and {second}{pair}: {reason.answer} ({reason.reason}){saved}"


def groups(capture: Record, phase: str = "") -> Explanation:
    """Return every group of a capture, or of one phase, and why groups that share data are separate."""
    facts: list[str] = []
    reasons: list[str] = []
    remedies: list[str] = []
    for place in places(capture):
        graph = place.graph("groups")
        if graph is None or (phase and place.phase != phase):
            continue
        named, chain = Groups(place), Chain(capture)
        for node in graph.calls:
            if node.kind != "nop":
                at = chain.lines(place.at("groups", node.name), derivatives=False)
                facts.append(f"{place.title}: {named.named(node.name)}{lines(at)}")
        for pair in ranked(unfused_pairs(capture, place.compilation.id, place.phase)):
            reasons.append(_pair_sentence(place, named.named(pair.first), named.named(pair.second), pair.why))
            remedies.append(pair.why.remedy)
            _add_calls(capture, pair.why, reasons, remedies)
    return Explanation(
        few(facts, "groups", "capture.compilations[i].graphs['….groups']"),
        few(reasons, "pairs", "capture.why(a, b)"),
        tuple(dict.fromkeys(filter(None, remedies))),
    )


LIBRARY = "it is a call of a library, and Inductor generates no source for it"

COPY = "what only returns its inputs, or views of them, needs no kernel; one that returns a copy, x.clone(), is one"


def _no_operation(capture: Record) -> bool:
    """Return True if nothing was compiled because there is no operation."""
    phrases = ("No ops traced", "found no tensor operation to compile")
    return any(words in capture.nothing_compiled for words in phrases)


def one(capture: Record) -> Kernel | str:
    """Return the only kernel of a capture, or else a text why there is not exactly one with a source."""
    every = capture.kernels
    missing = [f"{m.stage}: {m.reason}" for m in capture.missing if m.stage.endswith("code")]
    if outcome.state(capture) in (outcome.NOTHING, outcome.FAILED):
        head = f"{capture.function} has no kernel: {outcome.verdict(capture)}"
        return Explanation(to_try=(COPY,)).text(head) if _no_operation(capture) else head
    if missing:
        head = f"{capture.function}: how many kernels there are is not known, since code is missing"
        return Explanation(tuple(missing)).text(head)
    if outcome.state(capture) == outcome.PARTIAL and len(every) < 2:
        left = (
            f"{e.head}{lines(e.ending.frames[-1:])}: {outcome.reason(e.ending).what}"
            for e in outcome.eager(capture)
        )
        explanation = Explanation(kernels(capture).found, tuple(left), tuple(dict.fromkeys(hints(capture))))
        return explanation.text(f"{capture.function} is not one kernel: Python runs a part of it")
    if len(every) == 1 and every[0].source.strip():
        return every[0]
    if len(every) == 1:
        explanation = kernels(capture)
        reason = LIBRARY if every[0].language == "extern" else "the record holds no source of it"
        return Explanation(explanation.found, explanation.why, explanation.to_try).text(
            f"{capture.function} is one kernel without a source: {reason}"
        )
    if not every:
        return Explanation(to_try=(COPY,)).text(
            f"{capture.function} has no kernel: its graphs compute nothing that has to run"
        )
    return kernels(capture).text(f"{capture.function} is {quantities.plural(len(every), 'kernel')}, not one")
