"""An interrupt ends a long piece of work, even one that Python drops: in ``__del__`` and weakref callbacks."""

from __future__ import annotations

import importlib
import itertools
import os
import signal
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from compile_lens import compare, what_if
from compile_lens.trials.progress import interrupts

pytestmark = [
    pytest.mark.torch,
    # The dropped exception is intended.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SWITCHES = ["pattern_matcher", "aggressive_fusion", "combo_kernels", "reorder_for_peak_memory"]


class Held:
    """The target of a weak reference."""


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    for _ in range(1_000):  # Python calls the handler between two of its own instructions
        pass


def dropped() -> None:
    """Interrupt Python in a callback: the exception is printed and dropped."""
    held = Held()
    reference = weakref.ref(held, lambda _: interrupt())
    del held
    assert reference() is None


class Calls:
    """A function that drops an interrupt in its call with this number. The restored state leaves out its counter."""

    def __init__(self, number: int) -> None:
        self.number, self.numbers = number, itertools.count(1)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        self.between()
        return y + y.sum(0)

    @torch.compiler.disable
    def between(self) -> None:
        if next(self.numbers) == self.number:
            dropped()


@pytest.fixture(autouse=True)
def pythons_own() -> Iterator[None]:
    """Python's handler, which a pytest-xdist worker may lack; the previous one is restored."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


def test_python_drops_it() -> None:
    dropped()  # otherwise the tests below prove nothing


def test_what_if_ends_after_the_switch_in_which_it_was_dropped() -> None:
    calls = Calls(number=3)  # the second trial: the first call is the unchanged capture
    result = what_if(calls, torch.rand(8, 8), switches=SWITCHES)
    assert next(calls.numbers) == 4
    assert result.interrupted and [t.name for t in result.trials] == SWITCHES[:2]
    assert all(t.capture is not None for t in result.trials)
    assert [name for name, why in result.not_tried if why.startswith("not reached")] == SWITCHES[2:]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_what_was_tried_whole_is_whole() -> None:
    result = what_if(Calls(number=2), torch.rand(8, 8), switches=SWITCHES[:1])
    assert not result.interrupted and len(result.trials) == 1, "nothing was left to end"


@pytest.mark.full
def test_comparing_ends_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("compile_lens.api.compare")
    whole, asked = module.capture, []

    def captured(*args: Any, **options: Any) -> Any:
        asked.append(options["target"])
        dropped()
        return whole(*args, **options)

    monkeypatch.setattr(module, "capture", captured)
    with pytest.raises(KeyboardInterrupt):
        compare(torch.sin, torch.rand(8, 8), targets=["cpu:avx2", "cpu:avx512"])
    assert asked == ["cpu:avx2"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def loop(work: Callable[[int], Any], times: int = 5) -> int:
    """Return the number of completed iterations."""
    done = 0
    with interrupts() as check:
        for number in range(times):
            check()
            work(number)
            done += 1
    return done


def once(number: int) -> None:
    if number == 1:
        dropped()


def test_a_handler_of_the_users_is_called() -> None:
    seen: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    own = signal.getsignal(signal.SIGINT)
    assert loop(once) == 5, "it raises nothing, so that nothing is to end"
    assert seen == [signal.SIGINT] and signal.getsignal(signal.SIGINT) is own


def test_what_a_handler_of_the_users_raises_is_raised() -> None:
    class Enough(Exception):
        pass

    def own(number: int, frame: Any) -> None:
        raise Enough("own words")

    signal.signal(signal.SIGINT, own)
    with pytest.raises(Enough, match="own words"):
        loop(once)
    assert signal.getsignal(signal.SIGINT) is own


def test_one_within_another() -> None:
    ended = []

    def work(number: int) -> None:
        try:
            loop(once)
        except KeyboardInterrupt:
            ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        loop(work)
    assert ended == [0], "both end"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL])
def test_where_no_handler_is_called_none_is_set(disposition: signal.Handlers) -> None:
    signal.signal(signal.SIGINT, disposition)
    with interrupts():
        assert signal.getsignal(signal.SIGINT) is disposition
    assert signal.getsignal(signal.SIGINT) is disposition


def test_another_thread_sets_none() -> None:
    seen: list[Any] = []

    def work() -> None:
        with interrupts() as check:
            seen.append(signal.getsignal(signal.SIGINT))
            check()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_handler_that_the_work_sets_stays() -> None:
    def own(number: int, frame: Any) -> None:
        pass

    loop(lambda number: signal.signal(signal.SIGINT, own), times=1)
    assert signal.getsignal(signal.SIGINT) is own
