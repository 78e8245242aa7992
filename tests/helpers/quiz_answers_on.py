"""Answers to the quiz for lessons 0, 5 to 12, and from 14 on, as described in ``quiz_answers.py``."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from plain_graphs import compiled
from quiz_answers import MATRIX, X, answer, atens, counted, launches, libraries, only, step
from torch._dynamo.testing import CompileCounter
from torch._functorch.aot_autograd import aot_module_simplified

from compile_lens import capture


@answer("0.1")
def _() -> float:
    absent = torch.rand(3, device="meta")
    assert torch.sin(absent).shape == (3,) and absent.dtype == torch.float32
    try:
        absent.tolist()
    except (NotImplementedError, RuntimeError):
        return 1
    return 0


@answer("0.2")
def _() -> float:
    return sum(kernel.language != "extern" for kernel in capture(torch.linalg.det, MATRIX).kernels)


@answer("0.3")
def _() -> float:
    languages = (
        capture(torch.sin, X, target=target).kernels[0].language for target in ("cpu:avx2", "h100", "mps")
    )
    return ["cpp", "triton", "metal"].index([*languages][2].lower())


@answer("0.4")
def _() -> float:
    operators = (torch.linalg.det, torch.linalg.eigvalsh, torch.linalg.svdvals, torch.sin)
    return only(libraries(one, MATRIX) == 0 for one in operators)


@answer("0.5")
def _() -> float:
    return launches(lambda x: x[:, 0, 0] * x[:, 1, 1] - x[:, 0, 1] * x[:, 1, 0], torch.rand(100, 2, 2))


@answer("5.1")
def _() -> float:
    return len(atens(F.mse_loss, X, X.flip(0)))


@answer("5.2")
def _() -> float:
    loops = capture(lambda x: x**3, X).compilations[0].graphs["inference.loops"].readable()
    return len(re.findall(r"= mul\(", loops))


@answer("5.3")
def _() -> float:
    choices = {
        "gelu": F.gelu,
        "layer_norm": lambda x: F.layer_norm(x, (64,)),
        "sort": lambda x: torch.sort(x)[0],
        "mse": lambda x: F.mse_loss(x, x + 1),
    }
    return only(name in " ".join(atens(function, MATRIX)) for name, function in choices.items())


@answer("5.4")
def _() -> float:
    return len(atens(F.silu, X))


@answer("5.5")
def _() -> float:
    q = torch.rand(2, 4, 16, 64)
    kernels = capture(lambda q: torch.softmax(q @ q.transpose(-1, -2) / 8, -1) @ q, q).kernels
    return only(
        [len(kernels) > 3, len(kernels) == 1 and "scaled_dot_product" in kernels[0].name, not kernels]
    )


@answer("6.1")
def _() -> float:
    return capture(lambda x: torch.exp(torch.sin(torch.cos(x))), X).ledger.total.loops


@answer("6.2")
def _() -> float:
    return capture(lambda x: (torch.sin(x), torch.cos(x)), X).ledger.total.loops


@answer("6.3")
def _() -> float:
    return capture(lambda x: (torch.sin(x), torch.cos(x)), X).ledger.total.groups


@answer("6.4")
def _() -> float:
    moved = capture(lambda x: torch.square(torch.square(x)), X).ledger.total.bytes_after
    return [4 * X.nbytes, 3 * X.nbytes, 2 * X.nbytes].index(moved)


@answer("6.5")
def _() -> float:
    def keeping(x: torch.Tensor) -> Any:
        y = torch.sin(x)
        return y, torch.cos(y)

    return capture(keeping, X).ledger.total.bytes_after


@answer("7.1")
def _() -> float:
    return step(torch.sin, X, "cpu:avx512")


@answer("7.2")
def _() -> float:
    return step(torch.sin, X, "cpu:avx2")


@answer("7.3")
def _() -> float:
    source = capture(torch.sin, X, target="cpu:avx512").kernels[0].source
    return int(re.findall(r"loadu\([^;]*static_cast<int64_t>\((\d+)L\)\)", source)[-1])


@answer("7.4")
def _() -> float:
    source = capture(torch.sin, X.bfloat16(), target="cpu:avx512").kernels[0].source
    double, single = ("convert<double" in source, "convert<float" in source)
    return only([double, not double and not single, single])


@answer("7.5")
def _() -> float:
    functions = (lambda x: x * 2, torch.exp, lambda x: torch.sin(x.flip(0)), lambda x: x + x)
    return only(step(one, X, "cpu:avx512") == 1 for one in functions)


@answer("8.1")
def _() -> float:
    source = capture(torch.sin, X, target="h100").kernels[0].source
    return only(
        ["threadIdx" in source, "tl.arange(0, XBLOCK)" in source, "for " in source.partition("def ")[2]]
    )


def softmaxes(dim: int) -> int:
    return launches(lambda x: torch.softmax(x, dim), torch.rand(512, 512), target="h100")


@answer("8.2")
def _() -> float:
    return softmaxes(-1)


@answer("8.3")
def _() -> float:
    return softmaxes(0)


@answer("8.4")
def _() -> float:
    sources = (
        capture(torch.sin, torch.rand(n), target="h100").kernels[0].source for n in (4096, 2**16, 1000, 2**20)
    )
    return only("xindex < xnumel" in source for source in sources)


@answer("8.5")
def _() -> float:
    source = capture(torch.sin, X, target="mps").kernels[0].source
    return only(["XBLOCK" in source, "Vectorized" in source, "thread_position_in_grid" in source])


@answer("9.1")
def _() -> float:
    return launches(lambda x: torch.cos(torch.sort(torch.sin(x))[0]), X)


@answer("9.2")
def _() -> float:
    pairs = (
        lambda x: (torch.sin(x), torch.cos(x)),
        lambda x: (torch.sin(x), x * 2),
        lambda x: (torch.sin(x), torch.cos(x[:32])),
        lambda x: (torch.sin(x), torch.sin(x) + 1),
    )
    return only(capture(one, MATRIX).ledger.total.groups > 1 for one in pairs)


@answer("9.3")
def _() -> float:
    @torch.library.custom_op("quiz::tanh", mutates_args=())
    def own(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    def alone() -> bool:
        try:
            return compiled(lambda x: own(x) * 1, [(X,)], fullgraph=True) == 1
        except Exception:
            torch._dynamo.reset()
            return False

    before = alone()
    own.register_fake(torch.empty_like)
    return only([before, not before and alone()])


@answer("9.4")
def _() -> float:
    return capture(lambda x: x / x.sum(), MATRIX).ledger.total.groups


@answer("9.5")
def _() -> float:
    return capture(lambda x: (x.sum(0), x.sum(1)), MATRIX).ledger.total.groups


def chain(first: bool) -> float:
    shapes = (100, 2), (2, 100), (100, 2)
    products = capture(lambda x, y, z: (x @ y) @ z if first else x @ (y @ z), *map(torch.rand, shapes))
    outputs = [call for call in products.compilations[0].graphs["inference"].calls if ".mm." in call.target]
    rows, columns = outputs[0].shape
    return rows * columns


@answer("10.1")
def _() -> float:
    return chain(True)


@answer("10.2")
def _() -> float:
    return chain(False)


@answer("10.3")
def _() -> float:
    a, b, c = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    return int(bool((a + b) + c == a + (b + c)) is False)


@answer("10.4")
def _() -> float:
    x = torch.rand(4096, generator=torch.Generator().manual_seed(0)) + 10_000
    exact = x.double().var(correction=0)
    one_pass, two_passes = (x * x).mean() - x.mean() ** 2, ((x - x.mean()) ** 2).mean()
    off = [bool((one - exact).abs() > 0.1 * exact) for one in (two_passes, one_pass)]
    return only(off)


@answer("10.5")
def _() -> float:
    large = torch.exp(torch.tensor(100.0))
    return only([bool(large.isnan()), bool(large.isinf()), bool(large.isfinite())])


@answer("11.1")
def _() -> float:
    once, often = (compiled(lambda x: torch.sin(x) + 1, [(X,)] * calls) for calls in (1, 50))
    return only([once < often, once == often == 1])


@answer("11.2")
def _() -> float:
    def repeated(x: torch.Tensor) -> torch.Tensor:
        for _ in range(100):
            y = torch.sin(x)
        return y

    assert counted(repeated, X).operators == 100
    return capture(repeated, torch.rand(1024), target="cpu:avx2").kernels[0].source.count(".sin()")


@answer("11.3")
def _() -> float:
    return statistics.median([3, 2, 90, 2, 3])


@answer("11.4")
def _() -> float:
    with ThreadPoolExecutor(1) as queue:
        start = time.perf_counter()
        sleep = queue.submit(time.sleep, 0.3)
        between = time.perf_counter()
        sleep.result()
        end = time.perf_counter()
    return only([between - start > end - between, end - between > between - start])


@answer("11.5")
def _() -> float:
    return 3 / (0.005 - 0.003)


@answer("12.1")
def _() -> float:
    return launches(lambda xs: torch.stack([torch.linalg.det(x) for x in xs]), torch.rand(10, 3, 3))


@answer("12.2")
def _() -> float:
    return launches(torch.linalg.det, torch.rand(2000, 3, 3))


@answer("12.3")
def _() -> float:
    z = torch.rand(1000, dtype=torch.complex64)
    kernels = capture(lambda z: z * z + 1, z).kernels
    called = sum(kernel.language == "extern" for kernel in kernels)
    return only([called == 0, 0 < called < len(kernels), called == len(kernels) == 2])


@answer("12.4")
def _() -> float:
    def printing(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        print("half way")
        return torch.cos(y)

    backwards = []

    def backend(module: Any, inputs: Any) -> Any:
        def backward(graph: Any, _: Any) -> Any:
            backwards.append(graph)
            return graph

        return aot_module_simplified(module, inputs, lambda graph, _: graph, backward)

    torch._dynamo.reset()
    torch.compile(printing, backend=backend)(torch.rand(8, requires_grad=True)).sum().backward()
    torch._dynamo.reset()
    return len(backwards)


@answer("12.5")
def _() -> float:
    x = torch.rand(2048, 2048)
    functions = (torch.tanh, lambda x: x + x, lambda x: x @ x, lambda x: x.sum(0))
    bounds = (capture(one, x, target="h100").roofline().bounds for one in functions)
    return only(any(one.sentence.startswith("Compute-bound") for one in each) for each in bounds)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(torch.relu(self.linear(x)), 0.5, self.training)


@answer("14.1")
def _() -> float:
    torch._dynamo.reset()
    counter, net = CompileCounter(), Net()
    called = torch.compile(net, backend=counter)
    for training, gradients in ((True, True), (False, True), (False, False)) * 2:
        net.train(training)
        with torch.set_grad_enabled(gradients):
            called(torch.ones(4, 8))
    torch._dynamo.reset()
    return counter.frame_count


@answer("14.2")
def _() -> float:
    return launches(lambda x: F.dropout(torch.sin(x), 0.5) * 2, X, options={"fallback_random": True})


@answer("14.3")
def _() -> float:
    wrapped, in_place = torch.compile(Net()), Net()
    in_place.compile()
    keys = [{key.partition(".")[0] for key in one.state_dict()} for one in (in_place, wrapped)]
    assert keys[0] == {"linear"}
    return only(keys[1] == {name} for name in ("linear", "compiled", "_orig_mod"))


@answer("14.4")
def _() -> float:
    return compiled(lambda x, rate: x - rate * x.sin(), [(X, rate) for rate in (0.1, 0.05, 0.025)])


@answer("14.5")
def _() -> float:
    where, kept = torch.zeros(1), []
    for number in (1.0, 2.0, 3.0):
        where.copy_(
            torch.square(torch.full((1,), number))
        )  # like a replay: the same launches to the same address
        kept.append(where)
    return only([[one.item() for one in kept] == wanted for wanted in ([1, 4, 9], [1, 1, 1], [9, 9, 9])])


def backend_of(graphs: list[Any]) -> Any:
    def kept(module: Any, inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    return kept


@answer("15.1")
def _() -> float:
    graphs: list[Any] = []
    torch._dynamo.reset()
    called = torch.compile(lambda x: torch.sin(x) + 1, backend=backend_of(graphs))
    for _ in range(10):
        called(X)
    return len(graphs)


@answer("15.2")
def _() -> float:
    graphs: list[Any] = []
    torch._dynamo.reset()
    torch.compile(lambda x: torch.exp(torch.sin(x)) * 2, backend=backend_of(graphs))(X)
    return sum(node.op == "call_function" for node in graphs[0].graph.nodes)


@answer("15.3")
def _() -> float:
    module = torch.fx.symbolic_trace(lambda x: torch.sin(x))
    for node in module.graph.find_nodes(op="call_function", target=torch.sin):
        node.target = torch.cos
    ran = module(X)
    return only([torch.equal(ran, torch.cos(X)), torch.equal(ran, torch.sin(X))])


def unused(x: torch.Tensor) -> torch.Tensor:
    torch.sin(x)
    return torch.cos(x)


@answer("15.4")
def _() -> float:
    return counted(torch.fx.symbolic_trace(unused), X).operators


@answer("15.5")
def _() -> float:
    infinite = torch.tensor(torch.inf)
    result = torch.sin(infinite) ** 2 + torch.cos(infinite) ** 2
    return only([bool(result == 1), bool(result.isinf()), bool(result.isnan())])


@answer("16.1")
def _() -> float:
    return launches(lambda x: torch.relu(2 * torch.sin(x) + 1), X, target="h100")


@answer("16.2")
def _() -> float:
    pytest.importorskip("triton", reason="Triton is not installed: pip install '.[triton]'")
    from quiz_triton import around

    return launches(around, X, target="h100")


@answer("16.3")
def _() -> float:
    return [min(256, 1000 - start) for start in range(0, 1000, 256)][-1]


@answer("16.4")
def _() -> float:
    pytest.importorskip("triton", reason="Triton is not installed: pip install '.[triton]'")
    from quiz_triton import around

    switch = "epilogue_fusion_user_defined_triton_kernel"
    if not hasattr(torch._inductor.config, switch):
        pytest.skip(f"this torch has no {switch}")
    return launches(around, X, target="h100", options={switch: True})


@answer("16.5")
def _() -> float:
    pytest.importorskip("triton", reason="Triton is not installed: pip install '.[triton]'")
    settings = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    program = Path(__file__).with_name("quiz_triton.py")
    ran = subprocess.run([sys.executable, str(program)], env=settings).returncode == 0
    return only([False, False, ran])
