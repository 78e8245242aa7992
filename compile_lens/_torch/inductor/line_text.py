"""Alignment of a kernel's text with the lines generated for it, and the purpose of lines without a node."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from ...record.kernel import LINE_FORMS, UNSAID

TaggedText = Sequence[tuple[str, "dict[str, None] | None"]]
"""Lines of one text, stripped and none of them empty, each with its nodes."""

PLACEHOLDERS = ("KERNEL_NAME", "DESCRIPTIVE_NAME", "{name}", "generated_kernel")
"""Placeholders in a text until the kernel gets its name."""

# Forms that are structure whoever wrote them, and forms that are structure where no node is known.
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
        # Several kernels in one: which of them a program runs, and which part of it.
        (r"(if|elif) |else:|pass$", "branch"),
        (r"triton_\w+_body_\d+\(", "branch"),  # one of them, where torch gives each a function of its own
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
"""Blank lines and lone brackets: they say nothing."""


def align(
    texts: Sequence[str], written: Iterable[TaggedText], nodes: Sequence[str]
) -> list[dict[str, None] | None] | None:
    """Return the nodes of each line of a kernel; None if no tagged text contains it.

    A kernel that is launched for two parts of the graph was generated twice: its lines serve both.
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
        # A helper function, written on its own and put into the kernel as text. Other kernels may hold the same.
        if not all(set(names) <= set(nodes) for _, names in text if names):
            continue
        start = _find([t for t, _ in text], lines)
        if start is not None:
            spots = places[start : start + len(text)]
            if all(nodes_by_line[i] is None for i in spots):
                _add(nodes_by_line, spots, [names for _, names in text])
    return nodes_by_line if whole else None


def _find(part: Sequence[str], whole: Sequence[str]) -> int | None:
    """Return where ``part`` stands in ``whole``. Lines with a placeholder are equal to any."""
    if not part:
        return 0
    first = part[0]
    any_first = _has_placeholder(first)
    for start in range(len(whole) - len(part) + 1):
        here = whole[start]
        if not (here == first or any_first or _has_placeholder(here)):
            continue  # nearly always
        for a, b in zip(part, whole[start : start + len(part)]):
            if not (a == b or _has_placeholder(a) or _has_placeholder(b)):
                break
        else:
            return start
    return None


@functools.lru_cache(maxsize=4096)
def _has_placeholder(line: str) -> bool:
    """Return True if a line still lacks a name."""
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
    """Return why each line has no node; ``""`` for one that has (``known``), None for one that says nothing."""
    always = STRUCTURE[language] if language in STRUCTURE else ()
    otherwise = WITHOUT_NODE[language] if language in WITHOUT_NODE else ()
    includes = tuple([form for form in otherwise[:1] + always if form[1] == "include"])
    head = _head(language, texts)
    words: list[str | None] = []
    decorated = False
    for number, (text, has) in enumerate(zip(texts, known, strict=True)):
        line = text.strip()
        if language == "triton" and line.startswith(("@", "def ")):
            decorated = line.startswith("@")
        if BRACKETS.fullmatch(line):
            words.append(None)
        elif (number <= head or decorated) and not has:
            words.append(_first_match(includes, line) or "signature")
        else:
            words.append(
                _first_match(always, line) or ("" if has else _first_match(otherwise, line) or UNSAID)
            )
    return words


def _head(language: str, texts: Sequence[str]) -> int:
    """Return the last line of a kernel's signature, counted from 0."""
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
"""Beginnings of lines, and the purpose of each; the first that fits decides."""


@functools.cache
def _matcher(forms: Forms) -> tuple[re.Pattern[str], dict[str | None, str]]:
    """Return one expression for all forms, with a group for each, and the word for each group."""
    assert all(word in LINE_FORMS for _, word in forms)
    groups = [f"(?P<form{number}>{pattern})" for number, (pattern, _) in enumerate(forms)]
    return re.compile("|".join(groups) or "(?!)"), {f"form{i}": word for i, (_, word) in enumerate(forms)}


def _first_match(forms: Forms, line: str) -> str:
    expression, words = _matcher(forms)
    match = expression.match(line)
    return words[match.lastgroup] if match else ""
