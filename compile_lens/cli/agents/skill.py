"""The texts that tell a coding agent when to ask compile_lens what, and what not to conclude."""

from __future__ import annotations

import os
from pathlib import Path

from ...errors import UsageError

FILES = ("SKILL.md", "AGENTS.md")
"""Their names: a skill by itself, and what a repository that uses compile_lens says to every agent."""


def text(name: str) -> str:
    """Return one of ``FILES``."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def write(folder: str | os.PathLike[str], overwrite: bool = False) -> list[Path]:
    """Write the texts to a folder, which is made where there is none, and return their paths.

    Raises:
        UsageError: one of them exists and differs, and ``overwrite`` is not set; or the folder cannot be written.
    """
    from ...record.files import write_text

    place = Path(folder).expanduser()
    for name in FILES:
        path = place / name
        if (
            path.exists()
            and not overwrite
            and path.read_text(encoding="utf-8", errors="replace") != text(name)
        ):
            raise UsageError(f"{path} exists and differs; give --overwrite to replace it, or another folder")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot write to {place}: {error.strerror or error}; choose another folder"
        ) from None
    return [write_text(place / name, text(name)) for name in FILES]
