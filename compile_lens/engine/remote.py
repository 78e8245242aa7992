"""Captures for an absent device in a child process, and the choice between this process and a child."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import torch

from ..errors import UsageError
from ..record.device import DeviceModel, DeviceQuery
from ..results.capture import Capture, CaptureError
from . import remote
from .call import Call, WeakCall
from .entry import FIRST, GROUP, WITHIN
from .local import perform
from .record import in_cells

IN_THIS_PROCESS = "in this process, with everything put back"


def capture(call: Call) -> Capture:
    """Return the capture of a call for the device of ``call.model``.

    Raises:
        UsageError: the call needs a child process but cannot be sent, or this torch cannot have a stand-in for the
            device.
        CaptureError: the function raised, or a stage of the compiler rejected it.
        ChildError: the child process ended.
    """
    from .._torch.frames import code_copies
    from ..child import pickling, process
    from ..errors import ChildError

    model = call.model
    assert model is not None
    call = dataclasses.replace(call, fn=code_copies.compiled_module(call.fn))
    try:
        captured, how = _in_child(call)
    except pickling.CannotCross as error:
        if model.device != "cpu":
            how = "" if error.has_advice else ": make what it uses picklable, or pass it as an argument"
            reason = " ".join(str(error).split())  # one line, since errors show only the first
            raise UsageError(
                f"{call.name} cannot be sent to the child process ({reason}), and this process has no stand-in for a "
                f"GPU{how}"
            ) from None
        captured = perform(call)[0]
        how = f"{IN_THIS_PROCESS}: it could not be sent to a child process ({error})"
    except CaptureError as error:
        placed = CaptureError(str(error), _finished(error.capture, "in a child process"))
        raise placed from error.__cause__
    except ChildError as error:
        process.close()
        if error.code is not None and error.code < 0 and (reason := _stand_in_failure(model)):
            raise UsageError(reason) from error
        raise
    captured = _finished(captured, how)
    if len(call.each) == 1:
        object.__setattr__(
            captured, "_live", WeakCall(call.fn, call.args, call.kwargs, call.options.keep_inputs)
        )
    return captured


def in_child(
    served: str, model: DeviceModel, left: Any, *given: Any
) -> tuple[Any, tuple[DeviceQuery, ...], Any]:
    """Run ``served`` in a child that traces for ``model``. Return its value; reports on objects that it used but that
    could not be sent; and the parcel of the arguments. This process's registrations with torch are repeated there, as
    are its settings that are functions (``left``)."""
    from .._torch.operators.custom_operators import OperatorTransfer
    from .._torch.targets import ambient_state
    from ..child import process

    with ambient_state.without_modes():  # such as one that rejects tensors with data
        (value, met), parcel = process.call(
            served,
            *given,
            first=FIRST,
            failed=CaptureError.of,
            within=WITHIN.get(model.device, ""),
            group=GROUP,
            make_sender=functools.partial(OperatorTransfer, settings=left, tables=tables()),
        )
    kept = [one for one in parcel.left if one.watch is None or one.where in met]
    return value, (*ambient_state.process_state(), *map(_as_imported, kept)), parcel


def _in_child(call: Call) -> tuple[Capture, str]:
    from .._torch.frames import code_copies
    from .._torch.targets import ambient_state, torch_settings
    from ..child.context import process_group
    from ..record import codec  # imported while the child starts, not after its reply

    assert call.model is not None
    settings, left = torch_settings.snapshot()
    compiled = code_copies.compiled_notes(call.fn)
    text, kept, parcel = in_child(
        "compile_lens.engine.remote:serve", call.model, left, call, settings, compiled
    )
    how = "in a child process; this one was not touched, and the function was not called here"
    if parcel.shapes_only:
        how += (
            f"; {parcel.shapes_only} large tensor{'s' * (parcel.shapes_only > 1)} sent as shapes only, with other "
            "values: a branch on such a value may go another way"
        )
    around = (*ambient_state.autocast_region(), *kept)
    captured = codec.from_json(text, Capture)
    if captured.target is not None and process_group() is not None:
        differs = (*captured.target.may_differ, _SINGLE_RANK)
        captured = dataclasses.replace(
            captured, target=dataclasses.replace(captured.target, may_differ=differs)
        )
    if captured.target is not None and around:
        target = dataclasses.replace(captured.target, queries=(*around, *captured.target.queries))
        captured = dataclasses.replace(captured, target=target)
    return in_cells(captured), how  # the child has no notebook


_SINGLE_RANK = (
    "the program's process group has no other processes here: "
    "collectives return at once, with this rank's values"
)


def tables() -> Any:
    """Return Inductor's original tables, read in a child; None if this program cannot have changed its own."""
    from .._torch.operators import inductor_tables
    from ..child import process

    if not _tables and inductor_tables.may_be_changed():
        _tables.append(
            process.call("compile_lens._torch.operators.inductor_tables:torch_entries", first=FIRST)[0]
        )
    return _tables[0] if _tables else None


_tables: list[Any] = []


def _as_imported(piece: Any) -> DeviceQuery:
    """Return the report on an object of the program that was not sent, with the line that names it or requested the
    capture."""
    from .._torch.targets import device_queries

    file, line, function = piece.line
    there = "torch does not know it" if piece.is_registration else "it is what importing its module makes it"
    reason = f"a {piece.kind} that cannot be sent to another process: there {there}"
    line_running = None if file else device_queries.running_line()
    return DeviceQuery(
        piece.where,
        reason,
        line_running or device_queries.frame_at(file, line, function),
        kind="not transferred",
    )


def _stand_in_failure(model: DeviceModel) -> str:
    """Return why this torch cannot have a stand-in for the device, which would crash the process; ``""`` if it can."""
    from ..child import process
    from ..errors import ChildError

    try:
        process.call("compile_lens._torch.targets.accelerator:probe", model.device, first=FIRST)
    except ChildError as error:
        process.close()
        return (
            f"this build of torch ({torch.__version__}) cannot be given a stand-in for {model.device} ({error}): "
            "capture on a machine with that device, or with torch's wheel for Linux"
        )
    return ""


def serve(call: Call, settings: dict[str, Any], compiled: tuple[str, ...]) -> tuple[str, list[str]]:
    """Return the capture as JSON, and the watched places that it used. Runs in the child.

    ``compiled`` are notes on modules that were compiled in place, which pickling loses.
    """
    from .._torch.operators import custom_operators, transfers
    from .._torch.targets import torch_settings

    transfers.requested()  # clears those of an unanswered request
    with torch_settings.restored(settings):
        captured = perform(call, compiled=compiled)[0]
    custom_operators.check_order()
    return captured.to_json(), transfers.requested()


def _finished(made: Capture, how: str) -> Capture:
    """Return the capture with a note on where it ran."""
    if made.target is None:
        return made
    return dataclasses.replace(made, target=dataclasses.replace(made.target, transfer=how))


def dispatch(call: Call) -> Capture:
    """Return the capture of a call, made in this process, or in a child process if it is for an absent device.

    Raises:
        UsageError, CaptureError: as ``compile_lens.capture``.
    """
    if call.model is not None:
        return remote.capture(call)
    return perform(call, launch_backward=call.options.backward is not False)[0]
