"""The first steps of a new user and of CI: README, CI, packaging and command line agree."""

from __future__ import annotations

import os
import pydoc
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from faults import for_each
from markdown_pages import headings, links

from compile_lens import __version__, cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path: path.read_text(encoding="utf-8")
    for pattern in ("*.md", "docs/**/*.md", "news/*.md", "tutorials/**/*.md", "assets/gallery/*.md")
    for path in sorted(ROOT.glob(pattern))
}
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")

SITE_ONLY = {"docs/index.md", "docs/api.md"}
"""Pages that only the site has."""

LESSONS = sorted((ROOT / "tutorials").rglob("*.ipynb"))

SET_UP = [line for line in README.splitlines() if line.startswith("python3 -m venv ")]


def test_no_two_files_of_tests_are_one_module() -> None:
    """pytest imports a file by its name alone if its folder is not a package: a duplicate name ends the run."""
    alone = [
        path.name
        for path in (ROOT / "tests").rglob("test_*.py")
        if "node_modules" not in path.parts and not path.with_name("__init__.py").exists()
    ]
    assert [name for name, times in Counter(alone).items() if times > 1] == []


def test_two_commands_set_everything_up() -> None:
    first, *own = SET_UP
    assert first.endswith("pip install torch --index-url https://download.pytorch.org/whl/cpu"), "before them"
    assert [line.rpartition(" && ")[2] for line in own] == [
        ".venv/bin/compile-lens demo",
        ".venv/bin/python -m pytest",
    ]
    for line in SET_UP:
        fenced = f"```bash\n{line}\n```"
        assert fenced in README, "each stands alone in a block, so that it can be copied whole"


@pytest.mark.parametrize("ending", ["compile-lens demo", "python -m pytest"])
def test_ci_runs_the_commands_of_the_readme(ending: str) -> None:
    """Compares their texts: CI has no set-up of its own that could pass while the README's fails."""
    function = re.search(r"^readme_command\(\) \{.*?^\}", CI, re.MULTILINE | re.DOTALL)
    assert function is not None
    variable = re.search(rf"^(\w+)=\$\(readme_command '{ending}'\)$", CI, re.MULTILINE)
    assert variable is not None
    # At most a test report is requested as well.
    assert re.search(rf'^bash -euo pipefail -c "\${variable[1]}( --junitxml=\$quick)?"$', CI, re.MULTILINE)
    result = subprocess.run(
        ["bash", "-euc", f"{function[0]}\nreadme_command '{ending}'"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.strip() in SET_UP


def test_ci_can_be_run() -> None:
    assert CI.startswith("#!/usr/bin/env bash\n") and "\nset -euo pipefail\n" in CI
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_ci_holds_every_check() -> None:
    for check in (
        "ruff check .",
        "ruff format --check .",
        "-m mypy",
        "-m build",
        "twine check --strict",
        "check_jsonschema",
        "pytest --full",
    ):
        assert check in CI
    assert "|| true" not in CI.replace("README.md || true)", ""), "a check that cannot fail is none"


@for_each(PAGES)
def test_what_a_page_links_to_is_there(page: Path) -> None:
    """Each linked file exists, and contains the linked heading."""
    for path, anchor in links(PAGES[page]):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert not anchor or anchor in headings(target.read_text(encoding="utf-8")), f"{path}#{anchor}"


@for_each([("docs", "README.md"), ("docs/zh", "README.zh-CN.md")])
def test_the_readme_leads_to_every_page(folder: str, readme: str) -> None:
    pages = {f"{folder}/{page.name}" for page in ROOT.glob(f"{folder}/*.md")} - SITE_ONLY
    assert pages and pages <= {path for path, _ in links(PAGES[ROOT / readme])}


def test_the_site_leads_to_every_page() -> None:
    """The map of its first page and its side bar contain them."""
    index = PAGES[ROOT / "docs" / "index.md"]
    pages = {page.stem for page in ROOT.glob("docs/*.md")} - {"index"}
    assert pages <= {path.removesuffix(".md") for path, _ in links(index)}
    rows = re.findall(r"^\| .* \| \[.*\]\(docs/.*\) \|$", README, re.M)
    assert rows and [row for row in rows if row.replace("(docs/", "(") not in index] == []
    assert pages <= set(re.findall(r"^([\w-]+)$", index, re.M))


def test_the_reference_names_what_is_there() -> None:
    """Sphinx would warn; this needs no Sphinx."""
    names = re.findall(r"auto(?:module|class|function|exception):: ([\w.]+)", PAGES[ROOT / "docs" / "api.md"])
    assert len(names) > 40
    assert [name for name in names if pydoc.locate(name) is None] == []


def test_the_readme_begins_with_its_picture() -> None:
    """It follows a sentence or two, so that the first screen shows it."""
    start = README.partition("](assets/viewer.png)")[0].partition("![")[0]
    assert len(start.splitlines()) <= 10 and len(start.split()) <= 100


def test_every_picture_is_shown() -> None:
    pictures = {p.name for p in (ROOT / "assets").iterdir() if p.suffix in (".svg", ".png")}
    pages = (ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/*.md"))
    shown = "".join(PAGES[page] for page in pages)
    assert pictures == set(re.findall(r"assets/([\w.-]+\.(?:svg|png))", shown))


def test_the_page_of_the_command_line_has_its_exit_codes() -> None:
    page = PAGES[ROOT / "docs" / "command-line.md"]
    rows = re.findall(r"^\| (\d) \| (.+) \|$", page, re.MULTILINE)
    assert rows == re.findall(r"^  (\d)  (.+)$", cli.EXIT_CODES, re.MULTILINE)
    assert [int(code) for code, _ in rows] == [cli.OK, cli.FAILED, cli.USAGE, cli.NOT_INSTALLED, cli.DIFFERS]


def test_versions_agree() -> None:
    assert f'\nversion = "{__version__}"\n' in PROJECT
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    torch = re.search(r'"torch>=([\d.]+)"', PROJECT)
    python = re.search(r'requires-python = ">=([\d.]+)"', PROJECT)
    assert torch is not None and f"torch {torch[1]} or newer" in README
    assert python is not None and f"Python {python[1]} or newer" in README


def test_every_dependency_is_accounted_for() -> None:
    listed = re.search(r"^dependencies = \[\n(.*?)^\]", PROJECT, re.MULTILINE | re.DOTALL)
    assert listed is not None
    needed = re.findall(r'^    "([\w-]+)', listed[1], re.MULTILINE)
    table, _, others = PAGES[ROOT / "docs" / "dependencies.md"].lower().partition("\n## ")
    assert sorted(needed) == sorted(re.findall(r"^\| (\w+) \|", table, re.MULTILINE)[1:])
    extras = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[project.")[0]
    optional = {name for name in re.findall(r'"([\w-]+)[>"]', extras) if name != "compile-lens"}
    rows = re.findall(r"^\| ([\w, -]+) \|", others, re.MULTILINE)
    assert optional and optional <= {name for row in rows for name in row.split(", ")}


@for_each(
    [
        *("README.md", "CHANGELOG.md", "tutorials/README.md", "tutorials/zh/README.md"),
        *(p.relative_to(ROOT).as_posix() for p in (*LESSONS, *sorted(ROOT.glob("docs/**/*.md")))),
    ],
)
def test_no_path_of_a_machine_is_in_what_people_read(kept: str) -> None:
    text = (ROOT / kept).read_text(encoding="utf-8")
    assert not re.findall(r"(?<![\w.])/(?:home|root|tmp|Users|work|opt)/", text)
