"""Graph breaks with the reason and place that Dynamo logs.

The backend only receives a short text and the line where the graph ends. The text has no cause for a break that Dynamo
cannot resume from (``step_unsupported``) or a branch on a tensor (``generic_jump``). The exception that Dynamo logs has
both.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ...record import claims, messages
from ...record.breaks import BREAK, REST, Ending, Skip
from ...record.graph import Frame
from ...record.remedies import CAPTURE_SCALARS
from ..graphs import fx
from ..ground import source_text
from ..ground.hooks import free_hook
from ..ground.recorder import Recorder
from ..ground.recorder_state import LoggedBreak
from ..ground.source_places import is_entry, is_internal, is_torch_file
from . import dynamo, eager_lines, number_branches, own_calls, parameters

_PLACEHOLDERS = {
    "step_unsupported": "a graph break that Dynamo could not resume from, so that it compiled no more of the "
    "function (Dynamo does not tell the backend which)",
    "generic_jump": "a branch on the value of a tensor (Dynamo does not tell the backend more)",
}


@free_hook(
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break", claims.BREAKS, claims.SKIPS
)
def log_graph_break(
    real: Any, translator: Any, code_options: Any, reason: str, exc: Any, *args: Any, **kwargs: Any
) -> Any:
    """Record the reason of a graph break that Dynamo logs, for use when its graph is complete."""
    recorder = dynamo.recorder_around(translator)
    if recorder is not None and not getattr(exc, "logged", False):
        recorder.frames.current.logged = LoggedBreak(
            cause(exc), not str(reason).startswith(messages.CANNOT_RESUME)
        )
    return real(translator, code_options, reason, exc, *args, **kwargs)


@free_hook(
    "torch._dynamo.output_graph:OutputGraph.compile_subgraph", claims.BREAKS, claims.SKIPS, claims.RECOMPILES
)
def compile_subgraph(real: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
    """Record why a frame's graph ends, and which lines run eagerly after it."""
    recorder = dynamo.recorder_of(getattr(output, "compiler_fn", None))
    if recorder is None:
        return real(output, *args, **kwargs)
    code = getattr(getattr(output, "root_tx", None), "f_code", None)
    draft = dynamo.current_draft(recorder, code)
    reason = next((a for a in (*args, *kwargs.values()) if type(a).__name__ == "GraphCompileReason"), None)
    draft.ending = ending(reason)
    draft.recompile_reasons = list(recorder.frames.current.failed_guards)
    draft.resume_skip = None
    logged = recorder.frames.current.logged
    if logged is not None and reason is not None and reason.graph_break:
        draft.ending = logged.ending
        if not logged.resumes and code is not None:
            draft.resume_skip = _resume_skip(recorder, draft.id, code, output, logged.ending)
    dynamo.keep_source(recorder, code)
    draft.parameters = tuple(parameters.names(output).items())
    return real(output, *args, **kwargs)


def _resume_skip(recorder: Recorder, compilation: str, code: Any, output: Any, why: Ending) -> Skip:
    instruction = getattr(getattr(output, "root_tx", None), "current_instruction", None)
    offset = getattr(instruction, "offset", None)
    return Skip(
        REST,
        eager_lines.plain_name(code.co_name),
        code.co_filename,
        dynamo.first_line(recorder, code),
        why,
        eager_lines.lines(code, offset) if offset is not None else (),
        messages.SKIPPED_REST,
        compilation,
    )


def ending(reason: Any) -> Ending | None:
    """Return the end of a graph from Dynamo's ``GraphCompileReason``, which is all that a backend receives."""
    if reason is None:
        return None
    frames = stack(reason.user_stack)
    if not reason.graph_break:
        return Ending("return", frames=frames)
    text = str(reason.reason).strip()
    placeholder = next(
        (replacement for word, replacement in _PLACEHOLDERS.items() if text.startswith(word)), ""
    )
    return _with_branch(messages.ending(placeholder or text, frames))


def becomes_break(error: BaseException, translator: Any) -> bool:
    """Return True if Dynamo turns a backend error into a graph break: one for an operator with a data-dependent result,
    unless the program requires one graph or uses ``allow_in_graph``."""
    if not isinstance(error, getattr(torch._dynamo.exc, "exceptions_allowed_to_be_fallback", ())):
        return False
    output = getattr(translator, "output", None)
    whole = getattr(translator, "one_graph", False) or getattr(translator, "error_on_graph_break", False)
    return not whole and not getattr(output, "has_user_defined_allowed_in_graph", False)


def cause(error: Any, kind: str = BREAK) -> Ending:
    """Return why Dynamo gave up, from its exception: the break itself, not an error while handling it."""
    summaries = getattr(error, "real_stack", None)
    if not summaries:
        summaries = (
            torch._guards.TracingContext.extract_stack() if torch._guards.TracingContext.try_get() else ()
        )
    ended = messages.ending(str(error), stack(summaries), kind)
    last = next(reversed(list(summaries)), None)
    ours = own_calls.is_break(str(error)) or (last is not None and is_entry(last.filename))
    if ours:
        return dataclasses.replace(ended, hint=own_calls.HINT)
    return _with_branch(ended)


def _with_branch(ended: Ending) -> Ending:
    """Return the ending with the place that branches on the number read there, if it is known."""
    if CAPTURE_SCALARS not in ended.hint:
        return ended
    return dataclasses.replace(ended, branch=number_branches.of_frames(ended.frames, _callers()))


def _callers() -> Iterator[Frame]:
    """Yield the program's frames that called the one being evaluated, innermost first."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if file == own_calls.ROOT:
            return
        if not is_internal(file) and not is_torch_file(file):
            yield Frame(file, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back


def stack(summaries: Iterable[Any]) -> tuple[Frame, ...]:
    """Return the program's frames, callers first, with the functions' names in the program."""
    frames = (fx.frame_of(s) for s in summaries)
    return tuple(
        dataclasses.replace(
            f,
            function=eager_lines.plain_name(f.function),
            text=f.text or source_text.line(f.file, f.line).strip(),
        )
        for f in frames
        if not is_internal(f.file)
    )
