"""Advice for a graph break that torch's hints lack, or give after what does not help."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from compile_lens.measures.remedies import logging_calls
from compile_lens.record.breaks import Ending
from compile_lens.record.graph import Frame
from compile_lens.record.remedies import CAPTURE_SCALARS, REORDER_LOGGING

BRANCH = (
    "Choose between two results with torch.where, or between two functions with torch.cond. With "
    f"{CAPTURE_SCALARS} alone the graph breaks at the branch, which needs the number."
)
LOGGING = (
    f"Remove the call, or torch._dynamo.config.{REORDER_LOGGING}.update({{{{{{}}}}}}): it then runs after the graph, "
    "if its arguments are tensors, constants, or strings made of them."
)
_NOT_REORDERED = "attempted to reorder"
"""Begins torch's reason where that setting is in force and an argument does not allow it."""


def of_line(ending: Ending, line: Frame) -> Iterator[str]:
    """The advice that follows from the line of the program at which a graph breaks."""
    if CAPTURE_SCALARS in ending.hint and _branches_on_number(line.text):
        yield BRANCH
    calls = logging_calls([line.text])
    if calls and not ending.reason.startswith(_NOT_REORDERED):
        yield LOGGING.format(", ".join(calls))


def _branches_on_number(line: str) -> bool:
    """Return True if a line of Python branches on the number that a tensor holds: ``if x.sum().item() > 0:``."""
    text = re.sub(r"^\s*elif\b", "if", line).strip()
    try:
        tree = ast.parse(f"{text} pass" if text.endswith(":") else text)
    except SyntaxError:  # part of a statement of several lines
        return False
    tests = (node.test for node in ast.walk(tree) if isinstance(node, (ast.If, ast.IfExp, ast.While)))
    return any(
        isinstance(part, ast.Attribute) and part.attr in ("item", "tolist")
        for test in tests
        for part in ast.walk(test)
    )
