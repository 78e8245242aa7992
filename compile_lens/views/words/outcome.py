"""Outcome of a capture: its state and verdict, the parts that ran eagerly, and the savings in operators and bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compile_lens.measures.ledger import Ledger, Row
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.program import is_library, program_line
from compile_lens.measures.quantities import graphs
from compile_lens.record import claims
from compile_lens.record.breaks import BREAK, LIMIT, NEVER_RAN, REST, WHOLE, Ending, Skip
from compile_lens.record.capture import Failure, Record
from compile_lens.record.compilation import PHASES
from compile_lens.record.figures import MODELLED, AtLeast, Figure, summed
from compile_lens.record.graph import Frame, Graph
from compile_lens.record.messages import NO_COMPILATION, all_names

from ..document import Saving
from . import quantities
from .break_advice import helpful, of_line
from .labels import UNSAID, place, readable, without_folders
from .quantities import counted, observed, plural
from .remedies import of_library

COMPILED, PARTIAL, NOTHING, FAILED = STATES = ("compiled", "partial", "nothing", "failed")
"""Values of ``state``. ``partial``: something was compiled, and a part of the program ran eagerly, or may have, if that
was not observed."""


def state(capture: Record) -> str:
    """Return one of ``STATES``; ``compiled`` only if the whole program was compiled."""
    if capture.failure is not None:
        return FAILED
    if capture.nothing_compiled or not capture.compilations:
        return NOTHING
    return PARTIAL if capture.breaks or capture.skipped or eager_parts_unknown(capture) else COMPILED


def eager_parts_unknown(capture: Record) -> str:
    """Return why eagerly run parts are not fully known; ``""`` if all were observed."""
    return capture.lacks(claims.BREAKS, claims.SKIPS)


def verdict(capture: Record) -> str:
    """Return the outcome as a sentence without a full stop, and without the message of a failure."""
    ended = state(capture)
    if capture.failure is not None:
        call = f"call {len(capture.calls)}, " if capture.calls else ""  # the call started last failed
        return f"failed in {call}stage {capture.failure.stage}: {capture.failure.type}"
    if ended == NOTHING:
        reason = capture.nothing_compiled
        return f"nothing was compiled: {reason}" if reason else NO_COMPILATION
    parts = [plural(graphs(capture), "graph")]
    parts += filter(None, (broke(capture), recompiled(capture)))
    parts += skips(capture.skipped)
    phases = [p for p in PHASES if any(p in c.phases for c in capture.compilations)]
    if phases:
        parts.append(" and ".join(phases))
    codes = [code for c in capture.compilations for code in c.code.values()]
    if codes:
        parts.append(plural(len(capture.kernels), "kernel"))
        launches = ledger_of(capture).total.launches
        parts.append("launches unknown" if launches is None else counted(launches, "launch", "launches"))
    counts = ", ".join(parts)
    never = next((s for s in capture.skipped if s.kind == NEVER_RAN), None)
    if never is not None:
        return f"{never.function} never ran: {never.consequence or never.cause.reason}. Compiled for it: {counts}"
    if eager_parts_unknown(capture):
        seen = "of a program" if capture.lacks(claims.EVALUATIONS) else "compiled, as far as was seen"
        return f"{seen}: {counts}. What ran eagerly was not seen"
    return f"{'partly compiled' if ended == PARTIAL else 'compiled'}: {counts}"


def raised(failure: Failure) -> str:
    """Return the error in one line: an operator's exception on fake tensors if Dynamo quotes it, else the first line of
    the message."""
    match = _OPERATOR.search(failure.message)
    if match:
        return f"{match['type']}: {match['said']}"
    line = failure.message.strip().partition("\n")[0].strip()
    # The program's own exceptions are often unclear without their type; the compiler's messages are sentences.
    return (f"{failure.type}: {line}" if failure.stage == "run" else line) if line else failure.type


_OPERATOR = re.compile(
    r"""with fake tensors: (?s:.*): got (?P<type>\w+)\((?P<quote>['"])(?P<said>.*)(?P=quote)\)"""
)
"""Format in which Dynamo quotes an operator's exception (torch 2.11 to 2.15)."""


def warnings(capture: Record) -> tuple[tuple[str, str], ...]:
    """Return the warnings to show before any figure: a failure, graph breaks, recompiles, eager parts. Each has a few
    words and the section with details: ``break``, ``recompile``, ``eager`` or ``""``."""
    every = []
    if capture.failure is not None:
        every.append((f"failed: {capture.failure.type}", ""))
    elif state(capture) == NOTHING:
        every.append(("nothing was compiled", ""))
    every += [(words, "break") for words in filter(None, [broke(capture)])]
    every += [(words, "recompile") for words in filter(None, [recompiled(capture)])]
    return (*every, *((count, "eager") for count in skips(capture.skipped)))


def broke(capture: Record) -> str:
    """Return the number of graph breaks, and of their places in the source if these are fewer; ``""`` for none."""
    count = observed(len(capture.breaks), "graph break", capture.lacks(claims.BREAKS))
    places = broken(capture)
    return count if len(places) == len(capture.breaks) else f"{count} at {plural(len(places), 'place')}"


def recompiled(capture: Record) -> str:
    """Return the number of recompiles in words; ``""`` for none."""
    return observed(len(capture.recompiles), "recompile", capture.lacks(claims.RECOMPILES))


def broken(capture: Record) -> list[tuple[Ending, int]]:
    """Return the graph breaks grouped by place and reason: the first of each group, and its count."""
    places: dict[object, list[Ending]] = {}
    for one in capture.breaks:
        places.setdefault(_broke_at(one), []).append(one)
    return [(breaks[0], len(breaks)) for breaks in places.values()]


def _broke_at(ending: Ending) -> object:
    """Return the key of a break's place: the same line and reason, in any frame, is one place."""
    return (ending.frames[-1], ending.link or ending.reason) if ending.frames else ending


_SKIPS = {
    WHOLE: ("function skipped", "functions skipped"),
    REST: ("function skipped in part", "functions skipped in part"),
    LIMIT: ("function at its recompile limit", "functions at their recompile limit"),
}


def skips(skipped: Iterable[Skip]) -> list[str]:
    """Return the number of functions that ran eagerly, by kind, each function counted once."""
    functions = [(s.kind, (s.function, s.file, s.line)) for s in skipped]
    counts = ((kind, len({where for k, where in functions if k == kind})) for kind in _SKIPS)
    return [plural(count, *_SKIPS[kind]) for kind, count in counts if count]


@dataclass(frozen=True)
class Reason:
    """A graph break in words: what, why, how to avoid it, the documentation page, and the full message if it has
    more."""

    what: str
    why: str
    hint: str
    whole: str
    link: str = ""


def reason(ending: Ending) -> Reason:
    """Return the parts of a graph break's reason, with files without folders (except in the full message) and without
    repeated hints."""
    what, _, rest = without_folders(ending.reason.strip()).partition("\n")
    lines = [line.strip() for line in rest.split("\n")]
    stop = next((i for i, line in enumerate(lines) if line.startswith(_AFTER)), len(lines))
    why = "\n".join(lines[:stop]).strip().removeprefix("Explanation:").strip()
    whole = ending.reason.strip() if any(lines[stop:]) else ""
    hint = helpful(ending, without_folders(ending.hint.strip()))
    for wrong, meant in _MEANT:
        hint = hint.replace(wrong, meant)
    if ending.frames and is_library(ending.frames[-1]):
        settings = (text for text in hint.split("\n") if re.search(r"\btorch\._\w+\.config\b", text))
        reached = program_line(ending.frames)
        calls = () if reached is None else (*of_line(ending, reached), of_library(ending.frames[-1], reached))
        hint = "\n".join((*calls, *settings))
    elif ending.frames:
        hint = "\n".join(filter(None, (*of_line(ending, ending.frames[-1]), hint)))
    return Reason(what or UNSAID, why, hint, whole, ending.link.strip())


_MEANT = (("torch._dynamo.trace_autograd_ops", "torch._dynamo.config.trace_autograd_ops"),)
"""Wrong names in torch's hints, with the correct ones."""


_AFTER = ("Hint:", "Developer debug context:", "For more details about this graph break")
"""Starts of the lines that follow the explanation in a Dynamo message (torch 2.11 to 2.15)."""


@dataclass(frozen=True)
class Eager:
    """One place where the program continued eagerly.

    Attributes:
        head: the event, and the lines that run eagerly.
        ending: the compiler's reason, with stack, hint and link.
        why: the consequence for the function, in the compiler's words; ``""`` if ``head`` has it.
    """

    head: str
    ending: Ending
    why: str = ""


def eager(capture: Record) -> tuple[Eager, ...]:
    """Return every place where the program continued eagerly: graph breaks in graph order, then skipped frames.

    Breaks of several frames at one place are merged, as in ``broken``, if Dynamo continued in the same way.

    Those in the user's functions come before those in torch's (such as an optimizer).
    """
    rests = {s.compilation: s for s in capture.skipped if s.kind == REST and s.compilation}
    every, places = [], dict[object, tuple[Ending, str, list[str]]]()
    for compilation in capture.compilations:
        ending = compilation.ending
        if ending is None or ending.kind != BREAK:
            continue
        rest = rests.pop(compilation.id, None)
        rest_left = (
            f", which Dynamo could not resume from: the rest of {_eager(rest)}" if rest is not None else ""
        )
        places.setdefault((_broke_at(ending), rest_left), (ending, rest_left, []))[2].append(compilation.id)
    for ending, rest_left, ids in places.values():
        every.append(
            Eager(
                f"{'graph break' if len(ids) == 1 else 'graph breaks'} after {all_names(ids, _IDS)}{rest_left}",
                ending,
            )
        )
    shown = [s for s in capture.skipped if s not in rests.values() and not (s.kind == REST and s.compilation)]
    every += [_skipped(s) for s in (*rests.values(), *shown)]
    return tuple(sorted(every, key=lambda one: of_torch(one.ending.frames)))


_IDS = 6


def of_torch(frames: Iterable[Frame]) -> bool:
    """Return True if a stack is known and holds only torch's own functions."""
    own = [frame.of_torch for frame in frames]
    return bool(own) and all(own)


def stopped(capture: Record) -> tuple[int, str] | None:
    """Return the number of the compilation in which the compiler failed, and the phase, ``""`` before the phases; None
    if it did not fail, or in no recorded compilation. Backwards are compiled from the last to the first."""
    stage = capture.failure.stage if capture.failure is not None else ""
    numbers = range(len(capture.compilations) - 1, -1, -1)
    failed = (n for n in numbers if any(gap.stage == stage for gap in capture.compilations[n].missing))
    number = next(failed, None)
    head = stage.partition(".")[0]
    return None if number is None else (number, head if head in PHASES else "")


def first(capture: Record) -> int:
    """Return the number of the compilation to show first: the failed one, if any; else one of the user's functions,
    preferably with a kernel; else one of torch's, preferably with a graph."""
    where = stopped(capture)
    if where is not None:
        return where[0]

    def rank(number: int) -> tuple[bool, bool, bool]:
        compilation = capture.compilations[number]
        ending = compilation.ending
        frames = [f for s in compilation.stages if isinstance(s, Graph) for n in s.nodes for f in n.frames]
        torchs = of_torch((*frames, *(ending.frames if ending is not None else ())))
        works = any(code.kernels for code in compilation.code.values())
        return torchs, torchs and not compilation.graphs, not works

    return min(range(len(capture.compilations)), key=rank, default=0)


def _skipped(skip: Skip) -> Eager:
    if skip.kind == NEVER_RAN:
        why = skip.consequence or skip.cause.reason
        cause = (
            skip.cause
            if skip.consequence != skip.cause.reason
            else Ending(skip.cause.kind, why, (), skip.cause.hint)
        )
        return Eager(
            f"{readable(skip.function)} never ran, compiled or not ({_lines(skip)})",
            cause,
            "" if why == cause.reason else why,
        )
    if skip.kind == LIMIT:
        head = f"{readable(skip.function)} reached its recompile limit"
        sentence = f"{head}: calls that fit none of its variants ran eagerly ({_lines(skip)})"
        return Eager(sentence, skip.cause, skip.consequence)
    what = "the rest of " if skip.kind == REST else ""
    often = f", {skip.count} times" if skip.count > 1 else ""
    return Eager(f"skipped{often}: {what}{_eager(skip)}", skip.cause, skip.consequence)


def _eager(skip: Skip) -> str:
    return f"{readable(skip.function)} runs eagerly ({_lines(skip)})"


def _lines(skip: Skip, limit: int = 6) -> str:
    where = Frame(skip.file, skip.line, skip.function)
    if not skip.lines:
        return place(where)
    some = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in skip.lines[:limit])
    more = ", …" if len(skip.lines) > limit else ""
    one = len(skip.lines) == 1 and skip.lines[0][0] == skip.lines[0][1]
    return f"{place(where).rpartition(':')[0]}, {'line' if one else 'lines'} {some}{more}"


UNSAVED = "none saved"
BY_FUSION = f"{UNSAVED} by fusion"
EAGER = ", eager operators before"
ATEN = ", ATen operators before"
"""Labels for the bytes before: eager PyTorch's operators, if their bytes differ from those of the ATen operators; ATen
operators, if eager's bytes are unknown."""
AS_CAPTURED = ", as captured"
"""Label for operators before if eager PyTorch runs others than the captured graph, as in many optimizers' steps."""
IN_PLACE = "saved by writes in place"
"""Label for savings that are not due to fusion: eager PyTorch copies a tensor that the generated code writes in
place."""


def saving(ledger: Ledger) -> tuple[Saving, ...]:
    """Return the savings in operators and in bytes, over the graphs where both are known; if there are none, each over
    the graphs where it is known.

    Bytes before are those that eager PyTorch moves, if known. ``what`` reports no savings only if eager PyTorch neither
    moves nor launches more; ``before`` is ``""`` if the bytes are equal.
    """
    out = []
    every = ledger.single
    pairs = (("work", "eager_ops", "launches"), ("memory traffic", "bytes_before", "bytes_after"))
    whole = [r for r in every if all(getattr(r, one) is not None for _, *both in pairs for one in both)]
    for what, first, last in pairs:
        known = whole or [r for r in every if None not in (getattr(r, first), getattr(r, last))]
        before, after = (summed(getattr(r, column) for r in known) for column in (first, last))
        if not known or before is None or after is None:
            continue
        some = (
            f", {len(known):,} of {quantities.plural(len(every), 'graph')}" if len(known) < len(every) else ""
        )
        if first == "eager_ops":
            worse = f", {UNSAVED}" if _no_fewer(before, after) else ""
            some = (AS_CAPTURED if any(row.as_captured for row in known) else "") + some
            words = counted(before, "eager op"), counted(after, "launch", "launches")
            out.append(Saving(what + some + worse, *words, _much_fewer(before, after)))
        else:
            out.append(_bytes(what + some, known, before, after))
    return tuple(out)


def _bytes(what: str, rows: list[Row], aten: Figure | AtLeast, after: Figure | AtLeast) -> Saving:
    """Return bytes before and after; before are those of eager PyTorch's operators if known for each graph, else of
    ATen's."""
    eager = bytes_of_eager(rows)
    before = aten if eager is None else eager
    what += ATEN if eager is None else EAGER if eager != aten else ""
    numbers = quantities.amount(before), quantities.amount(after), _much_fewer(before, after)
    operators, launches = (summed(getattr(r, c) for r in rows) for c in ("eager_ops", "launches"))
    if eager is None or operators is None or launches is None:
        return Saving(what, *numbers)
    if _no_fewer(before, after) and _no_fewer(operators, launches):
        if before == after:
            return Saving(f"{what.removesuffix(EAGER)}, {BY_FUSION}", "", numbers[1])
        return Saving(f"{what}, {BY_FUSION}", *numbers)
    if isinstance(before, Figure) and isinstance(after, Figure):
        in_place = min(sum(row.copied_bytes for row in rows), before - after)
        if in_place > 0:
            part = "all" if in_place == before - after else quantities.amount(Figure(in_place, MODELLED))
            what += f", {part} {IN_PLACE}"
    return Saving(what, *numbers)


def bytes_of_eager(rows: list[Row]) -> Figure | AtLeast | None:
    """Return the bytes that the eager operators of several rows move; None if those of any row are unknown."""
    figures = [row.eager_bytes for row in rows]
    return None if None in figures else summed(figures)


def _no_fewer(before: Figure | AtLeast, after: Figure | AtLeast) -> bool:
    """Return True if ``after`` is never below ``before``."""
    most = before if isinstance(before, Figure) else before.most
    return most is not None and (after if isinstance(after, Figure) else after.least) >= most


def _much_fewer(before: Figure | AtLeast, after: Figure | AtLeast) -> bool:
    """Return True if every call saves at least a fifth, the threshold for the colour of a saving."""
    least = before if isinstance(before, Figure) else before.least
    most = after if isinstance(after, Figure) else after.most
    return most is not None and 5 * most <= 4 * least


def saved(saving: Saving) -> str:
    """Return one part of ``saving`` as text: ``work: 5 eager ops → 1 launch``."""
    what, before, after, _ = saving
    return f"{what}: {before} → {after}" if before else f"{what}: {after}"
