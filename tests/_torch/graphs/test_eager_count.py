"""Operators that eager PyTorch dispatches for a graph, against a plain PyTorch run of the same program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from dispatched import Dispatched
from torch.utils._python_dispatch import TorchDispatchMode

from compile_lens import capture, versions
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions

pytestmark = pytest.mark.torch


def in_inference_mode(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return F.rms_norm(F.softmax(F.linear(x, w), -1), (4,))


PLAIN = """
import json, torch, torch.nn.functional as F
from torch.profiler import profile
from torch.utils._python_dispatch import TorchDispatchMode
def f(x, w):
    return F.rms_norm(F.softmax(F.linear(x, w), -1), (4,))
def profiled(region):
    with region(), profile() as found:
        f(x, w)
    return [e.name for e in found.events() if e.name.startswith("aten::")]
called = []
class Counted(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not func.is_view:
            called.append(str(func))
        return func(*args, **kwargs or {})
x, w = torch.ones(4, 4), torch.ones(4, 4)
with torch.no_grad(), Counted():
    f(x, w)
print(json.dumps([profiled(torch.no_grad), profiled(torch.inference_mode), called]))
"""


@pytest.mark.full
@pytest.mark.usefixtures("warm")
def test_in_inference_mode_what_is_made_of_others_is_counted_as_those() -> None:
    """The profiler sees the same run as without gradients; a dispatch mode sees each of the decomposed operators."""
    done = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True)
    without, inference, called = json.loads(done.stdout.splitlines()[0])
    assert without == inference
    found = perform(Call.read(in_inference_mode, (torch.ones(4, 4), torch.ones(4, 4))))[0]
    assert {op.name: op.count for op in found.compilations[0].eager or ()} == {
        name: called.count(name) for name in called
    }


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x.view(x.shape[0] * 4, -1).sin() + x.shape[0]


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("target", [None, "h100"])
def test_a_size_that_is_kept_from_the_compiler_is_counted_with(target: str | None) -> None:
    """``mark_unbacked`` gives Dynamo's symbol no number; the tensor has one."""
    x = torch.rand(16, 8)
    torch._dynamo.decorators.mark_unbacked(x, 0)
    found, _ = perform(
        Call.read(doubled, (x,), None, CaptureOptions(target=target), model=target and resolve(target))
    )
    (compilation,) = found.compilations
    assert compilation.eager is not None, compilation.eager_note
    plain = torch.rand(16, 8)
    with Dispatched() as seen:
        doubled(plain)
    assert {op.name: op.count for op in compilation.eager} == seen.work


@pytest.mark.usefixtures("warm")
def test_a_library_that_is_not_here_is_said_without_a_word_of_a_bug() -> None:
    lstm, x = torch.nn.LSTM(8, 16).eval().requires_grad_(False), torch.rand(2, 5, 8)
    with torch._dynamo.config.patch(allow_rnn=True):
        found, _ = perform(
            Call.read(lambda x: lstm(x)[0], (x,), None, CaptureOptions(target="h100"), model=resolve("h100"))
        )
    (compilation,) = found.compilations
    if compilation.eager is None:  # a build with CUDA has the library, and may lack a driver or a device
        _, _, absent = compilation.eager_note.partition("torch.lstm calls a library of the device, ")
        reasons = "which this build of PyTorch lacks", "whose driver is not here", "which is not here"
        assert absent in reasons
    assert found.kernels


class Computed(TorchDispatchMode):
    """Counts operators that compute numbers: no views, and no shape rules, whose tensors have no data."""

    def __init__(self) -> None:
        super().__init__()
        self.work: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        tensors = [one for one in torch.utils._pytree.tree_leaves(out) if isinstance(one, torch.Tensor)]
        shapes = all(one.device.type == "meta" or one._is_zerotensor() for one in tensors)
        if (
            not func.is_view
            and not shapes
            and str(func) not in ("aten.alias.default", "aten.to.dtype_layout")
        ):
            self.work[str(func)] += 1
        return out


def chosen(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x * x.sin(), x.cos()).sum() + torch.softmax(x, 0).prod()


@pytest.mark.full
@pytest.mark.parametrize(
    "taken",
    [
        torch.func.hessian,
        lambda f: torch.func.jacfwd(torch.func.jacfwd(f)),
        lambda f: torch.func.jacrev(torch.func.jacfwd(f)),
    ],
    ids=["forward of reverse", "forward of forward", "reverse of forward"],
)
def test_second_derivatives_count_what_computes(taken: Callable[..., Any]) -> None:
    """A zero tangent has no data: torch infers the shape of a sum with it on the meta device."""
    x = torch.rand(3)
    with Computed() as plain:
        taken(chosen)(x)
    (one,) = capture(lambda x: taken(chosen)(x), x).compilations
    assert one.eager is not None and Counter({op.name: op.count for op in one.eager}) == plain.work


def heads(x: torch.Tensor) -> torch.Tensor:
    q, k, v = x.sin().view(3, 4, 4)
    return (q @ k).softmax(-1) @ v


def rows(x: torch.Tensor) -> torch.Tensor:
    total = x.new_zeros(4)
    for row in x:
        total = total + row.sin()
    return total


def indexed(x: torch.Tensor) -> torch.Tensor:
    a, b, c = x[0], x[1], x[2]
    for i in range(12):
        a = a + x[i]
    return a * b * c


def after_a_semicolon(x: torch.Tensor) -> torch.Tensor:
    y = x.sin().view(2, 24); a, b = y  # fmt: skip # noqa: E702
    return a * b


def first_and_rest(x: torch.Tensor) -> torch.Tensor:
    a, *rest = x
    return a * rest[0] + rest[-1]


def twice_at_once(x: torch.Tensor) -> torch.Tensor:
    a, _b = _c, d = x[:2]
    return a + d


def in_a_loop_of_one_line(x: torch.Tensor) -> torch.Tensor:
    total = x.new_zeros(4)
    for row in x: total = total + row  # fmt: skip # noqa: E701
    return total


def summed(x: torch.Tensor) -> torch.Tensor:
    return torch.stack([row.cos() for row in x]).sum() + sum(row.sum() for row in x)


def as_arguments(x: torch.Tensor) -> torch.Tensor:
    return torch.addcmul(*x[:3])


def in_one_line_by_index(x: torch.Tensor) -> torch.Tensor:
    a, b = x[0], x.__getitem__(1); return a * b  # fmt: skip # noqa: E702


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="traces have no columns: an index may be one of the program's"
)
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    "function",
    [
        *(heads, rows, indexed, after_a_semicolon, first_and_rest, twice_at_once, in_a_loop_of_one_line),
        *(summed, as_arguments, in_one_line_by_index),
    ],
)
@pytest.mark.cases(full=4)
def test_a_tensor_that_is_unpacked_is_one_operator(function: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Its derivative is one ``stack``; indexing by the program has one operator for each element."""
    (compilation,) = perform(Call.read(function, (torch.rand(12, 4, requires_grad=True),)))[0].compilations
    x = torch.rand(12, 4, requires_grad=True)
    with Dispatched() as forward:
        out = function(x)
    ones = torch.ones_like(out)
    with Dispatched() as backward:
        torch.autograd.grad(out, x, ones)
    for phase, plain in (("forward", forward), ("backward", backward)):
        assert {op.name: op.count for op in compilation.eager or () if op.phase == phase} == plain.work
    names = {op.name for op in compilation.eager or ()}
    assert ("aten.stack.default" in names) is (function not in (indexed, in_one_line_by_index))


def turned(x: torch.Tensor) -> torch.Tensor:
    return x.clone().squeeze_(0).t_().unsqueeze_(0).transpose_(0, 1).swapdims_(0, 2)


def pushed(x: torch.Tensor) -> torch.Tensor:
    return torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]


@pytest.mark.full
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("function", "shape", "work"), [(turned, (1, 4, 4), "clone"), (pushed, (8,), "ones_like sin cos mul")]
)
def test_a_view_in_place_and_a_question_are_no_work(
    function: Callable[[torch.Tensor], torch.Tensor], shape: tuple[int, ...], work: str
) -> None:
    """By hand: an in-place view changes only a shape, and the memory checks of forward mode change nothing."""
    x = torch.rand(shape)
    with Dispatched() as plain:
        function(x)
    found = perform(Call.read(function, (x,)))[0]
    counted = {op.name.split(".")[1]: op.count for op in found.compilations[0].eager or ()}
    assert counted == dict.fromkeys(work.split(), 1)
    assert len(plain.work) > len(counted), "plain torch dispatches what is no work too"


OLD = versions.torch_version() < (2, 13)
"""Torch whose Dynamo writes such calls in other forms, which are not found again."""


def sums_in_place(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = x * 2
    y.addcmul_(a, b, value=0.5).addcdiv_(a, b + 2, value=-1)
    return y.add_(a, alpha=3).sin()


def quotients(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = torch.addcdiv(x, a, b + 2, value=0.5)
    return torch.add(y, torch.mul(torch.div(a, b + 2), 3)).addcdiv(a, b + 2, value=2)


def means_of_lists(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    means, squares = [x.detach() + 1, x.detach() * 2], [a.detach() + 1, b.detach() * 2]
    torch._foreach_lerp_(means, squares, 0.1)
    torch._foreach_lerp_(squares, means, 0.9)
    torch._foreach_addcmul_(means, squares, means)
    return means[0] + squares[1]


@pytest.mark.skipif(OLD, reason="this torch has other forms")
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("function", [sums_in_place, quotients, means_of_lists])
def test_what_dynamo_writes_in_other_operators_is_counted_as_the_program_calls_it(
    function: Callable[..., torch.Tensor],
) -> None:
    given = [torch.rand(4, 3, requires_grad=function is not means_of_lists) for _ in range(3)]
    compiled = perform(Call.read(function, tuple(given)))[0].compilations[0]
    with Dispatched() as plain:
        out = function(*given)
        if out.requires_grad:
            ones = torch.ones_like(out)
            plain.work["aten.ones_like.default"] -= 1
            torch.autograd.grad(out, given, ones)
    counted: Counter[str] = Counter()
    for op in compiled.eager or ():
        counted[op.name] += op.count
    no_work = ("aten.detach.default", "aten.empty_like.default")
    assert counted == Counter({k: n for k, n in plain.work.items() if n and k not in no_work})


def by_a_tensor(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return x.add_(a, alpha=b.sum())  # type: ignore[arg-type]


def lists_by_a_tensor(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> None:
    torch._foreach_lerp_([x], [a], b.sum())  # type: ignore[call-overload]


@pytest.mark.full
@pytest.mark.skipif(OLD, reason="this torch has other forms")
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("function", [by_a_tensor, lists_by_a_tensor])
def test_what_the_graph_does_not_tell_is_not_counted(function: Callable[..., torch.Tensor | None]) -> None:
    given = tuple(torch.rand(4) for _ in range(3))
    if not getattr(torch._dynamo.config, "enable_dynamo_decompositions", False):
        pytest.skip("this torch breaks the graph there")
    compiled = perform(Call.read(function, given))[0].compilations[0]
    assert compiled.eager is None
    assert "its graph does not show" in compiled.eager_note


def with_arrays(x: torch.Tensor) -> torch.Tensor:
    array = x.numpy()
    return torch.from_numpy(numpy.sin(array) * array.max()) + 1


def one_array(x: Any) -> Any:
    return x + x.sum(axis=0)


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("function", "given", "names"),
    [(with_arrays, torch.rand(4), "sin, max, mul"), (one_array, numpy.ones((2, 3)), "sum, add")],
)
def test_functions_of_numpy_are_counted_as_captured(function: Any, given: Any, names: str) -> None:
    """PyTorch dispatches only the addition of the first function: it runs no operator for an array."""
    captured = capture(function, given)
    assert captured.ledger.total.as_captured
    assert f"NumPy runs {names}, and PyTorch dispatches nothing" in " ".join(captured.ledger.total.notes)
    assert "work, as captured" in str(captured)


def test_a_tensor_of_an_array_is_no_function_of_numpy() -> None:
    captured = capture(lambda x: torch.from_numpy(x.numpy()) + 1, torch.rand(4))
    assert not captured.ledger.total.as_captured and captured.ledger.total.eager_ops == 1


def in_the_function(x: torch.Tensor) -> torch.Tensor:
    return x.sin().cos() if torch.compiler.is_compiling() else x.tan()


def asked_by_a_helper() -> bool:
    return bool(torch.compiler.is_dynamo_compiling())


def in_a_helper(x: torch.Tensor) -> torch.Tensor:
    if not asked_by_a_helper():
        x = x.clamp(0, 1)
    return x.exp()


@pytest.mark.parametrize(
    ("function", "name"), [(in_the_function, "in_the_function"), (in_a_helper, "asked_by_a_helper")]
)
def test_a_program_that_asks_whether_it_is_compiled_is_counted_as_captured(
    function: Callable[..., torch.Tensor], name: str
) -> None:
    x = torch.rand(4)
    with Dispatched() as plain:
        function(x)
    captured = capture(function, x)
    total = captured.ledger.total
    assert total.as_captured and total.eager_ops != sum(plain.work.values())
    assert any(f"{name} (test_eager_count.py:" in note for note in total.notes), total.notes
    assert "work, as captured" in str(captured)


def test_where_it_is_not_observed_whether_a_program_asks_it_is_counted_as_captured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    owner = torch._dynamo.symbolic_convert.InstructionTranslatorBase
    monkeypatch.delattr(owner, "mark_inconsistent_side_effects")
    total = capture(lambda x: x.sin(), torch.rand(4)).ledger.total
    assert total.as_captured and any("was not observed" in note for note in total.notes)


OPTIMIZERS = [
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"foreach": True, "weight_decay": 0.1}),
    ("Adadelta", {"foreach": True}),
    ("RMSprop", {}),
    ("AdamW", {}),
    ("AdamW", {"foreach": True}),
    ("Rprop", {}),
    ("NAdam", {"foreach": True}),
]


@pytest.mark.full
@pytest.mark.skipif(OLD, reason="this torch has other forms")
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(("kind", "options"), OPTIMIZERS)
@pytest.mark.cases(full=4)
def test_a_step_is_counted_as_plain_torch_runs_it_or_says_that_it_is_not(
    kind: str, options: dict[str, Any]
) -> None:
    def optimizer() -> torch.optim.Optimizer:
        weights = [torch.nn.Parameter(torch.rand(4)) for _ in range(3)]
        stepped: torch.optim.Optimizer = getattr(torch.optim, kind)(weights, lr=0.1, **options)
        for weight in weights:
            weight.grad = torch.rand(4)
        stepped.step()
        return stepped

    step = optimizer().step
    with Dispatched() as plain:
        step()
    work = {name for name in plain.work if "profiler" not in name and name != "aten.lift_fresh.default"}
    compilations = [c for c in perform(Call.read(optimizer().step, ()))[0].compilations if c.eager]
    count = sum(op.count for compiled in compilations for op in compiled.eager or ())
    notes = " ".join(compiled.eager_note for compiled in compilations)
    if kind in ("AdamW", "Rprop", "NAdam"):
        assert "of torch.optim runs other operators" in notes
    else:
        assert (count, notes) == (sum(plain.work[name] for name in work), "")


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(("kind", "start"), [("AdamW", "work, as captured: "), ("SGD", "work, none saved: ")])
def test_the_headline_says_of_which_program_its_operators_are(kind: str, start: str) -> None:
    weight = torch.nn.Parameter(torch.rand(8))
    optimizer = getattr(torch.optim, kind)([weight], lr=0.1)
    weight.grad = torch.rand(8)
    optimizer.step()
    captured = capture(optimizer.step)
    assert any(line.startswith(start) for line in captured.text().splitlines()), captured.text()
    assert captured.ledger.total.as_captured is (kind == "AdamW")


def test_compiled_autograd_does_not_compile_the_count() -> None:
    """A program that enables it has the same graphs as one that does not: its backward runs outside the capture."""
    x = torch.rand(4, requires_grad=True)
    plain = capture(lambda x: (x.sin() * x).sum(), x)
    with torch._dynamo.config.patch(compiled_autograd=True):
        under = capture(lambda x: (x.sin() * x).sum(), x)
    assert [one.id for one in under.compilations] == ["0/0"] and not under.breaks
    assert under.compilations[0].eager == plain.compilations[0].eager


def inside(x: torch.Tensor) -> torch.Tensor:
    return (x.tanh() * 3).sigmoid()


def test_an_operator_that_aot_autograd_opens_counts_as_what_it_calls() -> None:
    """The compiler gets the decomposition: one operator before, against all of its kernels, would show no saving."""
    opened = torch.library.triton_op("of_this_test::opened", inside, mutates_args={})
    opened.register_autograd(lambda ctx, grad: opened(grad) + 1)
    x = torch.rand(8, 4, requires_grad=True)
    forward, backward = Dispatched(), Dispatched()
    with forward, torch.no_grad():
        (inside(inside(x.sin())) - 1)
    with backward, torch.no_grad():
        (inside(inside(x) + 1) + 1) * x.cos()
    record = capture(lambda x: opened(opened(x.sin())) - 1, x)
    counted = {p: Counter[str]() for p in ("forward", "backward")}
    for one in record.compilations[0].eager or ():
        counted[one.phase][one.name] += one.count
    assert counted == {"forward": forward.work, "backward": backward.work}
