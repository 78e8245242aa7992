"""The command ``what-if``."""

from __future__ import annotations

import argparse
import contextlib
import sys

from ..errors import UsageError
from ..trials.progress import progress, watched
from .capturing import called, one_voice, options
from .exit_codes import INTERRUPTED, OK
from .output import check_endings, deliver, say


def what_if(args: argparse.Namespace) -> int:
    """Turn one switch of the compiler at a time, say which changes what, and write that where asked.

    Interrupted it says and writes what it has, and ends as an interrupted command does.
    """
    from ..views.render.files import WHAT_IF as FORMS

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

        with one_voice(args):
            what_if_result = tried(
                function,
                *inputs,
                kwargs=kwargs or None,
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
