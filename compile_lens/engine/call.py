"""The call that a capture makes: a function, its arguments and checked options."""

from __future__ import annotations

import difflib
import functools
import inspect
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from .._torch.ground import values
from .._torch.ground.program_hooks import without_torch_function
from ..child.tensors import is_fake
from ..devices import models
from ..errors import UsageError
from ..record.device import DeviceModel
from .environment import device
from .options import (
    CaptureOptions,
    describe_arguments,
    may_change_arguments,
    name_of,
    short,
    signature_of,
)

_CALLS_FORM = "give the arguments of each call as a tuple, or as a dict by name: calls=[(x3,), (x4,)]"


@dataclass(frozen=True)
class Arguments:
    """Positional and keyword arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @without_torch_function
    def tensors(self) -> list[tuple[str, torch.Tensor]]:
        """Return the tensors in the arguments, also within containers, each with the name of its argument."""
        named = [(f"argument {i}", value) for i, value in enumerate(self.args)] + list(self.kwargs.items())
        return [(name, x) for name, value in named for x in values.tensors(value)]


@dataclass(frozen=True)
class Call:
    """Input of one capture: a function, the arguments of one or more calls, and checked options.

    Attributes:
        fn: the callable.
        each: the arguments of each call, at least one.
        options: options of ``capture``.
        model: the device to generate code for; None for the device of the inputs.
    """

    fn: Any
    each: tuple[Arguments, ...]
    options: CaptureOptions
    model: DeviceModel | None = None

    @classmethod
    def read(
        cls,
        fn: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
        options: CaptureOptions | None = None,
        *,
        calls: Sequence[Any] | None = None,
        model: DeviceModel | None = None,
        caller: str = "capture",
    ) -> Call:
        """Return the call that the arguments of a public function describe.

        Args:
            calls: the arguments of several calls, instead of ``args``.
            model: the device to generate code for; None for that of ``options.target``.
            caller: name of the public function, for errors.

        Raises:
            UsageError: an argument is invalid; the message names the value and a valid one.
        """
        check_callable(fn, caller)
        options = options or CaptureOptions()
        each = _each(calls, args, kwargs)
        module = module_of(fn)
        kind = _kind(each[0], module)
        model = model or _model(options.target, kind)
        for number, arguments in enumerate(each):
            try:
                _check(fn, arguments, module, model)
            except UsageError as error:
                if calls is None:
                    raise
                raise UsageError(f"calls[{number}]: {error}") from None
        if model is not None and (options.mode is not None or options.options):
            options.patches()  # report an error in them before anything is sent to another process
        return cls(fn, each, options, model)

    def of(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return this call with another function and arguments, such as copies."""
        return replace(self, fn=fn, each=(Arguments(args, kwargs),))

    @property
    def args(self) -> tuple[Any, ...]:
        """Positional arguments of the first call."""
        return self.each[0].args

    @property
    def kwargs(self) -> dict[str, Any]:
        """Arguments of the first call by name."""
        return self.each[0].kwargs

    @property
    def name(self) -> str:
        """Name of the function."""
        return name_of(self.fn)

    @property
    def kind(self) -> str:
        """Kind of device that the inputs are on, such as ``"cuda"``."""
        return _kind(self.each[0], module_of(self.fn))

    def inputs(self) -> tuple[tuple[str, ...], ...]:
        """Return the descriptions of the arguments, for each call."""
        return tuple(describe_arguments(self.fn, one.args, one.kwargs) for one in self.each)

    @without_torch_function
    def input_bytes(self) -> int:
        """Return the total size in bytes of the tensors in the function and its arguments, each storage counted once.

        Tensors of a function are those in its closure, in globals that it names, and in its defaults, also within
        modules and optimizers.
        """
        roots: list[Any] = [*self.args, *self.kwargs.values()]
        fn = self.fn
        while isinstance(fn, functools.partial):
            roots += [*fn.args, *fn.keywords.values()]
            fn = fn.func
        roots += [fn, getattr(fn, "__self__", None)]
        function = getattr(fn, "__func__", fn)
        if inspect.isfunction(function):
            closure = inspect.getclosurevars(function)
            roots += [*closure.nonlocals.values(), *closure.globals.values(), *(function.__defaults__ or ())]
        storages: dict[int, int] = {}
        for leaf in (x for root in roots for x in values.leaves(root)):
            for tensor in _tensors_of(leaf):
                for one in (tensor, tensor.grad if tensor.is_leaf else None):
                    if one is not None and one.layout is torch.strided:
                        storage = one.untyped_storage()
                        storages[storage._cdata] = storage.nbytes()
        return sum(storages.values())


class NamedArguments(dict[str, Any]):
    """Keyword arguments of the captured function, already separated from the options."""


@without_torch_function
def separate(
    caller: str, own: Sequence[str], fn: Any, args: tuple[Any, ...], keywords: dict[str, Any]
) -> dict[str, Any]:
    """Split the keywords of a public function: return its options, with the keyword arguments of ``fn`` as ``kwargs``.

    A keyword with the name of an option is that option. It is an error if ``fn`` also has a parameter of this name that
    neither a positional argument nor ``kwargs`` fills.

    Args:
        caller: name of the public function, for errors.
        own: names of its options, including ``kwargs``.
        keywords: keyword arguments that it received.

    Raises:
        UsageError: a keyword is neither an option nor an argument of ``fn``, or could be both.
    """
    kwargs = keywords.get("kwargs")
    if isinstance(kwargs, NamedArguments):
        return keywords
    check_callable(fn, caller)
    signature = signature_of(fn)
    options = {name: value for name, value in keywords.items() if name in own}
    named = {name: value for name, value in keywords.items() if name not in own}
    filled: dict[str, Any] = kwargs if kwargs is not None and _is_named(kwargs) else {}
    calls = options.get("calls")
    for name in options:
        if name in _unfilled(fn, signature, args, filled, calls):
            raise UsageError(
                f"{name}={short(options[name])}: {caller} has an option {name}, and no positional argument fills "
                f"the parameter {name} of {_title(fn, signature)}: pass the parameter in kwargs={{{name!r}: …}}, and "
                "the option by its name"
            )
    for name in named:
        if not _takes(signature, name):
            raise UsageError(_unknown(caller, own, name, named[name], _title(fn, signature), signature))
    if kwargs is not None:
        _check_named(kwargs)
        for name in named.keys() & kwargs.keys():
            raise UsageError(f"{name} is given twice, by name and in kwargs: give it once")
    return {**options, "kwargs": NamedArguments({**filled, **named})}


def _title(fn: Any, signature: inspect.Signature | None) -> str:
    """Return the function's name with its parameters, for errors only: finding the name may import more of torch."""
    return name_of(fn) + (_without_annotations(signature) if signature is not None else "(…)")


def _without_annotations(signature: inspect.Signature) -> str:
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))


def _unfilled(
    fn: Any, signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any], calls: Any
) -> set[str]:
    """Return the names of the parameters that can be given by name and are not given in at least one call."""
    if signature is None:
        return set()
    by_name = {
        p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    by_name -= kwargs.keys()
    while isinstance(fn, functools.partial):
        by_name -= fn.keywords.keys()
        fn = fn.func
    each = calls if isinstance(calls, (list, tuple)) else (args,)
    unfilled: set[str] = set()
    for one in each:
        if isinstance(one, dict):
            unfilled |= by_name - one.keys()
        elif isinstance(one, (list, tuple)):
            try:
                unfilled |= by_name - signature.bind_partial(*one).arguments.keys()
            except TypeError:  # too many arguments: reported when the call is checked
                continue
    return unfilled


def _takes(signature: inspect.Signature | None, name: str) -> bool:
    """Return True if a function accepts ``name`` as a keyword, or has no signature."""
    if signature is None:
        return True
    parameter = signature.parameters.get(name)
    if parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        return True
    return any(p.kind == p.VAR_KEYWORD for p in signature.parameters.values())


def _unknown(
    caller: str, own: Sequence[str], name: str, value: Any, title: str, signature: inspect.Signature | None
) -> str:
    parameters = [one for one in (signature.parameters if signature else ()) if _takes(signature, one)]
    close = difflib.get_close_matches(name, [*own, *parameters], 1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return (
        f"{caller} has no argument {name!r} (given {short(value)}); {meant}it has {', '.join(own)}, "
        f"and {title} takes no {name!r}"
    )


class WeakCall:
    """Weak references to a call, so that ``verify`` can repeat it while the caller keeps it alive; strong ones with
    ``keep``."""

    def __init__(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], keep: bool = False) -> None:
        self._kept = (fn, args, kwargs) if keep else None
        self._fn = _weak(fn)
        leaves, self._spec = values.flatten((args, kwargs))
        self._leaves = [_weak(x) if isinstance(x, torch.Tensor) else _Strong(x) for x in leaves]

    def call(self) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
        """Return the function, its arguments and keyword arguments; None if any of them no longer exists."""
        if self._kept is not None:
            return self._kept
        fn = self._fn()
        leaves = [ref() for ref in self._leaves]
        if fn is None:
            return None
        if any(v is None and isinstance(r, weakref.ref) for v, r in zip(leaves, self._leaves)):
            return None
        args, kwargs = values.unflatten(leaves, self._spec)
        return fn, args, kwargs


def check_callable(fn: Any, caller: str) -> None:
    """Raise ``UsageError`` if the first argument of the public function ``caller`` is not callable."""
    if not callable(fn):
        raise UsageError(
            f"{caller} needs a callable first, got {short(fn)} of type {type(fn).__name__}: "
            f"pass the function and then its arguments, {caller}(f, x), not {caller}(f(x))"
        )


def check_fit(fn: Any, args: tuple[Any, ...], kwargs: Any, caller: str) -> None:
    """Raise ``UsageError`` if ``fn`` is not callable, or cannot be called with these arguments.

    Public functions that pass their arguments to ``capture`` call this first, so that the error names them. If
    ``kwargs`` is not a dict, ``capture`` reports it.
    """
    check_callable(fn, caller)
    if kwargs is None or _is_named(kwargs):
        _fit(fn, args, kwargs or {}, caller)


def module_of(fn: Any) -> torch.nn.Module | None:
    """Return the module that is called, or whose method is called; None if there is none."""
    module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    return module if isinstance(module, torch.nn.Module) else None


def _each(calls: Any, args: tuple[Any, ...], kwargs: Any) -> tuple[Arguments, ...]:
    """Return the arguments of each call."""
    if kwargs is not None:
        _check_named(kwargs)
    shared = dict(kwargs or {})
    if calls is None:
        return (Arguments(args, shared),)
    if args:
        raise UsageError(f"capture was given arguments and calls: {_CALLS_FORM}, and pass no other arguments")
    if not isinstance(calls, (list, tuple)):
        raise UsageError(f"calls is a {type(calls).__name__}: {_CALLS_FORM}")
    if not calls:
        raise UsageError(f"calls is empty: {_CALLS_FORM}")
    each = []
    for number, one in enumerate(calls):
        if isinstance(one, dict):
            named = {**shared, **one}
            if not _is_named(named):
                raise UsageError(
                    f"calls[{number}]: kwargs={short(named)} is not a dict of keyword arguments: "
                    "capture(f, x, kwargs={'y': y})"
                )
            each.append(Arguments((), named))
        elif isinstance(one, (list, tuple)):
            each.append(Arguments(tuple(one), dict(shared)))
        else:
            raise UsageError(f"calls[{number}] is {short(one)}: {_CALLS_FORM}")
    return tuple(each)


def _model(target: Any, kind: str) -> DeviceModel | None:
    """Return the device model that a target names; None if there is no target or it is ``kind``, the inputs' device."""
    if target is None:
        return None
    model = models.resolve(target)
    return None if isinstance(target, str) and target == kind else model


@without_torch_function
def _kind(arguments: Arguments, module: torch.nn.Module | None) -> str:
    """Return the kind of device that the tensors are on; ``"cpu"`` only if all are on the CPU."""
    kinds = {tensor.device.type for _, tensor in arguments.tensors()}
    if module is not None:
        kinds |= {parameter.device.type for parameter in module.parameters()}
    others = sorted(kinds - {"cpu"})
    return others[0] if others else "cpu"


@without_torch_function
def _check(fn: Any, arguments: Arguments, module: torch.nn.Module | None, model: DeviceModel | None) -> None:
    """Raise ``UsageError`` if a tensor cannot be captured, or the arguments do not fit the function."""
    tensors = arguments.tensors()
    if module is not None:
        tensors += [*module.named_parameters(), *module.named_buffers()]
    for where, tensor in tensors:
        if model is None or model.device == "cpu":
            if tensor.device.type == "meta" or is_fake(tensor):
                problem = "on device 'meta'" if tensor.device.type == "meta" else "a fake tensor"
                raise UsageError(
                    f"{where} is {problem}, which holds no data: pass a tensor on {device()} "
                    f"(for example torch.rand(…, device={str(device())!r})), or capture for a device, for which "
                    'shapes are enough: target="h100"'
                )
        elif model.device == "mps" and tensor.dtype in (torch.float64, torch.complex128):
            raise UsageError(
                f"{where} is {str(tensor.dtype).removeprefix('torch.')}, and Metal has no float64: {model.title} "
                f"holds no such tensor. Pass it as {'float32' if tensor.is_floating_point() else 'complex64'}"
            )
    _fit(fn, arguments.args, arguments.kwargs, "capture")


@without_torch_function
def _fit(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], caller: str) -> None:
    signature = signature_of(fn)
    if signature is None:  # a builtin without a signature: the call itself reports invalid arguments
        return
    if may_change_arguments(fn):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        raise UsageError(
            f"{name_of(fn)}{signature} cannot be called with {len(args)} positional argument(s)"
            + (f" and {', '.join(kwargs)}" if kwargs else "")
            + f": {error}. Pass its inputs after it: {caller}({name_of(fn)}, …)"
        ) from None


def _check_named(kwargs: Any) -> None:
    if not _is_named(kwargs):
        raise UsageError(
            f"kwargs={short(kwargs)} is not a dict of keyword arguments: capture(f, x, kwargs={{'y': y}})"
        )


def _is_named(kwargs: Any) -> bool:
    return isinstance(kwargs, dict) and all(isinstance(key, str) for key in kwargs)


def _tensors_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, torch.nn.Module):
        return [*value.parameters(), *value.buffers()]
    if isinstance(value, torch.optim.Optimizer):
        return values.tensors((value.param_groups, [*value.state.values()]))
    return []


class _Strong:
    """Strong reference to a value that is not a tensor, with the interface of ``weakref.ref``."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __call__(self) -> Any:
        return self._value


def _weak(value: Any) -> Callable[[], Any]:
    if inspect.ismethod(value):
        return weakref.WeakMethod(value)
    try:
        return weakref.ref(value)
    except TypeError:  # a builtin, which is never freed
        return lambda: value
