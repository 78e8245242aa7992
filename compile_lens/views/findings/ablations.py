"""The same function compiled with fewer optimizations: without inlining and fusion, with inlining, and with both."""

from __future__ import annotations

from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.steps import at_step
from compile_lens.record.capture import ABLATIONS, Ablation, Record
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import first_names

from ..document import BYTES, Absence, Block, Column, Columns, Finding, quantity
from ..words import quantities
from ..words.quantities import printed

KEY, TITLE = "ablations", "Ablations"
INTRO = (
    "What inlining and fusion are worth: the same function compiled without them, and the code of each step."
)
WHERE = "capture.ablations"
MISSING = "not run: compile_lens.ablate(f, x)"

KERNELS = 40
"""Maximum kernels of one step with code."""

CHARACTERS = 60_000
"""Maximum characters of the code of one step."""

MEANS = {
    ABLATIONS[0]: "each operator is written to memory, in a loop and a kernel of its own",
    ABLATIONS[1]: "lowering puts pointwise chains into one loop; the scheduler fuses nothing",
    ABLATIONS[2]: "what torch.compile does",
}


def ablations(capture: Record) -> Finding | None:
    """Return the finding; ``None`` if no code was generated."""
    if not any(c.code for c in capture.compilations) and not capture.ablations:
        return None
    if not capture.ablations:
        return Finding(KEY, TITLE, INTRO, where=WHERE, missing=MISSING)
    columns = tuple(_column(capture, step) for step in capture.ablations)
    brief = [
        f"{column.title}: " + ", ".join(f"{printed(value)} {what}" for what, value in column.figures)
        for column in columns
    ]
    launches = [printed(dict(column.figures).get("launches", Absence("launches"))) for column in columns]
    badge = " → ".join(launches)
    sections = (Columns("", columns),)
    return Finding(KEY, TITLE, INTRO, f"{badge} launches", tuple(brief), WHERE, sections, badge=badge)


def _column(capture: Record, step: Ablation) -> Column:
    alone = at_step(capture, step.step)
    total = ledger_of(alone).total
    kernels = alone.kernels
    figures = [
        ("loops", quantities.figure(total.loops)),
        ("groups", quantities.figure(total.groups)),
        ("kernels", f"{len(kernels):,}"),
        ("launches", quantities.figure(total.launches)),
        ("moved", quantity(total.bytes_after, BYTES, "bytes moved")),
    ]
    words = [MEANS[step.step]] if step.step in MEANS else []
    words += [f"{name} = {value}" for name, value in step.settings]
    words += step.notes
    written = [kernel for kernel in kernels if kernel.source.strip()]
    blocks: list[Block] = []
    room = CHARACTERS
    for kernel in written[:KERNELS]:
        if len(kernel.source) > room:
            break
        room -= len(kernel.source)
        blocks.append(Block(_named(kernel), kernel.source, kernel.language))
    return Column(step.step, tuple(words), tuple(figures), tuple(blocks), len(written) - len(blocks))


def _named(kernel: Kernel) -> str:
    origins = first_names(kernel.origins, 5)
    return f"{kernel.phase}: {kernel.name}" + (f" ← {origins}" if origins else "")
