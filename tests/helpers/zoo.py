"""The zoo: a table of functions and modules that covers every feature a capture has to handle.

An entry creates its function and arguments from a fixed seed on each request, so the same call can be made once
eagerly and once captured, and all objects that either of them touched can be compared.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

SEED = 20240

SMALL_MODELS = (
    "batch_norm_train",
    "conv_net",
    "embedding_cross_entropy",
    "encoder_eval",
    "encoder_train",
    "gru_cell",
    "lstm_cell",
    "mlp_train",
    "multihead",
    "naive_attention",
    "tied",
    "weight_norm",
)
"""Names of the entries that are realistic modules, for tests that run each of them as a whole."""

NO_CONTEXT: Callable[[], Any] = contextlib.nullcontext


@dataclass
class Call:
    """One call with its function and arguments.

    Attributes:
        fn: the callable.
        args, kwargs: its arguments.
        watch: other objects that it may change (a module behind a bound method, an optimizer's state).
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    watch: tuple[Any, ...] = ()

    def __call__(self) -> Any:
        return self.fn(*self.args, **self.kwargs)

    def touched(self) -> list[Any]:
        """Return everything that the call may have changed, as a tree that ``mismatch`` can compare."""
        things: list[Any] = [self.args, self.kwargs]
        for thing in (self.fn, getattr(self.fn, "__self__", None), *self.watch):
            if isinstance(thing, torch.nn.Module):
                things.append({"training": thing.training, **thing.state_dict(keep_vars=True)})
            elif isinstance(thing, torch.optim.Optimizer):
                things.append(thing.state_dict()["state"])
            elif isinstance(thing, (torch.Tensor, list, dict, tuple)):
                things.append(thing)
        return things


@dataclass(frozen=True)
class Entry:
    """One row of the table.

    Attributes:
        name: the name of the test.
        build: makes the call; use ``make``, which seeds first.
        backward: whether ``backward="auto"`` captures a backward graph.
        graphs: number of graphs that Dynamo hands to the backend in one call; ``None`` where that is not
            a fact of the function (it differs between torch versions).
        nothing: nothing is compiled, and the reason contains this word.
        fails: the compiler rejects it: the stage that ``capture.failure`` must name.
        tolerance: of a code-only capture, against eager: ``"bitwise"``, or ``"dtype"`` where Dynamo itself
            changes the arithmetic. Built code is compared with ``"dtype"``.
        random: draws random numbers, which built code draws from a generator of its own.
        options: keyword arguments for ``capture``.
        context: the caller's context, open around the call.
        breaks: number of graph breaks, where known.
        min_torch: first torch version, as a pair, that can run it.
    """

    name: str
    build: Callable[[], Call]
    backward: bool = False
    graphs: int | None = 1
    nothing: str = ""
    fails: str = ""
    tolerance: str = "bitwise"
    random: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
    context: Callable[[], Any] = NO_CONTEXT
    breaks: int | None = None
    min_torch: tuple[int, int] = (2, 11)

    @property
    def compiles(self) -> bool:
        """Return True if at least one graph reaches the backend."""
        return not self.nothing

    def make(self) -> Call:
        """Return a new call, the same each time, without advancing the global random generators."""
        with seeded():
            return self.build()


class Table:
    """Entries with unique names, in the order they were added."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, name: str, **flags: Any) -> Callable[[Callable[[], Call]], Callable[[], Call]]:
        """Decorate a function that makes a ``Call``."""

        def register(build: Callable[[], Call]) -> Callable[[], Call]:
            self.op(name, build, **flags)
            return build

        return register

    def op(self, name: str, build: Callable[[], Call], **flags: Any) -> None:
        """Add an entry in one line."""
        if any(e.name == name for e in self.entries):
            raise ValueError(f"the zoo has two entries called {name!r}")
        self.entries.append(Entry(name, build, **flags))


def rand(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return a normally distributed tensor; ``grad`` makes it a leaf that requires a gradient."""
    return torch.randn(*shape).to(dtype).requires_grad_(grad)


@contextlib.contextmanager
def seeded(seed: int = SEED) -> Iterator[None]:
    """Seed the random generators for the duration and restore their states afterwards."""
    before = random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        random.seed(seed)
        try:
            yield
        finally:
            random.setstate(before)


def mismatch(a: Any, b: Any, tolerance: str = "bitwise", path: str = "result") -> list[str]:
    """Return one line for each place where two trees of tensors and plain values differ; empty if they agree.

    Bitwise requires the same type, shape, stride and bits; otherwise torch's tolerance for the dtype applies.
    """
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return _tensors(a.detach(), b.detach(), tolerance, path)
    if type(a) is not type(b):
        return [f"{path}: {type(a).__name__} against {type(b).__name__}"]
    if isinstance(a, Mapping):
        if list(a) != list(b):
            return [f"{path}: keys {list(a)} against {list(b)}"]
        return [line for k in a for line in mismatch(a[k], b[k], tolerance, f"{path}[{k!r}]")]
    if isinstance(a, (tuple, list)):
        if len(a) != len(b):
            return [f"{path}: {len(a)} items against {len(b)}"]
        return [
            line
            for i, (x, y) in enumerate(zip(a, b, strict=True))
            for line in mismatch(x, y, tolerance, f"{path}[{i}]")
        ]
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        return [
            line
            for f in dataclasses.fields(a)
            for line in mismatch(getattr(a, f.name), getattr(b, f.name), tolerance, f"{path}.{f.name}")
        ]
    if isinstance(a, (int, float, complex, str, bytes, type(None), torch.dtype, torch.device)):
        return [] if a == b or a != a else [f"{path}: {a!r} against {b!r}"]
    # An object without a value (a module, a callable): its contents are compared through ``touched``.
    return []


def _tensors(a: torch.Tensor, b: torch.Tensor, tolerance: str, path: str) -> list[str]:
    for what in ("dtype", "device", "shape"):
        if getattr(a, what) != getattr(b, what):
            return [f"{path}: {what} {getattr(a, what)} against {getattr(b, what)}"]
    if a.numel() and a.stride() != b.stride():
        return [f"{path}: stride {a.stride()} against {b.stride()}"]
    # NaN equals itself here: a function may well return one.
    limits = {"rtol": 0.0, "atol": 0.0} if tolerance == "bitwise" else {}
    try:
        torch.testing.assert_close(a, b, equal_nan=True, **limits)
    except AssertionError as error:
        return [f"{path}: {str(error).splitlines()[0]}"]
    return []


def _all() -> tuple[Entry, ...]:
    entries: list[Entry] = []
    for name in ("zoo_tensors", "zoo_modules", "zoo_programs", "zoo_context"):
        entries += importlib.import_module(name).TABLE.entries
    names = [e.name for e in entries]
    if len(set(names)) != len(names):
        raise ValueError(f"names used twice in the zoo: {sorted({n for n in names if names.count(n) > 1})}")
    version = tuple(int(p) for p in torch.__version__.split("+")[0].split(".")[:2])
    return tuple(e for e in entries if version >= e.min_torch)


def entries() -> tuple[Entry, ...]:
    """Return every entry that this torch can run."""
    return _all()
