"""The commands ``mcp`` and ``skill``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

from ...child.limits import parse_limit
from ...errors import UsageError
from ...record.files import write_text
from ..output import OK, say

FILES = ("SKILL.md", "AGENTS.md")
"""Texts that tell a coding agent when to use compile_lens and what not to conclude: a skill, and instructions for a
repository that uses compile_lens."""


def declare(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the commands and their arguments."""
    agent = add(
        "mcp",
        mcp,
        "Answer a coding agent over the Model Context Protocol, on standard input and output",
        "Code runs\nin a process of its own, in FOLDER, with limits. No port is opened. Needs the extra [mcp].",
    )
    agent.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="FOLDER", help="default: here")
    agent.add_argument(
        "--seconds", type=parse_limit, default=300.0, metavar="N", help="of one call (default: %(default)g)"
    )
    agent.add_argument(
        "--memory",
        type=parse_limit,
        default=16.0,
        metavar="GiB",
        help="of one process (default: %(default)g)",
    )
    skilled = add("skill", skill, "Print what a coding agent should know of compile_lens, or write it")
    skilled.add_argument("--write", type=Path, metavar="DIR", help="write SKILL.md and AGENTS.md there")
    skilled.add_argument("--overwrite", action="store_true", help="replace files that differ")


def mcp(args: argparse.Namespace) -> int:
    """Answer a coding agent over the Model Context Protocol, until it closes standard input."""
    from .job import Limits
    from .tools import Tools

    tools = Tools(args.folder, Limits(seconds=args.seconds, memory=int(args.memory * (1 << 30))))
    from .server import serve

    serve(tools)
    return OK


def skill(args: argparse.Namespace) -> int:
    """Print what a coding agent should know of compile_lens, or write it to a folder."""
    if args.write is None:
        say(text(FILES[0]))
        return OK
    for path in write(args.write, args.overwrite):
        say(f"wrote {path}")
    return OK


def text(name: str) -> str:
    """Return one of ``FILES``."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def write(folder: str | os.PathLike[str], overwrite: bool = False) -> list[Path]:
    """Write the texts to a folder, which is created if needed, and return their paths.

    Raises:
        UsageError: one of them exists and differs, and ``overwrite`` is not set; or the folder cannot be written.
    """
    place = Path(folder).expanduser()
    for name in FILES:
        path = place / name
        if overwrite or not os.path.exists(path):
            continue
        if path.read_text(encoding="utf-8", errors="replace") != text(name):
            raise UsageError(f"{path} exists and differs; give --overwrite to replace it, or another folder")
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot write to {place}: {error.strerror or error}; choose another folder"
        ) from None
    return [write_text(place / name, text(name)) for name in FILES]
