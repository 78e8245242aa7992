"""Torch's process-wide counters leave out captures, and include the program's own compiles."""

from __future__ import annotations

import copy
import gc
import logging
from typing import Any

import pytest
import torch
import torch._dynamo.convert_frame as convert_frame
import torch._inductor.metrics as metrics
from module_state import diff, scan

from compile_lens import CaptureError, capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def wave(x: Any) -> Any:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def broken(x: Any) -> Any:
    y = torch.sin(x)
    torch._dynamo.graph_break()
    return torch.cos(y)


def around(x: Any) -> Any:
    return broken(x) + 1


def raises(x: Any) -> Any:
    y = torch.sin(x)
    raise KeyError("mine")
    return y


def rejected(x: Any) -> Any:
    return x @ torch.ones(3, 3)


def leaf(n: int = 16) -> torch.Tensor:
    return torch.linspace(0, 1, n, requires_grad=True)


CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (wave, {}),
    "dynamic": (wave, {"dynamic": True}),
    "breaks": (around, {}),
    "raises": (raises, {}),
    "rejected": (rejected, {}),
    "break refused": (broken, {"fullgraph": True}),
    "nothing compiled": (len, {}),
    "matrix product": (lambda x: torch.softmax(x.reshape(4, 4) @ x.reshape(4, 4), -1), {}),
}


def once(name: str) -> None:
    function, options = CALLS[name]
    try:
        capture(function, leaf(), **options)
    except CaptureError:
        assert name in ("raises", "rejected", "break refused")


@pytest.mark.parametrize("name", CALLS)
def test_a_capture_is_not_counted(name: str) -> None:
    once(name)
    before = copied()
    once(name)
    assert copied() == before


def copied() -> dict[str, Any]:
    utils = torch._dynamo.utils
    return {
        "metrics": {k: copy.copy(v) for k, v in vars(metrics).items() if type(v) in (int, float, list)},
        "counters": {k: dict(v) for k, v in utils.counters.items() if v},
        "times": {k: len(v) for k, v in utils.compilation_time_metrics.items()},
        "nanoseconds": dict(utils.cumulative_time_spent_ns),
        "compiles": dict(convert_frame.FRAME_COMPILE_COUNTER),
        "next frame": convert_frame.FRAME_COUNTER,
    }


def test_a_compile_of_the_program_is_counted() -> None:
    """The counters are the same with captures around the compile as without."""

    def compiled(x: Any) -> Any:
        return torch.tanh(x) + 3

    before = copied()
    torch.compile(compiled, backend="aot_eager")(leaf())
    alone = copied()
    torch._dynamo.eval_frame.reset_code(compiled.__code__)
    capture(wave, leaf())
    torch.compile(compiled, backend="aot_eager")(leaf())
    capture(wave, leaf())
    after = copied()

    def added(a: dict[str, Any], b: dict[str, Any]) -> dict[str, int]:
        names = {(k, n) for k, v in b["counters"].items() for n in v if not n.endswith("time")}
        return {f"{k} {n}": b["counters"][k][n] - a["counters"].get(k, {}).get(n, 0) for k, n in names}

    assert added(alone, after) == {k: v for k, v in added(before, alone).items()}
    assert added(before, alone)["stats unique_graphs"] == 1


NEVER_TWICE = {
    # Torch makes these names unique with a number; a number that was used must not come back.
    "torch.fx.graph_module:_loader.next_id": "names of generated sources in tracebacks",
    "torch._subclasses.meta_utils:DESCRIBER_NEXT_ID": "ids of tensors in torch's logs",
}
TORCHS_OWN = {
    "torch.fx._symbolic_trace:_wrapped_fns_to_patch": "torch's note of the globals of a module, seen once more",
    "torch._dynamo.convert_frame:input_codes.seen": "weak references to code that is gone; the next capture drops them",
    "torch._dynamo.convert_frame:output_codes.seen": "the same",
}
"""What a second capture of a function may change, and why."""


@pytest.mark.full
@pytest.mark.cases(full=1)
@pytest.mark.parametrize("name", CALLS)
def test_no_module_of_torch_is_left_changed(name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Every value and container of torch's compiler modules is as the previous capture left it."""
    # pytest keeps log records, and tracebacks keep their frames and code alive.
    caplog.set_level(logging.CRITICAL + 1, "torch._subclasses.fake_tensor")
    once(name)
    once(name)
    gc.collect()
    before = scan()
    once(name)
    gc.collect()  # a failure keeps frames alive in a cycle
    allowed = (*NEVER_TWICE, *TORCHS_OWN)
    assert [line for line in diff(before, scan()) if not line.startswith(allowed)] == []
