"""The user's function, its inputs, and a capture of it that speaks with one voice."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..results.capture import CaptureError
from ..trials.progress import progress

if TYPE_CHECKING:
    from ..results.capture import Capture


@contextlib.contextmanager
def capturing(args: argparse.Namespace, name: str) -> Iterator[None]:
    """Progress. With ``--json`` what the user's code prints goes to stderr: stdout is one document."""
    apart = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    with progress(f"capturing {name}", quiet=args.quiet), apart:
        yield


def called(args: argparse.Namespace) -> tuple[Any, list[Any], dict[str, Any]]:
    """The function, positional and keyword arguments that the command line names."""
    function, scope = resolved(args.function)
    inputs = [evaluated(text, scope, "--input") for text in args.input]
    kwargs = {}
    for pair in args.kwarg:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--kwarg {pair!r} is not NAME=EXPR; write for example --kwarg dim=1")
        kwargs[name] = evaluated(text, scope, f"--kwarg {name}")
    return function, inputs, kwargs


def options(args: argparse.Namespace) -> dict[str, Any]:
    """The options of ``capture`` that the command line gives."""
    return {
        "backward": {"auto": "auto", "yes": True, "no": False}[args.backward],
        "dynamic": args.dynamic,
        "mode": args.mode,
        "fullgraph": args.fullgraph,
        "build": args.build,
    }


def resolved(text: str) -> tuple[Any, dict[str, Any]]:
    from .names import resolve

    return resolve(text)


def evaluated(text: str, scope: dict[str, Any], what: str) -> Any:
    from .names import evaluate

    return evaluate(text, scope, what)


def captured(
    args: argparse.Namespace, function: Any, inputs: list[Any], kwargs: dict[str, Any], **options: Any
) -> tuple[Capture, CaptureError | None]:
    from ..api.capture import capture

    with one_voice(args):
        try:
            return capture(function, *inputs, kwargs=kwargs or None, **options), None
        except CaptureError as error:
            return error.capture, error


@contextlib.contextmanager
def one_voice(args: argparse.Namespace) -> Iterator[None]:
    """Keeps torch from logging an error, traceback and all, that is about to be reported as one line."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"]
    handlers = {h for name in names for h in logging.getLogger(name).handlers if not args.traceback}

    def below_error(record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR

    for handler in handlers:
        handler.addFilter(below_error)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(below_error)
