"""Why a function is not one kernel with a source."""

from __future__ import annotations

from compile_lens.record.capture import Record
from compile_lens.record.kernel import Kernel

from ..words import outcome, quantities
from .kernels import hints, kernels, lines
from .model import Explained

LIBRARY = "it is a call of a library, and Inductor writes no source for it"

COPY = "what only returns its inputs, or views of them, needs no kernel; one that returns a copy, x.clone(), is one"


def _no_operation(capture: Record) -> bool:
    """Whether nothing was compiled since nothing is computed."""
    told = ("No ops traced", "found no tensor operation to compile")
    return any(words in capture.nothing_compiled for words in told)


def one(capture: Record) -> Kernel | str:
    """The one kernel that a capture has, or else why there is not exactly one with a source, as text."""
    found = capture.kernels
    missing = [f"{m.stage}: {m.reason}" for m in capture.missing if m.stage.endswith("code")]
    if outcome.state(capture) in (outcome.NOTHING, outcome.FAILED):
        head = f"{capture.function} has no kernel: {outcome.verdict(capture)}"
        return Explained(to_try=(COPY,)).text(head) if _no_operation(capture) else head
    if missing:
        head = f"{capture.function}: how many kernels there are is not known, since code is missing"
        return Explained(tuple(missing)).text(head)
    if outcome.state(capture) == outcome.PARTIAL and len(found) < 2:
        left = (
            f"{e.head}{lines(e.ending.frames[-1:])}: {outcome.reason(e.ending).what}"
            for e in outcome.eager(capture)
        )
        said = Explained(kernels(capture).found, tuple(left), tuple(dict.fromkeys(hints(capture))))
        return said.text(f"{capture.function} is not one kernel: Python runs a part of it")
    if len(found) == 1 and found[0].source.strip():
        return found[0]
    if len(found) == 1:
        said = kernels(capture)
        reason = LIBRARY if found[0].language == "extern" else "the record holds no source of it"
        return Explained(said.found, said.why, said.to_try).text(
            f"{capture.function} is one kernel without a source: {reason}"
        )
    if not found:
        return Explained(to_try=(COPY,)).text(
            f"{capture.function} has no kernel: its graphs compute nothing that has to run"
        )
    return kernels(capture).text(f"{capture.function} is {quantities.plural(len(found), 'kernel')}, not one")
