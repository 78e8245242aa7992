"""One capture in this process: a session, its record, and what else it left."""

from __future__ import annotations

import dataclasses
import datetime
import re
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..record.capture import Options
from ..record.device import DeviceModel, Target
from ..results.capture import Capture, CaptureError
from .entry import outside_dynamo
from .environment import environment, target_of
from .inputs import Live, describe_all, name_of
from .machine_code import machine_code
from .request import Asked, check
from .sources import run_early, with_inlined

if TYPE_CHECKING:
    from .._torch.session import Outcome


AWAITED = (
    "{names}: an async function, whose body Dynamo ran where it is called. What awaits it got its result in place of a "
    "coroutine: torch.compile does that, Python does not. Mark the function that awaits it with "
    "torch.compiler.disable, and compile what it calls."
)
"""What stands beside an error where that happened."""


@outside_dynamo
def run(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    build: bool = False,
) -> tuple[Capture, Any]:
    """As ``capture``, and what the one call of ``fn`` returned.

    The backward is compiled but not launched, so that the caller can start it from the result.
    """
    asked = Asked(backward, dynamic, mode, options, fullgraph, build)
    made, outcome = perform(fn, args, kwargs, asked)
    return made, outcome.result


def perform(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, asked: Asked, **more: Any
) -> tuple[Capture, Outcome]:
    """One session, its record, and what else it left. ``more`` are fields of the session's ``Request``."""
    from .._torch import session

    keywords = check(fn, args, kwargs)
    outcome = session.run(fn, args, keywords, asked.request(**more))
    made = _record(fn, args, keywords, asked.recorded(), outcome, more.get("model"))
    if asked.build and more.get("model") is not None:
        made = machine_code(made)
    object.__setattr__(made, "_live", Live(fn, args, keywords))
    if outcome.error is not None:
        assert outcome.failure is not None
        raise CaptureError(_say(made), made) from outcome.error
    if asked.backward is True and not any("backward" in c.graphs for c in made.compilations):
        raise UsageError(
            f"backward=True, but nothing in {made.function} is differentiable: no output depends on a tensor "
            'with requires_grad=True. Pass such an input, or backward="auto" to skip it'
        )
    return made, outcome


def _record(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Options,
    outcome: Any,
    model: DeviceModel | None,
) -> Capture:
    from .. import versions

    recorder = outcome.recorder
    recorder.note(versions.note())
    compilations, timings = recorder.finish()
    sources = with_inlined(recorder.sources.values(), compilations)
    failure = outcome.failure
    if failure is not None and failure.stage == "run" and (early := run_early(sources, compilations)):
        failure = dataclasses.replace(failure, hint=AWAITED.format(names=", ".join(early)))
    return Capture(
        function=name_of(fn),
        environment=environment(target_of(args, kwargs, fn), recorder.isa, model),
        options=asked,
        inputs=tuple(describe_all(fn, args, kwargs)),
        sources=sources,
        compilations=compilations,
        timings=timings,
        nothing=outcome.nothing,
        failure=failure,
        notes=tuple(recorder.notes),
        created=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        skipped=recorder.left_to_python(),
        target=None
        if model is None
        else Target(asked.target, model, "", recorder.may_differ, recorder.questions),
    )


def _say(made: Capture) -> str:
    from .. import versions
    from .._torch.frames import dynamo

    failure = made.failure
    assert failure is not None
    next_step = ""
    if made.target is not None and re.search(r"ModuleNotFoundError: .*\btriton\b", failure.message):
        next_step = (
            f"\nInductor writes it from a template and needs Triton for that: {versions.triton_command()}"
        )
    seen = [key for c in made.compilations for key in c.graphs]
    where = "while it ran" if failure.stage == "run" else f"in stage {failure.stage}"
    lines = [f"  at {f.file}:{f.line} in {f.function}: {f.text}".rstrip(": ") for f in failure.frames[-1:]]
    lines += [f"  hint: {hint}" for hint in failure.hint.splitlines()]
    lines += [f"  more: {failure.link}"] if failure.link else []
    return "\n".join(
        (
            f"{made.function} failed {where}: {failure.type}: {dynamo.gist(failure.message)}{next_step}",
            *lines,
            f"(error.capture holds what was seen until then: {', '.join(dict.fromkeys(seen)) or 'no stage'})",
        )
    )
