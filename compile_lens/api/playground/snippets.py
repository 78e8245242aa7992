"""Menu of programs: the bundled ones, or the files of a folder. The page gets their texts, never a path."""

from __future__ import annotations

import ast
import importlib.resources
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import UsageError
from ...record import syntax
from .settings import MAX_PROGRAM_LENGTH

MAX_FILES = 200
"""Maximum number of a folder's files in the menu."""


@dataclass(frozen=True)
class Snippet:
    """A program of the menu: its title, file name and text."""

    title: str
    file: str
    source: str


def own() -> list[Snippet]:
    """Return the bundled programs."""
    return list(_snippets(importlib.resources.files(__package__).joinpath("snippets").iterdir()))


def of_folder(folder: Path) -> list[Snippet]:
    """Return the programs in a folder, by name. Raises ``UsageError`` if there is none."""
    programs = list(_snippets(folder.iterdir()))
    if not programs:
        raise UsageError(f"{folder} holds no Python file: name a folder of programs, or a file")
    return programs


def of_file(path: Path) -> Snippet:
    """Return the program in a file. Raises ``UsageError`` if it cannot be read."""
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    if len(source) > MAX_PROGRAM_LENGTH:
        raise UsageError(
            f"{path} has {len(source):,} characters, and the playground takes {MAX_PROGRAM_LENGTH:,}"
        )
    return Snippet(title_of(source, path.name), path.name, source)


def _snippets(files: Iterable[Any]) -> Iterator[Snippet]:
    python = sorted((f for f in files if f.name.endswith(".py") and f.is_file()), key=lambda f: f.name)
    for file in python[:MAX_FILES]:
        try:
            source = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if len(source) <= MAX_PROGRAM_LENGTH:
            yield Snippet(title_of(source, file.name), file.name, source)


def title_of(source: str, name: str) -> str:
    """Return the first line of a program's docstring, or its file name if it has none."""
    try:
        words = ast.get_docstring(syntax.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        words = None
    return words.splitlines()[0] if words else name
