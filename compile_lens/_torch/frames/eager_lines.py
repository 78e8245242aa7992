"""Lines of a function that run eagerly after Dynamo stops."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Mapping
from typing import Any

from ...record.messages import plain_name as plain_name
from ...record.messages import resume_line

_FINISHING = ("POP_TOP", "STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
"""Instructions that only end a statement, whose value is already computed."""


def is_resume(code: Any) -> bool:
    """Return True if a code object is a resume function, which Dynamo generates after a graph break."""
    return resume_line(code.co_name) is not None


def lines(code: Any, start: int | None = None) -> tuple[tuple[int, int], ...]:
    """Return the lines of a code object as ranges: all of them, or those reachable from the offset ``start``.

    For a resume function, whose code has the whole function, return the lines after the break.
    """
    instructions = list(dis.get_instructions(code))
    if start is None and is_resume(code):
        start = _resume_target(instructions)
    numbers = code_lines(code)
    if start is None:
        return ranges(body_lines(code), numbers)
    first = _first_reachable(instructions, start)
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
"""Prefixes of instructions that can perform or call an operation on a tensor."""


def may_compute(code: Any) -> bool:
    """Return True if a code object, or for a resume function the part after the break, has an instruction that may
    compute."""
    instructions = list(dis.get_instructions(code))
    start = _resume_target(instructions) if is_resume(code) else None
    first = _first_reachable(instructions, start) if start is not None else 0
    return any(x.offset >= first and x.opname.startswith(_COMPUTING) for x in instructions)


def uses_plain_values_only(code: Any, names: Mapping[str, Any]) -> bool:
    """Return True if a code object uses only constants, builtins and plain global containers, so that it handles no
    value that could be a tensor (``calls.append(1)``)."""
    builtin_names = vars(builtins)
    for x in dis.get_instructions(code):
        if x.opname.startswith(_LOADING):
            return False
        if x.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = names.get(x.argval, builtin_names.get(x.argval))
            if type(value) not in _PLAIN and value is not builtin_names.get(x.argval):
                return False
    return True


_LOADING = (
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


def _first_reachable(instructions: list[dis.Instruction], start: int) -> int:
    """Return the offset of the first instruction reachable from ``start``, after those that end its statement."""
    at = next((i for i, x in enumerate(instructions) if x.offset >= start), len(instructions))
    while at + 1 < len(instructions) and instructions[at].opname in _FINISHING:
        at += 1
    first = instructions[at].offset if at < len(instructions) else start
    return _with_loops(instructions, first)


def _resume_target(instructions: list[dis.Instruction]) -> int | None:
    """Return the offset of a resume function's first jump target: the instruction after the break."""
    jumps = (x.argval for x in instructions if x.opname in ("JUMP_FORWARD", "JUMP_ABSOLUTE"))
    return next((target for target in jumps if isinstance(target, int)), None)


def _with_loops(instructions: list[dis.Instruction], first: int) -> int:
    """Return the offset of the first reachable instruction, including loops that are entered in the middle and repeat
    from their top."""
    back = [(x.offset, x.argval) for x in instructions if x.opcode in _JUMPS and isinstance(x.argval, int)]
    while True:
        earlier = min((to for at, to in back if at >= first), default=first)
        if earlier >= first:
            return first
        first = earlier


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def code_lines(code: Any) -> set[int]:
    """Return the lines of a code object that have instructions."""
    numbers: set[int] = {
        line for _, _, line in code.co_lines()
    }  # None or 0 for an instruction without a line
    return numbers - {None, 0}


def body_lines(code: Any) -> set[int]:
    """Return the lines of the body, with the first line only if it has more than the head."""
    numbers = code_lines(code)
    first = code.co_firstlineno
    if is_resume(code):
        return numbers
    line, body = 0, False
    for x in dis.get_instructions(code):
        if x.starts_line:
            # From Python 3.13 on it is a flag, and the line is another attribute, None at the end of a coroutine.
            line = getattr(x, "line_number", x.starts_line) or 0
        body = body or (line == first and x.opname not in _HEADS)
    return numbers if body else numbers - {first} or numbers


_HEADS = ("RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP", "NOP", "GEN_START")
"""Instructions of a function's head; no line of the body has only these."""


def ranges(wanted: set[int], known: set[int]) -> tuple[tuple[int, int], ...]:
    """Return the ``wanted`` lines as ranges; lines that are not ``known`` to have code do not split a range."""
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
    """Return the lines with code as ranges, which end before a line without code; with the first line only if the body
    is on it."""
    numbers = body_lines(code)
    return ranges(numbers, set(range(min(numbers), max(numbers) + 1))) if numbers else ()
