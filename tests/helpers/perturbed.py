"""Pairs of functions that differ in one operator, to observe which lines of a kernel belong to it.

Each case calls its operator once. Captured with either operator, exactly the lines that implement it differ.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

from compile_lens.record.kernel import Kernel
from compile_lens.results.capture import Capture

Op = Callable[..., torch.Tensor]


@dataclass(frozen=True)
class Case:
    """``build(op)`` is a function of ``args``; its operator is ``first`` or ``second``.

    Each is given as the function and the name of its ATen operator.
    """

    name: str
    first: tuple[Op, str]
    second: tuple[Op, str]
    build: Callable[[Op], Callable[..., Any]]
    args: Callable[[], tuple[Any, ...]]
    options: dict[str, Any] = field(default_factory=dict)


SIN, COSH = (torch.sin, "sin"), (torch.cosh, "cosh")
EXP, LOG1P = (torch.exp, "exp"), (torch.log1p, "log1p")
ADD, SUB = (torch.add, "add"), (torch.sub, "sub")
MUL, DIV = (torch.mul, "mul"), (torch.div, "div")
TANH, ERF = (torch.tanh, "tanh"), (torch.erf, "erf")


def ones(*shapes: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Callable[[], tuple[Any, ...]]:
    """Return arguments of these shapes."""
    return lambda: tuple(torch.ones(shape, dtype=dtype) for shape in shapes)


def over(name: str, dim: int | None) -> tuple[Op, str]:
    """Return a reduction over one dimension, or over all."""
    function = getattr(torch, name)
    return (lambda x: function(x) if dim is None else function(x, dim=dim)), name


def _two_users(op: Op) -> Callable[..., Any]:
    def fn(x: torch.Tensor) -> Any:
        a = op(x)
        return a * 2, (a + 3).sqrt()

    return fn


def _written(op: Op) -> Callable[..., Any]:
    def fn(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x.cos()
        z[1:3] = op(y)
        return z * 2

    return fn


def _recomputed(op: Op) -> Callable[..., Any]:
    return lambda x: torch.sigmoid(x) * op(x.detach())


def _loop(op: Op) -> Callable[..., Any]:
    def fn(x: torch.Tensor) -> torch.Tensor:
        for i in range(6):
            x = x * (i + 0.5) + x.cos()
            if i == 3:
                x = op(x)
        return x

    return fn


CASES = [
    Case("a chain", SIN, COSH, lambda op: lambda x: (op(x) + 1).exp() * x.cos(), ones((1000,))),
    Case("tail only", EXP, LOG1P, lambda op: lambda x: op(x).sqrt() - x, ones((7,))),
    Case("threads", EXP, LOG1P, lambda op: lambda x: op(x).sqrt() - x, ones((1 << 18,))),
    Case("one element", SIN, COSH, lambda op: lambda x: op(x) * 2 + 1, ones(())),
    Case("double", SIN, COSH, lambda op: lambda x: op(x).exp() / 3, ones((65,), dtype=torch.float64)),
    Case("bfloat16", TANH, ERF, lambda op: lambda x: op(x * 2) + 1, ones((333,), dtype=torch.bfloat16)),
    Case("half", EXP, LOG1P, lambda op: lambda x: op(x).cos(), ones((33,), dtype=torch.float16)),
    Case(
        "integers",
        (torch.bitwise_and, "bitwise_and"),
        (torch.bitwise_or, "bitwise_or"),
        lambda op: lambda x, y: (op(x, y) + 1) * 5,
        ones((100,), (100,), dtype=torch.int32),
    ),
    Case(
        "truth values",
        (torch.logical_and, "logical_and"),
        (torch.logical_or, "logical_or"),
        lambda op: lambda x, y: torch.where(op(x > 0, y > 1), x, y),
        ones((50,), (50,)),
    ),
    Case("add to sub", ADD, SUB, lambda op: lambda x, y: op(x.sin(), y.cos()) * x / y, ones((70,), (70,))),
    Case("mul to div", MUL, DIV, lambda op: lambda x, y: op(x, y).sin() + y.exp(), ones((70,), (70,))),
    Case(
        "maximum to minimum",
        (torch.maximum, "maximum"),
        (torch.minimum, "minimum"),
        lambda op: lambda x, y: op(x.sin(), y) * 2,
        ones((70,), (70,)),
    ),
    Case(
        "comparison",
        (torch.gt, "gt"),
        (torch.lt, "lt"),
        lambda op: lambda x, y: op(x, y) * x,
        ones((70,), (70,)),
    ),
    Case(
        "roots",
        (torch.rsqrt, "rsqrt"),
        (torch.reciprocal, "reciprocal"),
        lambda op: lambda x: op(x.exp()) + x.cos(),
        ones((1000,)),
    ),
    Case("broadcast", SIN, COSH, lambda op: lambda x, y: op(x) * y + x, ones((64, 1), (100,))),
    Case("transposed", EXP, LOG1P, lambda op: lambda x, y: x.t() + op(y), ones((64, 128), (128, 64))),
    Case("reversed", SIN, COSH, lambda op: lambda x: op(x.flip(0)) + x.cos(), ones((40,))),
    Case("two users", SIN, COSH, _two_users, ones((300,))),
    Case("side by side", SIN, COSH, lambda op: lambda x, y: (op(x), y.exp(), x + y), ones((90,), (90,))),
    Case("six rounds", SIN, COSH, _loop, ones((128,))),
    Case(
        "sum of rows",
        over("sum", -1),
        over("amax", -1),
        lambda op: lambda x: op(x.sin()) + 1,
        ones((30, 100)),
    ),
    Case(
        "sum of columns", over("sum", 0), over("amax", 0), lambda op: lambda x: op(x.exp()), ones((300, 37))
    ),
    Case(
        "sum of all", over("sum", None), over("prod", None), lambda op: lambda x: op(x.sin()), ones((1000,))
    ),
    Case("by threads", over("amin", 0), over("amax", 0), lambda op: lambda x: op(x.sin()), ones((1 << 18,))),
    Case("mean", over("mean", -1), over("amax", -1), lambda op: lambda x: op(x.sin()) * 2, ones((30, 100))),
    Case("argmax", over("argmax", -1), over("argmin", -1), lambda op: lambda x: op(x.sin()), ones((30, 100))),
    Case("below a sum", SIN, COSH, lambda op: lambda x: (op(x) * x).sum(-1) + x.amax(-1), ones((30, 100))),
    Case("before softmax", SIN, COSH, lambda op: lambda x: torch.softmax(op(x) * 2, -1), ones((20, 100))),
    Case("after softmax", SIN, COSH, lambda op: lambda x: op(torch.softmax(x.exp(), 0)), ones((100, 20))),
    Case(
        "around layer norm",
        EXP,
        LOG1P,
        lambda op: lambda x: op(F.layer_norm(x.sin(), (100,))),
        ones((20, 100)),
    ),
    Case("before layer norm", SIN, COSH, lambda op: lambda x: F.layer_norm(op(x), (100,)), ones((20, 100))),
    Case("in a padding", SIN, COSH, lambda op: lambda x: F.pad(op(x), (1, 2)).exp(), ones((8, 30))),
    Case("in a cat", SIN, COSH, lambda op: lambda x, y: torch.cat([op(x), y.exp()]) * 2, ones((30,), (50,))),
    Case("in a where", SIN, COSH, lambda op: lambda x: torch.where(x > 0, op(x), x.exp()), ones((100,))),
    Case(
        "after an embedding",
        SIN,
        COSH,
        lambda op: lambda w, i: op(F.embedding(i, w)) + 1,
        lambda: (torch.ones(50, 20), torch.arange(9)),
    ),
    Case(
        "into an index_add",
        SIN,
        COSH,
        lambda op: lambda x, i, y: x.exp().index_add(0, i, op(y)),
        lambda: (torch.ones(50, 20), torch.arange(9), torch.ones(9, 20)),
    ),
    Case("into a slice", SIN, COSH, _written, ones((9, 30), (2, 30))),
    Case("after a product", SIN, COSH, lambda op: lambda x, y: op(x @ y) + 1, ones((20, 30), (30, 40))),
    Case(
        "after a convolution",
        SIN,
        COSH,
        lambda op: lambda x, w: op(F.conv2d(x, w)) + 1,
        ones((1, 3, 9, 9), (4, 3, 3, 3)),
    ),
    Case("after pooling", SIN, COSH, lambda op: lambda x: op(F.max_pool2d(x.exp(), 3)), ones((1, 3, 9, 9))),
    Case(
        "around batch norm",
        SIN,
        COSH,
        lambda op: lambda x: op(F.batch_norm(x.exp(), None, None, training=True)),
        ones((6, 5, 8)),
    ),
    Case("beside random numbers", SIN, COSH, lambda op: lambda x: op(x) + torch.rand_like(x), ones((50,))),
    Case(
        "between sizes",
        SIN,
        COSH,
        lambda op: lambda x: op(F.interpolate(x.exp(), scale_factor=2.0)),
        ones((1, 2, 4, 4)),
    ),
    Case("around a scan", SIN, COSH, lambda op: lambda x: op(x.exp().cumsum(0)) + 1, ones((200,))),
    Case("any size", SIN, COSH, lambda op: lambda x: op(x).exp() + 1, ones((77,)), {"dynamic": True}),
    Case(
        "no vectors",
        SIN,
        COSH,
        lambda op: lambda x: op(x).exp() + 1,
        ones((77,)),
        {"options": {"cpp.simdlen": 1}},
    ),
    Case(
        "no fusion",
        SIN,
        COSH,
        lambda op: lambda x: (op(x).sum(-1), op(x).exp()),
        ones((20, 30)),
        {"options": {"max_fusion_size": 1}},
    ),
    Case(
        "computed again",
        SIN,
        COSH,
        _recomputed,
        lambda: (torch.ones(100, requires_grad=True),),
        {"backward": True},
    ),
    Case(
        "in a branch",
        SIN,
        COSH,
        lambda op: lambda p, x: torch.cond(p, lambda x: op(x) * 2, lambda x: x.exp() + 1, (x,)),
        lambda: (torch.tensor(True), torch.ones(40)),
    ),
]

# Lines that are the same for every operator: loads, stores, constants and their broadcast, conversions of
# operands, space for partial results and their moves.
SAME = re.compile(
    r".*(loadu(<\w+,\d>)?\(|= (in|out|in_out)_ptr\d+\[|\.store\(|transpose_mxn|alignas)"
    r"|(in|out|in_out)_ptr\d+\[.*\] = (static_cast<[\w:]+>\()?[\w.]+\)?;"
    r"|auto \w+ = \w+\.template cast<int32_t,1>\(\);|auto \w+ = inductor_vec_mask_cast<.*"
    r"|auto \w+ = static_cast<[\w:]+>\(-?[\d.e+-]+\);"
    r"|auto \w+ = at::vec::\w+<[^()]*>\(\w+\);"
    r"|[\w:<>]+ \w+_arr\[\w+\];"
    r"|[\w\[\]]+ = \w+;"
)


@dataclass(frozen=True)
class Seen:
    """One kernel: its lines, stripped, and the nodes of each."""

    lines: list[str]
    origins: list[tuple[str, ...]]
    nodes: frozenset[str]
    """The nodes of the operator in question."""


def seen(found: Capture, op: str) -> Iterator[Seen]:
    """Return the generated kernels of a capture."""
    for compilation in found.compilations:
        for code in compilation.code.values():
            graph = compilation.graphs[f"{code.phase}.post_grad"]
            nodes = {
                path + n.name
                for path, g in [("", graph), *((f"{name}/", body) for name, body in graph.subgraphs)]
                for n in g.nodes
                if re.match(rf"aten\.{op}\.", n.target)
            }
            for kernel in code.kernels:
                if kernel.source:
                    yield _seen(kernel, frozenset(nodes))


def _seen(kernel: Kernel, nodes: frozenset[str]) -> Seen:
    origins = {line.line: line.origins for line in kernel.lines}
    texts = [text.strip() for text in kernel.source.splitlines()]
    return Seen(texts, [origins.get(i, ()) for i in range(1, len(texts) + 1)], nodes)


def changed(first: Sequence[str], second: Sequence[str]) -> tuple[set[int], set[int]]:
    """Return the positions of the lines that differ, apart from renumbered temporaries, in either text."""
    a, b = [[re.sub(r"(?<=tmp|acc|per)\d+", "", line) for line in lines] for lines in (first, second)]
    if len(a) == len(b):
        differ = {i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y}
        return differ, set(differ)
    here: set[int] = set()
    there: set[int] = set()
    for kind, i, j, k, m in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if kind != "equal":
            here |= set(range(i, j))
            there |= set(range(k, m))
    return here, there


def faults(first: Sequence[Seen], second: Sequence[Seen]) -> list[str]:
    """Return the faults in the maps of two captures that differ in one operator; empty if there are none."""
    if len(first) != len(second):
        return [f"{len(first)} kernels against {len(second)}"]
    texts = []
    total = 0
    for a, b in zip(first, second, strict=True):
        for kernel, lines in zip((a, b), changed(a.lines, b.lines), strict=True):
            own = {i for i, names in enumerate(kernel.origins) if kernel.nodes.intersection(names)}
            differ = {i for i in lines if not _structure(kernel.lines[i])}
            total += len(differ - own) + len(differ & own)
            texts += [f"changed, but not of the operator: {_show(kernel, i)}" for i in sorted(differ - own)]
            texts += [
                f"of the operator, but not changed: {_show(kernel, i)}"
                for i in sorted(own - differ)
                if not SAME.match(kernel.lines[i])
            ]
            texts += [
                f"changed, and of others too: {_show(kernel, i)}"
                for i in sorted(differ & own)
                if not set(kernel.origins[i]) <= kernel.nodes and not SAME.match(kernel.lines[i])
            ]
    return texts if total else [*texts, "no line changed"]


def _structure(line: str) -> bool:
    return re.fullmatch(r"[\s{}();]*|for ?\(.*|#.*|extern .*|if ?\(.*|const .*|int tid.*", line) is not None


def _show(kernel: Seen, position: int) -> str:
    return f"{kernel.origins[position]} {kernel.lines[position]}"
