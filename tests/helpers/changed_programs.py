"""Programs that recompile, each because of a different kind of guard, with the expected change.

Run as a script, it runs them without compile_lens and prints the reasons that torch logs, as JSON.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import enum
import json
import logging
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import torch

X = torch.ones(3)


@dataclasses.dataclass(frozen=True)
class Changed:
    """A function, its two calls, and what changed between them."""

    function: Callable[..., Any]
    calls: tuple[tuple[Any, ...], tuple[Any, ...]]
    source: str
    old: str
    new: str
    dynamic: bool | None = None
    between: Callable[[], Any] = lambda: None
    under: Callable[[], Any] = contextlib.nullcontext


class One:
    n = 1.5
    flag = True


class Two:
    n = 2.5


class Slots:
    __slots__ = ("flag",)

    def __init__(self, flag: bool) -> None:
        self.flag = flag


Named = collections.namedtuple("Named", "flag")
Color = enum.Enum("Color", "RED BLUE")


def by_flag(x: torch.Tensor, o: Any) -> torch.Tensor:
    return x.sin() if o.flag else x.cos()


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def halved(x: torch.Tensor) -> torch.Tensor:
    return x.sin() / 2


def with_default(x: torch.Tensor, flag: bool = True) -> torch.Tensor:
    return x.sin() if flag else x.cos()


def set_default(flag: bool) -> None:
    with_default.__defaults__ = (flag,)


@contextlib.contextmanager
def double_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


MATRIX = torch.ones(3, 3)
OTHER = torch.ones(3)
WITH_GRADIENT = torch.ones(3, requires_grad=True)
WITH_GRADIENT.grad = torch.ones(3)
PARAMETER = torch.nn.Parameter(torch.ones(3), requires_grad=False)


def programs() -> dict[str, Changed]:
    flags = types.SimpleNamespace(flag=True), types.SimpleNamespace(flag=False)
    same = (X, X), (X, OTHER)
    return {
        "is": Changed(
            lambda x, t: x.sin() if x is t else x.cos(),
            same,
            "x",
            "the same object as t",
            "another one (float32[3])",
        ),
        "is not": Changed(
            lambda x, t: x.sin() if x is t else x.cos(), same[::-1],
            "x", "another object than t", "the same object as t",
        ),
        "class": Changed(
            lambda x, o: x * o.n, ((X, One()), (X, Two())), "type(o)", f"{__name__}.One", f"{__name__}.Two"
        ),
        "list": Changed(lambda x, o: x * len(o), ((X, [1, 2]), (X, (1, 2))), "type(o)", "list", "tuple"),
        "parameter": Changed(
            doubled, ((PARAMETER,), (X,)), "type(x)", "torch.nn.parameter.Parameter", "torch.Tensor"
        ),
        "none": Changed(
            lambda x, o: x.sin() if o is None else x + o, ((X, OTHER), (X, None)),
            "type(o)", "torch.Tensor", "NoneType",
        ),
        "function": Changed(
            lambda x, h: h(x), ((X, torch.sin), (X, torch.cos)), "h", "torch.sin", "torch.cos"
        ),
        "code": Changed(
            lambda x, h: h(x), ((X, doubled), (X, halved)), "h.__code__",
            f"doubled (changed_programs.py:{doubled.__code__.co_firstlineno})",
            f"halved (changed_programs.py:{halved.__code__.co_firstlineno})",
        ),
        "member": Changed(
            lambda x, c: x.sin() if c is Color.RED else x.cos(), ((X, Color.RED), (X, Color.BLUE)),
            "c", f"{__name__}.Color.RED", f"{__name__}.Color.BLUE",
        ),
        "attribute": Changed(by_flag, ((X, flags[0]), (X, flags[1])), "o.flag", "True", "False"),
        "slot": Changed(by_flag, ((X, Slots(True)), (X, Slots(False))), "o.flag", "True", "False"),
        "field": Changed(by_flag, ((X, Named(True)), (X, Named(False))), "o.flag", "True", "False"),
        "of a class": Changed(
            by_flag, ((X, One()), (X, One())), "type(o).flag", "True", "False",
            between=lambda: setattr(One, "flag", False), under=lambda: restored(One, "flag", True),
        ),
        "default": Changed(
            lambda x: with_default(x), ((X,), (X,)), "with_default.__defaults__[0]", "True", "False",
            between=lambda: set_default(False), under=lambda: restored(with_default, "__defaults__", (True,)),
        ),
        "key": Changed(
            lambda x, d: x.sin() if "a" in d else x.cos(), ((X, {"a": 1}), (X, {"b": 1})),
            "'a' in d", "True", "False",
        ),
        "length": Changed(
            lambda x, d: x * sum(d.values()), ((X, {"a": 1.5}), (X, {"a": 1.5, "b": 2.5})), "len(d)", "1", "2"
        ),
        "negative": Changed(
            lambda x, n: x.sum(n), ((MATRIX, -1), (MATRIX, -2)), "n", "-1", "-2", dynamic=False
        ),
        "dtype": Changed(
            lambda x, t: x.to(t) * 2, ((X, torch.float64), (X, torch.int32)), "t", "torch.float64", "torch.int32"
        ),
        "range": Changed(
            lambda x: x.sin() if x.shape[0] <= 4 else x.cos(), ((X,), (torch.ones(9),)),
            "x.size(0)", "2 to 4", "9", dynamic=True,
        ),
        "at most": Changed(
            lambda x, n: x.sin() * n if n < 10 else x.cos() * n, ((X, 5), (X, 50)),
            "n", "at most 9", "50", dynamic=True,
        ),
        "other than": Changed(
            lambda x: x.sin() if x.shape[0] != 5 else x.cos(), ((X,), (torch.ones(5),)),
            "x.size(0)", "other than 5", "5", dynamic=True,
        ),
        "of two": Changed(
            lambda x: x.sin() if 2 * x.shape[0] > x.shape[1] else x.cos(), ((MATRIX,), (torch.ones(3, 9),)),
            "x.size(0), x.size(1)", "", "3, 9", dynamic=True,
        ),
        "grad mode": Changed(
            doubled, ((X,), (X,)), "grad_mode", "True", "False",
            between=lambda: torch.set_grad_enabled(False), under=torch.enable_grad,
        ),
        "no grad before": Changed(
            doubled, ((X,), (X,)), "grad_mode", "False", "True",
            between=lambda: torch.set_grad_enabled(True), under=torch.no_grad,
        ),
        "deterministic": Changed(
            doubled, ((X,), (X,)), "deterministic_algorithms", "False", "True",
            between=lambda: torch.use_deterministic_algorithms(True), under=deterministic,
        ),
        "default dtype": Changed(
            doubled, ((X,), (X,)), "default_dtype", "torch.float64", "torch.float32",
            between=lambda: torch.set_default_dtype(torch.float32), under=double_by_default,
        ),
        "default device": Changed(
            doubled, ((X,), (X,)), "the default device", "device(type='cpu')", "device(type='meta')",
            between=lambda: torch.set_default_device("meta"), under=on_the_processor,
        ),
        "first default device": Changed(
            doubled, ((X,), (X,)), "the torch function modes around the call",
            "none", "torch.set_default_device('meta')",
            between=lambda: torch.set_default_device("meta"), under=no_default_device,
        ),
        "device": Changed(doubled, ((X,), (X.to("meta"),)), "x.device", "cpu", "meta"),
        "nan": Changed(lambda x, n: x * n, ((X, float("nan")), (X, 1.5)), "n", "nan", "1.5"),
        "complex nan": Changed(lambda x, n: x * n, ((X, complex("nan")), (X, 2j)), "n", "nan", "2j"),
        "not nan": Changed(
            lambda x, n: x * n, ((X, 1.5), (X, float("nan"))), "n", "a number other than nan", "nan", dynamic=True
        ),
        "queue": Changed(
            lambda x, q: x * q[0], ((X, collections.deque([2])), (X, collections.deque([2, 4]))), "len(q)", "1", "2"
        ),
        "dictionary": Changed(
            lambda d: sum(d.values()), (({"a": X},), (collections.OrderedDict(a=X),)),
            "type(d)", "dict", "OrderedDict",
        ),
        "array": Changed(
            lambda x, n: x * n, ((X, numpy.float32(2)), (X, numpy.float64(2))), "n.dtype", "float32", "float64"
        ),
        "gradient": Changed(
            lambda w: w.sin() if w.grad is None else w + w.grad,
            ((torch.ones(3, requires_grad=True),), (WITH_GRADIENT,)), "w.grad", "None", "float32[3]",
        ),
        "set later": Changed(
            lambda x, o: x.sin() if hasattr(o, "flag") else x.cos(), ((X, types.SimpleNamespace()), (X, flags[0])),
            "o.flag", "not set on it", "True",
        ),
        "many digits": Changed(
            lambda x, n: x + n % 7, ((X, 2**40), (X, 2**41 + 1)), "n", "1099511627776", "2199023255553"
        ),
        "conjugate": Changed(
            doubled, ((X.cfloat(),), (X.cfloat().conj(),)), "x", "without Conjugate", "with the key Conjugate"
        ),
    }  # fmt: skip


@contextlib.contextmanager
def no_default_device() -> Iterator[None]:
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def on_the_processor() -> Iterator[None]:
    with no_default_device():
        torch.set_default_device("cpu")
        yield


@contextlib.contextmanager
def restored(owner: Any, name: str, value: Any) -> Iterator[None]:
    try:
        yield
    finally:
        setattr(owner, name, value)


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def run(one: Changed) -> None:
    """Compile the function from scratch and call it twice."""
    torch._dynamo.reset()
    compiled = torch.compile(one.function, backend="eager", dynamic=one.dynamic)
    with one.under():
        compiled(*one.calls[0])
        one.between()
        compiled(*one.calls[1])


class _Messages(logging.Handler):
    """Handler that stores the messages that torch logs."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def reasons() -> dict[str, list[str]]:
    """Return the recompile reasons that torch logs in this process, by program."""
    torch._logging.set_logs(recompiles=True)
    messages = _Messages()
    logging.getLogger("torch._dynamo.guards.__recompiles").addHandler(messages)
    found = {}
    for name, one in programs().items():
        messages.texts.clear()
        run(one)
        found[name] = [text for text in messages.texts if text.startswith("Recompiling function")]
    return found


if __name__ == "__main__":
    json.dump(reasons(), sys.stdout)


ONE_EACH = (
    torch.sin,
    torch.cos,
    torch.tan,
    torch.exp,
    torch.abs,
    torch.neg,
    torch.sigmoid,
    torch.tanh,
    torch.relu,
)
"""Builtins that torch calls through one code object: one more than its recompile limit."""
