"""Functions and inputs named on the command line (``module:function``, ``file.py:function``, ``torch.rand(3)``), and
their capture with one-line errors.

Names and expressions come from the user's own command line and are run as Python.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import inspect
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..results.capture import CaptureError
from ..trials.progress import progress
from .precheck import check_function, check_syntax, check_targets


def resolve(text: str) -> tuple[Any, dict[str, Any]]:
    """Return the callable that ``module:expression`` names, and the scope for expressions.

    Modules are searched first in the working directory. The scope has torch and all names of the module.

    Raises:
        UsageError: the module cannot be imported, or has no such callable.
        ModuleNotFoundError: the module imports a package that is not installed.
    """
    place, name = _split(text)
    here()
    check_syntax(name, "the function")
    check_function(place, name, text)
    module = from_file(Path(place), text) if place.endswith(".py") else _from_name(place, text)
    scope = {**vars(module), "torch": importlib.import_module("torch")}
    if name.isidentifier() and name not in scope:
        some = (
            ", ".join(n for n, v in vars(module).items() if callable(v) and not n.startswith("_")) or "none"
        )
        raise UsageError(f"{place} has no {name!r}; what can be called there: {some}")
    function = evaluate(name, scope, "the function")
    if inspect.isclass(function) and issubclass(function, scope["torch"].nn.Module):
        raise UsageError(f"{text} is a class, not a module that can be called; make one: '{text}()'")
    if not callable(function):
        raise UsageError(
            f"{text} is {type(function).__name__}, not something that can be called; name a function"
        )
    return function, scope


def here() -> None:
    """Add the working directory to the front of ``sys.path``."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)


def evaluate(text: str, scope: dict[str, Any], what: str) -> Any:
    """Return the value of a Python expression. Raises ``UsageError`` with the expression if it fails."""
    try:
        return eval(text, scope)
    except Exception as error:
        raise UsageError(f"{what} {text!r} cannot be evaluated: {type(error).__name__}: {error}") from error


def _split(text: str) -> tuple[str, str]:
    # A Windows path and the expression may contain colons: look for the ending `.py:` first.
    place, separator, name = text.partition(".py:")
    if separator:
        place += ".py"
    else:
        place, separator, name = text.partition(":")
    if not (place and separator and name.strip()):
        raise UsageError(f"{text!r} names no function; write pkg.module:function or path/to/file.py:function")
    return place, name.strip()


def _from_name(name: str, text: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise UsageError(
                f"{text}: there is no module {error.name!r} in {Path.cwd()} or among the installed ones; "
                "for a file write path/to/file.py:function"
            ) from None
        raise
    except Exception as error:
        raise _import_failed(text, error) from error


def from_file(path: Path, text: str) -> ModuleType:
    """Import a file and return its module; errors name ``text``. Raises as ``resolve``."""
    path = path.resolve()
    if not os.path.isfile(path):
        raise UsageError(f"{text}: there is no file {path}")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as for `python file.py`, which may import its neighbours
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_of_the_command_line"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{text}: {path} cannot be loaded as Python; give a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look up the module there
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, ModuleNotFoundError) or not isinstance(error, Exception):
            raise
        raise _import_failed(text, error) from error
    return module


def _import_failed(text: str, error: Exception) -> UsageError:
    return UsageError(f"{text}: importing it raised {type(error).__name__}: {error}")


if TYPE_CHECKING:
    from ..results.capture import Capture


@contextlib.contextmanager
def capturing(args: argparse.Namespace, name: str) -> Iterator[None]:
    """Show progress. With ``--json`` send the output of the user's code to stderr, since stdout is one document."""
    output = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    with progress(f"capturing {name}", quiet=args.quiet), output:
        yield


def called(args: argparse.Namespace) -> tuple[Any, list[Any], dict[str, Any]]:
    """Return the function and the positional and keyword arguments named on the command line."""
    expressions = {}
    for pair in args.kwarg:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--kwarg {pair!r} is not NAME=EXPR; write for example --kwarg dim=1")
        expressions[name] = text
        check_syntax(text, f"--kwarg {name}")
    for text in args.input:
        check_syntax(text.removeprefix("*"), "--input")
    check_targets(args)
    function, scope = resolve(args.function)
    inputs = [value for text in args.input for value in _inputs(text, scope)]
    named = {n: evaluate(x, scope, f"--kwarg {n}") for n, x in expressions.items()}
    from ..engine.call import NamedArguments  # imports torch, so only after the checks above

    return function, inputs, NamedArguments(named)


def _inputs(text: str, scope: dict[str, Any]) -> tuple[Any, ...]:
    """Return the value of an expression; after a leading ``*`` each of its items, as in a call."""
    if not text.startswith("*"):
        return (evaluate(text, scope, "--input"),)
    value = evaluate(text[1:], scope, "--input")
    try:
        return tuple(value)
    except TypeError:
        raise UsageError(
            f"--input {text!r} is not a sequence of arguments, but of type {type(value).__name__}: leave out the *"
        ) from None


def options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of ``capture`` from the command line."""
    return {
        "backward": {"auto": "auto", "yes": True, "no": False}[args.backward],
        "dynamic": args.dynamic,
        "mode": args.mode,
        "fullgraph": args.fullgraph,
        "build": args.build,
    }


def call_words(args: argparse.Namespace) -> list[str]:
    """Return the function, its inputs and the options that differ from their defaults as words of a command line."""
    words = [
        args.function,
        *(f"--input={text}" for text in args.input),
        *(f"--kwarg={text}" for text in args.kwarg),
    ]
    words += [f"--backward={args.backward}"] if args.backward != "auto" else []
    if args.dynamic is not None:
        words.append("--dynamic" if args.dynamic else "--no-dynamic")
    for name in ("mode", "target"):
        words += [f"--{name}={getattr(args, name)}"] if getattr(args, name) else []
    return words + [f"--{name}" for name in ("fullgraph", "build") if getattr(args, name)]


Call = tuple[Any, list[Any], dict[str, Any]]


def captured_or_opened(args: argparse.Namespace) -> tuple[Capture, CaptureError | None, Call | None]:
    """Return the capture, its error if any, and the call; None for the call of a record."""
    if is_record(args):
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


def is_record(args: argparse.Namespace) -> bool:
    """Return True if the command line names a record in place of a function."""
    return bool(args.function.endswith(".json"))


def captured(
    args: argparse.Namespace, function: Any, inputs: list[Any], kwargs: dict[str, Any], **options: Any
) -> tuple[Capture, CaptureError | None]:
    from ..api.capture import capture

    with without_torch_errors(args):
        try:
            return capture(function, *inputs, kwargs=kwargs, **options), None
        except CaptureError as error:
            return error.capture, error


@contextlib.contextmanager
def without_torch_errors(args: argparse.Namespace) -> Iterator[None]:
    """Keep torch from logging an error with its traceback, since it is reported in one line."""
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
