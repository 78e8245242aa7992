"""The text of one compiler stage while it is parsed: its lines, and the kernel's lines for each.

Debug information (locations, file names, tables of both) is dropped: it would bring this machine's folders into the
record, and ``Form.links`` has the same facts.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..record.kernel import Form

KERNEL_FILE = "compile_lens_kernel.py"
"""Name of a kernel's file during its compile, which tells its locations from those in libraries. No such file is
written. A kernel's assertions contain the name."""


class Numbers:
    """Line numbers that stand for several lines of the kernel, or for none (0)."""

    FIRST = 1 << 20
    """The first number, above every line of a kernel."""
    STEP = 1 << 12
    """Distance between numbers: compilers count up from a number inside inline assembly."""

    def __init__(self) -> None:
        self._meanings: list[tuple[int, ...]] = []

    def of(self, sources: tuple[int, ...]) -> int:
        """Return the number that stands for these lines."""
        if not sources:
            return 0
        if sources not in self._meanings:
            self._meanings.append(sources)
        return self.FIRST + self.STEP * self._meanings.index(sources)

    def lines(self, number: int) -> tuple[int, ...]:
        """Return the lines that a number stands for."""
        index = (number - self.FIRST) // self.STEP
        return self._meanings[index] if 0 <= index < len(self._meanings) else ()


class Listing:
    """A form under construction, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.links: list[tuple[int, int]] = []

    def add(self, line: str, sources: Iterable[int] = ()) -> None:
        """Add a line, linked to lines of the kernel's source."""
        self.lines.append(line)
        self.link(len(self.lines), sources)

    def link(self, line: int, sources: Iterable[int]) -> None:
        """Link an existing line to lines of the kernel's source."""
        self.links += [(line, source) for source in sources]

    def form(self, kind: str) -> Form:
        """Return the form, without blank lines at its beginning and end."""
        first = next((i for i, line in enumerate(self.lines) if line.strip()), 0)
        last = next((i for i in range(len(self.lines), 0, -1) if self.lines[i - 1].strip()), 0)
        links = sorted({(line - first, source) for line, source in self.links if first < line <= last})
        return Form(kind, "\n".join(self.lines[first:last]) + "\n", tuple(links))
