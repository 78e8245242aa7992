"""Sentences shared by several views, and tables of strings by language, with a clear error for a missing one. The live
page receives them with its data, so that each is defined only here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from compile_lens.measures.dead_ends import NO_WORK
from compile_lens.measures.source_units import units
from compile_lens.measures.unfused_pairs import UnfusedPair
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation, DynamicDim
from compile_lens.record.graph import UNSAID_ORIGIN
from compile_lens.record.kernel import Kernel
from compile_lens.record.messages import first_names

from . import labels, outcome, quantities
from .characters import flat

ENGLISH, CHINESE = "en", "zh"

_T = TypeVar("_T")


def in_language(strings: Mapping[str, _T], language: str, what: str) -> _T:
    """Return the string of a language. Raises ``LookupError`` if ``what`` has none in it."""
    if language not in strings:
        others = ", ".join(map(repr, strings)) or "no language"
        raise LookupError(f"the {what} is missing in {language!r}: add it next to the one in {others}")
    return strings[language]


def entry(table: Mapping[str, _T], key: str, language: str, what: str) -> _T:
    """Return the entry of a language's table. Raises ``LookupError`` if it has none."""
    if key not in table:
        raise LookupError(
            f"the {what} {key!r} is missing in {language!r}: add it to the table of that language"
        )
    return table[key]


LEDGER = "what there was to do, and what fusion left of it"
SOURCES = "the functions that were seen"
RECOMPILE = "the guard that failed"
BROKE = "ended in a graph break"
WHOLE_MESSAGE = "the compiler's whole message"
NO_STAGE = "no stage was recorded"
COUNTED = (
    "nodes: all that a graph holds, inputs and outputs too; calls: the nodes that call a function; ops: the calls that "
    "do work, and not views, allocations and the like"
)
NO_CODE = "this target has no such code"
UNCHANGED = "no pass changed them"

VERBS = {
    "traced": "Dynamo records tensor calls in a graph, up to a graph break.",
    "joint": "Autograd adds the backward.",
    "decomposed": "Calls become ATen operators.",
    "inlined": "Operators are computed where they are read.",
    "fused": "Loops join into groups; separate pairs share data.",
    "generated": "Groups become kernels.",
}
"""Definitions of the steps from one stage to the next."""

COST_COLUMNS = {
    "order": "The number of the first launch in the order of the code, which sorting does not change.",
    "lines": "The Python lines, or calls, of which the kernel computes operators, in their colours.",
    "kernel": "The name in the generated code, without the prefix that all names share.",
    "times": "How often one call launches it; equal library calls are one row.",
    "limit": "What bounds the kernel at the roofline of the device: the bytes that it moves, or its arithmetic.",
    "kind": "How the kernel's loops are made; a library call has none.",
    "amount": "What all launches of the row cost:",
    "share": "Share of the cost of one call, forward and backward; a click sorts by it.",
}
"""Definitions of the columns of the ranked kernels."""

PAGE: dict[str, dict[str, str | dict[str, str]]] = {
    ENGLISH: {
        "ledger": LEDGER,
        "sources": SOURCES,
        "recompile": RECOMPILE,
        "broke": BROKE,
        "wholeMessage": WHOLE_MESSAGE,
        "noStage": NO_STAGE,
        "noCode": NO_CODE,
        "counted": COUNTED,
        "unchanged": UNCHANGED,
        "saved": labels.SAVED,
        "modelled": labels.FROM_SIZES,
        "noWork": NO_WORK,
        "unsaidOrigin": UNSAID_ORIGIN,
        "verbs": VERBS,
    }
}
"""Strings of the live page that are the same for every capture, by language and by the page's key."""


SHORT_TEXT: dict[str, dict[str, str]] = {
    ENGLISH: {
        "label": "{label}: {words}",
        "more": "… and {count:,} more",
        "more at": "… and {count:,} more: {where}",
    },
    CHINESE: {
        "label": "{label}：{words}",
        "more": "……还有 {count:,} 项",
        "more at": "……还有 {count:,} 项：{where}",
    },
}
"""Connecting words of a Summary's text, by language and purpose."""


def no_source(capture: Record) -> str:
    """Return why there is no source text; ``""`` if there is one, or nothing was compiled."""
    if capture.sources or not capture.compilations:
        return ""
    file = flat(capture.compilations[0].file)
    if file.startswith("<"):
        why = f"the code is from {file}, which is not a file"
    elif capture.lacks(claims.SOURCES):
        why = f"the file {file} has a text that is not the one that was compiled"
    else:
        why = f"the file {file} was not read" if file else "where the code stands is not known"
    colours = "" if any(each.all for each in units(capture).values()) else "; no line gives a colour"
    return f"No Python source: {why}{colours}."


def below(capture: Record) -> str:
    """Return the sentence below the outcome of a call that failed or compiled nothing; ``""`` otherwise."""
    if capture.failure is not None:
        return "Every stage before the failure is below." if capture.compilations else ""
    if outcome.state(capture) == "nothing":
        return "There is no graph, ledger or code to show for this call: it ran as ordinary Python."
    return ""


def ran_by(modules: Sequence[str]) -> tuple[str, str]:
    """Return the number of modules that ran a method, in short and in words: ``("×3", "run by 3 modules: a, b, c")``;
    ``("", "")`` if there are none."""
    if not modules:
        return "", ""
    return f"×{len(modules)}", f"run by {quantities.plural(len(modules), 'module')}: {first_names(modules)}"


def symbol(dim: DynamicDim) -> str:
    """Return a size or number that was compiled as a symbol, with the observed value: ``L['x'].size(0) = s0 (seen:
    3)``."""
    seen = f" (seen: {dim.observed})" if dim.observed else ""
    return f"{dim.source} = {dim.symbol}{seen}"


def guards(compilation: Compilation) -> str:
    """Return the number of guards, and their purpose."""
    return f"{quantities.plural(len(compilation.guards), 'condition')} under which this code is used again"


def all_notes(notes: Iterable[str], unknown: Iterable[str]) -> tuple[str, ...]:
    """Return the notes of a record, and a note for each of its fields that this version does not know."""
    return (*notes, *(f"fields of the record that this version does not know: {field}" for field in unknown))


def same_as(title: str) -> str:
    """Return the sentence for a stage with the operations of the one before it."""
    return f"the same operations as in {title}"


def moved(kernel: Kernel) -> str:
    """Return the bytes that a kernel reads and writes, in words."""
    size = labels.traffic(kernel)
    return f"{size} read and written, modelled" if size else "bytes unknown"


def sourceless(kernel: Kernel) -> str:
    """Return why no source of a kernel is shown; ``""`` if there is one."""
    if kernel.source.strip():
        return ""
    if kernel.language == "extern":
        return "a library call: its source is not part of the generated code"
    return "the record holds no source for it"


def touching(pair: UnfusedPair) -> str:
    """Return how two separate groups share data."""
    return "the second reads what the first writes" if pair.follows else "both read the same"
