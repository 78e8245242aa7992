"""Dynamo's cache entries on the program's code: a capture's entries go, and the program's stay as they were."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo.convert_frame as convert_frame
from torch._C._dynamo import eval_frame

from compile_lens import CaptureError, capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

SCALE = 2.0


class Compiles:
    """A backend that counts what it compiles."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: Any) -> Any:
        self.count += 1
        return graph.forward


def entries(*functions: Any) -> list[tuple[Any, ...]]:
    """Cache entries of functions and of their resume functions."""
    codes = {id(f.__code__): f.__code__ for f in functions}
    rest = tuple(f"torch_dynamo_resume_in_{f.__name__}_at" for f in functions)
    for tracker in (convert_frame.input_codes, convert_frame.output_codes):
        for code in [r() for r in tracker.seen]:
            if code is not None and code.co_filename == __file__ and code.co_name.startswith(rest):
                codes[id(code)] = code
    return [
        (code.co_name, id(code), e.code, id(e.guard_manager), str(e.compile_id), e.backend)
        for code in codes.values()
        for e in eval_frame._debug_get_cache_entry_list(code)
    ]


def own(function: Any) -> list[tuple[Any, ...]]:
    return [e for e in entries(function) if e[0] == function.__name__]


def inner(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return torch.cos(y) * SCALE


def outer(x: torch.Tensor) -> torch.Tensor:
    return inner(x * 2) + 1


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Resets Dynamo, so that each test starts with functions that it has not compiled."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.exhaustive
def test_captures_beside_a_compiled_function_that_breaks_inside() -> None:
    compiles = Compiles()
    mine = torch.compile(outer, backend=compiles)
    x = torch.rand(8)
    expected = mine(x)
    before = entries(inner, outer)
    assert len(before) >= 3
    for _ in range(12):
        assert len(capture(outer, x).compilations) >= 3
        assert entries(inner, outer) == before
    count = compiles.count
    assert torch.equal(mine(x), expected) and compiles.count == count
    mine(torch.rand(3, 3))
    assert compiles.count > count, "a new shape is compiled as before"


A_WATCH_FIRST = """
import torch
import compile_lens
from torch._C._dynamo import eval_frame

def inner(x):
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return torch.cos(y)

def outer(x):
    return inner(x) + 1

def told():
    print([(str(e.compile_id), e.code is None) for e in eval_frame._debug_get_cache_entry_list(inner.__code__)])

with compile_lens.watch():
    torch.compile(outer, backend="eager")(torch.rand(3))
told()
compile_lens.capture(outer, torch.rand(3))
told()
"""


@pytest.mark.exhaustive
def test_a_watch_before_them_changes_nothing(child: Callable[..., str]) -> None:
    """A watch makes Dynamo skip our code, which includes the check whether entries can be restored."""
    told = child(A_WATCH_FIRST)
    before, after = told.splitlines()
    assert before == after


@pytest.mark.exhaustive
def test_the_function_stops_compiling_no_sooner() -> None:
    """Torch counts every entry of a code object, including dead ones, before it stops compiling the function."""
    mine = torch.compile(outer, backend=Compiles(), dynamic=False)
    with torch._dynamo.config.patch(accumulated_recompile_limit=4, recompile_limit=4):
        mine(torch.rand(8))
        for _ in range(6):
            capture(outer, torch.rand(8))
        before = len(own(inner))
        mine(torch.rand(9))
        after = len(own(inner))
    assert (before, after) == (1, 2)


@pytest.mark.full
def test_several_entries_keep_their_order_and_their_guards() -> None:
    global SCALE
    compiles = Compiles()
    mine = torch.compile(outer, backend=compiles, dynamic=False)
    inputs = [torch.rand(n) for n in (3, 4, 5)]
    expected = []
    for x in inputs:
        expected.append(mine(x))
    before, count = entries(inner, outer), compiles.count
    capture(outer, torch.rand(6))
    assert entries(inner, outer) == before
    for x, y in zip(inputs, expected, strict=True):
        assert torch.equal(mine(x), y)
    assert compiles.count == count
    SCALE = 3.0
    try:
        assert torch.allclose(mine(inputs[0]), outer(inputs[0]))
        assert compiles.count > count, "the guard on the global still looks"
    finally:
        SCALE = 2.0


@pytest.mark.full
def test_functions_of_every_signature() -> None:
    factor = torch.tensor(3.0)

    def picky(x: Any, /, y: Any = 1, *more: Any, scale: Any, other: Any = 2, **rest: Any) -> Any:
        z = torch.sin(x) * factor
        torch._dynamo.graph_break()
        return z * y * scale + other + sum(more) + rest["last"]

    def calls(x: Any) -> Any:
        return picky(x, 2, 3, 4, scale=5, last=6) + 1

    compiles = Compiles()
    mine = torch.compile(calls, backend=compiles)
    x = torch.rand(4)
    expected = mine(x)
    before, count = entries(picky, calls), compiles.count
    assert len(before) >= 2
    for _ in range(3):
        capture(calls, x)
    assert entries(picky, calls) == before
    assert torch.equal(mine(x), expected) and compiles.count == count


@pytest.mark.skipif(
    "isolate_recompiles" not in inspect.signature(torch.compile).parameters,
    reason="this torch keeps the entries of all compiles in one place",
)
def test_entries_of_a_region_stay_in_it() -> None:
    one, two = Compiles(), Compiles()
    x = torch.rand(8)
    first = torch.compile(outer, backend=one, isolate_recompiles=True)
    second = torch.compile(outer, backend=two, isolate_recompiles=True)
    first(x), second(x)
    regions = [e.isolate_recompiles_id for e in eval_frame._debug_get_cache_entry_list(inner.__code__)]
    capture(outer, x)
    found = [e.isolate_recompiles_id for e in eval_frame._debug_get_cache_entry_list(inner.__code__)]
    assert sorted(found) == sorted(regions) and len(set(regions)) == 2
    counts = one.count, two.count
    first(x), second(x)
    assert (one.count, two.count) == counts


@pytest.mark.full
def test_an_entry_of_the_program_that_is_dead_stays_dead() -> None:
    net = torch.nn.Linear(2, 2)

    def uses(x: Any, module: Any) -> Any:
        y = module(x)
        torch._dynamo.graph_break()
        return y + 1

    def calls(x: Any, module: Any) -> Any:
        return uses(x, module) * 2

    mine = torch.compile(calls, backend=Compiles())
    x = torch.rand(2, 2)
    mine(x, net)
    mine(x, torch.nn.Linear(2, 2).eval())
    gc.collect()
    before = [e[2] for e in own(uses)]
    capture(calls, x, net)
    assert [e[2] for e in own(uses)] == before


def test_what_a_capture_skips_is_not_skipped_for_the_program() -> None:
    """Dynamo marks the code of a frame that it skips; the mark applies to the capture only, not to the program."""
    broken = True

    def fragile(x: Any) -> Any:
        y = torch.sin(x)
        torch._dynamo.graph_break()
        return y + 1

    def calls(x: Any) -> Any:
        return fragile(x) * 2

    class Failing(RuntimeError):
        pass

    def fails(*args: Any) -> Any:
        if broken:
            raise Failing

    x = torch.rand(4)
    with torch._inductor.config.patch(pre_grad_custom_pass=fails), pytest.raises(CaptureError):
        capture(calls, x)
    broken = False
    compiles = Compiles()
    torch.compile(calls, backend=compiles)(x)
    assert compiles.count == 3


@pytest.mark.full
def test_a_capture_with_breaks_is_let_go() -> None:
    def program() -> Callable[[Any], Any]:
        def part(x: Any) -> Any:
            y = torch.sin(x)
            torch._dynamo.graph_break()
            return y + 1

        return lambda x: part(x) * 2

    kept = program()
    torch.compile(kept, backend=Compiles())(torch.rand(4))
    x = torch.rand(4)
    capture(kept, x)
    seen = known()
    for _ in range(5):
        capture(kept, x)
    ref = weakref.ref(x)
    del x
    assert known() == seen
    assert ref() is None


def known() -> int:
    gc.collect()
    alive = {id(r()) for r in (*convert_frame.input_codes.seen, *convert_frame.output_codes.seen)}
    return len(alive - {id(None)})


def test_every_capture_starts_with_the_same_compile_ids() -> None:
    x = torch.rand(8)
    torch.compile(outer, backend=Compiles())(x)
    counts, number = dict(convert_frame.FRAME_COMPILE_COUNTER), convert_frame.FRAME_COUNTER
    capture(outer, x)
    assert dict(convert_frame.FRAME_COMPILE_COUNTER) == counts
    assert convert_frame.FRAME_COUNTER == number
