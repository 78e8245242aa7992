"""Captures that the browser shows, each created once: real ones, and some with hostile names."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from compile_lens import Capture, CaptureError, ablate, capture, compare, diff
from compile_lens.record.graph import Source
from compile_lens.results.comparison import Comparison, Difference

T = TypeVar("T")

HOSTILE = {
    "script": "</script><script>alert('script')</script>",
    "image": "<img src=x onerror=alert('image')>",
    "quotes": "\"double\" 'single' `back` &amp; &lt;b&gt; \\\" ${alert('template')}",
    "rtl": "abc\u202eevil\u202c \u2067isolated\u2069 עברית",
    "emoji": "emoji 👩‍🔬 漢字 é",
    "comment": "]]> --> <!-- <style>*{display:none}</style>",
    "prototype": "__proto__",
    "long": "long_" + "x" * 10_000,
}
"""Texts that the page must show as text."""


@functools.cache
def sin_cos() -> Capture:
    """Return sin² + cos², forward and backward: n→1 in each, and a derivative of each operator."""
    import torch

    def f(x: Any) -> Any:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    return capture(f, torch.rand(1000, requires_grad=True))


@functools.cache
def wrapped() -> Capture:
    """Return one line with one call that runs three of torch's modules."""
    import torch
    from torch import nn

    class Wrapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Sigmoid())

        def forward(self, x: Any) -> Any:
            return self.net(x)

    return capture(Wrapped(), torch.rand(8, 16))


@functools.cache
def sequence() -> Capture:
    """Return one line with one call that runs eleven modules, two of which compute nothing."""
    import torch
    from torch import nn

    class Sequence(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            one, two, three, four = (nn.Linear(16, 16) for _ in range(4))
            self.layers = nn.Sequential(
                one, nn.GELU(), nn.Dropout(0.0), nn.LayerNorm(16), two, nn.Tanh(), nn.Identity(),
                three, nn.Sigmoid(), nn.Dropout(0.0), four,
            )  # fmt: skip

        def forward(self, images: Any) -> Any:
            return self.layers(images)

    return capture(Sequence(), torch.rand(8, 16))


@functools.cache
def mlp() -> Capture:
    """Return two layers in their own modules, forward and backward: library calls and generated kernels."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, wide: int, narrow: int) -> None:
            super().__init__()
            self.linear = nn.Linear(wide, narrow)

        def forward(self, x: Any) -> Any:
            return nn.functional.gelu(self.linear(x))

    class Perceptron(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Layer(16, 32)
            self.second = Layer(32, 4)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    return capture(Perceptron(), torch.rand(8, 16))


@functools.cache
def layer() -> Capture:
    """Return a transformer layer: more lines than fit on the page, library calls between the kernels."""
    import torch
    from torch import nn

    class Layer(nn.Module):
        def __init__(self, width: int = 64, heads: int = 4) -> None:
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def attend(self, x: Any) -> Any:
            batch, length, width = x.shape
            sizes = batch, length, self.heads, -1
            q, k, v = (part.view(sizes).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
            scores = torch.tanh(q @ k.transpose(-2, -1) / (width // self.heads) ** 0.5)
            weights = torch.softmax(scores, -1)
            found = (weights @ v).transpose(1, 2).reshape(batch, length, width)
            return self.out(found)

        def forward(self, x: Any) -> Any:
            x = x + self.attend(self.norm1(x))
            return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))

    return capture(Layer(), torch.rand(2, 16, 64))


@functools.cache
def gpt2() -> Capture:
    """Return two transformer layers with their embeddings: the kernel shown first has lines of all of its functions."""
    import torch
    from gpt2 import GPT2, TINY

    return capture(GPT2(TINY), torch.randint(0, TINY.vocabulary, (2, TINY.tokens)))


@functools.cache
def on_h100() -> Capture:
    """Return sin² + cos² captured for an H100."""
    import torch

    def f(x: Any) -> Any:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    return capture(f, torch.rand(1000, requires_grad=True), target="h100")


@functools.cache
def ablated() -> Capture:
    """Return sin² + cos² with the effect of fusion and inlining on it."""
    import torch

    def f(x: Any) -> Any:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    return ablate(f, torch.rand(1000, requires_grad=True))


@functools.cache
def compared() -> Comparison:
    """Return a line whose softmax is one operator for an H100 and five elsewhere, for three targets."""
    import torch

    def softgelu(x: Any, w: Any) -> Any:
        return torch.softmax(torch.nn.functional.gelu(x @ w), -1)

    return compare(softgelu, torch.rand(64, 64), torch.rand(64, 128), targets=["cpu", "h100", "mps"])


@functools.cache
def differing() -> Difference:
    """Return two versions of one function: moved, renamed, and with one more operation."""
    before = "import torch\n\n\ndef net(x):\n    y = torch.softmax(x, 1)\n    return y * 2 + x.sum()\n"
    after = """import torch


def net(alpha):
    # moved, renamed, and an operation more
    beta = torch.softmax(alpha, 1)
    beta = torch.sort(beta)[0]
    return beta * 2 + alpha.sum()
"""
    return difference(before, after)


def difference(before: str, after: str) -> Difference:
    """Return the diff of two versions of a file's function ``net``."""
    import torch

    captures = []
    for text in (before, after):
        file = Path(tempfile.mkdtemp()) / "net.py"
        file.write_text(text, encoding="utf-8")
        scope: dict[str, Any] = {}
        exec(compile(text, str(file), "exec"), scope)
        captures.append(capture(scope["net"], torch.rand(64, 64)))
    return diff(*captures)


@functools.cache
def softmax() -> Capture:
    """Return one operator that becomes several; nothing requires a gradient."""
    import torch

    def f(x: Any) -> Any:
        return torch.softmax(x, dim=-1)

    return capture(f, torch.rand(8, 64))


@functools.cache
def layer_norm() -> Capture:
    """Return one call that is decomposed into many operators, forward and backward."""
    import torch
    from torch import nn

    def f(x: Any, weight: Any, bias: Any) -> Any:
        return nn.functional.layer_norm(x, (64,), weight, bias)

    leaves = [torch.rand(*shape, requires_grad=True) for shape in ((8, 64), (64,), (64,))]
    return capture(f, *leaves)


@functools.cache
def rematerialised() -> Capture:
    """Return operators of the forward that the backward recomputes instead of saving their results."""
    import torch

    def f(x: Any) -> Any:
        y = torch.relu(x) * 2
        return (torch.sigmoid(y) + torch.exp(y)).sum()

    return capture(f, torch.rand(1000, requires_grad=True))


@functools.cache
def graph_break() -> Capture:
    """Return two compilations, separated by a call that Dynamo cannot trace."""
    import torch

    def f(x: Any) -> Any:
        y = torch.sin(x)
        print("between")
        return torch.cos(y) * 2

    return _quiet(lambda: capture(f, torch.rand(1000, requires_grad=True)))


@functools.cache
def recompiled() -> Capture:
    """Return a helper with a graph break, whose resume function is recompiled for another size, type and string."""
    import torch

    def helper(x: Any, word: str) -> Any:
        print(word)
        return torch.sin(x) * len(word)

    def f(x: Any) -> Any:
        one = helper(x, "one")
        two = helper(x[:4], "one")
        three = helper(x, "four")
        return one.sum() + two.sum() + three.sum() + helper(x.double(), "four").sum()

    return _quiet(lambda: capture(f, torch.rand(8, 8)))


@functools.cache
def failing() -> Capture:
    """Return a function that raises after a part of it was compiled."""
    import torch

    def f(x: Any) -> Any:
        y = torch.sin(x)
        print("between")
        raise ValueError(f"no result for {tuple(y.shape)}")

    failed = _quiet(lambda: _failed(lambda: capture(f, torch.rand(1000, requires_grad=True))))
    assert failed.compilations
    return failed


@functools.cache
def wrong_shapes() -> Capture:
    """Return a function that Dynamo cannot trace, because the shapes of its product do not fit."""
    import torch

    def f(x: Any, w: Any) -> Any:
        y = torch.sin(x) * 2
        z = y @ w
        return torch.softmax(z, -1)

    return _failed(lambda: capture(f, torch.rand(4, 5), torch.rand(6, 3)))


@functools.cache
def not_lowered() -> Capture:
    """Return a function that Inductor cannot lower: one of its operators raises there."""
    import torch

    @torch.library.custom_op("lens_browser::raises", mutates_args=(), schema="(Tensor x) -> Tensor")
    def raises(x: Any) -> Any:
        return x.clone()

    raises.register_fake(torch.empty_like)

    def f(x: Any) -> Any:
        y = torch.sin(x) + 1
        z = torch.ops.lens_browser.raises(y)
        return z * 2

    with _without_a_loop(torch.ops.lens_browser.raises.default):
        return _failed(lambda: capture(f, torch.rand(8)))


@functools.cache
def backward_not_lowered() -> Capture:
    """Return a function whose second graph's backward Inductor cannot lower; both forwards are complete."""
    import torch

    @torch.library.custom_op("lens_browser::kept", mutates_args=(), schema="(Tensor x) -> Tensor")
    def kept(x: Any) -> Any:
        return x.clone()

    @torch.library.custom_op("lens_browser::back", mutates_args=(), schema="(Tensor x) -> Tensor")
    def back(x: Any) -> Any:
        return x.clone()

    kept.register_fake(torch.empty_like)
    back.register_fake(torch.empty_like)
    kept.register_autograd(lambda _, gradient: torch.ops.lens_browser.back(gradient * 2))

    def f(x: Any) -> Any:
        y = torch.sin(x) + 1
        print("between")
        z = torch.ops.lens_browser.kept(y)
        return (z * 2 + torch.cos(y)).sum()

    with _without_a_loop(torch.ops.lens_browser.back.default):
        return _quiet(lambda: _failed(lambda: capture(f, torch.rand(8, requires_grad=True))))


@functools.cache
def nothing() -> Capture:
    """Return a function with nothing to compile."""
    import torch

    def f(x: Any) -> Any:
        return len(x.shape)

    empty = capture(f, torch.rand(4))
    assert empty.nothing_compiled and not empty.compilations
    return empty


@functools.cache
def hostile_modules() -> Capture:
    """Return modules whose attributes have hostile names, in a function whose source contains hostile texts as well."""
    import torch
    from torch import nn

    names = {key: text.replace(".", "·") for key, text in HOSTILE.items()}

    class Hostile(nn.Module):
        """</script><script>alert('docstring')</script> <img src=x onerror=alert('docstring')>"""

        def __init__(self) -> None:
            super().__init__()
            for name in names.values():
                self.add_module(name, nn.Linear(8, 8))

        def forward(self, x: Any) -> Any:
            for layer in self.children():
                x = torch.relu(layer(x))
            return x + len("</script><img src=x onerror=alert('source')> \u202e 👩‍🔬 `${x}`")

    return capture(Hostile(), torch.rand(4, 8))


@functools.cache
def hostile() -> Capture:
    """Return a record in which every kind of name (function, input, node, kernel, file, note) is a hostile text."""
    plain = sin_cos()
    (made,) = plain.compilations
    forward, backward = (made.graphs[phase].calls for phase in ("forward", "backward"))
    calls = list(dict.fromkeys(node.name for node in (*forward, *backward)))
    assert len(calls) >= len(HOSTILE)
    renamed = _mapped(plain, dict(zip(calls, HOSTILE.values(), strict=False)))
    kernels = {kernel.name: HOSTILE[key] for kernel, key in zip(plain.kernels, HOSTILE, strict=False)}
    renamed = _mapped(renamed, kernels)
    (file,) = {source.file for source in plain.sources}
    renamed = _mapped(renamed, {file: f"/{HOSTILE['image']}/{HOSTILE['script']}.py"})
    text = "\n".join(HOSTILE.values())
    first = renamed.sources[0]
    return dataclasses.replace(
        renamed,
        function=HOSTILE["script"],
        inputs=tuple(HOSTILE.values()),
        notes=tuple(HOSTILE.values()),
        sources=(*renamed.sources, Source(first.file, 10_000, HOSTILE["image"], text)),
        compilations=tuple(
            dataclasses.replace(c, function=HOSTILE["quotes"], recompile_reasons=tuple(HOSTILE.values()))
            for c in renamed.compilations
        ),
    )


EVERY: dict[str, Callable[[], Capture]] = {
    made.__name__: made
    for made in (
        sin_cos,
        mlp,
        softmax,
        layer_norm,
        rematerialised,
        graph_break,
        failing,
        nothing,
        hostile_modules,
        hostile,
    )
}
"""All captures by name."""


@contextlib.contextmanager
def _without_a_loop(operator: Any) -> Iterator[None]:
    """Make Inductor raise for the duration where it would lower the operator; later tests are not affected."""
    from torch._inductor import lowering

    def raises(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("there is no loop for it")

    tables = [getattr(lowering, name, {}) for name in ("lowerings", "user_lowerings")]
    before = [dict(table) for table in tables]
    lowering.register_lowering(operator, type_promotion_kind=None)(raises)
    try:
        yield
    finally:
        for table, held in zip(tables, before):
            table.pop(operator, None)
            table.update({operator: held[operator]} if operator in held else {})


def _failed(run: Callable[[], Capture]) -> Capture:
    try:
        return run()
    except CaptureError as error:
        assert error.capture is not None and error.capture.failure is not None
        return error.capture


def written(text: str, name: str) -> Capture:
    """Return the function ``f`` of a module that is written to a file, with a gradient."""
    import importlib.util

    import torch

    path = Path(tempfile.mkdtemp()) / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return capture(module.f, torch.rand(1000, requires_grad=True))


def _quiet(run: Callable[[], T]) -> T:
    with contextlib.redirect_stdout(io.StringIO()):
        return run()


def _mapped(value: T, names: Mapping[str, str]) -> T:
    """Return a record in which every text that equals one of ``names`` is replaced, wherever it occurs."""
    made: Any = value
    if isinstance(value, str):
        made = names.get(value, value)
    elif isinstance(value, tuple):
        made = tuple(_mapped(part, names) for part in value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        made = dataclasses.replace(
            value,
            **{f.name: _mapped(getattr(value, f.name), names) for f in dataclasses.fields(value) if f.init},
        )
    return made  # type: ignore[no-any-return]
