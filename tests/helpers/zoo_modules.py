"""Zoo: modules, in training and evaluation mode, and the callables that people make of them."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn
from zoo import Call, Table, rand

TABLE = Table()
add, op = TABLE.add, TABLE.op


class Counter(nn.Module):
    """Counts its calls in a buffer, as BatchNorm does."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(4))
        self.lin = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
        return self.lin(x) - self.mean

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(self.lin(x))


class Tied(nn.Module):
    """Input and output embedding share one weight; layers in a list, parameters in a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(13, 8)
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3))
        self.scale = nn.ParameterDict({"a": nn.Parameter(torch.ones(8)), "b": nn.Parameter(torch.zeros(8))})
        self.head = nn.Linear(8, 13, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        x = self.wte(ids)
        for layer in self.layers:
            x = x + torch.relu(layer(x)) * self.scale["a"] + self.scale["b"]
        return {"logits": self.head(x), "hidden": x}


class Hooked(nn.Module):
    """A module with user hooks before and after it."""

    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.lin.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
        self.lin.register_forward_hook(lambda m, a, out: out + 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(x)


class Frozen(nn.Module):
    """Trains only the last layer."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 6), nn.Linear(6, 2)
        self.body.requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x)))


def module(name: str, make: Any, *inputs: Any, train: bool = True, **flags: Any) -> None:
    """Add a module called on inputs; each input is given as a function that creates it."""
    op(name, lambda: Call(make().train(train), tuple(i() for i in inputs)), **flags)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 3))


module("linear", lambda: nn.Linear(4, 3), lambda: rand(5, 4), backward=True)
module("mlp_train", mlp, lambda: rand(5, 6), backward=True)
module("mlp_eval", mlp, lambda: rand(5, 6), train=False, backward=True)
module(
    "batch_norm_train",
    lambda: nn.BatchNorm1d(6),
    lambda: rand(8, 6, grad=True),
    backward=True,
)
module(
    "batch_norm_eval",
    lambda: nn.BatchNorm1d(6),
    lambda: rand(8, 6),
    train=False,
    backward=True,
)
module(
    "dropout_train",
    lambda: nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5)),
    lambda: rand(8, 6),
    backward=True,
    random=True,
)
module(
    "dropout_eval",
    lambda: nn.Sequential(nn.Linear(6, 6), nn.Dropout(0.5)),
    lambda: rand(8, 6),
    train=False,
    backward=True,
)
module(
    "conv_net",
    lambda: nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
    ),
    lambda: rand(2, 1, 8, 8),
    backward=True,
)
module(
    "group_norm",
    lambda: nn.GroupNorm(2, 4),
    lambda: rand(2, 4, 5, grad=True),
    backward=True,
)
module(
    "gru_cell",
    lambda: nn.GRUCell(4, 5),
    lambda: rand(3, 4),
    lambda: rand(3, 5),
    backward=True,
)
module("lstm_cell", lambda: nn.LSTMCell(4, 5), lambda: rand(3, 4), backward=True)
module(
    "encoder_train",
    lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True),
    lambda: rand(2, 4, 8),
    backward=True,
    random=True,
)
module(
    "encoder_eval",
    lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).requires_grad_(False),
    lambda: rand(2, 4, 8),
    train=False,
)
module(
    "multihead",
    lambda: nn.MultiheadAttention(8, 2, batch_first=True),
    *[lambda: rand(2, 4, 8)] * 3,
    backward=True,
)
module("tied", Tied, lambda: torch.randint(13, (2, 4)), backward=True)
module("hooked", Hooked, lambda: rand(3, 4), backward=True)
module("frozen", Frozen, lambda: rand(3, 6), backward=True)
module("buffers", Counter, lambda: rand(3, 4), backward=True)
module(
    "weight_norm",
    lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
    lambda: rand(2, 4),
    backward=True,
)


@add("bound_method", backward=True)
def _bound_method() -> Call:
    return Call(Counter().twice, (rand(3, 4),))


@add("bound_tensor_method")
def _bound_tensor_method() -> Call:
    class Scaler:
        def __init__(self, by: float) -> None:
            self.by = by

        def scale(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.by

    return Call(Scaler(3.0).scale, (rand(6),))


@add("partial_module", backward=True)
def _partial_module() -> Call:
    net = nn.Bilinear(3, 4, 2)
    return Call(functools.partial(net, rand(5, 3)), (rand(5, 4),), watch=(net,))


@add("compiled_module", backward=True)
def _compiled_module() -> Call:
    net = mlp()
    return Call(torch.compile(net), (rand(5, 6),), watch=(net,))


@add("loss_of_module", backward=True)
def _loss_of_module() -> Call:
    net = mlp()

    def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(net(x), y)

    return Call(loss, (rand(5, 6), torch.randint(3, (5,))), watch=(net,))


@add("grad_kept", backward=True)
def _grad_kept() -> Call:
    """A module whose parameters already have gradients: a capture neither adds to them nor drops them."""
    net = nn.Linear(4, 2)
    net(rand(3, 4)).sum().backward()
    assert net.weight.grad is not None
    return Call(net, (rand(3, 4),), watch=([p.grad for p in net.parameters()],))


def _step(optimizer: torch.optim.Optimizer) -> Any:
    @torch.compile
    def step() -> None:
        optimizer.step()

    return step


def _optimizer(kind: str, **options: Any) -> Call:
    net = nn.Linear(4, 2)
    optimizer = getattr(torch.optim, kind)(net.parameters(), **options)
    net(rand(3, 4)).square().sum().backward()
    return Call(_step(optimizer), watch=(net, optimizer))


# The first step creates the optimizer's state; the number of graphs for it is up to torch.
op("adam_step", lambda: _optimizer("Adam", lr=0.01), graphs=None, tolerance="dtype")
op("sgd_step", lambda: _optimizer("SGD", lr=0.1, momentum=0.9), graphs=None, tolerance="dtype")  # on 2.11
