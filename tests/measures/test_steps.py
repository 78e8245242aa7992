"""Steps of an ablation: each restores what it leaves out, and has its own figures."""

from __future__ import annotations

import dataclasses

import pytest
from samples import sample

from compile_lens import UsageError
from compile_lens.measures import steps
from compile_lens.record.capture import ABLATIONS, Ablation
from compile_lens.record.compilation import Compilation
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture


def alone(whole: Compilation) -> Compilation:
    """The sample with three launches of its first kernel."""
    code = whole.code["forward"]
    kernel = dataclasses.replace(code.kernels[0], launch_lines=(1, 2, 3))
    changed = dataclasses.replace(code, kernels=(kernel,))
    return dataclasses.replace(whole, stages=tuple(changed if s.key == code.key else s for s in whole.stages))


def ablated() -> Capture:
    made = sample()
    whole = made.compilations[0]
    kept = steps.trimmed_name(alone(whole), whole)
    return dataclasses.replace(
        made,
        ablations=(
            Ablation(ABLATIONS[0], (("max_fusion_size", "1"),), (kept,), ("a note",)),
            Ablation(ABLATIONS[2]),
        ),
    )


def test_a_step_holds_only_what_differs() -> None:
    (kept,) = ablated().ablations[0].compilations
    assert [s.key for s in kept.stages] == ["forward.code"]
    assert kept.ending is None and kept.guards == sample().compilations[0].guards


def test_a_step_made_whole_is_what_it_was() -> None:
    record = ablated()
    step = steps.at_step(record, ABLATIONS[0])
    assert step.compilations == (alone(record.compilations[0]),)
    assert step.sources == record.sources and step.ablations == ()
    assert "a note" in step.notes


def test_the_last_step_is_the_capture_itself() -> None:
    record = ablated()
    step = steps.at_step(record, ABLATIONS[2])
    assert step.compilations == record.compilations and step.notes == record.notes


def test_a_stage_that_a_step_could_not_make_stays_missing() -> None:
    made = sample()
    whole = made.compilations[0]
    failed = dataclasses.replace(
        whole,
        stages=tuple(
            Missing(s.key, "the compiler failed") if s.key == "forward.code" else s for s in whole.stages
        ),
    )
    kept = steps.trimmed_name(failed, whole)
    step = steps.at_step(
        dataclasses.replace(made, ablations=(Ablation(ABLATIONS[1], (), (kept,)),)), ABLATIONS[1]
    )
    assert [m.reason for m in step.missing if m.stage == "forward.code"] == ["the compiler failed"]
    assert step.ledger.forward.launches is None


def test_figures_of_each_step() -> None:
    record = ablated()
    first, last = steps.steps(record)
    assert (first.name, last.name) == (ABLATIONS[0], ABLATIONS[2])
    assert last.launches is not None and first.launches == last.launches + 2
    assert "a note" in first.notes


def test_an_unknown_step_names_those_there_are() -> None:
    with pytest.raises(UsageError, match="'inlined' is not in this capture; it has 'nothing inlined or"):
        steps.at_step(ablated(), "inlined")
    with pytest.raises(UsageError, match=r"compile_lens\.ablate"):
        steps.at_step(sample(), "inlined")


def test_a_capture_without_ablations_has_no_steps() -> None:
    assert steps.steps(sample()) == ()


def test_the_record_keeps_them() -> None:
    record = ablated()
    assert Capture.from_json(record.to_json()) == record
