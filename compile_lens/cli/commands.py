"""The commands ``demo``, ``show``, ``open`` and ``doctor``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..trials.progress import progress
from .capturing import called, captured, capturing, evaluated, options, resolved
from .exit_codes import NOT_INSTALLED, OK
from .output import check_endings, report, say
from .programs import summary

if TYPE_CHECKING:
    from ..results.program import Program

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
        if not program.exists():  # one that is there may have been changed by its reader
            program.write_text(DEMO, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write to {folder}: {error.strerror or error}; choose another with --out"
        ) from None
    with capturing(args, "sin(x)**2 + cos(x)**2"):
        function, scope = resolved(f"{program}:f")
        inputs = [evaluated("torch.rand(1000, requires_grad=True)", scope, "input")]
        capture, failure = captured(args, function, inputs, {}, backward=True)
    graphs = {
        folder / f"{phase}.svg": capture.compilations[0].graphs[phase]
        for phase in ("forward", "backward")
        if capture.compilations and phase in capture.compilations[0].graphs
    }
    return report(args, capture, [folder / "report.html", folder / "record.json"], failure, [program], graphs)


def show(args: argparse.Namespace) -> int:
    """Capture a function, print it, and write it where asked."""
    check_endings(args.out)
    with capturing(args, args.function):
        function, inputs, kwargs = called(args)
        capture, failure = captured(args, function, inputs, kwargs, target=args.target, **options(args))
    return report(args, capture, args.out, failure)


def opened(args: argparse.Namespace) -> int:
    from ..api.load import load
    from ..views.render.files import holds_program

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
    return told(args, Program.load)


def told(args: argparse.Namespace, read: Callable[[Path], Program]) -> int:
    """Print or convert what ``read`` makes of a file that holds a program."""
    from ..views.render.files import PROGRAM as FORMS

    check_endings(args.out, FORMS)
    with progress(f"reading {args.record}", quiet=args.quiet):
        program = read(args.record)
    written = [str(program.save(path)) for path in args.out]
    if args.json:
        say(json.dumps({"command": args.command, **summary(program), "written": written}, indent=2))
        return OK
    if not written:
        say(str(program))
    for path in written:
        say(f"wrote {path}")
    return OK


def doctor(args: argparse.Namespace) -> int:
    from ..trials import doctor as found_by

    with progress("looking at torch and its devices", quiet=args.quiet):
        checks = found_by.checks()
    say(json.dumps(found_by.to_dict(checks), indent=2) if args.json else found_by.page(checks))
    return OK if found_by.healthy(checks) else NOT_INSTALLED
