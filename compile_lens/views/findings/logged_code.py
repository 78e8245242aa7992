"""Findings about the generated modules in a log and about compilations without a call."""

from __future__ import annotations

import os

from compile_lens.record.logged_code import AheadCompilation, ExportCondition
from compile_lens.record.messages import first_names
from compile_lens.record.program import ProgramRecord

from ..document import NAME, NOTE, NUMBER, TEXT, Finding, Row, Section, Table, table_finding
from ..words.quantities import NOT_KNOWN, plural
from ..words.remedies import place


def ahead(program: ProgramRecord) -> Finding | None:
    """Return the finding about compilations without a call; ``None`` if there are none."""
    if not program.ahead:
        return None
    rows = tuple(Row(_row(number, one, program)) for number, one in enumerate(program.ahead))
    head = ("", "by", "operators", "takes", "modules", "kernels")
    sections: list[Section] = [Table("", head, (NUMBER, NAME, NUMBER, TEXT, NAME, NUMBER), rows)]
    conditions = [
        Row((str(number), c.kind, c.text, *_line(c)))
        for number, one in enumerate(program.ahead)
        for c in one.conditions
    ]
    if conditions:
        columns = ("of", "", "condition", "at", "line")
        sections.append(Table("", columns, (NUMBER, NAME, TEXT, NAME, NOTE), tuple(conditions)))
    intro = (
        "Compiles that Dynamo gave no number, since no call of a compiled function requested them. What export checked "
        "or assumed about sizes and values stands below, with the line of the program."
    )
    fact = plural(len(rows), "compile")
    return Finding(
        "ahead", "Compiled without a call", intro, fact, (), "program.record.ahead", tuple(sections), few=8
    )


def _line(condition: ExportCondition) -> tuple[str, str]:
    at = condition.line
    return (place(at), at.text.strip()) if at is not None else ("", "")


def _row(number: int, one: AheadCompilation, program: ProgramRecord) -> tuple[str, ...]:
    kernels = sum(len(program.modules[n].kernels) for n in one.modules)
    operators = NOT_KNOWN if one.operators is None else str(one.operators)
    modules = ", ".join(map(str, one.modules))
    return (
        str(number),
        one.kind,
        operators,
        "; ".join(one.inputs),
        modules,
        str(kernels) if one.modules else "",
    )


def modules(program: ProgramRecord) -> Finding | None:
    """Return the finding about generated modules; ``None`` if the log has none."""
    rows = []
    for number, module in enumerate(program.modules):
        lines = NOT_KNOWN if module.code_lines is None else str(module.code_lines)
        own = (str(number), module.id or "no call", os.path.basename(module.file), lines)
        for kernel in module.kernels:
            from_lines = first_names((place(line) for line in kernel.lines), 4)
            rows.append((*own, kernel.name, first_names(kernel.nodes), from_lines))
            own = ("", "", "", "")
        if not module.kernels:
            rows.append((*own, "", "", ""))
    columns = {
        "": NUMBER,
        "of": NAME,
        "file": NAME,
        "lines": NUMBER,
        "kernel": NAME,
        "nodes": TEXT,
        "from": TEXT,
    }
    intro = (
        "Code that Inductor generated or took from its cache. Nodes and lines of kernels are in a log that was written "
        "with provenance (INDUCTOR_PROVENANCE=1)."
    )
    fact = plural(len(program.modules), "module")
    return table_finding(
        "modules", "Generated modules", intro, fact, "program.record.modules", columns, rows, few=8
    )
