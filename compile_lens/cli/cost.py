"""The commands ``cost`` and ``memory``."""

from __future__ import annotations

import argparse
from typing import Any

from .names import called, captured, capturing, one_voice, options
from .output import FAILED, OK, check_endings, deliver, document, error_dict, say


def cost(args: argparse.Namespace) -> int:
    """Capture a function and print what a call costs, by line, kernel or module."""
    with capturing(args, args.function):
        function, inputs, kwargs = called(args)
        capture, failure = captured(args, function, inputs, kwargs, target=args.target, **options(args))
    return _printed(args, capture.cost(args.by, args.basis or ""), failure)


def memory(args: argparse.Namespace) -> int:
    """Capture a function and print its memory by line or name, or with each memory budget."""
    from ..views.render.formats import MEMORY_CURVE as FORMS

    check_endings(args.out, FORMS)
    curve = None
    with capturing(args, args.function):
        function, inputs, kwargs = called(args)
        capture, failure = captured(args, function, inputs, kwargs, target=args.target, **options(args))
        if failure is None and (args.curve is not None or args.out):
            with one_voice(args):
                curve = capture.memory_curve(function, *inputs, budgets=args.curve or None, kwargs=kwargs)
    if curve is None:
        return _printed(args, capture.memory(args.by), failure)
    deliver(args, curve, curve.to_dict())
    return OK


def _printed(args: argparse.Namespace, result: Any, failure: Exception | None) -> int:
    if args.json:
        error = {} if failure is None else {"error": error_dict(failure)}
        say(document({"command": args.command, **result.to_dict(), **error}))
    else:
        say(str(result))
    return OK if failure is None else FAILED
