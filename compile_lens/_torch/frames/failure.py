"""The error that ended a capture: where in the program it arose, and what the compiler advises."""

from __future__ import annotations

import traceback
from typing import Any

import torch._dynamo.exc as exc
import torch.fx

from ...record.capture import Failure
from ...record.graph import Frame
from ..ground import source_places
from ..ground.recorder import Recorder
from ..ground.source_places import is_internal
from . import eager_lines, graph_breaks, skipped_frames

REFUSED = "The code is written, and {title} refuses this when it runs: {why}"
"""What stands beside an error of the device's (``targets.device_refusals``)."""


def failure(recorder: Recorder, error: Exception) -> Failure:
    """The plain form of what the function or the compiler raised."""
    of_dynamo = isinstance(error, exc.TorchDynamoException)
    stage = recorder.failed_stage or ("dynamo" if of_dynamo else "run")
    inner = getattr(error, "inner_exception", None) or error
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    frames: tuple[Frame, ...] = ()
    hint = link = ""
    if stage == "dynamo":
        why = graph_breaks.cause(error)
        frames, hint, link = why.frames, why.hint, why.link
    elif stage == "run":
        refused = next((r for d in recorder.drafts.values() for r in d.refused if r.error is error), None)
        frames = (refused.frames if refused is not None else ()) or _raised(recorder, error)
        if refused is not None:
            model = recorder.target.model
            hint = REFUSED.format(title="the device" if model is None else model.title, why=refused.why)
    else:
        frames = _lowered(error) or _lowered(inner)
    return Failure(stage, type(inner).__name__, str(inner).strip(), text, frames, hint, link)


def _lowered(error: BaseException) -> tuple[Frame, ...]:
    """The stack of the node that Inductor was lowering, callers first; none where it failed at something else."""
    node = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        # ``GraphLowering.run_node(self, n)``, and the interpreter's own below it.
        known = frame.f_locals.get("n") if frame.f_code.co_name == "run_node" else None
        node = known if isinstance(known, torch.fx.Node) else node
    return source_places.frames(node.meta.get("stack_trace")) if node is not None else ()


def _raised(recorder: Recorder, error: Exception) -> tuple[Frame, ...]:
    """The stack of the program where it raised, callers first, without what is torch's or of the library."""
    found: list[tuple[traceback.FrameSummary, Any]] = []
    for summary, (frame, _) in zip(
        traceback.extract_tb(error.__traceback__), traceback.walk_tb(error.__traceback__), strict=True
    ):
        if is_internal(summary.filename) or skipped_frames.is_foreign(summary.filename):
            continue
        if eager_lines.is_resume(frame.f_code) and found:  # what called it is the part before the break
            before = eager_lines.plain(found[-1][0].name)
            if before == eager_lines.plain(summary.name) and found[-1][0].filename == summary.filename:
                found.pop()
        found.append((summary, frame.f_code))
    frames = graph_breaks.stack(summary for summary, _ in found)
    if frames and frames[-1].line == found[-1][1].co_firstlineno:
        # Code that Dynamo made for what stands after a break has no lines: the break before it is the place.
        last = frames[-1]
        ends = [d.ending.frames for d in recorder.drafts.values() if d.ending is not None and d.ending.frames]
        ends = [e for e in ends if (e[0].file, e[0].function) == (last.file, last.function)]
        frames = (*frames[:-1], ends[-1][0]) if ends else frames  # the rest is what Dynamo looked into there
    return frames
