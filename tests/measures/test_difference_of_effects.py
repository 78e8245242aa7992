"""Effects whose cause no record contains, guards, and the wording of changes."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
import torch
import torch._inductor.config as inductor
from full_text import full

import compile_lens
from compile_lens import Capture, capture, diff
from compile_lens.record.missing import Missing
from compile_lens.views.live.compare import diff_page as compared

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

X, W = torch.rand(64, 64), torch.rand(64, 64)


def chain(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w @ w @ w @ w).sum()


def whole(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.cos() @ w


def unsaid(found: Capture) -> Capture:
    """A record that lacks the cause: without the settings of torch's configurations."""
    kept = tuple(s for s in found.environment.settings if not s[0].startswith("torch._"))
    return dataclasses.replace(found, environment=dataclasses.replace(found.environment, settings=kept))


def renamed(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    # Moved, and with other names.
    sine = first.sin()

    return sine.cos() @ second


def broken(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    torch._dynamo.graph_break()
    return y.cos() @ w


def scaled(x: torch.Tensor, n: int) -> torch.Tensor:
    return x.sin() * n


def summed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x.sin() @ w).cos().sum(0)


def unsummed(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x.sin() @ w).cos()


def by_rows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.sub(x.sin(), w, alpha=2).sum(dim=1).to(torch.float64)


def by_columns(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.sub(x.sin(), w, alpha=3).sum(dim=0).to(torch.float16)


def less(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.sub(x.sin(), w) * x


def less_turned(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.sub(w, x.sin()) * x


def layers(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        x = torch.softmax(x.sin() @ w, -1).exp() + 1
    return x


def test_memory_that_is_no_longer_taken_over() -> None:
    """The oracle is the number of lines with ``# reuse`` in the generated code."""
    before = capture(chain, X, W)
    with inductor.patch(allow_buffer_reuse=False):
        after = unsaid(capture(chain, X, W))
    assert [one.code["inference"].count("# reuse") for one in (before, after)] == [2, 0]
    found = diff(before, after)
    assert [c.level for c in found.changes] == ["memory"]
    assert (
        found.causes[0].text
        == "inference: the results of 2 × aten.mm no longer take over the memory of 2 × aten.mm"
    )
    assert found.unexplained and found.summary.startswith("The records do not say why")
    assert "The records do not say why" in found._repr_mimebundle_()["text/html"]
    (turned,) = diff(after, before).causes
    assert turned.text == "inference: the results of 2 × aten.mm now take over the memory of 2 × aten.mm"
    # With an explicit option it has a cause, followed by the effect.
    difference = diff(before, capture(chain, X, W, options={"allow_buffer_reuse": False}))
    assert [c.level for c in difference.causes] == ["settings", "memory"] and not difference.unexplained


def test_what_calls_the_kernels_is_compared_last() -> None:
    before = capture(whole, X, W)
    with inductor.patch(size_asserts=False):
        after = unsaid(capture(whole, X, W))
    assert ["assert_size_stride" in one.code["inference"].partition("def call")[2] for one in (before, after)] == [
        True, False,
    ]  # fmt: skip
    found = diff(before, after)
    (change,) = found.changes
    assert change.text == "inference: the code that calls the kernels: 2 lines differ" and found.unexplained
    assert all(line.startswith("-") and "assert_size_stride" in line for line in change.facts)


def test_figures_without_a_cause_are_told_once() -> None:
    difference = diff(capture(whole, X, W), capture(whole, X, W))
    change = compile_lens.record.difference.Change(
        "figures",
        "changed",
        "launches: 2 became 3 (measured)",
        name="launches",
        before=2,
        after=3,
        basis="measured",
    )
    alone = type(difference)(difference.a, difference.b, (change,), (change,))
    assert alone.summary.count("launches") == 1 and alone.summary.startswith("The records do not say why")


def test_guards_are_told_in_words() -> None:
    tall = torch.rand(128, 64)
    (change,) = diff(capture(whole, X, W), capture(whole, tall, W)).at("guards")
    assert change.text == f"tensor `x`: size {list(X.shape)} became {list(tall.shape)}"
    assert [fact.partition("size=")[2] for fact in change.facts] == [
        f"{list(t.shape)}, stride={list(t.stride())})" for t in (X, tall)
    ]
    turned = torch.rand(64, 64).t()
    (change,) = diff(capture(whole, X, W), capture(renamed, turned, W)).at("guards")
    assert change.text == f"tensor `first`: stride {list(X.stride())} became {list(turned.stride())}"
    (change,) = diff(capture(scaled, X, 2), capture(scaled, X, 3)).at("guards")
    assert change.text == "n == 2 became n == 3"


def test_guards_of_a_new_graph_are_counted() -> None:
    one, two = capture(whole, X, W), capture(broken, X, W)
    difference = diff(one, two)
    assert [c.id for c in two.compilations] == ["0/0", "1/0"]
    rest = next(c for c in difference.at("guards") if "where it goes on" in c.text)
    assert re.fullmatch(r"\d+ guards of broken, where it goes on, are new: tensor `y`, \d+ others", rest.text)
    assert int(rest.text.split()[0]) == len(rest.facts) == 1 + int(rest.text.split()[-2])
    assert "check_tensor" not in full(difference) and "_dynamo_dynamic_indices" not in full(difference)
    assert any("check_tensor" in fact for fact in rest.facts)


PAIRS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "operands": (less, less_turned, {}),
    "arguments": (by_rows, by_columns, {}),
    "metal": (unsummed, summed, {"target": "m1"}),
    "break": (whole, broken, {}),
    "layers": (layers, layers, {"options": {"max_fusion_size": 1}}),
}


@pytest.mark.parametrize("name", PAIRS)
def test_it_is_told_in_plain_words(name: str) -> None:
    one, two, options = PAIRS[name]
    plain = {key: value for key, value in options.items() if key == "target"}
    difference = diff(capture(one, X, W, **plain), capture(two, X, W, **options))
    for text in (full(difference), difference.to_markdown(), difference.summary, repr(difference)):
        assert not re.search(
            r"(?<![\d,.])1 (times|lines|causes|changes|guards|loops|groups|kernels)\b", text
        ), text
        assert not re.search(
            r"Literal\(|Ref\(|generated_kernel|other (values|arguments)|was several groups, .* 1\b", text
        )
    lines = [line for line in difference.summary.splitlines() if "one group" in line]
    assert len(lines) == len(set(lines))


def test_which_operands_and_arguments_are_others() -> None:
    assert not torch.equal(less(X, W), less_turned(X, W))
    said = [c.text for c in diff(capture(less, X, W), capture(less_turned, X, W)).at("lines")]
    assert said == ["torch.sub(sin, w) became torch.sub(w, sin)"]
    said = [c.text for c in diff(capture(by_rows, X, W), capture(by_columns, X, W)).at("lines")]
    assert said == [
        "torch.sub: alpha: 2 → 3", "sum: dim: 1 → 0", "to: argument 1: torch.float64 → torch.float16",
    ]  # fmt: skip


def test_a_kernel_without_a_name_is_called_by_what_it_computes() -> None:
    difference = diff(capture(unsummed, X, W, target="m1"), capture(summed, X, W, target="m1"))
    (change,) = difference.at("kernels")
    assert change.text.startswith(
        "inference: the reduction kernel of aten.cos, aten.sum.dim_IntList was of kind"
    )


def test_layers_that_are_alike_are_told_once() -> None:
    before = capture(layers, X, W)
    difference = diff(before, capture(layers, X, W, options={"max_fusion_size": 1}))
    texts = [(c.kind, c.text) for c in difference.at("fusion")]
    assert len(texts) == len(set(texts)) and any(text.endswith(", in 2 places") for _, text in texts), texts


def test_an_empty_difference_has_no_signs() -> None:
    difference = diff(capture(whole, X, W), capture(renamed, X, W))
    assert not difference
    page = compared(difference)
    assert page["sources"] == [] and page["levels"] == []
    assert all(own == [[], []] for own in (module["own"] for module in page["modules"]))  # type: ignore[attr-defined]
    assert compared(diff(capture(whole, X, W), capture(broken, X, W)))["sources"] != []


def computed_twice(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + x.sin()


def computed_once(x: torch.Tensor) -> torch.Tensor:
    sine = x.sin()
    return sine + sine


def two_relus(x: torch.Tensor) -> torch.Tensor:
    return (x.relu() * 2).sin().relu() + 1


def one_relu(x: torch.Tensor) -> torch.Tensor:
    return (x.relu() * 2).sin() + 1


@pytest.mark.parametrize("target", [None, "h100"])
def test_one_of_two_is_not_all_of_them(target: str | None) -> None:
    """An operator is not gone if a kernel's own text still computes it."""
    one, two = (capture(fn, X, target=target) for fn in (computed_twice, computed_once))
    for found, verb in ((diff(one, two), "gone"), (diff(two, one), "new")):
        texts = [kernel.source for record in found.captures for kernel in record.kernels]
        assert [len(re.findall(r"\bsin\(", text)) > 0 for text in texts] == [True, True]
        assert [c.text for c in found.at("lines")] == [f"1 of 2 sin is {verb}"]
        assert [c.text for c in found.at("operators")] == [f"inference: 1 of 2 aten.sin is {verb}"]
        assert found.at("kernels") == found.at("code") == ()
    found = diff(capture(two_relus, X, target=target), capture(one_relu, X, target=target))
    assert found.at("lines")[0].text == "1 of 2 relu is gone"
    assert found.at("kernels") == () and found.at("code") != ()


def product(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * x.cos()


def test_a_phase_that_one_side_lacks_is_told() -> None:
    """The difference is the backward's kernel, named as in its text, and nothing in the forward."""
    plain, graded = capture(product, X), capture(product, X.clone().requires_grad_())
    text = graded.code["backward"]
    names = set(re.findall(r"\bcpp_fused_\w*?(?=_\d+\b)", text))
    assert len(names) == 1 and plain.code.keys() == {"inference"}
    for found, verb in ((diff(plain, graded), "new"), (diff(graded, plain), "gone")):
        (kernel,) = found.at("kernels")
        assert kernel.text == f"the backward is {verb}: 1 kernel: pointwise kernel {names.copy().pop()}"
        (operators,) = found.at("operators")
        assert re.match(rf"the backward is {verb}: \d+ operators: .*aten\.neg", operators.text)
        assert kernel.kind == operators.kind == {"new": "added", "gone": "removed"}[verb]
        assert any("x.sin() * x.cos()" in line for line in operators.lines)
    assert not diff(graded, capture(product, X.clone().requires_grad_()))


def test_a_phase_that_was_not_seen_is_not_told() -> None:
    """A phase that was not observed may still exist."""
    graded = capture(product, X.clone().requires_grad_())
    (one,) = graded.compilations
    reason = Missing("backward", "not seen")
    stages = [s for s in one.stages if getattr(s, "phase", "") != "backward" and not _of_backward(s)]
    unseen = dataclasses.replace(one, stages=(*stages, reason))
    assert "backward" in one.phases and "backward" not in unseen.phases
    difference = diff(dataclasses.replace(graded, compilations=(unseen,)), graded)
    assert difference.at("kernels") == difference.at("operators") == ()
    assert any("not seen" in text for text in difference.unknown)


def _of_backward(stage: object) -> bool:
    return getattr(stage, "stage", "").startswith("backward")


def test_whose_reason_it_is_is_told() -> None:
    """The reasons come from the side that has several fused groups, the first or the second."""
    apart = capture(layers, X, W, options={"max_fusion_size": 1})
    together = capture(layers, X, W)
    assert len(apart.compilations[0].graphs["inference.groups"].calls) > len(
        together.compilations[0].graphs["inference.groups"].calls
    )
    for found, verb, head in (
        (diff(apart, together), "was several groups, and is one", "they were not fused because: "),
        (diff(together, apart), "was one group, and is several", "they are not fused because: "),
    ):
        changes = found.at("fusion")
        assert changes and all(verb in change.text for change in changes)
        facts = [fact for change in changes for fact in change.facts]
        assert facts and all(fact.startswith(head) for fact in facts), facts


def helper(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def helped(x: torch.Tensor) -> torch.Tensor:
    return helper(x) + 1


def inlined(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def test_a_guard_of_a_function_names_it() -> None:
    difference = diff(capture(helped, X), capture(inlined, X))
    (change,) = difference.changes
    assert change.text == "1 guard of helped is gone: that `helper` is the same function (CLOSURE_MATCH)"
