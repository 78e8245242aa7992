"""The tests and cases that each tier runs; a nightly run continues where it was stopped."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import nightly
import pytest
from nightly import Again, Nightly
from passed import depends_on_triton, in_report, passed
from tiers import EXHAUSTIVE, FEW, FULL, NOT_QUICK, ONE, QUICK, TIERS, Case, chosen, file_is_excluded


def cases(test: str, count: int, *marks: str, **limits: int) -> list[Case]:
    return [Case(f"{test}[{n}]", frozenset(marks), limits) for n in range(count)]


def test_each_tier_runs_all_that_the_one_before_it_does() -> None:
    every = [
        *cases("a::plain", 9),
        *cases("a::compiles", 9, "torch"),
        *cases("a::limited", 99, "torch", quick=5, full=20),
        *cases("a::partly", 40, "torch", full=8)[:4],
        *cases("a::partly", 40, "torch", "full", full=8)[4:],
        *cases("a::dear", 9, "torch", "exhaustive"),
        *cases("a::pages", 9, "torch", "browser"),
        *cases("a::themes", 9, "torch", "browser", full=2),
        *(Case(f"a::{mark}", frozenset({mark})) for mark in sorted(NOT_QUICK)),
    ]
    quick, full, exhaustive = (chosen(every, tier) for tier in TIERS)
    assert quick <= full <= exhaustive == {case.id for case in every}
    numbers = [
        [sum(name.startswith(f"a::{test}[") for name in tier) for tier in (quick, full, exhaustive)]
        for test in ("plain", "compiles", "limited", "partly", "dear", "pages", "themes")
    ]
    assert numbers == [
        *([9, 9, 9], [FEW, 9, 9], [5, 20, 99], [FEW, 8, 40], [0, 0, 9]),
        *([0, ONE, 9], [0, 2, 9]),
    ]
    assert not quick & {f"a::{mark}" for mark in NOT_QUICK}


@pytest.mark.parametrize(
    ("marks", "tiers"),
    [
        ("pytest.mark.slow", (QUICK,)),
        ("[pytest.mark.torch, pytest.mark.browser]", (QUICK,)),
        ("[\n    pytest.mark.torch,\n    pytest.mark.exhaustive,\n]", (QUICK, FULL)),
        ('[pytest.mark.torch, pytest.mark.usefixtures("full")]', ()),
    ],
)
def test_a_file_whose_marks_exclude_all_its_tests_is_not_imported(marks: str, tiers: tuple[str, ...]) -> None:
    text = f"import pytest\n\npytestmark = {marks}\n\n\n@pytest.mark.full\ndef test_a(): ...\n"
    assert tuple(tier for tier in TIERS if file_is_excluded(text, tier)) == tiers
    assert not file_is_excluded(text.partition("pytestmark")[0] + text.partition("\n\n\n")[2], QUICK)


REPORT = """<testsuites><testsuite name="pytest">
<testcase classname="tests.a.test_b" name="test_c[x::y[0]/z]" time="1"/>
<testcase classname="tests.a.test_b.TestD" name="test_e" time="1"><system-out>text</system-out></testcase>
<testcase classname="tests.a.test_b" name="test_skipped" time="1"><skipped message=""/></testcase>
<testcase classname="tests.a.test_b" name="test_failed" time="1"><failure message=""/></testcase>
<testcase classname="tests.a.test_b" name="test_torn_down" time="1"><error message=""/></testcase>
</testsuite></testsuites>"""


def test_what_passed_is_known_from_a_report(tmp_path: Path) -> None:
    names = ("test_c[x::y[0]/z]", "TestD::test_e")
    assert passed(REPORT) == {in_report(f"tests/a/test_b.py::{name}") for name in names}
    text, torch = tmp_path / "test_f.py", frozenset({"torch"})
    text.write_text("capture(f, target='H100')")
    assert depends_on_triton(torch, text) and not depends_on_triton(frozenset(), text)
    text.write_text("capture(f)")
    assert not depends_on_triton(torch, text)


@pytest.mark.full
def test_a_run_leaves_out_what_passed_in_another(tmp_path: Path) -> None:
    root, report = Path(__file__).resolve().parents[2], tmp_path / "report.xml"
    files = ["tests/project/test_costs.py", "tests/record/test_syntax.py"]

    def run(*words: str) -> str:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *words]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600).stdout

    some = run("-k", "not slowest", f"--junitxml={report}", *files)
    assert " passed, 1 deselected" in some, some
    others = run(f"--passed={report}", "--collect-only", *files)
    assert [line for line in others.splitlines() if "::" in line] == [
        "tests/project/test_costs.py::test_the_slowest_case_of_a_test_counts"
    ]


def test_a_new_case_changes_no_other_turn() -> None:
    before, after = (chosen(cases("a::b", n, "torch"), QUICK) for n in (50, 51))
    assert len(before - after) <= 1


def run(
    root: Path, outcomes: dict[str, str], exit_code: int, of: type[Nightly] | type[Again] = Nightly
) -> Nightly | Again:
    """Return a run in which tests end like this."""
    plugin = of(root)
    for name, outcome in outcomes.items():
        for when in ("setup", "call", "teardown"):
            report: Any = SimpleNamespace(
                nodeid=name, when=when, outcome=outcome if when == "call" else "passed"
            )
            plugin.pytest_runtest_logreport(report)
    plugin.pytest_sessionfinish(SimpleNamespace(shouldfail=False, shouldstop=False), exit_code)  # type: ignore[arg-type]
    return plugin


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(
        nightly, "tested", lambda _: {"commit": "c0ffee", "torch": "2.13.0", "python": "3.11.7"}
    )
    (tmp_path / "tests").mkdir()
    return tmp_path


def test_a_run_that_was_stopped_goes_on_where_it_was(root: Path) -> None:
    run(root, {"tests/a.py::b": "passed", "tests/a.py::c[1]": "failed"}, pytest.ExitCode.INTERRUPTED)
    assert not (root / nightly.RESULT).exists()
    with (root / nightly.PROGRESS).open("a") as file:
        file.write('{"id": "tests/a.py::half')  # it was killed while writing
    node = SimpleNamespace(workerinput={})
    Nightly(root).pytest_configure_node(node)
    assert node.workerinput["finished"] == ["tests/a.py::b", "tests/a.py::c[1]"]
    run(root, {"tests/d.py::e": "skipped"}, pytest.ExitCode.OK)
    result = json.loads((root / nightly.RESULT).read_text())
    a, d = result["tests/a.py"], result["tests/d.py"]
    assert (a["passed"], a["failed"], a["failures"], a["commit"]) == (1, 1, ["c[1]"], "c0ffee")
    assert (d["passed"], d["failed"], d["skipped"], d["failures"]) == (0, 0, 1, [])
    assert not (root / nightly.PROGRESS).exists()


def test_a_run_of_some_files_leaves_what_is_kept_of_others(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (root / "tests" / f"{name}.py").touch()
    run(root, {f"tests/{name}.py::one": "failed" for name in "abc"}, pytest.ExitCode.TESTS_FAILED)
    monkeypatch.setattr(nightly, "tested", lambda _: {"commit": "another"})
    run(root, {"tests/a.py::one": "passed"}, pytest.ExitCode.OK)
    result = json.loads((root / nightly.RESULT).read_text())
    assert {name: (line["commit"], line["failures"]) for name, line in result.items()} == {
        "tests/a.py": ("another", []),
        "tests/b.py": ("c0ffee", ["one"]),
    }, "c.py is gone"


def test_a_failure_that_passes_later_says_with_which_commit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "tests" / "a.py").touch()
    ends = {f"tests/a.py::{name}": "failed" for name in ("one", "two")} | {"tests/a.py::three": "passed"}
    run(root, ends, pytest.ExitCode.TESTS_FAILED)
    monkeypatch.setattr(nightly, "tested", lambda _: {"commit": "another"})
    monkeypatch.setattr(nightly, "today", lambda: "2026-01-01")
    now = {"tests/a.py::one": "passed", "tests/a.py::two": "failed", "tests/a.py::three": "failed"}
    run(root, now | {"tests/b.py::one": "passed"}, pytest.ExitCode.TESTS_FAILED, Again)
    (line,) = json.loads((root / nightly.RESULT).read_text()).values()
    assert (line["commit"], line["passed"], line["failed"], line["failures"]) == ("c0ffee", 2, 1, ["two"])
    assert line["again"] == [{"date": "2026-01-01", "commit": "another", "passed": ["one"]}]


def test_another_commit_begins_anew(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(root, {"tests/a.py::b": "passed"}, pytest.ExitCode.INTERRUPTED)
    assert Nightly(root, ["tests/a.py"]).outcomes == {}, "so does a run of other files"
    run(root, {"tests/a.py::b": "passed"}, pytest.ExitCode.INTERRUPTED)
    monkeypatch.setattr(nightly, "tested", lambda _: {"commit": "another"})
    assert Nightly(root).outcomes == {}


def test_the_commit_is_named_and_whether_files_differ_from_it(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        command = ["git", *identity, *words]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    (tmp_path / "a").write_text("1")
    git("add", "a")
    git("commit", "-q", "-m", "one")
    assert nightly.tested(tmp_path)["commit"] == git("rev-parse", "HEAD")
    (tmp_path / "a").write_text("2")
    assert nightly.tested(tmp_path)["commit"].endswith("-dirty")


def test_the_result_that_is_kept_says_what_it_is_of() -> None:
    file = Path(__file__).resolve().parents[2] / nightly.RESULT
    if not file.exists():
        pytest.skip("no exhaustive run has ended yet")
    for line in json.loads(file.read_text(encoding="utf-8")).values():
        assert {"date", "commit", "torch", "python", "passed", "failed", "skipped"} < set(line)
        assert len(line["failures"]) == line["failed"]


@pytest.mark.parametrize(
    ("words", "tier"),
    [
        ([], QUICK),
        (["tests"], QUICK),
        (["tests/measures"], FULL),
        (["-k", "wave"], FULL),
        (["--quick", "tests/measures"], QUICK),
        (["--exhaustive", "tests/measures"], EXHAUSTIVE),
    ],
)
def test_what_is_named_runs_in_full(words: list[str], tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import conftest

    root = Path(conftest.__file__).resolve().parents[1]
    named = [word for word in words if word.startswith("tests")] or ["tests"]
    option = SimpleNamespace(
        tier=next((word[2:] for word in words if word.startswith("--")), None),
        keyword="wave" if "-k" in words else "",
        markexpr="",
        collectonly=False,
    )
    config: Any = SimpleNamespace(
        option=option, args=named, invocation_params=SimpleNamespace(dir=root), pluginmanager=MagicMock()
    )
    monkeypatch.setattr(conftest, "Nightly", MagicMock())
    conftest.pytest_configure(config)
    assert option.tier == tier


@pytest.mark.exhaustive
def test_processes_that_share_the_tests_choose_alike() -> None:
    root = Path(__file__).resolve().parents[2]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    file = "tests/record/test_codec.py"
    done = subprocess.run([*command, "--quick", file], cwd=root, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and "This was the quick tier." in done.stdout, done.stdout + done.stderr


def test_no_two_files_register_an_operator_of_one_name() -> None:
    """In one process the later registration would replace the fake implementation of the earlier one."""
    files: dict[str, set[str]] = {}
    for file in Path(__file__).parents[1].rglob("*.py"):
        for name in re.findall(r"\b(?:custom|triton)_op\(\s*\"([^\"]+)\"", file.read_text(encoding="utf-8")):
            files.setdefault(name, set()).add(file.name)
    assert len(files) > 10
    assert not {name: sorted(each) for name, each in files.items() if len(each) > 1}
