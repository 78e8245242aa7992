"""The command ``divergence``."""

from __future__ import annotations

import argparse
import contextlib
import sys

from ..trials.progress import progress
from .names import called, options, without_torch_errors
from .output import DIFFERS, OK, check_endings, deliver


def divergence(args: argparse.Namespace) -> int:
    """Compare compiled with eager; where they differ, print the cause, and write it where asked."""
    from ..views.render.formats import DIVERGENCE as FORMS

    check_endings(args.out, FORMS)
    # With --json what the user's code prints goes to stderr: stdout is one document.
    apart = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    with apart, progress(f"comparing {args.function} with eager", quiet=args.quiet):
        function, inputs, kwargs = called(args)
        from ..api.divergence import divergence as compared

        with without_torch_errors(args):
            given = {name: value for name, value in options(args).items() if name != "build"}
            result = compared(function, *inputs, kwargs=kwargs, target=args.target, **given)
    deliver(args, result, result.to_dict())
    return DIFFERS if result.agrees is False else OK
