"""Python's garbage collector runs less during a compile, and afterwards has the program's settings again."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch._inductor import config

from compile_lens import CaptureError, capture
from compile_lens._torch.ground.python_runtime import (
    OLDEST_THRESHOLD,
    YOUNG_THRESHOLD,
    less_garbage_collection,
)

pytestmark = pytest.mark.torch


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


@contextlib.contextmanager
def settings(*thresholds: int) -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*thresholds)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def torchs() -> contextlib.AbstractContextManager[None] | None:
    """Torch's own context manager around a compile, which exists since 2.15."""
    made = getattr(torch._dynamo.utils, "deferred_full_gc", None)
    return None if made is None else made()


COLLECTIONS = """
import contextlib, gc
import torch
from compile_lens import capture
from compile_lens._torch.ground import python_runtime

def wave(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2

def collections():
    generations = []
    def note(phase, info):
        if phase == "start":
            generations.append(info["generation"])
    gc.collect()
    gc.callbacks.append(note)
    capture(wave, x)
    gc.callbacks.remove(note)
    return len(generations)

x = torch.rand(1000, requires_grad=True)
capture(wave, x)
gc.set_threshold(700, 10, 10)
quieter = collections()
python_runtime.less_garbage_collection = contextlib.nullcontext
print(quieter, collections())
"""


@pytest.mark.exhaustive
def test_a_capture_is_not_searched_for_garbage_again_and_again() -> None:
    """The count runs in a new process, where it is the same every time: here it depends on earlier tests."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECTIONS], capture_output=True, text=True, timeout=300, check=True
    )
    quieter, usual = map(int, done.stdout.split())
    assert 0 < quieter < 0.75 * usual, done.stdout


def test_everything_is_looked_through_less_often() -> None:
    with settings(700, 10, 10), less_garbage_collection():
        found = gc.get_threshold()
    assert found[0] * found[1] * found[2] > 10 * (700 * 10 * 10)


def test_the_settings_are_those_of_the_program_where_its_code_runs() -> None:
    seen: list[tuple[int, ...]] = []

    def broken(x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        print(end=str(seen.append(gc.get_threshold()) or ""))
        return x.cos()

    with settings(701, 11, 12):
        capture(broken, torch.rand(8))
        assert gc.get_threshold() == (701, 11, 12)
    assert seen == [(701, 11, 12)]


def test_during_the_compile_they_are_raised_and_put_back_when_it_fails() -> None:
    seen: list[tuple[int, ...]] = []

    def look(graph: Any) -> None:
        seen.append(gc.get_threshold())
        raise ValueError("a pass of the program's")

    with settings(702, 11, 12):
        with config.patch(post_grad_custom_post_pass=look), pytest.raises(CaptureError):
            capture(wave, torch.rand(8))
        assert gc.get_threshold() == (702, 11, 12)
    assert seen and seen[0][0] == YOUNG_THRESHOLD


@pytest.mark.parametrize("thresholds", [(0, 10, 10), (YOUNG_THRESHOLD * 2, 5, OLDEST_THRESHOLD * 2)])
def test_a_collector_that_is_off_or_quieter_still_is_left_alone(thresholds: tuple[int, ...]) -> None:
    with settings(*thresholds):
        with torchs() or contextlib.nullcontext():
            torch_sets = gc.get_threshold()
        with less_garbage_collection():
            assert gc.get_threshold() == torch_sets
        assert gc.get_threshold() == thresholds
    assert torchs() is not None or torch_sets == thresholds


@pytest.mark.skipif(torchs() is not None, reason="this torch itself puts back what it found")
def test_what_the_program_sets_meanwhile_stays() -> None:
    with settings(703, 11, 12):
        with less_garbage_collection():
            gc.set_threshold(999, 8, 8)
        assert gc.get_threshold() == (999, 8, 8)


@pytest.mark.skipif(torchs() is None, reason="this torch leaves the collector alone")
@pytest.mark.parametrize("captures", ["first", "second"])
def test_a_capture_and_a_compile_of_another_thread_that_overlap(captures: str) -> None:
    """The last one to end restores the settings that held before both."""
    begun, over = threading.Event(), threading.Event()
    first, second = (
        (less_garbage_collection, torchs) if captures == "first" else (torchs, less_garbage_collection)
    )

    def other() -> None:
        with first() or contextlib.nullcontext():
            begun.set()
            over.wait(10)

    with settings(704, 11, 12):
        thread = threading.Thread(target=other)
        thread.start()
        assert begun.wait(10)
        with second() or contextlib.nullcontext():
            over.set()
            thread.join()
            assert gc.get_threshold()[0] == YOUNG_THRESHOLD
        assert gc.get_threshold() == (704, 11, 12)


def test_compiles_of_several_threads_that_overlap() -> None:
    begun, over = threading.Event(), threading.Event()

    def other() -> None:
        with less_garbage_collection():
            begun.set()
            over.wait(10)

    with settings(704, 11, 12):
        thread = threading.Thread(target=other)
        with less_garbage_collection():
            with less_garbage_collection():
                thread.start()
                assert begun.wait(10)
            assert gc.get_threshold()[0] == YOUNG_THRESHOLD
        assert gc.get_threshold()[0] == YOUNG_THRESHOLD  # the other one is still running
        over.set()
        thread.join()
        assert gc.get_threshold() == (704, 11, 12)
