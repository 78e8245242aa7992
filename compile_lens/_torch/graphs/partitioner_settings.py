"""Settings of the partitioner, which decides what is kept for the backward; Inductor has no option for them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from compile_lens.errors import UsageError


@contextlib.contextmanager
def turned(settings: Mapping[str, Any]) -> Iterator[None]:
    """For the duration, they are set so. Raises ``UsageError`` for one that this torch does not have."""
    if not settings:
        yield
        return
    from torch._functorch import config

    lacking = [name for name in settings if not hasattr(config, name)]
    if lacking:
        raise UsageError(f"torch._functorch.config has no {', '.join(lacking)}")
    with config.patch(**settings):
        yield
