"""Running and capture of a playground program. Only the child imports this module, since it loads torch."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import linecache
import os
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from ..._torch.frames import code_copies
from ..._torch.targets import torch_settings
from ...child import worker
from ...devices import models
from ...engine.call import Call
from ...engine.entry import WITHIN
from ...engine.local import perform
from ...engine.options import CaptureOptions
from ...errors import UsageError
from ...results.capture import Capture
from ...trials.switches import SWITCHES, merged
from .settings import Program, Settings

INPUTS = "inputs"
"""Name of the variable with the arguments of a program's function."""

DEFAULT_FUNCTION = "f"
"""Name of the function to capture by default, if the program has it."""

MODULE = "play"
"""Module name of a program."""

SWITCHABLE = {switch.name: switch for switch in SWITCHES if switch.options}
"""Switches with Inductor options, by name."""

MEANINGS = {name: switch.meaning for name, switch in SWITCHABLE.items()}
"""Meaning of each switch, for the controls."""

TRANSFER = "in the child process of the playground"


class ProgramError(Exception):
    """Error that a program raised before its function was captured, with its line; 0 if the line is unknown."""

    def __init__(self, error: BaseException, line: int) -> None:
        super().__init__(str(error))
        self.type, self.line = type(error).__name__, line


@dataclass(frozen=True)
class ProgramCapture:
    """A captured program.

    Attributes:
        functions: names of the functions that can be captured, in program order.
        function: name of the captured one.
        own_inputs: True if the program defines its arguments.
    """

    capture: Capture
    functions: tuple[str, ...]
    function: str
    own_inputs: bool


Early = Callable[[Callable[[], Capture]], None]
"""Function called each time a graph is about to be lowered, with a function that returns the record of what was traced
so far."""


def capture_program(
    program: Program, file: str, settings: dict[str, Any], early: Early | None = None
) -> ProgramCapture:
    """Run a program and capture its function.

    Args:
        file: file name of its lines. Modules are searched first in its folder.
        settings: torch's settings, for this program alone.
        early: see ``Early``.

    Raises:
        ProgramError: the program does not parse, or it raised, or creating its inputs did.
        CaptureError: the function raised, or the compiler rejected it.
        UsageError: there is nothing to capture, or a setting is invalid.
    """
    wanted = program.settings
    options = options_of(wanted)
    model = models.resolve(wanted.target) if wanted.target else None
    within = WITHIN.get(model.device, "") if model is not None else ""
    code = _compiled(program.source, file)
    with torch_settings.restored(settings), _neighbours(os.path.dirname(file)):
        with worker.named(within)() if within else contextlib.nullcontext():
            scope = _executed(code, program.source, file)
            functions = tuple(_functions(scope))
            name = _chosen(functions, wanted.function)
            with _located(file):
                inputs = _inputs(scope, scope[name], name, wanted)
        call = Call.read(code_copies.compiled_module(scope[name]), inputs, None, options)
        capture = perform(call, early)[0]
    if capture.target is not None:
        target = dataclasses.replace(capture.target, transfer=TRANSFER)
        capture = dataclasses.replace(capture, target=target)
    return ProgramCapture(capture, functions, name, INPUTS in scope)


def options_of(settings: Settings) -> CaptureOptions:
    """Return the options of a capture with these settings. Raises ``UsageError`` for an unknown switch."""
    unknown = [name for name in settings.switches if name not in SWITCHABLE]
    if unknown:
        raise UsageError(f"switch {unknown[0]!r} is not one of {', '.join(SWITCHABLE)}")
    options = merged(SWITCHABLE[name] for name in settings.switches).options
    return CaptureOptions(
        dynamic=True if settings.dynamic else None, options=options or None, target=settings.target or None
    )


def _compiled(source: str, file: str) -> types.CodeType:
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise ProgramError(_without_place(error), error.lineno or 0) from None
    except (ValueError, RecursionError, MemoryError) as error:  # a null byte; nested too deeply
        raise ProgramError(error, 0) from None


def _without_place(error: SyntaxError) -> SyntaxError:
    """Return the error with only its message, since the page shows it at its line."""
    return type(error)(error.msg)


def _executed(code: types.CodeType, source: str, file: str) -> dict[str, Any]:
    """Run a program as the module ``play``, and return its globals."""
    ended = source if source.endswith("\n") else f"{source}\n"  # as linecache stores files
    linecache.cache[file] = (len(ended), None, ended.splitlines(True), file)
    module = types.ModuleType(MODULE)
    module.__file__ = file
    sys.modules[MODULE] = module
    with _located(file):
        exec(code, module.__dict__)
    return module.__dict__


@contextlib.contextmanager
def _located(file: str) -> Iterator[None]:
    """Turn exceptions of a program into ``ProgramError``, with the innermost line of the program."""
    try:
        yield
    except (UsageError, ProgramError):
        raise
    except (Exception, SystemExit) as error:
        lines = []
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == file:
                lines.append(trace.tb_lineno)
            trace = trace.tb_next
        raise ProgramError(error, lines[-1] if lines else 0) from error


@contextlib.contextmanager
def _neighbours(folder: str) -> Iterator[None]:
    """Search modules first in a folder for the duration; then unload those from it, so that the next program imports
    them again."""
    known = set(sys.modules)
    if folder:
        sys.path.insert(0, folder)
    try:
        yield
    finally:
        if folder:
            with contextlib.suppress(ValueError):
                sys.path.remove(folder)
            for name in set(sys.modules) - known:
                place = getattr(sys.modules[name], "__file__", None)
                if isinstance(place, str) and place.startswith(os.path.join(folder, "")):
                    del sys.modules[name]


def _functions(scope: dict[str, Any]) -> Iterator[str]:
    """Yield the names of a program's own functions and ``nn.Module`` instances."""
    for name, value in scope.items():
        own = inspect.isfunction(value) and value.__module__ == MODULE
        if not name.startswith("_") and (own or isinstance(value, torch.nn.Module)):
            yield name


def _chosen(functions: tuple[str, ...], wanted: str) -> str:
    if not functions:
        raise UsageError("there is no function yet: define one, such as `def f(x): return torch.sin(x)`")
    if wanted in functions:
        return wanted
    return DEFAULT_FUNCTION if DEFAULT_FUNCTION in functions else functions[-1]


def _inputs(
    scope: dict[str, Any], function: Callable[..., Any], name: str, settings: Settings
) -> tuple[Any, ...]:
    """Return the program's arguments, or else a random tensor for each parameter without a default."""
    if INPUTS in scope:
        given = scope[INPUTS]
        if not isinstance(given, (tuple, list)):
            raise UsageError(
                f"inputs is a {type(given).__name__}: write a list, such as `inputs = [torch.rand(8)]`"
            )
        return tuple(as_set(value, settings) for value in given)
    target = function.forward if isinstance(function, torch.nn.Module) else function
    parameters = inspect.signature(target).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if keywords:
        raise UsageError(f"{name} takes {keywords[0]} by keyword only: give it a default")
    wanted = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    return tuple(as_set(torch.rand(settings.rows, settings.columns), settings) for _ in wanted)


def as_set(value: Any, settings: Settings) -> Any:
    """Return an input with the dtype and ``requires_grad`` of the settings."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    if settings.dtype:
        value = value.detach().to(getattr(torch, settings.dtype)).requires_grad_(value.requires_grad)
    return value.requires_grad_() if settings.requires_grad else value
