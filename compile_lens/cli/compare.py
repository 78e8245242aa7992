"""The command ``compare``."""

from __future__ import annotations

import argparse
import dataclasses
import json
from typing import TYPE_CHECKING, Any

from ..trials.progress import progress
from .capturing import called, capturing, one_voice, options
from .exit_codes import OK
from .output import capture_summary, check_endings, say

if TYPE_CHECKING:
    from ..results.comparison import Comparison


def compare(args: argparse.Namespace) -> int:
    """Capture a function for several targets, print them side by side, and write that where asked."""
    from ..views.render.files import COMPARISON as FORMS

    check_endings(args.out, FORMS)
    with capturing(args, args.function):
        function, inputs, kwargs = called(args)
        from ..api.compare import TARGETS
        from ..api.compare import compare as compared

        with one_voice(args):
            comparison = compared(
                function, *inputs, targets=args.target or TARGETS, kwargs=kwargs or None, **options(args)
            )
    if not args.json:
        say(str(comparison))
    written = []
    for path in args.out:
        with progress(f"writing {path}", quiet=args.quiet):
            written.append(comparison.save(path))
    if args.json:
        say(
            json.dumps(
                {"command": args.command, **_summary(comparison), "written": [str(p) for p in written]},
                indent=2,
            )
        )
    else:
        for path in written:
            say(f"wrote {path}")
    return OK


def _summary(found: Comparison) -> dict[str, Any]:
    return {
        "function": found.function,
        "targets": {target: capture_summary(capture) for target, capture in found.captures.items()},
        "failures": found.failures,
        "rows": [dataclasses.asdict(row) for row in found.rows],
        "differences": [dataclasses.asdict(difference) for difference in found.differences],
    }
