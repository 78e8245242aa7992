"""The script that changes one line of the package at a time: the lines that it draws, and its mutations."""

from __future__ import annotations

import ast
from pathlib import Path

import mutants
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("return a == b", {"return a != b", "return None"}),
        ("return a and not b", {"return a or not b", "return a and bool(b)", "return None"}),
        ("return [1, True]", {"return [2, True]", "return [1, False]", "return None"}),
        ("print(a - b)", {"print(a + b)", "pass"}),
        ("return a", {"return None"}),
        ("x: int = a", set()),
    ],
)
def test_a_line_is_changed_in_one_place(line: str, after: set[str]) -> None:
    text = f"def f(a, b):\n    {line}\n"
    changed = list(mutants.mutants("compile_lens/views/a.py", text))
    assert {one.after.strip() for one in changed} == after
    for one in changed:
        assert ast.dump(ast.parse(one.applied(text))) != ast.dump(ast.parse(text))


@pytest.mark.full
def test_every_room_has_some_and_a_seed_draws_the_same() -> None:
    chosen = mutants.drawn(ROOT, 60, 1)
    rooms = {
        mutants.room_of(path.relative_to(ROOT).as_posix()) for path in (ROOT / "compile_lens").rglob("*.py")
    }
    assert {one.room for one in chosen} == rooms and 40 <= len(chosen) <= 60
    assert chosen == mutants.drawn(ROOT, 60, 1) != mutants.drawn(ROOT, 60, 2)
    gone = chosen[0]
    assert gone not in mutants.drawn(ROOT, 60, 1, frozenset([gone.key]))


def test_a_survivor_counts_as_such() -> None:
    met = [{"quick": "tests/a.py::b"}, {"quick": "", "full": "tests/c.py::d"}, {"quick": ""}]
    assert mutants.summary(met) == "3 mutants: the quick tier killed 1, both 2"
    assert mutants.verdict(met[2]) == "survived"
