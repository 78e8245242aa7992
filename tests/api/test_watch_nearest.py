"""The cache entry whose change a watch reports, against plain torch in another process: the call fits without it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import Any

import farther_forms
import pytest
import torch

import compile_lens
from compile_lens._torch.watch.program_watch import ProgramWatch
from compile_lens.views.render import text
from compile_lens.views.subjects.program import document
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

PROGRAMS = farther_forms.programs()


@pytest.fixture(scope="module")
def plain() -> dict[str, list[bool]]:
    ran = subprocess.run([sys.executable, farther_forms.__file__], capture_output=True, text=True, check=True)
    found: dict[str, list[bool]] = json.loads(ran.stdout)
    return found


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_keeps_a_call_from_the_form_that_it_is_nearest_to(
    name: str, plain: dict[str, list[bool]]
) -> None:
    one = PROGRAMS[name]
    assert plain[name] == [False, True, False], "the last call, and that with one or the other thing mended"
    with compile_lens.watch() as program:
        farther_forms.run(one, one.last)
    (frame,) = program.frames
    again = frame.evaluations[-1].recompilation
    assert again is not None and again.change is not None and len(again.failed_guards) == len(one.calls)
    assert again.change.source == one.source
    if one.alike:  # by torch's reasons all are equally near; by its compiles the first call's is nearest
        assert {failed.source for failed in again.failed_guards} == {one.source}
        assert again.change.id == frame.evaluations[0].id != again.failed_guards[0].id
        rows = [row.split()[:1] for row in text.page(document(program.record)).splitlines()]
        assert [again.change.id] in rows
        return
    assert words.again(again).startswith(words.changed(again.change))
    others = {failed.source for failed in again.other_guards} - {one.source}
    told = words.also(again)
    assert others and told, "something else changed from another form"
    assert all(
        f" {words.changed(failed)}" in told for failed in again.other_guards if failed.source in others
    )
    assert told in " ".join(text.page(document(program.record)).split())


def test_a_form_that_another_thread_made_before_torch_knew_of_it_is_counted() -> None:
    """A thread ends its compile, and waits before torch stores the entry; another one compiles in the meantime."""
    begun, done = threading.Event(), threading.Event()
    torch._dynamo.reset()

    def backend(gm: Any, inputs: Any) -> Any:
        begun.set()
        time.sleep(
            0.5 if threading.current_thread().name == "first" else 0
        )  # the other thread starts, and waits
        return gm.forward

    def held(seen: Any) -> None:
        if threading.current_thread().name == "first":
            done.wait(60)

    def second() -> None:
        begun.wait(60)
        compiled(torch.ones(1, 1, 4))
        done.set()

    compiled = torch.compile(farther_forms.sine, backend=backend, dynamic=False)
    compiled(torch.ones(4))
    begun.clear()
    watch = ProgramWatch(whole=True)
    watch.open(kept=held)
    first = threading.Thread(target=lambda: compiled(torch.ones(2, 4)), name="first")
    other = threading.Thread(target=second)
    for thread in (first, other):
        thread.start()
    for thread in (first, other):
        thread.join()
    watch.close("")
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(farther_forms.sine.__code__)
    visits = [visit for frame in watch.observations().frames for visit in frame.evaluations]
    counts = [visit.recompilation.cache_entries for visit in visits if visit.recompilation is not None]
    assert sorted(counts) == [1, 2] and len(entries) == 3, "the first form, and one for each thread"
