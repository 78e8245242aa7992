"""Zoo: what programs do around their tensors: graph breaks, containers, mutation, closures, custom operators."""

from __future__ import annotations

import functools
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from zoo import Call, Table, rand

TABLE = Table()
add, op = TABLE.add, TABLE.op

Point = namedtuple("Point", "x y")


@dataclass
class Batch:
    image: torch.Tensor
    label: torch.Tensor


# Several graphs in one function.
@add("print_break", backward=True, graphs=2, breaks=1)
def _print_break() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        print("", end="")
        return torch.cos(y)

    return Call(fn, (rand(8, grad=True),))


@add("item_break", backward=True, graphs=2, breaks=1)
def _item_break() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        scale = x.abs().sum().item()
        return x * scale

    return Call(fn, (rand(8, grad=True),))


@add("data_dependent_if", backward=True, graphs=2, breaks=1)
def _data_dependent_if() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        if y.sum() > 1e9:
            return y - 1
        return y + 1

    return Call(fn, (rand(8, grad=True),))


@add("graph_break", backward=True, graphs=3, breaks=2)
def _graph_break() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        torch._dynamo.graph_break()
        x = x * 2
        torch._dynamo.graph_break()
        return x - 3

    return Call(fn, (rand(8, grad=True),))


@add("break_in_inner", backward=True, graphs=None)
def _break_in_inner() -> Call:
    def inner(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        torch._dynamo.graph_break()
        return torch.exp(y)

    def fn(x: torch.Tensor) -> torch.Tensor:
        return inner(x * 2) + 1

    return Call(fn, (rand(8, grad=True),))


@add("disabled_inside", backward=True, graphs=2, breaks=1)
def _disabled_inside() -> Call:
    @torch.compiler.disable
    def hidden(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    def fn(x: torch.Tensor) -> torch.Tensor:
        return hidden(x + 1) - 1

    return Call(fn, (rand(8, grad=True),))


# Requested by name it is compiled, like torch.compile of it.
@add("disabled", backward=True)
def _disabled() -> Call:
    @torch.compiler.disable
    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    return Call(fn, (rand(8, grad=True),))


# Nothing to compile.
op("no_tensor_work", lambda: Call(lambda a, b: a + b, (1, 2)), graphs=0, nothing="op")
op("identity", lambda: Call(lambda x: x, (rand(4, grad=True),)), graphs=0, nothing="op")
op("returns_none", lambda: Call(lambda x: None, (rand(4),)), graphs=0, nothing="op")


# Containers in and out, and ways to pass arguments.
def _dict(d: dict[str, Any]) -> dict[str, Any]:
    return {"sum": d["a"] + d["b"][0], "rest": [d["b"][1] * 2, {"n": d["n"]}]}


op("dicts", lambda: Call(_dict, ({"a": rand(4, grad=True), "b": [rand(4), rand(4)], "n": 3},)), backward=True)
op(
    "namedtuple",
    lambda: Call(lambda p: Point(p.x + p.y, p.x - p.y), (Point(rand(4, grad=True), rand(4)),)),
    backward=True,
)
op(
    "dataclass",
    lambda: Call(lambda b: Batch(b.image * 2, b.label + 1), (Batch(rand(4, grad=True), rand(4)),)),
    backward=True,
)
op(
    "lists",
    lambda: Call(lambda xs: [x.exp() for x in xs] + [xs[0]], ([rand(3, grad=True), rand(4)],)),
    backward=True,
)
op("none_output", lambda: Call(lambda x: (x + 1, None, "text", 4), (rand(4, grad=True),)), backward=True)
op(
    "keyword_arguments",
    lambda: Call(
        lambda x, *, weight, bias=None: x * weight + (0 if bias is None else bias),
        (rand(4),),
        {"weight": rand(4, grad=True)},
    ),
    backward=True,
)
op(
    "var_arguments",
    lambda: Call(
        lambda *xs, **named: sum(xs) + named["last"], (rand(4), rand(4)), {"last": rand(4, grad=True)}
    ),
    backward=True,
)
op("string_argument", lambda: Call(lambda x, how: getattr(torch, how)(x), (rand(4), "cos")))


# Mutation and aliases.
op("mutates_input", lambda: Call(lambda x: x.mul_(2).add_(1).sum(), (rand(6),)))
op("mutates_view", lambda: Call(lambda x: (x[1:3].fill_(7.0), x * 2)[1], (rand(6),)))
op(
    "mutates_and_learns",
    lambda: Call(lambda x, w: x.add_(1) * w, (rand(6), rand(6, grad=True))),
    backward=True,
)
op("mutates_list", lambda: Call(lambda x, out: out.append(torch.sin(x)), (rand(6), [])))
op(
    "aliasing_outputs",
    lambda: Call(lambda x: (lambda y: (y, y[1:], y.view(2, 3)))(x + 1), (rand(6, grad=True),)),
    backward=True,
)
op("output_is_input", lambda: Call(lambda x, y: (x, x + y, y), (rand(6, grad=True), rand(6))), backward=True)
op("output_views_input", lambda: Call(lambda x: (x.view(2, 3), x * 2), (rand(6, grad=True),)), backward=True)


# Python.
@add("parameter_closure", backward=True)
def _parameter_closure() -> Call:
    weight = nn.Parameter(rand(4))

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x * weight

    return Call(fn, (rand(4),), watch=(weight,))


@add("nested_functions", backward=True)
def _nested_functions() -> Call:
    def outer(scale: float) -> Any:
        def inner(x: torch.Tensor) -> torch.Tensor:
            def innermost(y: torch.Tensor) -> torch.Tensor:
                return y * scale

            return innermost(x) + 1

        return inner

    return Call(outer(2.5), (rand(4, grad=True),))


@add("generator", backward=True)
def _generator() -> Call:
    def parts(x: torch.Tensor) -> Iterator[torch.Tensor]:
        for i in range(3):
            yield x * i

    def fn(x: torch.Tensor) -> torch.Tensor:
        return sum(part for part in parts(x)) + max([i for i in range(3)])

    return Call(fn, (rand(4, grad=True),))


@add("recursion", backward=True)
def _recursion() -> Call:
    def power(x: torch.Tensor, n: int) -> torch.Tensor:
        return x if n == 1 else x * power(x, n - 1)

    return Call(power, (rand(4, grad=True), 4))


@add("callable_object", backward=True)
def _callable_object() -> Call:
    class Affine:
        def __init__(self) -> None:
            self.shift = rand(4)

        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.shift

    return Call(Affine(), (rand(4, grad=True),))


@add("try_except", backward=True)
def _try_except() -> Call:
    def fn(x: torch.Tensor, table: dict[str, float]) -> torch.Tensor:
        try:
            scale = table["absent"]
        except KeyError:
            scale = 2.0
        finally:
            x = x + 1
        return x * scale

    return Call(fn, (rand(4, grad=True), {}))


@add("class_and_static_method")
def _class_and_static_method() -> Call:
    class Maths:
        factor = 3

        @classmethod
        def scale(cls, x: torch.Tensor) -> torch.Tensor:
            return cls.shift(x * cls.factor)

        @staticmethod
        def shift(x: torch.Tensor) -> torch.Tensor:
            return x + 1

    return Call(Maths.scale, (rand(4),))


@add("decorated", backward=True)
def _decorated() -> Call:
    def doubled(fn: Any) -> Any:
        @functools.wraps(fn)
        def wrapper(*args: Any) -> Any:
            return 2 * fn(*args)

        return wrapper

    @doubled
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x)

    return Call(fn, (rand(4, grad=True),))


@add("partial", backward=True)
def _partial() -> Call:
    return Call(functools.partial(torch.nn.functional.leaky_relu, negative_slope=0.3), (rand(6, grad=True),))


@add("partial_keyword", backward=True)
def _partial_keyword() -> Call:
    def fn(x: torch.Tensor, scale: float, shift: float = 0.0) -> torch.Tensor:
        return x * scale + shift

    return Call(functools.partial(fn, scale=2.0), (rand(6, grad=True),), {"shift": 1.0})


@add("compiled_function", backward=True)
def _compiled_function() -> Call:
    @torch.compile
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1

    return Call(fn, (rand(6, grad=True),))


@add("compiled_inside", backward=True, graphs=None)
def _compiled_inside() -> Call:
    @torch.compile(backend="aot_eager")
    def inner(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) + 1

    return Call(lambda x: inner(x) * 2, (rand(6, grad=True),))


# Dynamic sizes.
op(
    "dynamic",
    lambda: Call(lambda x: torch.sin(x) * x.shape[0], (rand(12, grad=True),)),
    backward=True,
    options={"dynamic": True},
)
op(
    "dynamic_mm",
    lambda: Call(lambda a, b: torch.relu(a @ b).sum(0), (rand(6, 5, grad=True), rand(5, 7))),
    backward=True,
    options={"dynamic": True},
)


@add("marked_dynamic", backward=True)
def _marked_dynamic() -> Call:
    x = rand(12, 3, grad=True)
    torch._dynamo.mark_dynamic(x, 0)
    return Call(lambda x: x.reshape(-1) * 2, (x,))


# Higher-order operators.
@add("cond", backward=True)
def _cond() -> Call:
    def fn(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: torch.sin(x), lambda x: torch.cos(x), (x,))

    return Call(fn, (rand(6, grad=True),))


@add("while_loop")
def _while_loop() -> Call:
    from torch._higher_order_ops.while_loop import while_loop

    def fn(n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return while_loop(lambda n, x: n > 0, lambda n, x: (n - 1, x * 1.5), (n, x))

    return Call(fn, (torch.tensor(3), rand(6)))


@add("checkpoint", backward=True)
def _checkpoint() -> Call:
    net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6))
    return Call(lambda x: checkpoint(net, x, use_reentrant=False), (rand(3, 6, grad=True),), watch=(net,))


@add("flex_attention")
def _flex_attention() -> Call:
    from torch.nn.attention.flex_attention import flex_attention

    def bias(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        return score + (q - k)

    shape = (1, 2, 128, 16)
    return Call(
        lambda q, k, v: flex_attention(q, k, v, score_mod=bias), (rand(*shape), rand(*shape), rand(*shape))
    )


@add("func_grad_vmap")
def _func_grad_vmap() -> Call:
    def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(w * x).sum()

    return Call(
        lambda w, x: torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(w, x), (rand(4), rand(3, 4))
    )


@add("autograd_function", backward=True)
def _autograd_function() -> Call:
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return grad * 0.5 + x * 0

    return Call(lambda x: Clip.apply(x) * 2, (rand(6, grad=True),))


# Custom operators.
@torch.library.custom_op("lens_zoo::triple", mutates_args=())
def triple(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@triple.register_fake
def _triple_fake(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


triple.register_autograd(lambda ctx, grad: grad * 3)


@torch.library.custom_op("lens_zoo::opaque", mutates_args=())
def opaque(x: torch.Tensor) -> torch.Tensor:
    return x * 3


@torch.library.custom_op("lens_zoo::store", mutates_args=("out",))
def store(x: torch.Tensor, out: torch.Tensor) -> None:
    out.copy_(x * 2)


op("custom_op", lambda: Call(lambda x: torch.sin(triple(torch.sin(x))), (rand(6, grad=True),)), backward=True)
op("custom_op_mutates", lambda: Call(lambda x, out: store(x + 1, out), (rand(6), torch.zeros(6))))
op("custom_op_without_fake", lambda: Call(lambda x: opaque(x + 1), (rand(6),)), fails="dynamo", graphs=0)
