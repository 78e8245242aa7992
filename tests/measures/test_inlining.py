"""The outcome of an ATen node in words, and in the answers of ``why``; from records made by hand."""

from __future__ import annotations

import dataclasses

import pytest
from test_fusion import ENVIRONMENT, phase

from compile_lens.measures.fusion import why
from compile_lens.record.lowering import REALIZED, Lowered
from compile_lens.results.capture import Capture

INLINED = Lowered("forward", "sin", ("op0", "op2"))
KEPT = Lowered(
    "forward", "exp", ("op1", "op2"), "op1", (), "heavy", "2 operations read it", "torch/x.py:1 in mark_reuse"
)
PART = Lowered("forward", "mean", ("op0", "op1"), "", ("op0",), "reduction")


def test_inlined() -> None:
    assert INLINED.inlined == ("op0", "op2") and INLINED.remedy == ""
    assert str(INLINED) == "sin: It was inlined into op0, op2: its value has no buffer."


def test_with_a_buffer() -> None:
    assert KEPT.inlined == ("op2",)
    assert str(KEPT) == (
        f"exp: Its value has a buffer, that of op1. {REALIZED['heavy'].sentence} op2 computes it, or a part of "
        "it, too. Shown: 2 operations read it. torch/x.py:1 in mark_reuse"
    )


def test_with_a_part_in_a_buffer() -> None:
    assert PART.inlined == ("op1",)
    assert PART.sentence == (
        f"A part of it has a buffer, that of op0. {REALIZED['reduction'].sentence} The rest was inlined into op1."
    )


@pytest.mark.parametrize("reason", REALIZED)
def test_reasons_are_sentences(reason: str) -> None:
    found = REALIZED[reason]
    assert found.sentence[0].isupper() and found.sentence.endswith(".")
    assert dataclasses.replace(KEPT, reason=reason).remedy == found.remedy
    assert found.sentence in dataclasses.replace(KEPT, reason=reason).sentence


def test_a_reason_of_a_newer_version() -> None:
    assert dataclasses.replace(KEPT, reason="moonlight").sentence.startswith("Its value has a buffer")


def capture(*entries: Lowered) -> Capture:
    """The record of the fusion tests, x → sin·2 (op0) → exp (op1) → …, with these entries of lowering."""
    made = dataclasses.replace(phase("forward"), lowered=entries)
    return Capture("f", ENVIRONMENT, compilations=(made,))


def test_why_of_two_in_one_loop() -> None:
    sin = dataclasses.replace(INLINED, loops=("op0",))
    mul = Lowered("forward", "mul", ("op0",), "op0", (), "many readers", "5 buffers")
    assert why(capture(sin, mul), "sin", "mul").facts == (
        "both are in op0, the loop of model.py:2",
        "sin was inlined into op0: its value has no buffer",
        "op0 is the loop of mul, whose value has a buffer (many readers)",
    )
    assert why(capture(), "sin", "mul").facts == ("both are in op0, the loop of model.py:2",)


def test_why_of_two_that_were_not_inlined() -> None:
    mul = Lowered("forward", "mul", ("op0",), "op0", (), "many readers", "5 buffers")
    facts = why(capture(mul), "mul", "exp").facts
    assert facts[-1] == (
        "mul was not inlined into op1, the loop of model.py:3 (many readers). "
        f"{REALIZED['many readers'].sentence} Shown: 5 buffers."
    )
    other = dataclasses.replace(mul, phase="backward")
    assert not any("not inlined" in fact for fact in why(capture(other), "mul", "exp").facts)
