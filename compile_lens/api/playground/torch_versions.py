"""Versions of torch of a playground: that of its own process, and the environments that ``upgrade`` made."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...trials import environments
from ...trials.environments import Environment

UPGRADE = "compile-lens upgrade"
"""The command that makes environments, and removes them."""


@dataclass(frozen=True)
class TorchVersions:
    """The environments in a folder, as they are at each call: one may come or go while the playground runs. It makes
    none."""

    folder: Path

    def offered(self) -> list[tuple[str, str]]:
        """Return names and words for a menu; ``""`` is the torch of this process."""
        versions = {"": own(), **{name: one.torch for name, one in self._whole().items()}}
        count = Counter(versions.values())
        return [
            (name, f"{torch} ({name})" if name and count[torch] > 1 else torch)
            for name, torch in versions.items()
        ]

    def check(self, name: str) -> None:
        """Raise ``UsageError`` for a name that is none of those offered."""
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
    """Return the version of this process's torch, which need not be imported."""
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
