"""Frames as readers see them."""

from __future__ import annotations

import pytest

from compile_lens.record.graph import Frame


@pytest.mark.parametrize(
    ("text", "call", "expression"),
    [
        ("y = g.pad(", "g.pad(", "g.pad(…"),
        ("y = outer(inner(a), [b,", "", "y = outer(inner(a), [b,…"),
        ("y = say('(', a)  # (open", "", "y = say('(', a)  # (open"),
        ("y = a.sin()", "a.sin()", "a.sin()"),
        ('return join("\\"(", b)', "", 'return join("\\"(", b)'),
        ("), 3)", "", "), 3)"),
    ],
)
def test_an_expression_that_goes_on_ends_in_an_ellipsis(text: str, call: str, expression: str) -> None:
    assert Frame("m.py", 3, "f", text, call=call).expression == expression
