"""Addresses as text. Python's own ``ast`` is the oracle for the place and the name of a call."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest
import torch
from test_chain import COS, ENVIRONMENT, SIN, STAGES, capture, node
from torch.nn import functional

import compile_lens
from compile_lens.errors import UsageError
from compile_lens.measures.address import Address
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node
from compile_lens.results.capture import Capture

columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells columns from 3.11 on")

PROGRAM = """import torch

def helper(v):
    return v.tanh() - v.exp()

def f(x, y):
    a = torch.sin(x) + torch.sin(y)
    b = helper(torch.cos(a) * 2)
    for _ in range(3):
        b = torch.atan(b)
    return b @ y, torch.neg(b)
"""
OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.MatMult: "matmul"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("program") / "model.py"
    path.write_text(PROGRAM)
    spec = importlib.util.spec_from_file_location("model_of_address_text", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def real(program: ModuleType) -> Capture:
    return compile_lens.capture(program.f, torch.rand(8, 8), torch.rand(8, 8))


def expressions() -> Iterator[tuple[str, str, str]]:
    """Each call and operator of the program: its place, its operator, and its text."""
    for one in ast.walk(ast.parse(PROGRAM)):
        if isinstance(one, ast.Call):
            name = one.func.attr if isinstance(one.func, ast.Attribute) else ast.unparse(one.func)
        elif isinstance(one, ast.BinOp):
            name = OPERATORS[type(one.op)]
        else:
            continue
        text = ast.get_source_segment(PROGRAM, one)
        assert text is not None
        yield f"model.py:{one.lineno}:{one.col_offset}-{one.end_col_offset}", name, text


def named(seen: Capture, address: Address) -> Node:
    """The node at an address."""
    (found,) = (n for n in seen.compilations[0].graphs[address[1]].nodes if n.name == address[2])
    return found


@columns
def test_each_call_of_the_source_is_found_where_ast_has_it(real: Capture) -> None:
    seen = []
    for place, name, text in expressions():
        if name == "range":
            with pytest.raises(UsageError, match=r"holds no tensor operation"):
                real.chain.find(place)
            continue
        found = real.chain.find(place)
        nodes = [named(real, address) for address in found]
        if name == "helper":  # inlined: the calls inside it
            assert [n.target for n in nodes] == ["tanh", "exp", "operator.sub"]
        else:
            assert {n.target.rpartition(".")[2] for n in nodes} == {name}
            assert len(nodes) == (3 if name == "atan" else 1), "an unrolled loop has a node for each turn"
        assert text in {str(frame).partition(": ")[2] for n in nodes for frame in n.frames}, (
            "frames name the call"
        )
        assert place in {frame.address for n in nodes for frame in n.frames}
        seen.append(name)
    assert sorted(seen) == sorted(
        ["tanh", "exp", "sub", "sin", "sin", "add", "cos", "mul", "helper", "atan", "matmul", "neg"]
    )


@columns
def test_two_calls_of_one_name_in_a_line_are_told_apart(real: Capture) -> None:
    first, second = (place for place, name, _ in expressions() if name == "sin")
    assert real.chain.find(first) != real.chain.find(second)
    with pytest.raises(UsageError) as caught:
        real.chain.down("sin@7")
    said = str(caught.value)
    assert f"'{first}' (torch.sin(x))" in said and f"'{second}' (torch.sin(y))" in said and "'sin@7'" in said
    assert "cos" not in said and "sin@7" not in real.chain
    with pytest.raises(
        UsageError, match=r"'model.py:7:8-25' is not a call on this line: give one of.*torch\.sin\(y\)"
    ):
        real.chain.up("model.py:7:8-25")


def test_names_at_lines(real: Capture, program: ModuleType) -> None:
    chain = real.chain
    assert (
        chain.find("cos@8") == chain.find("torch.cos@model.py:8") == chain.find(f"cos@{program.__file__}:8")
    )
    (cos,) = chain.find("cos@8")
    if sys.version_info < (3, 11):  # without columns each node may be a separate call
        for text in ("helper@8", "atan@10"):
            with pytest.raises(UsageError, match=f"'{text}' could be several calls"):
                chain.find(text)
    else:
        inlined = [a for name in ("tanh", "exp", "sub") for a in chain.find(f"{name}@4")]
        assert chain.find("helper@8") == tuple(inlined) and len(chain.find("atan@10")) == 3
    assert chain.down("cos@8") == chain.down(cos) and chain.up("cos@8") == chain.up(cos)
    assert chain.ancestors("cos@8") == chain.ancestors(cos) == chain.find("model.py:8")
    assert chain.descendants("cos@8") == chain.descendants(cos)
    assert chain.lines("cos@8") == chain.lines(cos) and chain.derivatives("cos@8") == ()
    assert chain.why_not("cos@8") == "" and "cos@8" in chain
    with pytest.raises(
        UsageError, match=r"'tan@8': nothing of that name is at model\.py:8, which has cos, .*helper"
    ):
        chain.find("tan@8")
    with pytest.raises(UsageError, match="'cos' names no line: give 'cos@8'"):
        chain.find("cos")


def test_kernels_of_a_text_are_those_that_compute_it(real: Capture) -> None:
    """The product is a kernel of its own, and the rest is one fused kernel: by hand, from the code."""
    product = [k.name for k in real.kernels if k.language == "extern"]
    fused = [k.name for k in real.kernels if k.language != "extern"]
    assert len(product) == len(fused) == 1
    assert [k.name for k in real.chain.kernels("matmul@11")] == product
    assert [k.name for k in real.chain.kernels("neg@11")] == fused
    assert [k.name for k in real.chain.kernels("model.py:7")] == fused
    assert [k.name for k in real.chain.kernels(fused[0])] == fused and real.chain.up(fused[0])
    assert real.chain.lines("model.py:7") == real.chain.lines(("", "python", f"{real.sources[0].file}:7"))


def test_why_takes_the_same_texts(real: Capture) -> None:
    assert str(real.why("cos@8", "neg@11")).partition(":")[2] == str(real.why("cos", "neg")).partition(":")[2]
    assert real.why("tanh@4", "matmul@model.py:11").verdict == "not fused"
    assert real.why("model.py:8", "neg@11").verdict == real.why(8, 11).verdict
    if sys.version_info >= (3, 11):
        here = next(place for place, name, _ in expressions() if name == "neg")
        assert real.why(here, "cos@8").verdict in ("inlined", "fused")
    with pytest.raises(UsageError, match="'tan@8': nothing of that name"):
        real.why("tan@8", "cos")


def test_a_text_stands_for_the_call_in_every_compilation() -> None:
    two = Capture(
        "f", ENVIRONMENT,
        compilations=tuple(Compilation(cid, "f", "/u/f.py", 1, STAGES) for cid in ("0/0", "0/1")),
    )  # fmt: skip
    for text in ("cos@3", "cos@/u/f.py:3"):
        assert two.chain.find(text) == (("0/0", "dynamo", "cos"), ("0/1", "dynamo", "cos"))
    own = [(cid, *at) for cid in ("0/0", "0/1") for at in (("dynamo", "cos"), ("joint", "j_own"))]
    assert list(two.chain.find("f.py:3:12-19")) == own, "also what knows the call while its own origins end"
    assert two.chain.down("cos@3") == (("0/0", "joint", "j_cos"), ("0/1", "joint", "j_cos"))
    with pytest.raises(UsageError, match=r"'k0' is in several places: give one of \('0/0'.*\('0/1'"):
        two.chain.up("k0")


def test_a_call_of_a_helper_is_what_the_helper_computes() -> None:
    chain = capture().chain
    assert chain.find("helper@2") == chain.find("sin@7") == (("0/0", "dynamo", "sin"),)
    assert [k.name for k in chain.kernels("helper@2")] == ["k0", "k1"]


def test_without_columns_only_lines_and_names() -> None:
    """The frames are those of Python 3.10."""
    plain = [dataclasses.replace(frame, column=None, end_column=None) for frame in (SIN, COS)]
    twice = [node("cos", frames=(plain[1],)), node("cos_1", frames=(plain[1],))]
    chain = capture(Graph("dynamo", "", "", (node("sin", frames=(plain[0],)), *twice))).chain
    assert chain.find("f.py:7") and chain.find("sin@7") == (("0/0", "dynamo", "sin"),)
    with pytest.raises(
        UsageError, match=r"Python 3\.11 and newer.*give the line, 'f\.py:7', or one of 'sin@f\.py:7'"
    ):
        chain.find("f.py:7:11-18")
    with pytest.raises(UsageError, match=r"'cos_1@f\.py:3'"):
        chain.find("f.py:3:12-19")
    assert str(plain[0]) == "f.py:7 in helper: return x.sin()" and plain[0].address == "f.py:7"


def test_files_go_by_their_end_and_doubt_is_refused() -> None:
    frames = [Frame(file, 3, "f") for file in ("/u/a/f.py", "/u/b/f.py", "C:\\lens\\g.py")]
    chain = capture(
        Graph("dynamo", "", "", tuple(node(f"n{i}", frames=(f,)) for i, f in enumerate(frames)))
    ).chain
    assert chain.find("a/f.py:3") == (("", "python", "/u/a/f.py:3"),)
    assert chain.find("lens/g.py:3") == chain.find("g.py:3") == chain.find(r"C:\lens\g.py:3")
    assert chain.find("n1@b/f.py:3") == (("0/0", "dynamo", "n1"),)
    for text in ("f.py:3", "3", "n0@3"):
        with pytest.raises(UsageError, match=r"line 3 is in /u/a/f\.py, /u/b/f\.py.*name the file"):
            chain.find(text)
    with pytest.raises(UsageError, match=r"no line of 'h\.py'; it has lines of /u/a/f\.py"):
        chain.find("h.py:3")
    with pytest.raises(
        UsageError, match=r"g\.py:9 holds no tensor operation of this capture; lines that do: g\.py:3"
    ):
        chain.kernels("g.py:9")


NO_FORM = (
    "", "@", ":7", "sin@", "@7", "sin@@7", "f.py:7:", "f.py:7:1", "f.py:-7", "\0@\n:7", "a" * 9999, "7:" * 99,
)  # fmt: skip


@pytest.mark.parametrize("text", NO_FORM)
def test_what_has_no_form_is_refused_in_words(text: str) -> None:
    assert text not in capture().chain
    with pytest.raises(UsageError):
        capture().chain.up(text)


def test_a_name_of_a_later_stage_is_the_first_that_has_it() -> None:
    import torch

    def g(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.softplus(x).mean()

    seen = compile_lens.capture(g, torch.rand(8, requires_grad=True))
    line = g.__code__.co_firstlineno + 1
    assert seen.chain.find(f"softplus@{line}")[0][1] == "dynamo"
    (found,) = seen.chain.find(f"expand@{line}")
    assert found[1] == "joint" and named(seen, found).derivative


def transposed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    y = functional.conv_transpose2d(x, w, b)
    return y * 2


@columns
@pytest.mark.parametrize("target", [None, "mps"])
def test_the_columns_printed_for_a_layout_copy_lead_back_to_it(target: str | None) -> None:
    module, x = torch.nn.Conv2d(3, 8, 3), torch.rand(2, 3, 8, 8)
    inputs = torch.rand(1, 4, 8, 8), torch.rand(4, 4, 3, 3), torch.rand(4)
    for record in (
        compile_lens.capture(module, x, target=target, backward=target is None),
        compile_lens.capture(transposed, *inputs, target=target),
    ):
        for kernel in record.kernels:
            frames = record.chain.lines(kernel)
            assert frames
            for frame in frames:
                text = f"{frame.file}:{frame.line}:{frame.column}-{frame.end_column}"
                assert kernel in record.chain.kernels(text)
