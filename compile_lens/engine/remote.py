"""Captures for a device that is not in the machine, in a child process."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import torch

from ..devices import models
from ..errors import UsageError
from ..record.device import DeviceModel, Question
from ..results.capture import Capture, CaptureError
from .cells import in_cells
from .entry import FIRST, WITHIN
from .environment import target_of
from .inputs import Live, name_of
from .perform import perform
from .request import Arguments, Asked, check, in_turn, patches

HERE = "in this process, with everything put back"


def needed(target: Any, kind: str) -> DeviceModel | None:
    """The device model that a target asks for; ``None`` where the device of the inputs, ``kind``, is meant.

    Raises ``UsageError`` for a target that is not known.
    """
    if target is None:
        return None
    model = models.resolve(target)
    if isinstance(target, str) and target == kind:
        return None
    return model


def capture(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    model: DeviceModel,
    later: tuple[Arguments, ...] = (),
) -> Capture:
    """As ``compile_lens.capture``, for the device of ``model``."""
    from .._torch.frames import own_code
    from ..child import crossing, process
    from ..errors import ChildError

    fn = own_code.itself(fn)
    try:
        made, how = _in_child(fn, args, kwargs, asked, model, later)
    except crossing.CannotCross as error:
        if model.device != "cpu":
            how = "" if error.said_how else ": make what it uses picklable, or pass it as an argument"
            raise UsageError(
                f"{name_of(fn)} cannot be sent to the child process ({error}), and in this one nothing stands for a "
                f"GPU{how}"
            ) from None
        made = perform(fn, args, kwargs, asked, model=model, later=later)[0]
        how = f"{HERE}: it could not be sent to a child process ({error})"
    except CaptureError as error:
        said = CaptureError(str(error), _finished(error.capture, "in a child process"))
        raise said from error.__cause__
    except ChildError as error:
        process.close()
        if error.code is not None and error.code < 0 and (reason := _unfit(model)):
            raise UsageError(reason) from error
        raise
    made = _finished(made, how)
    if not later:
        object.__setattr__(made, "_live", Live(fn, args, kwargs))
    return made


def in_child(
    served: str, model: DeviceModel, left: Any, *given: Any
) -> tuple[Any, tuple[Question, ...], Any]:
    """What ``served`` gives in a child that traces as for ``model``, beside what it met of the places that are watched
    there; what did not go along and matters; and the parcel in which its arguments went. Torch is told there what it
    was told here, with the functions among its settings (``left``)."""
    from .._torch.operators.carried import Carried
    from .._torch.targets import set_around
    from ..child import process

    with set_around.without_modes():  # such as one that takes no tensor with data
        (value, met), parcel = process.call(
            served,
            *given,
            first=FIRST,
            failed=CaptureError.of,
            within=WITHIN.get(model.device, ""),
            along=functools.partial(Carried, settings=left, tables=tables()),
        )
    kept = [one for one in parcel.left if one.watch is None or one.where in met]
    return value, (*set_around.found(), *map(_as_imported, kept)), parcel


def _in_child(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    model: DeviceModel,
    later: tuple[Arguments, ...],
) -> tuple[Capture, str]:
    from .._torch.frames import own_code
    from .._torch.targets import carried_settings, region_around
    from ..record import codec as codec  # while the child gets ready, not when it has answered

    settings, left = carried_settings.taken()
    given = fn, args, kwargs, asked, model, settings, later, own_code.compiled_before(fn)
    text, kept, parcel = in_child("compile_lens.engine.remote:serve", model, left, *given)
    how = "in a child process; this one was not touched, and the function was not called here"
    if parcel.shapes_only:
        how += (
            f"; {parcel.shapes_only} large tensor{'s' * (parcel.shapes_only > 1)} crossed as shapes, with other "
            "values: a branch on a value of theirs may go another way"
        )
    around = (*region_around.found(), *kept)
    made = Capture.from_json(text)
    if made.target is not None and around:
        target = dataclasses.replace(made.target, questions=(*around, *made.target.questions))
        made = dataclasses.replace(made, target=target)
    return in_cells(made), how  # the child knows no notebook


def tables() -> Any:
    """What Inductor's tables hold where the program put nothing into them; ``None`` where they were not loaded here."""
    from .._torch.operators import inductors_tables
    from ..child import process

    if not _tables and inductors_tables.used():
        _tables.append(process.call("compile_lens._torch.operators.inductors_tables:own", first=FIRST)[0])
    return _tables[0] if _tables else None


_tables: list[Any] = []


def _as_imported(piece: Any) -> Question:
    """What of the program did not go along, with the line that names it, or that asked for the capture."""
    from .._torch.targets import questions

    file, line, function = piece.line
    there = "torch is not told of it" if piece.told else "it is what importing its module makes it"
    said = f"a {piece.kind} that cannot be sent to another process: there {there}"
    asked = None if file else questions.line_running()
    return Question(piece.where, said, asked or questions.frame_at(file, line, function), kind="kept")


def _unfit(model: DeviceModel) -> str:
    """Why torch cannot be told of the device: what stands for it ends a process at once. ``""`` if it does not."""
    from ..child import process
    from ..errors import ChildError

    try:
        process.call("compile_lens._torch.targets.accelerator:probe", model.device, first=FIRST)
    except ChildError as error:
        process.close()
        return (
            f"this build of torch ({torch.__version__}) cannot be told that it has {model.device} ({error}): "
            "capture on a machine with that device, or with torch's wheel for Linux"
        )
    return ""


def serve(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    model: DeviceModel,
    settings: dict[str, Any],
    later: tuple[Arguments, ...],
    compiled: tuple[str, ...],
) -> tuple[str, list[str]]:
    """What the child does: a capture, as JSON, and what of the places that are watched there it met. ``compiled`` are
    notes of modules that were compiled in place, which they lose when they cross."""
    from .._torch.operators import carried, watched
    from .._torch.targets import carried_settings

    watched.met()  # also of a request that was not answered
    with carried_settings.placed(settings):
        made = perform(fn, args, kwargs, asked, model=model, later=later, compiled=compiled)[0]
    carried.in_order()
    return made.to_json(), watched.met()


def _finished(made: Capture, how: str) -> Capture:
    """The capture, which says now where it ran."""
    if made.target is None:
        return made
    return dataclasses.replace(made, target=dataclasses.replace(made.target, crossing=how))


def captured(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    asked: Asked,
    calls: Sequence[Any] | None = None,
) -> Capture:
    """In this process, or elsewhere if it is for a device that is not the one of the inputs.

    ``calls`` are the arguments of several calls, where there are no ``args``.
    """
    args, kwargs, later = in_turn(calls, args, kwargs)
    given = dict(kwargs) if isinstance(kwargs, dict) else {}
    model = needed(asked.target, target_of(args, given, fn))
    keywords = check(fn, args, kwargs, model) if calls is None else {}
    for number, (more, by_name) in enumerate([(args, kwargs), *later] if calls is not None else ()):
        try:
            named = check(fn, more, by_name, model)
        except UsageError as error:
            raise UsageError(f"calls[{number}]: {error}") from None
        keywords = keywords if number else named
    if model is not None:
        if asked.mode is not None or asked.options:  # what is wrong with them is said before anything crosses
            patches(asked.mode, asked.options, asked.dynamic)
        return capture(fn, args, keywords, asked, model, later)
    return perform(fn, args, keywords, asked, launch_backward=asked.backward is not False, later=later)[0]
