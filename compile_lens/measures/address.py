"""Addresses of what links join: nodes, kernels, lines of kernels, Python lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from compile_lens.errors import UsageError
from compile_lens.record.graph import Frame, Graph, Node

Address = tuple[str, str, str]
"""Place in a capture: ``(compile id, stage key, node name)``.

A Python line is ``("", "python", "file:line")``, a kernel ``(compile id, "forward.code", kernel name)``, one
of its lines ``(compile id, "forward.code", "kernel name:7")``, counted from 1 in its own source, and a node of
a subgraph ``(compile id, stage key, "true_graph_0/sin")``.
"""

PYTHON = "python"
"""The stage key of Python lines."""


MODULE = "module:"
"""Prefix of a text for the nodes of a module: ``"module:layers.3.attn"``. No file is tried under it."""


def line_address(file: str, line: int) -> Address:
    """Return the address of a Python line."""
    return ("", PYTHON, f"{file}:{line}")


def walk(graph: Graph, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield the nodes of a graph and of its subgraphs, each with the path of its subgraph (``"true_graph_0/"``)."""
    for node in graph.nodes:
        yield path, node
    for name, body in graph.subgraphs:
        yield from walk(body, f"{path}{name}/")


NO_WORK = frozenset(("placeholder", "get_attr", "output"))
"""Operations of nodes that compute nothing."""

FORMS = (
    "a line ('model.py:7'), a call in one ('model.py:7:11-23'), a name at one ('sin@7'), "
    "a module ('module:layers.3')"
)

_PLACE = re.compile(
    r"(?:(?P<file>.+):)?(?P<line>\d{1,9})(?::(?P<column>\d{1,9})-(?P<end>\d{1,9}))?", re.DOTALL
)
_NAMED = re.compile(r"(?P<name>[\w./]+)@(?P<place>.+)", re.DOTALL)
_CALL = re.compile(r"(?:[\w.]|\(\)|\[\])*?(\w+)\(\)")
MAX_LISTED = 12


class _Call(NamedTuple):
    """A node and its frame at a line: the innermost one, or that of a call that led to the node."""

    address: Address
    node: Node
    frame: Frame
    inside: str
    """The function that this frame called; ``""`` for the innermost frame."""

    @property
    def span(self) -> tuple[int, int] | None:
        """Columns of the call, if known."""
        column, end = self.frame.column, self.frame.end_column
        return None if column is None or end is None else (column, end)

    @property
    def names(self) -> set[str]:
        """Names that a text may use for the call."""
        names = {self.inside, _callee(self.frame.call)}
        if not self.inside:
            names |= {self.address[2], function(self.node.target)}
        return names - {""}

    def named(self, name: str) -> bool:
        """Return True if ``name`` is one of ``names`` or the node's full target: ``torch.sin``."""
        return name in self.names or (not self.inside and name == self.node.target)


class AddressTexts:
    """Lookup of the addresses of one capture by text.

    ``lines`` are its Python lines, ``linked`` the nodes that are linked to their own frames, ``copied`` the inputs that
    a kernel copies to another layout.
    """

    def __init__(
        self,
        nodes: Mapping[Address, Node],
        kernels: Collection[Address],
        code_lines: Collection[Address],
        lines: Collection[Address],
        linked: Collection[Address],
        copied: Collection[Address],
    ) -> None:
        self._nodes = nodes
        self._kernels = kernels
        self._code_lines = code_lines
        self._lines = lines
        self._linked = linked
        self._copied = copied

    @cached_property
    def _of_torch(self) -> set[str]:
        return {frame.file for node in self._nodes.values() for frame in node.frames if frame.of_torch}

    @cached_property
    def _by_name(self) -> dict[str, set[str]]:
        """Paths by file name without folders."""
        files: dict[str, set[str]] = {}
        for line in self._lines:
            files.setdefault(_file(line).replace("\\", "/").rpartition("/")[2], set()).add(_file(line))
        return files

    def find(self, text: str) -> tuple[Address, ...]:
        """Return the addresses that a text names, in record order; raise ``UsageError`` for none or an ambiguity."""
        if text.startswith(MODULE):
            return self._of_module(text.removeprefix(MODULE))
        self.check_kernel(text)
        named = [a for a in (*self._kernels, *self._code_lines) if a[2] == text]
        if len(named) > 1:
            raise UsageError(f"{text!r} is in several places: give one of {_listed(map(repr, named))}")
        if named:
            return tuple(named)
        at = _NAMED.fullmatch(text)
        place = _PLACE.fullmatch(text)
        if at and not (place and self._files(place["file"] or "")):
            place = _PLACE.fullmatch(at["place"])
            if place and place["column"] is None:
                line = self.line(place["file"] or "", int(place["line"]), text)
                return self._named(text, at["name"], line)
        elif place:
            line = self.line(place["file"] or "", int(place["line"]), text)
            if place["column"] is None:
                return (line,)
            return self._spanned(text, line, (int(place["column"]), int(place["end"])))
        raise UsageError(self._no_form(text))

    def _of_module(self, path: str) -> tuple[Address, ...]:
        """Return the operations of a module and its submodules, for each compilation from the first stage with any."""
        stages: dict[str, str] = {}
        nodes = []
        for address, node in self._nodes.items():
            if node.op in NO_WORK or not f"{node.module}.".startswith(f"{path}.") or not path:
                continue
            if stages.setdefault(address[0], address[1]) == address[1]:
                nodes.append(address)
        if not nodes:
            modules = dict.fromkeys(node.module for node in self._nodes.values() if node.module)
            some = _listed([*modules][:MAX_LISTED]) + (", …" if len(modules) > MAX_LISTED else "")
            raise UsageError(
                f"{MODULE + path!r}: no operation belongs to this module; there are {some or 'none'}"
            )
        return tuple(nodes)

    def check_kernel(self, name: str) -> None:
        """Raise ``UsageError`` for the bare name of a function that one graph calls more than once."""
        calls = [a for a in self._kernels if a[2].partition("#")[0] == name]
        if name in (a[2] for a in calls) and len({a[2] for a in calls}) > 1:
            texts = [repr(a if a[2] == name else a[2]) for a in calls]
            raise UsageError(f"{name!r} is called more than once: give one of {_listed(texts)}")

    def is_form(self, text: str) -> bool:
        """Return True if a text has the form of a place, of a name at one, or of a module."""
        return text.startswith(MODULE) or bool(_PLACE.fullmatch(text) or _NAMED.fullmatch(text))

    def __contains__(self, text: str) -> bool:
        """Return True if a text names something unambiguously."""
        try:
            return bool(self.find(text))
        except UsageError:
            return False

    def line(self, file: str, line: int, text: str = "") -> Address:
        """Return a Python line by its number and the end of its path; ``""`` if only one file has it."""
        name = f"{file}:{line}" if file else f"line {line}"
        if text and text != name:
            name = f"{text!r}: {name}"
        numbered = [a for a in self._lines if a[2].endswith(f":{line}")]
        if not file:  # torch's own lines need their file
            numbered = [a for a in numbered if _file(a) not in self._of_torch] or numbered
        matches = [a for a in numbered if _file(a) == file] or [a for a in numbered if _ends(_file(a), file)]
        if len(matches) > 1:
            files = [_file(a) for a in matches]
            raise UsageError(
                f"line {line} is in {_listed(files)}: name the file, such as '{self.short(matches[0])}'"
            )
        if matches:
            return matches[0]
        if file and not self._files(file):
            files = [*dict.fromkeys(map(_file, self._lines))]
            raise UsageError(f"{name}: the capture has no line of {file!r}; it has lines of {_listed(files)}")
        near = sorted(
            (a for a in self._lines if _ends(_file(a), file)),
            key=lambda a: abs(int(a[2].rpartition(":")[2]) - line),
        )
        some = _listed(map(self.short, sorted(near[:MAX_LISTED], key=_by_line))) + (
            ", …" if near[MAX_LISTED:] else ""
        )
        raise UsageError(f"{name} holds no tensor operation of this capture; lines that do: {some}")

    def _files(self, file: str) -> set[str]:
        """Return the files that a name could mean."""
        return {path for path in map(_file, self._lines) if file and _ends(path, file)}

    def _calls(self, line: Address, among: Iterable[Address]) -> Iterator[_Call]:
        for address in among:
            node = self._nodes[address]
            if node.op in NO_WORK:
                continue
            frames = [frame for frame in node.frames if not frame.of_torch] or list(node.innermost)
            for i, frame in enumerate(frames):
                if line_address(frame.file, frame.line) == line:
                    inside = frames[i + 1].function if i + 1 < len(frames) else ""
                    yield _Call(address, node, frame, inside)

    def _calls_in(self, line: Address) -> list[_Call]:
        """Return the calls in a line, in record order."""
        return list(self._calls(line, (a for a in self._nodes if a in self._linked)))

    def _first_use(self, address: Address, line: Address, span: tuple[int, int]) -> bool:
        """Return True if an input is first used at these columns of a line."""
        return any(
            line_address(frame.file, frame.line) == line and (frame.column, frame.end_column) == span
            for frame in self._nodes[address].innermost
        )

    def _spanned(self, text: str, line: Address, span: tuple[int, int]) -> tuple[Address, ...]:
        calls = self._calls_in(line)
        matches = dict.fromkeys(call.address for call in calls if call.span == span)
        inputs = [a for a in self._linked if self._nodes[a].op in NO_WORK and self._first_use(a, line, span)]
        matches |= dict.fromkeys(a for a in inputs if a in self._copied or not matches)
        if matches:
            return tuple(matches)
        if not any(call.span for call in calls):
            raise UsageError(
                f"{text!r}: the record has no columns for this line (Python 3.11 and newer report them, except for a "
                f"call that takes up its whole line): give the line, {self.short(line)!r}, or one of "
                f"{_listed(self._call_texts(line, calls))}"
            )
        raise UsageError(
            f"{text!r} is not a call on this line: give one of {_listed(self._call_texts(line, calls))}"
        )

    def _named(self, text: str, name: str, line: Address) -> tuple[Address, ...]:
        calls = self._calls_in(line)
        matches = [call for call in calls if call.named(name)]
        if matches:
            if len({call.span or call.address[2] for call in matches}) > 1:
                raise UsageError(
                    f"{text!r} could be several calls: give one of {_listed(self._call_texts(line, matches))}"
                )
            return tuple(dict.fromkeys(call.address for call in matches))
        later = self._later(name, line)
        if len({address[2] for address in later}) > 1:
            raise UsageError(
                f"{text!r} could be several nodes: give one of {_listed(map(repr, self.distinct(later, text)))}"
            )
        if later:
            return tuple(later)
        names = _listed(sorted({name for call in calls for name in call.names}))
        raise UsageError(
            f"{text!r}: nothing of that name is at {self.short(line)}, which has {names or 'no call'}: give one of "
            f"{_listed(self._call_texts(line, calls))}"
        )

    def _later(self, name: str, line: Address) -> list[Address]:
        """Return nodes at a line whose own name or callee is ``name``, from the first stage that has any."""
        stages: dict[str, list[Address]] = {}
        for call in self._calls(line, self._nodes):
            if not call.inside and call.named(name):
                stages.setdefault(call.address[1], []).append(call.address)
        return next(iter(stages.values()), [])

    def distinct(self, addresses: Iterable[Address], unlike: str = "") -> list[str | Address]:
        """Return for each node a text that ``find`` accepts and that names none of the others, or its address if there
        is no such text. ``unlike`` is a text known to be ambiguous.

        Nodes of one call in the source (an unrolled loop, a recompile) share a text.
        """
        calls: dict[object, list[Address]] = {}
        for address in addresses:
            calls.setdefault(self._source_of(address), []).append(address)
        texts: dict[str | Address, None] = {}
        for call in calls.values():
            others = {address for other in calls.values() if other is not call for address in other}
            texts[self._unique_text(call[0], others, unlike)] = None
        return list(texts)

    def line_of(self, address: Address) -> Address | None:
        """Return the Python line of a node, if known."""
        frames = self._nodes[address].innermost if address in self._nodes else ()
        return next((line_address(frame.file, frame.line) for frame in frames), None)

    def _source_of(self, address: Address) -> object:
        """Return the source position of a call and of its callers; the address if that is not known."""
        frames = self._nodes[address].frames
        if address not in self._linked or not frames or any(frame.column is None for frame in frames):
            return address
        return tuple((frame.file, frame.line, frame.column, frame.end_column) for frame in frames)

    def _unique_text(self, address: Address, others: set[Address], unlike: str) -> str | Address:
        """Return a text that names a node and none of the others; its address if there is none."""
        node = self._nodes[address]
        names = dict.fromkeys((function(node.target), address[2]))
        for frame in node.innermost:
            line = line_address(frame.file, frame.line)
            for name in names:
                matches = self._matches(name, line)
                if address in matches and others.isdisjoint(matches):
                    for place in (str(frame.line), self.short(line)):
                        if f"{name}@{place}" != unlike and self._is_line(place, line):
                            return f"{name}@{place}"
            span = (frame.column, frame.end_column)
            matches = [call.address for call in self._calls_in(line) if call.span == span]
            if address in matches and others.isdisjoint(matches):
                return f"{self.short(line)}:{frame.column}-{frame.end_column}"
        return address

    def _matches(self, name: str, line: Address) -> list[Address]:
        """Return the nodes for a name at a line: those of a call in it, or those of the first stage that has any."""
        return [call.address for call in self._calls_in(line) if call.named(name)] or self._later(name, line)

    def _is_line(self, place: str, line: Address) -> bool:
        """Return True if a text names this line and no other."""
        try:
            return self.find(place) == (line,)
        except UsageError:
            return False

    def _call_texts(self, line: Address, calls: Iterable[_Call]) -> list[str]:
        """Return one text for each call in a line: its columns, or a name that no other call has."""
        calls, place = list(calls), self.short(line)
        texts: dict[str, None] = {}
        for call in calls:
            others = [c for c in calls if (c.span or c.address[2]) != (call.span or call.address[2])]
            own = sorted(call.names.difference(*(other.names for other in others)))
            if call.span:
                texts[f"'{place}:{call.span[0]}-{call.span[1]}' ({call.frame.call or call.address[2]})"] = (
                    None
                )
            elif own:
                texts[f"'{own[0]}@{place}'"] = None
            else:
                texts[repr(call.address)] = None
        return list(texts)

    def short(self, line: Address) -> str:
        """Return a Python line without its folder if no other file has the same name."""
        name = line[2].replace("\\", "/").rpartition("/")[2]
        return name if len(self._by_name.get(name.rpartition(":")[0], ())) == 1 else line[2]

    def _no_form(self, text: str) -> str:
        kernels = ", ".join(dict.fromkeys(a[2] for a in self._kernels)) or "none"
        near = [
            address
            for address, node in self._nodes.items()
            if address in self._linked
            and text in (address[2], function(node.target))
            and node.op not in NO_WORK
            and node.frames
        ]
        if near:
            some = _listed(map(repr, self.distinct(near)))
            return f"{text!r} names no line: give {some}, or an address with its stage"
        return (
            f"{text!r} is neither a kernel nor an address: give {FORMS}, an address as (compile id, stage, name), or "
            f"one of capture.kernels ({kernels}), or of capture.chain.addresses()"
        )


def function(target: str) -> str:
    """Return a target's bare name: ``gelu`` for ``torch._C._nn.gelu``, ``F.gelu`` and ``aten.gelu.default``."""
    parts = target.removesuffix(".default").split(".")
    return parts[1] if parts[0] in ("aten", "prims") and len(parts) > 1 else parts[-1]


def _callee(call: str) -> str:
    """Return the callee's name in the text of a call: ``norm`` of ``self.norm(x)``; ``""`` for no complete call."""
    depth, outer = 0, []
    for sign in call:
        depth -= sign in ")]}"
        if depth == 0:
            outer.append(sign)
        depth += sign in "([{"
    match = _CALL.fullmatch("".join(outer))
    return match[1] if match else ""


def _file(line: Address) -> str:
    return line[2].rpartition(":")[0]


def _by_line(line: Address) -> tuple[str, int]:
    return _file(line), int(line[2].rpartition(":")[2])


def _ends(path: str, file: str) -> bool:
    """Return True if a path ends in a file name; every path ends in ``""``."""
    path, file = path.replace("\\", "/"), file.replace("\\", "/")
    return not file or path == file or path.endswith("/" + file)


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:MAX_LISTED]) + (", …" if len(names) > MAX_LISTED else "")
