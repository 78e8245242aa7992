"""How functions cross by value: what stands in the files of a program is found on the other side as it was here."""

from __future__ import annotations

import pickle
import types
from typing import Any

import pytest

from compile_lens.child import crossing

pytestmark = pytest.mark.torch

TEXT = """
def outer(y):
    def inner(x):
        return [value + y for value in x]
    return inner
"""


def files_of(code: types.CodeType) -> set[tuple[str, str, int]]:
    """Each piece of code within, by name, with its file and first line."""
    found = {(code.co_filename, code.co_name, code.co_firstlineno)}
    for constant in code.co_consts:
        found |= files_of(constant) if isinstance(constant, types.CodeType) else set()
    return found


def test_code_keeps_the_file_and_lines_that_it_was_written_in() -> None:
    """Dynamo's frames and Triton's sources are found by them; newer versions of cloudpickle do not keep them."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(TEXT, "/tmp/ipykernel_71/4178438228.py", "exec"), space)
    sent = (space["outer"], space["outer"](3))
    outer, inner = pickle.loads(crossing.packed(sent).data)
    assert inner([1, 2]) == [4, 5] and outer(1)([1]) == [2]
    for here, there in zip(sent, (outer, inner), strict=True):
        assert there is not here and there.__code__ is not here.__code__
        assert files_of(there.__code__) == files_of(here.__code__)
        assert {file for file, _, _ in files_of(there.__code__)} == {"/tmp/ipykernel_71/4178438228.py"}
