"""Torch's operator table is parsed correctly and reported in full. The tests need no torch."""

from __future__ import annotations

import pytest
from full_text import full

from compile_lens._torch.operators.native_functions import implementation, other_keys, parse
from compile_lens.measures import operators
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node, Tensor
from compile_lens.record.support import (
    BACKENDS,
    KIND_MEANINGS,
    Implementation,
    Overload,
    Support,
    Unsupported,
    UnsupportedOperator,
)
from compile_lens.results.capture import Capture

TABLE = """
# a comment
- func: sort.values_stable(Tensor self, *, bool? stable, Tensor(a!) values) -> (Tensor(a!) values)
  device_check: NoCheck   # TensorIterator
  structured: True
  dispatch:
    CPU, CUDA: sort_stable_out
    MPS: sort_stable_out_mps

- func: sort.stable(Tensor self, *, bool? stable) -> (Tensor values, Tensor indices)
  structured_delegate: sort.values_stable
  variants: method, function
  dispatch:
    QuantizedCPU: sort_quantized_cpu_stable
  tags: [core, pointwise]

- func: sort(Tensor self, int dim=-1) -> (Tensor values, Tensor indices)
  dispatch:
    CompositeExplicitAutograd: sort

- func: silly(Tensor self) -> Tensor
  variants: function

- func: only_cpu(Tensor self) -> Tensor
  dispatch:
    CPU: only_cpu  # for now
    SparseCPU, Meta: other
  autogen: only_cpu.out, only_cpu_functional

- func: add.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  ufunc_inner_loop:
    Generic: add (AllAndComplex, BFloat16)
    ScalarOnly: add (Bool)
  dispatch: # as those of add
    MPS: add_out_mps

- func: nested(Tensor self) -> Tensor
  dispatch: {}
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("sort.stable", [("kernel", "sort_stable_out")] * 2 + [("kernel", "sort_stable_out_mps")]),
        ("sort", [("composite", "sort")] * 3),
        ("silly", [("composite", "silly")] * 3),
        ("only_cpu", [("kernel", "only_cpu"), ("none", ""), ("none", "")]),
        ("only_cpu.out", [("composite", "only_cpu")] * 3),
        ("add.out", [("kernel", "add, an elementwise loop")] * 2 + [("kernel", "add_out_mps")]),
        ("nested", [("none", "")] * 3),
    ],
)
def test_the_table_is_read_as_torch_reads_it(name: str, found: list[tuple[str, str]]) -> None:
    table = parse(TABLE)
    assert [implementation(table, name, key) for key in ("CPU", "CUDA", "MPS")] == found


def test_further_kernels_are_listed() -> None:
    table = parse(TABLE)
    assert other_keys(table, "sort.stable", ("CPU", "CUDA", "MPS")) == ("QuantizedCPU",)
    assert other_keys(table, "only_cpu", ("CPU",)) == ("Meta", "SparseCPU")
    assert "only_cpu_functional" in table and parse("") == {}


def overload(*how: str) -> Overload:
    made = tuple(
        Implementation(b, h, "f" if h == "kernel" else "") for b, h in zip(BACKENDS, how, strict=True)
    )
    return Overload("aten.x", "x(Tensor self) -> Tensor", made, ("SparseCPU",), "lowering", "It is lowered.")


def test_the_implementation_on_a_backend() -> None:
    found = overload("kernel", "composite", "none")
    assert [found.on(backend).kind for backend in BACKENDS] == ["kernel", "composite", "none"]


def test_the_page_has_every_backend_and_explains_its_words() -> None:
    found = Support("x", (overload("kernel", "composite", "none"),), "the table", ("Types are not in it.",))
    text = full(found)
    assert "aten.x  kernel  composite  none  lowering" in text
    assert (
        all(KIND_MEANINGS[how] in text for how in ("kernel", "composite", "none"))
        and KIND_MEANINGS["registered"] not in text
    )
    assert "further kernels: SparseCPU" in text and "Types are not in it." in text and "the table" in text
    assert found.to_dict()["overloads"][0]["implementations"][2] == {
        "backend": "mps",
        "kind": "none",
        "function": "",
    }
    assert found.overloads[0].on("cuda").kind == "composite"


def test_what_is_lacking_is_told_with_its_lines_and_nothing_with_a_sentence() -> None:
    lack = UnsupportedOperator(
        "aten.x",
        ("inference graph",),
        (Frame("/a/m.py", 7, "f", "x.x()"),),
        "no implementation for mps",
        "so",
    )
    some = Unsupported("f", "mps", "mps", ("aten.x",), (lack,), ("aten.y",), "the table", ("A note.",))
    text = str(some)
    assert some and len(some) == 1
    for words in (
        "one thing is lacking",
        "aten.x at m.py:7: no implementation",
        "x.x()",
        "aten.y",
        "A note.",
    ):
        assert words in text
    none = Unsupported("f", "mps", "mps", ("aten.x",), ())
    assert (
        not none
        and "every operator has an implementation for mps, by torch's tables (1 looked up)" in str(none)
    )
    assert "there is no operator to look up" in str(Unsupported("f", "mps", "mps", (), ()))
    assert some.to_dict()["operators"][0]["op"] == "aten.x"


def test_types_that_a_device_lacks_are_found_by_line() -> None:
    def node(name: str, op: str, dtype: str) -> Node:
        frame = Frame("m.py", 3, "f", "x.double()")
        return Node(
            name, op, f"aten.{name}.default", outputs=(Tensor(dtype, (1,), (1,), "cpu", 8),), frames=(frame,)
        )

    nodes = (
        node("x", "placeholder", "float64"),
        node("mul", "call_function", "float64"),
        node("to", "call", "float32"),
    )
    compilation = Compilation("0/0", "f", "m.py", 1, (Graph("inference", "", "", nodes),))
    capture = Capture("f", Environment("", "", "", "", "", "cpu", "cpu"), compilations=(compilation,))
    assert [(lack.op, lack.frames[0].line) for lack in operators.unsupported_types(capture, "mps")] == [
        ("an input", 3),
        ("aten.mul", 3),
    ]
    assert operators.unsupported_types(capture, "cuda") == ()
