"""The Document of a memory curve: its sections and the setting of the budget with the lowest peak."""

from __future__ import annotations

from compile_lens.record.memory_curve import DEFAULT, MemoryCurveRecord

from ..document import Block, Document, Entries, Entry, Finding
from ..findings.budget_curve import curve_sections, gain, headline
from ..words.quantities import plural

GREEN = 0.2
"""Minimum relative reduction of the peak that is marked as good."""


def document(curve: MemoryCurveRecord) -> Document:
    """Return the Document of a memory curve."""
    sections = curve_sections(curve)
    best = curve.best
    if best is not None and best.budget != DEFAULT and curve.default is not None:
        code = f"import torch._functorch.config as config\nconfig.activation_memory_budget = {best.budget:g}"
        entry = Entry(f"activation_memory_budget = {best.budget:g}", code=Block("", code, "python"))
        sections.append(Entries((entry,), "budget", ".best"))
    finding = Finding(
        "curve", "Memory by budget", "", plural(len(curve.points), "budget"), sections=tuple(sections), few=30
    )
    return Document(
        "memory_curve",
        f"memory of {curve.function} by activation_memory_budget",
        "compiled" if gain(curve) >= GREEN else "partial",
        headline(curve),
        findings=(finding,),
    )
