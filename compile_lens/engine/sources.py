"""Source text of inlined functions: the compiler names lines, and the text is read from the file."""

from __future__ import annotations

import ast
import dataclasses
import functools
import itertools
import linecache
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from compile_lens._torch.ground import source_text
from compile_lens.record import syntax
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph, Source

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def with_inlined(known: Iterable[Source], compilations: Sequence[Compilation]) -> tuple[Source, ...]:
    """Return the known sources, followed by those of every other function in a node's stack.

    A line outside any function gives its statement. Code without source text (``exec``, a missing or unreadable file)
    gives nothing.
    """
    sources = [_with_class(source) for source in known]
    shown = {(s.file, n) for s in sources for n in s.numbers}
    files: dict[str, tuple[_Span, ...]] = {}
    for file, line in _places(compilations):
        if (file, line) in shown or source_text.is_foreign(file, line):
            continue
        if file not in files:
            files[file] = _spans(file)
        source = _enclosing(file, line, files[file])
        if source is not None:
            sources.append(source)
            shown.update((file, n) for n in source.numbers)
    return tuple(sources)


def run_early(sources: Iterable[Source], compilations: Sequence[Compilation]) -> tuple[str, ...]:
    """Return the names of async functions whose body was traced at a call from an ordinary function, without
    ``await``."""
    lines = {(s.file, n): s.name for s in sources if _ASYNC.match(s.text.lstrip()) for n in s.numbers}
    nodes = (n for c in compilations for s in c.stages if isinstance(s, Graph) for n in s.nodes)
    names: dict[str, None] = {}
    for node in nodes:
        stack = [lines.get((f.file, f.line)) for f in node.frames]
        pairs = itertools.pairwise(stack)
        names.update((inner, None) for outer, inner in pairs if inner is not None and outer is None)
    return tuple(names)


_ASYNC = re.compile(r"(?:@.*\n\s*)*async\s+def\b")


def _places(compilations: Sequence[Compilation]) -> Iterator[tuple[str, int]]:
    """Yield the file and line of every stack frame once, callers before callees."""
    seen: dict[tuple[str, int], None] = {}
    for compilation in compilations:
        graphs = [s for s in compilation.stages if isinstance(s, Graph)]
        for graph in graphs:
            graphs += [body for _, body in graph.subgraphs]
            for node in graph.nodes:
                for frame in node.frames:
                    seen[frame.file, frame.line] = None
    yield from seen


@dataclass(frozen=True)
class _Span:
    """The lines of a function (with its decorators), or of a statement of the module (``name`` is ``""``).

    A method is named with its class: ``Layer.forward``.
    """

    first: int
    last: int
    name: str


def _spans(file: str) -> tuple[_Span, ...]:
    return _spans_of("".join(linecache.getlines(file)))


@functools.lru_cache(maxsize=64)
def _spans_of(text: str) -> tuple[_Span, ...]:
    """Return the spans of a module, each statement before the functions in it. Cached, since one file has many
    captures."""
    try:
        body = syntax.parse(text).body
    except (SyntaxError, ValueError):  # a notebook cell with magics, or not Python
        return ()
    spans = []
    for top in body:
        if not isinstance(top, _Function):
            spans.append(_Span(_first(top), top.end_lineno or 0, ""))
        inside: list[tuple[ast.AST, str]] = [(top, "")]
        for node, classes in inside:
            if isinstance(node, _Function):
                spans.append(_Span(_first(node), node.end_lineno or 0, f"{classes}{node.name}"))
                classes = ""
            elif isinstance(node, ast.ClassDef):
                classes = f"{classes}{node.name}."
            if isinstance(node, _WITH_STATEMENTS):
                inside += ((child, classes) for child in ast.iter_child_nodes(node))
    return tuple(spans)


def _with_class(source: Source) -> Source:
    """Return a source whose name includes the class of a method."""
    if "." in source.name:
        return source
    names = (span.name for span in _spans(source.file) if span.first == source.first_line)
    name = next((name for name in names if name.endswith(f".{source.name}")), source.name)
    return dataclasses.replace(source, name=name)


_WITH_STATEMENTS = (ast.stmt, ast.ExceptHandler, *([ast.match_case] if hasattr(ast, "match_case") else []))


def _enclosing(file: str, line: int, spans: tuple[_Span, ...]) -> Source | None:
    """Return the innermost function that contains a line, or else the module's statement; None if there is neither."""
    around = [span for span in spans if span.first <= line <= span.last]
    if not around:
        return None
    best = min(around, key=lambda span: (span.name == "", span.last - span.first))
    text = "".join(linecache.getlines(file)[best.first - 1 : best.last])
    return Source(file, best.first, best.name or "<module>", text)


def _first(node: ast.stmt) -> int:
    lines = [node.lineno]
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        lines += [decorator.lineno for decorator in node.decorator_list]
    return min(lines)
