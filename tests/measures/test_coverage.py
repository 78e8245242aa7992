"""Coverage on small records made by hand, in which every line can be counted."""

from __future__ import annotations

import dataclasses

import pytest
from full_text import full
from samples import FILE, sample

from compile_lens.measures.coverage import Coverage, PhaseCoverage, coverage
from compile_lens.record import claims
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import Compilation, Stage
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.record.kernel import LINE_FORMS, NO_LINES, UNSAID, Code, Kernel, LineOrigin
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture

ENVIRONMENT = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpp")
FRAMES = (Frame(FILE, 5, "f"),)


def kernel(*lines: LineOrigin, **more: object) -> Kernel:
    values: dict[str, object] = {
        "name": "k",
        "phase": "inference",
        "language": "cpp",
        "kind": "pointwise",
        "source": "text",
        "origins": ("sin",),
        "lines": lines,
    }
    return Kernel(**{**values, **more})  # type: ignore[arg-type]


def made(
    *kernels: Kernel, stages: tuple[Stage, ...] | None = None, not_observed: tuple[Missing, ...] = ()
) -> Capture:
    nodes = (
        Node("sin", "call_function", "aten.sin.default", frames=FRAMES),
        Node("made", "call_function", "aten.copy", no_origin="made by a pass"),
    )
    before = (Graph("post_grad", "inference", "inference", nodes, ""),) if stages is None else stages
    code = Code("inference", "text", "generated only", "cpu", kernels)
    return Capture(
        "f",
        ENVIRONMENT,
        compilations=(Compilation("0/0", "f", FILE, 1, (*before, code)),),
        not_observed=not_observed,
    )


def test_lines_that_compute_are_counted_and_the_rest_explained() -> None:
    found = coverage(
        made(
            kernel(
                LineOrigin(1, (), "include"),
                LineOrigin(2, (), "loop header"),
                LineOrigin(3, ("sin",)),
                LineOrigin(4, ("made", "sin")),
                LineOrigin(5, ("made",)),
                LineOrigin(6, (), UNSAID),
                LineOrigin(8, (), "include"),
            )
        )
    )
    assert found.phases == (PhaseCoverage("inference", 4, 2, 1, 1),)
    assert found.total == PhaseCoverage("total", 4, 2, 1, 1)
    assert found.total.line_share == 0.5 and found.total.kernel_share == 1
    assert found.reasons == (("include", 2), (UNSAID, 1), ("loop header", 1), ("made by a pass", 1))
    assert found.unexplained == ((UNSAID, 1), ("made by a pass", 1))
    assert found.uncovered == ()
    assert "lines 2 of 4 (50.0 %)" in full(found)
    assert "made by a pass" in full(found) and "include 2" in full(found)


def test_an_origin_that_the_record_does_not_hold_reaches_nothing() -> None:
    found = coverage(made(kernel(LineOrigin(1, ("cos",)))))
    assert (found.total.lines, found.total.reached) == (1, 0)
    ((why, count),) = found.unexplained
    assert "'cos'" in why and count == 1


def test_a_missing_stage_is_the_reason() -> None:
    missing = Missing("inference.post_grad", "torch 9.9 lacks the hook x")
    found = coverage(made(kernel(LineOrigin(1, ("sin",)), LineOrigin(2, ("sin",))), stages=(missing,)))
    assert (found.total.lines, found.total.reached) == (2, 0)
    ((why, count),) = found.unexplained
    assert "lacks the hook x" in why and count == 2


@pytest.mark.parametrize(
    ("kind", "said"), [("template", "template"), ("user-written", "own"), ("pointwise", "not followed")]
)
def test_kernels_without_lines_are_told(kind: str, said: str) -> None:
    lost = Missing(claims.KERNEL_LINES, "torch 9.9 lacks the hook x")
    note = f"{NO_LINES}: {lost.reason}"
    found = coverage(made(kernel(kind=kind), not_observed=(lost,)))
    assert found.total == PhaseCoverage("total", 0, 0, 1, 1, 1)
    assert found.total.line_share is None
    assert found.notes == (note,)
    (lost,) = found.uncovered
    assert said in lost
    assert note in full(found) and "1 not followed" in full(found)


def test_kernels_that_reach_nothing_are_named() -> None:
    adrift = kernel(origins=("made",), language="extern", source="", name="mm")
    without = kernel(origins=(), language="extern", source="", name="bmm", no_origin="nobody said")
    found = coverage(made(adrift, without))
    assert found.total.kernels == 2 and found.total.kernels_reached == 0
    assert [line.partition(":")[0] for line in found.uncovered] == ["inference mm", "inference bmm"]
    assert "nobody said" in found.uncovered[1]


def test_phases_stand_side_by_side() -> None:
    coverage = sample().coverage()
    assert isinstance(coverage, Coverage)
    assert [c.name for c in coverage.phases] == ["forward", "backward"]
    total = coverage.total
    for name in ("lines", "reached", "kernels", "kernels_reached", "untraced"):
        assert getattr(total, name) == sum(getattr(c, name) for c in coverage.phases)
    assert full(coverage).startswith("forward: ") and "\ntotal: " in full(coverage)


def test_two_compilations_add_up() -> None:
    one = made(kernel(LineOrigin(1, ("sin",))))
    other = dataclasses.replace(one.compilations[0], id="1/0")
    found = coverage(dataclasses.replace(one, compilations=(*one.compilations, other)))
    assert found.phases == (PhaseCoverage("inference", 2, 2, 2, 2),)


def test_nothing_captured() -> None:
    found = coverage(Capture("f", ENVIRONMENT))
    assert found == Coverage((), PhaseCoverage("total"))
    assert full(found) == "no code was generated"


def test_forms_are_words_for_a_reader() -> None:
    assert UNSAID not in LINE_FORMS
    assert all(form == form.strip().lower() for form in LINE_FORMS)
