"""Names and expressions of the command line: ``module:function``, ``file.py:function``, ``torch.rand(3)``.

They are the user's own words on their own command line, and are run as Python.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import UsageError


def resolve(text: str) -> tuple[Any, dict[str, Any]]:
    """The callable that ``module:expression`` names, and the names that expressions may use.

    The folder that the command runs in is searched for modules first. The scope holds torch and everything of
    the module.

    Raises:
        UsageError: if the module cannot be imported, or has no such callable.
        ModuleNotFoundError: if something that the module imports is not installed.
    """
    place, name = _split(text)
    here()
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
    """Modules are looked for in the folder that the command runs in first."""
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)


def evaluate(text: str, scope: dict[str, Any], what: str) -> Any:
    """The value of a Python expression. Raises ``UsageError`` that names it, if it has none."""
    try:
        return eval(text, scope)
    except Exception as error:
        raise UsageError(f"{what} {text!r} cannot be evaluated: {type(error).__name__}: {error}") from error


def _split(text: str) -> tuple[str, str]:
    # A Windows path holds a colon of its own, and so may the expression: look for the ending `.py:` first.
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
    """The module that a file is; ``text`` is what errors name. Raises as ``resolve``."""
    path = path.resolve()
    if not path.is_file():
        raise UsageError(f"{text}: there is no file {path}")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as for `python file.py`: it may import its neighbours
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_of_the_command_line"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{text}: {path} cannot be loaded as Python; give a .py file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles of the file look their module up there
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
