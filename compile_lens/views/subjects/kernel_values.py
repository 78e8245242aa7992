"""Findings on values at the kernels of a call: the first differing one, and all in program order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compile_lens.record.divergence import PASS, DivergenceRecord, first_value
from compile_lens.record.graph import Frame
from compile_lens.record.kernel_values import (
    AGREES,
    COMPARED,
    DIFFERS,
    FOLLOWS,
    IN_REGISTERS,
    NEARER,
    NOT_COMPARED,
    REMOVED,
    ROUNDING,
    TIES,
    KernelValue,
)

from ..document import NAME, NUMBER, PAGE, TEXT, Block, Entries, Entry, Finding, Prose, Row, Table
from ..words.labels import place, readable
from ..words.quantities import NOT_KNOWN, error, plural

WORDS = {
    AGREES: "agrees",
    DIFFERS: "differs",
    FOLLOWS: "differs, as what it is computed from",
    NEARER: "nearer to float64 than eager",
    ROUNDING: "as far as eager is from itself on inputs that differ in the last place",
    TIES: "depends on the order of equal elements",
    IN_REGISTERS: "stays in registers",
    REMOVED: "removed by a pass",
}


def first_finding(record: DivergenceRecord) -> Finding | None:
    """Return the first differing value with its line and kernel, and what is known of the values before it."""
    first = first_value(record.graphs, record.verification)
    if first is None:
        return None
    graph, value = first
    where = place(value.frames[0]) if value.frames else value.node
    lines = [("", f"{expression(value)}: {value.dtype}{list(value.shape)}"), ("error", errors(value))]
    if value.eager_special or value.compiled_special or value.first_special:
        counts = f"{value.eager_special:,} elements in eager, {value.compiled_special:,} in compiled code"
        lines.append(("NaN or inf", "; ".join(filter(None, (counts, value.first_special)))))
    lines.append(
        ("node", f"{value.node}, {value.phase} graph of {readable(graph.function)} ({graph.compile_id})")
    )
    if value.kernel:
        in_kernel = f", line {value.kernel_line}" if value.kernel_line else ""
        lines.append(("kernel", f"{value.kernel}{in_kernel}"))
    lines.append(("before it", _before(record, graph.before(value))))
    if record.capture.calls:
        lines.append(("call", f"{value.call + 1} of {len(record.capture.calls)}"))
    if value.run:
        lines.append(("run", f"{value.run + 1} of this code; before it this value does not differ"))
    if record.doubt:
        lines.append(("but", record.doubt))
    source = source_of(value.frames[0]) if value.frames else ""
    code = Block("", source, "python") if source else None
    entry = Entry(where, "", tuple(lines), code=code)
    fact = f"{expression(value)} ({where})"
    sections = (Entries((entry,), "first", open=True),)
    title = "first value that differs"
    return Finding("first", title, "", fact, sections=sections, where=".first_value", open=True)


def values_finding(record: DivergenceRecord) -> Finding | None:
    """Return all values of the graphs before Inductor's passes, in program order, as far as both sides have them."""
    if not record.graphs:
        return None
    sections: list[Prose | Table] = []
    for graph in record.graphs:
        title = f"{readable(graph.function)} ({graph.compile_id})" if len(record.graphs) > 1 else ""
        if graph.missing:
            sections.append(Prose(title, (f"not compared: {graph.missing}",), inline=True))
            continue
        rows = tuple(_row(value) for value in graph.values)
        head, kinds = (
            ("value", "line", "eager", "compiled", "ULPs", ""),
            (NAME, NAME, NUMBER, NUMBER, NUMBER, TEXT),
        )
        sections.append(Table(title, head, kinds, rows, room=PAGE, definitions=DEFINITIONS))
    values = [value for graph in record.graphs for value in graph.values]
    fact = f"{sum(value.compared for value in values)} of {len(values)} compared"
    sections.insert(0, Prose("", (f"{summary(record)}.",)))
    return Finding(
        "kernels", "values at the kernels", "", fact, sections=tuple(sections), where=".graphs", few=12
    )


DEFINITIONS = (
    "the Python line",
    "error of eager: the graph before Inductor's passes in its own types, against float64: norm of the difference, "
    "divided by the norm of the float64 value",
    "error of the compiled value against the same",
    "largest error of a compiled element, in units in the last place",
    "the outcome",
)


def _row(value: KernelValue) -> Row:
    return Row(
        (
            value.node,
            place(value.frames[0]) if value.frames else NOT_KNOWN,
            error(value.eager),
            error(value.compiled),
            units(value.compiled_ulps),
            WORDS.get(value.outcome) or f"not compared: {value.reason}",
        )
    )


def summary(record: DivergenceRecord) -> str:
    """Return the number of compared values, and where the others are."""
    values = [value for graph in record.graphs for value in graph.values]
    compared = sum(value.compared for value in values)
    text = f"{compared} of {plural(len(values), 'value')} compared (those that a kernel stores)"
    others = _others(values)
    missing = [
        f"{graph.compile_id}: not compared: {graph.missing}" for graph in record.graphs if graph.missing
    ]
    return "; ".join(filter(None, (text if values else "", ", ".join(others), *missing)))


def _others(values: Sequence[KernelValue], remover: str = "a pass") -> list[str]:
    """Return where the values that were not compared are, with their counts."""
    words = []
    registers = sum(value.outcome == IN_REGISTERS for value in values)
    if registers:
        words.append(f"{registers} {'stays' if registers == 1 else 'stay'} in registers")
    removed = sum(value.outcome == REMOVED for value in values)
    if removed:
        words.append(f"{removed} removed by {remover}")
    reasons = Counter(value.reason for value in values if value.outcome == NOT_COMPARED)
    return words + [f"{count} not compared: {reason}" for reason, count in reasons.items()]


def _before(record: DivergenceRecord, values: Sequence[KernelValue]) -> str:
    """Return what is known of the values before the first differing one."""
    if not values:
        return "no value"
    rewrite = record.cause is not None and record.cause.kind == PASS
    compared = sum(value.outcome in COMPARED for value in values)
    removed = sum(value.outcome == REMOVED for value in values)
    if removed == len(values):
        who = "the rewrite" if rewrite else "a pass"
        return f"{plural(len(values), 'value')}; {who} left none of them to compare"
    words = [f"{compared} {'agrees' if compared == 1 else 'agree'}"] if compared else ["none compared"]
    return f"{plural(len(values), 'value')}: " + ", ".join(
        words + _others(values, "the rewrite" if rewrite else "a pass")
    )


def expression(value: KernelValue) -> str:
    """Return the expression of a value as in its line; the node's name if unknown."""
    return value.frames[0].call if value.frames and value.frames[0].call else value.node


def errors(value: KernelValue) -> str:
    """Return the errors of both sides against float64."""
    eager, compiled = error(value.eager), error(value.compiled)
    ulps = ["" if one is None else f" ({units(one)} ULPs)" for one in (value.eager_ulps, value.compiled_ulps)]
    return f"eager {eager}{ulps[0]}, compiled {compiled}{ulps[1]}"


def source_of(frame: Frame) -> str:
    """Return the source line, with marks under the expression."""
    call, text = frame.call, frame.text.strip()
    start = text.find(call) if call else -1
    return f"{text}\n{' ' * start}{'^' * len(call)}" if start >= 0 else text


def units(value: float | None) -> str:
    """Return a number of units in the last place as text."""
    if value is None:
        return NOT_KNOWN
    return f"{value:,.1f}" if value < 10 else f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"
