"""The command ``import``."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..errors import UsageError
from ..trials.progress import progress
from .commands import told
from .output import check_endings, report


def imported(args: argparse.Namespace) -> int:
    """Print or convert what torch logged of a program, or a record with what torch's profiler measured of it."""
    from ..api.logs import import_trace
    from ..record.profiler_trace import is_profiler_trace
    from ..results.program import Program
    from ..views.render.files import holds_program

    if args.into is None:
        if args.id:
            raise UsageError(
                "--id goes with --into: it says which compiled graph of a profiler's trace a capture is of"
            )
        if is_profiler_trace(args.record):
            raise UsageError(
                f"{str(args.record)!r} is a trace of torch.profiler, which holds times and no compiles: say with "
                "--into beside which record they stand, a .json of a capture or a program"
            )
        return told(args, import_trace)
    trace: Path = args.record
    args.record = args.into
    if holds_program(args.into):
        if args.id:
            raise UsageError(
                "--id goes with a capture: the graphs of a program have the compile ids of the trace"
            )
        return told(args, lambda path: Program.load(path).join(trace))
    return _joined(args, trace)


def _joined(args: argparse.Namespace, trace: Path) -> int:
    """Print or convert a capture with the times of its kernels."""
    from ..api.load import load

    check_endings(args.out)
    with progress(f"reading {trace}", quiet=args.quiet):
        capture = load(args.into).join(trace, args.id)
    return report(args, capture, args.out, None, text=not args.out)
