"""The implementations that max-autotune would time on the device: templates and the library's function. Nothing is
timed here."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.record.autotuning import Autotuning
from compile_lens.record.capture import Record
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import first_names

from ..document import NAME, NOTE, NUMBER, TEXT, Block, Finding, Row, Section, Table, cut
from ..words import machine, quantities
from .places import Place, places

KEY, TITLE = "contests", "What max-autotune would time"
INTRO = (
    "The ways that Inductor has for an operator, which the device times once and of which it keeps the fastest. "
    "Nothing was timed here: none of them has won."
)
WHERE = "capture.autotuning"

CONTESTS, CONTENDERS = 40, 60
"""Maximum number shown."""

HEAD = (
    "contender", "sizes", "warps", "stages", "registers", "shared memory", "spilled", "instructions", "note",
)  # fmt: skip
KINDS = (NAME, TEXT, *(NUMBER,) * 6, NOTE)
_OWN_COLUMN = ("num_warps", "num_stages")


def contests(capture: Record) -> Finding | None:
    """Return the finding; ``None`` without max-autotune, or if it would time only launch configurations."""
    autotuned = capture.autotuning
    if not autotuned:
        return None
    held = [(place, one) for place in places(capture) for one in place.compilation.autotuning]
    held = [(place, one) for place, one in held if one.phase == place.phase]
    limit = capture.target.model.figure("shared_memory_per_block_optin") if capture.target else None
    sections: list[Section] = [_table(place, one, limit) for place, one in held[:CONTESTS]]
    sections += _texts([one for _, one in held])
    every = sum(len(one.choices) for one in autotuned)
    brief = [
        "; ".join((f"{_what(one)}: {_contenders(one)}, none of them timed", *_too_large(one, limit)))
        for one in autotuned[:4]
    ]
    if len(autotuned) > len(brief):
        brief.append(f"{len(autotuned) - len(brief):,} more")
    fact = f"{quantities.plural(len(autotuned), 'contest')}, {quantities.plural(every, 'contender')}"
    return Finding(KEY, TITLE, INTRO, fact, tuple(brief), WHERE, tuple(sections))


def _table(place: Place, one: Autotuning, limit: object) -> Table:
    addresses = tuple(place.at("post_grad", name) for name in one.nodes)
    rows, left = cut([Row(_cells(kernel), addresses) for kernel in one.choices], CONTENDERS)
    words = [f"for {first_names(one.nodes, 6)}"] if one.nodes else []
    words.append(f"the code has {one.choices[one.in_code].name}, since nothing was timed")
    words += _too_large(one, limit)
    return Table(f"{place.title}: {_what(one)}", HEAD, KINDS, rows, tuple(words), left, WHERE)


def _too_large(one: Autotuning, limit: object) -> list[str]:
    """Describe the templates that need more shared memory per block than the device allows."""
    if not one.templates or not isinstance(limit, int):
        return []
    built = [k.machine for k in one.templates if k.machine is not None and k.machine.shared is not None]
    if len(built) < len(one.templates):
        return [
            f"which templates need more than the {limit:,} bytes of shared memory that a block has there, "
            "and fall out, is known once all are built (build=True)"
        ]
    over = sum((machine.shared or 0) > limit for machine in built)
    if not over:
        return []
    need, fall = ("needs", "falls") if over == 1 else ("need", "fall")
    return [
        f"{over} of {quantities.plural(len(built), 'template')} {need} more than the {limit:,} bytes of shared memory "
        f"that a block has there, and {fall} out"
    ]


def _what(one: Autotuning) -> str:
    return f"{one.operator} of {' and '.join(one.inputs[:3])}" + (" and more" if len(one.inputs) > 3 else "")


def _contenders(one: Autotuning) -> str:
    kinds = [quantities.plural(len(one.templates), "template")] if one.templates else []
    others = [k.name for k in one.choices if k.kind != "template"]
    return ", ".join(
        [*others[:1], *kinds] if len(others) < 2 else [quantities.plural(len(others), "way"), *kinds]
    )


def _cells(kernel: Kernel) -> tuple[str, ...]:
    settings = kernel.candidates[0].settings if kernel.candidates else ()
    known = {name: f"{value:,}" for name, value in settings}
    sizes = ", ".join(f"{name}={value}" for name, value in settings if name not in _OWN_COLUMN)
    name = kernel.name if kernel.kind else f"{kernel.name} ({kernel.language})"
    figures = machine.figures(kernel)
    figures_of = (figures[1], figures[2], figures[3], figures[5])
    shown = (sizes, *(known.get(n) for n in _OWN_COLUMN), *figures_of)
    return (name, *(value or quantities.NOT_KNOWN for value in shown), kernel.machine_note)


def _texts(contests: Sequence[Autotuning]) -> list[Section]:
    """Return the code of the first choice of each name: the others differ only in the settings listed in the tables."""
    first: dict[str, tuple[Autotuning, Kernel]] = {}
    for one in contests:
        for kernel in one.choices:
            if kernel.source:
                first.setdefault(kernel.name, (one, kernel))
    return [
        Block(f"{kernel.name}, the first for {_what(one)}", kernel.source, "python")
        for one, kernel in first.values()
    ]
