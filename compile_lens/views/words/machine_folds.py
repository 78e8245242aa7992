"""What of a text of machine code is no instruction: directives, declarations, comments. It opens folded."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from .folds import MOST_LABELS, SHORTEST, Fold

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
"""How compilers of C++ name the part of a function that they expect to run rarely."""


def machine_folds(kind: str, text: str, linked: Collection[int] = ()) -> list[Fold]:
    """Folds of a form of machine code, so that its first instruction comes first. Lines count from 1.

    ``kind`` is ``Form.kind``; a form that is not known has none. Lines in ``linked`` stay, whatever they hold.
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
        # A jump leads to a label.
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
    """What a line holds if no instruction; a blank for an empty one."""
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
