"""Version of this package, and the versions of torch and Triton that it knows."""

from __future__ import annotations

import functools
import re

__version__ = "0.1.0"

REPOSITORY = "https://github.com/OWNER/compile_lens"
"""Address of the repository; a placeholder until the release."""

OUTPUT_SCHEMA = 1
"""Version of what ``--json`` prints and of ``Brief.to_dict()``; ``docs/make_schema.py`` describes it."""


OLDEST = (2, 11)
"""The oldest supported torch."""

NEWEST_TESTED = (2, 15)
"""The newest torch that the tests run on."""


def parse(version: str) -> tuple[int, int]:
    """Return a version as two numbers, ``(2, 13)`` for ``"2.13.0+cpu"``, since text compares wrongly."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if match is None:
        raise ValueError(f"torch.__version__ is {version!r}: it does not start with two numbers")
    return int(match[1]), int(match[2])


TRITON = {
    (2, 11): "3.6",
    (2, 12): "3.7",
    (2, 13): "3.7",
    (2, 14): "3.8",
    (2, 15): "3.9",
}
"""The Triton that each torch is built with. CPU wheels of torch do not require it."""


def triton_command(torch: tuple[int, int] | None = None) -> str:
    """Return the command that installs the Triton for a torch, by default the running one."""
    fitting = TRITON.get(torch or torch_version())
    return f"pip install 'triton=={fitting}.*'" if fitting else "pip install triton"


@functools.cache
def torch_version() -> tuple[int, int]:
    """Return the version of the running torch as two numbers."""
    import torch

    return parse(torch.__version__)


def note() -> str:
    """Return a note about the running torch for a reader, or ``""``."""
    running = torch_version()
    if running < OLDEST:
        return f"torch {running[0]}.{running[1]} is older than the oldest supported, {OLDEST[0]}.{OLDEST[1]}"
    if running > NEWEST_TESTED:
        return (
            f"torch {running[0]}.{running[1]} is newer than the newest tested, "
            f"{NEWEST_TESTED[0]}.{NEWEST_TESTED[1]}: a stage may be missing"
        )
    return ""
