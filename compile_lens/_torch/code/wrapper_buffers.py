"""Lifetimes of the buffers in a wrapper's ``call()``, read line by line from its text, which is never run.

Only the text counts: it binds names (``buf0 = empty_strided_cpu(…)``), rebinds them (``buf1 = buf0``), deletes and
returns them. Memory is live while a name refers to it; that of an input that is not donated, to the end.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ...record import syntax
from ...record.memory import Buffer, Memory

VIEWS = frozenset(("reinterpret_tensor", "_reinterpret_tensor", "alloc_from_pool", "as_strided"))
SIZES = {"float64": 8, "int64": 8, "uint64": 8, "complex64": 8, "complex128": 16, "float32": 4, "int32": 4,
         "uint32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "uint16": 2, "bool": 1, "int8": 1, "uint8": 1,
         "complex32": 4, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1}  # fmt: skip
"""Bytes per element by dtype, as in ``torch.<name>``."""


WHOLE = -1
"""Index of the only result of a library call that does not return a tuple."""


@dataclass(frozen=True)
class BufferFacts:
    """Facts about a buffer that Inductor has and the text lacks.

    ``results`` are the bytes of a library call's results by index (``WHOLE`` for an only one), if they get names of
    their own; ``aliases`` are the buffers whose memory a library call's result shares.
    """

    nbytes: int | None = None
    donated: bool = False
    within: str = ""
    aliases: tuple[str, ...] = ()
    results: tuple[tuple[int, int | None], ...] = ()
    origins: tuple[str, ...] = ()
    tensor: bool = True
    loop: str = ""


@dataclass
class _Storage:
    """One allocation and the names that refer to it. ``owned`` memory is also referred to from outside, so that it
    stays.

    ``nameless`` are positions of buffers whose own name is deleted while views keep the memory live.
    """

    nbytes: int | None
    holders: set[str] = field(default_factory=set)
    owned: bool = False
    nameless: list[int] = field(default_factory=list)


class CallMemory:
    """The live memory of ``call()`` while it runs.

    Args:
        text: the wrapper module, or its syntax.
        facts: returns the facts of a buffer by name, or None if the name is no buffer's.
        results: number of the returned values that are the function's own (the others are saved for the backward); None
            for all.
    """

    def __init__(
        self, text: str | ast.Module, facts: Callable[[str], BufferFacts | None], results: int | None = None
    ) -> None:
        self._facts = facts
        self._results = results
        self._storage: dict[str, _Storage] = {}
        self._inside: dict[str, dict[int, str]] = {}
        self._buffers: list[Buffer] = []
        self._place: dict[str, int] = {}
        self._bound: list[str] = []
        self._line = self._peak_line = self._peak = self._now = 0
        self._unknown: list[str] = []
        self.note = ""
        self._read(text)

    def memory(self, phase: str) -> Memory:
        """Return the record of the buffers and the peak."""
        note = self.note
        if not note and self._unknown:
            note = f"the sizes of {', '.join(self._unknown[:3])} depend on data: the peak is not known"
        peak = None if note else self._peak
        return Memory(phase, tuple(self._buffers), peak, 0 if note else self._peak_line, note)

    def _read(self, text: str | ast.Module) -> None:
        self._offset = 0
        if isinstance(text, ast.Module):
            call: ast.stmt | None = _call_in(text.body)
        else:
            first, body = call_text(text)
            try:
                call = syntax.parse(body).body[0] if body else None
            except SyntaxError as error:
                self.note = f"the module's call() is not Python ({error.msg}): its order could not be read"
                return
            self._offset = first - 1
        if call is None:
            self.note = "the module has no call() in Python: its order could not be read"
            return
        assert isinstance(call, ast.FunctionDef)
        self._block(call.body)

    def _block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            line = statement.lineno + self._offset
            if line != self._line:
                self._line, self._bound = line, []
            if isinstance(statement, ast.Assign):
                self._assign(statement)
            elif isinstance(statement, ast.Delete):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self._drop(target.id)
            elif isinstance(statement, ast.Return):
                self._return(statement.value)
            elif isinstance(statement, ast.With):
                self._block(statement.body)
            elif isinstance(statement, (ast.If, ast.While, ast.For)) and not _only_raises(statement):
                self.note = "it branches while it runs, and what a branch holds is not followed"
                self._block([*statement.body, *statement.orelse])
            self._update_peak()

    def _assign(self, statement: ast.Assign) -> None:
        target, value = statement.targets[0], statement.value
        if isinstance(value, ast.Name) and value.id == "args" and isinstance(target, ast.Tuple):
            for item in target.elts:
                if isinstance(item, ast.Name):
                    self._input(item.id)
            self._update_peak(entry=True)
        elif isinstance(target, ast.Name):
            self._bind(target.id, value)

    def _input(self, name: str) -> None:
        fact = self._facts(name)
        if fact is None or not fact.tensor:
            return
        if fact.within in self._storage:
            shared = self._storage[fact.within]
            self._hold(name, shared)
            if shared.nbytes is not None and fact.nbytes is not None and fact.nbytes > shared.nbytes:
                self._now += fact.nbytes - shared.nbytes
                shared.nbytes = fact.nbytes
        else:
            self._allocate(name, fact.nbytes, owned=not fact.donated)
        within = fact.within if fact.within in self._place else ""
        self._note(Buffer(name, "input", fact.nbytes, base=within, donated=fact.donated))

    def _bind(self, name: str, value: ast.expr) -> None:
        source = root(value)
        fact = self._facts(name)
        if source in self._inside and isinstance(value, (ast.Subscript, ast.Name)):
            self._pick(name, source, value)
        elif source in self._storage and _is_view(value):
            # With `del old` on the same line the memory is reused under a new name.
            storage = self._storage[source]
            self._hold(name, storage)
            nbytes = storage.nbytes if isinstance(value, ast.Name) or fact is None else fact.nbytes
            self._note(Buffer(name, "intermediate", nbytes, self._line, base=source))
        elif isinstance(value, ast.Call) and not _is_bound_to_itself(name, value):
            self._call(name, value, fact)

    def _call(self, name: str, value: ast.Call, fact: BufferFacts | None) -> None:
        if _last_name(value.func).startswith("empty_strided"):
            size = literal_bytes(value)
            nbytes = size if size is not None else fact.nbytes if fact is not None else None
            self._allocate(name, nbytes)
            self._note(Buffer(name, "intermediate", nbytes, self._line))
            return
        if fact is None or not fact.tensor:
            if ast.unparse(value.func).startswith("self.partitions"):
                self.note = "it runs in partitions (for CUDA graphs), and what they hold is not followed"
            return
        base = next((a for a in fact.aliases if a in self._storage), "")
        if not fact.results:
            self._add_result(name, fact.nbytes, base)
            return
        self._inside[name] = {}
        for index, nbytes in fact.results:
            part = name if index == WHOLE else f"{name}[{index}]"
            self._inside[name][index] = part
            self._add_result(part, nbytes, base)

    def _add_result(self, name: str, nbytes: int | None, base: str) -> None:
        """Add a result of a call, in the memory of ``base`` if the library returns a view."""
        if base:
            self._hold(name, self._storage[base])
        else:
            self._allocate(name, nbytes)
        self._note(Buffer(name, "intermediate", nbytes, self._line, base=base))

    def _pick(self, name: str, source: str, value: ast.Subscript | ast.Name) -> None:
        """Bind one result of a library call to its own name."""
        index: object = WHOLE
        if isinstance(value, ast.Subscript):
            index = value.slice.value if isinstance(value.slice, ast.Constant) else None
        part = self._inside[source].get(index, "") if isinstance(index, int) else ""
        if part not in self._storage:
            return
        self._hold(name, self._storage[part])
        place = self._place.pop(part, None)
        if place is not None:  # the buffer exists since the call, so it keeps the call's position
            fact = self._facts(name)
            self._place[name] = place
            self._buffers[place] = _with_sources(replace(self._buffers[place], name=name), fact)

    def _return(self, value: ast.expr | None) -> None:
        items = list(value.elts) if isinstance(value, ast.Tuple) else [] if value is None else [value]
        for position, item in enumerate(items):
            place = self._place.get(root(item))
            saved = self._results is not None and position >= self._results
            if place is not None and self._buffers[place].kind == "intermediate":
                self._buffers[place] = replace(self._buffers[place], kind="saved" if saved else "output")

    def _drop(self, name: str) -> None:
        for part in self._inside.pop(name, {}).values():
            self._release_name(part)
        self._release_name(name)

    def _release_name(self, name: str) -> None:
        storage = self._storage.pop(name, None)
        if storage is None:
            return
        storage.holders.discard(name)
        place = self._place.get(name)
        buffer = self._buffers[place] if place is not None else None
        # A name bound on the line that deletes the old one takes over the memory.
        bound = [self._place[new] for new in self._bound if new in self._place]
        successors = [at for at in bound if self._buffers[at].base == name]
        for at in successors:
            within = buffer.base if buffer is not None else ""
            self._buffers[at] = replace(self._buffers[at], base=within, reuses=name)
        if buffer is not None and place is not None and not (storage.owned and buffer.kind == "input"):
            if successors or buffer.base:
                self._buffers[place] = replace(buffer, free_line=self._line)
            else:
                storage.nameless.append(place)
        if not storage.holders:
            for gone in storage.nameless:
                self._buffers[gone] = replace(self._buffers[gone], free_line=self._line)
            if not storage.owned:
                self._now -= storage.nbytes or 0

    def _allocate(self, name: str, nbytes: int | None, owned: bool = False) -> None:
        if nbytes is None:
            self._unknown.append(name)
        self._now += nbytes or 0
        self._hold(name, _Storage(nbytes, owned=owned))

    def _hold(self, name: str, storage: _Storage) -> None:
        if name in self._storage:
            self._release_name(name)
        self._storage[name] = storage
        storage.holders.add(name)

    def _note(self, buffer: Buffer) -> None:
        fact = self._facts(buffer.name)
        known = _with_sources(buffer, fact)
        self._bound.append(buffer.name)
        place = self._place.setdefault(buffer.name, len(self._buffers))
        self._buffers[place : place + 1] = [known]  # if another branch binds it again, it is the same buffer

    def _update_peak(self, entry: bool = False) -> None:
        if self._now > self._peak:
            self._peak, self._peak_line = self._now, 0 if entry else self._line


def _with_sources(buffer: Buffer, fact: BufferFacts | None) -> Buffer:
    fact = fact or BufferFacts()
    return replace(buffer, origins=fact.origins, loop=fact.loop)


def _is_bound_to_itself(name: str, value: ast.Call) -> bool:
    """Return True if an input is bound to itself; only a misaligned input, which is rare, is copied."""
    return _last_name(value.func) == "copy_if_misaligned" and [ast.unparse(a) for a in value.args] == [name]


def _call_in(body: list[ast.stmt]) -> ast.FunctionDef | None:
    """Return the function ``call`` of a module or of a class in it, None without one."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "call":
            return statement
        if isinstance(statement, ast.ClassDef) and (inside := _call_in(statement.body)) is not None:
            return inside
    return None


def call_text(text: str) -> tuple[int, str]:
    """Return the first line of ``call`` in a wrapper module, and its text; ``(0, "")`` if it has none."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if re.match(r"\s*def call\(", line)), None)
    if start is None:
        return 0, ""
    indent = len(lines[start]) - len(lines[start].lstrip())
    end = start + 1
    while end < len(lines) and (
        not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent
    ):
        end += 1
    return start + 1, textwrap.dedent("\n".join(lines[start:end]))


def _only_raises(statement: ast.stmt) -> bool:
    """Return True for a size check, which allocates nothing."""
    return isinstance(statement, ast.If) and all(isinstance(s, ast.Raise) for s in statement.body)


def root(value: Any) -> str:
    """Return the name whose memory an expression refers to: the name itself, or the base of a view or an element."""
    while True:
        if isinstance(value, ast.Name):
            return value.id
        if isinstance(value, ast.Subscript):
            value = value.value
        elif isinstance(value, ast.Call) and _is_view(value):
            value = value.args[0] if value.args else None
        else:
            return ""


def _is_view(value: ast.expr) -> bool:
    if isinstance(value, ast.Call):
        return _last_name(value.func) in VIEWS
    return isinstance(value, ast.Name)


def literal_bytes(value: ast.Call) -> int | None:
    """Return the bytes that ``empty_strided(size, stride, dtype)`` allocates; None if its arguments are not
    literals."""
    if len(value.args) < 3:
        return None
    try:
        size, stride = _numbers(value.args[0]), _numbers(value.args[1])
    except ValueError:  # symbols
        return None
    itemsize = SIZES.get(_last_name(value.args[2]))
    if itemsize is None:
        return None
    if 0 in size:
        return 0
    return itemsize * (1 + sum(int((length - 1) * step) for length, step in zip(size, stride)))


def _numbers(value: ast.expr) -> tuple[int, ...]:
    """Return a tuple of literal numbers. Raises ValueError if it has symbols."""
    if isinstance(value, ast.Tuple):
        items = [item.value for item in value.elts if type(item) is ast.Constant]
        if len(items) == len(value.elts):
            return tuple(items)  # type: ignore[arg-type]
    size: tuple[int, ...] = ast.literal_eval(value)
    return size


def _last_name(value: ast.expr) -> str:
    """Return the last name of a callee: ``c`` of ``a.b.c``."""
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else ast.unparse(value).rpartition(".")[2]
