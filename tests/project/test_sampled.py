"""Which cases a run of the whole suite leaves out: some of those that are named, and none of any other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sampled

TESTS = Path(__file__).resolve().parents[1]
MANY = [(f"tests/there/test_{n}.py::test_it", f"other {n}") for n in range(sampled.FEW_FILES + 1)]


@pytest.mark.parametrize("name", sampled.EVERY)
def test_what_is_named_is_there_and_has_cases(name: str) -> None:
    file, *_, function = name.split("::")
    text = (TESTS / file).read_text(encoding="utf-8")
    found = re.search(rf"^ *def {function}\(", text, re.M)
    assert found is not None
    assert sampled.EVERY[name] > 1


def test_every_fourth_case_stays_and_all_of_the_others() -> None:
    (name,) = (name for name in sampled.EVERY if "reaches_sass" in name)
    cases = [(f"tests/{name}[{n}-a100]", n) for n in range(9)]
    assert sampled.left_out([*cases, *MANY]) == [1, 2, 3, 5, 6, 7]


def test_a_run_of_a_few_files_takes_all() -> None:
    cases = [(f"tests/{name}[{n}]", n) for name in sampled.EVERY for n in range(9)]
    assert len({name.partition("::")[0] for name, _ in cases}) <= sampled.FEW_FILES
    assert sampled.left_out(cases) == []
