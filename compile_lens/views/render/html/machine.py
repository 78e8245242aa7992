"""Machine code on the static page: figures, launch configurations, and the last form if there is room."""

from __future__ import annotations

from compile_lens.record.capture import Record
from compile_lens.record.kernel import Form, Kernel

from ...words import machine, quantities
from ...words.characters import short
from ...words.folds import machine_folds
from .listing import listing
from .markup import Budget, div, fold, mono, note, text
from .tables import figures_table

ROOM = 60_000
"""Characters of the last forms of all kernels up to which the page holds them."""

FONT = "font-size:13px"


class MachineCode:
    """HTML of the machine code of kernels. The forms are there if those of all kernels fit."""

    def __init__(self, capture: Record, budget: Budget) -> None:
        self._budget = budget
        last = (machine.last(kernel) for kernel in capture.kernels)
        self._roomy = sum(len(form.text) for form in last if form is not None) <= ROOM

    def of(self, kernel: Kernel) -> str:
        """The part below a kernel's source; ``""`` where nothing is known."""
        shown = [pair for pair in zip(machine.HEAD, machine.figures(kernel), strict=True) if pair[1]]
        parts = [figures_table([name for name, _ in shown], [[value for _, value in shown]])] if shown else []
        remark = machine.configurations(kernel)
        if remark is not None and remark.lines:
            lines = "".join(div(mono(line, FONT)) for line in remark.lines)
            parts.append(fold(text(remark.title), lines, "configurations", level=1))
        elif remark is not None:
            parts.append(div(text(remark.title), FONT))
        parts += [note(text(short(words, 1000))) for words in machine.missing(kernel)]
        return "".join(parts) + self._form(kernel)

    def _form(self, kernel: Kernel) -> str:
        form = machine.last(kernel)
        if form is None:
            return ""
        names = text(machine.names(kernel))
        if not self._roomy:
            return note(f"left out to keep the page small: {names}")
        linked: dict[int, str] = {}
        first = kernel.first_line or 1  # as the source above is numbered
        for line, of in form.links:
            number = first + of - 1
            linked[line] = f"{linked[line]}, {number}" if line in linked else f"← line {number}"
        title = f"{text(machine.title(form.kind))}, with the lines of the source above that it came from"
        return fold(title, self._lines(form, linked) + note(f"in Python: {names}"), "form", level=1)

    def _lines(self, form: Form, linked: dict[int, str]) -> str:
        """Its instructions; what is before the first and behind the last of them is folded."""
        lines = form.text.removesuffix("\n").split("\n")
        folds = machine_folds(form.kind, form.text, linked)
        before = folds[0].last if folds and folds[0].first == 1 else 0
        behind = [one for one in folds if one.last == len(lines)][:1]
        runs = [(before + 1, behind[0].first - 1 if behind else len(lines), "")]
        if before:
            runs.insert(0, (1, before, folds[0].label))
        runs += [(one.first, one.last, one.label) for one in behind]
        parts = []
        for first, last, label in runs:
            origins = {n - first + 1: linked[n] for n in linked if first <= n <= last}
            part = "\n".join(lines[first - 1 : last])
            body = listing(part, "", self._budget, first, origins, height=520)
            count = quantities.plural(last - first + 1, "line")
            parts.append(fold(text(f"{count}: {label}"), body, "folded", level=1) if label else body)
        return "".join(parts)
