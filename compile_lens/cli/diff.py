"""The command ``diff``."""

from __future__ import annotations

import argparse
import json

from ..errors import UsageError
from ..record.difference import LEVELS, DifferenceRecord
from ..trials.progress import progress
from .exit_codes import DIFFERS, OK
from .output import check_endings, say

FIGURES = (
    "launches", "groups", "graphs", "graph_breaks", "recompiles", "extern", "bytes", "peak", "saved",
)  # fmt: skip
"""Figures by which ``--fail-on`` can be told; ``saved`` is the level, which says more."""


def diff(args: argparse.Namespace) -> int:
    """Print what differs between two records, write it where asked, and fail where it was asked not to differ."""
    from ..api.diff import diff as compared
    from ..views.difference.files import FORMS

    check_endings(args.out, FORMS)
    wanted = levels(args.fail_on)
    with progress(f"comparing {args.a} and {args.b}", quiet=args.quiet):
        found = compared(args.a, args.b)
    failed = differing(found, wanted)
    written = [str(found.save(path)) for path in args.out]
    if args.json:
        body = {"command": args.command, **found.to_dict(), "failed_on": failed, "written": written}
        say(json.dumps(body, indent=2))
    else:
        say(str(found))
        for path in written:
            say(f"wrote {path}")
        if failed:
            say(f"differs in {', '.join(failed)}, which --fail-on names")
    return DIFFERS if failed else OK


def differing(found: DifferenceRecord, wanted: list[str]) -> list[str]:
    """Those of the levels and figures that differ."""
    return [name for name in wanted if (found.at(name) if name in LEVELS else name in found.figures)]


def levels(given: list[str]) -> list[str]:
    """The levels and figures that ``--fail-on`` names. Raises ``UsageError`` for one that there is not."""
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    known = dict.fromkeys((*LEVELS, *FIGURES))
    for name in names:
        if name not in known:
            raise UsageError(f"--fail-on {name!r} is not one of {', '.join(known)}")
    return list(dict.fromkeys(names))
