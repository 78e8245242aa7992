"""Targets side by side: rows by line, reasons for their differences, and no explanation of what was not observed."""

from __future__ import annotations

import dataclasses

import pytest
import samples_targets as made
from full_text import full
from samples import missing, nothing, sample

from compile_lens.errors import RecordError
from compile_lens.measures.compare.table import across
from compile_lens.measures.compare.target import TargetPhase
from compile_lens.measures.diff.side import Side
from compile_lens.measures.operators import base_name, called
from compile_lens.record.comparison import KINDS, UNEXPLAINED, Column, TargetDifference
from compile_lens.record.decision import Decision
from compile_lens.record.lowering import Pass, Rewrite
from compile_lens.results.capture import Capture
from compile_lens.results.comparison import Comparison

REFUSED = Decision("inference", ("op0",), ("op1",), False, 1, "different sizes", "numel", "64 against 3200")


def compared(*captures: made.Made, features: dict[str, tuple[str, ...] | None] | None = None) -> Comparison:
    known = features or {}
    return across("f", [Column(m.target, m.capture(), "", known.get(m.target)) for m in captures], Comparison)


def only(comparison: Comparison) -> TargetDifference:
    assert len(comparison.differences) == 1, [d.sentence for d in comparison.differences]
    return comparison.differences[0]


def said(difference: TargetDifference, target: str = "") -> str:
    return " | ".join(f.text for f in difference.facts if f.target == target)


def test_equal_captures_have_equal_rows_and_no_differences() -> None:
    found = Comparison.of(sample(), sample())
    assert [c.target for c in found.columns] == ["cpu", "cpu (2)"]
    assert found.rows and all(row.alike for row in found.rows) and not found.differences
    assert {row.phase for row in found.rows} == {"forward", "backward"}
    assert all(cell.kernels and cell.operators for row in found.rows for cell in row.cells)
    assert "Every line became the same kernels on each target" in full(found)


def test_a_pair_that_stayed_apart_says_why_and_what_is_one_elsewhere() -> None:
    found = compared(made.pair("h100", True), made.pair("mps", False, "metal", (REFUSED,)))
    difference = only(found)
    assert difference.kind == "fusion" and difference.places == ("model.py:1", "model.py:2")
    assert difference.sentence == "What is one kernel on h100 is several on mps."
    assert "k_op0 and k_op1 are not fused: They loop over different numbers of elements" in said(
        difference, "mps"
    )
    assert "64 against 3200" in said(difference, "mps")
    assert said(difference, "h100") == "k_op0_op1 does both, 2 loops fused into one"
    assert [row.alike for row in found.rows] == [False, False]


def test_loops_that_only_share_a_function_are_not_called_fused() -> None:
    shared = made.pair("cpu", False, "cpp", (REFUSED,))
    shared.kernels = (("cpp_0", "cpp", "reduction", ("op0", "op1")),)
    difference = only(compared(made.pair("h100", True), shared))
    assert difference.kind == "fusion" and "only share a function on cpu" in difference.sentence
    assert "cpp_0 runs loops one after the other: They loop over different" in said(difference, "cpu")
    assert said(difference, "h100") == "k_op0_op1 fuses both"


def test_two_launches_of_one_kernel_are_not_one_kernel() -> None:
    """The same code for two layers is launched twice: the work of one launch is not the work of the other."""
    twice = made.pair("cpu", False, "cpp")
    twice.kernels = (("cpp_0", "cpp", "reduction", ("op0", "op1")),)
    capture = twice.capture()
    (compilation,) = capture.compilations
    code = compilation.code["inference"]
    kernel = dataclasses.replace(code.kernels[0], launch_lines=(1, 2))
    stages = (*compilation.stages[:-1], dataclasses.replace(code, kernels=(kernel,)))
    capture = dataclasses.replace(capture, compilations=(dataclasses.replace(compilation, stages=stages),))
    assert [launch.groups for launch in TargetPhase("cpu", Side(capture), "inference").launches] == [
        ("op0",),
        ("op1",),
    ]
    found = across(
        "f", [Column("cpu", capture), Column("h100", made.pair("h100", True).capture())], Comparison
    )
    difference = only(found)
    assert difference.sentence == "What is one kernel on h100 is several on cpu."
    assert "cpp_0 and cpp_0 are not fused" in said(difference, "cpu")


def test_nodes_are_not_taken_for_those_of_another_graph_by_their_names() -> None:
    """If a line became other operators, the comparison does not claim that a kernel does the same."""
    other = made.pair("mps", False, "metal", (REFUSED,))
    other.handed = {
        **other.handed,
        "neg": ("aten.neg.default", 1, ("x",)),
        "exp": ("aten.exp.default", 2, ("x",)),
    }
    other.loops["op0"] = ("pointwise", "Pointwise", ("sin", "neg"), ("x",))
    other.loops["op1"] = ("reduction", "Reduction", ("sum", "exp"), ("op0",))
    found = compared(made.pair("h100", True), other)
    assert {d.kind for d in found.differences} == {"operators"}


def test_a_library_call_says_which_feature_the_backend_lacks() -> None:
    captures = (made.scan("cpu", True), made.scan("h100", False))
    difference = only(compared(*captures, features={"cpu": (), "h100": ("SCAN",)}))
    assert difference.kind == "library"
    assert difference.sentence == "aten.cumsum is a library call on cpu, and generated on h100."
    assert "BackendFeature.SCAN" in said(difference, "cpu") and "generates scans" in said(difference, "h100")


@pytest.mark.parametrize("features", [None, {"cpu": ("SCAN",), "h100": ("SCAN",)}])
def test_why_a_library_is_called_is_not_guessed(features: dict[str, tuple[str, ...] | None] | None) -> None:
    difference = only(compared(made.scan("cpu", True), made.scan("h100", False), features=features))
    assert "why a library is called was not seen" in said(difference, "cpu")
    assert "BackendFeature" not in said(difference, "cpu")


def test_a_split_reduction_is_told_with_its_steps_and_the_number_of_cores() -> None:
    found = compared(made.reduction("h100", True, 132), made.reduction("mps", False, 10))
    split = only(found)
    assert split.kind == "split" and split.sentence.startswith("A reduction is split on h100: ")
    assert "first Reduction sum over 10, for 5; then Reduction sum over 5" in said(split, "h100")
    assert said(split, "mps") == "in one step: Reduction sum over 50"
    assert "h100 132, mps 10" in said(split)


def test_a_second_reduction_that_also_reads_the_input_is_no_split() -> None:
    """As in a variance, the sum of squares needs the mean, and reads the input again."""
    two = made.reduction("h100", True)
    two.loops["op1"] = ("reduction", "Reduction sum over 50", ("sum",), ("op0", "x"))
    found = compared(two, made.reduction("mps", False))
    assert "split" not in {d.kind for d in found.differences}


def test_a_backend_that_never_splits_says_so() -> None:
    whole = {"cpu": ("REDUCE_TO_SINGLE_ELEMENT",), "h100": ()}
    found = compared(made.reduction("h100", True), made.reduction("cpu", False), features=dict(whole))
    assert "never splits one" in said(found.differences[0], "cpu")


def test_a_library_function_of_another_name_is_one_difference() -> None:
    difference = only(compared(made.attention("cpu", "flash_for_cpu"), made.attention("mps", "math_for_mps")))
    assert difference.kind == "library"
    assert said(difference, "cpu") == "aten.flash_for_cpu" and said(difference, "mps") == "aten.math_for_mps"


def test_a_pass_that_rewrote_one_target_is_named_and_near_misses_are_told() -> None:
    plain = made.pair("cpu", True)
    plain.passes = (
        Pass("inference.post_grad", "pass_pattern_1", 3, 3, (), ("unfuse: its condition said no",)),
    )
    other = made.pair("h100", True)
    other.lowered = {"mm": ("aten.mm.default", 1, ("x",)), "sum": ("aten.sum.dim_IntList", 2, ("mm",))}
    other.origins = {"mm": ("sin",)}
    other.loops["op0"] = ("pointwise", "Pointwise", ("mm",), ("x",))
    rewrite = Rewrite("unfuse", ("sin",), ("mm",))
    other.passes = (Pass("inference.post_grad", "pass_pattern_1", 3, 3, (rewrite,)),)
    other.groups, other.kernels = (("op0",), ("op1",)), (
        ("a", "triton", "pointwise", ("op0",)), ("b", "triton", "reduction", ("op1",)),
    )  # fmt: skip
    found = compared(plain, other)
    difference = next(d for d in found.differences if d.kind == "pattern")
    assert (
        difference.sentence
        == "Inductor's passes rewrote operators on h100, and left them as they were on cpu."
    )
    assert said(difference, "h100") == "aten.sin became aten.mm, by the pass pass_pattern_1, pattern unfuse"
    assert said(difference, "cpu") == "unfuse: its condition said no"


def test_other_operators_are_listed_without_what_all_have() -> None:
    other = made.pair("mps", True)
    other.handed = {**other.handed, "neg": ("aten.neg.default", 1, ("x",))}
    other.loops["op0"] = ("pointwise", "Pointwise", ("sin", "neg"), ("x",))
    other.kernels = (("a", "metal", "reduction", ("op0_op1",)), ("b", "metal", "reduction", ("op0_op1",)))
    difference = next(d for d in compared(made.pair("cpu", True), other).differences if d.kind == "operators")
    assert [str(f) for f in difference.facts] == ["mps: not on every target: aten.neg"]


def test_what_nothing_explains_is_said_to_be_unexplained() -> None:
    """There is one more kernel, and no decision, pass, operator or split explains it."""
    other = made.pair("mps", True)
    other.kernels = (*other.kernels, ("again", "metal", "reduction", ("op0_op1",)))
    difference = only(compared(made.pair("cpu", True), other))
    assert difference.kind == "unexplained" and difference.sentence == UNEXPLAINED and not difference.facts
    assert difference.places == ("model.py:1", "model.py:2")


def test_code_that_was_not_seen_is_told_as_the_reason() -> None:
    other = made.pair("mps", True)
    other.no_code = "the backend raised"
    found = compared(made.pair("cpu", True), other)
    difference = only(found)
    assert difference.kind == "unexplained"
    assert "stage inference.code was not seen: the backend raised" in said(difference, "mps")
    assert [cell.note for row in found.rows for cell in row.cells if cell.target == "mps"] == [
        "stage inference.code was not seen: the backend raised"
    ] * 2


def test_a_target_that_failed_is_a_column_with_its_reason_and_the_types_it_lacks() -> None:
    failed = made.pair("mps", True)
    failed.dtype, failed.device = "float64", "mps"
    columns = [
        Column("cpu", made.pair("cpu", True).capture()),
        Column("mps", failed.capture(), "f failed: KeyError: torch.float64"),
    ]
    found = across("f", columns, Comparison)
    assert list(found.captures) == ["cpu"] and list(found.failures) == ["mps"]
    difference = only(found)
    assert difference.kind == "failed" and "KeyError" in difference.facts[0].text
    assert "aten.sin at model.py:1: it is float64, a type that mps does not have" in said(difference, "mps")
    assert all(len(row.cells) == 1 for row in found.rows)


def test_functions_that_became_other_graphs_are_told_first() -> None:
    found = Comparison.of(sample(), nothing())
    assert found.differences[0].kind == "graphs"
    assert {f.target for f in found.differences[0].facts} == {"cpu", "cpu (2)"}
    assert Comparison.of(sample(), missing()).columns  # stages that were not observed raise nothing
    assert Comparison.of().rows == ()


def test_the_same_words_about_several_lines_stand_once() -> None:
    found = compared(made.pair("h100", True), made.pair("mps", False, "metal", (REFUSED,)))
    assert len(found.differences) == 1 and len(found.differences[0].places) == 2
    assert {d.kind for d in found.differences} <= set(KINDS)


def test_a_library_call_computes_what_it_is_named_after() -> None:
    """Inductor attributes the operands of a call to the call: here the line of the product is not one of the sort's."""
    capture = made.Made(
        "cpu",
        handed={"mul": ("aten.mul.Tensor", 1, ("x",)), "sort": ("aten.sort.default", 2, ("mul",))},
        loops={"op1": ("extern", "aten.sort.stable", ("mul", "sort"), ("x",))},
        groups=(("op1",),),
        kernels=(("torch.ops.aten.sort.stable", "extern", "extern", ("op1",)),),
    ).capture()
    (work,) = TargetPhase("cpu", Side(capture), "inference").works
    assert work.nodes == (("0/0", "sort"),) and work.called == "aten.sort.stable"
    assert base_name("aten.sort.stable") == base_name("aten.sort.default") == "sort"
    assert called("extern_kernels.mm#2") == "extern_kernels.mm"


def test_a_comparison_survives_its_json() -> None:
    found = compared(
        made.scan("cpu", True), made.scan("h100", False), features={"cpu": (), "h100": ("SCAN",)}
    )
    again = Comparison.from_json(found.to_json())
    assert again == found and again.to_json() == found.to_json()
    failed = across("f", [*found.columns, Column("mps", None, "no such thing")], Comparison)
    assert Comparison.from_json(failed.to_json()) == failed


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a comparison"),
        ("[]", "not a comparison"),
        ('{"format": "compile_lens capture"}', "its format is"),
        ('{"format": "compile_lens comparison", "schema_version": 9}', "version 9"),
        ('{"format": "compile_lens comparison", "schema_version": 1}', "lacks"),
    ],
)
def test_what_is_no_comparison_is_refused(text: str, said: str) -> None:
    with pytest.raises(RecordError, match=said):
        Comparison.from_json(text)


def test_a_record_without_lines_still_has_rows() -> None:
    def bare_of_lines(capture: Capture) -> Capture:
        compilations = tuple(
            dataclasses.replace(
                c,
                stages=tuple(
                    dataclasses.replace(s, nodes=tuple(dataclasses.replace(n, frames=()) for n in s.nodes))
                    if hasattr(s, "nodes")
                    else s
                    for s in c.stages
                ),
            )
            for c in capture.compilations
        )
        return dataclasses.replace(capture, compilations=compilations)

    found = Comparison.of(bare_of_lines(made.pair("a", True).capture()), made.pair("b", True).capture())
    assert "no Python line" in {row.place for row in found.rows}
