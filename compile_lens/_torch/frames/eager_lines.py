"""The lines of a function that run eagerly after Dynamo stops."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Mapping
from typing import Any

from ...record.messages import plain_name as plain_name
from ...record.messages import resume_line

_FINISHING = ("POP_TOP", "STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
"""Instructions that end a statement: its value was computed elsewhere."""


def is_resume(code: Any) -> bool:
    """Return True if a code object is a resume function, which Dynamo made after a graph break."""
    return resume_line(code.co_name) is not None


def lines(code: Any, start: int | None = None) -> tuple[tuple[int, int], ...]:
    """Return the lines of a code object as ranges: all of them, or those that can be reached from an instruction on.

    For a resume function these are the lines after the break: its code holds the whole function.
    """
    instructions = list(dis.get_instructions(code))
    if start is None and is_resume(code):
        start = _resume_target(instructions)
    numbers = code_lines(code)
    if start is None:
        return ranges(body_lines(code), numbers)
    first = _reached(instructions, start)
    reached = {line for begin, _, line in code.co_lines() if line and begin >= first}
    reached |= {line for begin, end, line in code.co_lines() if line and begin <= first < end}
    return ranges(reached, numbers)


_COMPUTING = (
    "BINARY_",
    "CALL",
    "COMPARE_OP",
    "DELETE_SUBSCR",
    "FOR_ITER",
    "INPLACE_",
    "LOAD_ATTR",
    "LOAD_METHOD",
    "LOAD_SUPER_ATTR",
    "STORE_SUBSCR",
    "UNARY_",
    "UNPACK_",
    "YIELD_VALUE",
)
"""Prefixes of instructions that can be, or call, an operation on a tensor."""


def may_compute(code: Any) -> bool:
    """Return True if a code, or the part of a resume function after the break, has an instruction that may
    compute something."""
    instructions = list(dis.get_instructions(code))
    start = _resume_target(instructions) if is_resume(code) else None
    first = _reached(instructions, start) if start is not None else 0
    return any(x.offset >= first and x.opname.startswith(_COMPUTING) for x in instructions)


def uses_plain_values_only(code: Any, names: Mapping[str, Any]) -> bool:
    """Return True if a code reaches only constants, Python's own functions and plain containers by their
    names: it gets and makes no value that could be a tensor (``calls.append(1)``)."""
    of_python = vars(builtins)
    for x in dis.get_instructions(code):
        if x.opname.startswith(_OF_A_FRAME):
            return False
        if x.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = names.get(x.argval, of_python.get(x.argval))
            if type(value) not in _PLAIN and value is not of_python.get(x.argval):
                return False
    return True


_OF_A_FRAME = (
    "BINARY_SUBSCR",
    "FOR_ITER",
    "IMPORT_",
    "LOAD_CLASSDEREF",
    "LOAD_CLOSURE",
    "LOAD_DEREF",
    "LOAD_FAST",
    "MAKE_FUNCTION",
)
"""Prefixes of instructions that load an argument, or a value from a container."""
_PLAIN = (list, dict, set, int, float, str, bool)


def _reached(instructions: list[dis.Instruction], start: int) -> int:
    """Return the first instruction that can be reached from one on, after those that end its statement."""
    at = next((i for i, x in enumerate(instructions) if x.offset >= start), len(instructions))
    while at + 1 < len(instructions) and instructions[at].opname in _FINISHING:
        at += 1
    first = instructions[at].offset if at < len(instructions) else start
    return _with_loops(instructions, first)


def _resume_target(instructions: list[dis.Instruction]) -> int | None:
    """Return the first jump target of a resume function: the instruction after the break."""
    jumps = (x.argval for x in instructions if x.opname in ("JUMP_FORWARD", "JUMP_ABSOLUTE"))
    return next((target for target in jumps if isinstance(target, int)), None)


def _with_loops(instructions: list[dis.Instruction], first: int) -> int:
    """Return the first instruction that can be reached: a loop that is left in the middle begins again at its top."""
    back = [(x.offset, x.argval) for x in instructions if x.opcode in _JUMPS and isinstance(x.argval, int)]
    while True:
        earlier = min((to for at, to in back if at >= first), default=first)
        if earlier >= first:
            return first
        first = earlier


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def code_lines(code: Any) -> set[int]:
    """Return the lines of a code object that have code."""
    numbers: set[int] = {
        line for _, _, line in code.co_lines()
    }  # of an instruction without a line None, or 0
    return numbers - {None, 0}


def body_lines(code: Any) -> set[int]:
    """Return the lines of the body: the first line only if more than the head is on it."""
    numbers = code_lines(code)
    first = code.co_firstlineno
    if is_resume(code):
        return numbers
    line, body = 0, False
    for x in dis.get_instructions(code):
        if x.starts_line:
            # From Python 3.13 on the line is another attribute: None of what a coroutine ends with.
            line = getattr(x, "line_number", x.starts_line) or 0
        body = body or (line == first and x.opname not in _HEADS)
    return numbers if body else numbers - {first} or numbers


_HEADS = ("RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP", "NOP", "GEN_START")
"""Instructions of a function's head; none of them stands alone on a line of the body."""


def ranges(wanted: set[int], known: set[int]) -> tuple[tuple[int, int], ...]:
    """Return lines as ranges, which span lines without code."""
    spans: list[tuple[int, int]] = []
    joined = False
    for line in sorted(known | wanted):
        if line not in wanted:
            joined = False
        elif joined:
            spans[-1] = (spans[-1][0], line)
        else:
            spans.append((line, line))
            joined = True
    return tuple(spans)


def code_ranges(code: Any) -> tuple[tuple[int, int], ...]:
    """Return the lines with code as ranges, which end before a line that has none; with the first one if the
    body is on it too, or nowhere else."""
    numbers = body_lines(code)
    return ranges(numbers, set(range(min(numbers), max(numbers) + 1))) if numbers else ()
