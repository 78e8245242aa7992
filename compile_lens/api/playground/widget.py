"""The playground as a notebook widget: the page of a function's capture, with controls for its inputs."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ...errors import UsageError
from .settings import BESIDE, DTYPES, MAX_SIZE, TARGETS, Settings

if TYPE_CHECKING:
    import torch

    from ...results.capture import Capture
    from ...results.comparison import Comparison

MAX_SLIDERS = 6
"""Maximum number of sizes with a slider, the first ones of the arguments."""

MAX_INPUT_BYTES = 1 << 30
"""Maximum total size of a widget's inputs, in bytes."""

PREFIX = "size"
"""Prefix of the settings of sizes, such as ``size8``."""


def play(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Return a notebook widget: the page of ``fn(*args, **kwargs)``, with controls that capture it again.

    Each size of the inputs has a slider; dimensions of equal size move together. Menus and switches set the device, or
    two to compare, the dtype, gradients and compiler options. A resized input repeats or drops values of the given one,
    which is never changed. The widget's ``capture`` is the newest capture, its ``comparison`` that of two devices.

    It works wherever anywidget does: JupyterLab, the classic notebook, VS Code, Colab, marimo. Captures run in the
    notebook's process.

    Raises:
        ModuleNotFoundError: anywidget is not installed.
        UsageError: ``fn`` cannot be called with these arguments.
    """
    from ...engine.call import check_callable, check_fit

    check_callable(fn, "play")
    check_fit(fn, args, kwargs, "play")
    return _widget_class()(Inputs.of(fn, args, kwargs))


@dataclass(frozen=True)
class Inputs:
    """A function, its arguments, and the adjustable sizes.

    Attributes:
        sizes: for each size with a slider, its dimensions, such as ``x[0], weight[1]``.
    """

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    sizes: dict[int, str]

    @classmethod
    def of(cls, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Inputs:
        """Return the inputs of a call. Dimensions of size 1 have no slider, since they are usually broadcast."""
        dimensions: dict[int, list[str]] = {}
        for name, tensor in _named_tensors(fn, args, kwargs):
            for at, size in enumerate(tensor.shape):
                if size > 1:
                    dimensions.setdefault(size, []).append(f"{name}[{at}]")
        first = list(dimensions.items())[:MAX_SLIDERS]
        return cls(fn, args, kwargs, {size: ", ".join(names) for size, names in first})

    def offer(self) -> dict[str, Any]:
        """Return the initial state of the controls."""
        return {
            "settings": {**asdict(Settings()), **{f"{PREFIX}{size}": size for size in self.sizes}},
            "targets": TARGETS,
            "beside": BESIDE,
            "dtypes": DTYPES,
            "torches": (),
            "sizes": [(f"{PREFIX}{size}", names) for size, names in self.sizes.items()],
            "largest": max((MAX_SIZE, *self.sizes)),
        }

    def resized(self, raw: dict[str, Any], settings: Settings) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with the sizes in plain data, and with the settings' dtype and ``requires_grad``."""
        from ..._torch.ground import values

        sizes = {size: _size(raw.get(f"{PREFIX}{size}", size), size) for size in self.sizes}
        tensors = [tensor for _, tensor in _named_tensors(self.fn, self.args, self.kwargs)]
        total = sum(math.prod(_shape(one, sizes)) * one.element_size() for one in tensors)
        if total > MAX_INPUT_BYTES:
            raise UsageError(
                f"inputs of these sizes have {total / MAX_INPUT_BYTES:.1f} GiB, and a widget makes at most 1"
            )
        change = functools.partial(_input, sizes=sizes, settings=settings)
        args, kwargs = values.map_leaves(change, (self.args, self.kwargs))
        return args, kwargs


def _named_tensors(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors that can be resized, with the names of their parameters."""
    from ..._torch.ground import values
    from ...engine.options import fits, signature_of

    signature = signature_of(fn)
    bound = {**{f"argument {i}": value for i, value in enumerate(args)}, **kwargs}
    if signature is not None and fits(signature, args, kwargs):
        bound = signature.bind(*args, **kwargs).arguments
    for name, value in bound.items():
        leaves = values.leaves(value)
        for at, leaf in enumerate(leaves):
            if _is_plain(leaf):
                yield name if leaf is value else f"{name}.{at}", leaf


def _is_plain(value: Any) -> bool:
    import torch

    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided


def _size(value: Any, usual: int) -> int:
    largest = max(MAX_SIZE, usual)
    if type(value) is not int or not 1 <= value <= largest:
        raise UsageError(f"a size is a number from 1 to {largest}, not {value!r}")
    return value


def _shape(tensor: torch.Tensor, sizes: dict[int, int]) -> list[int]:
    return [sizes.get(size, size) for size in tensor.shape]


def _input(value: Any, sizes: dict[int, int], settings: Settings) -> Any:
    """Return a leaf of the arguments with the settings applied; tensors are copied, so that the given ones do not
    change."""
    import torch

    from .program_capture import as_set

    if not _is_plain(value):
        return value
    shape = _shape(value, sizes)
    data = value.detach()
    if shape == list(value.shape):
        copy = data.clone()
    elif value.numel() == 0:
        copy = data.new_zeros(shape)
    else:
        flat = data.reshape(-1)
        copy = flat[torch.arange(math.prod(shape), device=flat.device) % len(flat)].reshape(shape)
    return as_set(copy.requires_grad_(value.requires_grad), settings)


def captured(inputs: Inputs, raw: dict[str, Any]) -> Capture:
    """Return the capture of a call with the settings and sizes in plain data."""
    from ..capture import capture
    from .program_capture import options_of

    settings = Settings.read(raw)
    if settings.torch:
        raise UsageError(f"torch={settings.torch!r}: a widget captures in its notebook, which has one torch")
    args, kwargs = inputs.resized(raw, settings)
    options = options_of(settings)
    return capture(
        inputs.fn,
        *args,
        kwargs=kwargs,
        dynamic=options.dynamic,
        options=options.options,
        target=options.target,
    )


@functools.cache
def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ModuleNotFoundError as error:
        words = f"play needs {error.name}, which is not installed: pip install anywidget"
        raise ModuleNotFoundError(words, name=error.name) from None
    from ...views.live import compare
    from ...views.live.page import plain_parts
    from ...views.live.playground import widget_module
    from .faults import error_data
    from .program_capture import MEANINGS
    from .two_targets import comparison_of

    class PlayWidget(anywidget.AnyWidget):
        """The widget.

        Attributes:
            capture: the newest capture, None before the first; for two targets that of the first one that compiled.
            comparison: the comparison of two targets; None if the newest capture has one target.
        """

        _esm = widget_module()
        hello = traitlets.Unicode().tag(sync=True)

        def __init__(self, inputs: Inputs) -> None:
            super().__init__(hello=json.dumps(inputs.offer()))
            self._inputs = inputs
            self.capture: Capture | None = None
            self.comparison: Comparison | None = None
            self.on_msg(self._hear)

        def _hear(self, widget: Any, message: Any, buffers: Any) -> None:
            self.send({"view": message["view"], "of": message["edit"], **self._answer(message["settings"])})

        def _answer(self, raw: dict[str, Any]) -> dict[str, Any]:
            def one(settings: Settings) -> Capture:
                captures.append(captured(self._inputs, {**raw, "target": settings.target, "beside": ""}))
                return captures[-1]

            captures: list[Capture] = []
            fault = None
            try:
                settings = Settings.read(raw)
                if settings.beside:
                    both, fault = comparison_of(settings, one)
                    if both is None:
                        return {"error": fault}
                    parts = compare.plain_parts(both)
                else:
                    both, parts = None, plain_parts(one(settings))
            except (Exception, KeyboardInterrupt) as error:
                return {"error": error_data(error)}
            self.capture, self.comparison = captures[0], both
            return {"parts": parts, "switches": MEANINGS, **({"error": fault} if fault else {})}

    return PlayWidget
