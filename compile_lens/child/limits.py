"""Resource limits of a child process: read from a command line, and set before it runs user code."""

from __future__ import annotations

import argparse
import contextlib
import math


def parse_limit(word: str) -> float:
    """Return the number of a word of a command line. Raises ``ArgumentTypeError`` if it is not finite and above 0."""
    try:
        number = float(word)
    except ValueError:
        number = math.nan
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number above 0")
    return number


def limit_memory(most: int) -> None:
    """Limit this process's memory to ``most`` bytes and disable core files, which may be as large."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_DATA, most), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):  # the hard limit is lower, or there is no such limit
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
