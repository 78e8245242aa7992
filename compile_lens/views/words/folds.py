"""Boilerplate of generated code that opens folded: imports, long decorators, the benchmark at the end."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from compile_lens.record.kernel import Kernel, LineOrigin

MOST_LABELS = 5
"""Maximum kinds of lines that a fold's label names."""

SHORTEST = 3
"""Minimum lines of a fold."""

_IMPORT = re.compile(r"(import|from)\s")
_ALIAS = re.compile(r"[A-Za-z_]\w* = [A-Za-z_][\w.]*(\(\))?$")
_SET_UP = re.compile(r"triton_helpers\.set_driver_to_\w+\(\)$")
_INCLUDE = re.compile(
    r"\s*#(include|pragma)\b|\s*using namespace\b|\s*#(if|ifdef|ifndef|endif|else|define)\b"
)
_BENCHMARK = re.compile(r"def (get_args|benchmark_compiled_module)\(|if __name__\b")
_COMMENT = re.compile(r"# ")
_DECORATOR = re.compile(r"@triton_heuristics\.|@triton\.")


@dataclass(frozen=True)
class Fold:
    """A fold: first and last line, from 1, and a label for the contents."""

    first: int
    last: int
    label: str

    def moved(self, lines: int) -> Fold:
        """Return the same fold some lines further down."""
        return Fold(self.first + lines, self.last + lines, self.label)


def module_folds(text: str) -> list[Fold]:
    """Return the folds of a wrapper module, without those of its kernels."""
    lines = text.split("\n")
    folds = _block(lines, 0, lambda line: _is_import(line) or line.startswith("#"), "imports and aliases")
    for number, line in enumerate(lines):
        if _BENCHMARK.match(line):
            last = len(lines)
            while not lines[last - 1].strip():
                last -= 1
            folds += _long([Fold(number + 1, last, "benchmark of this module")])
            break
    return folds


AGAIN = "the same again for the last elements"
"""Label of a tail loop, which repeats the computation of the loop before it."""

_LOOP = "loop header"


def linked_folds(kernel: Kernel, source: str) -> list[Fold]:
    """Return the folds of a kernel with a line map: all lines that compute nothing are folded, except loop headers,
    with labels from the record. Lines count from 1."""
    boilerplate = kernel_folds(source, kernel.language)
    if not kernel.lines:
        return boilerplate
    known = {mark.line: mark for mark in kernel.lines}
    labels = {n: fold.label for fold in boilerplate for n in range(fold.first, fold.last + 1)}
    count = len(source.removesuffix("\n").split("\n"))
    again = _again(kernel)
    folds: list[Fold] = []
    start, rest = 0, False
    held: dict[str, None] = {}
    for number in range(1, count + 2):
        mark = known.get(number)
        shown = number > count or (mark is not None and (mark.origins or mark.no_origin == _LOOP))
        if shown and number not in again:
            if start and number - start >= 2:
                label = AGAIN if rest else ", ".join(held) or "braces"
                folds.append(Fold(start, number - 1, label))
            start, held, rest = 0, {}, False
            continue
        start = start or number
        rest = rest or number in again
        label = labels.get(number) or (mark.no_origin if mark is not None else "")
        if label and len(held) < MOST_LABELS:
            held.setdefault(label)
    return folds


def _again(kernel: Kernel) -> set[int]:
    """Return the lines of loops that repeat the one before: the same operators, line for line."""
    blocks: list[list[LineOrigin]] = [[]]
    for mark in kernel.lines:
        if mark.origins:
            blocks[-1].append(mark)
        elif mark.no_origin in (_LOOP, "branch") and blocks[-1]:
            blocks.append([])
    repeated: set[int] = set()
    for before, block in pairwise(blocks):
        if block and [m.origins for m in block] == [m.origins for m in before]:
            repeated.update(range(block[0].line, block[-1].line + 1))
    return repeated


def kernel_folds(source: str, language: str) -> list[Fold]:
    """Return the folds of boilerplate in a kernel's source; lines count from 1."""
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    if language == "triton":
        folds = _block(lines, first, _is_import, "imports")
        return folds + _long(_decorators(lines))
    if language in ("cpp", "metal"):
        return _block(lines, first, lambda line: _INCLUDE.match(line) is not None, "headers")
    return []


def _is_import(line: str) -> bool:
    return any(pattern.match(line) is not None for pattern in (_IMPORT, _ALIAS, _SET_UP))


def _block(lines: Sequence[str], start: int, wanted: Callable[[str], bool], label: str) -> list[Fold]:
    """Return the fold of the wanted lines from ``start`` on, with empty lines between them."""
    last = at = start
    while at < len(lines):
        if wanted(lines[at]):
            if _IMPORT.match(lines[at]) and lines[at].rstrip().endswith("("):
                while at < len(lines) - 1 and not lines[at].startswith(")"):
                    at += 1
            last = at + 1
        elif lines[at].strip():
            break
        at += 1
    # A trailing comment belongs to the next item.
    while last > start and (not lines[last - 1].strip() or _COMMENT.match(lines[last - 1])):
        last -= 1
    return _long([Fold(start + 1, last, label)])


def _decorators(lines: Sequence[str]) -> list[Fold]:
    """Return the fold of the decorators above a Triton kernel, with sizes, configurations and metadata."""
    first = next((i for i, line in enumerate(lines) if _DECORATOR.match(line)), None)
    if first is None:
        return []
    kernel = next((i for i in range(first, len(lines)) if lines[i].startswith("def ")), None)
    return [] if kernel is None else [Fold(first + 1, kernel, "sizes and metadata for Triton's launcher")]


def _long(folds: Sequence[Fold]) -> list[Fold]:
    return [fold for fold in folds if fold.last - fold.first + 1 >= SHORTEST]


_ASSEMBLY = (
    (re.compile(r"//|#|;|--|/\*(?![\da-f]+\*/)"), "comments"),
    (re.compile(r"\.loc\b"), "lines of the source"),
    (re.compile(r"(\.visible |\.weak |\.extern )*\.(entry|func)\b|\.param\b|[()]+;?$"), "signature"),
    (re.compile(r"\.reg\b"), "registers"),
    (re.compile(r"\.[\w.]+(?![\w.$]*:)"), "directives"),
    (re.compile(r"[{}]+$"), "braces"),
)
_MLIR = (
    (re.compile(r"#loc|\S*\s*loc\("), "lines of the source"),
    (re.compile(r"#"), "layouts"),
    (re.compile(r"module\b"), "module"),
    (re.compile(r"\S+\.func\b"), "signature"),
    (re.compile(r"//"), "comments"),
    (re.compile(r"[{}]+$"), "braces"),
)
_LLVM = (
    (re.compile(r";"), "comments"),
    (re.compile(r"attributes\b"), "attributes"),
    (re.compile(r"!"), "metadata"),
    (re.compile(r"define\b"), "signature"),
    (re.compile(r"declare\b|source_filename|target\b|\S+ = (.* )?(global|constant|type|comdat)\b"), "declarations"),
    (re.compile(r"[{}]+$"), "braces"),
)  # fmt: skip
_KINDS = {
    "ttir": _MLIR,
    "ttgir": _MLIR,
    "llir": _LLVM,
    "ptx": _ASSEMBLY,
    "sass": _ASSEMBLY,
    "amdgcn": _ASSEMBLY,
    "assembly": _ASSEMBLY,
}

_LABEL = re.compile(r"[\w.$@]+:(\s|$)")
_PADDING = re.compile(r"(/\*[\da-f]+\*/\s*)?(NOP|s_code_end)\s*;?$")
_COLD = re.compile(r"[\w.$]+\.cold:$")
"""C++ compilers' label of the rarely run part of a function."""


def machine_folds(kind: str, text: str, linked: Collection[int] = ()) -> list[Fold]:
    """Return the folds of a form of machine code, so that it starts with its first instruction. Lines count from 1.

    ``kind`` is ``Form.kind``; an unknown form has no folds. Lines in ``linked`` are never folded.
    """
    patterns = _KINDS.get(kind)
    if patterns is None:
        return []
    lines = [line.strip() for line in text.removesuffix("\n").split("\n")]
    end = len(lines)
    cold = next((i for i, line in enumerate(lines) if kind == "assembly" and _COLD.match(line)), end)
    if any(line > cold for line in linked):
        cold = end
    what = ["" if i in linked else _what(line, patterns) for i, line in enumerate(lines[:cold], 1)]
    code = [i for i, word in enumerate(what) if not word]
    if not code:
        return []
    first, last = code[0], code[-1] + 1
    folds = [_fold(what, 0, first)] if first > 1 else []
    at = first
    while at < last:
        start = at
        # Keep labels, which jumps refer to.
        while what[at] not in ("", "labels"):
            at += 1
        if at - start >= SHORTEST:
            folds.append(_fold(what, start, at))
        at = max(at, start + 1)
    if cold - last > 1:
        folds.append(_fold(what, last, cold))
    if end - cold > 1:
        folds.append(Fold(cold + 1, end, f"{lines[cold][:-1]}, which the compiler expects to run rarely"))
    return folds


def _what(line: str, patterns: Sequence[tuple[re.Pattern[str], str]]) -> str:
    """Return the kind of a line without an instruction; ``" "`` for an empty line, ``""`` for an instruction."""
    if not line:
        return " "
    if _PADDING.match(line):
        return "padding"
    if _LABEL.match(line):
        return "labels"
    return next((word for pattern, word in patterns if pattern.match(line)), "")


def _fold(what: Sequence[str], start: int, stop: int) -> Fold:
    held = list(dict.fromkeys(word for word in what[start:stop] if word.strip()))
    return Fold(start + 1, stop, ", ".join(held[:MOST_LABELS]) or "blank")
