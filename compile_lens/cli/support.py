"""The command ``support``."""

from __future__ import annotations

import argparse
import json

from ..errors import UsageError
from ..trials.progress import progress
from .exit_codes import OK
from .output import say


def support(args: argparse.Namespace) -> int:
    """Print which backends implement operators, and what a target lacks of a record."""
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
        document = {"command": args.command, "operators": [one.to_dict() for one in operators]}
        document["lacking"] = None if lack is None else lack.to_dict()
        say(json.dumps(document, indent=2))
        return OK
    for one in (*operators, *([lack] if lack is not None else [])):
        say(f"{one}\n")
    return OK
