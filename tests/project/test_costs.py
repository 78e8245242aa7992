"""The script that marks slow tests reads a report and places the mark."""

from __future__ import annotations

from pathlib import Path

from costs import marked, slow_tests

REPORT = """<testsuites><testsuite>
<testcase classname="tests.a.test_b" name="test_c[1]" time="0.5"/>
<testcase classname="tests.a.test_b" name="test_c[2]" time="2.5"/>
<testcase classname="tests.a.test_b.TestD" name="test_e" time="3"/>
<testcase classname="tests.a.test_b" name="test_f" time="0.1"/>
</testsuite></testsuites>"""

TEXT = """@other
def test_a():
    pass


class TestD:
    @pytest.mark.parametrize(
        "x", [1]
    )
    def test_e(self, x):
        pass
"""


def test_the_slowest_case_of_a_test_counts(tmp_path: Path) -> None:
    file = tmp_path / "tests" / "a" / "test_b.py"
    file.parent.mkdir(parents=True)
    file.touch()
    assert slow_tests(REPORT, 1.5, tmp_path) == {
        ("tests/a/test_b.py", "test_c"): 2.5,
        ("tests/a/test_b.py", "test_e"): 3.0,
    }


def test_the_mark_stands_above_the_other_ones_once() -> None:
    once = marked(marked(TEXT, "test_e"), "test_a")
    assert once.startswith("@pytest.mark.full\n@other\ndef test_a")
    assert "class TestD:\n    @pytest.mark.full\n    @pytest.mark.parametrize(" in once
    assert marked(once, "test_e") == once
