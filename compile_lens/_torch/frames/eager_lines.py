"""Which lines of a function Python runs where Dynamo stops."""

from __future__ import annotations

import builtins
import dis
from collections.abc import Mapping
from typing import Any

from ...record.messages import plain as plain
from ...record.messages import resumes

_FINISHING = ("POP_TOP", "STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
"""Instructions that end a statement: what was computed before them was computed elsewhere."""


def is_resume(code: Any) -> bool:
    """Whether a code object is what Dynamo made of the rest of a function after a graph break."""
    return resumes(code.co_name) is not None


def lines(code: Any, start: int | None = None) -> tuple[tuple[int, int], ...]:
    """The lines of a code object as ranges: all of them, or those that can be reached from an instruction on.

    Of the rest of a function it is what follows the break: the code that Dynamo made holds all of the function.
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
"""How instructions begin that can be an operation of a tensor, or call one."""


def may_compute(code: Any) -> bool:
    """Whether a code, or what follows the break where it is a rest, has an instruction that may compute something."""
    instructions = list(dis.get_instructions(code))
    start = _resume_target(instructions) if is_resume(code) else None
    first = _reached(instructions, start) if start is not None else 0
    return any(x.offset >= first and x.opname.startswith(_COMPUTING) for x in instructions)


def uses_plain_values_only(code: Any, names: Mapping[str, Any]) -> bool:
    """Whether a code reaches nothing but constants, Python's own functions and plain containers that it finds by their
    names: no value is given to it, or made in it, that could be a tensor (``calls.append(1)``)."""
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
"""How instructions begin that come to a value that was given, or that a container holds."""
_PLAIN = (list, dict, set, int, float, str, bool)


def _reached(instructions: list[dis.Instruction], start: int) -> int:
    """The first instruction that can be reached from one on, after those that end its statement."""
    at = next((i for i, x in enumerate(instructions) if x.offset >= start), len(instructions))
    while at + 1 < len(instructions) and instructions[at].opname in _FINISHING:
        at += 1
    first = instructions[at].offset if at < len(instructions) else start
    return _with_loops(instructions, first)


def _resume_target(instructions: list[dis.Instruction]) -> int | None:
    """Where the code of the rest of a function jumps to first: the instruction after the break."""
    jumps = (x.argval for x in instructions if x.opname in ("JUMP_FORWARD", "JUMP_ABSOLUTE"))
    return next((target for target in jumps if isinstance(target, int)), None)


def _with_loops(instructions: list[dis.Instruction], first: int) -> int:
    """The first instruction that can be reached: a loop that is left in the middle begins again at its top."""
    back = [(x.offset, x.argval) for x in instructions if x.opcode in _JUMPS and isinstance(x.argval, int)]
    while True:
        earlier = min((to for at, to in back if at >= first), default=first)
        if earlier >= first:
            return first
        first = earlier


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def code_lines(code: Any) -> set[int]:
    """The lines of a code object that have code."""
    found: set[int] = {line for _, _, line in code.co_lines()}  # of an instruction without a line None, or 0
    return found - {None, 0}


def body_lines(code: Any) -> set[int]:
    """Those of the body: the first line only where more than the head stands there."""
    numbers = code_lines(code)
    first = code.co_firstlineno
    if is_resume(code):
        return numbers
    line, body = 0, False
    for x in dis.get_instructions(code):
        if x.starts_line:
            line = getattr(x, "line_number", None) or (first if x.starts_line is True else x.starts_line)
        body = body or (line == first and x.opname not in _HEADS)
    return numbers if body else numbers - {first} or numbers


_HEADS = ("RESUME", "COPY_FREE_VARS", "MAKE_CELL", "RETURN_GENERATOR", "POP_TOP", "NOP", "GEN_START")
"""Instructions of a function's head, of which its body has none alone on a line."""


def ranges(wanted: set[int], known: set[int]) -> tuple[tuple[int, int], ...]:
    """Lines as ranges, which go over lines without code."""
    found: list[tuple[int, int]] = []
    joined = False
    for line in sorted(known | wanted):
        if line not in wanted:
            joined = False
        elif joined:
            found[-1] = (found[-1][0], line)
        else:
            found.append((line, line))
            joined = True
    return tuple(found)


def code_ranges(code: Any) -> tuple[tuple[int, int], ...]:
    """The lines of a code object that have code as ranges, which end before a line that has none; its first one where
    the body stands there too, or nowhere else."""
    found = body_lines(code)
    return ranges(found, set(range(min(found), max(found) + 1))) if found else ()
