"""The commands ``compare``, ``diff``, ``what-if`` and ``merge``."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import sys
from collections.abc import Iterator

from ..errors import UsageError
from ..measures.quantities import of_name
from ..record import claims
from ..record.compilation import PHASES
from ..record.difference import FIGURES, LEVELS, REMOVED, Change, DifferenceRecord
from ..record.missing import Missing
from ..trials.progress import progress, watched
from .names import called, capturing, options, without_torch_errors
from .output import DIFFERS, INTERRUPTED, OK, capture_summary, check_endings, deliver, say


def compare(args: argparse.Namespace) -> int:
    """Capture a function for several targets, print a comparison, and save it to ``--out``."""
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
"""Names for ``--fail-on`` that fail only if they get worse: more launches, breaks, bytes. At other levels any
difference fails. ``saved`` means the figure here, not the level."""

CHANGES = "changes"
"""Name for a difference at any level."""

REQUIRED_CLAIMS: dict[str, tuple[str, ...]] = {
    "breaks": (claims.BREAKS, claims.SKIPS, claims.RECOMPILES),
    "graph_breaks": (claims.BREAKS,),
    "recompiles": (claims.RECOMPILES,),
    "rewrites": (claims.REWRITES,),
    "lowering": (claims.LOWERING,),
    "fusion": (claims.DECISIONS,),
    "saved": (claims.SAVED,),
    "guards": (claims.GUARDS,),
}
"""Claims of a record that each name requires; records that lack one cannot show a difference."""

STAGES: dict[str, tuple[str, ...]] = {
    "lines": ("dynamo",),
    "operators": PHASES,
    "fusion": ("groups",),
    "kernels": ("code",),
    "memory": ("code",),
    "code": ("code",),
}
"""Stages of a record that each level compares."""

ANY_DIFFERENCE = "!="
"""Suffix of a name for which any difference fails, even an improvement."""


def diff(args: argparse.Namespace) -> int:
    """Print the differences between two records, save them to ``--out``, and return the exit code by ``--fail-on``."""
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
    """Print the names of ``--fail-on`` that failed, each with the reason."""
    for name, why in failed.items():
        say(f"failed on {name}, which --fail-on names: {why}")


def failures(difference: DifferenceRecord, wanted: list[str]) -> dict[str, str]:
    """Return the names that fail, each with the first reason."""
    reasons = (
        (name, next(_reasons(difference, name), "") or next(_not_compared(difference, name), ""))
        for name in wanted
    )
    return {name: why for name, why in reasons if why}


def _not_compared(difference: DifferenceRecord, name: str) -> Iterator[str]:
    """Yield what a name compares but a record lacks; unobserved values cannot be shown to be equal."""
    bare = name.removesuffix(ANY_DIFFERENCE)
    if bare == name and name in DIRECTED and _repaired(difference):
        return
    every = bare == CHANGES
    stages = {s for each in STAGES.values() for s in each} if every else set(STAGES.get(bare, ()))
    for side, record in zip(("first", "second"), difference.captures):
        required = (
            [c for each in REQUIRED_CLAIMS.values() for c in each] if every else REQUIRED_CLAIMS.get(bare, ())
        )
        for claim in dict.fromkeys(required):
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
    bare = name.removesuffix(ANY_DIFFERENCE)
    if bare == CHANGES:
        yield from map(_words, difference.changes)
    elif bare == name and name in DIRECTED:
        yield from () if _repaired(difference) else _worse(difference, name)
    elif bare in LEVELS:
        yield from map(_words, difference.at(bare))
    else:
        yield from (_words(change) for change in difference.at("figures") if change.name == bare)


def _repaired(difference: DifferenceRecord) -> bool:
    """Return True if the first capture failed and the second compiled, which is never worse."""
    before, after = difference.captures or (None, None)
    if before is None or after is None or before.failure is None:
        return False
    return after.failure is None and not after.nothing_compiled


def _worse(difference: DifferenceRecord, name: str) -> Iterator[str]:
    if name == "breaks":  # one more break, or a changed one
        yield from (_words(change) for change in difference.at("breaks") if change.kind != REMOVED)
        return
    wanted = {"kernels": ("launches",), "figures": FIGURES}.get(name, (name,))
    yield from (_words(c) for c in difference.at("figures") if c.name in wanted and _grew(c))


def _grew(change: Change) -> bool:
    """Return True if a figure grew or may have grown: it is unknown on one side, or the backward was declined there."""
    return change.before is None or change.after is None or change.after > change.before


def _words(change: Change) -> str:
    from ..views.subjects.diff import figure

    return figure(change)


def levels(given: list[str]) -> list[str]:
    """Return the names of ``--fail-on``. Raises ``UsageError`` for an unknown name, and for an empty value: an unset
    shell variable would otherwise pass every check."""
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    known = dict.fromkeys((*DIRECTED, *LEVELS, CHANGES))
    for text in given:
        if not text.replace(",", "").strip():
            raise UsageError(
                f"--fail-on {text!r} names nothing to check; name one or more of {', '.join(known)}, or leave it out"
            )
    for name in names:
        if name.removesuffix(ANY_DIFFERENCE) not in known:
            raise UsageError(
                f"--fail-on {name!r} is not one of {', '.join(known)}; "
                f"with {ANY_DIFFERENCE} appended, as kernels{ANY_DIFFERENCE}, any "
                "difference fails, not only more"
            )
    return list(dict.fromkeys(names))


def merge(args: argparse.Namespace) -> int:
    """Print the differences between the programs of several ranks, and save them to ``--out``."""
    from ..api.ranks import merge as merged
    from ..views.render.formats import RANKS as FORMS

    check_endings(args.out, FORMS)
    with progress("comparing ranks", quiet=args.quiet):
        ranks = merged(*args.records)
    deliver(args, ranks, ranks.to_dict(), text=not args.out)
    return OK


def what_if(args: argparse.Namespace) -> int:
    """Try one compiler switch at a time, print what each changes, and save it to ``--out``.

    After an interrupt it prints and saves the results so far and returns the exit code of an interrupted command.
    """
    from ..views.render.formats import WHAT_IF as FORMS

    check_endings(args.out, FORMS)
    if args.pairs is not None and args.pairs < 0:
        raise UsageError(
            f"--pairs {args.pairs} is not a whole number of 0 or more: give the most pairs to try"
        )
    # With --json the output of the user's code goes to stderr: stdout is one document.
    output = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    bar = not args.quiet and watched()
    with output, progress(f"trying switches for {args.function}", quiet=args.quiet or bar):
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
