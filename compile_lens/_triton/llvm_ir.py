"""Parser for LLVM IR. An instruction refers to its location (``!dbg !20``), which is metadata at the text's end:

!20 = !DILocation(line: 169, column: 15, scope: !24, inlinedAt: !26)
!24 = distinct !DILexicalBlockFile(scope: !5, file: !25, discriminator: 0)
!25 = !DIFile(filename: "triton_helpers.py", directory: "…")
"""

from __future__ import annotations

import re

from ..record.kernel import Form
from .listing import KERNEL_FILE, Listing, Numbers

_NODE = re.compile(r"^!(\d+) = (.*)$")
_NAMED = re.compile(r"^!([A-Za-z_][\w.]*) = !\{(.*)\}$")
_DEBUG = re.compile(r",? ?!dbg !(\d+)")
_REFERENCE = re.compile(r"!(\d+)\b")
_LOCATION = re.compile(r"^(!\d+ = (?:distinct )?)!DILocation\(.*\)$")
_ASSERTED = re.compile(r'^(@assertFile_\w+ = .*?)\[\d+ x i8\] c"([^"]*)\\00"', re.M)
_ESCAPED = re.compile(r"\\[0-9A-F]{2}")
_SETTINGS = ("Debug Info Version", "Dwarf Version")


def read(text: str) -> Form:
    """Return the text without debug information, and its links."""
    lines = text.splitlines()
    nodes = {m[1]: m[2] for line in lines if (m := _NODE.match(line))}
    page = Listing()
    used: list[str] = []
    for line in lines:
        if _NODE.match(line) or line.lstrip().startswith("#dbg_"):
            continue
        if named := _NAMED.match(line):
            entries = [e for e in _REFERENCE.findall(named[2]) if not _is_setting(nodes.get(e, ""))]
            if named[1] != "llvm.dbg.cu" and entries:
                page.add(f"!{named[1]} = !{{{', '.join('!' + e for e in entries)}}}")
                used += entries
            continue
        locations = _DEBUG.findall(line)
        bare = _DEBUG.sub("", line)
        page.add(bare, _sources(locations[0], nodes) if locations else ())
        used += _REFERENCE.findall(bare)
    for name in _reached(used, nodes):
        page.add(f"!{name} = {_bare(nodes[name], nodes)}")
    return page.form("llir")


def numbered(text: str) -> tuple[str, Numbers]:
    """Return the text with a number instead of each location's line, and the meaning of the numbers.

    After LLVM IR, each instruction has one file and line, and not always the right one: PTX notes inlined calls in a
    comment, in a directive that can mean two of them, or not at all, and gives each line of inline assembly the next
    line of the file. A number that stands for all the kernel's lines of a location, with a gap before the next number,
    survives all of that. Only debug information changes, so the code stays the same.
    """
    nodes = {m[1]: m[2] for line in text.splitlines() if (m := _NODE.match(line))}
    numbers = Numbers()
    lines = []
    for line in text.splitlines():
        if match := _LOCATION.match(line):
            name = match[1].split(" ")[0][1:]
            sources = tuple(_sources(name, nodes))
            scope = _field(nodes[_outermost(name, nodes)], "scope", "!")
            line = f"{match[1]}!DILocation(line: {numbers.of(sources)}, column: 0, scope: !{scope})"
        lines.append(line)
    return "\n".join(lines) + "\n", numbers


def without_folders(text: str) -> str:
    """Return the text with the file names in its assertions stripped of folders. They are data, not debug information,
    and an assertion in a library has the folder of its installation."""

    def bare(match: re.Match[str]) -> str:
        name = re.split(r"/|\\5C", match[2])[-1]
        return f'{match[1]}[{len(_ESCAPED.sub("x", name)) + 1} x i8] c"{name}\\00"'

    return _ASSERTED.sub(bare, text)


def _outermost(location: str, nodes: dict[str, str]) -> str:
    """Return the location in the outermost function into which a location is inlined."""
    while outer := _field(nodes[location], "inlinedAt", "!"):
        location = outer
    return location


def _is_setting(node: str) -> bool:
    return any(f'!"{name}"' in node for name in _SETTINGS)


def _sources(location: str, nodes: dict[str, str]) -> list[int]:
    """Return the kernel's lines for a location and for the calls at which it is inlined."""
    numbers = set()
    seen = set()
    while location and location not in seen:
        seen.add(location)
        node = nodes.get(location, "")
        if node.startswith("distinct !DISubprogram") or node.startswith("!DISubprogram"):
            # The location of a function's definition.
            line, scope, outer = _field(node, "line"), location, ""
        else:
            line, scope, outer = (
                _field(node, "line"),
                _field(node, "scope", "!"),
                _field(node, "inlinedAt", "!"),
            )
        if line not in ("", "0") and _file(scope, nodes) == KERNEL_FILE:
            numbers.add(int(line))
        location = outer
    return sorted(numbers)


def _file(scope: str, nodes: dict[str, str]) -> str:
    node = nodes.get(scope, "")
    match = re.search(r'filename: "([^"]*)"', nodes.get(_field(node, "file", "!"), ""))
    return re.split(r"[/\\]", match[1])[-1] if match else ""


def _field(node: str, name: str, mark: str = "") -> str:
    match = re.search(rf"\b{name}: {mark}(\d+)", node)
    return match[1] if match else ""


def _bare(node: str, nodes: dict[str, str]) -> str:
    """Return a node without the locations in it (of a loop's begin and end)."""
    return re.sub(
        r", !(\d+)\b", lambda m: "" if nodes.get(m[1], "").startswith("!DILocation") else m[0], node
    )


def _reached(used: list[str], nodes: dict[str, str]) -> list[str]:
    """Return the names of the nodes still in use, in order."""
    used_names: set[str] = set()
    pending = list(used)
    while pending:
        name = pending.pop()
        if name in nodes and name not in used_names:
            used_names.add(name)
            pending += _REFERENCE.findall(_bare(nodes[name], nodes))
    return sorted(used_names, key=int)
