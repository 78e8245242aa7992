"""What is set in torch's configurations otherwise than torch has it."""

from __future__ import annotations

import sys
from collections.abc import Iterator

CONFIGS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")

MOST = 200
"""Characters of a value."""


def otherwise() -> Iterator[tuple[str, str]]:
    """Names in full and values, as ``repr`` has them, without those that torch itself says change no code."""
    for module in CONFIGS:
        config = sys.modules.get(module)  # one that nobody imported is as torch has it
        is_default, entries = getattr(config, "_is_default", None), getattr(config, "_config", {})
        if is_default is None:
            continue
        idle = tuple(getattr(config, "_cache_config_ignore_prefix", ()) or ())
        for name, entry in list(entries.items()):
            if name.startswith(("_", *idle)) or is_default(name):
                continue
            if getattr(entry, "deprecated", False):  # it does nothing, and reading it warns
                continue
            value = getattr(config, name)
            # What was patched and put back is no default any more to torch, though it has that value.
            if _plain(value) and value != getattr(entry, "default", None):
                yield f"{module}.{name}", repr(value)[:MOST]


def _plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_plain, value))
    return value is None or type(value) in (bool, int, float, str)
