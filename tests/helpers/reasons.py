"""Captures that record the stages and no reasons: what tests and benchmarks compare the reasons with."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from compile_lens._torch.code import buffer_lifetimes
from compile_lens._torch.graphs import partitioner, passes, rewrite_origins
from compile_lens._torch.ground import hooks
from compile_lens._torch.inductor import fusion, line_origins, lowered_nodes

REASONS = (fusion, line_origins, lowered_nodes, buffer_lifetimes, rewrite_origins, passes, partitioner)
"""Modules that say why. Without them a capture still has every stage."""

STARTS = ((fusion, "begin"), (line_origins, "begin"), (lowered_nodes, "begin"), (passes, "begin"),
          (buffer_lifetimes, "record"), (partitioner, "record"))  # fmt: skip
"""What they are asked to do outside of their hooks."""


def nothing(*args: Any, **kwargs: Any) -> None:
    """Stands for each of them."""


@contextlib.contextmanager
def without(*modules: Any) -> Iterator[None]:
    """For the duration, captures record nothing of what these modules of ``_torch`` find."""
    names = {module.__name__ for module in modules}
    kept = dict(hooks._registry)
    assert names - {buffer_lifetimes.__name__} <= {wrap.__module__ for wrap in kept.values()}
    with contextlib.ExitStack() as stack:
        for module, name in STARTS:
            if module in modules:
                stack.enter_context(mock.patch.object(module, name, nothing))
        for path, wrap in kept.items():
            if wrap.__module__ in names:
                del hooks._registry[path]
        try:
            yield
        finally:
            hooks._registry.clear()
            hooks._registry.update(kept)


def stages_only() -> contextlib.AbstractContextManager[None]:
    """For the duration, captures record no reasons."""
    return without(*REASONS)
