"""Captures that record stages but no reasons, as a baseline for tests and benchmarks of the reasons."""

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
"""Modules that record reasons; a capture has every stage without them."""

STARTS = ((fusion, "begin"), (line_origins, "begin"), (lowered_nodes, "begin"), (passes, "begin"),
          (buffer_lifetimes, "record"), (partitioner, "record"))  # fmt: skip
"""Calls of the observers outside their hooks."""


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing: replaces a hook of one of these modules."""


@contextlib.contextmanager
def without(*modules: Any) -> Iterator[None]:
    """Keep captures from recording the results of these modules of ``_torch``, for the duration."""
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
    """Keep captures from recording reasons for the duration."""
    return without(*REASONS)
