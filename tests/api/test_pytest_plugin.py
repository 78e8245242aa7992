"""The pytest plugin: inert if unused; if enabled, it saves a page for each failing test."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import samples
from markdown_pages import blocks, sections

from compile_lens import pytest_plugin

ROOT = Path(__file__).resolve().parents[2]

Suite = Callable[..., "tuple[int, str]"]


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    """Runs pytest in another process on files, with compile_lens installed as in pyproject.toml."""
    declared = re.search(
        r"^\[project\.entry-points\.pytest11\]\n(.*?)\n\n", (ROOT / "pyproject.toml").read_text(), re.M | re.S
    )
    assert declared is not None
    info = tmp_path / "site" / "plugin_of_compile_lens-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin-of-compile-lens\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[pytest11]\n{declared[1].replace(chr(34), '')}\n")
    tests = tmp_path / "suite"
    tests.mkdir()

    def run(program: str, *options: str, conftest: str = "") -> tuple[int, str]:
        (tests / "test_it.py").write_text(program)
        (tests / "conftest.py").write_text(conftest)
        paths = [str(ROOT), str(info.parent), os.environ.get("PYTHONPATH", "")]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "COLUMNS": "400"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tests), *options],
            cwd=tests, env=env, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


LOADED = """
import sys
def pytest_unconfigure(config):
    if not hasattr(config, "workerinput"):
        print("LOADED", *sorted(n for n in sys.modules if n.split(".")[0] in ("torch", "compile_lens")))
"""

WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
"""

NOISY = """
import logging
import torch

def f(x):
    return torch.sort(x)[0] + 1

def test_fails(compile_lens):
    trace = logging.getLogger("torch.__trace")
    before = list(trace.filters)
    held = compile_lens.expect(f, torch.rand(8), backward=False)
    assert (trace.filters, trace.level, trace.propagate) == (before, logging.DEBUG, False)
    logging.getLogger("of.the.user").warning("a word of the user's")
    held.launches(1)

def test_torch_itself():
    torch.compile(f, backend="eager")(torch.rand(8))
    assert not "what torch says is heard as before"
"""

HELD = """
import pytest

RECORD = {record!r}

def test_holds(compile_lens):
    compile_lens.expect(compile_lens.load(RECORD)).launches(2)

@pytest.mark.parametrize("most", [1, 0])
def test_fails(compile_lens, most):
    compile_lens.expect(compile_lens.load(RECORD)).launches(at_most=most)

def test_fails_otherwise(compile_lens):
    compile_lens.load(RECORD)
    compile_lens.load(RECORD)
    assert compile_lens.__version__ == "9"
"""


@pytest.mark.full
def test_it_is_inert(suite: Suite) -> None:
    code, said = suite("def test_nothing():\n    pass\n", conftest=LOADED)
    assert code == 0, said
    loaded = next(line for line in said.splitlines() if line.startswith("LOADED")).split()[1:]
    assert loaded == [
        "compile_lens",
        "compile_lens.pytest_plugin",
        "compile_lens.record",
        "compile_lens.record.delegates",
    ]


@pytest.mark.full
def test_the_fixture_alone_loads_nothing(suite: Suite) -> None:
    code, said = suite("def test_nothing(compile_lens):\n    pass\n", conftest=LOADED)
    assert code == 0 and "compile_lens.results" not in said.partition("LOADED")[2], said


@pytest.mark.full
@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.cases(full=1)
def test_a_page_for_each_failing_test(suite: Suite, tmp_path: Path, workers: str) -> None:
    record = samples.sample().save(tmp_path / "sample.json")
    folder = tmp_path / "pages"
    many = ["-n", workers] if importlib.util.find_spec("xdist") else []
    if workers != "0" and not many:
        pytest.skip("pytest-xdist is not installed")
    program = HELD.format(record=str(record))
    code, said = suite(program, f"--compile-lens-report={folder}", *many, conftest=WITHOUT_TORCH)
    assert code == 1 and "3 failed, 1 passed" in said, said
    pages = sorted(path.name for path in folder.iterdir())
    assert len(pages) == 4 and not any("holds" in name for name in pages)
    assert len([name for name in pages if "test_fails_otherwise" in name]) == 2
    for name in pages:
        assert f"page of f: {folder / name}" in said
        assert "<html" in (folder / name).read_text(encoding="utf-8")
    assert "launches: expected at most 1, found 2" in said and "launches: expected 0" not in said
    # The traceback ends at the line of the test: frames inside compile_lens do not help its reader.
    assert "compile_lens/results/expectations.py" not in said


@pytest.mark.full
@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.cases(full=1)
def test_without_torch_it_says_so_where_torch_is_needed(suite: Suite, tmp_path: Path, workers: str) -> None:
    if workers != "0" and not importlib.util.find_spec("xdist"):
        pytest.skip("pytest-xdist is not installed")
    record = samples.sample().save(tmp_path / "sample.json")
    program = f"""
def test_nothing():
    pass

def test_a_record(compile_lens):
    compile_lens.expect(compile_lens.load({str(record)!r})).launches(2)

def test_a_capture(compile_lens):
    compile_lens.capture(abs, 3)

def test_an_expectation(compile_lens):
    compile_lens.expect(abs, 3)
"""
    code, said = suite(program, *(["-n", workers] if workers != "0" else []), conftest=WITHOUT_TORCH)
    assert code == 1 and "2 failed, 2 passed" in said, said
    assert "compile_lens.capture runs torch, which is not installed here: install it" in said
    assert "expect of a function runs torch, which is not installed here" in said
    assert said.count("compile_lens.load('capture.json')") >= 2
    # The traceback ends at the line of the test.
    assert "engine/entry.py" not in said and "importlib" not in said, said


@pytest.mark.full
def test_without_a_folder_no_page_is_kept(suite: Suite, tmp_path: Path) -> None:
    record = samples.sample().save(tmp_path / "sample.json")
    code, said = suite(HELD.format(record=str(record)), conftest=WITHOUT_TORCH)
    assert code == 1 and "page of" not in said and not list(tmp_path.rglob("*.html"))


def test_pages_go_to_a_folder_that_exists_or_is_new(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in ("", tmp_path, tmp_path / "new"):
        pytest_plugin.pytest_configure(Options(folder))  # type: ignore[arg-type]
    with pytest.raises(pytest.UsageError, match=r"file is not a folder: name a folder, existing or new"):
        pytest_plugin.pytest_configure(Options(tmp_path / "file"))  # type: ignore[arg-type]


class Options:
    """A pytest configuration in which each option has the same value."""

    def __init__(self, value: object) -> None:
        self.value = str(value)

    def getoption(self, name: str) -> str:
        return self.value


@pytest.mark.exhaustive
def test_a_folder_that_cannot_be_written_is_told(suite: Suite, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    code, said = suite("def test_nothing():\n    pass\n", f"--compile-lens-report={file}")
    assert code == 4 and "is not a folder" in said
    record = samples.sample().save(tmp_path / "sample.json")
    program = HELD.format(record=str(record))
    code, said = suite(program, f"--compile-lens-report={file / 'inside'}", conftest=WITHOUT_TORCH)
    assert "3 failed, 1 passed" in said and "no page of f: " in said


@pytest.mark.exhaustive
def test_names_that_become_the_same_have_pages_of_their_own(suite: Suite, tmp_path: Path) -> None:
    record = samples.sample().save(tmp_path / "sample.json")
    program = f"""
import pytest
@pytest.mark.parametrize("name", ["a b", "a-b", "a/b", "{"long" * 60}"])
def test_one(compile_lens, name):
    compile_lens.expect(compile_lens.load({str(record)!r})).launches(1)
"""
    _, said = suite(program, f"--compile-lens-report={tmp_path / 'pages'}", conftest=WITHOUT_TORCH)
    assert "4 failed" in said and len(list((tmp_path / "pages").iterdir())) == 4


@pytest.mark.full
def test_what_raises_its_own_errors_is_left_alone(suite: Suite, tmp_path: Path) -> None:
    program = """
class Odd(Exception):
    @property
    def capture(self):
        raise RuntimeError("not yours")

def test_odd():
    raise Odd("as it is")
"""
    code, said = suite(program, f"--compile-lens-report={tmp_path / 'pages'}")
    assert code == 1 and "1 failed" in said and "INTERNALERROR" not in said, said
    assert not (tmp_path / "pages").exists()


PAGE = sections(ROOT / "docs" / "testing.md")
EXAMPLES = [block for key in ("in-pytest", "snapshots") for block in blocks(PAGE[f"testing#{key}"], "python")]


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_example_of_the_page(suite: Suite) -> None:
    pytest.importorskip("torch")
    code, said = suite(EXAMPLES[0])
    assert code == 0 and "1 passed" in said, said


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "option"),
    [
        ("inline_snapshot", ""),
        pytest.param("syrupy", "--snapshot-update", marks=pytest.mark.exhaustive),
        pytest.param("pytest_regressions", "--force-regen", marks=pytest.mark.exhaustive),
    ],
)
def test_snapshots_of_the_page(suite: Suite, package: str, option: str) -> None:
    """The second run matches the snapshots that the first one writes."""
    pytest.importorskip("torch")
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    program = EXAMPLES[1]
    if importlib.util.find_spec("inline_snapshot") is None:
        program = program.replace("from inline_snapshot import snapshot as inline", "")
    only = ["-k", package.rpartition(".")[2], "-n", "0"]
    if option:
        suite(program, *only, option)
    code, said = suite(program, *only)
    assert code == 0 and "1 passed" in said, said


@pytest.mark.slow
@pytest.mark.exhaustive
def test_captures_of_a_test_and_of_an_error_are_kept(suite: Suite, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = """
import torch
import compile_lens as package

def f(x):
    return torch.sort(x)[0] + 1

def test_target(compile_lens):
    compile_lens.expect(f, torch.rand(8), target="h100").launches(9)

def test_without_the_fixture():
    package.generate(f, torch.rand(8))
"""
    code, said = suite(program, "--compile-lens-report=pages")
    assert code == 1 and "2 failed" in said, said
    assert said.count("page of f: ") == 2, said
    assert len(list((tmp_path / "suite" / "pages").iterdir())) == 2


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_a_test_says_is_not_drowned(suite: Suite) -> None:
    code, said = suite(NOISY, "-p", "no:xdist", "-q", "-k", "fails")
    assert code == 1 and "a word of the user's" in said, said
    told = re.compile(r"^DEBUG +torch\.__trace", re.M)
    assert not told.search(said), said
    assert re.search(r"^E +compile_lens\.ExpectationError: f: launches: expected 1, found 2", said, re.M), (
        said
    )
    assert told.search(suite(NOISY, "-p", "no:xdist", "-q", "-k", "itself")[1])
