"""Files that outsiders expect in a repository are valid, and agree with the package."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
from pathlib import Path
from urllib.parse import quote

import pytest
from packaging.requirements import Requirement

from compile_lens.versions import NEWEST_TESTED, OLDEST, REPOSITORY, __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
NOX = (ROOT / "noxfile.py").read_text(encoding="utf-8")
WORKFLOWS = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / ".github/workflows").glob("*.yml")
}
PAIRS = re.findall(r'\("(3\.\d+)", "(\d+\.\d+)\.\d+"\)', NOX)


def test_the_matrix_has_the_oldest_and_the_newest_pair() -> None:
    oldest = re.search(r'requires-python = ">=([\d.]+)"', PROJECT)
    assert oldest is not None
    assert (oldest[1], f"{OLDEST[0]}.{OLDEST[1]}") in PAIRS
    assert f"{NEWEST_TESTED[0]}.{NEWEST_TESTED[1]}" in [torch for _, torch in PAIRS]


def test_workflows_run_the_pairs_of_the_matrix() -> None:
    """CI itself runs the pair that ``.ci/run`` names; the matrix has the others, and no pair that nox lacks."""
    pairs = re.findall(r'python: "([\d.]+)", torch: "([\d.]+)"', WORKFLOWS["tests.yml"])
    torch = re.search(r"^TORCH=(\d+\.\d+)", (ROOT / ".ci/run").read_text(encoding="utf-8"), re.M)
    assert torch is not None
    assert set(pairs) <= set(PAIRS)
    assert {pair for pair in PAIRS if pair != ("3.11", torch[1])} <= set(pairs)


def test_the_release_publishes_without_a_token() -> None:
    release = WORKFLOWS["release.yml"]
    assert "id-token: write" in release and "twine check --strict" in release
    assert "password" not in release and "secrets." not in release


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_news_fragments_have_a_type_that_the_changelog_has() -> None:
    types = set(re.findall(r'directory = "(\w+)", name', PROJECT))
    names = [path.name for path in (ROOT / "news").iterdir() if path.name != "README.md"]
    assert (
        types and [n for n in names if not re.fullmatch(rf"\+[a-z0-9-]+\.({'|'.join(types)})\.md", n)] == []
    )


def test_the_constraints_name_every_dependency_of_development() -> None:
    blocks = re.findall(r"^(?:dependencies|notebook|mcp|docs|dev) = \[(.*?)\]$", PROJECT, re.M | re.S)
    names = {_normal(name) for block in blocks for name in re.findall(r'"([\w.-]+)', block)} - {
        "compile-lens"
    }
    lines = (ROOT / "tests/constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert len(blocks) == 5 and names <= {_normal(pin.partition("==")[0]) for pin in pins}
    assert all(re.fullmatch(r"[\w.-]+==[\w.!]+", pin) for pin in pins)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_tests_run_by_pytest_as_by_python_m_pytest() -> None:
    """``python -m pytest`` puts the root on the path, ``pytest`` does not: helpers are imported by their own names."""
    imports = re.compile(r"^(?:from|import) tests\b", re.M)
    assert not [p for p in ROOT.glob("tests/**/*.py") if imports.search(p.read_text(encoding="utf-8"))]


def test_binder_installs_what_the_lessons_and_ci_have() -> None:
    requirements = (ROOT / "binder" / "requirements.txt").read_text(encoding="utf-8").splitlines()
    (torch_version,) = re.findall(r"^TORCH=(\S+)$", (ROOT / ".ci" / "run").read_text(encoding="utf-8"), re.M)
    assert f"torch=={torch_version}" in requirements
    (extra,) = (line[2:-1] for line in requirements if line.startswith(".["))
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(rf"^{extra} = \[", project, re.M)
    python = (ROOT / "binder" / "runtime.txt").read_text(encoding="utf-8").strip().partition("-")[2]
    assert f'"Programming Language :: Python :: {python}"' in project


def test_a_lesson_opens_elsewhere_and_installs_what_it_needs() -> None:
    place = REPOSITORY.removeprefix("https://github.com/")
    for folder in (ROOT / "tutorials", ROOT / "tutorials" / "zh"):
        index = (folder / "README.md").read_text(encoding="utf-8")
        for lesson in folder.glob("*.ipynb"):
            path = lesson.relative_to(ROOT).as_posix()
            assert {
                f"https://colab.research.google.com/github/{place}/blob/main/{path}",
                f"https://kaggle.com/kernels/welcome?src={REPOSITORY}/blob/main/{path}",
                f"https://mybinder.org/v2/gh/{place}/main?labpath={quote(path, safe='')}",
            } <= {*re.findall(r"\]\((https://\S+)\)", index)}
            cells = json.loads(lesson.read_text(encoding="utf-8"))["cells"]
            first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
            assert _installed(first, there=True) == []
            (line,) = _installed(first, there=False)
            wanted = Requirement(line)
            assert (wanted.name, wanted.url) == ("compile-lens", f"git+{REPOSITORY}")


def _installed(cell: str, there: bool) -> list[str]:
    """Return the packages that a cell installs with pip, on a machine with or without compile_lens."""
    asked: list[str] = []

    class Shell:
        def run_line_magic(self, name: str, line: str) -> None:
            command, *options, requirement = shlex.split(line)
            assert (name, command, options) == ("pip", "install", ["-q"])
            asked.append(requirement)

    found = importlib.util.find_spec("json") if there else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: found)
        exec(cell, {"get_ipython": Shell})
    return asked


def test_no_test_holds_to_a_wall_clock() -> None:
    """A busy machine takes seconds for anything: a test may distinguish an end from a wait of minutes, not more."""
    clock = re.compile(r"assert\b.*\b(?:perf_counter|monotonic|time\.time)\(\).*< *\d\d?(?:\.\d+)?\b(?! \*)")
    held = {
        (path.relative_to(ROOT).as_posix(), line.strip())
        for path in (ROOT / "tests").rglob("test_*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if clock.search(line)
    }
    assert not held
