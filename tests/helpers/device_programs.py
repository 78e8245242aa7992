"""Programs for one device each: captured where the device is absent, and run where it is present.

They collect the programs of the target tests. ``benchmarks/real_device.py`` and ``tests/whole/test_gpu.py``
compare what a capture reports for an H100 with a real one.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from suite import SUITE, rand
from torch import nn

TARGETS = Path(__file__).resolve().parents[1] / "_torch" / "targets"
"""Folder of the tests of targets, which define these programs."""


@dataclass(frozen=True)
class Program:
    """A program of ``group``. ``make`` takes a device's name and creates the function and its arguments there."""

    group: str
    name: str
    make: Callable[[str], tuple[Any, tuple[Any, ...]]]

    def __str__(self) -> str:
        return f"{self.group}: {self.name}"


def programs(groups: tuple[str, ...] = ()) -> list[Program]:
    """Return the programs of the given groups in order; without groups, all programs."""
    if str(TARGETS) not in sys.path:
        sys.path.append(str(TARGETS))
    return [Program(g, name, make) for g in groups or GROUPS for name, make in GROUPS[g]().items()]


Makers = dict[str, Callable[[str], tuple[Any, tuple[Any, ...]]]]


OF_HERE = re.compile(r"'(backend_hash|kernel_name)': '[^']*',? ?")
"""Parts of a kernel's source that depend on the installation."""


def told(kernels: Iterable[Any]) -> list[tuple[str, str, int, str]]:
    """Return the kernels in a representation that is the same on every machine."""
    return [(k.phase, k.name, k.launches, OF_HERE.sub("", k.source)) for k in kernels]


def on(value: Any, device: str) -> Any:
    """Return a value with its tensors copied to a device, as leaves that require a gradient where the originals did."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(device, copy=True).requires_grad_(value.requires_grad)
    if isinstance(value, nn.Module):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(on(v, device) for v in value)
    return value


def _fixed(make: Callable[[], tuple[Any, tuple[Any, ...]]]) -> Callable[[str], tuple[Any, tuple[Any, ...]]]:
    def made(device: str) -> tuple[Any, tuple[Any, ...]]:
        torch.manual_seed(0)
        fn, args = make()
        return on(fn, device), on(tuple(args), device)

    return made


def _given(fn: Any, *args: Any) -> Callable[[str], tuple[Any, tuple[Any, ...]]]:
    return _fixed(lambda: (fn, args))


def _in_16_bits(make: Callable[[], tuple[Any, Any]]) -> Callable[[str], tuple[Any, tuple[Any, ...]]]:
    """Run a training step of a model under CUDA's autocast."""

    def made(device: str) -> tuple[Any, tuple[Any, ...]]:
        model, args = _fixed(make)(device)

        def step(*args: Any) -> Any:
            with torch.autocast("cuda", torch.bfloat16):
                return model(*args)

        return step, args

    return made


def _with_gradients(args: Any) -> tuple[Any, ...]:
    return tuple(a.detach().requires_grad_() if a.is_floating_point() else a for a in args)


def _suite() -> Makers:
    found: Makers = {}
    for name, make in SUITE.items():
        found[name] = _fixed(make)

        def without(make: Any = make) -> tuple[Any, tuple[Any, ...]]:
            fn, args = make()
            return fn, tuple(a.detach() for a in args)

        found[f"{name}, inputs without a gradient"] = _fixed(without)
    return found


def _asking() -> Makers:
    import test_as_the_device as asked

    one = [row[0] for row in (*asked.BRANCHES, *asked.ON_CUDA)]
    one += [asked.factory, asked.to_cuda, asked.there_and_back, asked.scalar, asked.drawn, asked.current]
    one += [asked.literal, asked.on_the_cpu, asked.default, asked.unsafe, asked.branch_after_a_break]
    found: Makers = {fn.__name__: _given(fn, rand(4, 4)) for fn in one}
    found |= {fn.__name__: _given(fn, rand(16, 16), rand(16, 16)) for fn, _ in asked.PRODUCTS}
    for name, fn, _ in asked.RESULTS:

        def region(x: Any, w: Any, fn: Any = fn) -> Any:
            with torch.autocast("cuda", torch.bfloat16):
                return fn(x @ w)

        found[f"{name} under autocast"] = _given(region, rand(16, 16), rand(16, 16))
    return found


def _attention() -> Makers:
    import test_attention as attention

    found: Makers = {}
    for name, (fn, args, target, *_) in attention.CASES.items():
        if target == "h100":
            found[name] = _given(fn, *args)
            found[f"{name}, with gradients"] = _given(fn, *_with_gradients(args))
    for name, grad in (("flex", False), ("flex, with gradients", True)):

        def flex(device: str, grad: bool = grad) -> tuple[Any, tuple[Any, ...]]:
            from torch.nn.attention.flex_attention import create_block_mask, flex_attention

            heads = on(tuple(rand(2, 4, 256, 64, dtype=torch.bfloat16, grad=grad) for _ in range(3)), device)
            mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 256, 256, device=device)
            return (lambda q, k, v: flex_attention(q, k, v, block_mask=mask)), heads

        found[name] = flex
    return found


def _libraries() -> Makers:
    import test_convolutions as convolutions
    import test_fallbacks as fallbacks
    import test_kernels_of_the_device as kernels

    found: Makers = {}
    for name, (args, options, *_) in convolutions.CASES_2D.items():

        def convolution(x: Any, w: Any, options: Any = options) -> Any:
            return F.conv2d(x, w, padding=1, **options)

        found[f"convolution, {name}"] = _given(convolution, *args)
        found[f"convolution, {name}, with gradients"] = _given(convolution, *_with_gradients(args))
    for name, (args, options, _) in fallbacks.SAMPLES.items():

        def sample(x: Any, grid: Any, options: Any = options) -> Any:
            return F.grid_sample(x, grid, **{"align_corners": True, **options})

        found[f"grid sample, {name}"] = _given(sample, *args)
    for name, (text, shape, _) in kernels.PROGRAMS.items():
        found[name] = _given(eval(f"lambda x: {text}", {"F": F}), rand(*shape))

    def recurrent() -> tuple[Any, tuple[Any, ...]]:
        return nn.GRUCell(16, 32), (torch.rand(4, 16), torch.rand(4, 32))

    found["GRU cell"] = _fixed(recurrent)
    found["LSTM"] = _fixed(lambda: (nn.LSTM(16, 32, batch_first=True), (torch.rand(4, 7, 16),)))
    return found


def _models() -> Makers:
    import test_models_under_autocast as models
    from gpt2 import Size, example

    size = Size(layers=4, heads=8, width=512, tokens=256, vocabulary=50304)
    made: dict[str, Callable[[], tuple[Any, Any]]] = {
        "GPT-2, 4 layers": lambda: example(size, batch=4),
        "encoder layer": lambda: (
            nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True),
            (torch.rand(8, 64, 256),),
        ),
        "MLP": lambda: (
            nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)),
            (torch.rand(512, 1024),),
        ),
        "convolutions": lambda: (
            nn.Sequential(
                *(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU()),
                *(nn.Conv2d(64, 128, 3, 2, 1), nn.BatchNorm2d(128), nn.ReLU()),
            ),
            (torch.rand(16, 3, 64, 64),),
        ),
    }
    found: Makers = {name: _fixed(make) for name, make in made.items()}
    small = {"small GPT-2": models.gpt2, "mixture of experts": models.experts, "denoiser": models.denoiser}
    found |= {f"{name}, bf16": _in_16_bits(make) for name, make in {**made, **small}.items()}
    return found


def _optimizers() -> Makers:
    import test_optimizers as optimizers

    kinds: dict[str, tuple[str, dict[str, Any]]] = {
        kind: (kind, {})
        for kind in (
            *("AdamW", "SGD", "ASGD", "RAdam", "Adamax", "Adadelta", "NAdam", "RMSprop", "Adagrad", "Rprop"),
        )
    }
    kinds["AdamW, one by one"] = ("AdamW", {"foreach": False})
    kinds["Adam, amsgrad"] = ("Adam", {"amsgrad": True})
    kinds["Adam, fused"] = ("Adam", {"fused": True})
    kinds["SGD, momentum"] = ("SGD", {"momentum": 0.9})
    found: Makers = {}
    for name, (kind, options) in kinds.items():

        def step(device: str, kind: str = kind, options: Any = options) -> tuple[Any, tuple[Any, ...]]:
            torch.manual_seed(0)
            parameters = [nn.Parameter(torch.randn(s).to(device)) for s in optimizers.SHAPES]
            for one in parameters:
                one.grad = torch.ones_like(one)
            made = getattr(torch.optim, kind)(parameters, **{"lr": 0.1, **options})
            made.step()  # the first step also creates the state
            return made.step, ()

        found[name] = step
    return found


def _own_kernels() -> Makers:
    """Return nothing where Triton is not installed: these programs launch their own Triton kernels."""
    if importlib.util.find_spec("triton") is None:
        return {}
    import triton_kernels

    names = ("launched", "softmax", "product")
    return {
        name: _given(getattr(triton_kernels, name), *(torch.rand(64, 64) for _ in "xy")) for name in names
    }


GROUPS: dict[str, Callable[[], Makers]] = {
    "suite": _suite,
    "asks the device": _asking,
    "attention": _attention,
    "libraries": _libraries,
    "models": _models,
    "optimizers": _optimizers,
    "own Triton kernels": _own_kernels,
}
"""Name of a group, and a maker of its programs."""
