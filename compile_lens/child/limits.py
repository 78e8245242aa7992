"""Resource limits that a child process sets for itself before it runs user code."""

from __future__ import annotations

import contextlib


def limit_memory(most: int) -> None:
    """Limit this process's memory to ``most`` bytes and disable core files, which may be as large."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_DATA, most), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(OSError, ValueError):  # the hard limit is lower, or there is no such limit
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
