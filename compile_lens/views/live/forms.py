"""The parts that hold the machine code of kernels: read when one is opened, not before."""

from __future__ import annotations

from dataclasses import asdict

from compile_lens.record.capture import Record
from compile_lens.record.kernel import Kernel
from compile_lens.record.machine_code import Form

from ..words.characters import clean
from ..words.machine_folds import machine_folds
from .items import SeenStage

ROOM = 6_000_000
"""Characters of all forms of one page. They cost nothing until they are opened, but they travel with it."""

LONGEST = 1_000_000
"""Characters of one form; what is longer is left out whole, since its end is as telling as its start."""

_TELLING = ("sass", "assembly", "amdgcn", "ptx", "ttgir", "ttir", "llir")
"""The order in which forms are shown if not all can be."""


class Forms:
    """The ``FormsData`` of every kernel that has machine code, by the name of its part."""

    def __init__(self, capture: Record) -> None:
        self.parts: dict[str, object] = {}
        self._shown: set[int] = set()
        room = ROOM
        every = [form for k in capture.kernels if k.machine is not None for form in k.machine.forms]
        for form in sorted(every, key=_telling):
            if len(form.text) <= min(room, LONGEST):
                room -= len(form.text)
                self._shown.add(id(form))

    def of(self, kernel: Kernel) -> tuple[Form, ...]:
        """The forms of a kernel that the page holds."""
        forms = kernel.machine.forms if kernel.machine is not None else ()
        return tuple(form for form in forms if id(form) in self._shown)

    def left(self, kernel: Kernel) -> str:
        """Which forms are left out, and where they are; ``""`` if none is."""
        forms = kernel.machine.forms if kernel.machine is not None else ()
        names = ", ".join(f"kernel.{form.kind}" for form in forms if id(form) not in self._shown)
        return f"left out to keep the page small: {names}" if names else ""

    def part(self, seen: SeenStage, kernel: Kernel) -> str:
        """The name of the part that holds them, made on the way; ``""`` where there are none."""
        shown = self.of(kernel)
        if not shown:
            return ""
        name = f"m{len(self.parts)}"
        self.parts[name] = {"forms": [_form(seen, kernel, form) for form in shown]}
        return name


def _form(seen: SeenStage, kernel: Kernel, form: Form) -> dict[str, object]:
    text = clean(form.text)
    last = text.count("\n") + 1
    found = ((line, seen.locals.get(f"{kernel.name}:{of}")) for line, of in form.links if 0 < line <= last)
    return {
        "text": text,
        "items": [[line, seen.start + local] for line, local in found if local is not None],
        "folds": [asdict(fold) for fold in machine_folds(form.kind, text, {line for line, _ in form.links})],
    }


def _telling(form: Form) -> int:
    return _TELLING.index(form.kind) if form.kind in _TELLING else len(_TELLING)
