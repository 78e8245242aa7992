"""Of which form a watch says what changed, beside plain torch in another process: to mend that makes the call fit."""

from __future__ import annotations

import json
import subprocess
import sys

import farther_forms
import pytest

import compile_lens
from compile_lens.views.program import text
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

PROGRAMS = farther_forms.programs()


@pytest.fixture(scope="module")
def plain() -> dict[str, list[bool]]:
    ran = subprocess.run([sys.executable, farther_forms.__file__], capture_output=True, text=True, check=True)
    found: dict[str, list[bool]] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_keeps_a_call_from_the_form_that_it_is_nearest_to(
    name: str, plain: dict[str, list[bool]]
) -> None:
    one = PROGRAMS[name]
    assert plain[name] == [False, True, False], "the last call, and that with one or the other thing mended"
    with compile_lens.watch() as program:
        farther_forms.run(one, one.last)
    (frame,) = program.frames
    again = frame.visits[-1].recompilation
    assert again is not None and again.changed is not None and len(again.failed) == len(one.calls)
    assert again.changed.source == one.source
    assert words.again(again).startswith(words.changed(again.changed))
    others = {failed.source for failed in again.others} - {one.source}
    told = words.also(again)
    assert others and told, "something else changed from another form"
    assert all(f" {words.changed(failed)}" in told for failed in again.others if failed.source in others)
    assert told in " ".join(text.page(program.record).split())
