"""The answer about lines and kernels: what a Python line became, and what a kernel came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...measures.address import PYTHON, Address
from ...measures.cost import cost as cost_of
from ...record.capture import Record
from ...record.kernel import Code, Kernel
from ...record.messages import first_names
from ...views.brief import Brief, Question, quoted
from ...views.words.labels import place
from ...views.words.quantities import launched, plural

MAX_CODE_LINES = 40
"""Maximum lines of one kernel in an answer."""

MAX_NAMES = 6
"""Maximum kernels of a phase that a fact names."""


def chain(record: Any, name: str, address: Any) -> Brief:
    """Return the Python lines that an address came from, and the kernels, with code, that it became."""
    links = record.chain
    known = links.known(address)
    lines = links.lines(address)
    kernels = links.kernels(address)
    count = len({(frame.file, frame.line) for frame in lines})
    parts = f" ({plural(len(lines), 'expression')})" if len(lines) > count else ""
    phases = dict.fromkeys(kernel.phase for kernel in kernels)
    names = [
        f"{phase} {first_names([k.name for k in kernels if k.phase == phase], MAX_NAMES)}" for phase in phases
    ]
    named = f": {'; '.join(names)}" if kernels else ""
    facts = [f"{address}: {plural(count, 'Python line')}{parts}, {plural(len(kernels), 'kernel')}{named}."]
    why_not = "" if kernels and lines else links.why_not(address)
    if why_not:
        facts.append(f"The chain ends here: {why_not}.")
    evidence = [f"{place(frame)} in {frame.function}: {quoted(frame.expression)}" for frame in lines]
    codes = {id(k): code for c in record.compilations for code in c.code.values() for k in code.kernels}
    counted = _counted(record, address)
    if counted is not None and (rest := [k.name for k in kernels if (k.phase, k.name) not in counted]):
        facts.append(
            f"The cost of it counts {len(kernels) - len(rest)} of these kernels. No load or store in the others comes "
            f"from an operator of it: {first_names(rest, MAX_NAMES)}."
        )
        kernels = tuple(sorted(kernels, key=lambda kernel: (kernel.phase, kernel.name) not in counted))
    for kernel in kernels:
        own = _own_lines(known, links.descendants(address), kernel)
        evidence.append(_kernel(kernel, codes[id(kernel)], own))
    return Brief(
        f"compile_lens · {name} · lines and kernels of {address}",
        tuple(facts),
        tuple(evidence),
        (),
        _pair_of_one_graph(record, name, kernels),
    )


def _pair_of_one_graph(record: Any, name: str, kernels: Sequence[Kernel]) -> tuple[Question, ...]:
    """Return the question why the first two of some kernels in one graph are separate; none if no graph has two."""
    for compilation in record.compilations:
        for code in compilation.code.values():
            own = [kernel.name for kernel in kernels if any(kernel is one for one in code.kernels)]
            if len(own) > 1:
                a, b = (
                    one if one in record.chain else str((compilation.id, code.key, one)) for one in own[:2]
                )
                return (Question("why are two of them separate?", f"why(record={name!r}, a={a!r}, b={b!r})"),)
    return ()


def _counted(record: Record, address: Any) -> set[tuple[str, str]] | None:
    """Return phases and names of the kernels that the cost of a line, or of a module with its submodules, counts;
    ``None`` for another address."""
    for by in ("line", "module"):
        rows = cost_of(record, by).rows
        if any(row.address and row.address == address for row in rows):
            inner = f"{address}." if by == "module" else ""
            own = [
                row
                for row in rows
                if row.address == address or (inner and str(row.address).startswith(inner))
            ]
            return {(stage.partition(".")[0], kernel) for row in own for _, stage, kernel in row.addresses}
    return None


def _own_lines(known: Sequence[Address], below: Sequence[Address], kernel: Kernel) -> set[int]:
    """Return the line numbers (from 1) of a kernel's lines that an address became."""
    lines = set()
    for _, stage, text in (*known, *below):
        head, _, line = text.rpartition(":")
        if stage != PYTHON and head == kernel.name and line.isdigit():
            lines.add(int(line))
    return lines


def _kernel(kernel: Kernel, code: Code, own: set[int]) -> str:
    lines = kernel.source.splitlines()
    head = f"{kernel.name} ({kernel.phase}, {kernel.language}, {kernel.kind}): {launched(code, kernel)}"
    if not lines:
        return head
    numbers = range(1, len(lines) + 1)
    if own:  # skip the beginning common to all kernels
        definition = next((n for n in numbers if lines[n - 1].startswith(_DEFINITIONS)), 1)
        first = definition if max(own) - definition < MAX_CODE_LINES else max(min(own) - 6, 1)
        numbers = range(first, len(lines) + 1)
    shown = [f"{'>' if n in own else ' '} {n:>3}  {lines[n - 1]}" for n in numbers[:MAX_CODE_LINES]]
    before, after = numbers[0] - 1, len(numbers[MAX_CODE_LINES:])
    left = [
        f"{plural(count, 'line')} {where}" for count, where in ((before, "before"), (after, "after")) if count
    ]
    return "\n".join([head, *shown, *([f"  ({', '.join(left)})"] if left else [])])


_DEFINITIONS = ("def ", 'extern "C"', "void ", "kernel void")
"""Beginnings of the definition of a generated kernel."""
