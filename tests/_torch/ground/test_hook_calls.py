"""A call through a hook: torch's function runs once, its errors pass through, and ours do not."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from compile_lens import UsageError
from compile_lens._torch.ground.hook_calls import Deliberate, call


class Torchs(Exception):
    pass


def run(wrap: Callable[..., Any], raises: type[BaseException] | None = None) -> tuple[Any, int, list[str]]:
    """Return the result of a call, the number of runs of the real function, and the names of the recorded errors."""
    calls: list[int] = []
    noted: list[str] = []

    def real(x: int) -> int:
        calls.append(x)
        if raises is not None:
            raise raises("of torch")
        return x + 1

    def note(error: Exception) -> None:
        noted.append(type(error).__name__)

    try:
        result: Any = call(note, wrap, ("before",), real, (1,), {})
    except BaseException as error:
        result = type(error).__name__
    return result, len(calls), noted


def test_it_sees_what_comes_before_and_the_result() -> None:
    assert run(lambda before, real, x: (before, real(x))) == (("before", 2), 1, [])


def test_an_error_before_the_real_function() -> None:
    def wrap(before: str, real: Any, x: int) -> Any:
        raise AttributeError("colno")

    assert run(wrap) == (2, 1, ["AttributeError"])
    assert run(wrap, Torchs) == ("Torchs", 1, ["AttributeError"])


def test_an_error_after_it() -> None:
    def wrap(before: str, real: Any, x: int) -> Any:
        real(x)
        raise KeyError("x")

    assert run(wrap) == (2, 1, ["KeyError"])


def test_an_error_of_torchs_passes_as_it_is() -> None:
    assert run(lambda before, real, x: real(x), Torchs) == ("Torchs", 1, [])
    assert run(lambda before, real, x: real(x), KeyboardInterrupt) == ("KeyboardInterrupt", 1, [])


def test_an_error_of_torchs_holds_nothing_once_it_is_handled() -> None:
    """A reference cycle between the error and a list would keep the objects of its frames alive."""
    gc.collect()
    gc.disable()
    try:
        held: list[weakref.ref[Torchs]] = []

        def wrap(before: str, real: Any, x: int) -> Any:
            try:
                return real(x)
            except Torchs as error:
                held.append(weakref.ref(error))
                raise

        assert run(wrap, Torchs)[0] == "Torchs"
        assert held[0]() is None
    finally:
        gc.enable()


def test_an_error_while_one_of_torchs_is_handled() -> None:
    def wrap(before: str, real: Any, x: int) -> Any:
        try:
            return real(x)
        except Torchs:
            raise AttributeError("of ours") from None

    assert run(wrap, Torchs) == ("Torchs", 1, ["AttributeError"])


def test_an_error_of_torchs_that_is_expected() -> None:
    def wrap(before: str, real: Any, x: int) -> Any:
        try:
            return real(x)
        except Torchs:
            return "instead"

    assert run(wrap, Torchs) == ("instead", 1, [])


@pytest.mark.parametrize("kind", [Deliberate, UsageError])
def test_what_is_raised_on_purpose_passes(kind: type[Exception]) -> None:
    def wrap(before: str, real: Any, x: int) -> Any:
        raise kind("on purpose")

    assert run(wrap) == (kind.__name__, 0, [])


def test_an_error_of_the_note_harms_nobody() -> None:
    def note(error: Exception) -> None:
        raise RuntimeError("no note")

    def wrap(real: Any) -> Any:
        raise AttributeError("of ours")

    assert call(note, wrap, (), lambda: 3, (), {}) == 3
