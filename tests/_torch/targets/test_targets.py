"""Captures for devices that are not in the machine: the code, the stages, and the reports on them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from gpt2 import Size, example
from module_state import diff, scan
from suite import SUITE, rand, softmax, total, wave

from compile_lens import CaptureError, UsageError, capture
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

LANGUAGE = {"cuda": "triton", "mps": "metal"}


def here(fn: Any, *args: Any, target: str) -> Capture:
    """Like ``capture``, but in this process: faster to test, and with complete errors."""
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def launches(found: Capture) -> list[tuple[str, str, int]]:
    return [(k.phase, k.language, k.launches) for k in found.kernels]


def check(found: Capture, device: str) -> None:
    """Check the rules that every capture of the suite follows."""
    assert found.failure is None and found.kernels
    assert {k.language for k in found.kernels} <= {LANGUAGE[device], "extern"}
    for code in (code for c in found.compilations for code in c.code.values()):
        assert code.device == device and code.stamp == "generated only" and code.model
        if any(k.language == "triton" for k in code.kernels):
            assert any("launch configurations" in text for text in code.may_differ)
    assert found.coverage().unexplained == ()
    for kernel in found.kernels:
        assert kernel.origins, (kernel.name, kernel.no_origin)
        for line in kernel.lines:
            assert line.origins or not line.no_origin.startswith("Inductor did not"), kernel.name


@pytest.mark.parametrize("target", ["h100", "mps"])
@pytest.mark.parametrize("name", ["wave", "softmax", "mlp", "attention, 16 bits"])
@pytest.mark.cases(full=2)
def test_the_first_of_the_suite(name: str, target: str) -> None:
    fn, args = SUITE[name]()
    found = here(fn, *args, target=target)
    check(found, resolve(target).device)
    assert [p for c in found.compilations for p in c.phases] == ["forward", "backward"]
    (compilation,) = found.compilations
    assert [m.stage for m in compilation.missing] == []


@pytest.mark.cases(full=6)
@pytest.mark.slow
@pytest.mark.parametrize("target", ["a100", "h100", "mps", "t4", "rtx4090", "b200"])
@pytest.mark.parametrize("grad", [True, False], ids=["training", "inference"])
@pytest.mark.parametrize("name", SUITE)
def test_the_suite(name: str, grad: bool, target: str) -> None:
    fn, args = SUITE[name]()
    with torch.set_grad_enabled(grad):
        found = here(fn, *args, target=target)
    check(found, resolve(target).device)
    differentiable = grad and name != "largest"
    assert ("backward" in found.compilations[0].phases) >= differentiable


@pytest.mark.parametrize("target", ["l4", "l40s", "a10g", "rtx3090", "rtx5090", "gh200"])
def test_one_of_the_suite_for_each_other_model(target: str) -> None:
    fn, args = SUITE["softmax"]()
    check(here(fn, *args, target=target), "cuda")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["h100", "mps"])
@pytest.mark.parametrize(
    "count", [3, pytest.param(12, marks=pytest.mark.exhaustive)], ids=["three layers", "twelve layers"]
)
@pytest.mark.cases(full=1)
def test_a_transformer(target: str, count: int) -> None:
    """Three layers suffice: a first, a last and one in between cover all possible differences."""
    model, inputs = example(Size(layers=count, heads=4, width=64, tokens=32, vocabulary=128))
    found = capture(model, *inputs, target=target)
    check(found, resolve(target).device)
    (compilation,) = found.compilations
    assert compilation.phases == ("forward", "backward") and found.coverage().total.line_share == 1.0
    layers = {m for n in compilation.graphs["backward"].calls for m in re.findall(r"\b\d+\b", n.module)}
    assert len(layers) == count


@pytest.mark.parametrize(
    ("target", "kernels"), [("h100", 3), ("a100", 3), ("mps", 1)], ids=["h100", "a100", "mps"]
)
def test_a_wide_softmax_is_split_on_cuda_and_not_on_metal(target: str, kernels: int) -> None:
    with torch.no_grad():
        found = here(softmax, rand(64, 50_000), target=target)
    if torch.__version__.startswith("2.11.") and target != "mps":
        kernels += 2  # 2.11 has no online softmax for a split reduction
    assert sum(k.launches for k in found.kernels) == kernels


@pytest.mark.parametrize(("target", "kernels"), [("t4", 3), ("a100", 2), ("h100", 2), ("b200", 2)])
def test_how_a_sum_is_split_follows_the_multiprocessors(target: str, kernels: int) -> None:
    with torch.no_grad():
        found = here(total, torch.zeros(10_000_000), target=target)
    assert sum(k.launches for k in found.kernels) == kernels
    (code,) = found.compilations[0].code.values()
    count = resolve(target).figure("multi_processor_count")
    assert any(f"multiprocessors: {count} " in text for text in code.may_differ)


def test_attention_is_the_targets_own() -> None:
    fn, args = SUITE["attention, 16 bits"]()
    called = {
        target: [k.name for k in here(fn, *args, target=target).kernels if k.phase == "forward"]
        for target in ("h100", "a100", "t4")
    }
    for target, kernel in (("h100", "cudnn"), ("a100", "flash"), ("t4", "efficient")):
        assert any(kernel in name for name in called[target])
    (code, _) = here(fn, *args, target="h100").compilations[0].code.values()
    assert any("attention" in text for text in code.may_differ)


def test_what_the_record_says_of_the_target() -> None:
    found = capture(wave, rand(100), target="cuda:sm_80")
    target = found.target
    assert target is not None and target.requested == "cuda:sm_80" and target.model == resolve("a100")
    assert "child process" in target.transfer and target.tracing == "as on the device"
    assert target.may_differ == () and all(code.may_differ for code in found.compilations[0].code.values())
    assert found.environment.target == "cuda" and found.environment.device == "NVIDIA A100 80GB SXM"
    assert found.environment.isa == "" and found.options.target == "cuda:sm_80"
    assert Capture.from_json(found.to_json()) == found
    assert found.roofline().speed is not None and found.roofline().speed.device == "NVIDIA A100 80GB SXM"


def test_the_chain_reaches_the_python_line() -> None:
    found = capture(wave, rand(100), target="h100")
    (compilation,) = found.compilations
    for key in ("joint", "forward", "backward"):
        for node in compilation.graphs[key].calls:
            assert node.origins or node.no_origin, (key, node.name)
    sines = [n for n in compilation.graphs["forward.post_grad"].calls if "sin" in n.target]
    assert len(sines) == 1 and sines[0].origins == ("sin",)
    for kernel in found.kernels:
        lines = found.chain.lines(kernel)
        assert {(f.file.endswith("suite.py"), f.line) for f in lines} == {(True, lines[0].line)}


def test_the_same_capture_gives_the_same_bytes() -> None:
    texts = []
    for _ in range(2):
        found = capture(wave, rand(100), target="h100")
        texts.append(found.code)
    assert texts[0] == texts[1]
    assert not any("/tmp" in text for text in texts[0].values())


@pytest.mark.full
@pytest.mark.parametrize("target", ["mps", "h100"])
@pytest.mark.cases(full=1)
def test_no_capture_shows_in_the_code_of_a_later_one(target: str) -> None:
    """Torch stores the includes of Metal kernels on a class: once a kernel checked an index, all later ones took an
    error buffer. The test looks at everything that Inductor's code generators store."""
    x = torch.rand(8, 16)
    others: list[Callable[..., Any]] = [
        lambda x: x[x.argmax(1) % 8],
        lambda x: torch.softmax(x, 0).sum(),
        lambda x: torch.nn.functional.dropout(x),
        lambda x: torch.special.i0(x).sort()[0],
        lambda x: x.to(torch.int32).scatter_add(0, x.to(torch.int64), x.to(torch.int32)),
    ]

    def kept() -> dict[str, Any]:
        return {k: v for k, v in scan().items() if k.startswith("torch._inductor.codegen.")}

    def text() -> str:
        return here(wave, x, target=target).compilations[0].code["inference"].text

    before = text(), kept()
    for other in others:
        assert here(other, x, target=target).failure is None
    assert not diff(before[1], kept())
    assert text() == before[0]


def three_lines(x: torch.Tensor) -> torch.Tensor:
    y = torch.sin(x)
    z = torch.exp(y)
    return torch.tanh(z)


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.relu(self.inner(x)))


@pytest.mark.full
@pytest.mark.parametrize("target", ["mps", "h100"])
@pytest.mark.parametrize("make", [lambda: three_lines, Block], ids=["lines", "modules"])
@pytest.mark.cases(full=2)
def test_backward_comes_from_the_same_lines_as_on_the_cpu(make: Callable[[], Any], target: str) -> None:
    fn, x = make(), rand(8, 8)
    told = []
    for found in (capture(fn, x), capture(fn, x, target=target)):
        (compilation,) = found.compilations
        joint = compilation.graphs["joint"]
        told.append([(n.target, n.origins, n.module) for n in joint.calls])
        assert len({origins for _, origins, _ in told[-1]}) == 3
    if (
        make is Block and target == "mps"
    ):  # there the backward of linear is a single operator with several results
        assert {t for t, *_ in told[1]} - {t for t, *_ in told[0]} == {"aten.linear_backward.default"}
        told = [
            [(None, *where) for where, _ in itertools.groupby(calls, lambda call: call[1:])] for calls in told
        ]
    assert told[0] == told[1]


def test_a_graph_break_gives_two_compilations() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y.cos()

    found = capture(broken, rand(10), target="h100")
    assert len(found.compilations) == 2 and len(found.breaks) == 1
    assert [k.language for k in found.kernels] == ["triton"] * 4


@pytest.mark.parametrize("target", ["gtx", "cuda:sm_1", 3])
def test_an_unknown_target_is_refused_before_anything_runs(target: Any) -> None:
    called = []

    def fn(x: torch.Tensor) -> torch.Tensor:
        called.append(1)
        return x

    with pytest.raises(UsageError, match="h100"):
        capture(fn, rand(3), target=target)
    assert not called


def test_modes_that_time_on_the_device_say_so() -> None:
    found = capture(torch.nn.Linear(64, 64), rand(64, 64), target="h100", mode="max-autotune")
    assert found.target is not None
    assert any("max-autotune" in text for text in found.target.may_differ)
    assert any("CUDA graphs" in text for text in found.target.may_differ)


def test_vector_instructions_of_another_cpu() -> None:
    codes = {t: capture(wave, rand(1000), target=t) for t in ("cpu:avx2", "cpu:avx512")}
    for name, found in codes.items():
        assert found.target is not None and found.target.model.name == name
        assert name.partition(":")[2] in found.environment.isa
        assert {k.language for k in found.kernels} == {"cpp"}
    assert codes["cpu:avx2"].kernels[0].source != codes["cpu:avx512"].kernels[0].source


def test_the_device_of_the_inputs_is_no_other_device() -> None:
    assert capture(wave, rand(10), target="cpu").target is None


def test_a_failure_keeps_the_stages_before_it() -> None:
    def failing(x: torch.Tensor) -> torch.Tensor:
        torch.sin(x)
        raise KeyError("mine")

    with pytest.raises(CaptureError) as raised:
        capture(failing, rand(10), target="h100")
    assert isinstance(raised.value.__cause__, KeyError)
    assert raised.value.capture.failure is not None and raised.value.capture.target is not None


@pytest.mark.exhaustive
def test_without_triton_there_are_kernels_and_no_machine_code(child: Callable[..., str]) -> None:
    said = child(
        """
import sys
sys.modules["triton"] = None  # importing it fails from here on
import torch
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.devices.models import resolve
from compile_lens.errors import StageMissing

def f(x):
    return torch.softmax(x, -1)

x = torch.rand(8, 100, requires_grad=True)
found = perform(Call.read(f, (x,), None, CaptureOptions(build=True), model=resolve("h100")))[0]
assert "@triton.jit" in found.kernels[0].source
print([k.language for k in found.kernels], {c.stamp for c in found.compilations[0].code.values()})
try:
    found.kernels[0].ptx
except StageMissing as missing:
    print(missing)
"""
    )
    assert said.splitlines()[0] == "['triton', 'triton'] {'generated only'}"
    assert "pip install" in said.splitlines()[1] and "triton" in said.splitlines()[1]


@pytest.mark.exhaustive
def test_a_template_without_triton_says_what_it_needs(child: Callable[..., str]) -> None:
    said = child(
        """
import sys
sys.modules["triton"] = None
import torch
from torch.nn.attention.flex_attention import flex_attention
from compile_lens import CaptureError
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.devices.models import resolve

q = torch.rand(1, 2, 128, 64)
try:
    perform(Call.read(flex_attention, (q, q, q), model=resolve("h100")))
except CaptureError as error:
    print(error)
"""
    )
    assert "needs Triton for that: pip install 'triton==" in said
