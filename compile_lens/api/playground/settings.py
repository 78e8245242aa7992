"""Settings of the playground, as sent by the page and stored in links."""

from __future__ import annotations

import base64
import json
import zlib
from dataclasses import dataclass, fields
from typing import Any

from ...errors import UsageError

MAX_PROGRAM_LENGTH = 200_000
"""Maximum length of a program."""

DTYPES = ("", "float64", "float32", "bfloat16", "float16")
"""Dtypes of inputs; ``""`` keeps the program's, and float32 for generated inputs."""

MAX_SIZE = 4096
"""Maximum rows or columns of a generated input."""

TARGETS = (
    ("", "this CPU"),
    ("cpu:avx2", "CPU with AVX2"),
    ("cpu:avx512", "CPU with AVX-512"),
    ("h100", "H100"),
    ("b200", "B200"),
    ("a100", "A100"),
    ("t4", "T4"),
    ("mps", "Apple GPU"),
)
"""Targets of the menu with their titles; a link may have any target that ``capture`` knows."""

BESIDE = (("", "none"), *TARGETS[1:])
"""Choices for the second target."""


@dataclass(frozen=True)
class Settings:
    """Settings with which a program is captured.

    Attributes:
        function: name of the function to capture; ``""`` for ``f`` or else the last one.
        target: as in ``capture``; ``""`` for this machine's CPU.
        beside: a second target to compare with; ``""`` for none.
        dtype: dtype of floating-point inputs; ``""`` to keep theirs.
        rows, columns: sizes of generated inputs.
        requires_grad: True if all floating-point inputs require grad.
        dynamic: as in ``torch.compile``.
        switches: names of the applied switches of ``what_if``.
        torch: name of an offered torch version; ``""`` for that of this process.
    """

    function: str = ""
    target: str = ""
    beside: str = ""
    dtype: str = ""
    rows: int = 64
    columns: int = 128
    requires_grad: bool = False
    dynamic: bool = False
    switches: tuple[str, ...] = ()
    torch: str = ""

    @classmethod
    def read(cls, raw: object) -> Settings:
        """Return the settings in plain data. Raises ``UsageError`` if the data are invalid."""
        if not isinstance(raw, dict):
            raise UsageError(f"settings must be a JSON object, not {type(raw).__name__}")
        known = {field.name: raw.get(field.name, field.default) for field in fields(cls)}
        for name in ("function", "target", "beside", "dtype", "torch"):
            if not isinstance(known[name], str) or len(known[name]) > 200:
                raise UsageError(f"{name} is not a short string")
        for name in ("requires_grad", "dynamic"):
            if not isinstance(known[name], bool):
                raise UsageError(f"{name}={known[name]!r} is neither true nor false")
        for name in ("rows", "columns"):
            if type(known[name]) is not int or not 1 <= known[name] <= MAX_SIZE:
                raise UsageError(f"{name}={known[name]!r} is not a number from 1 to {MAX_SIZE}")
        if known["dtype"] not in DTYPES:
            raise UsageError(f"dtype={known['dtype']!r} is not one of {', '.join(filter(None, DTYPES))}")
        if any(known[name].endswith(".json") for name in ("target", "beside")):
            raise UsageError("a target in the playground must be a name: it opens no files")
        if known["beside"] and known["beside"] == known["target"]:
            raise UsageError(
                f"target and beside are both {known['target']}: choose two different ones, or leave the second "
                "out"
            )
        switches = known["switches"]
        if not isinstance(switches, (list, tuple)) or not all(isinstance(one, str) for one in switches):
            raise UsageError("switches must be a list of names")
        known["switches"] = tuple(sorted(set(switches)))
        return cls(**known)


@dataclass(frozen=True)
class Program:
    """A program and its settings: one state of the playground."""

    source: str
    settings: Settings = Settings()

    @classmethod
    def read(cls, raw: Any) -> Program:
        """Return the program in plain data. Raises ``UsageError`` if the data are invalid."""
        source = raw.get("source") if isinstance(raw, dict) else None
        if not isinstance(source, str):
            raise UsageError("a program must be a string")
        if len(source) > MAX_PROGRAM_LENGTH:
            raise UsageError(
                f"the program has {len(source):,} characters, and the playground takes {MAX_PROGRAM_LENGTH:,}"
            )
        return cls(source, Settings.read(raw.get("settings", {})))


MARK = "#p="
"""Marker before the program in a link."""


def from_link(link: str) -> Program:
    """Return the program in a playground link. Raises ``UsageError`` if there is none."""
    text = link.partition(MARK)[2]
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        reader = zlib.decompressobj()
        plain = reader.decompress(packed, 8 * MAX_PROGRAM_LENGTH)
        if not plain or reader.unconsumed_tail:
            raise ValueError("it is longer than the playground allows")
        raw = json.loads(plain)
    except (ValueError, zlib.error) as error:
        raise UsageError(
            f"the link holds no program ({error}); copy it whole, from {MARK} to its end"
        ) from None
    return Program.read(raw)
