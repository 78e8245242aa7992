"""Advice for a graph break that torch's hints lack, or give after what does not help."""

from __future__ import annotations

from collections.abc import Iterator

from compile_lens.measures.remedies import logging_calls
from compile_lens.record.breaks import Ending
from compile_lens.record.graph import Frame
from compile_lens.record.remedies import CAPTURE_SCALARS, REORDER_LOGGING

from .labels import place

BRANCH = (
    "Choose between two results with torch.where, or between two functions with torch.cond. With "
    f"{CAPTURE_SCALARS} alone the graph breaks at the branch{{}}, which needs the number."
)
LOGGING = (
    f"Remove the call, or torch._dynamo.config.{REORDER_LOGGING}.update({{{{{{}}}}}}): it then runs after the graph, "
    "if its arguments are tensors, constants, or strings made of them."
)
_NOT_REORDERED = "attempted to reorder"
"""Begins torch's reason where that setting is in force and an argument does not allow it."""


def of_line(ending: Ending, line: Frame) -> Iterator[str]:
    """The advice that follows from the line of the program at which a graph breaks."""
    if ending.branch is not None:
        there = (ending.branch.file, ending.branch.line) == (line.file, line.line)
        yield BRANCH.format("" if there else f" at {place(ending.branch)}")
    calls = logging_calls([line.text])
    if calls and not ending.reason.startswith(_NOT_REORDERED):
        yield LOGGING.format(", ".join(calls))


def helpful(ending: Ending, hint: str) -> str:
    """Return torch's hints without that which would only move the break to the branch on a number."""
    lines = hint.split("\n")
    return "\n".join(one for one in lines if ending.branch is None or CAPTURE_SCALARS not in one)
