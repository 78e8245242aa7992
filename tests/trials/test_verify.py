"""``verify`` against programs with correct compiled code, and against the same programs with a planted error."""

from __future__ import annotations

import collections
import dataclasses
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from full_text import full
from planted import off_by_a_little, plant
from torch import nn

from compile_lens import CaptureError, UsageError, capture
from compile_lens.record.capture import Failure
from compile_lens.record.verification import ALIAS, CHANGED, GRADIENT, RESULT
from compile_lens.trials.agreement import compare
from compile_lens.trials.observation import _direction

pytestmark = pytest.mark.torch

compiling = torch.compiler.is_compiling


@dataclasses.dataclass
class Pair:
    first: torch.Tensor
    second: Any = None


class Box:
    def __init__(self, value: torch.Tensor) -> None:
        self.value = value


Named = collections.namedtuple("Named", "left right")


class Node:
    """A container that torch can flatten, and Python cannot."""

    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner


torch.utils._pytree.register_pytree_node(
    Node, lambda node: ([node.inner, 7], None), lambda children, _: Node(next(iter(children)))
)


class Output(collections.OrderedDict):  # type: ignore[type-arg]
    """Like the model outputs of libraries: a dict with attributes."""

    def __init__(self, **values: Any) -> None:
        super().__init__(values)
        self.__dict__.update(values)


def square(grad: bool = False) -> torch.Tensor:
    return torch.arange(9.0).reshape(3, 3).div(10).requires_grad_(grad)


def verified(fn: Any, *args: Any, **options: Any) -> Any:
    return capture(fn, *args, **options).verify(fn, *args)


def kinds(report: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for c in report.comparisons:
        found.setdefault(c.kind, []).append(c.name)
    return found


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Resets Dynamo, since tests share functions with and without an error."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


# Containers of results, and repeated results -------------------------------------------------------------------

RETURNED: dict[str, tuple[Callable[[torch.Tensor], Any], list[str]]] = {
    "tensor": (lambda x: x @ x, ["result"]),
    "tuple": (lambda x: (x @ x, [x @ x @ x]), ["result[0]", "result[1][0]"]),
    "dict": (lambda x: {"a": x @ x, "b": 3}, ["result['a']", "result['b']"]),
    "dataclass": (lambda x: Pair(x @ x, 2.5), ["result.first", "result.second"]),
    "nested dataclass": (lambda x: [Pair(x @ x, Pair(x @ x @ x))], ["result[0].first", "result[0].second.first"]),
    "namedtuple": (lambda x: Named(x @ x, "text"), ["result.left", "result.right"]),
    "object": (lambda x: Box(x @ x), ["result.value"]),
    "model output": (lambda x: Output(loss=x @ x), ["result['loss']"]),
    "pytree node": (lambda x: Node(x @ x), ["result[0]", "result[1]"]),
    "array": (lambda x: (x @ x).numpy(), ["result"]),
    "torch's own": (lambda x: torch.return_types.max((x @ x, (x @ x).argmax(0))), ["result[0]", "result[1]"]),
}  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize("name", RETURNED)
@pytest.mark.cases(full=2)
def test_containers_of_any_kind_are_compared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fn, names = RETURNED[name]
    report = verified(fn, square())
    assert report.ok is True, full(report)
    found = kinds(report)[RESULT]
    assert [n for n in found if not n.endswith(".second") or name == "dataclass"] == names
    assert f"{len(found)} result" in full(report)
    torch._dynamo.reset()
    ran = plant(monkeypatch, off_by_a_little)
    wrong = verified(fn, square())
    assert ran and wrong.ok is False and "DISAGREES" in str(wrong)
    assert not next(c for c in wrong.comparisons if c.name == names[0]).ok


@pytest.mark.full
def test_a_training_function_that_returns_a_dataclass_has_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x: torch.Tensor) -> Pair:
        return Pair(x @ x)

    report = verified(fn, square(True))
    assert report.ok is True, full(report)
    assert kinds(report) == {RESULT: ["result.first"], GRADIENT: ["gradient of input 0"]}
    torch._dynamo.reset()
    plant(
        monkeypatch, lambda outputs, inputs: (2 * outputs[0], *outputs[1:]) if len(outputs) == 1 else outputs
    )
    wrong = verified(fn, square(True))
    assert [c.ok for c in wrong.comparisons] == [True, False], str(wrong)


def test_built_code_of_a_dataclass_runs_its_backward() -> None:
    record = capture(lambda x: Pair(x @ x), square(True), build=True)
    assert {c.stamp for comp in record.compilations for c in comp.code.values()} == {"ran"}


def test_a_call_that_does_nothing_is_not_agreed_about() -> None:
    def fn(x: torch.Tensor) -> None:
        x @ x

    report = verified(fn, square())
    assert report.ok is None and not report and not report.comparisons
    assert report.verdict == "nothing to compare" and "nothing to compare" in full(report)


def test_where_nothing_is_compiled_nothing_is_agreed_about() -> None:
    class Left(torch.nn.Module):
        @torch.compiler.disable
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x

    report = verified(Left(), square())
    assert (
        report.ok is None
        and report.verdict == "was not compared"
        and "torch.compiler.disable" in full(report)
    )


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: torch.empty(2**16) + x[0, 0],
        lambda x: torch.empty_like(x),
        lambda x: (x.sin(), x.new_empty(3, 3) * 2),
        lambda x: torch.empty_permuted((2, 3), (1, 0)),
    ],
)
@pytest.mark.cases(full=2)
def test_memory_that_nothing_wrote_is_not_comparable(fn: Any) -> None:
    report = verified(fn, square())
    assert report.ok is None and report.verdict == "not comparable: uninitialised memory", full(report)
    assert "numbers not compared" in full(report) and "torch.empty" in full(report)


@pytest.mark.full
def test_random_numbers_beside_unwritten_memory_are_eagers() -> None:
    report = verified(lambda x: (torch.rand_like(x) + x, torch.empty(5)), square())
    assert report.verdict == "not comparable: uninitialised memory" and report.ok is None, full(report)
    first, second = report.comparisons
    assert first.ok and first.max_abs == first.max_abs and second.max_abs != second.max_abs
    assert "random numbers" in report.note


@pytest.mark.exhaustive
def test_what_does_not_depend_on_unwritten_memory_is_compared() -> None:
    report = verified(lambda x: (x.sin(), torch.empty(5)), square())
    first, second = report.comparisons
    assert first.max_abs == first.max_abs and second.max_abs != second.max_abs
    written = verified(lambda x: torch.empty(4, 4).copy_(x) + torch.empty(4).fill_(2.0), torch.rand(4, 4))
    assert written.ok is True


def test_what_python_runs_on_both_sides_is_said() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x
        for _ in range(2):
            torch._dynamo.graph_break()
            y = inner(y)
        return y

    record = capture(fn, square())
    report = record.verify(fn, square())
    assert report.ok is True and record.skipped
    told = {part for part, reason in report.not_run if "eager on both sides" in reason}
    assert told == {s.function for s in record.skipped}, full(report)


# Programs that differ under the compiler, which verify must detect without an error in the code ----------------


def other_number(x: torch.Tensor) -> Any:
    return x @ x, 2 if compiling() else 1


def other_float(x: torch.Tensor) -> Any:
    return x @ x, 2.001 if compiling() else 2.0


def other_text(x: torch.Tensor) -> Any:
    return x @ x, "two" if compiling() else "one"


def one_more(x: torch.Tensor) -> Any:
    return (x @ x, x @ x @ x) if compiling() else (x @ x,)


def one_less(x: torch.Tensor) -> Any:
    return {"a": x @ x} if compiling() else {"a": x @ x, "b": x @ x @ x}


def other_type(x: torch.Tensor) -> Any:
    y = x @ x
    return y.double() if compiling() else y


def other_strides(x: torch.Tensor) -> Any:
    y = x @ x
    return y.t().contiguous().t() if compiling() else y


def other_shape(x: torch.Tensor) -> Any:
    y = x @ x
    return y.view(9) if compiling() else y


def no_grad_left(x: torch.Tensor) -> Any:
    y = x @ x
    return y.detach() if compiling() else y


def no_tensor(x: torch.Tensor) -> Any:
    y = x @ x
    return 3.0 if compiling() else y


OtherNamed = collections.namedtuple("OtherNamed", "left right")


def a_list(x: torch.Tensor) -> Any:
    return [x @ x, 1] if compiling() else (x @ x, 1)


def other_names(x: torch.Tensor) -> Any:
    return 1, OtherNamed(x @ x, 1) if compiling() else Named(x @ x, 1)


def other_order(x: torch.Tensor) -> Any:
    return {"b": 1, "a": x @ x} if compiling() else {"a": x @ x, "b": 1}


def no_order(x: torch.Tensor) -> Any:
    return {"a": x @ x} if compiling() else collections.OrderedDict([("a", x @ x)])


def an_empty_list(x: torch.Tensor) -> Any:
    return x @ x, [] if compiling() else ()


def one_empty_more(x: torch.Tensor) -> Any:
    return (x @ x, []) if compiling() else (x @ x,)


def a_list_held(x: torch.Tensor, held: dict[str, Any]) -> Any:
    held["kept"] = [x @ x] if compiling() else (x @ x,)
    return x @ x


def not_written(x: torch.Tensor) -> Any:
    if not compiling():
        x.mul_(2)
    return x @ x


def written(x: torch.Tensor) -> Any:
    if compiling():
        x.mul_(2)
    return torch.ones(3, 3) @ torch.ones(3, 3)


def a_copy_of_the_input(x: torch.Tensor) -> Any:
    return x @ x, x.clone() if compiling() else x.view(9).view(3, 3)


def another_row(x: torch.Tensor) -> Any:
    return x @ x, x[1] if compiling() else x[0]


def two_of_one(x: torch.Tensor) -> Any:
    y = x @ x
    return y, y.clone() if compiling() else y.view(9).view(3, 3)


def two_of_two(x: torch.Tensor) -> Any:
    y = x @ x
    return y, y.view(9).view(3, 3) if compiling() else y.clone()


OTHERS = {
    other_number: (RESULT, "result[1]", "int 2 where eager has int 1"),
    other_float: (RESULT, "result[1]", "float 2.001"),
    other_text: (RESULT, "result[1]", "'two'"),
    one_more: (RESULT, "result[1]", "only compiled has it"),
    one_less: (RESULT, "result['b']", "only eager has it"),
    other_type: (RESULT, "result", "dtype float64 where eager has float32"),
    other_strides: (RESULT, "result", "strides (1, 3) where eager has (3, 1)"),
    other_shape: (RESULT, "result", "shape (9,) where eager has (3, 3)"),
    no_grad_left: (RESULT, "result", "requires_grad False where eager has True"),
    no_tensor: (RESULT, "result", "a float where eager has a Tensor"),
    a_list: (RESULT, "result", "a list where eager has a tuple"),
    other_names: (RESULT, "result[1]", "a OtherNamed where eager has a Named"),
    other_order: (RESULT, "result", "keys ['b', 'a'] where eager has ['a', 'b']"),
    no_order: (RESULT, "result", "a dict where eager has a OrderedDict"),
    an_empty_list: (RESULT, "result[1]", "a list where eager has a tuple"),
    one_empty_more: (RESULT, "result[1]", "only compiled has it"),
    a_list_held: (CHANGED, "input 1['kept']", "a list where eager has a tuple"),
    not_written: (CHANGED, "input 0", ""),
    written: (CHANGED, "input 0", ""),
    a_copy_of_the_input: (ALIAS, "result[1]", "memory of its own where eager has memory shared with input 0"),
    another_row: (ALIAS, "result[1]", "input 0 (+12 bytes)"),
    two_of_one: (ALIAS, "result[1]", "memory of its own where eager has memory shared with result[0]"),
    two_of_two: (ALIAS, "result[1]", "memory shared with result[0] where eager has memory of its own"),
}


@pytest.mark.parametrize("fn", OTHERS, ids=lambda fn: fn.__name__)
@pytest.mark.cases(full=5)
def test_what_only_the_compiler_does_is_seen(fn: Any) -> None:
    kind, name, problem = OTHERS[fn]
    x = square(grad=fn is no_grad_left)
    more: tuple[Any, ...] = ({"kept": None},) if fn is a_list_held else ()
    record = capture(fn, x, *more)
    before = x.detach().clone()
    report = record.verify(fn, x, *more)
    assert report.ok is False and "DISAGREES" in full(report), full(report)
    (seen,) = [c for c in report.comparisons if c.kind == kind and c.name == name]
    assert not seen.ok and problem in seen.problem, full(report)
    assert torch.equal(x.detach(), before)  # the program's own tensor is not written to


@pytest.mark.parametrize(
    ("mine", "its", "told"),
    [
        (float("nan"), 1.5, "nan where eager has 1.5 at [0, 1]"),
        (1.5, float("nan"), "1.5 where eager has nan at [0, 1]"),
        (float("inf"), 1.5, "inf where eager has 1.5 at [0, 1]"),
        (float("-inf"), float("inf"), "-inf where eager has inf at [0, 1]"),
        (float("nan"), float("inf"), "nan where eager has inf at [0, 1]"),
    ],
)
def test_a_number_that_is_none_is_told(mine: float, its: float, told: str) -> None:
    compared = compare("x", torch.tensor([[1.0, mine]]), torch.tensor([[1.0, its]]), None)
    assert not compared.ok and compared.max_abs == float("inf") and told in full(compared), full(compared)
    # A finite value in float64 does not change the message.
    wide = torch.ones(1, 2, dtype=torch.float64)
    assert told in str(compare("x", torch.tensor([[1.0, mine]]), torch.tensor([[1.0, its]]), wide))
    same = compare("x", torch.tensor([[1.0, mine]]), torch.tensor([[1.0, mine]]), None)
    assert same.ok and same.max_abs == 0 and not same.special


def test_a_plain_number_that_is_none_is_told() -> None:
    def fn(x: torch.Tensor) -> Any:
        return x @ x, float("nan") if compiling() else 1.5

    report = verified(fn, square())
    assert report.ok is False and "float nan where eager has float 1.5" in full(report)
    assert "numbers not compared" not in full(report) and "max abs inf" in full(report)


def test_an_infinity_on_both_sides_is_no_scale() -> None:
    got, want = torch.tensor([float("inf"), 2.5]), torch.tensor([float("inf"), 2.0])
    compared = compare("x", got, want, None)
    assert not compared.ok and compared.max_abs == 0.5 and compared.max_rel == 0.25


@pytest.mark.exhaustive
def test_containers_that_stay_what_they_are_agree() -> None:
    def fn(x: torch.Tensor, held: dict[str, Any]) -> Any:
        empty: list[Any] = []
        held["rows"] = [x @ x, *held["rows"]]
        own = collections.namedtuple("own", "left")
        ordered = collections.OrderedDict([("b", x @ x), ("a", 1)])
        counted = collections.defaultdict(list, a=[x @ x])
        return x.shape, x.max(0), x.topk(2), empty, [empty, ()], own(x @ x), ordered, counted, Pair(x @ x, [])

    report = verified(fn, square(), {"rows": []})
    assert report.ok is True, full(report)


# In place ------------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_inputs_changed_in_place_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x: torch.Tensor, rows: list[torch.Tensor]) -> None:
        x.copy_(x @ x)
        rows.append(x @ rows[0])

    report = verified(fn, square(), [square()])
    assert report.ok is True, full(report)
    assert kinds(report) == {CHANGED: ["input 0", "input 1[2]"]}
    assert (
        "2 tensors that the call takes or holds have the same values after the eager call as before"
        in full(report)
    )
    torch._dynamo.reset()

    def wrong(outputs: Any, inputs: list[Any]) -> Any:
        for x in inputs:
            if isinstance(x, torch.Tensor):
                x.add_(0.01)
        return outputs

    plant(monkeypatch, wrong)
    report = verified(fn, square(), [square()])
    assert report.ok is False
    assert {c.name for c in report.comparisons if not c.ok} >= {"input 0", "input 1[0]"}, full(report)


@pytest.mark.exhaustive
def test_state_of_a_module_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)
            self.register_buffer("total", torch.zeros(3, 3))
            self.calls = 0
            self.last: Any = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.inner(x)
            self.total.copy_(self.total @ y.detach())
            self.calls += 1
            self.last = y.detach() @ self.total
            return y

    net = Net()
    net.total.fill_(1)
    report = verified(net, square())
    assert report.ok is True, full(report)
    found = kinds(report)
    assert set(found[CHANGED]) == {"total", "calls", "last"}
    assert found[GRADIENT] == ["gradient of inner.bias", "gradient of inner.weight"]
    assert net.calls == 1 and bool(net.total.ne(1).any())  # only by the capture, which is one plain call
    torch._dynamo.reset()

    def wrong(outputs: Any, inputs: list[Any]) -> Any:
        for x in inputs:
            if isinstance(x, torch.Tensor) and x.shape == (3, 3) and not isinstance(x, nn.Parameter):
                x.add_(0.01)
        return outputs

    plant(monkeypatch, wrong)
    report = verified(Net(), square())
    assert report.ok is False and "total" in {c.name for c in report.comparisons if not c.ok}, full(report)


@pytest.mark.exhaustive
def test_what_a_closure_holds_is_compared_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    table, seen = square(), [0]

    def fn(x: torch.Tensor) -> torch.Tensor:
        table.copy_(table @ x)
        seen[0] += 1
        return x @ table * seen[0]

    record = capture(fn, square())
    after = table.clone()
    report = record.verify(fn, square())
    assert report.ok is True, full(report)
    assert kinds(report)[CHANGED] == ["closure seen[0]", "closure table"]
    assert torch.equal(table, after) and seen == [1]


SHARED = torch.ones(3, 3)
COUNT = 0


def through_globals(x: torch.Tensor) -> torch.Tensor:
    global COUNT
    COUNT += 1
    SHARED.copy_(SHARED @ x)
    return x @ SHARED * COUNT


@pytest.mark.exhaustive
def test_globals_are_compared_and_put_back() -> None:
    record = capture(through_globals, square())
    held, count = SHARED.clone(), COUNT
    report = record.verify(through_globals, square())
    assert report.ok is True, full(report)
    assert set(kinds(report)[CHANGED]) == {"global COUNT", "global SHARED"}
    assert torch.equal(SHARED, held) and count == COUNT


class Held:
    count = 0


def sets_on_a_class(x: torch.Tensor) -> torch.Tensor:
    Held.state = x.cos() if compiling() else x.sin()  # type: ignore[attr-defined]
    return x @ x


def counts_on_a_class(x: torch.Tensor) -> torch.Tensor:
    Held.count += 2 if compiling() else 1
    return x @ x


@pytest.mark.full
@pytest.mark.parametrize(
    ("fn", "name"), [(sets_on_a_class, "global Held.state"), (counts_on_a_class, "global Held.count")]
)
def test_what_is_set_on_a_class_is_compared_and_put_back(fn: Any, name: str) -> None:
    found = capture(fn, square())
    before = {n: v for n, v in vars(Held).items() if not n.startswith("__")}
    report = found.verify(fn, square())
    assert report.ok is False, full(report)
    assert [(c.kind, c.name) for c in report.comparisons if not c.ok] == [(CHANGED, name)]
    assert all(vars(Held)[n] is v for n, v in before.items())


@pytest.mark.full
def test_a_class_that_a_function_closes_over_is_compared() -> None:
    class Own(Held):
        count = 0

    def fn(x: torch.Tensor) -> torch.Tensor:
        Own.count += 1
        Own.last = x @ x * Own.count  # type: ignore[attr-defined]
        return x @ x

    report = verified(fn, square())
    assert report.ok is True, full(report)
    assert kinds(report)[CHANGED] == ["closure Own.count", "closure Own.last"] and Own.count == 1


@pytest.mark.full
def test_a_step_of_training_is_compared() -> None:
    net = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)

    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = net(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss

    record = capture(step, square())
    before = {n: p.detach().clone() for n, p in net.named_parameters()}
    report = record.verify(step, square())
    assert report.ok is True, full(report)
    (part, reason), *_ = report.not_run
    assert part == "gradients" and "second time" in reason  # the function consumed its graph
    changed = kinds(report)[CHANGED]
    assert any("weight" in n and n.endswith(".grad") for n in changed), changed
    assert any(n.endswith("weight") for n in changed) and sum("momentum" in n for n in changed) == 2, changed
    assert all(torch.equal(p, before[n]) for n, p in net.named_parameters())


# Gradients -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_gradient_that_sums_to_nothing_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)

    x = square(True)
    assert verified(fn, x).ok is True
    torch._dynamo.reset()
    # The gradient of the sum of a softmax is zero, and so is its double.
    plant(monkeypatch, lambda outputs, inputs: (2 * outputs[0],) if len(outputs) == 1 else outputs)
    report = verified(fn, square(True))
    assert [c.kind for c in report.comparisons if not c.ok] == [GRADIENT], full(report)


@pytest.mark.slow
def test_a_wrong_gradient_of_one_element_is_seen() -> None:
    assert bool((_direction("result", torch.ones(1000)) != 0).all())

    def function(x: torch.Tensor) -> torch.Tensor:
        if compiling():
            part = x * (torch.arange(10) == 3)
            return x.sin() + part - part.detach()
        return x.sin()

    x = torch.arange(10.0).div(10).requires_grad_()
    failed = [c for c in verified(function, x).comparisons if not c.ok]
    assert [(c.kind, c.name) for c in failed] == [(GRADIENT, "gradient of input 0")]


def clipped(x: torch.Tensor, w: nn.Parameter) -> torch.Tensor:
    w.data = w.data.clamp(-0.5, 0.5)
    return x * w


def used_before(x: torch.Tensor, w: nn.Parameter) -> tuple[torch.Tensor, torch.Tensor]:
    before = w.sum()
    w.data = x.sign()
    return (w * x).sum(0), before


@pytest.mark.full
@pytest.mark.parametrize("fn", [clipped, used_before])
def test_a_leaf_whose_data_is_replaced_has_its_gradient(fn: Callable[..., Any]) -> None:
    """``torch.autograd.grad`` does not find such a leaf in a compiled graph, but ``backward()`` does."""
    gradients = []
    for call in (fn, torch.compile(fn, backend="aot_eager")):
        x, w = square(), nn.Parameter(square())
        result = call(x, w)
        (result if isinstance(result, torch.Tensor) else sum(result)).sum().backward()
        gradients.append(w.grad)
    assert gradients[0] is not None and torch.equal(gradients[0], gradients[1])
    torch._dynamo.reset()
    report = verified(fn, square(), nn.Parameter(square()))
    assert report.ok is True and kinds(report)[GRADIENT] == ["gradient of input 1"], full(report)


@pytest.mark.full
def test_a_gradient_that_reads_replaced_data_is_still_accused() -> None:
    """Inductor saves the leaf itself, and reads it after its data was replaced; plain torch shows the same."""

    def fn(x: torch.Tensor, w: nn.Parameter) -> torch.Tensor:
        w.data = w.data * 0.5
        return x * w.sin()

    gradients = []
    for call in (fn, torch.compile(fn)):
        w = nn.Parameter(square())
        call(square(), w).sum().backward()
        gradients.append(w.grad)
    assert gradients[0] is not None and gradients[1] is not None
    torch._dynamo.reset()
    report = verified(fn, square(), nn.Parameter(square()))
    agree = torch.allclose(gradients[0], gradients[1])
    assert [c.kind for c in report.comparisons if not c.ok] == ([] if agree else [GRADIENT]), full(report)


def test_gradients_of_every_leaf() -> None:
    inside = square(True)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(square())
            self.tied = self.a

        def forward(self, pair: Pair, more: dict[str, torch.Tensor]) -> torch.Tensor:
            return pair.first @ self.a @ self.tied @ more["y"] @ inside

    report = verified(Net(), Pair(square(True)), {"y": square(True)})
    assert report.ok is True, full(report)
    assert kinds(report)[GRADIENT] == [
        "gradient of a",
        "gradient of forward closure inside",
        "gradient of input 0.first",
        "gradient of input 1['y']",
    ]


# The call is the same ------------------------------------------------------------------------------------------


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a @ b + b.sum()


def writes_to_both(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    a.mul_(2)
    return a @ b


def rows(a: torch.Tensor) -> torch.Tensor:
    return a.t() @ a


@pytest.mark.slow
class Computed(nn.Module):
    """Has a buffer that autograd computed, as a whole or as a part of a tensor."""

    def __init__(self, row: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        buffer = torch.eye(4) * self.weight
        self.register_buffer("buffer", buffer[1] if row else buffer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.buffer += x
        return (x * self.buffer).sin() * self.weight


@pytest.mark.full
@pytest.mark.parametrize("row", [False, True])
@pytest.mark.cases(full=1)
def test_a_tensor_that_autograd_computed_is_written_to(row: bool) -> None:
    module, x = Computed(row), torch.rand(4)
    module(x)  # eager PyTorch can run it
    captured = capture(module, x, keep_inputs=True)
    verification = captured.verify()
    gradients = {c.name for c in verification.comparisons if c.kind == GRADIENT}
    where = "what buffer is a view of" if row else "buffer"
    assert verification.ok and gradients == {f"gradient of {where}", "gradient of weight"}
    assert "buffer" in {c.name for c in verification.comparisons if c.kind == CHANGED}


@pytest.mark.exhaustive
def test_an_input_that_autograd_computed_is_written_to() -> None:
    x = torch.rand(4, requires_grad=True)
    captured = capture(lambda h: h.mul_(3).sin(), x * 2, keep_inputs=True)
    verification = captured.verify(lambda h: h.mul_(3).sin(), x * 2)
    (gradient,) = (c for c in verification.comparisons if c.kind == GRADIENT)
    assert verification.ok and gradient.name == "gradient of input 0" and gradient.has_numbers


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.exhaustive
def test_one_tensor_twice(grad: bool) -> None:
    x = square(grad)
    report = verified(product, x, x)
    assert report.ok is True and report.same_code is True, full(report)
    base = square()
    report = verified(writes_to_both, base, base)
    assert report.ok is True and report.same_code is True, full(report)
    assert kinds(report)[CHANGED] == ["input 0"]


@pytest.mark.slow
def test_tensors_that_share_memory() -> None:
    base = torch.arange(18.0)
    report = verified(writes_to_both, base[:9].view(3, 3), base[3:12].view(3, 3))
    assert report.ok is True and report.same_code is True, full(report)
    assert kinds(report)[CHANGED] == ["input 0", "input 1"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.arange(3.0).expand(4, 3),
        lambda: torch.arange(3.0).requires_grad_().expand(4, 3),
        lambda: torch.arange(24.0)[1::2].view(4, 3),
        lambda: torch.arange(12.0).view(3, 4).t(),
        lambda: torch.arange(6.0).as_strided((4, 3), (1, 1)),
        lambda: nn.Parameter(torch.arange(12.0).view(4, 3)),
    ],
    ids=["expanded", "expanded with gradient", "gaps", "transposed", "overlapping", "parameter"],
)
def test_strides_of_the_call_are_kept(make: Callable[[], torch.Tensor]) -> None:
    x = make()
    report = verified(rows, x)
    assert report.ok is True and report.same_code is True, full(report)


@pytest.mark.exhaustive
def test_a_module_that_holds_a_lock() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()
            self.generator = (i for i in range(3))
            self.file = open(__file__)
            self.layer = nn.Linear(3, 3)
            self.register_buffer("count", torch.zeros(3, 3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.copy_(self.count @ x)
            return self.layer(x)

    net = Net()
    try:
        net.count.fill_(1)
        x = square()
        record = capture(net, x)
        held = net.count.clone()
        report = record.verify()
        assert report.ok is True, full(report)
        assert kinds(report)[CHANGED] == ["count"] and torch.equal(net.count, held)
    finally:
        net.file.close()


def test_what_was_compiled_already_is_no_eager_side() -> None:
    compiled = torch.compile(other_number)
    assert verified(compiled, square()).ok is False
    inner = torch.compile(other_number)
    report = verified(lambda x: inner(x @ x), square())
    assert report.ok is False, full(report)


# Random numbers ------------------------------------------------------------------------------------------------


def dropout(x: torch.Tensor) -> torch.Tensor:
    return F.dropout(x, 0.5, True)


def noise(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand_like(x) * torch.randn(3, 3) + torch.bernoulli(torch.full((3, 3), 0.5))


def leaky(x: torch.Tensor) -> torch.Tensor:
    return F.rrelu(x - 0.4, training=True)


def half(x: torch.Tensor) -> Any:
    return x @ x, torch.rand(3, 3) @ x


@pytest.mark.exhaustive
@pytest.mark.parametrize("fn", [dropout, noise, leaky])
def test_random_functions_are_compared_under_the_same_numbers(
    fn: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = torch.get_rng_state()
    report = verified(fn, square(True))
    assert report.ok is True and report.same_code is True, full(report)
    assert set(kinds(report)) == {RESULT, GRADIENT} and "fallback_random" in full(report)
    assert torch.equal(state, torch.get_rng_state())
    torch._dynamo.reset()
    plant(monkeypatch, lambda outputs, inputs: (1.5 * outputs[0], *outputs[1:]))
    assert verified(fn, square(True)).ok is False  # a wrong scale is not due to chance


@pytest.mark.exhaustive
def test_random_functions_that_cannot_be_compared_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import compile_lens.trials.verify as verification

    # Torch cannot generate such code, whatever the reason: values without random numbers are still compared.
    real = verification._run

    def refused(*args: Any) -> Any:
        import torch._inductor.config as config

        if config.fallback_random:
            failure = Failure("inference.loops", "RuntimeError", "no such code", "")
            raise CaptureError("no such code", dataclasses.replace(args[0], failure=failure))
        return real(*args)

    monkeypatch.setattr(verification, "_run", refused)
    report = verified(half, square())
    assert report.ok is None and not report and report.verdict == "not comparable: random"
    text = full(report)
    assert "DISAGREES" not in text and "numbers not compared" in text and "not comparable: random" in text
    assert [c.max_abs == 0 for c in report.comparisons if c.name == "result[0]"] == [True]
    torch._dynamo.reset()
    plant(monkeypatch, lambda outputs, inputs: tuple(x + 0.01 for x in outputs))
    report = verified(half, square())
    assert report.ok is False and [c.name for c in report.comparisons if not c.ok] == ["result[0]"]


@pytest.mark.exhaustive
def test_what_insisted_on_a_backward_is_not_verified_without_one() -> None:
    x = torch.linspace(0, 1, 8)
    insisting = capture(torch.sin, x.clone().requires_grad_(), backward=True)
    with pytest.raises(UsageError, match=r"backward=True, but nothing in torch\.sin is differentiable"):
        insisting.verify(torch.sin, x)
    assert capture(torch.sin, x.clone().requires_grad_()).verify(torch.sin, x).ok


@pytest.mark.full
def test_a_tensor_that_autograd_computed_is_written_to_on_a_target() -> None:
    def written(h: torch.Tensor) -> torch.Tensor:
        return h.exp_() * 2

    made = torch.rand(4, 4, requires_grad=True) * 2
    on_target = capture(written, made, target="h100")
    assert not on_target.failure and {k.phase for k in on_target.kernels} == {"forward", "backward"}
