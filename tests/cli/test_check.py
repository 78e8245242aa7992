"""``compile-lens check``: files of expectations without pytest."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import samples
from markdown_pages import sections

from compile_lens.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = sections(ROOT / "docs" / "testing.md")["testing#without-pytest"]

CHECKS = """
import compile_lens as package

RECORD = {record!r}


def helper():
    raise RuntimeError("no check: it is not called")


def check_holds(compile_lens):
    compile_lens.expect(compile_lens.load(RECORD)).launches(2)


def test_fails(scale=1):
    package.expect(package.load(RECORD)).launches(scale)


def check_plainly():
    assert 1 == 2


def check_raises(compile_lens):
    compile_lens.load(RECORD)
    raise KeyError("other")
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    record = samples.sample().save(tmp_path / "sample.json")
    path = tmp_path / "checks.py"
    path.write_text(CHECKS.format(record=str(record)), encoding="utf-8")
    return path


def test_each_function_is_a_check(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(file), "--pages", "pages", "--out", "checked.md", "--quiet"]) == 1
    output = capsys.readouterr().out
    lines = CHECKS.splitlines()
    at = 1 + next(n for n, text in enumerate(lines) if "launches(scale)" in text)
    assert re.search(rf"^FAILED .*checks\.py:{at} test_fails", output, re.M)
    assert "launches: expected 1, found 2" in output and "not so: assert 1 == 2" in output
    assert re.search(r"^held .* check_holds", output, re.M) and "KeyError: 'other'" in output
    assert "1 held, 2 failed, 1 raised" in output
    pages = sorted(path.name for path in (tmp_path / "pages").iterdir())
    assert [re.sub(r"-\w{6}\.html$", "", name) for name in pages] == [
        "checks-py-check_raises",
        "checks-py-test_fails",
    ]
    assert all(str(Path("pages") / name) in output for name in pages)
    written = (tmp_path / "checked.md").read_text(encoding="utf-8")
    assert "2 failed" in written and "expected 1, found 2" in written


@pytest.mark.parametrize(
    ("only", "code"), [("check_holds", 0), ("test_fails", 4), ("check_plainly", 4), ("check_raises", 1)]
)
def test_the_exit_code_says_what_became_of_it(
    file: Path, only: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(file), "--only", only, "--json", "--quiet"]) == code
    (one,) = json.loads(capsys.readouterr().out)["checks"]
    assert one["name"] == only and one["outcome"] == {0: "held", 4: "failed", 1: "raised"}[code]


@pytest.mark.parametrize(
    ("program", "words", "said"),
    [
        ("def f():\n    pass\n", [], "has no check: write functions whose names begin with check or test"),
        ("def check_a(tmp_path):\n    pass\n", [], "takes 'tmp_path'"),
        ("def check_a():\n    pass\n", ["--only", "check_b"], "has no check 'check_b'; it has check_a"),
        ("def check_a():\n    pass\n", ["--out", "a.html"], "no known file extension"),
        ("def check_a(:\n", [], "SyntaxError"),
    ],
)
def test_bad_input_is_named(
    file: Path, program: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(program)
    assert main(["check", str(file), *words]) == 2
    assert said in capsys.readouterr().err


def test_only_is_not_kept_from_a_check_by_one_of_pytest(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(
        "import pytest\n\n\n@pytest.mark.parametrize('n', [1, 2])\ndef test_many(n, compile_lens):\n    assert n\n\n\n"
        "def check_ok():\n    pass\n"
    )
    assert main(["check", str(file), "--only", "check_ok", "--quiet"]) == 0
    assert "1 held" in capsys.readouterr().out
    for words in ([], ["--only", "test_many"]):
        assert main(["check", str(file), "--quiet", *words]) == 2
        assert "test_many takes 'n'" in capsys.readouterr().err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(tmp_path / "no.py")]) == 2
    assert "there is no file" in capsys.readouterr().err


@pytest.mark.slow
def test_the_file_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    program = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)[0]
    (tmp_path / "expectations.py").write_text(program, encoding="utf-8")
    (command,) = re.findall(r"^compile-lens (check .*)$", PAGE, re.M)
    assert main([*command.split(), "--quiet"]) == 0
    assert "1 held" in capsys.readouterr().out and "1 held" in (tmp_path / "checked.md").read_text()
    assert not (tmp_path / "pages").exists()
