"""Generated Triton runs in its interpreter: correct code agrees with eager, and incorrect code does not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from cuda_only import only_on_cuda
from suite import SUITE, rand, softmax, wave

from compile_lens import UsageError, capture
from compile_lens.record.verification import GRADIENT, RESULT, ValueCheck
from compile_lens.trials import verify_interpreted

pytestmark = [pytest.mark.torch]

QUICK = ("wave", "dropout", "layer norm", "running sum", "largest", "embedding", "mlp")
ATTENTION = ("attention", "attention, 16 bits", "attention by hand, 16 bits")


@pytest.fixture(autouse=True)
def triton() -> None:
    pytest.importorskip("triton")


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.cases(full=2)
def test_the_quick_ones_agree(name: str) -> None:
    check(name)


@pytest.mark.cases(full=2)
@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in SUITE if n not in (*QUICK, *ATTENTION)])
def test_the_others_agree(name: str) -> None:
    check(name)


def check(name: str) -> None:
    fn, args = SUITE[name]()
    found = capture(fn, *args, target="h100").verify(fn, *args)
    assert found.ok, str(found)
    assert found.comparisons and not found.not_run and "interpreter" in found.runner
    assert found.same_code is (None if "were cut" in found.runner else True)
    differentiable = name != "largest"
    assert (
        any(c.name.startswith("gradient") for c in found.comparisons) == differentiable or name == "largest"
    )


@pytest.mark.cases(quick=1, full=1)
@pytest.mark.parametrize("name", ATTENTION)
def test_fused_attention_agrees(name: str) -> None:
    fn, args = SUITE[name]()
    report = capture(fn, *args, target="h100").verify(fn, *args)
    assert report.ok, str(report)
    assert "attention by products and a softmax" in report.runner
    assert any(c.name.startswith("gradient") for c in report.comparisons)


def masked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q * 2, k, v, mask, scale=0.3).sin()


@pytest.mark.parametrize("backward", [False, True])
def test_the_reference_computes_what_the_operators_do(backward: bool) -> None:
    """The oracle is PyTorch's own attention by products, with derivatives by autograd."""
    from compile_lens._torch.targets import reference_attention

    generator = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(2, 3, 5, 8, generator=generator).requires_grad_() for _ in range(3))
    bias = torch.randn(2, 3, 5, 5, generator=generator).requires_grad_()
    expected = torch.ops.aten._scaled_dot_product_attention_math(q, k, v, bias, scale=0.3)[0]
    given = (q.detach(), k.detach(), v.detach(), bias.detach())
    with reference_attention.on_cpu():
        out, sums, seed, offset = torch.ops.aten._scaled_dot_product_efficient_attention(
            *given, True, scale=0.3
        )
        torch.testing.assert_close(out, expected.detach())
        if backward:
            towards = torch.randn(2, 3, 5, 8, generator=generator)
            gradients = torch.ops.aten._scaled_dot_product_efficient_attention_backward(
                towards, *given, out, sums, seed, offset, 0.0, [True] * 4, scale=0.3
            )
            for one, other in zip(gradients, torch.autograd.grad(expected, (q, k, v, bias), towards)):
                torch.testing.assert_close(one, other)
    assert not torch._C._dispatch_has_kernel_for_dispatch_key(
        "aten::_scaled_dot_product_efficient_attention", "CPU"
    )


@pytest.mark.exhaustive
def test_attention_with_a_mask_agrees_and_with_dropout_was_not_run() -> None:
    generator = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(1, 2, 16, 32, generator=generator).requires_grad_() for _ in range(3))
    report = capture(masked, q, k, v, torch.zeros(16, 16), target="h100", keep_inputs=True).verify()
    assert report.ok and len(report.comparisons) >= 4, str(report)

    def dropped(q: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)

    report = capture(dropped, q, target="h100", keep_inputs=True).verify()
    assert report.ok is None and "random" in str(report)


@pytest.mark.full
def test_a_checkpoint_with_dropout_draws_the_same_numbers_again() -> None:
    """The gradient of an element is 0 if eager's own forward dropped it, so another draw would differ."""

    def dropped(x: torch.Tensor) -> torch.Tensor:
        y = torch.utils.checkpoint.checkpoint(
            lambda x: F.dropout(x.sin(), 0.4), x, use_reentrant=False, preserve_rng_state=True
        )
        return F.dropout(y, 0.3).sum()

    x = torch.linspace(0.1, 1, 512).reshape(16, 32).requires_grad_()
    report = capture(dropped, x, target="h100", keep_inputs=True).verify()
    assert report.ok and len(report.comparisons) == 2 and not report.not_compared, str(report)


@pytest.mark.exhaustive
def test_gradients_of_a_backward_that_was_not_run_are_not_compared() -> None:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    document = torch.arange(256) // 100
    mask = create_block_mask(
        lambda b, h, q, k: (q >= k) & (document[q] == document[k]), None, None, 256, 256, device="cpu"
    )
    q, k, v = (torch.randn(2, 4, 256, 32, requires_grad=True) for _ in range(3))

    def attend(*args: torch.Tensor) -> torch.Tensor:
        return flex_attention(*args, block_mask=mask)

    found = capture(attend, q, k, v, target="h100").verify(attend, q, k, v)
    ((part, reason),) = found.not_compared
    assert part == "graph 0/0 (backward)" and "its kernels would compute more than" in reason
    assert found.ok is None and found.verdict == "agrees in part"
    assert [check.name for check in found.comparisons] == ["result"], "gradients are those of eager PyTorch"


@pytest.mark.parametrize(
    ("graphs", "left"),
    [
        ({"graph 0/0 (forward)": "", "graph 0/0 (backward)": "too long"}, ["result", "differs"]),
        ({"graph 0/0 (forward)": "too long", "graph 0/0 (backward)": ""}, ["gradient", "differs"]),
        ({"graph 0/0 (forward)": "", "graph 0/0 (backward)": ""}, ["result", "gradient", "differs"]),
        ({"graph 0/0 (inference)": ""}, ["result", "gradient", "differs"]),
        (
            {"graph 0/0 (backward)": "too long", "graph 1/0 (backward)": "", "graph 1/0 (forward)": ""},
            ["result", "gradient", "differs"],
        ),
    ],
)
def test_what_eager_computed_on_both_sides_is_no_comparison(graphs: dict[str, str], left: list[str]) -> None:
    checks = tuple(
        ValueCheck(name, "float32", (2,), 0.0, 0.0, None, None, name != "differs", kind)
        for name, kind in (("result", RESULT), ("gradient", GRADIENT), ("differs", GRADIENT))
    )
    assert [check.name for check in verify_interpreted._of_code(checks, graphs)] == left


@pytest.mark.exhaustive
def test_sizes_that_take_too_long_are_cut_and_said() -> None:
    x = rand(4096, 512)
    found = capture(softmax, x, target="h100").verify(softmax, x)
    assert found.ok and found.same_code is None
    assert "4,096 in the arguments were cut to" in found.runner
    assert found.comparisons[0].shape[1] == 512


def test_a_capture_for_the_cpu_is_verified_for_a_target() -> None:
    x = rand(10)
    found = capture(wave, x).verify(target="a100")
    assert found.ok and found.same_code is True and "interpreter" in found.runner


def test_memory_that_nothing_wrote_is_not_comparable_here_either() -> None:
    def fn(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.sin(), torch.empty(5, device=x.device) * 2

    found = capture(fn, rand(10), target="h100").verify(fn, rand(10))
    assert found.verdict == "not comparable: uninitialised memory" and found.ok is None, str(found)
    first, second, *_ = found.comparisons  # the second is the gradient
    assert first.ok and first.max_abs == first.max_abs and second.max_abs != second.max_abs


def test_metal_is_interpreted_nowhere() -> None:
    found = capture(wave, rand(10), target="mps")
    with pytest.raises(UsageError, match="Mac"):
        found.verify(wave, rand(10))


@pytest.mark.full
def test_wrong_code_does_not_agree(child: Callable[..., str]) -> None:
    program = """
import torch
import torch.utils.checkpoint
import torch.nn.functional as F
from compile_lens._torch.targets import interpreted_wrapper as running, torch_settings
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.trials import verify_interpreted

def wave(x):
    return torch.sin(x) ** 2 + 2 * torch.cos(x)

real = running.module
for old, new in (("", ""), ("tl_math.sin(", "tl_math.cos("), ("2.0", "2.5")):
    running.module = lambda text, *rest: real(text.replace(old, new) if old else text, *rest)
    x = torch.rand(100, requires_grad=True)
    said, _ = verify_interpreted.serve(
        Call.read(wave, (x,), model=resolve("a100")), torch_settings.snapshot()[0], 0.1
    )
    print([c["ok"] for c in said["comparisons"]])
"""
    said = child(program).splitlines()
    assert said[0] == "[True, True]" and said[1][1:6] == "False" and "False" in said[2]


@pytest.mark.exhaustive
def test_wrong_code_of_other_kinds_does_not_agree(child: Callable[..., str]) -> None:
    program = """
import torch
import torch.utils.checkpoint
import torch.nn.functional as F
from compile_lens._torch.targets import interpreted_wrapper as running, torch_settings
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.trials import verify_interpreted

def dropped(x):
    return torch.nn.functional.dropout(x, 0.5, True) * 2

def written(x):
    x.mul_(2)

def nothing(x):
    x * 2

real = running.module
for fn in (dropped, written, nothing):
    for old, new in (("2.0", "2.0"), ("2.0", "2.5")):
        running.module = lambda text, *rest: real(text.replace(old, new), *rest)
        settings = torch_settings.snapshot()[0]
        said, _ = verify_interpreted.serve(Call.read(fn, (torch.rand(100),), model=resolve("a100")), settings, 0.1)
        print([(c["name"], c["ok"]) for c in said["comparisons"]])
"""
    said = child(program).splitlines()
    assert said == [
        "[('result', True)]",
        "[('result', False)]",
        "[('input 0', True)]",
        "[('input 0', False)]",
        "[]",
        "[]",
    ]


def test_bfloat16_is_rounded_as_torch_rounds_it() -> None:
    tl = pytest.importorskip("triton.language")

    from compile_lens._triton.interpreter import _rounding

    values = torch.cat(
        [torch.randn(10_000) * 10 ** torch.randint(-38, 38, (10_000,)), torch.tensor([0.0, -0.0])]
    )
    values = torch.cat([values, torch.tensor([float("inf"), float("-inf"), float("nan"), 3.4e38, 1e-45])])
    got = _rounding(lambda *_: None)(values.numpy(), tl.float32, tl.bfloat16, None)
    assert torch.equal(torch.from_numpy(got.view("int16"))[:-3], values.bfloat16().view(torch.int16)[:-3])
    again = torch.from_numpy(got.view("int16")).view(torch.bfloat16)
    assert torch.isnan(again[-3]) and torch.equal(again[-2:], values.bfloat16()[-2:])


def depends(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.is_cuda else x.cos()


def region(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", torch.bfloat16):
        return (x @ w).relu().sum()


@pytest.mark.parametrize(("fn", "count"), [(depends, 1), (region, 2)], ids=["a branch", "autocast"])
def test_what_depends_on_the_device_is_compared_with_the_graph_of_the_device(
    fn: Callable[..., torch.Tensor], count: int
) -> None:
    inputs = [torch.rand(32, 32, requires_grad=True) for _ in range(count)]
    found = capture(fn, *inputs, target="h100").verify()
    assert found.ok and found.comparisons and "captured as on the device" in found.runner


LOWERED_WRONGLY = """
import torch
import torch.utils.checkpoint
import torch.nn.functional as F
from torch._inductor.lowering import lowerings
from compile_lens import capture

def there(x):
    return torch.sin(x)

def elsewhere(x):
    return torch.sin(x) if x.is_cuda else torch.sin(x) + 1

if __name__ == "__main__":
    x = torch.rand(8)
    print(capture(there, x, target="h100").verify().ok, capture(elsewhere, x, target="h100").verify().ok)
    lowerings[torch.ops.aten.sin.default] = lowerings[torch.ops.aten.cos.default]
    for fn in (there, elsewhere):
        found = capture(fn, x, target="h100").verify()
        print(found.verdict, "gives something else there" in found.runner, "it is the code that gives" in found.runner)
"""


@pytest.mark.exhaustive
def test_which_of_function_graph_and_code_differs_is_said(child: Callable[..., str]) -> None:
    """With a sine lowered as a cosine only the code is wrong; with a branch on the device, function and graph differ
    too."""
    assert child(LOWERED_WRONGLY).splitlines() == [
        "True True",
        "DISAGREES False True",
        "DISAGREES True False",
    ]


def moved(x: torch.Tensor) -> torch.Tensor:
    return x.cuda().sin()


def moved_back(x: torch.Tensor) -> torch.Tensor:
    return x.cpu().sin().cuda()


def made_there(x: torch.Tensor) -> torch.Tensor:
    return x + torch.arange(4.0, device="cuda")


def insists(x: torch.Tensor) -> torch.Tensor:
    if not x.is_cuda:
        raise ValueError("no GPU")
    return x.cos() @ x


@pytest.mark.parametrize("fn", [moved, moved_back, made_there, insists])
@pytest.mark.cases(full=2)
def test_a_function_that_needs_the_device_is_compared_with_its_graph(
    fn: Callable[..., torch.Tensor],
) -> None:
    if torch.cuda.is_available():
        pytest.skip("the function runs here")
    x = torch.rand(4, 4, requires_grad=True)
    if fn is moved_back:
        from compile_lens._torch.session import missing_compiler

        if missing_compiler():
            pytest.skip("no C++ compiler")
    found = capture(fn, x, target="h100").verify()
    assert found.ok and [c.kind for c in found.comparisons] == ["result", "gradient"], str(found)
    assert "without a compiler the function does not run there (" in found.runner
    assert ("those in C++ were built, and ran" in found.runner) == (fn is moved_back)


def test_inputs_that_fit_nowhere_are_the_callers_error() -> None:
    x = torch.rand(4, 4)
    with pytest.raises(UsageError, match=r"raised RuntimeError without a compiler.*Pass the inputs"):
        capture(product, x, x, target="h100").verify(product, x, torch.rand(3, 3))


def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


@pytest.mark.exhaustive
def test_a_function_that_needs_the_device_is_cut_too() -> None:
    if torch.cuda.is_available():
        pytest.skip("the function runs here")
    x = torch.rand(4096, 1024)
    found = capture(moved, x, target="h100").verify()
    assert found.ok and "4,096 in the arguments were cut to" in found.runner


def partly_there(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    y = x.sin() * 2
    torch._dynamo.graph_break()
    return y, only_on_cuda(x) + 1


def test_a_graph_that_cannot_be_run_drops_no_other() -> None:
    """The custom operator has no kernel for the CPU; the graph before it is still compared."""
    x = torch.rand(8)
    report = capture(partly_there, x, target="h100").verify(partly_there, x)
    assert report.verdict == "agrees in part" and report.ok is None, str(report)
    ((part, reason),) = report.not_compared
    assert part.startswith("graph 1/0") and "only_on_cuda" in reason
    assert report.comparisons[0].ok and report.comparisons[0].name == "result[0]"
