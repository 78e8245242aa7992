"""A run of every case that can be stopped and resumed, and the small file with its result."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

PROGRESS = ".exhaustive.jsonl"
"""A file in the repository's root, ignored by git: one line that identifies the tested code, then one for each test."""

RESULT = "tests/exhaustive.json"
"""A line for each test file of which every case ran, even if only some files were named."""


class Outcomes:
    """A pytest plugin in the process that distributes the tests; records how each ended."""

    def __init__(self, root: Path) -> None:
        self.root, self.result = root, root / RESULT
        self.tested = tested(root)
        self.outcomes: dict[str, str] = {}
        self._running: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        worst = self._running.get(report.nodeid, "passed")
        if report.outcome != "passed" and worst != "failed":
            worst = report.outcome
        self._running[report.nodeid] = worst
        if report.when in ("setup", "call"):
            return
        # A test whose process died has one report, with another `when`.
        self.outcomes[report.nodeid] = self._running.pop(report.nodeid)
        self.ended(report.nodeid)

    def ended(self, test: str) -> None:
        """Called once a test has ended."""

    def by_file(self) -> dict[str, dict[str, str]]:
        """Return how the tests of each file ended, by their names in it."""
        files: dict[str, dict[str, str]] = {}
        for name in sorted(self.outcomes):
            file, _, test = name.partition("::")
            files.setdefault(file, {})[test] = self.outcomes[name]
        return files

    def kept(self) -> dict[str, dict[str, Any]]:
        """Return the lines of the result file for test files that exist."""
        lines = json.loads(self.result.read_text(encoding="utf-8")) if self.result.exists() else {}
        return {name: line for name, line in lines.items() if (self.root / name).exists()}

    def keep(self, lines: dict[str, dict[str, Any]]) -> None:
        """Replace the result file."""
        text = ",\n".join(f" {json.dumps(name)}: {json.dumps(lines[name])}" for name in sorted(lines))
        self.result.write_text(f"{{\n{text}\n}}\n", encoding="utf-8")


class Again(Outcomes):
    """A plugin for tests that are named one by one: a line that lists one of them as failed records the commit with
    which it passes, and when. A complete run replaces the line."""

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        lines, changed = self.kept(), False
        for file, tests in self.by_file().items():
            failures = lines.get(file, {}).get("failures", ())
            passed = [test for test in failures if tests.get(test) == "passed"]
            if not passed:
                continue
            line, changed = lines[file], True
            line["failures"] = [test for test in failures if test not in passed]
            line["failed"], line["passed"] = line["failed"] - len(passed), line["passed"] + len(passed)
            line.setdefault("again", []).append({"date": today(), **self.tested, "passed": passed})
        if changed:
            self.keep(lines)


class Nightly(Outcomes):
    """A plugin for whole files: records how each test ended, and skips those already recorded."""

    def __init__(self, root: Path, named: Sequence[str] = ()) -> None:
        super().__init__(root)
        self.progress = root / PROGRESS
        self.first = {**self.tested, "named": [*named]}
        self._resume()
        self._file = self.progress.open("a", encoding="utf-8", buffering=1)
        self._began = time.monotonic()

    def _resume(self) -> None:
        lines = self.progress.read_text(encoding="utf-8").splitlines() if self.progress.exists() else []
        records = [json.loads(line) for line in lines if line.endswith("}")]
        if not records or records[0] != self.first:
            records = [self.first]
        # Rewritten: a run that was killed while writing leaves half a line.
        self.progress.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        for record in records[1:]:
            self.outcomes[record["id"]] = record["outcome"]

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["finished"] = sorted(self.outcomes)

    def ended(self, test: str) -> None:
        seconds = round(time.monotonic() - self._began, 1)
        self._began += seconds
        line = {"id": test, "outcome": self.outcomes[test], "seconds": seconds}
        self._file.write(json.dumps(line) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        self._file.close()
        ended = exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        )
        if ended and self.outcomes and not session.shouldfail and not session.shouldstop:
            self.keep(self.kept() | self.summary())
            self.progress.unlink()

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return, for each test file, what ran, when and on what, and how the tests ended."""
        result = {}
        for file, tests in self.by_file().items():
            counts = Counter(tests.values())
            result[file] = {
                "date": today(),
                **self.tested,
                **{outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")},
                "failures": [test for test, outcome in tests.items() if outcome == "failed"],
            }
        return result


def today() -> str:
    """Return the date in UTC."""
    return datetime.now(timezone.utc).date().isoformat()


def tested(root: Path) -> dict[str, str]:
    """Return the commit, with ``-dirty`` if files other than the result differ from it, and the versions that the tests
    run with."""
    commit = _git(root, "rev-parse", "HEAD").stdout.strip()
    differs = _git(root, "diff", "--quiet", "HEAD", "--", ".", f":!{RESULT}").returncode != 0
    return {
        "commit": f"{commit}-dirty" if differs else commit,
        "torch": version("torch"),
        "python": platform.python_version(),
    }


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
