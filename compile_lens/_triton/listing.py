"""A form while it is read: its lines, and the kernel's lines for each.

Debug information (locations, names of files, tables of both) is dropped: it would bring folders of one machine into
the record, and ``Form.links`` has it in a better form.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..record.kernel import Form

KERNEL_FILE = "compile_lens_kernel.py"
"""Name of a kernel's file while it is compiled, which tells its locations from those in libraries. No such file is
written. An assertion of a kernel carries the name."""


class Numbers:
    """Line numbers that stand for several lines of the kernel, or for none (0)."""

    FIRST = 1 << 20
    """Above every line of a kernel."""
    ROOM = 1 << 12
    """Numbers for each: compilers count on from a number inside of inline assembly."""

    def __init__(self) -> None:
        self._meanings: list[tuple[int, ...]] = []

    def of(self, sources: tuple[int, ...]) -> int:
        """Return the number for these lines."""
        if not sources:
            return 0
        if sources not in self._meanings:
            self._meanings.append(sources)
        return self.FIRST + self.ROOM * self._meanings.index(sources)

    def lines(self, number: int) -> tuple[int, ...]:
        """Return the lines for a number."""
        index = (number - self.FIRST) // self.ROOM
        return self._meanings[index] if 0 <= index < len(self._meanings) else ()


class Listing:
    """Collects the lines of a form."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.links: list[tuple[int, int]] = []

    def add(self, line: str, sources: Iterable[int] = ()) -> None:
        """Add a line, and its lines of the kernel's source."""
        self.lines.append(line)
        self.link(len(self.lines), sources)

    def link(self, line: int, sources: Iterable[int]) -> None:
        """Link an existing line to lines of the kernel's source."""
        self.links += [(line, source) for source in sources]

    def form(self, kind: str) -> Form:
        """Return the form, without blank lines at its ends."""
        first = next((i for i, line in enumerate(self.lines) if line.strip()), 0)
        last = next((i for i in range(len(self.lines), 0, -1) if self.lines[i - 1].strip()), 0)
        links = sorted({(line - first, source) for line, source in self.links if first < line <= last})
        return Form(kind, "\n".join(self.lines[first:last]) + "\n", tuple(links))
