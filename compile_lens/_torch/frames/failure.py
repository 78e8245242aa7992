"""The error that ended a capture, its place in the program, and the compiler's advice."""

from __future__ import annotations

import ast
import dataclasses
import traceback
from typing import Any

import torch._dynamo.exc as exc
import torch.fx

from ...record import syntax
from ...record.capture import Failure
from ...record.graph import Frame
from ..ground import source_places, source_text
from ..ground.recorder import Recorder
from ..ground.source_places import is_internal
from . import eager_lines, graph_breaks, skipped_frames

REFUSED = "The code was generated, but {title} rejects it at run time: {why}"
"""Hint for an error that the device would raise (``targets.device_refusals``)."""


def failure(recorder: Recorder, error: Exception) -> Failure:
    """Return the record of an error raised by the function or the compiler."""
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
    return Failure(
        stage, type(inner).__name__, str(inner).strip(), text, tuple(map(_located, frames)), hint, link
    )


def _located(frame: Frame) -> Frame:
    """Return a frame with the class names of its function, and with the text of the call."""
    function, call = frame.function, frame.call
    if classes := _classes(frame.file, frame.line):
        function = f"{'.'.join(classes)}.{function}"
    line = source_text.line(frame.file, frame.line).rstrip("\n")
    if not call and line.strip() == frame.text and frame.within != str(frame.line):
        call = line[frame.column : frame.end_column].strip()
    return dataclasses.replace(frame, function=function, call=call)


def _classes(file: str, line: int) -> list[str]:
    """Return the names of the classes around a line, outermost first; inside a function, only classes within it."""
    try:
        tree = syntax.parse(source_text.text(file, line))
    except (SyntaxError, ValueError):  # the file is not Python, such as a template
        return []
    names: list[str] = []
    body: list[ast.stmt] = tree.body
    while True:
        around = [s for s in body if s.lineno <= line <= (s.end_lineno or s.lineno)]
        if not around or not isinstance(around[0], _BLOCKS):
            return names
        if isinstance(around[0], ast.ClassDef):
            names.append(around[0].name)
        elif isinstance(around[0], (ast.FunctionDef, ast.AsyncFunctionDef)):
            inner = [
                s
                for s in ast.walk(around[0])
                if isinstance(s, ast.ClassDef) and s.lineno <= line <= (s.end_lineno or 0)
            ]
            if not inner:
                return names
            names, body = [inner[-1].name], inner[-1].body
            continue
        body = [s for s in ast.iter_child_nodes(around[0]) if isinstance(s, ast.stmt)]


_BLOCKS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.If, ast.With, ast.Try)


def _lowered(error: BaseException) -> tuple[Frame, ...]:
    """Return the stack of the node that Inductor was lowering, callers first; empty if the error came from
    elsewhere."""
    node = None
    for frame, _ in traceback.walk_tb(error.__traceback__):
        # ``GraphLowering.run_node(self, n)``, and the interpreter's own below it.
        known = frame.f_locals.get("n") if frame.f_code.co_name == "run_node" else None
        node = known if isinstance(known, torch.fx.Node) else node
    return source_places.frames(node.meta.get("stack_trace")) if node is not None else ()


def _raised(recorder: Recorder, error: Exception) -> tuple[Frame, ...]:
    """Return the program's stack at the error, callers first, without frames of torch and the standard library."""
    own_frames: list[tuple[traceback.FrameSummary, Any]] = []
    callers: tuple[Frame, ...] = ()
    for summary, (frame, _) in zip(
        traceback.extract_tb(error.__traceback__), traceback.walk_tb(error.__traceback__), strict=True
    ):
        if is_internal(summary.filename) or skipped_frames.is_foreign(summary.filename):
            continue
        if traced := _traced(summary, frame):
            # Dynamo's code calls the graph from the line of the function's head.
            callers = (*graph_breaks.stack(one for one, _ in own_frames[:-1]), *traced)
            own_frames = []
            continue
        if eager_lines.is_resume(frame.f_code) and own_frames:  # its caller is the part before the break
            before = eager_lines.plain_name(own_frames[-1][0].name)
            if (
                before == eager_lines.plain_name(summary.name)
                and own_frames[-1][0].filename == summary.filename
            ):
                own_frames.pop()
        own_frames.append((summary, frame.f_code))
    frames = graph_breaks.stack(summary for summary, _ in own_frames)
    if callers:
        return (*callers, *frames)
    if frames and frames[-1].line == own_frames[-1][1].co_firstlineno:
        # Dynamo's code for the part after a break has no lines, so use the place of the break.
        last = frames[-1]
        ends = [d.ending.frames for d in recorder.drafts.values() if d.ending is not None and d.ending.frames]
        ends = [e for e in ends if (e[0].file, e[0].function) == (last.file, last.function)]
        frames = (
            (*frames[:-1], ends[-1][0]) if ends else frames
        )  # further frames are functions that Dynamo inlined there
    return frames


def _traced(summary: traceback.FrameSummary, frame: Any) -> tuple[Frame, ...]:
    """Return the stack of the node that a frame of FX-generated code runs, callers first; empty for other frames."""
    module = frame.f_locals.get("self") if summary.filename.startswith("<eval_with_key>") else None
    if not isinstance(module, torch.fx.GraphModule):
        return ()
    name = (summary.line or "").partition(" = ")[0]
    traces = [node.meta.get("stack_trace") for node in module.graph.nodes if node.name == name]
    return source_places.frames(traces[0]) if traces else ()
