"""Programs that depend on the device are traced as on it: each gets the answer that the device gives, by hand.

The answers are those of PyTorch's documentation (autocast's lists of operators, the errors for tensors on two devices)
and of the published figures of the target (an H100 is sm_90, and has 132 multiprocessors).
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from full_text import full
from suite import rand
from torch.utils._python_dispatch import TorchDispatchMode

from compile_lens import CaptureError, capture
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture
from compile_lens.views.words import stamp

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(
        torch.cuda.is_available(), reason="what untraced Python is told is of a machine without it"
    ),
]

TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])
CPU = torch.device("cpu")
ASKED = "is_cuda"


def here(fn: Any, *args: Any, target: str = "h100") -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def traced(found: Capture) -> list[str]:
    """Calls that Dynamo captured, in order."""
    graphs = [c.graphs["dynamo"] for c in found.compilations if "dynamo" in c.graphs]
    return [re.sub(r"_\d+$", "", n.name) for g in graphs for n in g.calls]


# Branches: sin or cos ----------------------------------------------------------------------------------------


def is_cuda(x: Any) -> Any:
    if x.is_cuda:
        return x.sin()
    return x.cos()


def kind(x: Any) -> Any:
    device = x.device
    return x.sin() if device.type == "cuda" else x.cos()


def compared(x: Any) -> Any:
    return x.sin() if x.device == torch.device("cuda", 0) else x.cos()


def with_the_cpu(x: Any) -> Any:
    return x.sin() if x.device == torch.device("cpu") else x.cos()


def not_the_cpu(x: Any) -> Any:
    device = x.device
    return x.sin() if CPU != device else x.cos()


def as_text(x: Any) -> Any:
    return x.sin() if "cuda" in str(x.device) else x.cos()


def among(x: Any) -> Any:
    return x.sin() if x.device in (torch.device("cpu"),) else x.cos()


def looked_up(x: Any) -> Any:
    return {torch.device("cpu"): x.sin}.get(x.device, x.cos)()


def in_a_text(x: Any) -> Any:
    return x.sin() if f"{x.device}" == "cuda:0" else x.cos()


def represented(x: Any) -> Any:
    return x.sin() if "cpu" in repr(x.device) else x.cos()


def by_name(x: Any) -> Any:
    return x.sin() if getattr(x, ASKED) else x.cos()


def type_of(x: Any) -> Any:
    return x.sin() if x.type() == "torch.cuda.FloatTensor" else x.cos()


def version(x: Any) -> Any:
    return x.sin() if torch.version.cuda is None else x.cos()


def casts(x: Any) -> Any:
    return x.sin() if torch.is_autocast_enabled("cuda") else x.cos()


def casts_inside(x: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16):
        return x.sin() if torch.is_autocast_enabled("cuda") else x.cos()


def number(x: Any) -> Any:
    return x.sin() if x.get_device() >= 0 else x.cos()


def available(x: Any) -> Any:
    return x.sin() if torch.cuda.is_available() else x.cos()


def accelerator(x: Any) -> Any:
    return x.sin() if torch.accelerator.is_available() else x.cos()


def capability(x: Any) -> Any:
    return x.sin() if torch.cuda.get_device_capability() >= (9, 0) else x.cos()


def newer(x: Any) -> Any:
    return x.sin() if torch.cuda.get_device_capability()[0] > 9 else x.cos()


def multiprocessors(x: Any) -> Any:
    return x.sin() if torch.cuda.get_device_properties(0).multi_processor_count == 132 else x.cos()


def bf16(x: Any) -> Any:
    return x.sin() if torch.cuda.is_bf16_supported() else x.cos()


def apples(x: Any) -> Any:
    return x.sin() if x.is_mps else x.cos()


def inner(x: Any) -> bool:
    return bool(x.is_cuda)


def inlined(x: Any) -> Any:
    return x.sin() if inner(x) else x.cos()


def made(x: Any) -> Any:
    return x.sin() if torch.zeros(4, device=x.device).is_cuda else x.cos()


def moved_there(x: Any) -> Any:
    return x.sin() if x.cpu().cuda().is_cuda else x.cos()


BRANCHES: list[tuple[Callable[..., Any], str, str]] = [  # on an H100, on a Mac
    (is_cuda, "sin", "cos"),
    (kind, "sin", "cos"),
    (compared, "sin", "cos"),
    (with_the_cpu, "cos", "cos"),
    (not_the_cpu, "sin", "sin"),
    (as_text, "sin", "cos"),
    (among, "cos", "cos"),
    (looked_up, "cos", "cos"),
    (in_a_text, "sin", "cos"),
    (represented, "cos", "cos"),
    (by_name, "sin", "cos"),
    (type_of, "sin", "cos"),
    (version, "cos", "sin"),
    (casts, "cos", "cos"),
    (number, "sin", "sin"),
    (available, "sin", "cos"),
    (accelerator, "sin", "sin"),
    (apples, "cos", "sin"),
    (inlined, "sin", "cos"),
    (made, "sin", "cos"),
]
ON_CUDA: list[tuple[Callable[..., Any], str]] = [
    (casts_inside, "sin"),
    (capability, "sin"),
    (newer, "cos"),
    (multiprocessors, "sin"),
    (bf16, "sin"),
    (moved_there, "sin"),
]


@pytest.mark.full
@pytest.mark.cases(full=20)
@pytest.mark.parametrize("target", ["h100", "mps"])
@pytest.mark.parametrize(("fn", "cuda", "mps"), BRANCHES, ids=lambda v: getattr(v, "__name__", None))
def test_the_branch_is_the_devices(fn: Any, cuda: str, mps: str, target: str) -> None:
    found = here(fn, rand(4, 4), target=target)
    assert traced(found)[-1] == (cuda if target == "h100" else mps)
    assert found.target is not None and not found.breaks
    # A build for CUDA has another version, with which the program may compare it.
    told = {"torch.version.cuda"} if fn is version and target == "h100" else set()
    assert {q.query for q in found.target.queries} == told


@pytest.mark.parametrize(("fn", "branch"), ON_CUDA, ids=lambda v: getattr(v, "__name__", None))
def test_the_branch_is_that_of_an_h100(fn: Any, branch: str) -> None:
    assert branch in traced(here(fn, rand(4, 4)))


# Types --------------------------------------------------------------------------------------------------------


def cuda_bf16(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16):
        return (x @ w).relu()


def cuda_fp16(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.float16):
        return x @ w


def cuda_default(x: Any, w: Any) -> Any:
    with torch.autocast("cuda"):
        return x @ w


def cpu_region(x: Any, w: Any) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return x @ w


def nested(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16):
        a = x @ w
        with torch.autocast("cuda", enabled=False):
            b = x @ w
    return a + b


def nested_types(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16):
        a = x @ w
        with torch.autocast("cuda", torch.float16):
            b = x @ w
    return a + b


def switched_off(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16, enabled=False):
        return x @ w


def decorated(x: Any, w: Any) -> Any:
    @torch.autocast("cuda", torch.bfloat16)
    def product(x: Any) -> Any:
        return x @ w

    return product(x) + x


def older(x: Any, w: Any) -> Any:
    with torch.cuda.amp.autocast(dtype=torch.bfloat16):
        return x @ w


def in_two(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16), torch.autocast("cpu", torch.float16):
        return x @ w


def checkpointed(x: Any, w: Any) -> Any:
    from torch.utils.checkpoint import checkpoint

    with torch.autocast("cuda", torch.bfloat16):
        return checkpoint(lambda x: (x @ w).relu(), x, use_reentrant=False)


def broken(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16):
        y = x @ w
        torch._dynamo.graph_break()
        return y.float() @ w


def double(x: Any, w: Any) -> Any:
    with torch.autocast("cuda", torch.bfloat16):
        return x.double() @ w.double()


PRODUCTS: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
    (cuda_bf16, ("bfloat16",)),
    (cuda_fp16, ("float16",)),
    (cuda_default, ("float16",)),  # CUDA's default type
    (cpu_region, ("float32",)),
    (nested, ("bfloat16", "float32")),
    (nested_types, ("bfloat16", "float16")),
    (switched_off, ("float32",)),
    (decorated, ("bfloat16",)),
    (older, ("bfloat16",)),
    (in_two, ("bfloat16",)),
    (checkpointed, ("bfloat16",)),
    (broken, ("bfloat16", "bfloat16")),
    (double, ("float64",)),  # autocast never casts float64
]


def products(found: Capture) -> tuple[str, ...]:
    graphs = [c.graphs["forward"] for c in found.compilations if "forward" in c.graphs]
    return tuple(n.outputs[0].dtype for g in graphs for n in g.calls if n.target == "aten.mm.default")


@pytest.mark.parametrize(("fn", "dtypes"), PRODUCTS, ids=lambda v: getattr(v, "__name__", None))
def test_the_types_of_products_are_the_devices(fn: Any, dtypes: tuple[str, ...]) -> None:
    if fn is older and "dtype" not in inspect.signature(torch.cuda.amp.autocast).parameters:
        pytest.skip("of a deprecated class Python 3.13 has no signature, and Dynamo fails without its names")
    assert products(here(fn, rand(16, 16), rand(16, 16))) == dtypes


def test_a_step_of_training_for_a_mac() -> None:
    def region(x: Any, w: Any) -> Any:
        with torch.autocast("mps", torch.bfloat16):
            return x @ w

    assert products(here(region, rand(16, 16), rand(16, 16), target="mps")) == ("bfloat16",)
    with pytest.warns(UserWarning, match="Disabling"):  # a Mac has no CUDA, and warns in the same way
        assert products(here(cuda_bf16, rand(16, 16), rand(16, 16), target="mps")) == ("float32",)


SUM, MEAN = (lambda y: y.sum()), (lambda y: y.mean())
RESULTS: list[tuple[str, Callable[..., Any], str]] = [  # autocast's lists of the operators of CUDA
    ("softmax", lambda y: F.softmax(y, -1), "float32"),
    ("layer norm", lambda y: F.layer_norm(y, (16,)), "float32"),
    ("exp", torch.exp, "float32"),
    ("log", lambda y: torch.log(y.abs() + 1), "float32"),
    ("pow", lambda y: y**2.5, "float32"),
    ("sum", SUM, "float32"),
    (
        "cross entropy",
        lambda y: F.cross_entropy(y, torch.zeros(16, dtype=torch.long, device=y.device)),
        "float32",
    ),
    ("mean", MEAN, "bfloat16"),
    ("gelu", F.gelu, "bfloat16"),
    ("cat", lambda y: torch.cat([y, y.float()]), "float32"),
]


@pytest.mark.parametrize(("fn", "dtype"), [row[1:] for row in RESULTS], ids=[row[0] for row in RESULTS])
def test_the_types_of_results_are_the_devices(fn: Any, dtype: str) -> None:
    def region(x: Any, w: Any) -> Any:
        with torch.autocast("cuda", torch.bfloat16):
            return fn(x @ w)

    found, outcome = perform(
        Call.read(
            region, (rand(16, 16), rand(16, 16)), None, CaptureOptions(target="h100"), model=resolve("h100")
        )
    )
    (output,) = [n for n in found.compilations[0].graphs["dynamo"].nodes if n.op == "output"]
    last = found.compilations[0].graphs["dynamo"].calls[-1]
    assert output.args and str(outcome.result.dtype) == f"torch.{dtype}"
    assert {t.dtype for n in found.compilations[0].graphs["dynamo"].calls for t in n.outputs} >= {dtype}, last


# Tensors created and moved inside ---------------------------------------------------------------------------


def factory(x: Any) -> Any:
    return x + torch.ones(4, device="cuda") + torch.arange(4, device=x.device)


def to_cuda(x: Any) -> Any:
    return x.to("cuda").sin() + torch.zeros(4).cuda() + torch.tensor([1.0, 2, 3, 4], device="cuda")


def there_and_back(x: Any) -> Any:
    return x.cpu().sin().to(x.device)


def scalar(x: Any) -> Any:
    return x * torch.tensor(3.0)


def drawn(x: Any) -> Any:
    return F.dropout(x, 0.5) + torch.rand(4, device="cuda")


def current(x: Any) -> Any:
    return x + torch.ones(4, device=torch.accelerator.current_accelerator())


@pytest.mark.parametrize(
    "fn", [factory, to_cuda, there_and_back, scalar, drawn, current], ids=lambda f: f.__name__
)
def test_what_is_made_or_moved_inside(fn: Any) -> None:
    found = here(fn, rand(4, 4))
    languages = {k.language for k in found.kernels}
    assert found.failure is None and ("triton" in languages) == (fn is not there_and_back)
    assert ("cpp" in languages) == (fn is there_and_back)  # a sine on the CPU, as on the device


def literal(x: Any) -> Any:
    return x + torch.tensor([1.0, 2, 3, 4])


def on_the_cpu(x: Any) -> Any:
    return x + torch.ones(4)


def default(x: Any) -> Any:
    return x @ torch.eye(4, device=torch.get_default_device())


def unsafe(x: Any) -> Any:
    with torch.autocast("cuda"):
        return F.binary_cross_entropy(torch.sigmoid(x), torch.ones_like(x))


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (literal, r"cuda:0.*cpu"),
        (on_the_cpu, r"cuda:0.*cpu"),
        (default, r"cuda:0.*cpu"),
        (unsafe, "binary_cross_entropy.*unsafe to autocast"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_the_error_is_the_devices(fn: Any, words: str) -> None:
    if fn is unsafe and TORCH >= (2, 15):  # Dynamo skips the frame: it runs on the CPU, and is reported
        found = here(fn, rand(4, 4)).target
        assert found is not None and [q.kind for q in found.queries] == ["entered"]
        return
    with pytest.raises(CaptureError) as raised:
        here(fn, rand(4, 4))
    assert re.search(words, str(raised.value), re.S), raised.value


# Reports ------------------------------------------------------------------------------------------------------


def branch_after_a_break(x: Any) -> Any:
    y = x.sin()
    torch._dynamo.graph_break()
    return y.exp() if y.is_cuda else y.cos()


@pytest.mark.full
def test_a_branch_after_a_break_and_what_is_said(tmp_path: Path) -> None:
    found = here(branch_after_a_break, rand(4, 4))
    assert [n.target for c in found.compilations for n in c.graphs["dynamo"].calls] == ["sin", "exp"]
    assert found.target is not None and found.target.tracing == "as on the device"
    assert "Python that Dynamo does not trace ran with CPU tensors" in found.target.may_differ
    whole = here(is_cuda, rand(4, 4))
    assert whole.target is not None and whole.target.may_differ == ()
    for ending in ("html", "md", "txt"):
        view = re.sub(r"\s+", " ", found.save(tmp_path / f"a.{ending}").read_text())
        assert "traced as on the device" in view, ending
        assert "Python that Dynamo does not trace ran with CPU tensors" in view, ending


@torch.library.custom_op("compile_lens_tests::only_there", mutates_args=())
def only_there(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError("there is no kernel for the CPU")


@only_there.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape, dtype=torch.float64)


def calls_it(x: Any) -> Any:
    y = only_there(x)  # here
    return (y + 1).sin()


def test_what_cannot_run_here_gives_zeros_and_says_so() -> None:
    found, outcome = perform(
        Call.read(calls_it, (torch.rand(4, 4),), None, CaptureOptions(target="h100"), model=resolve("h100"))
    )
    assert torch.equal(outcome.result, torch.ones(4, 4, dtype=torch.float64).sin())
    assert found.target is not None
    (one,) = found.target.queries
    assert one.kind == "zeros" and one.frame.text.endswith("# here") and "no kernel for the CPU" in one.answer
    assert any("zeros of the right shape" in words for words in stamp.of_target(found.target))


def test_a_mistake_of_the_programs_own_stays_one() -> None:
    def fails(x: Any) -> Any:
        return x[torch.tensor([7], device=x.device)]

    with pytest.raises(CaptureError, match=r"out of bounds|out of range"):
        here(fails, rand(4, 4))


def test_values_are_the_cpus_in_the_devices_types() -> None:
    x, w = torch.rand(16, 16), torch.rand(16, 16)
    _, outcome = perform(
        Call.read(cuda_bf16, (x, w), None, CaptureOptions(target="h100"), model=resolve("h100"))
    )
    assert outcome.result.dtype == torch.bfloat16
    torch.testing.assert_close(outcome.result, (x.bfloat16() @ w.bfloat16()).relu())
    _, outcome = perform(
        Call.read(there_and_back, (x,), None, CaptureOptions(target="h100"), model=resolve("h100"))
    )
    assert torch.equal(outcome.result, x.sin())


@pytest.mark.full
def test_a_region_around_the_capture() -> None:
    def product(x: Any, w: Any) -> Any:
        return x @ w

    with torch.autocast("cpu", torch.bfloat16):  # casts CPU tensors only, and the device has none
        assert products(here(product, rand(16, 16), rand(16, 16))) == ("float32",)
    with pytest.warns(UserWarning, match="Disabling"), torch.autocast("cuda", torch.bfloat16):
        found = capture(product, rand(16, 16), rand(16, 16), target="h100")
    (one,) = found.target.queries if found.target is not None else ()
    assert one.query == "torch.autocast('cuda', torch.bfloat16)" and "Enter it inside" in one.answer
    assert "with pytest.warns(" in one.frame.text and one.frame.function == "test_a_region_around_the_capture"
    assert "Enter it inside the function" in re.sub(r"\s+", " ", full(found))
    entered = torch.autocast("cuda", torch.bfloat16, enabled=False)
    with entered:
        found = capture(product, rand(16, 16), rand(16, 16), target="h100")  # of which the line is not seen
    (one,) = found.target.queries if found.target is not None else ()
    assert one.query == "torch.autocast" and one.frame.text.endswith("# of which the line is not seen")
    torch.set_autocast_enabled("cuda", True)
    try:
        assert products(capture(product, rand(16, 16), rand(16, 16), target="h100")) == ("float16",)
    finally:
        torch.set_autocast_enabled("cuda", False)


def test_a_decorator_of_a_module_that_the_child_imports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "decorated_there.py").write_text(
        "import torch\n\n\n@torch.autocast('cuda', torch.bfloat16)\ndef f(x, w):\n    return x @ w\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(UserWarning, match="Disabling"):
        import decorated_there

    found = capture(decorated_there.f, rand(16, 16), rand(16, 16), target="h100")
    assert products(found) == ("bfloat16",) and found.target is not None and found.target.queries == ()


WORK = {"_to_copy", "addmm", "gelu", "sum", "gelu_backward", "mm"}


class Dispatched(TorchDispatchMode):  # type: ignore[misc]  # torch is not typed here
    """Records the operators of ``WORK`` that eager PyTorch dispatches here, without views and allocations."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in WORK:
            self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_eager_operators_are_those_of_autocast_on_the_device() -> None:
    """Autocast's lists of both devices contain ``linear``: eager CPU code dispatches the same under CPU autocast."""
    linear = torch.nn.Linear(64, 64)

    def on(device: str) -> Any:
        def step(x: torch.Tensor) -> torch.Tensor:
            with torch.autocast(device, torch.bfloat16):
                y = F.gelu(linear(x))
            return y.float().sum()

        return step

    x = torch.rand(32, 64, requires_grad=True)
    with Dispatched() as there:
        on("cpu")(x).backward()
    found = capture(on("cuda"), x, target="h100").compilations[0].eager
    assert found is not None
    counted: Counter[str] = Counter()
    for op in found:
        counted[op.name] += op.count
    assert counted == Counter(there.names) and counted["aten._to_copy.default"] == 8


@pytest.mark.exhaustive
def test_a_capture_warns_of_nothing_that_the_program_does_not() -> None:
    """It runs in its own process, since torch gives this warning once: on a device with TF32 for any product."""
    program = (
        "import warnings; warnings.simplefilter('error')\n"
        "import compile_lens, torch\n"
        "x = torch.rand(64, 64)\n"
        "found = compile_lens.capture(lambda x: x @ x, x, target='h100', {how})\n"
        "assert [k.name for k in found.kernels] == ['extern_kernels.mm']"
    )
    for how in ("", "mode='max-autotune'"):
        ran = subprocess.run(
            [sys.executable, "-c", program.format(how=how)], capture_output=True, text=True, timeout=300
        )
        assert (ran.returncode, ran.stderr) == (0, "")
