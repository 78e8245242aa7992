"""Checked options of one capture, and descriptions of functions and arguments."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .._torch.ground.program_hooks import without_torch_function
from ..errors import UsageError
from ..record import syntax
from ..record.capture import Options
from ..record.device import DeviceModel
from ..record.messages import without_object_addresses

if TYPE_CHECKING:
    from .._torch.session import Request

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""Values of ``mode``, as in ``torch.compile``."""

_CHOICES = {
    "backward": ("auto", True, False),
    "dynamic": (None, True, False),
    "fullgraph": (True, False),
    "build": (True, False),
    "keep_inputs": (True, False),
}

_RECORDED_BACKWARD: dict[bool | str, str] = {True: "yes", False: "no"}


@dataclasses.dataclass(frozen=True)
class CaptureOptions:
    """Options of ``capture``, as given by the caller. Raises ``UsageError`` for an invalid value."""

    backward: bool | str = "auto"
    dynamic: bool | None = None
    mode: str | None = None
    options: dict[str, Any] | None = None
    fullgraph: bool = False
    build: bool = False
    target: str | Path | DeviceModel | None = None
    keep_inputs: bool = False

    def __post_init__(self) -> None:
        for name, valid in _CHOICES.items():
            value = getattr(self, name)
            if not any(type(value) is type(one) and value == one for one in valid):  # 1 == True
                raise UsageError(f"{name}={short(value)} is not one of {', '.join(map(repr, valid))}")

    def to_record(self) -> Options:
        """Return the plain form that is stored in a record."""
        return Options(
            backward=_RECORDED_BACKWARD.get(self.backward, "auto"),
            dynamic=self.dynamic,
            mode=self.mode,
            options=tuple(
                sorted((k, without_object_addresses(repr(v))) for k, v in (self.options or {}).items())
            ),
            fullgraph=self.fullgraph,
            build=self.build,
            target=self.target.name if isinstance(self.target, DeviceModel) else str(self.target or ""),
        )

    @classmethod
    def from_record(cls, options: Options, **more: Any) -> CaptureOptions:
        """Return the options stored in a record, except ``build`` and ``target``; ``more`` are added.

        A required backward stays required; otherwise a call without one would pass silently.

        Raises:
            UsageError: an option of Inductor is not a plain value.
        """
        return cls(
            backward={"yes": True, "no": False}.get(options.backward, "auto"),
            dynamic=options.dynamic,
            mode=options.mode,
            options={k: _plain(v) for k, v in options.options} or None,
            fullgraph=options.fullgraph,
            **more,
        )

    def request(self, settings: dict[str, Any] | None = None, **more: Any) -> Request:
        """Return the request to a session. ``settings`` are Inductor settings in addition to ``options``; ``more`` are
        other fields of the request.

        Raises:
            UsageError: torch does not know the mode or one of the options.
        """
        from .._torch.session import Request

        return Request(
            build=self.build and more.get("model") is None,
            backward=self.backward is not False,
            patches={**self.patches(), **(settings or {})},
            dynamic=self.dynamic,
            fullgraph=self.fullgraph,
            **more,
        )

    def patches(self) -> dict[str, Any]:
        """Return the Inductor settings for ``mode`` and ``options``, checked by torch.

        Raises:
            UsageError: torch does not know the mode or one of the options.
        """
        return inductor_patches(self.mode, self.options, self.dynamic)


def inductor_patches(
    mode: str | None, options: dict[str, Any] | None, dynamic: bool | None
) -> dict[str, Any]:
    """Return the Inductor settings for a mode and options of ``torch.compile``. Raises ``UsageError`` if they are
    invalid."""
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


def _plain(text: str) -> Any:
    try:
        return syntax.literal(text)
    except (ValueError, SyntaxError):
        raise UsageError(
            f"the capture's option {text} is not a plain value: capture again with build=True"
        ) from None


def name_of(fn: Any) -> str:
    """Return a readable name for a callable."""
    from .._torch.frames.dynamo import qualified_name

    if isinstance(fn, functools.partial):
        return f"partial({name_of(fn.func)})"
    if isinstance(fn, torch.nn.Module):
        inner = fn.__dict__.get("_modules", {}).get("_orig_mod")
        return type(inner if inner is not None else fn).__name__
    return qualified_name(fn) or str(getattr(fn, "__name__", None) or type(fn).__name__)


def signature_of(fn: Any) -> inspect.Signature | None:
    """Return the signature that a call of ``fn`` must fit; None for a builtin without one.

    For a decorator's ``(*args, **kwargs)`` wrapper this is the signature of the wrapped function; for a wrapper with
    parameters its own.
    """
    fn = fn.forward if isinstance(fn, torch.nn.Module) else fn
    own = _signature(fn, follow_wrapped=False)
    return _signature(fn) if own is None or _takes_anything(own) else own


def may_change_arguments(fn: Any) -> bool:
    """Return True if ``fn`` is a ``(*args, **kwargs)`` wrapper that may pass other arguments to the wrapped function.

    Torch's own decorators (``no_grad``, ``torch.compile``) pass them on unchanged.
    """
    fn = fn.forward if isinstance(fn, torch.nn.Module) else fn
    while hasattr(fn, "__wrapped__"):
        own = _signature(fn, follow_wrapped=False)
        if own is not None and not _takes_anything(own):
            return False
        if not getattr(fn, "__globals__", {}).get("__name__", "").startswith("torch."):
            return True
        fn = fn.__wrapped__
    return False


def _signature(fn: Any, follow_wrapped: bool = True) -> inspect.Signature | None:
    try:
        return inspect.signature(fn, follow_wrapped=follow_wrapped)
    except (TypeError, ValueError):
        return None


def _takes_anything(signature: inspect.Signature) -> bool:
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    return kinds == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def fits(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return True if a call with these arguments fits a signature."""
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@without_torch_function
def describe_arguments(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, ...]:
    """Return one line for each argument: the name of its parameter and a description of its value."""
    signature = signature_of(fn)
    known = signature is not None and fits(signature, args, kwargs)
    names = [
        parameter.name
        for parameter in (signature.parameters.values() if signature is not None and known else ())
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    names += [f"argument {i}" for i in range(len(names), len(args))]
    return tuple(f"{name}: {describe(value)}" for name, value in (*zip(names, args), *kwargs.items()))


@without_torch_function
def describe(value: Any) -> str:
    """Return dtype, shape and device of a tensor, the size of a container, or the shortened ``repr`` of another
    value."""
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        grad = " requires_grad" if value.requires_grad else ""
        return f"{dtype}[{', '.join(map(str, value.shape))}] {value.device}{grad}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)}"
    if isinstance(value, dict):
        return f"dict of {len(value)}"
    return short(value)


def short(value: Any) -> str:
    """Return the ``repr`` of a value in at most 80 characters; for a tensor its description."""
    if isinstance(value, torch.Tensor):
        return f"a {describe(value)} tensor"
    try:
        text = without_object_addresses(repr(value))
    except Exception:  # the user's own repr failed: only the type is known
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 80 else text[:77] + "..."
