"""The commands ``cost`` and ``memory``."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..errors import LensError, UsageError
from ..trials.progress import progress
from .names import called, captured, capturing, options, without_torch_errors
from .output import FAILED, OK, check_endings, deliver, document, error_dict, say

if TYPE_CHECKING:
    from ..results.capture import Capture

Call = tuple[Any, list[Any], dict[str, Any]]


def cost(args: argparse.Namespace) -> int:
    """Print what a call costs, by line, kernel or module: of a function that is captured, or of a record."""
    capture, failure, _ = _captured(args)
    return _printed(args, capture.cost(args.by, args.basis or ""), failure)


def memory(args: argparse.Namespace) -> int:
    """Print memory by line or name: of a function that is captured, or of a record. Or capture the function with each
    memory budget."""
    from ..views.render.formats import MEMORY_CURVE as FORMS

    check_endings(args.out, FORMS)
    capture, failure, call = _captured(args)
    if failure is not None or (args.curve is None and not args.out):
        return _printed(args, capture.memory(args.by), failure)
    if call is None:
        raise UsageError(
            f"--curve captures the function anew, and {args.function!r} is a record: give the function and its inputs"
        )
    function, inputs, kwargs = call
    with capturing(args, args.function), without_torch_errors(args):
        curve = capture.memory_curve(function, *inputs, budgets=args.curve or None, kwargs=kwargs)
    deliver(args, curve, curve.to_dict())
    return OK


def _captured(args: argparse.Namespace) -> tuple[Capture, LensError | None, Call | None]:
    """Return the capture, what it failed with, and the call; of a record there is no call."""
    if args.function.endswith(".json"):
        from ..api.load import load

        if args.input or args.kwarg:
            raise UsageError(
                f"{args.function!r} is a record and takes no --input: what was captured is in it"
            )
        with progress(f"reading {args.function}", quiet=args.quiet):
            return load(args.function), None, None
    with capturing(args, args.function):
        call = called(args)
        function, inputs, kwargs = call
        capture, failure = captured(args, function, inputs, kwargs, target=args.target, **options(args))
    return capture, failure, call


def _printed(args: argparse.Namespace, result: Any, failure: Exception | None) -> int:
    if args.json:
        error = {} if failure is None else {"error": error_dict(failure)}
        say(document({"command": args.command, **result.to_dict(), **error}))
    else:
        say(str(result))
    return OK if failure is None else FAILED
