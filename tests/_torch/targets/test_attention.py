"""The attention kernel of a device follows the program's switches and the rules in PyTorch's C++ code.

The expected kernels of an H100 (sm_90) and a T4 (sm_75) were read in PyTorch's
``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`` and ``attention.cpp``: the function's name is beside each case.
For PyTorch's own operators the oracle is plain PyTorch in another process, with the same switches.
"""

from __future__ import annotations

import json
import linecache
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from compile_lens import CaptureError, capture
from compile_lens._torch.targets import torch_settings
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture
from compile_lens.versions import torch_version
from compile_lens.views.words import stamp

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(torch.cuda.is_available(), reason="the rules are for an absent device"),
]

FLASH, EFFICIENT, CUDNN = "flash", "efficient", "cudnn"
MATH = "_scaled_dot_product_attention_math"


def half(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape, dtype=torch.float16)


def single(*shape: int) -> torch.Tensor:
    return torch.zeros(*shape)


@pytest.fixture(autouse=True)
def switches() -> Iterator[None]:
    before = torch_settings.attention()
    yield
    torch_settings.set_attention(before)


def here(fn: Any, *args: Any, target: str = "h100") -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def graph(found: Capture) -> list[str]:
    made = found.compilations[-1].graphs
    return [n.target for n in (made["joint"] if "joint" in made else made["inference"]).calls]


def attention_of(found: Capture) -> str:
    """The fused kernel of the capture, or ``math`` if there is none."""
    taken = re.findall(r"_scaled_dot_product_(\w+?)_attention\.", " ".join(graph(found)))
    assert len(taken) <= 1
    return taken[0] if taken else "math"


# Programs ----------------------------------------------------------------------------------------------------


def plain(q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q)  # the line


def causal(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, k, is_causal=True)


def groups(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, k, enable_gqa=True)


def masked(q: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)


def only_math(q: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(q, q, q)


def only_efficient(q: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        return F.scaled_dot_product_attention(q, q, q)


def only_cudnn(q: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, q, q)


def only_flash(q: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, q, q)


def flash_alone(q: torch.Tensor) -> torch.Tensor:
    torch.backends.cuda.enable_math_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_cudnn_sdp(False)
    return F.scaled_dot_product_attention(q, q, q)


def efficient_first(q: torch.Tensor) -> torch.Tensor:
    with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
        return F.scaled_dot_product_attention(q, q, q)


def flash_first(q: torch.Tensor) -> torch.Tensor:
    order = [
        SDPBackend.FLASH_ATTENTION,
        SDPBackend.EFFICIENT_ATTENTION,
        SDPBackend.MATH,
        SDPBackend.CUDNN_ATTENTION,
    ]
    with sdpa_kernel(order, set_priority=True):
        return F.scaled_dot_product_attention(q, q, q)


def dropped(q: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q, dropout_p=0.1)


def without_flash(q: torch.Tensor) -> torch.Tensor:
    torch.backends.cuda.enable_flash_sdp(False)
    return F.scaled_dot_product_attention(q, q, q)


Q = (2, 4, 128, 64)
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str, str]] = {
    # check_prefer_cudnn_attention: on sm_90 and sm_100, as an H100 with torch 2.11 did
    "cudnn is asked first": (plain, (half(*Q),), "h100", CUDNN),
    "cudnn is asked first, training": (plain, (half(*Q).requires_grad_(),), "b200", CUDNN),
    "flash is asked first": (plain, (half(*Q),), "a100", FLASH),
    "math alone is on": (only_math, (half(*Q),), "h100", "math"),
    "efficient alone is on": (only_efficient, (half(*Q),), "h100", EFFICIENT),
    "cudnn alone is on": (only_cudnn, (half(*Q),), "h100", CUDNN),
    "flash alone is on": (only_flash, (half(*Q),), "h100", FLASH),
    "efficient is asked first": (efficient_first, (half(*Q),), "h100", EFFICIENT),
    "flash is off": (without_flash, (half(*Q),), "h100", CUDNN),
    "flash is off, where it is asked first": (without_flash, (half(*Q),), "a100", EFFICIENT),
    "all, flash first": (flash_first, (half(*Q),), "h100", FLASH),
    # check_tensor_shapes: four dimensions (three: below)
    "two dimensions": (plain, (half(128, 64),), "h100", "math"),
    "five dimensions": (plain, (half(2, *Q),), "h100", "math"),
    # check_head_dim_size_flash: at most 256; attention.cpp fills up to a multiple of 8
    "heads of 60": (plain, (half(2, 4, 128, 60),), "h100", FLASH),
    "heads of 320": (plain, (half(2, 4, 128, 320),), "h100", EFFICIENT),
    # check_cudnn_tensor_shapes: up to 256 on sm_90, or without a gradient
    "heads of 200": (plain, (half(2, 4, 128, 200),), "h100", CUDNN),
    "keys of length 1": (causal, (half(*Q), half(2, 4, 1, 64)), "h100", EFFICIENT),
    # check_dtypes_low_precision, and minimum_gemm_alignment: 4 elements of float32 from sm_80 on
    "float32": (plain, (single(*Q),), "h100", EFFICIENT),
    "float32 and heads of 65": (plain, (single(2, 4, 128, 65),), "h100", "math"),
    "float64": (plain, (single(*Q).double(),), "h100", "math"),
    # check_flash_attention_hardware_support: from sm_80 on
    "an older device": (plain, (half(*Q),), "t4", EFFICIENT),
    # check_flash_causal_non_square_seqlens
    "causal, of two lengths": (causal, (half(*Q), half(2, 4, 96, 64)), "h100", CUDNN),
    "causal, of two lengths, before": (causal, (half(*Q), half(2, 4, 96, 64)), "a100", EFFICIENT),
    # check_batch_size_and_num_heads_dense: of the two, flash takes groups in each supported version
    "groups": (groups, (half(2, 8, 128, 64), half(2, 2, 128, 64)), "h100", CUDNN),
    "groups, before": (groups, (half(2, 8, 128, 64), half(2, 2, 128, 64)), "a100", FLASH),
    "groups in float32": (groups, (single(2, 8, 128, 64), single(2, 2, 128, 64)), "h100", "math"),
    # check_for_attn_mask
    "a mask": (masked, (half(*Q), half(128, 128)), "h100", CUDNN),
    "a mask, before": (masked, (half(*Q), half(128, 128)), "a100", EFFICIENT),
    "a mask with a gradient": (masked, (half(*Q), half(*Q[:3], 128).requires_grad_()), "h100", EFFICIENT),
    # check_last_dim_stride_equals_1_dense
    "the last dimension is not dense": (plain, (half(2, 4, 64, 128).mT,), "h100", "math"),
}


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.cases(full=10)
def test_the_kernel_that_pytorchs_rules_give(name: str) -> None:
    fn, args, target, expected = CASES[name]
    assert attention_of(here(fn, *args, target=target)) == expected


@pytest.mark.usefixtures("warm")
def test_heads_are_filled_up_and_scaled_by_their_own_size() -> None:
    found = here(plain, half(2, 4, 128, 60))
    called = graph(found)
    assert called.count("aten.constant_pad_nd.default") >= 1
    node = next(n for n in found.compilations[0].graphs["inference"].calls if "flash_attention" in n.target)
    scale = dict(node.kwargs)["scale"]
    assert float(getattr(scale, "text", scale)) == pytest.approx(60**-0.5)


def named(called: list[str]) -> list[str]:
    """Calls without the operators that Inductor's passes remove, and with the names that these passes give."""
    gone = ("aten.view.", "aten.expand.")
    return [c.replace("aten.scalar_tensor.", "aten.full.") for c in called if not c.startswith(gone)]


PLAIN = """
import json, sys, torch, torch.nn.functional as F
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.decomposition import select_decomp_table
from torch.nn.attention import SDPBackend, sdpa_kernel
shape, dtype, mask, grouped = json.loads(sys.argv[1])
q = torch.zeros(*shape, dtype=getattr(torch, dtype))
k = torch.zeros(shape[0], 2, *shape[2:], dtype=q.dtype) if grouped else q
m = torch.ones(shape[-2], shape[-2], dtype=torch.bool) if mask else None
called = []
def compiler(gm, inputs):
    called.extend(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
    return gm.forward
def f(q, k, m):
    return F.scaled_dot_product_attention(q, k, k, attn_mask=m, enable_gqa=grouped)
with sdpa_kernel(SDPBackend.MATH), torch.no_grad():
    backend = aot_autograd(fw_compiler=compiler, decompositions=select_decomp_table())
    torch.compile(f, backend=backend)(q, k, m)
print(json.dumps(called))
"""


THREE_DIMENSIONS: list[Any] = [[4, 128, 64], "float16", False, False]


@pytest.mark.full
@pytest.mark.cases(full=1)
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("fn", "args", "as_json"),
    [
        (only_math, (half(4, 128, 64),), THREE_DIMENSIONS),
        (plain, (single(2, 4, 128, 65),), [[2, 4, 128, 65], "float32", False, False]),
        (
            masked,
            (single(2, 4, 128, 65), torch.ones(128, 128, dtype=torch.bool)),
            [[2, 4, 128, 65], "float32", True, False],
        ),
        (groups, (single(2, 8, 128, 64), single(2, 2, 128, 64)), [[2, 8, 128, 64], "float32", False, True]),
    ],
    ids=["three dimensions", "heads of 65", "a mask", "groups"],
)
def test_its_own_operators_are_those_of_plain_pytorch(fn: Any, args: Any, as_json: Any) -> None:
    assert named(graph(here(fn, *args))) == named(in_plain_pytorch(as_json))


def in_plain_pytorch(as_json: list[Any]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN, json.dumps(as_json)], capture_output=True, text=True, check=True
    )
    found: list[str] = json.loads(done.stdout)
    return found


THREE: dict[str, tuple[Callable[..., Any], tuple[Any, ...], str]] = {
    "half": (plain, (half(4, 128, 64),), CUDNN),
    "float32": (plain, (single(4, 128, 64),), EFFICIENT),
    "groups": (groups, (half(8, 128, 64), half(2, 128, 64)), CUDNN),
    "a mask of one": (masked, (half(4, 128, 64), half(128)), CUDNN),
    "a mask of two": (masked, (half(4, 128, 64), half(128, 128)), CUDNN),
    "a mask of three": (masked, (half(4, 128, 64), half(4, 128, 128)), CUDNN),
    "keys of four": (causal, (half(4, 128, 64), half(1, 4, 128, 64)), "math"),
}


@pytest.mark.exhaustive
@pytest.mark.usefixtures("warm")
def test_three_dimensions_are_a_batch_of_one_to_a_pytorch_that_takes_them_so() -> None:
    """2.15 adds the batch dimension before it selects a kernel; the selection is then that of a batch of one."""
    batched = "aten.unsqueeze.default" in in_plain_pytorch(THREE_DIMENSIONS)
    for name, (fn, args, kernel) in THREE.items():
        found = here(fn, *args)
        assert attention_of(found) == (kernel if batched else "math"), name
        (result,) = found.compilations[0].graphs["inference"].calls[-1].outputs
        assert tuple(map(int, result.shape)) == tuple(fn(*args).shape), name


COUNTED = """
import json, torch, torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode
called = []
class Counted(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not func.is_view and "detach" not in str(func) and "unsafe_view" not in str(func):
            called.append(str(func))
        return func(*args, **kwargs or {})
q = torch.ones(2, 4, 128, 65, requires_grad=True)
grad = torch.ones(2, 4, 128, 65)
with sdpa_kernel(SDPBackend.MATH), Counted():
    torch.autograd.grad(F.scaled_dot_product_attention(q, q, q), q, grad)
print(json.dumps(called))
"""


def dispatched(found: Capture) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for op in found.compilations[0].eager or ():
        counts[op.name.removesuffix(".default")] += op.count
    return dict(counts)


@pytest.mark.full
@pytest.mark.usefixtures("warm")
def test_eager_pytorch_is_counted_with_the_kernel_that_the_device_takes() -> None:
    """``attention.cpp``: one call of a fused kernel, after a pad of each of the three operands to a multiple of 8."""
    flash, efficient = (f"aten._scaled_dot_product_{name}_attention" for name in (FLASH, EFFICIENT))
    assert dispatched(here(plain, half(*Q), target="a100")) == {flash: 1}
    assert dispatched(here(plain, single(*Q), target="a100")) == {efficient: 1}
    filled = here(causal, half(2, 4, 128, 60), half(2, 4, 128, 60), target="a100")
    assert dispatched(filled) == {"aten.constant_pad_nd": 3, flash: 1}
    trained = here(plain, half(*Q).requires_grad_(), target="a100")
    assert dispatched(trained) == {flash: 1, f"{flash}_backward": 1, "aten.add.Tensor": 2}
    with torch.inference_mode():
        assert dispatched(here(plain, half(*Q), target="a100")) == {flash: 1}
    one = "aten._scaled_dot_product_attention_math_for_mps"
    assert dispatched(here(plain, half(*Q), target="mps")) == {one: 1}


@pytest.mark.exhaustive
@pytest.mark.usefixtures("warm")
def test_eagers_own_operators_are_those_of_plain_pytorch() -> None:
    done = subprocess.run([sys.executable, "-c", COUNTED], capture_output=True, text=True, check=True)
    found = here(plain, single(2, 4, 128, 65).requires_grad_())
    plainly = [name.removesuffix(".default") for name in json.loads(done.stdout)]
    assert dispatched(found) == dict(Counter(plainly))


@pytest.mark.usefixtures("warm")
def test_none_that_can_run_is_pytorchs_error() -> None:
    with pytest.raises(CaptureError, match="No available kernel"):
        here(flash_alone, single(*Q))


@pytest.mark.usefixtures("warm")
def test_none_that_can_run_where_python_might_catch_it() -> None:
    """Torch 2.15 runs code that raises within ``with`` eagerly, on the CPU's kernel: the capture invents no code."""
    try:
        found = here(only_flash, single(*Q))
    except CaptureError as error:
        assert "No available kernel" in str(error)
        return
    assert found.compilations == () and "No available kernel" in found.skipped[0].cause.reason
    assert found.target is not None
    assert "Python that Dynamo does not trace ran with CPU tensors" in found.target.may_differ


@pytest.mark.full
@pytest.mark.usefixtures("warm")
def test_where_cudnns_is_taken_the_record_says_what_an_older_one_is_asked_after() -> None:
    """``check_prefer_cudnn_attention``: on sm_90 and sm_100, with a cuDNN newer than 9.15.0."""
    found = here(plain, half(*Q))
    assert found.target is not None
    (one,) = found.target.queries
    assert (one.kind, one.query, one.count) == ("chosen", "scaled_dot_product_attention", 1)
    assert one.answer.startswith("cuDNN's attention (") and "it takes flash attention" in one.answer
    assert linecache.getline(one.frame.file, one.frame.line).endswith("# the line\n")
    assert "up to 9.15.0" in stamp.question(one)
    (wide,) = named_questions(here(plain, half(2, 4, 128, 256)))
    assert "for heads of this size" in wide
    for fn, target in (
        (plain, "a100"),
        (only_flash, "h100"),
        (only_cudnn, "h100"),
        (efficient_first, "h100"),
        (flash_first, "h100"),
    ):
        assert named_questions(here(fn, half(*Q), target=target)) == []


def named_questions(found: Capture) -> list[str]:
    assert found.target is not None
    return [one.answer for one in found.target.queries]


@pytest.mark.usefixtures("warm")
def test_the_environment_may_put_cudnns_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_CUDNN_SDPA_DEPRIORITIZED", "1")
    found = here(plain, half(*Q))
    assert attention_of(found) == FLASH and named_questions(found) == []


@pytest.mark.usefixtures("warm")
def test_dropout_in_steps_of_a_sixteenth() -> None:
    """The rule is ``check_cudnn_dropout``, in torch since 2.12; an H100 with torch 2.11 took cuDNN's for a tenth."""
    assert attention_of(here(dropped, half(*Q))) == (CUDNN if torch_version() < (2, 12) else FLASH)


CUDNNS = [
    ("_scaled_dot_product_cudnn_attention", ["float16", "float32", "int64", "int64"], [(2, 4, 128, 1)]),
    ("_scaled_dot_product_cudnn_attention_backward", ["float16"] * 3, []),
]


@pytest.mark.usefixtures("warm")
def test_what_cudnns_gives_is_what_an_h100_showed() -> None:
    """Torch 2.11 there returned the results in the layout of the query, one number for each row, and two seeds."""
    rows = torch.zeros(2, 128, 4, 64, dtype=torch.float16).transpose(1, 2).requires_grad_()
    found = here(plain, rows)
    nodes = [n for n in found.compilations[0].graphs["joint"].calls if "cudnn" in n.target]
    assert len(nodes) == len(CUDNNS)
    for node, (name, types, extra) in zip(nodes, CUDNNS):
        assert node.target == f"aten.{name}.default"
        assert [t.dtype for t in node.outputs] == types
        strides = {t.stride for t in node.outputs if t.dtype == "float16"}
        assert strides == {(32768, 64, 256, 1)}
        assert [t.shape for t in node.outputs if t.dtype == "float32"] == extra


@pytest.mark.usefixtures("warm")
def test_the_order_is_put_back() -> None:
    before = torch_settings.attention()
    here(plain, half(*Q))
    assert torch_settings.attention() == before


@pytest.mark.full
def test_switches_cross_and_a_failure_leaves_none_behind() -> None:
    """The captures share one child process."""
    before = torch_settings.attention()
    assert attention_of(capture(only_efficient, half(*Q), target="h100")) == EFFICIENT
    with pytest.raises(CaptureError, match="No available kernel"):
        capture(flash_alone, single(*Q), target="h100")
    assert attention_of(capture(without_flash, half(*Q), target="a100")) == EFFICIENT
    assert attention_of(capture(plain, half(*Q), target="h100")) == CUDNN
    assert attention_of(capture(plain, half(*Q), target="a100")) == FLASH
    assert torch_settings.attention() == before
    torch.backends.cuda.enable_flash_sdp(False)
    assert attention_of(capture(plain, half(*Q), target="a100")) == EFFICIENT


def test_switches_are_put_back_after_an_exception() -> None:
    settings, _ = torch_settings.snapshot()
    ask = (
        torch.backends.cuda.flash_sdp_enabled,
        torch.backends.cuda.math_sdp_enabled,
        torch._C._get_sdp_priority_order,
    )
    before = [one() for one in ask]
    with pytest.raises(ZeroDivisionError), torch_settings.restored(settings):
        torch.nn.attention._sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION], set_priority=True)
        assert [one() for one in ask] != before
        raise ZeroDivisionError
    assert [one() for one in ask] == before
