"""Marks tests that are too slow for the quick tier with ``full``: ``pytest --quick --junitxml=run.xml`` when idle, then
``python -m tests.project.costs run.xml --mark``. Without ``--mark`` it prints the marks that it would add."""

from __future__ import annotations

import argparse
import re
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARK = "@pytest.mark.full"


def slow_tests(report: str, over: float, root: Path = ROOT) -> dict[tuple[str, str], float]:
    """Return file and function of each test with a case over the limit, with the seconds of that case."""
    slow: dict[tuple[str, str], float] = {}
    for case in ET.fromstring(report).iter("testcase"):
        seconds, parts = float(case.get("time", 0)), case.get("classname", "").split(".")
        if seconds > over:
            if not (root / Path(*parts)).with_suffix(".py").exists():
                parts.pop()  # a class
            file = f"{'/'.join(parts)}.py"
            test = file, case.get("name", "").partition("[")[0]
            slow[test] = max(seconds, slow.get(test, 0.0))
    return slow


def marked(text: str, function: str) -> str:
    """Return the text of a test file with the mark on a function."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if re.match(rf" *def {function}\(", line):
            indent = line[: len(line) - len(line.lstrip())]
            first = number
            while lines[first - 1].startswith((f"{indent}@", f"{indent})", f"{indent}]", f"{indent} ")):
                first -= 1
            if not any(MARK in one for one in lines[first:number]):
                lines.insert(first, indent + MARK)
            break
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.project.costs", description=__doc__)
    parser.add_argument("report", type=Path, help="what --junitxml wrote")
    parser.add_argument("--over", type=float, default=1.5, help="seconds of one case (%(default)s)")
    parser.add_argument("--mark", action="store_true", help="put the mark into the files")
    words = parser.parse_args()
    slow = slow_tests(words.report.read_text(encoding="utf-8"), words.over)
    for (file, function), seconds in sorted(slow.items(), key=lambda one: -one[1]):
        print(f"{seconds:6.1f} s  {file}::{function}")
        if words.mark:
            path = ROOT / file
            path.write_text(marked(path.read_text(encoding="utf-8"), function), encoding="utf-8")


if __name__ == "__main__":
    main()
