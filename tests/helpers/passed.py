"""The tests that passed in an earlier run, from the report that pytest wrote (``--junitxml``)."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

DEVICES = re.compile(r"triton|cuda|gpu|[abh]\d00", re.IGNORECASE)
"""Words of a file whose tests may change their result once Triton is installed."""


def passed(report: str) -> set[tuple[str, str]]:
    """Return the class and the name of each test that ran and passed."""
    cases = ET.fromstring(report).iter("testcase")
    return {(case.get("classname", ""), case.get("name", "")) for case in cases if _ran(case)}


def _ran(case: ET.Element) -> bool:
    return not {child.tag for child in case} & {"skipped", "failure", "error"}


def in_report(test: str) -> tuple[str, str]:
    """Return a test's name in the report from its id: its class, which begins with the file, and its name."""
    place, bracket, arguments = test.partition("[")
    file, *names, name = place.split("::")
    return ".".join([file.removesuffix(".py").replace("/", "."), *names]), f"{name}{bracket}{arguments}"


def depends_on_triton(marks: frozenset[str], file: Path) -> bool:
    """Return True if a test's result may change once Triton is installed: it compiles, in a file that names a
    GPU."""
    return "torch" in marks and DEVICES.search(file.read_text(encoding="utf-8")) is not None
