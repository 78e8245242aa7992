"""Operators that torch decomposes unless its build has a kernel for the device stay whole if the device has one.

The oracle is plain torch in processes in which a kernel is registered by hand under the name of the operator:
``torch._C._dispatch_dump_table`` shows the function that autograd then calls, AOTAutograd the graph, and a mode the
dispatched operators. A CPU kernel serves for this, since one table has all devices. The existing kernels are read
from ``native_functions.yaml`` by the YAML parser of torch's own generator.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compile_lens import capture
from compile_lens._torch.targets import cpu_backed_tensors
from compile_lens._torch.targets.replacements import Replacements
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(torch.accelerator.is_available(), reason="a device that is there answers by itself"),
]


def here(fn: Any, *args: Any, target: str = "h100") -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def plainly(script: str, *given: Any) -> Any:
    """The last output of a script, in a process of plain torch."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(json.dumps, given)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


# The dispatcher's table --------------------------------------------------------------------------------------

ROWS = """
import json, os, sys, torch, torchgen, yaml
key = json.loads(sys.argv[1])
path = os.path.join(os.path.dirname(torchgen.__file__), "packaged/ATen/native/native_functions.yaml")
keys, delegates = {}, {}
for entry in yaml.load(open(path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    name = entry["func"].partition("(")[0]
    keys[name] = {k.strip() for many in entry.get("dispatch") or () for k in many.split(",")}
    delegates[name] = entry.get("structured_delegate")
names = [n for n in keys if key in keys[n] | keys.get(delegates[n], set())]
def rows():
    found = {}
    for name in names:
        lines = torch._C._dispatch_dump_table("aten::" + name).splitlines()
        found[name] = {k: v for k, _, v in (line.partition(": ") for line in lines) if k != key}
    return found
before = rows()
library = torch.library.Library("aten", "IMPL")
for name in names:
    if not torch._C._dispatch_has_kernel_for_dispatch_key("aten::" + name, key):
        library.impl(name, lambda *args, **kwargs: None, key)
after = rows()
whole = {n: after[n]["Autograd" + key] for n in names if "[autograd kernel]" in after[n]["Autograd" + key]}
changed = {n: {k: v for k, v in after[n].items() if v != before[n][k]} for n in names}
print(json.dumps([len(names), whole, {n: rows for n, rows in changed.items() if rows}]))
"""


def row(name: str, key: str) -> str:
    lines = torch._C._dispatch_dump_table(f"aten::{name}").splitlines()
    return next(v for k, _, v in (line.partition(": ") for line in lines) if k == key)


@pytest.mark.full
@pytest.mark.parametrize("key", ["CUDA", "MPS"])
@pytest.mark.cases(full=1)
def test_autograd_finds_the_functions_that_it_finds_in_a_build_for_the_device(key: str) -> None:
    pytest.importorskip("yaml")
    kernels, whole, changed = plainly(ROWS, key)
    assert kernels > 800 and {"_fused_rms_norm", "silu_backward", "mish_backward"} <= set(whole)
    # Among all kernels of a build for the device, only these decide what autograd or autocast calls.
    assert all(list(rows) == [f"Autograd{key}"] for rows in changed.values())
    before = {name: row(name, f"Autograd{key}") for name in whole}
    assert changed if key == "MPS" else True
    with Replacements() as places, places:
        cpu_backed_tensors.place(places, torch.device(key.lower(), 0))
        assert {name: row(name, f"Autograd{key}") for name in whole} == whole
    assert {name: row(name, f"Autograd{key}") for name in whole} == before


# The graphs, and the operators that eager PyTorch dispatches -------------------------------------------------


PROGRAMS = {
    "rms_norm": ("F.rms_norm(x, (64,), x[0])", (32, 64), ["_fused_rms_norm", "_fused_rms_norm_backward"]),
    "silu": ("F.silu(x)", (32, 64), []),
    "mish": ("F.mish(x)", (32, 64), []),
    "linear": ("F.linear(x, x[:16], x[0, :16])", (32, 64), ["linear", "linear_backward"]),
    "max_pool2d": ("F.max_pool2d(x, 2) * 2", (2, 4, 16, 16), ["max_pool2d", "max_pool2d_backward"]),
}
"""Each with the operators that get a kernel by hand: the CPU has those for SiLU and Mish."""

PLAIN = """
import json, sys, torch, torch.nn.functional as F
import torch._inductor.lowering
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table
from torch.utils._python_dispatch import TorchDispatchMode
program, shape, by_hand = (json.loads(a) for a in sys.argv[1:])
library = torch.library.Library("aten", "IMPL")
def norm(x, shape, weight, eps):
    r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + (eps or 1e-6))
    return x * r * weight, r
KERNELS = {
    "_fused_rms_norm": norm,
    "_fused_rms_norm_backward": lambda grad, x, shape, r, weight, mask: (grad * 1, weight * 1),
    "linear": lambda x, w, b=None: torch.addmm(b, x, w.t()),
    "linear_backward": lambda x, grad, w, mask: (grad @ w, grad.t() @ x, grad.sum(0)),
    "max_pool2d": lambda x, *more: torch.ops.aten.max_pool2d_with_indices(x, *more)[0],
    "max_pool2d_backward": lambda grad, x, *more: x * 1,
}
for name in by_hand:
    library.impl(name, KERNELS[name], "CPU")
    if name == "max_pool2d_backward":
        library.impl(name, lambda grad, x, *more: x.new_empty(x.shape), "Meta")
f = eval("lambda x: " + program)
def named(gm):
    return [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]
def joint(gm, inputs, **more):
    graphs.append(named(gm))
    from torch._functorch.partitioners import default_partition
    return default_partition(gm, inputs, **more)
graphs, counted = [], []
class Counted(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        counted.append(str(func))
        return func(*args, **kwargs or {})
x = torch.rand(shape, requires_grad=True)
grad = torch.ones_like(f(x))
with Counted():
    torch.autograd.grad(f(x), x, grad)
backend = aot_autograd(
    fw_compiler=lambda gm, i: gm.forward, partition_fn=joint, decompositions=select_decomp_table()
)
torch.compile(f, backend=backend)(x)
print(json.dumps([graphs[0], counted]))
"""

NO_WORK = ("aten.detach.", "aten.select.", "aten.slice.")


@pytest.mark.full
@pytest.mark.cases(full=1)
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("rms_norm", "h100"),
        ("silu", "h100"),
        ("mish", "h100"),
        ("rms_norm", "mps"),
        ("linear", "mps"),
        ("max_pool2d", "mps"),
    ],
)
def test_the_graph_and_eagers_operators_are_those_of_a_build_with_the_kernels(name: str, target: str) -> None:
    program, shape, by_hand = PROGRAMS[name]
    called, dispatched = plainly(PLAIN, program, shape, by_hand)
    found = here(eval(f"lambda x: {program}", {"F": F}), torch.rand(shape, requires_grad=True), target=target)
    (one,) = found.compilations
    graph = [
        n.target.replace("operator.getitem", "<built-in function getitem>") for n in one.graphs["joint"].calls
    ]
    assert graph == called
    assert found.target is not None and not found.target.queries
    counted = Counter({op.name: 0 for op in one.eager or ()})
    for op in one.eager or ():
        counted[op.name] += op.count
    assert counted == Counter(name for name in dispatched if not name.startswith(NO_WORK))


@pytest.mark.full
def test_nothing_of_it_is_left_for_the_next_capture() -> None:
    """The captures share one child: ``linear`` is one operator on a Mac, and not on an H100."""

    def f(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.linear(x, w)

    given = torch.rand(8, 64, requires_grad=True), torch.rand(16, 64)
    for target, backward in (("mps", True), ("h100", False), ("cpu:avx2", False), ("mps", True)):
        (one,) = capture(f, *given, target=target).compilations
        names = [n.target for n in one.graphs["joint"].calls]
        assert ("aten.linear_backward.default" in names) == backward


@pytest.mark.usefixtures("warm")
def test_the_gradient_of_a_pool_is_laid_out_as_its_input() -> None:
    """The rule is ``output.to(suggested_memory_format)`` of ``Pooling.mm``."""
    x = torch.rand(2, 4, 8, 8).to(memory_format=torch.channels_last).requires_grad_()
    (one,) = here(lambda x: F.max_pool2d(x, 2), x, target="mps").compilations
    (node,) = [n for n in one.graphs["joint"].calls if n.target == "aten.max_pool2d_backward.default"]
    assert [tuple(t.stride) for t in node.outputs] == [x.stride()]


@pytest.mark.usefixtures("warm")
def test_a_constant_is_folded_by_a_kernel_that_a_build_for_the_device_has() -> None:
    """Its values are on this machine: the kernel that is registered for the device runs on the CPU."""

    def f(x: torch.Tensor) -> torch.Tensor:
        weight = torch.tensor([[1.0, 2.0]], device=x.device)
        return x * F.linear(weight, weight)

    found = here(f, torch.ones(3), target="mps")
    assert found.failure is None and found.kernels
