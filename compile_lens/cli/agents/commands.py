"""The commands ``mcp`` and ``skill``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from ...errors import UsageError
from ..output import OK, say


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
        "--seconds", type=float, default=300.0, metavar="N", help="of one call (default: %(default)g)"
    )
    agent.add_argument(
        "--memory", type=float, default=16.0, metavar="GiB", help="of one process (default: %(default)g)"
    )
    skilled = add("skill", skill, "Print what a coding agent should know of compile_lens, or write it")
    skilled.add_argument("--write", type=Path, metavar="DIR", help="write SKILL.md and AGENTS.md there")
    skilled.add_argument("--overwrite", action="store_true", help="replace files that differ")


def mcp(args: argparse.Namespace) -> int:
    """Answer a coding agent over the Model Context Protocol, until it closes standard input."""
    from .job import Limits
    from .tools import Tools

    if args.seconds <= 0 or args.memory <= 0:
        raise UsageError("--seconds and --memory are above 0")
    tools = Tools(args.folder, Limits(seconds=args.seconds, memory=int(args.memory * (1 << 30))))
    from .server import serve

    serve(tools)
    return OK


def skill(args: argparse.Namespace) -> int:
    """Print what a coding agent should know of compile_lens, or write it to a folder."""
    from .skill import FILES, text, write

    if args.write is None:
        say(text(FILES[0]))
        return OK
    for path in write(args.write, args.overwrite):
        say(f"wrote {path}")
    return OK
