"""Reads what ``nvdisasm`` writes for a kernel: instructions, with the line of PTX that each was made from.

The line of Triton is had by way of that PTX. The table of source lines, which a cubin has as well, knows only the
innermost function: for a reduction that is a line inside Triton's library, not the kernel's line that calls it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..record.machine_code import Form
from .page import Page

_ORIGIN = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_PTX = ".nv_debug_ptx_txt"
_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;\s*$")


def read(text: str, of_ptx: Mapping[int, tuple[int, ...]]) -> tuple[Form, int]:
    """The instructions with links, and how many there are, without the padding behind the last one.

    Args:
        of_ptx: lines of the kernel's source by the line of PTX.
    """
    page = Page()
    now: tuple[int, ...] = ()
    operations: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("//##"):
            found = _ORIGIN.match(line)
            now = of_ptx.get(int(found[2]), ()) if found and found[1] == _PTX else ()
            continue
        instruction = _INSTRUCTION.match(line)
        if instruction:
            operations.append(instruction[1])
        elif line.lstrip().startswith(".section"):
            now = ()
        page.add(line, now if instruction and not _is_padding(instruction[1]) else ())
    while operations and _is_padding(operations[-1]):
        operations.pop()
    return page.form("sass"), len(operations)


def _is_padding(operation: str) -> bool:
    return operation == "NOP"
