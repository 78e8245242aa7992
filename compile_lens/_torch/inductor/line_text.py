"""Alignment of a kernel's text with its tagged lines, and the purpose of lines without a node."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from ...record.kernel import LINE_FORMS, UNSAID

TaggedText = Sequence[tuple[str, "dict[str, None] | None"]]
"""The non-empty lines of one text, stripped, each with its nodes."""

PLACEHOLDERS = ("KERNEL_NAME", "DESCRIPTIVE_NAME", "{name}", "generated_kernel")
"""Placeholders for the kernel's name in a text."""

# Patterns of structural lines in any case, and of those that are structural only without a known node.
STRUCTURE: dict[str, tuple[tuple[str, str], ...]] = {
    "cpp": (
        (r"#pragma omp|int tid = omp_get_thread_num|int max_threads = omp_get", "parallel region"),
        (r"#pragma", "directive"),
        (r"#", "include"),
        (r"for ?\(", "loop header"),
        (r"if ?\(|else\b", "branch"),
    ),
    "triton": (
        (r"(for|while) ", "loop header"),
        (
            r"(x|y|z|r\d*_?)(offset|index|base|rem)?\d* = |r\d*_\d+ = |roffset|rindex|rbase",
            "index arithmetic",
        ),
        (r"tl\.debug_barrier|tl\.extra\.cuda\.gdc", "barrier"),
    ),
    "metal": (
        (r"#", "include"),
        (r"for ?\(", "loop header"),
        (r"(auto|uint\d?|int|long) [xyzr]\w* = ", "index arithmetic"),
        (r"if \([xyzr]\w* >= ", "branch"),
    ),
}
WITHOUT_NODE: dict[str, tuple[tuple[str, str], ...]] = {
    "cpp": (
        (r"std::atomic<int> inductor_cpu|inductor_cpu_", "error flag"),
        (r"int64_t x\d+(_tail)? = |int64_t \w+ = ", "index arithmetic"),
        (r"auto \w*ptr\w* = |std::unique_ptr|[\w:<>]+\* \w+ = ", "declaration"),
        (r"//|/\*", "comment"),
    ),
    "triton": (
        (r"import |from ", "include"),
        (r"def ", "signature"),
        # Several kernels combined in one: selection of the kernel and of its block.
        (r"(if|elif) |else:|pass$", "branch"),
        (r"triton_\w+_body_\d+\(", "branch"),  # one of them, if torch generates a function for each
        (r"(local_)?pid = |([xyz]_)?pid_offset = |(num_)?[xyz]?_?blocks_\d+ = ", "index arithmetic"),
        (r"\w*(numel|BLOCK\w*|NUMEL)\b.* = |\w+: tl\.constexpr", "declaration"),
        (r"\w*mask\w* = ", "mask"),
        (r"#", "comment"),
    ),
    "metal": (
        (r"\[\[", "signature"),
        (r"kernel void", "signature"),
        (r"threadgroup ", "declaration"),
        (r"//", "comment"),
    ),
}
BRACKETS = re.compile(r"[\s{}()\[\];,:]*|'''.*|\)MTL\"?.*")
"""Blank lines and lone brackets, which have no purpose of their own."""


def align(
    texts: Sequence[str], written: Iterable[TaggedText], nodes: Sequence[str]
) -> list[dict[str, None] | None] | None:
    """Return the nodes of each line of a kernel; None if no tagged text contains it.

    A kernel launched for two parts of the graph is generated twice, and its lines have the nodes of both.
    """
    places = [i for i, text in enumerate(texts) if text.strip()]
    lines = [texts[i].strip() for i in places]
    nodes_by_line: list[dict[str, None] | None] = [None] * len(texts)
    whole = False
    parts: list[TaggedText] = []
    for text in written:
        if len(text) < len(lines):
            parts.append(text)
            continue
        start = _find(lines, [t for t, _ in text])
        if start is not None:
            whole = True
            _add(nodes_by_line, places, [names for _, names in text[start : start + len(lines)]])
    for text in parts if whole else ():
        # A helper function, generated separately and inserted as text. Other kernels may have the same one.
        if not all(set(names) <= set(nodes) for _, names in text if names):
            continue
        start = _find([t for t, _ in text], lines)
        if start is not None:
            spots = places[start : start + len(text)]
            if all(nodes_by_line[i] is None for i in spots):
                _add(nodes_by_line, spots, [names for _, names in text])
    return nodes_by_line if whole else None


def _find(part: Sequence[str], whole: Sequence[str]) -> int | None:
    """Return the position of ``part`` in ``whole``, or None. Lines with a placeholder match any line."""
    if not part:
        return 0
    first = part[0]
    any_first = _has_placeholder(first)
    for start in range(len(whole) - len(part) + 1):
        here = whole[start]
        if not (here == first or any_first or _has_placeholder(here)):
            continue  # the usual case
        for a, b in zip(part, whole[start : start + len(part)]):
            if not (a == b or _has_placeholder(a) or _has_placeholder(b)):
                break
        else:
            return start
    return None


@functools.lru_cache(maxsize=4096)
def _has_placeholder(line: str) -> bool:
    """Return True if a line still has a placeholder."""
    return any(p in line for p in PLACEHOLDERS)


def _add(
    nodes_by_line: list[dict[str, None] | None],
    places: Sequence[int],
    names: Sequence[dict[str, None] | None],
) -> None:
    for place, here in zip(places, names, strict=True):
        if here:
            nodes_by_line[place] = {**(nodes_by_line[place] or {}), **here}


def reasons(language: str, texts: Sequence[str], known: Sequence[bool]) -> list[str | None]:
    """Return the purpose of each line without a node; ``""`` for a line with one (``known``), None for a bracket or
    blank."""
    always = STRUCTURE[language] if language in STRUCTURE else ()
    otherwise = WITHOUT_NODE[language] if language in WITHOUT_NODE else ()
    includes = tuple([form for form in otherwise[:1] + always if form[1] == "include"])
    head = _head(language, texts)
    purposes: list[str | None] = []
    decorated = False
    for number, (text, has) in enumerate(zip(texts, known, strict=True)):
        line = text.strip()
        if language == "triton" and line.startswith(("@", "def ")):
            decorated = line.startswith("@")
        if BRACKETS.fullmatch(line):
            purposes.append(None)
        elif (number <= head or decorated) and not has:
            purposes.append(_first_match(includes, line) or "signature")
        else:
            purposes.append(
                _first_match(always, line) or ("" if has else _first_match(otherwise, line) or UNSAID)
            )
    return purposes


def _head(language: str, texts: Sequence[str]) -> int:
    """Return the index of the last line of a kernel's signature; -1 if there is none."""
    opens = {"cpp": r'\s*extern "C"', "triton": r"\s*def (?!_triton_helper)", "metal": r"\s*kernel void"}.get(
        language
    )
    if opens is None:
        return -1
    closes = {"cpp": r"\s*\{", "triton": r".*\):?\s*$", "metal": r"\s*\) \{"}[language]
    start = next((i for i, text in enumerate(texts) if re.match(opens, text)), None)
    if start is None:
        return -1
    return next((i for i in range(start, len(texts)) if re.match(closes, texts[i])), start)


Forms = tuple[tuple[str, str], ...]
"""Patterns for the beginnings of lines, and the purpose of each; the first match decides."""


@functools.cache
def _matcher(forms: Forms) -> tuple[re.Pattern[str], dict[str | None, str]]:
    """Return one expression with a group for each form, and the purpose for each group."""
    assert all(word in LINE_FORMS for _, word in forms)
    groups = [f"(?P<form{number}>{pattern})" for number, (pattern, _) in enumerate(forms)]
    return re.compile("|".join(groups) or "(?!)"), {f"form{i}": word for i, (_, word) in enumerate(forms)}


def _first_match(forms: Forms, line: str) -> str:
    expression, purposes = _matcher(forms)
    match = expression.match(line)
    return purposes[match.lastgroup] if match else ""
