"""Remedies that are settings, by the causes of a program; the ones that help; and what each output format shows."""

from __future__ import annotations

import dataclasses

import pytest

from compile_lens import Program
from compile_lens.cli.remedies import compare
from compile_lens.measures.remedies import helped, remedies, run_figures
from compile_lens.record.breaks import BREAK, Ending
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import DynamicDim
from compile_lens.record.graph import Frame
from compile_lens.record.missing import Missing
from compile_lens.record.program import (
    COMPILED,
    LIMIT,
    Break,
    FailedGuard,
    FrameEvaluation,
    ProgramFrame,
    ProgramGraph,
    ProgramRecord,
    Recompilation,
)
from compile_lens.record.remedies import EagerPart, ProgramRemedies, Remedy, RemedyRun, RunFigures
from compile_lens.trials.remedies import Attempt, tried

SIZE = FailedGuard("0/0", "tensor 'x' size mismatch at index 1. expected 5, actual 9", "x.size(1)", "5", "9")


def environment(torch: str = "2.13.0") -> Environment:
    return Environment("0.1", torch, "", "3.11", "Linux", "cpu", "")


def evaluation(number: int, failed: FailedGuard | None = None, **more: object) -> FrameEvaluation:
    again = None if failed is None else Recompilation((failed,), number, 8, dynamic=more.pop("dynamic", ()))  # type: ignore[arg-type]
    return FrameEvaluation(
        **{"outcome": COMPILED, "id": f"0/{number}", "graphs": (number,), "number": number} | more,  # type: ignore[arg-type]
        recompilation=again,
    )


def program(*evaluations: FrameEvaluation, torch: str = "2.13.0", resume: int | None = None) -> ProgramRecord:
    frame = ProgramFrame("f", "t.py", 3, resume, evaluations=evaluations)
    graphs = tuple(ProgramGraph(n, f"0/{n}", 1) for n in range(len(evaluations)))
    return ProgramRecord("t.py", environment(torch), frames=(frame,), graphs=graphs)


def codes(record: ProgramRecord) -> list[str]:
    return [remedy.code for remedy, _ in remedies(record)]


def test_a_size_is_made_dynamic_and_marked_at_its_function() -> None:
    dims = (
        DynamicDim(source="L['x'].size(1)", symbol="s0"),
        DynamicDim(source="L['y'].size(0)", symbol="s1"),
    )
    record = program(evaluation(0), evaluation(1, SIZE, dynamic=dims))
    mark = "torch._dynamo.mark_dynamic(x, 1); torch._dynamo.mark_dynamic(y, 0) before the call of f (t.py:3)"
    assert codes(record) == ["torch.compile(…, dynamic=True)", mark]
    assert [numbers for _, numbers in remedies(record)] == [(1,), (1,)]
    after_break = program(evaluation(0), evaluation(1, SIZE), resume=5)
    assert codes(after_break) == ["torch.compile(…, dynamic=True)"], "no argument of it can be marked"


@pytest.mark.parametrize(
    ("reason", "line", "expected"),
    [
        (
            "Unsupported Tensor.item() call with capture_scalar_outputs=False",
            "x.item()",
            "torch._dynamo.config.capture_scalar_outputs = True",
        ),
        (
            "Dynamic shape operator (no meta kernel)\n set capture_dynamic_output_shape_ops",
            "x.nonzero()",
            "torch._dynamo.config.capture_dynamic_output_shape_ops = True",
        ),
        (
            "Failed to trace builtin operator",
            "print('a', y)",
            "torch._dynamo.config.reorderable_logging_functions.update({print})",
        ),
        ("Unsupported", "self.print(y); pprint(y)", ""),
        ("Data-dependent branching", "if x.sum() > 0:", ""),
    ],
)
def test_breaks(reason: str, line: str, expected: str) -> None:
    ending = Ending(BREAK, reason, (Frame("t.py", 4, "f", line),))
    assert codes(program(evaluation(0, breaks=(Break(ending),)))) == ([expected] if expected else [])


@pytest.mark.parametrize("torch", ["2.12.1", "2.13.0+cpu", "2.15.0"])
def test_a_limit_is_raised_and_functions_that_share_code_are_separated(torch: str) -> None:
    values = [FailedGuard(f"0/{n}", f"k == {n}", "k", f"'{n}'", f"'{n + 1}'") for n in range(8)]
    forms = [evaluation(n, values[n - 1] if n else None, compiled_function=n + 1) for n in range(8)]
    refused = evaluation(8, values[7], outcome=LIMIT, limit="recompile_limit", graphs=(), compiled_function=9)
    expected = ["torch._dynamo.config.recompile_limit = 64"]
    if torch != "2.12.1":
        expected.insert(0, "torch.compile(…, isolate_recompiles=True)")
    assert sorted(codes(program(*forms, refused, torch=torch))) == sorted(expected)


def test_what_helps() -> None:
    part = EagerPart("recompile limit", None, "f")
    base = RunFigures(4, 2, 3, (part,))
    remedy = (Remedy("dynamic", "torch.compile(…, dynamic=True)"),)

    def of(*figures: object, agrees: bool | None = True) -> bool:
        return helped(RemedyRun(remedy, RunFigures(*figures), agrees), base)  # type: ignore[arg-type]

    assert of(9, 5, 9, ()) and of(4, 1, 9, (part,)) and of(4, 2, 2, (part,), agrees=None)
    assert not of(4, 2, 3, (part,)) and not of(1, 0, 0, (part, part)) and not of(1, 0, 0, (), agrees=False)
    assert not of(1, 0, 0, None) and not helped(RemedyRun(remedy, missing=Missing("run", "late")), base)


def attempt(record: ProgramRecord | None, text: str = "1.0\n", code: int = 0) -> Attempt:
    return Attempt(record, 1.0, (code, text), "it ran past its time limit" if record is None else "")


def test_a_run_that_failed_is_never_shown_as_if_it_had_been() -> None:
    record = program(evaluation(0), evaluation(1, SIZE))
    better = program(evaluation(0))

    def launch(settings: tuple[Remedy, ...], seconds: float) -> Attempt:
        return attempt(None if settings[0].kind == "dynamic" else better)

    outcome = tried(record, attempt(record), launch, compare, "output and exit code")
    dynamic, marked = outcome.runs
    assert dynamic.figures is None and dynamic.missing is not None and marked.figures == run_figures(better)
    assert outcome.together is None and outcome.count == 3
    shown = Program(lambda: dataclasses.replace(record, remedies=outcome))
    for text in (shown.text(), shown.text("full"), str(shown.brief())):
        words = " ".join(text.split())
        assert "not run" in words and "it ran past its time limit" in words
        assert "1 of 2 settings helped" in words and "all that helped" not in words
    assert Program.from_json(shown.to_json()).record == shown.record


def test_nothing_is_run_where_no_setting_may_help() -> None:
    record = dataclasses.replace(program(evaluation(0)), remedies=ProgramRemedies(count=1))
    assert "no cause has a setting that may help" in " ".join(Program(lambda: record).text().split())


@pytest.mark.parametrize(
    ("base", "one", "again", "agrees"),
    [
        ("loss 1.00001\n", "loss 1.00002\n", None, True),
        ("loss 1.0\n", "loss 1.1\n", None, False),
        ("step 1\n", "step 2\n", None, False),
        ("step 1\n", "stop 1\n", None, False),
        ("a\n", "a\nb\n", None, False),
        ("", "", None, True),
        ("id 5\nloss 2.0\n", "id 6\nloss 2.0\n", "id 7\nloss 2.0\n", True),
        ("id 5\nloss 2.0\n", "id 6\nloss 3.0\n", "id 7\nloss 2.0\n", False),
        ("id 5\n", "id 6\n", "id 7\n", None),
        ("nan\n", "1.0\n", None, False),
        ("1e-9 0.0\n", "2e-9 0.0\n", None, True),
    ],
)
def test_outputs(base: str, one: str, again: str | None, agrees: bool | None) -> None:
    third = None if again is None else attempt(None, again)
    assert compare(attempt(None, base), attempt(None, one), third)[0] is agrees
    assert compare(attempt(None, base), attempt(None, base, 3), None)[0] is False
