"""The commands ``mcp`` and ``skill``."""

from __future__ import annotations

import argparse

from ...errors import UsageError
from ..output import OK, say


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
