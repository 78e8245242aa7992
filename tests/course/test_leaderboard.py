"""The class's table: its members, their order, and their names."""

from __future__ import annotations

import csv
import html
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from compile_lens import UsageError, course
from compile_lens.course.grade import __main__ as grader
from compile_lens.course.grade import figures, leaderboard
from compile_lens.course.grade.marks import Mark
from compile_lens.course.lessons import EXERCISES
from compile_lens.course.lessons.twelve import slow_block
from compile_lens.course.reference import made

pytestmark = pytest.mark.torch

WANTED = EXERCISES[leaderboard.KEY]
CLASS = {
    "Ada": Mark("right", (), (9, 5_000_000, 900.0)),
    "Bao": Mark("right", (), (8, 4_800_000, 1000.0)),
    "=Cleo": Mark("right", (), (9, 5_000_000, 700.0)),
    "Dan": Mark("right", (), (9, 5_100_000, None)),
    "<b>Eve": Mark("wrong", ("It does not compute what was required.",)),
}


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    yield
    course.language("en")


def test_launches_count_before_bytes_and_times_give_no_place() -> None:
    ranked = leaderboard.places(CLASS)
    assert [(one.number, one.student) for one in ranked] == [(1, "Bao"), (2, "=Cleo"), (2, "Ada"), (4, "Dan")]


def test_a_spreadsheet_computes_no_name(tmp_path: Path) -> None:
    leaderboard.write(CLASS, tmp_path / "table.csv")
    rows = list(csv.reader((tmp_path / "table.csv").read_text(encoding="utf-8").splitlines()))
    assert rows[0] == ["place", "student", "launches", "bytes", "microseconds"]
    assert rows[1:3] == [["1", "Bao", "8", "4800000", "1000.0"], ["2", "'=Cleo", "9", "5000000", "700.0"]]
    assert rows[4] == ["4", "Dan", "9", "5100000", ""]


@pytest.mark.parametrize(("language", "says"), [("en", "4 of 5 handed in"), ("zh", "5 份作业里，4 份上榜")])
def test_a_page_has_who_is_ranked_and_says_how(tmp_path: Path, language: str, says: str) -> None:
    course.language(language)
    for ending in ("html", "md", "txt"):
        leaderboard.write(CLASS, tmp_path / f"table.{ending}")
        page = html.unescape((tmp_path / f"table.{ending}").read_text(encoding="utf-8"))
        assert says in page and "Eve" not in page
        assert page.index("Bao") < page.index("=Cleo") < page.index("Ada") < page.index("Dan")
    leaderboard.write({"Eve": CLASS["<b>Eve"]}, tmp_path / "nobody.html")


def test_a_pseudonym_says_nothing_of_the_order() -> None:
    students = [f"s{number}" for number in range(40)]
    one, other = leaderboard.pseudonyms(students), leaderboard.pseudonyms(students)
    assert sorted(one.values()) == sorted(other.values()) and len({*one.values()}) == 40
    assert one != other and not {*one.values()} & {*students}


def test_a_place_that_cannot_be_written_is_named_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert grader.main([str(tmp_path), "--leaderboard", str(tmp_path / "table.pdf")]) == 2
    assert "use one of .html" in capsys.readouterr().err
    with pytest.raises(UsageError):
        leaderboard.check(tmp_path / "none" / "table.csv")


@pytest.mark.full
def test_only_right_numbers_of_one_graph_have_figures() -> None:
    scope: dict[str, object] = {}
    exec(WANTED.solution, scope)
    right = scope["f"]
    (launches, nbytes, microseconds), reasons = figures.measured(WANTED, right)
    assert (launches, reasons) == (9, []) and isinstance(nbytes, int) and nbytes <= 5_100_000
    if microseconds is not None:
        torch.compiler.reset()
        start = time.perf_counter()
        torch.compile(right)(*made(WANTED.inputs))
        assert microseconds < 1e6 * (time.perf_counter() - start) / 2, "a call, and not a compilation"
    for function, why in (
        (slow_block, "graph break"),
        (lambda x, *_: 2 * x, "It does not compute"),
        (None, ""),
    ):
        none, reasons = figures.measured(WANTED, function)
        assert none == () and why in " ".join(reasons) and reasons


@pytest.mark.full
def test_what_hides_in_an_operator_has_no_place() -> None:
    @torch.library.custom_op("leaderboard::hidden", mutates_args=())
    def hidden(
        x: torch.Tensor, qkv: torch.Tensor, out: torch.Tensor, up: torch.Tensor, down: torch.Tensor
    ) -> torch.Tensor:
        return slow_block(x, qkv, out, up, down)  # type: ignore[no-any-return]

    @hidden.register_fake
    def _(x: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    none, reasons = figures.measured(WANTED, lambda *inputs: hidden(*inputs))
    assert none == () and reasons == [
        "Not all bytes that it moves are known: one of its operators cannot be inspected."
    ]


@pytest.mark.exhaustive
def test_a_class_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handed_in = tmp_path / "class"
    handed_in.mkdir()
    for name, program in (("ada", WANTED.solution), ("bao", "def f(x, *_):\n    return x + 1")):
        code = (f"import torch\nfrom compile_lens import course\n{program}", 'course.check("12.4", f)')
        cells = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": one} for one in code]
        (handed_in / f"{name}.ipynb").write_text(json.dumps({"cells": cells}), encoding="utf-8")
    out = tmp_path / "table.csv"
    assert grader.main([str(handed_in), "--leaderboard", str(out), "--pseudonyms"]) == 0
    _, *rows = csv.reader(out.read_text(encoding="utf-8").splitlines())
    assert len(rows) == 1 and rows[0][2] == "9" and re.fullmatch(r"student [12]", rows[0][1])
    shown = capsys.readouterr().out
    assert f"1/2 ada ({rows[0][1]}): right" in shown and "2/2 bao" in shown and "wrong" in shown
