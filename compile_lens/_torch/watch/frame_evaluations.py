"""Frame evaluations of a program: each frame that Dynamo evaluates, with the outcome."""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import torch

from ...record import claims, messages
from ...record.breaks import BREAK, LIMIT, NOT_TRACED, Ending
from ...record.graph import Frame
from ...record.program import Break
from ..frames import dynamo, eager_lines, graph_breaks
from ..graphs import fx_values
from ..ground import source_places
from ..ground.python_runtime import reserve_stack
from . import (
    compiled_objects,
    eager_frames,
    earlier_decisions,
    events,
    graph_collectives,
    issued_collectives,
    observers,
    recompiles,
    remedy_settings,
    retained_graphs,
    scopes,
    value_reader,
)
from .callers import caller, is_between, is_outside_program
from .observers import observe, observe_late, observing
from .scopes import Evaluation, Graph, numbers

_CONVERT = "torch._dynamo.convert_frame:"
_EVERYTHING = (
    claims.EVALUATIONS,
    claims.GRAPHS,
    claims.BREAKS,
    claims.RECOMPILES,
    claims.SKIP_REASONS,
    claims.LIMITS,
    claims.TRACED_LINES,
    claims.GUARDS,
    claims.CACHES,
    claims.CODE_THAT_RAN,
)
"""The claims that rest on observing a whole evaluation."""


def _unreported_reason(evaluation: Evaluation) -> str:
    """Return why a frame was skipped, in the words of a newer torch, where torch 2.11 does not report it."""
    if evaluation.guarded or evaluation.lines:
        return ""
    frame: Any = sys._getframe(1)
    while frame is not None and is_between(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not source_places.is_disable_wrapper(frame.f_code):
        return ""
    return "tracing is non-recursively disabled for this frame"


@observe(_CONVERT + "CatchErrorsWrapper.__call__", *_EVERYTHING)
@reserve_stack
def catch_errors(real: Any, wrapper: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a whole evaluation."""
    watches = () if dynamo.recorder_of(wrapper) is not None else scopes.owners(frame.f_code.co_name)
    evaluation = None
    if watches:
        with observing(watches, *_EVERYTHING):
            earlier_decisions.withdraw_call(frame.f_code)
            evaluation = Evaluation(frame.f_code, watches, _backend(wrapper), caller())
            evaluation.wrapped = compiled_objects.wrapped_place(frame)
            evaluation.compiled_function = compiled_objects.number_of(wrapper)
        with observing(watches, claims.BUCKETS):
            graph_collectives.place_cuts()
        remedy_settings.on_evaluation(frame)
    scopes.push(evaluation)
    try:
        result = real(wrapper, frame, *args, **kwargs)
    except BaseException as error:
        if evaluation is not None:
            evaluation.raised = True
            with observing(watches, claims.SKIP_REASONS):
                evaluation.error = evaluation.error or _why(error)
        raise
    else:
        if evaluation is not None:
            evaluation.guarded = getattr(result, "guarded_code", None) is not None
            evaluation.reason = str(getattr(result, "skip_reason", None) or _unreported_reason(evaluation))
        return result
    finally:
        scopes.pop()
        if evaluation is not None:
            evaluation.seconds = time.perf_counter() - evaluation.began
            with observing(watches, *_EVERYTHING):
                process = issued_collectives.process_rank()
                for scope in watches:
                    scope.process = process or scope.process
                record(evaluation, frame)


def record(evaluation: Evaluation, frame: Any) -> None:
    """Add a finished evaluation to its watches, or only count it if it is not of the program's code."""
    worked = evaluation.guarded or evaluation.raised or evaluation.limit
    if evaluation.recompiled is not None:
        count, limit = evaluation.recompiled
        evaluation.recompiled = count + _entries_meanwhile(evaluation), limit
    if worked:
        evaluation.marks = value_reader.dimension_marks(frame.f_locals)
    for scope in evaluation.scopes:
        if evaluation.reason == _OWN_CODE:
            continue
        file = evaluation.code.co_filename
        is_torchs = source_places.is_torch_file(file) or is_generated(evaluation.code)
        others = evaluation.wrapped is None or eager_lines.is_resume(evaluation.code)
        if not worked and others and (is_outside_program(file) or (evaluation.error is None and is_torchs)):
            reason = _short_reason(evaluation)
            scope.elsewhere[reason] += 1
            scope.breaks_elsewhere.setdefault(reason, []).extend(evaluation.breaks)
            if is_torchs:
                eager_frames.note_wrapped_module(scope, evaluation)
            continue
        if not worked:  # Dynamo may evaluate each of a million calls
            key = (evaluation.code, evaluation.reason, evaluation.wrapped)
            known = scope.skipped.setdefault(key, evaluation)
            if known is not evaluation:
                known.times += 1
                continue
            evaluation.plain = eager_lines.uses_plain_values_only(evaluation.code, frame.f_globals)
        scope.add(evaluation)
        if scope.kept is not None:
            scope.kept(evaluation)


def _entries_meanwhile(evaluation: Evaluation) -> int:
    """Return the number of entries that other threads added for a code object during its evaluation, after torch's
    check."""
    return sum(
        v.guarded and v.id not in evaluation.asked and v.began + v.seconds > evaluation.began
        for v in list(evaluation.scopes[0].by_code.get(evaluation.code, ()))
    )


def is_generated(code: types.CodeType) -> bool:
    """Return True for code generated by a dataclass, a named tuple or ``torch.fx``, which is in no file."""
    of_class = code.co_filename == "<string>" and (
        code.co_name.startswith("__") or code.co_name == "<lambda>"
    )
    return of_class or code.co_filename.startswith("<eval_with_key>")


_OWN_CODE = "frame is already Dynamo-generated code"


def _short_reason(evaluation: Evaluation) -> str:
    if evaluation.error is not None:
        return evaluation.error.reason.partition("\n")[0]
    return messages.summary(evaluation.reason) or "no operation to compile (this torch does not say why)"


def _why(error: BaseException) -> Ending:
    if isinstance(error, torch._dynamo.exc.TorchDynamoException):
        return graph_breaks.cause(
            error, BREAK if type(error).__name__ in ("Unsupported", "UserError") else NOT_TRACED
        )
    return Ending(NOT_TRACED, f"{type(error).__name__}: {error}".strip())


def _backend(wrapper: Any) -> str:
    """Return the name of the backend that the program requested."""
    for _ in range(8):
        for attribute in ("compiler_name", "_compiler_name"):
            name = getattr(wrapper, attribute, None)
            if isinstance(name, str):
                return name
        inner = getattr(wrapper, "_torchdynamo_orig_backend", None)
        if inner is None or inner is wrapper:
            break
        wrapper = inner
    return str(getattr(wrapper, "__name__", None) or type(wrapper).__name__)


@observe(_CONVERT + "ConvertFrameAssert.__call__", claims.SKIP_REASONS)
def keep_error(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Record an error while converting a frame, which a caller may suppress."""
    try:
        return real(*args, **kwargs)
    except Exception as error:
        evaluation = scopes.current()
        if evaluation is not None and type(error).__name__ != "SkipFrame":
            with observing(evaluation.scopes, claims.SKIP_REASONS):
                evaluation.error = _why(error)
                evaluation.consequence = messages.consequence(str(error))
                evaluation.limit = evaluation.limit or messages.limit_type(str(error))
                if evaluation.limit:
                    evaluation.error = graph_breaks.cause(error, LIMIT)
        raise


@observe(_CONVERT + "get_compile_id", claims.COMPILE_IDS)
def keep_compile_id(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the id of a compile."""
    number = real(*args, **kwargs)
    evaluation = scopes.current()
    if evaluation is not None and not evaluation.id:
        evaluation.id = str(number)
        evaluation.held = recompiles.remembered_settings()
        events.remember_compile(evaluation.scopes, number, evaluation.number)
        frame_id = getattr(number, "frame_id", None)
        if frame_id is not None:
            scopes.assign_frame(frame_id, evaluation.scopes)
    return number


@observe(_CONVERT + "exceeds_recompile_limit", claims.LIMITS)
def keep_limit(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a recompile limit that is reached."""
    result = real(*args, **kwargs)
    evaluation = scopes.current()
    if evaluation is not None and result[0]:
        evaluation.limit = str(result[1])
    return result


@observe("torch._dynamo.symbolic_convert:InstructionTranslatorBase.starts_line", claims.TRACED_LINES)
def keep_line(real: Any, translator: Any, line: int, *args: Any, **kwargs: Any) -> Any:
    """Record a line that Dynamo traces."""
    evaluation = scopes.current()
    if evaluation is not None:
        began = time.perf_counter_ns()
        code = translator.f_code
        if translator.parent is None:
            context = torch._guards.CompileContext.try_get()
            attempt = getattr(context, "attempt", 0)
            if (
                attempt != evaluation.attempt
            ):  # Dynamo restarted, and the graph may lack lines of the last attempt
                evaluation.attempt = attempt
                evaluation.dropped.update(evaluation.lines)
                evaluation.lines.clear()
        if code not in evaluation.lines:
            dynamo.no_text(code)  # before torch reads the source
        evaluation.lines.setdefault(code, set()).add(line)
        for scope in evaluation.scopes:
            scope.spent += time.perf_counter_ns() - began
    return real(translator, line, *args, **kwargs)


@observe(
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break",
    claims.BREAKS,
    claims.TRACED_LINES,
)
def log_graph_break(
    real: Any, translator: Any, code_options: Any, reason: str, exc: Any, *args: Any, **kwargs: Any
) -> Any:
    """Record a graph break that Dynamo logs."""
    evaluation = scopes.current()
    if evaluation is not None and not getattr(exc, "logged", False):
        with observing(evaluation.scopes, claims.BREAKS, claims.TRACED_LINES):
            evaluation.breaks.append(_broken(str(reason), exc))
    return real(translator, code_options, reason, exc, *args, **kwargs)


def _broken(reason: str, error: Any) -> Break:
    ending = graph_breaks.cause(error)
    type_ = ending.reason.partition("\n")[0].strip()
    known = _identities()
    if type_ not in known:
        type_ = str(getattr(error, "gb_type", "") or type(error).__name__)
    return messages.graph_break(
        reason, ending, type_, str(known.get(type_, "")), messages.consequence(str(error))
    )


def _identities() -> dict[str, Any]:
    """Return torch's number for each type of break by name; ``{}`` if this torch has none."""
    load = getattr(torch._dynamo.exc, "_load_gb_type_to_gb_id_map", None)
    return load() if load is not None else {}


@observe("torch._dynamo.output_graph:OutputGraph.compile_subgraph", claims.RESTS, claims.TRACED_LINES)
def compile_subgraph(real: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the instruction after a graph, where eager execution continues if Dynamo cannot resume."""
    evaluation = scopes.current()
    if evaluation is not None:
        instruction = getattr(getattr(output, "root_tx", None), "current_instruction", None)
        evaluation.rest = getattr(instruction, "offset", None)
    return real(output, *args, **kwargs)


@observe(
    "torch._dynamo.output_graph:OutputGraph.call_user_compiler",
    claims.GRAPHS,
    claims.SIZES,
    claims.TRACED_LINES,
    claims.CACHES,
    claims.CODE_THAT_RAN,
    claims.GRAPH_COLLECTIVES,
)
def call_backend(real: Any, output: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a graph that Dynamo passes to the backend."""
    evaluation = scopes.current()
    if evaluation is None:
        if not scopes.is_evaluating():
            watches = scopes.owners()
            with observing(watches, claims.AHEAD):
                for scope in watches:
                    scope.ahead[bool(getattr(output, "export", False))][_line(caller())] += 1
        return real(output, gm, *args, **kwargs)
    graph, distributed, evaluation.collectives = None, False, None
    with observing(evaluation.scopes, claims.GRAPHS, claims.SIZES, claims.TRACED_LINES):
        operators = sum(node.op.startswith("call_") for node in gm.graph.nodes)
        taken = [fx_values.tensor(value).nbytes for _, value in _tensors(gm, output)]
        graph = Graph(
            next(numbers),
            evaluation.id,
            operators,
            _inputs(gm, output),
            _total(taken),
            _total(_output_sizes(gm)),
        )
        if issued_collectives.process_rank() is not None:
            graph.collectives, graph.calls = graph_collectives.collectives(gm), graph_collectives.calls(gm)
            graph_collectives.place_forwards(evaluation.scopes)
            distributed = graph_collectives.has_distributed_tensors(gm)
        evaluation.dynamic = dynamo.dynamic_symbols(gm)
        eager_frames.keep_lines_at_breaks(evaluation, gm)
    if graph is not None and any(scope.keeps for scope in evaluation.scopes):
        with observing(evaluation.scopes, claims.RETAINED):
            graph.kept = retained_graphs.retain(evaluation.code, gm, output)
        if evaluation.backend == "inductor":  # whose compile imports the module anyway
            observers.place_late(_SAVED, evaluation.scopes)
    if evaluation.backend == "inductor":
        events.place_loads(evaluation.scopes)
    began = time.perf_counter()
    result = real(output, gm, *args, **kwargs)
    if graph is not None:
        graph.seconds = time.perf_counter() - began
        graph.buckets, evaluation.buckets = evaluation.buckets, ()
        if evaluation.collectives is not None:
            graph.collectives = evaluation.collectives
        elif distributed:
            for scope in evaluation.scopes:
                scope.lost.setdefault(claims.GRAPH_COLLECTIVES, _NOT_TRACED)
        evaluation.graphs.append(graph)
    return result


_NOT_TRACED = "AOTAutograd did not trace a graph with distributed tensors: theirs are only in what was issued"


def _line(at: Frame | None) -> str:
    return "a line that is not known" if at is None else f"{os.path.basename(at.file)}:{at.line}"


_SAVED = "torch._inductor.graph:GraphLowering.save_output_code"


@observe_late(_SAVED, claims.CODE_THAT_RAN)
def save_code(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the text of a module that Inductor generated or found in a cache."""
    id = torch._guards.CompileContext.current_compile_id()
    evaluation = scopes.current()
    watches = evaluation.scopes if evaluation is not None else scopes.owners_of(getattr(id, "frame_id", None))
    if watches and args:
        with observing(watches, claims.CODE_THAT_RAN):
            for scope in watches:
                scope.codes.setdefault(str(id), []).append(str(args[0]))
    return real(*args, **kwargs)


def _output_sizes(gm: Any) -> list[int | None]:
    """Return the bytes of each tensor that a graph returns."""
    (output,) = (node for node in gm.graph.nodes if node.op == "output")
    outputs = (fx_values.tensors(node) for node in output.all_input_nodes)
    return [tensor.nbytes for tensors in outputs for tensor in tensors]


def _total(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _inputs(gm: Any, output: Any) -> tuple[str, ...]:
    return tuple(f"{name}: {_tensor_text(value)}" for name, value in _tensors(gm, output))


def _tensors(gm: Any, output: Any) -> Iterator[tuple[str, torch.Tensor]]:
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    yield from dynamo.arguments(gm, [n.meta.get("example_value") for n in placeholders], output)


def _tensor_text(value: torch.Tensor) -> str:
    tensor = fx_values.tensor(value)
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}] {tensor.device}"


@observe("threading:Thread.start", claims.THREADS)
def inherit_scopes(real: Any, thread: threading.Thread, *args: Any, **kwargs: Any) -> Any:
    """Extend this thread's watches to a thread that it starts."""
    scopes.inherit(thread)
    return real(thread, *args, **kwargs)
