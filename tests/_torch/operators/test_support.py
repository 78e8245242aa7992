"""Torch's operator table agrees with its dispatcher, and the reported support agrees with a capture."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compile_lens import UsageError, capture, support
from compile_lens._torch.operators import native_functions
from compile_lens._torch.operators import support as asked
from compile_lens.record.support import BACKENDS

pytestmark = pytest.mark.torch


def registered_elsewhere() -> set[str]:
    """Operators that get a kernel from torch's own Python code, which the table cannot list."""
    return {"_scaled_addmm", "_scaled_addmm_", "_scaled_grouped_mm_v2"} | {
        "_upsample_lanczos2d_aa", "_upsample_lanczos2d_aa_backward", "_foreach_mm"
    }  # fmt: skip


@pytest.mark.parametrize("key", ["CPU", "CUDA"])
def test_the_table_agrees_with_the_dispatcher_on_every_operator(key: str) -> None:
    if key == "CUDA" and torch.version.cuda is None:
        pytest.skip("this torch was built without CUDA, so that its dispatcher knows nothing of it")
    table = native_functions.table()
    wrong = []
    looked = 0
    registered = asked._registered()
    for name in table:
        full = f"aten::{name}"
        if full not in registered:
            continue
        looked += 1
        how, _ = native_functions.implementation(table, name, key)
        runs = torch._C._dispatch_has_computed_kernel_for_dispatch_key(full, key)
        own = torch._C._dispatch_has_kernel_for_dispatch_key(full, key)
        if (how == "none") == runs or (how == "kernel") != own:
            wrong.append(name)
    assert looked > 2500
    assert set(wrong) <= registered_elsewhere()


def how(op: Any) -> dict[str, tuple[str, ...]]:
    return {o.name: tuple(o.on(b).kind for b in BACKENDS) for o in support(op).overloads}


def test_an_operator_is_found_by_name_by_object_and_by_function() -> None:
    want = {"aten.sort": ("composite",) * 3, "aten.sort.stable": ("kernel",) * 3}
    for op in ("sort", "aten.sort", "aten::sort", "torch.ops.aten.sort", torch.ops.aten.sort, torch.sort):
        assert {k: v for k, v in how(op).items() if "dimname" not in k} == want, op
    assert how(torch.Tensor.sort) == how("sort")
    assert list(how(torch.ops.aten.sort.stable)) == list(how("sort.stable")) == ["aten.sort.stable"]
    assert list(how("aten.sort.values_stable")) == ["aten.sort.values_stable"], (
        "out= forms where they are asked for"
    )
    assert list(how("aten.sort.default")) == ["aten.sort"]
    assert how(F.gelu) == how("aten.gelu")


def test_what_is_said_of_operators_whose_support_is_known() -> None:
    flash = how("aten._scaled_dot_product_flash_attention_for_cpu")
    assert flash == {"aten._scaled_dot_product_flash_attention_for_cpu": ("kernel", "none", "none")}
    assert how("aten._fft_r2c")["aten._fft_r2c"][:2] == ("kernel", "kernel")
    inductor = {
        o.name: o.inductor
        for op in ("sin", "mm.default", "nonzero", "softmax.int")
        for o in support(op).overloads
    }
    assert inductor == {
        "aten.sin": "lowering",
        "aten.mm": "library or template",
        "aten.nonzero": "library call",
        "aten.softmax.int": "decomposition",
    }
    note = support("cumsum").overloads[0].inductor_note
    assert "needs scans, which Inductor can generate for cuda" in note and "cpu" in note


@pytest.mark.parametrize(
    "name",
    ["sin", "topk", "sort", "median", "mode", "kthvalue", "cumsum", "searchsorted", "histc", "amax", "pow"],
)
def test_what_inductor_is_said_to_do_is_what_it_does_here(name: str) -> None:
    """An operator is reported as generated code or as a library call if and only if a capture shows it so."""
    x = torch.rand(7, 6)
    arguments = {"topk": (3,), "kthvalue": (2,), "cumsum": (1,), "searchsorted": (x,), "pow": (x,)}.get(
        name, ()
    )
    found = capture(lambda x: getattr(torch, name)(x, *arguments), x)
    names = {
        n.target.removesuffix(".default")
        for c in found.compilations
        for n in c.graphs["inference.post_grad"].calls
    }
    called = {k.name for k in found.kernels if k.kind == "extern"}
    for op in names & {o.name for o in support(name).overloads}:
        (overload,) = [o for o in support(name).overloads if o.name == op]
        if called:
            assert "and generates code." not in overload.inductor_note, overload.inductor_note
        else:
            assert overload.inductor == "lowering", overload.inductor_note
    assert names


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ("srot", "close to it are .*aten.sort"),
        ("aten.sort.fast", r"no overload 'fast'; it has .*aten\.sort\.stable"),
        ("a b", "not the name of an operator"),
        ("", "not the name of an operator"),
        ("nowhere.at.all", "in this process"),
        (F.softmax, "Python function, .*'aten.softmax'"),
        (torch.einsum, "Python function"),
        (3, "3 is int"),
    ],
)
def test_what_is_no_operator_gets_a_clear_error(op: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        support(op)


def test_an_operator_of_another_library_is_told_by_what_is_registered() -> None:
    found = support("prims.sin")
    assert found.overloads[0].on("cpu").kind == "registered" and "this process" in found.source
    library = torch.library.Library("lens_of_a_test", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x * 2, "CPU")
    assert how("lens_of_a_test::twice") == {"lens_of_a_test.twice": ("registered", "unknown", "unknown")}
    library._destroy()


def test_a_torch_without_its_table_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_functions, "table", dict)
    with pytest.raises(UsageError, match="came without its table"):
        support("sort")


def test_a_capture_is_checked_for_a_target() -> None:
    def attention(q: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, q, q)

    made = capture(attention, torch.rand(1, 2, 8, 16))
    lacking = made.unsupported("mps")
    (lack,) = lacking.operators
    assert lack.op == "aten._scaled_dot_product_flash_attention_for_cpu"
    assert lack.frames[0].text.strip().startswith("return F.scaled_dot_product_attention")
    assert {"inference graph", "library call in inference"} <= set(lack.places)
    assert "would fail" in lack.compiled and any("may choose others" in note for note in lacking.notes)
    own = made.unsupported("cpu")
    assert not own and "every operator has an implementation for cpu" in str(own)
    again = type(made).from_json(made.to_json())
    assert again.unsupported("mps") == lacking, "it needs the record alone"


def test_types_that_a_target_lacks_are_told() -> None:
    made = capture(lambda x: x.double() * 2, torch.rand(8))
    reasons = {lack.op: lack.reason for lack in made.unsupported("mps").operators}
    assert reasons["aten.mul.Tensor"] == "it is float64, a type that mps does not have"
    assert not made.unsupported("h100")
    with pytest.raises(UsageError, match="not known"):
        made.unsupported("h101")
