"""Parsers for PTX and the output of ``nvdisasm``, with the kernel's line of each instruction.

In PTX a directive gives the location of the instructions after it:

.file 1 "compile_lens_kernel.py" .loc  1 1052672 0

The second number is one of ``Numbers``; a smaller one is a line, that of the function's definition.

In SASS each instruction has its PTX line, and through that the kernel's. A cubin's table of source lines has only the
innermost function: for a reduction, a line in Triton's library instead of the kernel's line that calls it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..record.kernel import Form
from .listing import KERNEL_FILE, Listing, Numbers

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\b")
_PTX_INSTRUCTION = re.compile(r"^\s+(?:@!?%\w+\s+)?[a-z]")
_LABEL = re.compile(r"^(\$L__(?:tmp|func_begin|func_end|info_string|debug)\w*):\s*$")
_SECTION = re.compile(r"^\s*\.section\s+\.debug_")
_ARCH = re.compile(r"^\s*\.target\s+(\w+)", re.M)


def arch(text: str) -> str:
    """Return the target of a PTX text (``sm_90a``); ``""`` if it has none."""
    match = _ARCH.search(text)
    return match[1] if match else ""


def read_ptx(text: str, numbers: Numbers) -> tuple[Form, dict[int, tuple[int, ...]]]:
    """Return the text without debug information, with links, and the same links by line of the original ``text``."""
    lines = text.splitlines()
    own = {m[1] for line in lines if (m := _FILE.match(line)) and _base_name(m[2]) == KERNEL_FILE}
    kept: list[tuple[str, tuple[int, ...]]] = []
    linked: dict[int, tuple[int, ...]] = {}
    current_lines: tuple[int, ...] = ()
    skipping = False
    for number, line in enumerate(lines, 1):
        if skipping or _SECTION.match(line):
            skipping = "}" not in line
            continue
        if match := _LOCATION.match(line):
            current_lines = _ptx_sources(match[1] in own, int(match[2]), numbers)
            continue
        if _FILE.match(line):
            continue
        if line.startswith("}"):
            current_lines = ()
        lines_here = current_lines if _PTX_INSTRUCTION.match(line) else ()
        if lines_here:
            linked[number] = lines_here
        kept.append((line, lines_here))
    used = {name for line, _ in kept if not _LABEL.match(line) for name in re.findall(r"\$L__\w+", line)}
    page = Listing()
    for line, lines_here in kept:
        label = _LABEL.match(line)
        if not label or label[1] in used:
            page.add(line, lines_here)
    return page.form("ptx"), linked


def _ptx_sources(in_kernel: bool, number: int, numbers: Numbers) -> tuple[int, ...]:
    """Return the kernel's lines for a location; line 0 means none."""
    if number < Numbers.FIRST:
        return (number,) if in_kernel and number else ()
    return numbers.lines(number)


def _base_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


_ORIGIN = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_PTX = ".nv_debug_ptx_txt"
_SASS_INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;\s*$")


def read_sass(text: str, of_ptx: Mapping[int, tuple[int, ...]]) -> tuple[Form, int]:
    """Return the instructions with links, and their number without the padding at the end.

    Args:
        of_ptx: lines of the kernel's source by PTX line.
    """
    page = Listing()
    current_lines: tuple[int, ...] = ()
    operations: list[str] = []
    for line in text.splitlines():
        if line.lstrip().startswith("//##"):
            match = _ORIGIN.match(line)
            current_lines = of_ptx.get(int(match[2]), ()) if match and match[1] == _PTX else ()
            continue
        instruction = _SASS_INSTRUCTION.match(line)
        if instruction:
            operations.append(instruction[1])
        elif line.lstrip().startswith(".section"):
            current_lines = ()
        page.add(line, current_lines if instruction and not _is_padding(instruction[1]) else ())
    while operations and _is_padding(operations[-1]):
        operations.pop()
    return page.form("sass"), len(operations)


def _is_padding(operation: str) -> bool:
    return operation == "NOP"
