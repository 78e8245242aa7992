"""Running of a script or a module as ``python script.py`` and ``python -m module`` do. After an interrupt Python still
ends by SIGINT, even if a report was written in between."""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pkgutil
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError


@dataclass(frozen=True)
class Script:
    """A program that can be run in this process as ``__main__``.

    Attributes:
        name: its path or module name as given.
        arguments: its command-line arguments.
        code: function that returns its code; raises ``SyntaxError`` as Python does.
        file: its file.
        folder: the first entry of ``sys.path``.
        spec: import spec of a module; None for a script.
        words: its words on Python's command line: its name, or ``-m`` and the module's name.
        argv0: value of ``sys.argv[0]``.
    """

    name: str
    arguments: tuple[str, ...]
    code: Callable[[], types.CodeType]
    file: str
    folder: str
    spec: importlib.machinery.ModuleSpec | None = None
    words: tuple[str, ...] = ()
    argv0: str = ""

    def run(self) -> None:
        """Run the program as ``__main__``. Its exceptions propagate; its module stays ``__main__`` afterwards."""
        main = types.ModuleType("__main__")
        own = vars(main)
        own.update(__file__=self.file, __builtins__=builtins, __spec__=self.spec)
        own["__cached__"] = None if self.spec is None else self.spec.cached
        if "__annotations__" in vars(sys.modules["__main__"]):  # this Python creates them for every program
            own["__annotations__"] = {}
        own["__package__"] = None if self.spec is None else self.spec.parent
        own["__loader__"] = (
            importlib.machinery.SourceFileLoader("__main__", self.file)
            if self.spec is None
            else self.spec.loader
        )
        sys.modules["__main__"] = main
        exec(self.code(), own)

    def prepare(self) -> None:
        """Set ``sys.argv``, ``sys.orig_argv`` and the first entry of ``sys.path`` as for the program itself."""
        sys.orig_argv[:] = [*_of_python(sys.orig_argv, sys.argv[1:]), *self.words, *self.arguments]
        sys.argv[:] = [self.argv0, *self.arguments]
        sys.path[0] = self.folder


def script(path: str, arguments: Sequence[str]) -> Script:
    """Return the script at a path. Raises ``UsageError`` if there is none."""
    archive = _archive(path, arguments)
    if archive is not None:
        return archive
    try:
        with io.open_code(os.path.abspath(path)) as file:
            text = file.read()
    except FileNotFoundError:
        raise UsageError(
            f"there is no script {path!r}; give the path of a Python file, or -m MODULE"
        ) from None
    except OSError as error:
        raise UsageError(f"{path!r} cannot be read: {error.strerror or error}") from None
    full = os.path.abspath(path)
    folder = os.path.dirname(os.path.realpath(path))
    return Script(
        path, tuple(arguments), lambda: _compiled(text, full), full, folder, words=(path,), argv0=path
    )


def _archive(path: str, arguments: Sequence[str]) -> Script | None:
    """Return the program of a folder or a zip file with a ``__main__``; None for a plain file."""
    folder = os.path.join(os.getcwd(), path)  # as Python puts it first on its path
    importer: Any = pkgutil.get_importer(folder)
    spec = importer.find_spec("__main__") if importer is not None else None
    if spec is None or spec.loader is None:
        if os.path.isdir(path):
            raise UsageError(
                f"{path!r} is a folder without a __main__.py, which Python would run: give a script in it, or its "
                "module with -m"
            )
        return None
    loader, file = spec.loader, spec.origin
    return Script(
        path,
        tuple(arguments),
        lambda: loader.get_code("__main__"),
        file,
        folder,
        spec,
        words=(path,),
        argv0=path,
    )


def _of_python(original: Sequence[str], given: Sequence[str]) -> Sequence[str]:
    """Return Python's own words of its command line, without the program and its arguments (``given``)."""
    before = original[: len(original) - len(given)]
    if len(before) > 1 and re.fullmatch(r"-[a-zA-Z]*m", before[-2]):
        flags = before[-2][:-1]
        return [*before[:-2], *([flags] if flags != "-" else [])]
    return before[:-1] if len(before) > 1 else before


def module(name: str, arguments: Sequence[str]) -> Script:
    """Return the module of a name, found as by ``python -m``. Raises ``UsageError`` if there is none."""
    folder, given = os.getcwd(), name
    sys.path[0] = folder
    spec = _spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        name = f"{name}.__main__"
        spec = _spec(name)
    if spec is None or spec.origin is None:
        raise UsageError(f"there is no module {name!r} that can be run; is it installed, or in this folder?")
    loader: Any = spec.loader
    code = loader.get_code(name) if hasattr(loader, "get_code") else None
    if code is None:
        raise UsageError(f"the module {name!r} has no Python code to run")
    file = spec.origin
    return Script(name, tuple(arguments), lambda: code, file, folder, spec, ("-m", given), file)


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            return None
        raise
    except ValueError:  # an invalid name
        return None


def _compiled(text: bytes, file: str) -> types.CodeType:
    code: types.CodeType = compile(text, file, "exec", dont_inherit=True)
    return code


class AfterImport:
    """Import finder that calls ``then`` after a module is imported; it is the first finder until then."""

    def __init__(self, name: str, then: Callable[[], None]) -> None:
        self._name = name
        self._then = then

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the other finders, with a loader that calls ``then`` after the import. Looking up the spec
        alone has no effect."""
        if name != self._name:
            return None
        others = [finder for finder in sys.meta_path if finder is not self]
        specs = (finder.find_spec(name, path, target) for finder in others if hasattr(finder, "find_spec"))
        spec = next((spec for spec in specs if spec is not None), None)
        loader: Any = spec.loader if spec is not None else None
        if hasattr(loader, "exec_module"):
            self._wrap(loader)
        return spec

    def _wrap(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            vars(loader).pop("exec_module", None)
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                self._then()

        loader.exec_module = exec_module


class Interrupt:
    """The interpreter's record that an interrupt ended the program, kept until exit.

    Python sets it when code compiled from text (a script, ``exec("…")``) raises ``KeyboardInterrupt``, and clears it
    when the next such code starts, such as at the definition of a namedtuple. Writing a report does that, and so may
    the program at exit; only in the latter case does plain Python not end by the signal."""

    def __init__(self) -> None:
        self._remembered = True
        sys.addaudithook(self._audit)  # cannot be removed, but Python exits soon

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "exec" and getattr(args[0], "co_filename", "") == "<string>":  # exec or eval of text
            self._remembered = False

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Preserve the interrupt while the block runs."""
        remembered = self._remembered
        try:
            yield
        finally:
            if remembered:
                with contextlib.suppress(KeyboardInterrupt):
                    exec("raise KeyboardInterrupt")
