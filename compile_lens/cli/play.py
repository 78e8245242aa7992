"""The command ``play``."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from ..child.limits import parse_limit
from .output import OK

ABOUT = (
    "Serves one\nbrowser of this machine, on 127.0.0.1, until Ctrl-C. Code runs in a process of its own, with limits. "
    "Needs the extra [play]."
)


def declare(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command and its arguments."""
    parser = add(
        "play", play, "Open the playground: an editor, and beside it the page of what you type", ABOUT
    )
    parser.add_argument(
        "given",
        nargs="?",
        default="",
        metavar="PROGRAM",
        help="a file, a folder of files for the menu, or a link that a playground made (default: sin² + cos²)",
    )
    parser.add_argument(
        "--seconds", type=parse_limit, default=10.0, metavar="N", help="of one capture (default: %(default)g)"
    )
    parser.add_argument(
        "--memory", type=parse_limit, default=8.0, metavar="GiB", help="of its process (default: %(default)g)"
    )
    parser.add_argument("--no-browser", action="store_true", help="print the address, and open nothing")


def play(args: argparse.Namespace) -> int:
    """Serve a playground until an interrupt."""
    from ..api.playground.capture_process import Limits
    from ..api.playground.play import serve

    limits = Limits(seconds=args.seconds, memory=int(args.memory * (1 << 30)))
    serve(args.given, limits, browser=not args.no_browser)
    return OK
