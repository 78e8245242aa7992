"""Findings of a capture: evidence for the reasons of its generated code. All views show them."""

from __future__ import annotations

from collections.abc import Iterable

from compile_lens.measures.memo import memoized
from compile_lens.record.capture import Record

from ..document import Finding
from .ablations import ablations
from .benchmark import benchmark, profile
from .calls import calls
from .contests import contests
from .cost import cost
from .cuda_graphs import cuda_graphs
from .fusion import fusion
from .lowering import lowering, rewrites
from .machine import machine_code
from .memory import memory
from .target import target
from .traffic import traffic

__all__ = ["findings", "unknown"]

_MAKERS = (
    calls,
    target,
    fusion,
    lowering,
    rewrites,
    memory,
    cost,
    traffic,
    machine_code,
    contests,
    cuda_graphs,
    ablations,
    benchmark,
    profile,
)


@memoized
def findings(capture: Record) -> tuple[Finding, ...]:
    """Return the findings of a capture in display order; they are made once for each capture.

    A finding that lacks data in the record is included with the reason in ``missing``; one that does not apply (no code
    was generated, nothing was lowered) is omitted.
    """
    return tuple(finding for make in _MAKERS if (finding := make(capture)) is not None)


def unknown(every: Iterable[Finding]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the reasons why findings are missing, each with the titles of its findings."""
    reasons: dict[str, list[str]] = {}
    for finding in every:
        if finding.missing:
            reasons.setdefault(finding.missing, []).append(finding.title)
    return tuple((why, tuple(titles)) for why, titles in reasons.items())
