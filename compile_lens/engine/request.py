"""What is asked of one capture: its options, and whether the call can be made with them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .._torch.ground.unseen import unseen
from ..errors import UsageError
from ..record.capture import Options
from ..record.device import DeviceModel
from .environment import device
from .inputs import held, name_of, short, tensors

if TYPE_CHECKING:
    from .._torch.session import Request


MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""Names that ``mode`` takes, as in ``torch.compile``."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """The options of ``capture``, as they were given."""

    backward: bool | str = "auto"
    dynamic: bool | None = None
    mode: str | None = None
    options: dict[str, Any] | None = None
    fullgraph: bool = False
    build: bool = False
    target: str | Path | DeviceModel | None = None

    def __post_init__(self) -> None:
        choices = {
            "backward": ("auto", True, False),
            "dynamic": (None, True, False),
            "fullgraph": (True, False),
            "build": (True, False),
        }
        for name, valid in choices.items():
            value = getattr(self, name)
            if not any(type(value) is type(one) and value == one for one in valid):  # 1 is equal to True
                raise UsageError(f"{name}={short(value)} is not one of {', '.join(map(repr, valid))}")

    def recorded(self) -> Options:
        """Their plain form."""
        said = {True: "yes", False: "no"}.get(self.backward) if isinstance(self.backward, bool) else "auto"
        return Options(
            backward=said or "auto",
            dynamic=self.dynamic,
            mode=self.mode,
            options=tuple(sorted((k, repr(v)) for k, v in (self.options or {}).items())),
            fullgraph=self.fullgraph,
            build=self.build,
            target=self.target.name if isinstance(self.target, DeviceModel) else str(self.target or ""),
        )

    @classmethod
    def again(cls, options: Options, **more: Any) -> Asked:
        """What was asked for when these were recorded, without ``build`` and ``target``; ``more`` are options besides.

        What insisted on a backward insists again: else nobody would learn that there is none this time.

        Raises ``UsageError`` for an option of Inductor's that is no plain value.
        """
        return cls(
            backward={"yes": True, "no": False}.get(options.backward, "auto"),
            dynamic=options.dynamic,
            mode=options.mode,
            options={k: _parse(v) for k, v in options.options} or None,
            fullgraph=options.fullgraph,
            **more,
        )

    def request(self, **more: Any) -> Request:
        """What they ask of a session. Raises ``UsageError`` for a mode or an option that torch does not know."""
        from .._torch.session import Request

        return Request(
            build=self.build and more.get("model") is None,
            backward=self.backward is not False,
            patches=patches(self.mode, self.options, self.dynamic),
            dynamic=self.dynamic,
            fullgraph=self.fullgraph,
            **more,
        )


Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Of one call: positional ones, and those by name."""


def in_turn(
    calls: Sequence[Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[tuple[Any, ...], dict[str, Any] | None, tuple[Arguments, ...]]:
    """The arguments of the first call, and those of the ones that follow it.

    Raises ``UsageError`` where ``calls`` is no sequence of tuples and dicts, is empty, or stands beside arguments.
    """
    if calls is None:
        return args, kwargs, ()
    form = "give the arguments of each call as a tuple, or as a dict by name: calls=[(x3,), (x4,)]"
    if args:
        raise UsageError(f"capture was given arguments and calls: {form}, and none beside them")
    if not isinstance(calls, (list, tuple)):
        raise UsageError(f"calls is a {type(calls).__name__}: {form}")
    if not calls:
        raise UsageError(f"calls is empty: {form}")
    made: list[tuple[tuple[Any, ...], Any]] = []
    for number, one in enumerate(calls):
        if isinstance(one, dict):
            made.append(((), {**(kwargs or {}), **one}))
        elif isinstance(one, (list, tuple)):
            made.append((tuple(one), kwargs))
        else:
            raise UsageError(f"calls[{number}] is {short(one)}: {form}")
    (first, by_name), later = made[0], made[1:]
    return first, by_name, tuple((one, dict(named or {})) for one, named in later)


def callable_first(
    fn: Any, name: str, args: tuple[Any, ...] | None = None, kwargs: dict[str, Any] | None = None
) -> None:
    """Raises ``UsageError`` where the function ``name`` was not given one to look at, or, where ``args`` are said,
    one that cannot be called with them."""
    if not callable(fn):
        raise UsageError(
            f"{name} needs a callable first, got {short(fn)} of type {type(fn).__name__}: "
            f"pass the function and then its arguments, {name}(f, x), not {name}(f(x))"
        )
    if args is not None and (kwargs is None or _by_name(kwargs)):
        _fits(fn, args, kwargs or {}, name)


@unseen
def check(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, model: DeviceModel | None = None
) -> dict[str, Any]:
    callable_first(fn, "capture")
    if kwargs is not None and not _by_name(kwargs):
        raise UsageError(
            f"kwargs={short(kwargs)} is not a dict of keyword arguments: capture(f, x, kwargs={{'y': y}})"
        )
    keywords = dict(kwargs or {})
    if model is None or model.device == "cpu":
        from ..child.tensors import is_fake

        for where, tensor in tensors(args, keywords) + held(fn):
            if tensor.device.type == "meta" or is_fake(tensor):
                holds = "on device 'meta'" if tensor.device.type == "meta" else "a fake tensor"
                raise UsageError(
                    f"{where} is {holds}, which holds no data: pass a tensor on {device()} "
                    f"(for example torch.rand(…, device={str(device())!r})), or capture for a device, for which "
                    'shapes are enough: target="h100"'
                )
    if model is not None and model.device == "mps":
        for where, tensor in tensors(args, keywords) + held(fn):
            if tensor.dtype in (torch.float64, torch.complex128):
                raise UsageError(
                    f"{where} is {str(tensor.dtype).removeprefix('torch.')}, and Metal has no float64: {model.title} "
                    f"holds no such tensor. Pass it as {'float32' if tensor.is_floating_point() else 'complex64'}"
                )
    _fits(fn, args, keywords, "capture")
    return keywords


def _by_name(kwargs: Any) -> bool:
    return isinstance(kwargs, dict) and all(isinstance(k, str) for k in kwargs)


@unseen
def _fits(fn: Any, args: tuple[Any, ...], keywords: dict[str, Any], name: str) -> None:
    """Raises ``UsageError`` where ``fn``, given to the function ``name``, cannot be called so."""
    try:
        signature = inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    except (TypeError, ValueError):  # a builtin without a signature: the call itself will tell
        return
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        raise UsageError(
            f"{name_of(fn)}{signature} cannot be called with {len(args)} positional argument(s)"
            + (f" and {', '.join(keywords)}" if keywords else "")
            + f": {error}. Pass its inputs after it: {name}({name_of(fn)}, …)"
        ) from None


def patches(mode: str | None, options: dict[str, Any] | None, dynamic: bool | None) -> dict[str, Any]:
    from .._torch import session

    if mode is not None and options:
        raise UsageError(
            "mode and options cannot both be given, as in torch.compile: put the mode's settings in options"
        )
    if mode is not None and mode not in MODES:
        raise UsageError(f"mode={mode!r} is not one of {', '.join(map(repr, MODES))}")
    try:
        return session.inductor_patches(mode, options, dynamic)
    except (RuntimeError, AttributeError, TypeError) as error:
        raise UsageError(f"options={short(options)}: {str(error).splitlines()[0][:400]}") from None


def _parse(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise UsageError(
            f"the capture's option {text} is not a plain value: capture again with build=True"
        ) from None
