"""A run of every case that can be stopped and goes on where it was, and the small file with its result."""

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
"""In the root of the repository, and ignored by git: one line that says what is tested, then one for each test."""

RESULT = "tests/exhaustive.json"
"""A line for each test file of which every case ran, also where only some files were named."""


class Nightly:
    """A plugin of pytest, in the process that hands out the tests: notes how each ended, and skips those noted."""

    def __init__(self, root: Path, named: Sequence[str] = ()) -> None:
        self.root, self.progress, self.result = root, root / PROGRESS, root / RESULT
        self.tested = tested(root)
        self.first = {**self.tested, "named": [*named]}
        self.outcomes: dict[str, str] = {}
        self._resume()
        self._file = self.progress.open("a", encoding="utf-8", buffering=1)
        self._running: dict[str, str] = {}
        self._began = time.monotonic()

    def _resume(self) -> None:
        lines = self.progress.read_text(encoding="utf-8").splitlines() if self.progress.exists() else []
        records = [json.loads(line) for line in lines if line.endswith("}")]
        if not records or records[0] != self.first:
            records = [self.first]
        # Written anew: of what was killed while it wrote, half a line is left.
        self.progress.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
        for record in records[1:]:
            self.outcomes[record["id"]] = record["outcome"]

    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput["finished"] = sorted(self.outcomes)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        worst = self._running.get(report.nodeid, "passed")
        if report.outcome != "passed" and worst != "failed":
            worst = report.outcome
        self._running[report.nodeid] = worst
        if report.when in ("setup", "call"):
            return
        # A test whose process died has one report, with another `when`.
        seconds = round(time.monotonic() - self._began, 1)
        self._began += seconds
        self.outcomes[report.nodeid] = self._running.pop(report.nodeid)
        line = {"id": report.nodeid, "outcome": self.outcomes[report.nodeid], "seconds": seconds}
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
            self._keep()
            self.progress.unlink()

    def _keep(self) -> None:
        """Replace the lines of the test files that ran; those of other files stay."""
        kept = json.loads(self.result.read_text(encoding="utf-8")) if self.result.exists() else {}
        kept = {name: line for name, line in kept.items() if (self.root / name).exists()} | self.summary()
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(kept[name])}" for name in sorted(kept))
        self.result.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")

    def summary(self) -> dict[str, dict[str, Any]]:
        """Return, for each test file, what ran, when and on what, and how the tests ended."""
        files: dict[str, dict[str, str]] = {}
        for name in sorted(self.outcomes):
            file, _, test = name.partition("::")
            files.setdefault(file, {})[test] = self.outcomes[name]
        date = datetime.now(timezone.utc).date().isoformat()
        result = {}
        for file, tests in files.items():
            counts = Counter(tests.values())
            result[file] = {
                "date": date,
                **self.tested,
                **{outcome: counts[outcome] for outcome in ("passed", "failed", "skipped")},
                "failures": [test for test, outcome in tests.items() if outcome == "failed"],
            }
        return result


def tested(root: Path) -> dict[str, str]:
    """The commit, with ``-dirty`` where other files than the result differ from it, and the versions that the tests run
    with."""
    commit = _git(root, "rev-parse", "HEAD").stdout.strip()
    differs = _git(root, "diff", "--quiet", "HEAD", "--", ".", f":!{RESULT}").returncode != 0
    return {
        "commit": f"{commit}-dirty" if differs else commit,
        "torch": version("torch"),
        "python": platform.python_version(),
    }


def _git(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True)
