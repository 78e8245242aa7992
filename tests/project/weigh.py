"""Measures of the source tree's size, names and English: ``python -m tests.project.weigh``.

Prints one row for each measure with its bound, and exits with 1 if a bound is exceeded. ``--time`` also runs the
quick tier of the tests three times and prints the median in seconds; run that on an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "compile_lens"
VIEWS = PACKAGE / "views"

QUESTION_START = re.compile(r"(What|Whether|Where|How|Which|Why|Of|Those)\b")
"""First words of a docstring that asks or points instead of describing."""

PARTICIPLES = {"found", "made", "said", "told", "asked", "got"}
"""Names of locals that do not describe the variable's value."""


@dataclass(frozen=True)
class Measure:
    """One figure of the source tree; ``most`` is its upper bound, None where it has none."""

    name: str
    value: int
    most: int | None = None

    @property
    def within(self) -> bool:
        return self.most is None or self.value <= self.most


def lines(paths: list[Path]) -> int:
    """Return the number of lines of all files together."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def python_files(*folders: Path) -> list[Path]:
    """Return the Python files below the folders, each once; a folder that does not exist has none."""
    return sorted({path for folder in folders for path in folder.rglob("*.py")})


def compare_files() -> list[Path]:
    """Return the files of comparison and difference: Python, JavaScript and CSS, without build outputs."""
    words = ("compar", "diff", "align")
    return [
        path
        for pattern in ("*.py", "*.js", "*.css")
        for path in sorted(PACKAGE.rglob(pattern))
        if "built" not in path.parts
        and any(word in part for part in path.relative_to(PACKAGE).parts for word in words)
    ]


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Yield docstrings of modules, classes and functions, and the strings below constants and fields."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        for number, statement in enumerate(body):
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Constant)
                and isinstance(statement.value.value, str)
                and (number == 0 or isinstance(body[number - 1], (ast.Assign, ast.AnnAssign)))
            ):
                yield statement.value.value.strip()


def participle_functions(tree: ast.AST) -> int:
    """Return the number of functions that assign to a local called by a participle."""
    return sum(
        any(
            isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store) and inner.id in PARTICIPLES
            for inner in ast.walk(node)
        )
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    )


def words(path: Path) -> int:
    """Return the number of words in a text file."""
    return len(path.read_text(encoding="utf-8").split())


def measures() -> list[Measure]:
    """Return all measures of the checkout that contains this file."""
    files = python_files(PACKAGE)
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    texts = [text for tree in trees for text in docstrings(tree)]
    stacks = [
        path
        for path in python_files(VIEWS)
        if not {"findings", "drawing", "story", "words", "viewer", "live", "explanations"}
        & set(path.relative_to(VIEWS).parts[:-1])
    ]
    compare = compare_files()
    folders = [folder for folder in (VIEWS / "viewer" / "web", VIEWS / "live" / "web") if folder.exists()]
    web = [folder for base in folders for folder in (base, *base.rglob("*")) if folder.is_dir()]
    rooms = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    pages = sorted((ROOT / "docs").glob("*.md"))
    return [
        Measure("Python lines in compile_lens/", lines(files), 62_000),
        Measure("Python files in compile_lens/", len(files), 420),
        Measure("lines of view stacks", lines(stacks), 3_000),
        Measure("files of view stacks", len(stacks), 14),
        Measure("lines of compare and diff (Python, JS, CSS)", lines(compare), 5_500),
        Measure("files of compare and diff", len(compare)),
        Measure(
            "most files in one folder of the page's scripts",
            max((sum(file.is_file() for file in folder.iterdir()) for folder in web), default=0),
            25,
        ),
        Measure("rooms at the top of the package", len(rooms), 20),
        Measure("docstrings", len(texts)),
        Measure(
            "docstrings that start with a question word",
            sum(bool(QUESTION_START.match(t)) for t in texts),
            49,
        ),
        Measure("functions with a local called by a participle", sum(map(participle_functions, trees)), 89),
        Measure("pages of the documentation (English)", len(pages), 20),
        Measure("words per page (mean)", sum(map(words, pages)) // max(len(pages), 1)),
        Measure("words in CHANGELOG.md", words(ROOT / "CHANGELOG.md"), 999),
    ]


def quick_tier(runs: int = 3) -> Measure:
    """Run the README's test command several times and return the median of the wall times, in seconds."""
    seconds = []
    for _ in range(runs):
        start = time.monotonic()
        subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=ROOT, check=True)
        seconds.append(time.monotonic() - start)
    return Measure("seconds of the quick tier (median)", round(statistics.median(seconds)), 300)


def main() -> int:
    """Print the measures; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--time", action="store_true", help="also time the quick tier of the tests")
    rows = measures() + ([quick_tier()] if parser.parse_args().time else [])
    for row in rows:
        bound = "" if row.most is None else f"at most {row.most:,}" + ("" if row.within else "  EXCEEDED")
        print(f"{row.name:<50} {row.value:>8,}  {bound}".rstrip())
    return 0 if all(row.within for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
