"""The lines of two kernels' texts that differ in more than the names of values."""

from __future__ import annotations

import difflib
import re

from compile_lens.record.kernel import Kernel

_HASHES = re.compile(r"'backend_hash': '[^']*'|kernel_name'?[:=] ?'[^']*'")
_NUMBERED = re.compile(r"\b((?:cpp|triton|mps)_\w*?fused\w*?)_\d+\b")
_NAME = re.compile(
    r"\b(arg|primals_|tangents_|buf|tmp|in_ptr|out_ptr|in_out_ptr|ks|x|r|s|u)(\d+(?:_\d+)*)\b(?=(\s*=(?!=))?)"
)

MOST = 4_000
"""Lines of a kernel beyond which its text is only compared as a whole."""

Hunk = tuple[range, range]
"""Lines of the first text, counted from 0, and those of the second that stand in their place."""


def lines(kernel: Kernel) -> list[str]:
    """The text of a kernel by lines, without its number and hashes, which carry no meaning."""
    return [_NUMBERED.sub(r"\1", line).rstrip() for line in _HASHES.sub("", kernel.source).splitlines()]


_CALL = re.compile(r"^( *)def call\(.*\n((?:\1 .*\n|\s*\n)+)", re.MULTILINE)


def calls(module: str) -> list[str]:
    """The lines of a module in which kernels are called, without remarks: those name nodes of the program."""
    body = [line for call in _CALL.finditer(module) for line in call[2].splitlines()]
    bare = (_NUMBERED.sub(r"\1", line.partition("  # ")[0]).rstrip() for line in body)
    return [line for line in bare if line and not line.lstrip().startswith("#")]


def hunks(one: list[str], two: list[str]) -> list[Hunk]:
    """The places at which two texts differ.

    Lines are aligned without the numbers of their values. The values of two aligned lines must then correspond, from
    the lines that define them on: ``tmp1 - tmp2`` and ``tmp2 - tmp1`` differ, a value with another name does not.
    Texts longer than ``MOST`` differ as a whole.
    """
    if max(len(one), len(two)) > MOST:
        return [] if one == two else [(range(len(one)), range(len(two)))]
    bare = [[_NAME.sub(r"\1", line) for line in text] for text in (one, two)]
    differing: list[Hunk] = []
    names = _Names()
    for step, a, a_end, b, b_end in difflib.SequenceMatcher(
        None, bare[0], bare[1], autojunk=False
    ).get_opcodes():
        if step == "equal":
            differing += [
                (range(a + n, a + n + 1), range(b + n, b + n + 1))
                for n in range(a_end - a)
                if not names.agree(one[a + n], two[b + n])
            ]
        else:
            differing.append((range(a, a_end), range(b, b_end)))
    return differing


class _Names:
    """The values of two texts that correspond."""

    def __init__(self) -> None:
        self._forth: dict[str, str] = {}
        self._back: dict[str, str] = {}

    def agree(self, one: str, two: str) -> bool:
        """Return True if the names of two lines correspond; those that the lines define do from now on."""
        pairs = [(a[0], b[0], a[3]) for a, b in zip(_NAME.finditer(one), _NAME.finditer(two))]
        alike = all([self._same(a, b) for a, b, assigned in pairs if not assigned])
        for a, b, assigned in pairs:
            if assigned:
                self._bind(a, b)
        return alike

    def _same(self, a: str, b: str) -> bool:
        if a not in self._forth and b not in self._back:
            self._bind(a, b)
        return self._forth.get(a) == b

    def _bind(self, a: str, b: str) -> None:
        self._back.pop(self._forth.pop(a, ""), None)
        self._forth.pop(self._back.pop(b, ""), None)
        self._forth[a], self._back[b] = b, a
