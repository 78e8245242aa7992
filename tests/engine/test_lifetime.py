"""A capture leaves no cache entry, no tensor and no growth behind, and needs no tool."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from running import run
from state import diff, leaves, snapshot
from torch import nn

from compile_lens import CaptureError, capture
from compile_lens.versions import torch_version

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def leaf(n: int = 16) -> torch.Tensor:
    return torch.linspace(0, 1, n, requires_grad=True)


# Compiled copies, caches, growth.
@pytest.mark.exhaustive
def test_fifty_captures_beside_a_compiled_copy() -> None:
    compiles: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        compiles.append(1)
        return graph.forward

    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1

    mine = torch.compile(fn, backend=backend)
    mine(leaf())
    before = snapshot([fn])
    for i in range(50):
        found = capture(fn, leaf(8 + i % 3))
        assert {"dynamo", "joint", "forward.groups", "backward.groups"} <= set(found.compilations[0].graphs)
        assert set(found.code) == {"forward", "backward"}
    assert diff(before, snapshot([fn])) == []
    mine(leaf())
    assert compiles == [1], "the user's own compiled copy was compiled again"


@pytest.mark.exhaustive
def test_fifty_captures_of_a_module_beside_its_compiled_copy() -> None:
    compiles: list[int] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        compiles.append(1)
        return graph.forward

    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    mine = torch.compile(net, backend=backend)
    mine(torch.ones(2, 4))
    for _ in range(50):
        found = capture(net, torch.ones(2, 4), backward=False)
        assert "dynamo" in found.compilations[0].graphs
    mine(torch.ones(2, 4))
    assert compiles == [1]


@pytest.mark.exhaustive
def test_the_code_object_keeps_no_entries() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1

    capture(fn, leaf())
    assert torch._C._dynamo.eval_frame._debug_get_cache_entry_list(fn.__code__) == []
    gc.collect()
    ref = weakref.ref(fn)
    del fn
    gc.collect()
    assert ref() is None, "the capture keeps the user's function alive"


@pytest.mark.full
def test_tensors_are_let_go() -> None:
    net, x = nn.Linear(4, 4), torch.ones(2, 4, requires_grad=True)
    found, result = run(net, x)
    refs = [weakref.ref(t) for t in (x, result, net.weight, net.bias, net)]
    del x, result, net
    gc.collect()
    assert [r() is None for r in refs] == [True] * 5
    assert found.kernels  # the record itself is still here


@pytest.mark.full
def test_tensors_of_a_failed_capture_are_let_go() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        torch._dynamo.graph_break()
        raise ZeroDivisionError(str(y.shape))

    x = leaf()
    with pytest.raises(CaptureError) as caught:
        capture(fails, x)
    ref, partial = weakref.ref(x), caught.value.capture
    del x, caught
    gc.collect()
    assert ref() is None
    assert partial.failure is not None


# Objects that torch itself may leave behind at each compile: 2.11 retains stack summaries of guards (versions.py).
BOUND = 24 if torch_version() < (2, 13) else 3

# It runs in its own process: pytest keeps every log record of a test, and torch writes many.
GROWTH = """
import functools, gc, json, sys, torch
from compile_lens import capture

def fn(x):
    return torch.sin(x) + 1

def tracked():
    for thing in gc.get_objects():  # caches of torch that have a bound do not count
        if type(thing) is functools._lru_cache_wrapper and thing.cache_parameters()["maxsize"] is not None:
            thing.cache_clear()
    torch._dynamo.utils.clear_compilation_metrics()  # the last 64 compiles
    for _ in range(3):  # what one pass frees may free more
        gc.collect()
    return len(gc.get_objects())

def captures(count):
    for _ in range(count):
        capture(fn, torch.linspace(0, 1, 16, requires_grad=True))

captures(12)
objects, blocks = tracked(), sys.getallocatedblocks()
captures({count})
objects, blocks = tracked() - objects, sys.getallocatedblocks() - blocks
print(json.dumps([objects / {count}, blocks / {count}]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [100, pytest.param(1000, marks=pytest.mark.exhaustive)], ids=["a hundred", "a thousand"]
)
@pytest.mark.exhaustive
def test_no_growth_over_many_captures(child: Callable[..., str], count: int) -> None:
    """The bounds are per capture, so a hundred captures show the same as a thousand."""
    objects, blocks = json.loads(child(GROWTH.format(count=count), timeout=600))
    assert objects < (0.5 if BOUND == 3 else BOUND), f"each capture leaves {objects:.1f} objects behind"
    assert blocks < (2 if BOUND == 3 else 2 * BOUND), (
        f"each capture leaves {blocks:.1f} blocks of memory behind"
    )


@pytest.mark.slow
# State that torch.compile itself sets up with its first build; the capture does not cause it.
@leaves(but=("dynamo counters", "environment", "path", "meta path", "recursion limit", "warning filters"))
def test_full_caches_do_not_blind_it() -> None:
    """The same function was compiled, built and put into every cache of torch before the capture."""
    x = leaf(64)
    torch.compile(wave)(x).sum().backward()
    torch.compile(lambda t: wave(t))(x).sum().backward()
    found = capture(wave, leaf(64))
    assert found.missing == ()
    assert set(found.code) == {"forward", "backward"}


# Machines with fewer tools.
BARE = """
import shutil, sys, torch
from compile_lens import capture
assert not any(shutil.which(tool) for tool in ("g++", "gcc", "clang", "clang++", "c++", "cc", "dot"))
found = capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, torch.rand(1000, requires_grad=True))
assert set(found.code) == {"forward", "backward"} and found.missing == ()
assert len(found.text("full")) > 200
assert found.compilations[0].graphs["joint"].to_svg().lstrip().startswith("<")
print("ok")
"""


@pytest.mark.full
def test_path_without_compilers_and_dot(child: Callable[..., str], tmp_path: Any) -> None:
    (tmp_path / "empty").mkdir()
    env = {"PATH": str(tmp_path / "empty"), "CXX": None, "CC": None, "CUDA_HOME": None}
    env["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / "cache")
    assert child(BARE, env=env).strip() == "ok"


FIRST = """
import json, sys, torch, state
from compile_lens import capture
x = torch.linspace(0, 1, 64, requires_grad=True)
def wave(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2
before = state.snapshot([wave])
if WITH == "torch.compile":
    torch.compile(wave, backend="aot_eager")(x)
else:
    capture(wave, x)
print(json.dumps([line.split(":")[0] for line in state.diff(before, state.snapshot([wave]))]))
"""


@pytest.mark.exhaustive
def test_first_capture_of_a_process_changes_nothing_of_the_users(child: Callable[..., str]) -> None:
    """State that torch sets up for itself at its first compile (a logger's lazy handler; the device guard of a CUDA
    build) may stay, and nothing else."""
    ours, torchs = (
        set(json.loads(child(f"WITH = {by!r}\n{FIRST}").splitlines()[-1]))
        for by in ("capture", "torch.compile")
    )
    assert ours <= torchs & {"logger torch.__trace", "device guards"}


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.line = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.line(x))


@pytest.mark.full
def test_a_module_with_hooks_keeps_them_and_gains_no_entries() -> None:
    from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list as entries

    module, seen, compiles = Hooked(), [], []
    module.register_forward_hook(lambda m, args, out: seen.append(m))

    def count(gm: Any, example_inputs: Any) -> Any:
        compiles.append(gm)
        return gm.forward

    mine = torch.compile(module, backend=count)
    x = torch.rand(2, 4)
    mine(x)
    before = len(entries(Hooked.forward.__code__))
    for _ in range(12):
        assert capture(module, x).kernels
    assert "forward" not in vars(module)
    assert len(entries(Hooked.forward.__code__)) == before
    mine(x)
    assert len(compiles) == 1
    assert len(seen) == 14 and all(m is module for m in seen)
