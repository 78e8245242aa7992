"""Torch versions of a playground: that of its own process, and the environments created by ``upgrade``."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...trials import environments
from ...trials.environments import Environment

UPGRADE = "compile-lens upgrade"
"""The command that creates and removes environments."""


@dataclass(frozen=True)
class TorchVersions:
    """The complete environments in a folder, read again at each call, since they may change while the playground
    runs."""

    folder: Path

    def offered(self) -> list[tuple[str, str]]:
        """Return names and titles for the menu; ``""`` is the torch of this process."""
        versions = {"": own(), **{name: one.torch for name, one in self._whole().items()}}
        count = Counter(versions.values())
        return [
            (name, f"{torch} ({name})" if name and count[torch] > 1 else torch)
            for name, torch in versions.items()
        ]

    def check(self, name: str) -> None:
        """Raise ``UsageError`` for a name that is not offered."""
        if name:
            self.environment(name)

    def environment(self, name: str) -> Environment:
        """Return the environment of that name, which is never a path. Raises ``UsageError`` if there is none."""
        there = self._whole()
        if name not in there:
            valid = ", ".join([f"'' ({own()}, which runs the playground)", *map(repr, there)])
            raise UsageError(f"torch={name!r} is not on this machine; there are {valid}{_to_make(name)}")
        return there[name]

    def _whole(self) -> dict[str, Environment]:
        return {one.name: one for one in environments.kept(self.folder) if one.whole}


def own() -> str:
    """Return the version of this process's torch, without importing it."""
    try:
        return importlib.metadata.version("torch")
    except importlib.metadata.PackageNotFoundError:  # built in place
        return "of this Python"


def _to_make(name: str) -> str:
    try:
        environments.checked(name)
    except UsageError:
        return ""
    return f"; to make it: {UPGRADE} --torch {name}"
