"""The commands ``compare``, ``diff``, ``what-if`` and ``merge``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Iterable, Iterator

from ..errors import UsageError
from ..measures.quantities import of_name
from ..record import claims
from ..record.capture import Record
from ..record.compilation import PHASES
from ..record.difference import FIGURES, LEVELS, REMOVED, Change, DifferenceRecord
from ..record.missing import Missing, NotApplicable
from ..trials.progress import progress, watched
from .names import called, capturing, options, without_torch_errors
from .output import DIFFERS, INTERRUPTED, OK, capture_summary, check_endings, deliver, say


def compare(args: argparse.Namespace) -> int:
    """Capture a function for several targets, print them side by side, and write that where asked."""
    from ..views.render.formats import COMPARISON as FORMS

    check_endings(args.out, FORMS)
    with capturing(args, args.function):
        function, inputs, kwargs = called(args)
        from ..api.compare import TARGETS
        from ..api.compare import compare as compared

        with without_torch_errors(args):
            comparison = compared(
                function, *inputs, targets=args.target or TARGETS, kwargs=kwargs, **options(args)
            )
    body = {
        "function": comparison.function,
        "targets": {target: capture_summary(capture) for target, capture in comparison.captures.items()},
        "failures": comparison.failures,
        "rows": [dataclasses.asdict(row) for row in comparison.rows],
        "differences": [dataclasses.asdict(difference) for difference in comparison.differences],
    }
    deliver(args, comparison, body)
    return OK


DIRECTED = ("kernels", "breaks", "figures", *FIGURES)
"""Names of ``--fail-on`` for what can get worse: more launches, breaks, bytes. Any difference at another level fails;
``saved`` is a level too, and here the figure."""

CHANGES = "changes"
"""Name that stands for a difference at any level."""

RESTS_ON: dict[str, tuple[str, ...]] = {
    "breaks": (claims.BREAKS, claims.SKIPS, claims.RECOMPILES),
    "graph_breaks": (claims.BREAKS,),
    "recompiles": (claims.RECOMPILES,),
    "rewrites": (claims.REWRITES,),
    "lowering": (claims.LOWERING,),
    "fusion": (claims.DECISIONS,),
    "saved": (claims.SAVED,),
    "guards": (claims.GUARDS,),
}
"""The claims of a record that a name rests on: two records that lack one have no difference that could be seen."""

STAGES: dict[str, tuple[str, ...]] = {
    "lines": ("dynamo",),
    "operators": PHASES,
    "fusion": ("groups",),
    "kernels": ("code",),
    "memory": ("code",),
    "code": ("code",),
}
"""The stages of a record that a level compares."""

ANY = "!="
"""Suffix of a name of which any difference fails, an improvement too."""


def diff(args: argparse.Namespace) -> int:
    """Print what differs between two records, write it where asked, and fail where it was asked not to get worse."""
    from ..api.load import diff as compared
    from ..views.render.formats import DIFFERENCE as FORMS

    check_endings(args.out, FORMS)
    wanted = levels(args.fail_on)
    with progress(f"comparing {args.a} and {args.b}", quiet=args.quiet):
        difference = compared(args.a, args.b)
    failed = failures(difference, wanted)
    deliver(args, difference, {**difference.to_dict(), "failed_on": list(failed)})
    if not args.json:
        say_failed(failed)
    return DIFFERS if failed else OK


def say_failed(failed: dict[str, str]) -> None:
    """Say which of the names of ``--fail-on`` fail, and with what."""
    for name, why in failed.items():
        say(f"failed on {name}, which --fail-on names: {why}")


def failures(difference: DifferenceRecord, wanted: list[str]) -> dict[str, str]:
    """Return the names that fail, each with the first change that fails it."""
    reasons = (
        (name, next(_reasons(difference, name), "") or next(_not_compared(difference, name), ""))
        for name in wanted
    )
    return {name: why for name, why in reasons if why}


def _not_compared(difference: DifferenceRecord, name: str) -> Iterator[str]:
    """Say what a name compares and a record does not hold: where nothing was seen, nothing was seen to be equal."""
    bare = name.removesuffix(ANY)
    if bare == name and name in DIRECTED and _repaired(difference):
        return
    every = bare == CHANGES
    stages = {s for each in STAGES.values() for s in each} if every else set(STAGES.get(bare, ()))
    for side, record in zip(("first", "second"), difference.captures):
        rests_on = [c for each in RESTS_ON.values() for c in each] if every else RESTS_ON.get(bare, ())
        for claim in dict.fromkeys(rests_on):
            if lacking := record.lacks(claim):
                yield f"{claim} were not all seen in the {side}: {lacking}"
        figures = FIGURES if every or bare == "figures" else ("launches",) if bare == "kernels" else (bare,)
        for figure in (one for one in FIGURES if one in figures):
            value = of_name(record, figure)
            if isinstance(value, Missing):
                yield f"{figure} of the {side} are not known: {value.reason}"
        for missing in record.missing:
            if missing.stage.rpartition(" ")[2].rpartition(".")[2] in stages:
                yield f"the stage {missing.stage} of the {side} was not seen: {missing.reason}"


def _reasons(difference: DifferenceRecord, name: str) -> Iterator[str]:
    bare = name.removesuffix(ANY)
    if bare == CHANGES:
        yield from map(_words, difference.changes)
    elif bare == name and name in DIRECTED:
        yield from () if _repaired(difference) else _worse(difference, name)
    elif bare in LEVELS:
        yield from map(_words, difference.at(bare))
    else:
        yield from (_words(change) for change in difference.at("figures") if change.name == bare)


def _repaired(difference: DifferenceRecord) -> bool:
    """Return True if the first capture failed and the second compiled: that is never worse."""
    before, after = difference.captures or (None, None)
    if before is None or after is None or before.failure is None:
        return False
    return after.failure is None and not after.nothing_compiled


def _worse(difference: DifferenceRecord, name: str) -> Iterator[str]:
    if name == "breaks":  # one more, or an end that is another: it compiled, and now fails
        yield from (_words(change) for change in difference.at("breaks") if change.kind != REMOVED)
        return
    wanted = {"kernels": ("launches",), "figures": FIGURES}.get(name, (name,))
    yield from (
        _words(c) for c in difference.at("figures") if c.name in wanted and _grew(c, difference.captures)
    )


def _grew(change: Change, records: Iterable[Record]) -> bool:
    """Return True if a figure grew. A figure that is unknown on one side may have grown, also if it is unknown because
    the backward was declined; where there is nothing to count it is 0."""
    before, after = (
        0
        if isinstance(of_name(record, change.name), NotApplicable) and record.options.backward != "no"
        else value
        for record, value in zip(records, (change.before, change.after), strict=True)
    )
    return before is None or after is None or after > before


def _words(change: Change) -> str:
    from ..views.subjects.diff import figure

    return figure(change)


def levels(given: list[str]) -> list[str]:
    """The names of ``--fail-on``. Raises ``UsageError`` for one that there is not, and where it is given none: what a
    variable of a shell that is not set leaves would hold nothing, and pass."""
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    known = dict.fromkeys((*DIRECTED, *LEVELS, CHANGES))
    for text in given:
        if not text.replace(",", "").strip():
            raise UsageError(
                f"--fail-on {text!r} names nothing to hold; name one or more of {', '.join(known)}, or leave it out"
            )
    for name in names:
        if name.removesuffix(ANY) not in known:
            raise UsageError(
                f"--fail-on {name!r} is not one of {', '.join(known)}; with {ANY} appended, as kernels{ANY}, any "
                "difference fails, not only more"
            )
    return list(dict.fromkeys(names))


def merge(args: argparse.Namespace) -> int:
    """Print what differs between the programs of several ranks, and write it where asked."""
    from ..api.ranks import merge as merged
    from ..views.render.formats import RANKS as FORMS

    check_endings(args.out, FORMS)
    with progress("comparing ranks", quiet=args.quiet):
        ranks = merged(*args.records)
    deliver(args, ranks, ranks.to_dict(), text=not args.out)
    return OK


def what_if(args: argparse.Namespace) -> int:
    """Turn one switch of the compiler at a time, say which changes what, and write that where asked.

    Interrupted it says and writes what it has, and ends as an interrupted command does.
    """
    from ..views.render.formats import WHAT_IF as FORMS

    check_endings(args.out, FORMS)
    if args.pairs is not None and args.pairs < 0:
        raise UsageError(
            f"--pairs {args.pairs} is not a whole number from 0: give how many are tried at most"
        )
    # With --json what the user's code prints goes to stderr: stdout is one document.
    apart = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    bar = not args.quiet and watched()
    with apart, progress(f"trying switches for {args.function}", quiet=args.quiet or bar):
        function, inputs, kwargs = called(args)
        from ..api.what_if import what_if as tried

        with without_torch_errors(args):
            what_if_result = tried(
                function,
                *inputs,
                kwargs=kwargs,
                target=args.target,
                switches=args.switch or None,
                pairs=True if args.pairs is None else args.pairs,
                show_progress=bar,
                **options(args),
            )
    deliver(args, what_if_result, what_if_result.to_dict())
    if what_if_result.interrupted:
        say("compile-lens: interrupted", sys.stderr)
    return INTERRUPTED if what_if_result.interrupted else OK
