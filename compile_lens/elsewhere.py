"""Captures for a device that is not in the machine: in a child process, or here where nothing else works."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from . import device_models
from .device_model import DeviceModel
from .errors import CaptureError, UsageError
from .inputs import Live, name_of, tensors
from .record import Capture, Code, Kernel

if TYPE_CHECKING:
    from .capture import Asked

HERE = "in this process, with everything put back"


def needed(target: Any, kind: str) -> DeviceModel | None:
    """The device model that a target asks for; ``None`` where the device of the inputs, ``kind``, is meant.

    Raises ``UsageError`` for a target that is not known.
    """
    if target is None:
        return None
    model = device_models.resolve(target)
    if isinstance(target, str) and target == kind:
        return None
    return model


def capture(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Asked, model: DeviceModel
) -> Capture:
    """As ``compile_lens.capture``, for the device of ``model``."""
    from .child import crossing, process

    try:
        made, how = _in_child(fn, args, kwargs, asked, model)
    except crossing.CannotCross as error:
        made, how = _here(fn, args, kwargs, asked, model, str(error))
    except CaptureError as error:
        said = CaptureError(str(error), _finished(error.capture, "in a child process"))
        raise said from error.__cause__
    except process.ChildError:
        process.close()
        raise
    made = _finished(made, how)
    object.__setattr__(made, "_live", Live(fn, args, kwargs))
    return made


def _in_child(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], asked: Asked, model: DeviceModel
) -> tuple[Capture, str]:
    from ._torch.targets import ambient
    from .child import process

    settings, left = ambient.taken()
    text, parcel = process.call("compile_lens.elsewhere:serve", fn, args, kwargs, asked, model, settings)
    how = "in a child process; this one was not touched, and the function was not called here"
    if parcel.shapes_only:
        how += (
            f"; {parcel.shapes_only} large tensor{'s' * (parcel.shapes_only > 1)} crossed as shapes, with other "
            "values: a branch on a value of theirs may go another way"
        )
    if left:
        how += f"; these settings are functions and did not cross: {', '.join(left)}"
    return Capture.from_json(text), how


def serve(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    model: DeviceModel,
    settings: dict[str, Any],
) -> str:
    """What the child does: a capture, as JSON."""
    from ._torch.targets import ambient
    from .capture import perform

    with ambient.placed(settings):
        return perform(fn, args, kwargs, asked, model=model)[0].to_json()


def _here(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    model: DeviceModel,
    reason: str,
) -> tuple[Capture, str]:
    from .capture import perform

    elsewhere = [f"{where} ({t.device})" for where, t in tensors(args, kwargs) if t.device.type != "cpu"]
    if torch.cuda.is_available() or elsewhere:
        # A stand-in for a device that other threads may be using would change what they see.
        raise UsageError(
            f"{name_of(fn)} cannot be sent to the child process ({reason}), and beside a real GPU it is not captured "
            f"for {model.name} in this one: make what it uses picklable, or pass it as an argument"
        )
    made = perform(fn, args, kwargs, asked, model=model)[0]
    return made, f"{HERE}: it could not be sent to a child process ({reason})"


def _finished(made: Capture, how: str) -> Capture:
    """The capture, which says now where it ran."""
    if made.target is None:
        return made
    return dataclasses.replace(made, target=dataclasses.replace(made.target, crossing=how))


def machine_code(made: Capture) -> Capture:
    """The capture with its kernels compiled, as far as a compiler for them is here. No kernel is run."""
    target = made.target
    assert target is not None
    if target.model.device == "cuda":
        from . import _triton

        return _with_code(made, lambda code: _triton.build(code, target.model))
    if target.model.device == "cpu":
        from ._torch import cpu_compiler

        return _with_code(
            made, lambda code: _built(code, cpu_compiler.compiled(code.kernels, target.model.arch))
        )
    return _with_code(made, lambda code: _built(code, _noted(code.kernels)))


def _noted(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    reason = "Metal's compiler comes with macOS: nothing here compiles it"
    return tuple(
        k if k.language == "extern" else dataclasses.replace(k, machine_note=reason) for k in kernels
    )


def _built(code: Code, kernels: tuple[Kernel, ...]) -> Code:
    own = [k for k in kernels if k.language != "extern"]
    done = bool(own) and all(k.machine is not None for k in own)
    return dataclasses.replace(code, kernels=kernels, stamp="built" if done else code.stamp)


def _with_code(made: Capture, change: Callable[[Code], Code]) -> Capture:
    compilations = tuple(
        dataclasses.replace(c, stages=tuple(change(s) if isinstance(s, Code) else s for s in c.stages))
        for c in made.compilations
    )
    return dataclasses.replace(made, compilations=compilations)
