"""Advice for graph breaks that torch's hints lack or give only after unhelpful advice."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from compile_lens.measures.remedies import logging_calls
from compile_lens.record.breaks import Ending
from compile_lens.record.graph import Frame
from compile_lens.record.remedies import CAPTURE_SCALARS, CAPTURE_SHAPES, REORDER_LOGGING

from .labels import place

BRANCH = (
    "Choose between two results with torch.where, or between two functions with torch.cond. With "
    f"{CAPTURE_SCALARS} alone the graph breaks at the branch{{}}, which needs the number."
)
INDEX = (
    "Make one tensor of the list (torch.stack, or torch.tensor of numbers), and set "
    f"torch._dynamo.config.{CAPTURE_SCALARS} = True. With the setting alone torch raises an error at the index{{}}, "
    "breaks the graph there, or compiles again for each value."
)
LOGGING = (
    f"Remove the call, or torch._dynamo.config.{REORDER_LOGGING}.update({{{{{{}}}}}}) to run it after the graph, if "
    "its arguments are positional tensors, constants or strings, not shapes."
)
OF_KNOWN_SHAPE = {
    "repeat_interleave": (
        "Give repeat_interleave its output_size, where the sum of the repeats is known without the tensor."
    ),
    "nonzero": (
        "Where a mask selects elements for a sum, torch.where(mask, x, 0) keeps the shape; torch.nonzero_static(x, "
        "size=…) has one that is known."
    ),
    "masked_select": "Where the elements are for a sum, torch.where(mask, x, 0) keeps the shape.",
    "bincount": (
        "Where the number of bins is known, torch.zeros(bins, dtype=torch.int64).index_add(0, x, torch.ones_like(x)) "
        "counts in a known shape."
    ),
}
"""Advice that makes the shape of a result independent of data, by torch's name of the operator."""
_OPERATOR = re.compile(r"`aten\.(\w+)")
_NOT_REORDERED = "attempted to reorder"
"""The start of torch's reason if the setting is on but an argument does not allow it."""

STEP_COMPILED = "torch compiles the step after it by itself: there is nothing to change"
SCHEDULED = (
    "A scheduler of learning rates puts a function of torch's around the optimizer's step. Dynamo skips that one, and "
    f"{STEP_COMPILED}."
)
_OF_SCHEDULER = re.compile(r"the function `[^`]*\.step` in file `[^`]*torch[/\\]optim[/\\]lr_scheduler\.py`")


def is_on_purpose(ending: Ending) -> bool:
    """Return True for a break that torch makes around an optimizer's step, which nothing has to change."""
    at = ending.frames[-1].file.replace(os.sep, "/") if ending.frames else ""
    return bool(_OF_SCHEDULER.search(ending.reason)) or "/torch/optim/" in at


def of_line(ending: Ending, line: Frame) -> Iterator[str]:
    """Yield the advice that follows from the program's line at a graph break."""
    if ending.branch is not None:
        there = (ending.branch.file, ending.branch.line) == (line.file, line.line)
        advice = INDEX if ending.branch.call else BRANCH
        yield advice.format("" if there else f" at {place(ending.branch)}")
    operator = _OPERATOR.search(ending.reason) if CAPTURE_SHAPES in ending.hint else None
    if operator is not None and operator[1] in OF_KNOWN_SHAPE:
        yield OF_KNOWN_SHAPE[operator[1]]
    calls = logging_calls([line.text])
    if calls and not ending.reason.startswith(_NOT_REORDERED):
        yield LOGGING.format(", ".join(calls))


def helpful(ending: Ending, hint: str) -> str:
    """Return torch's hints, except one that would only move the break to the branch on a number. For the step of an
    optimizer, where torch's hints would avoid it, return that no change is needed."""
    if _OF_SCHEDULER.search(ending.reason):
        return SCHEDULED
    lines = hint.split("\n")
    return "\n".join(one for one in lines if ending.branch is None or CAPTURE_SCALARS not in one)
