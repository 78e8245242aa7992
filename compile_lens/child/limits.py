"""Limits that a process of ours sets itself before it runs code of others."""

from __future__ import annotations

import contextlib


def limit_memory(most: int) -> None:
    """Have the system refuse memory beyond so many bytes, and write no core files, which may be as large."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for kind, limit in ((resource.RLIMIT_DATA, most), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(
            OSError, ValueError
        ):  # the caller's own limit is lower, or the system has none
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
