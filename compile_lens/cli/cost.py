"""The commands ``cost`` and ``memory``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from ..errors import UsageError
from .names import captured_or_opened, capturing, without_torch_errors
from .output import FAILED, OK, check_endings, deliver, document, error_dict, say


def cost(args: argparse.Namespace) -> int:
    """Print the cost of a call by line, kernel or module, for a record or for a function after capturing it."""
    capture, failure, _ = captured_or_opened(args)
    from ..views.findings.cost import text

    return _printed(args, capture.cost(args.by, args.basis or ""), text, failure)


def memory(args: argparse.Namespace) -> int:
    """Print memory by line or name, for a record or for a function after capturing it; or capture the function with
    each memory budget."""
    from ..views.render.formats import MEMORY_CURVE as FORMS

    check_endings(args.out, FORMS)
    capture, failure, call = captured_or_opened(args)
    if failure is not None or (args.curve is None and not args.out):
        from ..views.findings.memory import text

        return _printed(args, capture.memory(args.by), text, failure)
    if call is None:
        raise UsageError(
            f"--curve captures the function again, and {args.function!r} is a record: give the function and its inputs"
        )
    function, inputs, kwargs = call
    with capturing(args, args.function), without_torch_errors(args):
        curve = capture.memory_curve(function, *inputs, budgets=args.curve or None, kwargs=kwargs)
    deliver(args, curve, curve.to_dict())
    return OK


def _printed(
    args: argparse.Namespace, result: Any, text: Callable[..., str], failure: Exception | None
) -> int:
    if args.json:
        error = {} if failure is None else {"error": error_dict(failure)}
        say(document({"command": args.command, **result.to_dict(), **error}))
    else:
        every = (len(result.rows),) if args.full else ()
        say(text(result, "--full", *every))
    return OK if failure is None else FAILED
