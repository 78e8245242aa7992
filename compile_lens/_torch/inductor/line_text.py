"""The text of a kernel beside the lines that were written for it, and what a line without a node is there for."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from ...record.kernel import LINE_FORMS, UNSAID

Written = Sequence[tuple[str, "dict[str, None] | None"]]
"""Lines of one text, stripped and none of them empty, each with the nodes that it was written for."""

PLACEHOLDERS = ("KERNEL_NAME", "DESCRIPTIVE_NAME", "{name}", "generated_kernel")
"""Words that stand in a text until the kernel gets its name."""

# Forms that are structure whoever wrote them, and forms that are structure where no node is known.
ALWAYS: dict[str, tuple[tuple[str, str], ...]] = {
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
OTHERWISE: dict[str, tuple[tuple[str, str], ...]] = {
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
BARE = re.compile(r"[\s{}()\[\];,:]*|'''.*|\)MTL\"?.*")
"""Blank lines and lone brackets: they say nothing."""


def align(
    texts: Sequence[str], written: Iterable[Written], nodes: Sequence[str]
) -> list[dict[str, None] | None] | None:
    """For each line of a kernel the nodes that it was written for; ``None`` if no text was written that holds it.

    A kernel that is launched for two parts of the graph was written twice: its lines serve both.
    """
    places = [i for i, text in enumerate(texts) if text.strip()]
    lines = [texts[i].strip() for i in places]
    found: list[dict[str, None] | None] = [None] * len(texts)
    whole = False
    parts: list[Written] = []
    for text in written:
        if len(text) < len(lines):
            parts.append(text)
            continue
        start = _find(lines, [t for t, _ in text])
        if start is not None:
            whole = True
            _add(found, places, [names for _, names in text[start : start + len(lines)]])
    for text in parts if whole else ():
        # A helper function, written on its own and put into the kernel as text. Other kernels may hold the same.
        if not all(set(names) <= set(nodes) for _, names in text if names):
            continue
        start = _find([t for t, _ in text], lines)
        if start is not None:
            spots = places[start : start + len(text)]
            if all(found[i] is None for i in spots):
                _add(found, spots, [names for _, names in text])
    return found if whole else None


def _find(part: Sequence[str], whole: Sequence[str]) -> int | None:
    """Where ``part`` stands in ``whole``. Lines in which a name was still to come are equal to any."""
    if not part:
        return 0
    first = part[0]
    any_first = _open(first)
    for start in range(len(whole) - len(part) + 1):
        here = whole[start]
        if not (here == first or any_first or _open(here)):
            continue  # nearly always
        for a, b in zip(part, whole[start : start + len(part)]):
            if not (a == b or _open(a) or _open(b)):
                break
        else:
            return start
    return None


@functools.lru_cache(maxsize=4096)
def _open(line: str) -> bool:
    """Whether a name is still to come in a line."""
    return any(p in line for p in PLACEHOLDERS)


def _add(
    found: list[dict[str, None] | None], places: Sequence[int], names: Sequence[dict[str, None] | None]
) -> None:
    for place, here in zip(places, names, strict=True):
        if here:
            found[place] = {**(found[place] or {}), **here}


def reasons(language: str, texts: Sequence[str], known: Sequence[bool]) -> list[str | None]:
    """Why each line has no node; ``""`` for one that has (``known``), ``None`` for one that says nothing."""
    always = ALWAYS[language] if language in ALWAYS else ()
    otherwise = OTHERWISE[language] if language in OTHERWISE else ()
    includes = tuple([form for form in otherwise[:1] + always if form[1] == "include"])
    head = _head(language, texts)
    found: list[str | None] = []
    decorated = False
    for number, (text, has) in enumerate(zip(texts, known, strict=True)):
        line = text.strip()
        if language == "triton" and line.startswith(("@", "def ")):
            decorated = line.startswith("@")
        if BARE.fullmatch(line):
            found.append(None)
        elif (number <= head or decorated) and not has:
            found.append(_first(includes, line) or "signature")
        else:
            found.append(_first(always, line) or ("" if has else _first(otherwise, line) or UNSAID))
    return found


def _head(language: str, texts: Sequence[str]) -> int:
    """The last line of a kernel's signature, counted from 0."""
    opens = {
        "cpp": r'\s*extern "C"',
        "triton": r"\s*def (?!_triton_helper)",
        "metal": r"\s*kernel void",
    }.get(language)
    if opens is None:
        return -1
    closes = {"cpp": r"\s*\{", "triton": r".*\):?\s*$", "metal": r"\s*\) \{"}[language]
    start = next((i for i, text in enumerate(texts) if re.match(opens, text)), None)
    if start is None:
        return -1
    return next((i for i in range(start, len(texts)) if re.match(closes, texts[i])), start)


Forms = tuple[tuple[str, str], ...]
"""What a line may begin with, and what it is there for then; the first that fits says it."""


@functools.cache
def _compiled(forms: Forms) -> tuple[re.Pattern[str], dict[str | None, str]]:
    """One expression for all forms, with a group for each, and the word for each group."""
    assert all(word in LINE_FORMS for _, word in forms)
    groups = [f"(?P<form{number}>{pattern})" for number, (pattern, _) in enumerate(forms)]
    return re.compile("|".join(groups) or "(?!)"), {f"form{i}": word for i, (_, word) in enumerate(forms)}


def _first(forms: Forms, line: str) -> str:
    expression, words = _compiled(forms)
    found = expression.match(line)
    return words[found.lastgroup] if found else ""
