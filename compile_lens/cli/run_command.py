"""The command ``run``: it finds the program, which runs when the command line is done."""

from __future__ import annotations

import argparse

from ..errors import UsageError
from .output import OK, check_endings
from .run import Run, find_program


def run(args: argparse.Namespace) -> int:
    """Find the program; it is run when the command line is done."""
    from ..views.render.formats import PROGRAM as FORMS

    check_endings(args.out, FORMS)
    if args.cuda_graphs is not None:  # before the program runs, not after
        from ..measures.cuda_graphs import nvidia_gpu

        nvidia_gpu(args.cuda_graphs)
    words = args.left
    if words[1:] and words[0] != "--" and words[-1] == WHAT_IF:
        words, args.what_if = words[:-1], True
    if args.what_if:
        from .remedies import RemedyRuns

        args.program = RemedyRuns(
            words, args.out, args.cuda_graphs, args.json, args.full, args.time_limit, args.quiet
        )
        return OK
    if args.time_limit is not None:
        raise UsageError(f"--time-limit is for the runs of {WHAT_IF}")
    args.program = Run(find_program(words), args.out, args.cuda_graphs, args.json, args.full)
    return OK


WHAT_IF = "--what-if"
"""The one option of ours that may also be the last word of the command line."""
