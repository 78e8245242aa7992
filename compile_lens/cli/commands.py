"""The commands ``demo``, ``show``, ``open``, ``import``, ``support``, ``doctor``, ``divergence`` and ``run``."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..record.files import write_text
from ..trials.progress import progress
from .names import called, captured, capturing, evaluate, options, resolve, without_torch_errors
from .output import DIFFERS, NOT_INSTALLED, OK, check_endings, deliver, document, report, say
from .programs import summary
from .run import Run, find_program

if TYPE_CHECKING:
    from ..results.program import Program

WHAT_IF = "--what-if"
"""The only option of ``run`` that may also be the last word of the command line."""

DEMO = '''"""What `compile-lens demo` captures. Change it and run the demo again."""

import torch


def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2
'''


def demo(args: argparse.Namespace) -> int:
    folder: Path = args.out
    program = folder / "demo.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not program.exists():  # the user may have edited an existing one
            write_text(program, DEMO)
    except OSError as error:
        raise UsageError(
            f"cannot write to {folder}: {error.strerror or error}; choose another with --out"
        ) from None
    with capturing(args, "sin(x)**2 + cos(x)**2"):
        function, scope = resolve(f"{program}:f")
        inputs = [evaluate("torch.rand(1000, requires_grad=True)", scope, "input")]
        capture, failure = captured(args, function, inputs, {}, backward=True)
    graphs = {
        folder / f"{phase}.svg": capture.compilations[0].graphs[phase]
        for phase in ("forward", "backward")
        if capture.compilations and phase in capture.compilations[0].graphs
    }
    return report(args, capture, [folder / "report.html", folder / "record.json"], failure, [program], graphs)


def show(args: argparse.Namespace) -> int:
    """Capture a function, print the capture, and save it to ``--out``."""
    check_endings(args.out)
    with capturing(args, args.function):
        function, inputs, kwargs = called(args)
        capture, failure = captured(args, function, inputs, kwargs, target=args.target, **options(args))
        if args.memory_curve and failure is None:
            with without_torch_errors(args):
                capture.memory_curve(function, *inputs, kwargs=kwargs)
    return report(args, capture, args.out, failure)


def opened(args: argparse.Namespace) -> int:
    from ..api.load import load
    from ..record.files import holds_program

    if holds_program(args.record):
        return opened_program(args)
    check_endings(args.out)
    with progress(f"reading {args.record}", quiet=args.quiet):
        capture = load(args.record)
    return report(args, capture, args.out, None, text=args.story or not args.out)


def opened_program(args: argparse.Namespace) -> int:
    """Print or convert the record of a program."""
    from ..results.program import Program

    if args.story:
        raise UsageError("a program has no story; open it without --story")
    return show_program(args, Program.load)


def show_program(args: argparse.Namespace, read: Callable[[Path], Program]) -> int:
    """Print or convert the program that ``read`` returns for the file."""
    from ..views.render.formats import PROGRAM as FORMS

    check_endings(args.out, FORMS)
    with progress(f"reading {args.record}", quiet=args.quiet):
        program = read(args.record)
    deliver(args, program, summary(program) if args.json else {}, text=not args.out)
    return OK


def doctor(args: argparse.Namespace) -> int:
    from ..trials import doctor as doctor_checks

    with progress("looking at torch and its devices", quiet=args.quiet):
        checks = doctor_checks.checks()
    body = {"command": args.command, **doctor_checks.to_dict(checks)}
    say(document(body) if args.json else doctor_checks.page(checks))
    return OK if doctor_checks.healthy(checks) else NOT_INSTALLED


def support(args: argparse.Namespace) -> int:
    """Print which backends implement operators, and which operators of a record a target lacks."""
    if (args.capture is None) != (args.target is None):
        given, other = (
            ("--capture", "--target mps") if args.target is None else ("--target", "--capture record.json")
        )
        raise UsageError(f"{given} needs {other}: a record is checked for a target")
    if not args.op and args.capture is None:
        raise UsageError(
            "name an operator, such as `compile-lens support sort`, or a record: --capture record.json --target mps"
        )
    from ..api.support import lacking
    from ..api.support import support as supported

    with progress("reading torch's tables", quiet=args.quiet):
        operators = [supported(op) for op in args.op]
        lack = None
        if args.capture is not None:
            from ..api.load import load

            lack = lacking(load(args.capture), args.target)
    if args.json:
        body = {
            "command": args.command,
            "operators": [one.to_dict() for one in operators],
            "lacking": None if lack is None else lack.to_dict(),
        }
        say(document(body))
        return OK
    for one in (*operators, *([lack] if lack is not None else [])):
        say(f"{one}\n")
    return OK


def imported(args: argparse.Namespace) -> int:
    """Print or convert torch's log of a program, or a record joined with a profiler trace."""
    from ..api.load import import_trace
    from ..record.files import holds_program
    from ..results.program import Program

    if args.into is None:
        if args.id:
            raise UsageError(
                "--id goes with --into: it says which compiled graph of a profiler's trace a capture is of"
            )
        return show_program(args, import_trace)
    trace: Path = args.record
    args.record = args.into
    if holds_program(args.into):
        if args.id:
            raise UsageError(
                "--id goes with a capture: the graphs of a program have the compile ids of the trace"
            )
        return show_program(args, lambda path: Program.load(path).join(trace))
    return _joined(args, trace)


def _joined(args: argparse.Namespace, trace: Path) -> int:
    """Print or convert a capture with the times of its kernels."""
    from ..api.load import load

    check_endings(args.out)
    with progress(f"reading {trace}", quiet=args.quiet):
        capture = load(args.into).join(trace, args.id)
    return report(args, capture, args.out, None, text=not args.out)


def divergence(args: argparse.Namespace) -> int:
    """Compare compiled with eager, print the cause of a difference, and save it to ``--out``."""
    from ..views.render.formats import DIVERGENCE as FORMS

    check_endings(args.out, FORMS)
    # With --json the output of the user's code goes to stderr: stdout is one document.
    output = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    with output, progress(f"comparing {args.function} with eager", quiet=args.quiet):
        function, inputs, kwargs = called(args)
        from ..api.divergence import divergence as compared

        with without_torch_errors(args):
            given = {name: value for name, value in options(args).items() if name != "build"}
            result = compared(function, *inputs, kwargs=kwargs, target=args.target, **given)
    deliver(args, result, result.to_dict())
    return DIFFERS if result.agrees is False else OK


def run(args: argparse.Namespace) -> int:
    """Find the program to run; ``main`` runs it after this command has returned."""
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
