"""One capture in this process: run a session and record what it observed."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..record.breaks import CapturedCall
from ..record.device import Target
from ..results.capture import Capture, CaptureError
from .call import Call, WeakCall
from .environment import environment, settings
from .machine_code import machine_code
from .record import recorded
from .sources import run_early

if TYPE_CHECKING:
    from .._torch.ground.recorder import Draft
    from .._torch.session import Outcome


ASYNC_HINT = (
    "{names}: an async function, whose body Dynamo ran where it is called. What awaits it got its result in place of a "
    "coroutine: torch.compile does that, Python does not. Mark the function that awaits it with "
    "torch.compiler.disable, and compile what it calls."
)
"""Hint for an error in a program where Dynamo ran the body of an async function at its call."""


def perform(
    call: Call, early: Callable[[Callable[[], Capture]], None] | None = None, **more: Any
) -> tuple[Capture, Outcome]:
    """Run one session and return its record and its outcome.

    Args:
        early: called each time a graph of the call is about to be lowered, with a function that returns the record of
            what was traced so far.
        more: other fields of the session's ``Request``.

    Raises:
        UsageError: ``backward=True``, but nothing is differentiable.
        CaptureError: the function raised, or a stage of the compiler rejected it.
    """
    from .._torch import session

    before = settings()
    later = tuple((one.args, one.kwargs) for one in call.each[1:])
    if early is not None:
        more["traced"] = lambda recorder, draft: early(
            lambda: _record(call, session.Outcome(recorder), before, lowering=draft)
        )
    request = call.options.request(model=call.model, later=later, **more)
    outcome = session.run(call.fn, call.args, call.kwargs, request)
    capture = _record(call, outcome, before)
    if call.options.build and call.model is not None:
        capture = machine_code(capture)
    if not capture.calls:
        object.__setattr__(
            capture, "_live", WeakCall(call.fn, call.args, call.kwargs, call.options.keep_inputs)
        )
    if outcome.error is not None:
        assert outcome.failure is not None
        raise CaptureError(_message(capture), capture) from outcome.error
    if call.options.backward is True and not any("backward" in c.graphs for c in capture.compilations):
        raise UsageError(
            f"backward=True, but nothing in {capture.function} is differentiable: no output depends on a tensor "
            'with requires_grad=True. Pass such an input, or backward="auto" to skip it'
        )
    return capture, outcome


def _record(
    call: Call, outcome: Outcome, before: tuple[tuple[str, str], ...], lowering: Draft | None = None
) -> Capture:
    """Return the record of a session. ``before`` are torch's settings at the time of the call. If ``lowering`` is
    given, compilation is still running and the record holds only what was traced so far."""
    recorder = outcome.recorder
    session_target = recorder.target
    options = call.options.to_record()
    inputs = call.inputs()
    capture = recorded(
        recorder,
        call.name,
        environment(call.kind, session_target.isa, call.model, before),
        options,
        lowering=lowering,
        inputs=inputs[0],
        calls=tuple(
            CapturedCall(given, tuple(seen.compiled), tuple(seen.ran), tuple(seen.skipped))
            for given, seen in zip(inputs, recorder.frames.calls)
        ),
        nothing_compiled=outcome.nothing,
        failure=outcome.failure,
        target=None
        if call.model is None
        else Target(
            options.target,
            call.model,
            "",
            session_target.may_differ,
            session_target.queries,
            tracing=session_target.traced,
            resident_bytes=call.input_bytes(),
        ),
    )
    failure = capture.failure
    if failure is None or failure.stage != "run":
        return capture
    early = run_early(capture.sources, capture.compilations)
    if not early:
        return capture
    return dataclasses.replace(
        capture, failure=dataclasses.replace(failure, hint=ASYNC_HINT.format(names=", ".join(early)))
    )


_MISSING_BACKEND = r"Could not run 'aten::\w+[^']*' with arguments from the '(CUDA|MPS)' backend"
"""Torch's message when untraced code, such as another thread, creates a tensor on a device that this build lacks."""

_MISSING_DRIVER = (
    r"requires CUDA support|dummy base class|not compiled with CUDA|without CUDA support|without ATen_cuda library|"
    r"has no attribute '_cuda_|_pin_memory|PyTorch is not linked with support for (cuda|mps)|"
    r"Found no NVIDIA driver"
)
"""Torch's messages when a stream, an event, a graph or a generator is created for a device that this build of torch or
this machine lacks."""


def _message(capture: Capture) -> str:
    from .. import versions
    from ..record import messages
    from ..views.words.failed_line import marked, own_frames
    from ..views.words.failed_line import where as place
    from ..views.words.labels import without_folders
    from ..views.words.outcome import raised

    failure = capture.failure
    assert failure is not None
    next_step = ""
    if capture.target is not None and re.search(r"ModuleNotFoundError: .*\btriton\b", failure.message):
        next_step = (
            f"\nInductor generates it from a template and needs Triton for that: {versions.triton_command()}"
        )
    if (
        capture.target is not None
        and capture.target.model.device == "mps"
        and "torch.float64" in failure.message
    ):
        next_step = "\nMetal has no float64: compute in float32 where the target is an Apple GPU"
    if (
        capture.target is not None
        and capture.target.model.device == "mps"
        and "torch.float8_" in failure.message
    ):
        next_step = (
            "\nInductor generates no Metal with float8: compute in float16 or float32 for an Apple GPU"
        )
    if capture.target is not None and re.search(_MISSING_BACKEND, failure.message):
        next_step = (
            f"\nUntraced Python created a tensor on {capture.target.model.device}, which this machine lacks. "
            "Create it inside traced code: `torch.ones(8, device=x.device)`"
        )
    elif (
        capture.target is not None
        and re.search(_MISSING_DRIVER, failure.message)
        and not (
            capture.target.model.device == "mps" and "CUDA" in failure.message
        )  # torch on a Mac lacks CUDA too
    ):
        next_step = (
            f"\nOn {capture.target.model.title} the driver creates this, and nothing here stands in for the driver: "
            "capture code that works without it"
        )
    if capture.target is not None and os.path.join("graphs", "cpu_execution.py") in failure.traceback:
        next_step += (
            "\nThe captured graph ran on the CPU, operator by operator: "
            f"whether {capture.target.model.title} raises this too is not known here"
        )
    seen = [key for c in capture.compilations for key in c.graphs]
    # Of several requested calls, ``capture.calls`` has those that started; the last one failed.
    which = (
        f" in calls[{len(capture.calls) - 1}] ({', '.join(capture.calls[-1].inputs)})"
        if capture.calls
        else ""
    )
    where = "while it ran" if failure.stage == "run" else f"in stage {failure.stage}"
    own = own_frames(failure)
    lines = [f"  {line}" for f in own[-1:] for line in marked(f) if line]
    reported = f"{failure.type}: {without_folders(messages.summary(failure.message))}"
    operator = without_folders(raised(failure))  # an operator's exception may be below the first line
    lines += [operator] if operator not in reported else []
    lines += [f"{reported}{next_step}"]
    lines += [f"  hint: {hint}" for hint in without_folders(failure.hint).splitlines()]
    lines += [f"  more: {failure.link}"] if failure.link else []
    return "\n".join(
        (
            f"{capture.function} failed{which} {where}" + "".join(f" at {place(f)}" for f in own[-1:]),
            *lines,
            f"(error.capture holds what was seen until then: {', '.join(dict.fromkeys(seen)) or 'no stage'})",
        )
    )
