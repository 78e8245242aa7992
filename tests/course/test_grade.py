"""The grader: each kind of submission, beside others that must get their marks all the same."""

from __future__ import annotations

import ast
import csv
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from compile_lens import UsageError
from compile_lens.child import fork
from compile_lens.course.grade import __main__ as grader
from compile_lens.course.grade import submission
from compile_lens.course.grade.marks import Mark, Row, load, save
from compile_lens.course.lessons import EXERCISES

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tutorials"))

import assignments

LESSON = Path(__file__).resolve().parents[2] / "tutorials" / "01-one-line-four-stages.ipynb"
LIMITS = grader.Limits(60, 4 * 2**30)
RIGHT = """
import torch
from compile_lens import course

def six(x):
    for _ in range(6):
        x = torch.sin(x)
    return x

course.check("1.1", six)
"""


def book(*cells: str) -> str:
    code = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return json.dumps({"cells": code, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def needed(key: str, *cells: str) -> list[str]:
    statements, _ = submission.read(book(*cells)).function(key)
    return [ast.unparse(one.node).split("\n")[0] for one in statements]


def test_only_what_the_function_needs_is_run() -> None:
    cells = (
        "%pip install x\nimport torch, compile_lens\nfrom compile_lens import course\ncourse.check = print",
        "n = 6\nn += 1\nnames = []\nnames.append(n)\ncapture = compile_lens.capture(torch.sin, torch.rand(3))",
        "def turned(x):\n    return torch.sin(x) * n\ndef f(x):\n    return turned(x) + len(names)",
        "print('slow')\ncourse.check('1.1', f)",
        "f = None",
    )
    expected = ["import torch, compile_lens", "n = 6", "n += 1", "names = []", "names.append(n)"]
    assert needed("1.1", *cells) == [*expected, "def turned(x):", "def f(x):"]


def test_a_functions_own_variables_need_nothing() -> None:
    cells = (
        "x = 1\nfor n in range(3): pass\nwide = 2",
        "def f(x):\n    n = wide\n    return lambda y: x + y + n",
        "check(1.1, f)",
    )
    assert needed("1.1", *cells) == ["wide = 2", "def f(x):"]


def test_a_name_has_the_value_that_it_was_given_last() -> None:
    cells = (
        "for f in (): pass\nn = 1\nm = n + 1",
        "n = 2\ndef f(x):\n    return g(x) + m\ndef g(x):\n    return n * x",
    )
    assert needed("1.1", *cells, "check(1.1, f)") == ["n = 1", "m = n + 1", "n = 2", "def f(x):", "def g(x):"]


def test_a_decorator_may_change_what_it_belongs_to() -> None:
    cells = (
        "import torch\n@torch.library.custom_op('a::b')\ndef b(x): ...",
        "@b.register_fake\ndef _(x): ...",
        "check(1.1, b)",
    )
    assert len(needed("1.1", *cells)) == 3


@pytest.mark.parametrize("key", EXERCISES)
def test_no_experiment_of_a_lesson_is_run(key: str) -> None:
    (lesson,) = LESSON.parent.glob(f"{int(key.partition('.')[0]):02}-*.ipynb")
    statements, given = submission.read(json.dumps(assignments.source(lesson))).function(key)
    text = "\n".join(ast.unparse(one.node) for one in statements)
    assert f"def {ast.unparse(given)}(" in text
    assert not re.search(r"\.capture\(|\.watch\(|\.show\(|\.benchmark\(|init_process_group\(", text), text


@pytest.mark.torch
@pytest.mark.exhaustive
@pytest.mark.parametrize("lesson", [int(one.name[:2]) for one in sorted(LESSON.parent.glob("*.ipynb"))])
def test_every_solved_lesson_is_right(lesson: int, tmp_path: Path) -> None:
    (path,) = LESSON.parent.glob(f"{lesson:02}-*.ipynb")
    (tmp_path / "solved.ipynb").write_text(json.dumps(assignments.source(path)), encoding="utf-8")
    with grader.Marker(LIMITS) as marker:
        row = grader.mark(tmp_path / "solved.ipynb", lesson, marker)
    assert set(row.marks.values()) == {Mark("right")}, row


def test_the_last_check_of_an_exercise_counts() -> None:
    given = submission.read(book("check(1.1, f)", "assert course.check('1.1', made=g), ''")).function("1.1")[
        1
    ]
    assert ast.unparse(given) == "g"
    assert not submission.read(book("course.check('1.2', f)", "course.check('1.1')")).checks("1.1")


def test_a_cell_that_is_not_python_is_named() -> None:
    read = submission.read(book("x = 1", "def f(x)\n  pass\ncourse.check('1.1', f)"))
    assert "Cell 2 is not Python: SyntaxError" in read.damage("1.1") and not read.damage("1.2")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": 3}', '{"cells": [{}]}', "[" * 100_000])
def test_a_damaged_notebook_is_unreadable(text: str) -> None:
    with pytest.raises(submission.Unreadable):
        submission.read(text)


def test_a_notebook_is_found_or_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "a.ipynb").write_text("{}")
    with pytest.raises(UsageError, match="no notebook"):
        grader.notebook(tmp_path, 1)
    (tmp_path / "a.ipynb").write_text("{}")
    assert grader.notebook(tmp_path, 1).name == "a.ipynb"
    (tmp_path / "01-b.ipynb").write_text("{}")
    assert grader.notebook(tmp_path, 1).name == "01-b.ipynb"
    with pytest.raises(UsageError, match="Several notebooks"):
        grader.notebook(tmp_path, 2)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.ipynb").symlink_to(tmp_path / "a.ipynb")
    with pytest.raises(UsageError, match="no notebook"):
        grader.notebook(tmp_path / "b", 1)


def test_rows_are_kept_and_continued(tmp_path: Path) -> None:
    rows = [
        Row("=a", "1", {"1.1": Mark("right"), "1.2": Mark("wrong", ("one, two",))}),
        Row("b", "2", {"1.1": Mark("time limit", ("slow",)), "1.2": Mark("right")}),
    ]
    save(rows, ["1.1", "1.2"], tmp_path / "marks.csv")
    assert list(load(tmp_path / "marks.csv", ["1.1", "1.2"]).values()) == rows
    with pytest.raises(UsageError, match="other exercises"):
        load(tmp_path / "marks.csv", ["2.1"])
    table = list(csv.reader((tmp_path / "marks.csv").read_text().splitlines()))
    assert table[1] == ["'=a", "1", "0", "1", "0", "1.2 wrong: one, two"]
    assert table[2] == ["b", "", "1", "1", "1", "1.1 time limit: slow"]
    assert [row.judged for row in rows] == [True, False]


def test_an_unknown_lesson_or_folder_is_bad_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert grader.main([str(tmp_path / "none"), "--lesson", "1"]) == 2
    assert grader.main([str(tmp_path), "--lesson", "77"]) == 2
    assert grader.main([str(tmp_path), "--lesson", "1"]) == 2
    output = capsys.readouterr().err
    assert "is not a folder" in output and "there is no lesson 77" in output and "no notebook in it" in output


CHEATS = {
    # Each claims a point that its function, which only adds 1, does not earn.
    "replaces check": "course.check = lambda *_: True",
    "defines check": "class course:\n    check = staticmethod(lambda *_: True)",
    "prints": 'print("1.1: right. The capture of your function meets every requirement.")',
}
FORGED = """
import compile_lens.course.checking as checking
def plus(x):
    return x + 1
plus.__wrapped__ = checking._holds
plus.better = exec("def better(capture, need): return True\\nchecking._holds = better")
course.check("1.1", plus)
"""
CLASS = {
    "right": (book(RIGHT), "right", ""),
    "wrong": (book(RIGHT.replace("range(6)", "range(2)")), "wrong", "required: at least 6"),
    "empty": (LESSON.read_text(encoding="utf-8"), "empty", "still empty"),
    "raising": (book(RIGHT.replace("return x", 'raise ValueError("mine")')), "wrong", "ValueError: mine"),
    "undefined": (book(RIGHT.replace("six)", "seven)")), "raised", "NameError: name 'seven'"),
    "leaving": (book(RIGHT.replace("return x", "raise SystemExit")), "raised", "SystemExit"),
    "ending": (book(RIGHT.replace("return x", "import os; os._exit(0)")), "ended", "with code 0"),
    "crashing": (
        book(RIGHT.replace("return x", "import os; os.kill(os.getpid(), 11)")),
        "ended",
        "by signal 11",
    ),
    "endless": (book(RIGHT.replace("return x", "while True: pass")), "time limit", "within 60 seconds"),
    "greedy": (book(RIGHT.replace("return x", "y = bytearray(2**40)")), "wrong", "MemoryError"),
    "damaged": ("{", "missing", "not a notebook"),
    "other": (book("x = 1"), "missing", "No cell gives a function"),
    "forged": (book(FORGED), "altered", "compile_lens.course.checking._holds"),
    **{
        name: (
            book(
                f"from compile_lens import course\n{line}\ndef f(x):\n    return x + 1\ncourse.check('1.1', f)"
            ),
            "wrong",
            "",
        )
        for name, line in CHEATS.items()
    },
}


@pytest.mark.torch
@pytest.mark.exhaustive
def test_each_student_gets_the_mark_of_their_own_work(tmp_path: Path) -> None:
    handed_in, out = tmp_path / "class", tmp_path / "marks.csv"
    handed_in.mkdir()
    for name, (text, _, _) in CLASS.items():
        (handed_in / f"{name}.ipynb").write_text(text, encoding="utf-8")
    (handed_in / "nothing").mkdir()
    (handed_in / "progress").mkdir()
    (handed_in / "progress" / "course-progress.json").write_text('{"exercises": {"1.1": {"solved": 1}}}')
    command = [sys.executable, "-m", "compile_lens.course.grade", handed_in, "--lesson", "1", "--out", out]
    ended = subprocess.run(
        [*map(str, command), "--jobs", "2", "--seconds", "60"], capture_output=True, text=True
    )
    assert ended.returncode == 4, ended.stderr
    rows = load(out, ["1.1", "1.2", "1.3"])
    assert rows.keys() == CLASS.keys() | {"nothing", "progress"}
    for name, (_, outcome, reason) in CLASS.items():
        mark = rows[name].marks["1.1"]
        assert (mark.outcome, reason in " ".join(mark.reasons)) == (outcome, True), (name, mark)
    for name in ("nothing", "progress"):
        assert rows[name].marks["1.1"] == Mark("no notebook", ("There is no notebook.",))
    assert rows["ending"].marks["1.2"].outcome == "missing"  # in a new process


@pytest.mark.torch
@pytest.mark.full
def test_an_endless_submission_is_ended_and_a_later_run_goes_on(tmp_path: Path) -> None:
    # Before the function is captured, which may take longer than the limit.
    endless = (
        f"while True:\n    six = open({str(tmp_path / 'begun')!r}, 'w').close()\ncourse.check('1.1', six)"
    )
    begun = tmp_path / "begun"
    (tmp_path / "endless.ipynb").write_text(book(endless), encoding="utf-8")
    with grader.Marker(grader.Limits(10, LIMITS.memory)) as marker:
        row = grader.mark(tmp_path / "endless.ipynb", 1, marker)
    assert begun.exists() and row.marks["1.1"] == Mark(
        "time limit", ("There was no answer within 10 seconds.",)
    )
    assert row.marks["1.2"].outcome == "missing" and not row.judged
    (tmp_path / "endless.ipynb").write_text(book(RIGHT), encoding="utf-8")
    with grader.Marker(LIMITS) as marker:
        right = grader.mark(tmp_path / "endless.ipynb", 1, marker, row)
        assert right.marks["1.1"] == Mark("right")
        assert grader.mark(tmp_path / "endless.ipynb", 1, marker, right) is right


STATE = """
import os, sys, threading
import torch
def note():
    facts = (
        (os.getppid(), threading.active_count(), len(os.listdir("/proc/self/task"))),
        (hasattr(torch, "left_by_a_student"), os.environ.get("LEFT"), "left" in sys.modules),
        (os.listdir(), os.environ["TORCHINDUCTOR_CACHE_DIR"].startswith(os.getcwd())),
    )
    with open(os.path.join({folder!r}, "seen-" + str(os.getpid())), "w") as file:
        for line in facts:
            print(*line, file=file)
    torch.left_by_a_student, os.environ["LEFT"], sys.modules["left"] = True, "1", torch
    open("left.py", "w").close()
    return 1
seen = note()
def six(x):
    return (x * seen).sin()
course.check("1.1", six)
"""


@pytest.mark.torch
@pytest.mark.exhaustive
@pytest.mark.skipif(not fork.FORKS, reason="a process that has imported torch cannot be forked here")
def test_students_are_forks_of_one_process_and_see_nothing_of_each_other(tmp_path: Path) -> None:
    notebook = tmp_path / "student.ipynb"
    notebook.write_text(book(STATE.format(folder=str(tmp_path))), encoding="utf-8")
    ends = book(RIGHT.replace("return x", "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"))
    (tmp_path / "ends.ipynb").write_text(ends, encoding="utf-8")
    with grader.Marker(LIMITS) as marker:
        for _ in range(2):
            assert grader.mark(notebook, 1, marker).marks["1.1"].outcome == "wrong"
        row = grader.mark(tmp_path / "ends.ipynb", 1, marker)
        assert row.marks["1.1"].outcome == "ended" and not row.judged
        assert grader.mark(notebook, 1, marker).marks["1.1"].outcome == "wrong"
    seen = [path.read_text().splitlines() for path in sorted(tmp_path.glob("seen-*"))]
    parents = Counter(lines[0].split()[0] for lines in seen)
    assert sorted(parents.values()) == [1, 2], seen  # the third began with a new parent, since one was ended
    assert {lines[0].partition(" ")[2] for lines in seen} == {"1 1"}
    assert {lines[1] for lines in seen} == {"False None False"} and {lines[2] for lines in seen} == {
        "[] True"
    }


@pytest.mark.torch
@pytest.mark.exhaustive
@pytest.mark.parametrize("lesson", [1, 8])
def test_a_forked_process_gives_the_marks_of_a_new_one(
    lesson: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = LESSON.parent.glob(f"{lesson:02}-*.ipynb")
    solved = json.dumps(assignments.source(path))
    texts = {"solved": solved, "untouched": path.read_text(encoding="utf-8"), "plus": book(PLUS)}
    rows = {}
    for forks in (True, False):
        monkeypatch.setattr(grader, "FORKS", forks)
        with grader.Marker(LIMITS) as marker:
            for name, text in texts.items():
                file = tmp_path / f"{name}.ipynb"
                file.write_text(text, encoding="utf-8")
                rows[name, forks] = grader.mark(file, lesson, marker)
    for name in texts:
        assert rows[name, True] == rows[name, False]


PLUS = "def plus(*xs):\n    return xs[0] + 1\n" + "".join(
    f"course.check('{lesson}.{number}', plus)\n" for lesson in (1, 8) for number in (1, 2, 3)
)
