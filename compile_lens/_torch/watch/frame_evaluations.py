"""The visits of a program: each time that Dynamo is asked about a frame, and what became of it."""

from __future__ import annotations

import os
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import torch

from ...record import messages
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
    observers,
    recompiles,
    retained_graphs,
    scopes,
)
from .callers import asking, caller, elsewhere
from .observers import noting, observe, observe_late
from .scopes import Graph, Visiting, numbers

_CONVERT = "torch._dynamo.convert_frame:"


def _unsaid(visiting: Visiting) -> str:
    """Why a frame was left alone where torch knows it and keeps it to itself, as 2.11 does: in a newer one's words."""
    if visiting.guarded or visiting.lines:
        return ""
    frame: Any = sys._getframe(1)
    while frame is not None and asking(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or not source_places.is_disable_wrapper(frame.f_code):
        return ""
    return "tracing is non-recursively disabled for this frame"


@observe(_CONVERT + "CatchErrorsWrapper.__call__", "what Dynamo was asked about")
@reserve_stack
def catch_errors(real: Any, wrapper: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Dynamo is asked about a frame."""
    mine = () if dynamo.recorder_of(wrapper) is not None else scopes.owners(frame.f_code.co_name)
    visiting = None
    if mine:
        with noting(mine, "a visit"):
            earlier_decisions.asked(frame.f_code)
            visiting = Visiting(frame.f_code, mine, _backend(wrapper), caller())
            visiting.behind = compiled_objects.behind(frame)
        with noting(mine, "the buckets of DDP"):
            graph_collectives.before_cuts()
    scopes.push(visiting)
    try:
        result = real(wrapper, frame, *args, **kwargs)
    except BaseException as error:
        if visiting is not None:
            visiting.raised = True
            with noting(mine, "why a visit raised"):
                visiting.error = visiting.error or _why(error)
        raise
    else:
        if visiting is not None:
            visiting.guarded = getattr(result, "guarded_code", None) is not None
            visiting.reason = str(getattr(result, "skip_reason", None) or _unsaid(visiting))
        return result
    finally:
        scopes.pop()
        if visiting is not None:
            visiting.seconds = time.perf_counter() - visiting.began
            with noting(mine, "the end of a visit"):
                process = graph_collectives.process()
                for scope in mine:
                    scope.process = process or scope.process
                keep(visiting, frame)


def keep(visiting: Visiting, frame: Any) -> None:
    """Put a visit that is over among those of its watches, or count it where it is none of the program's."""
    worked = visiting.guarded or visiting.raised or visiting.limit
    if visiting.recompiled is not None:
        count, limit = visiting.recompiled
        visiting.recompiled = count + _meanwhile(visiting), limit
    for scope in visiting.scopes:
        if visiting.reason == _OWN:
            continue
        file = visiting.code.co_filename
        made = source_places.is_torch_file(file) or generated(visiting.code)
        others = visiting.behind is None or eager_lines.is_resume(visiting.code)
        if not worked and others and (elsewhere(file) or (visiting.error is None and made)):
            scope.elsewhere[_short(visiting)] += 1
            if made:
                eager_frames.in_wrapper(scope, visiting)
            continue
        if not worked:  # Dynamo may be asked for each of a million calls
            key = (visiting.code, visiting.reason, visiting.behind)
            known = scope.left_alone.setdefault(key, visiting)
            if known is not visiting:
                known.times += 1
                continue
            visiting.plain = eager_lines.uses_plain_values_only(visiting.code, frame.f_globals)
        scope.add(visiting)
        if scope.kept is not None:
            scope.kept(visiting)


def _meanwhile(visiting: Visiting) -> int:
    """How many forms other threads made of a code while it was visited, of which torch did not know when it asked."""
    return sum(
        v.guarded and v.id not in visiting.asked and v.began + v.seconds > visiting.began
        for v in list(visiting.scopes[0].by_code.get(visiting.code, ()))
    )


def generated(code: types.CodeType) -> bool:
    """Whether a code is what a dataclass, a named tuple or ``torch.fx`` wrote: it stands in no file."""
    of_class = code.co_filename == "<string>" and (
        code.co_name.startswith("__") or code.co_name == "<lambda>"
    )
    return of_class or code.co_filename.startswith("<eval_with_key>")


_OWN = "frame is already Dynamo-generated code"


def _short(visiting: Visiting) -> str:
    if visiting.error is not None:
        return visiting.error.reason.partition("\n")[0]
    return messages.gist(visiting.reason) or "no operation to compile (this torch does not say why)"


def _why(error: BaseException) -> Ending:
    if isinstance(error, torch._dynamo.exc.TorchDynamoException):
        return graph_breaks.cause(
            error, BREAK if type(error).__name__ in ("Unsupported", "UserError") else NOT_TRACED
        )
    return Ending(NOT_TRACED, f"{type(error).__name__}: {error}".strip())


def _backend(wrapper: Any) -> str:
    """The name of the backend that the program asked for."""
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


@observe(_CONVERT + "ConvertFrameAssert.__call__", "why a function was left to Python")
def convert(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Dynamo converts a frame: an error that ends here may be swallowed above."""
    try:
        return real(*args, **kwargs)
    except Exception as error:
        visiting = scopes.current()
        if visiting is not None and type(error).__name__ != "SkipFrame":
            with noting(visiting.scopes, "why a function was left to Python"):
                visiting.error = _why(error)
                visiting.consequence = messages.consequence(str(error))
                if visiting.limit:
                    visiting.error = graph_breaks.cause(error, LIMIT)
        raise


@observe(_CONVERT + "get_compile_id", "compile ids")
def compile_id(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch numbers a compile."""
    found = real(*args, **kwargs)
    visiting = scopes.current()
    if visiting is not None and not visiting.id:
        visiting.id = str(found)
        visiting.held = recompiles.settings_of_entry()
        events.compiles(visiting.scopes, found, visiting.number)
        frame_id = getattr(found, "frame_id", None)
        if frame_id is not None:
            scopes.own_frame(frame_id, visiting.scopes)
    return found


@observe(_CONVERT + "exceeds_recompile_limit", "recompile limits")
def limited(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch asks whether a code has too many forms."""
    found = real(*args, **kwargs)
    visiting = scopes.current()
    if visiting is not None and found[0]:
        visiting.limit = str(found[1])
    return found


@observe("torch._dynamo.symbolic_convert:InstructionTranslatorBase.starts_line", "which lines were traced")
def starts_line(real: Any, translator: Any, line: int, *args: Any, **kwargs: Any) -> Any:
    """Dynamo comes to a line."""
    visiting = scopes.current()
    if visiting is not None:
        began = time.perf_counter_ns()
        code = translator.f_code
        if translator.parent is None:
            context = torch._guards.CompileContext.try_get()
            attempt = getattr(context, "attempt", 0)
            if (
                attempt != visiting.attempt
            ):  # it begins again: what the last attempt saw may not be in the graph
                visiting.attempt = attempt
                visiting.dropped.update(visiting.lines)
                visiting.lines.clear()
        visiting.lines.setdefault(code, set()).add(line)
        for scope in visiting.scopes:
            scope.spent += time.perf_counter_ns() - began
    return real(translator, line, *args, **kwargs)


@observe("torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break", "graph breaks")
def log_graph_break(
    real: Any, translator: Any, code_options: Any, reason: str, exc: Any, *args: Any, **kwargs: Any
) -> Any:
    """Dynamo logs a graph break."""
    visiting = scopes.current()
    if visiting is not None and not getattr(exc, "logged", False):
        with noting(visiting.scopes, "a graph break"):
            visiting.breaks.append(_broken(str(reason), exc))
    return real(translator, code_options, reason, exc, *args, **kwargs)


def _broken(reason: str, error: Any) -> Break:
    ending = graph_breaks.cause(error)
    type_ = ending.reason.partition("\n")[0].strip()
    known = _identities()
    if type_ not in known:
        type_ = str(getattr(error, "gb_type", "") or type(error).__name__)
    return messages.broken(reason, ending, type_, str(known.get(type_, "")), messages.consequence(str(error)))


def _identities() -> dict[str, Any]:
    """Torch's number of each kind of break, by its name; ``{}`` where this torch has none."""
    load = getattr(torch._dynamo.exc, "_load_gb_type_to_gb_id_map", None)
    return load() if load is not None else {}


@observe("torch._dynamo.output_graph:OutputGraph.compile_subgraph", "where a function is left in its middle")
def compile_subgraph(real: Any, output: Any, *args: Any, **kwargs: Any) -> Any:
    """A graph is complete: where Dynamo cannot resume, this is the instruction from which Python goes on."""
    visiting = scopes.current()
    if visiting is not None:
        instruction = getattr(getattr(output, "root_tx", None), "current_instruction", None)
        visiting.rest = getattr(instruction, "offset", None)
    return real(output, *args, **kwargs)


@observe("torch._dynamo.output_graph:OutputGraph.call_user_compiler", "graphs")
def call_backend(real: Any, output: Any, gm: Any, *args: Any, **kwargs: Any) -> Any:
    """Dynamo hands a graph to the backend."""
    visiting = scopes.current()
    if visiting is None:
        if not scopes.asked():
            mine = scopes.owners()
            with noting(mine, "graphs that no call asked for"):
                for scope in mine:
                    scope.ahead[bool(getattr(output, "export", False))][_line(caller())] += 1
        return real(output, gm, *args, **kwargs)
    graph = None
    with noting(visiting.scopes, "a graph"):
        operators = sum(node.op.startswith("call_") for node in gm.graph.nodes)
        taken = [fx_values.tensor(value).nbytes for _, value in _tensors(gm)]
        graph = Graph(next(numbers), visiting.id, operators, _inputs(gm), _sum(taken), _sum(_given(gm)))
        graph.collectives = graph_collectives.collectives(gm)
        visiting.dynamic = dynamo.dynamic_symbols(gm)
        eager_frames.at_breaks(visiting, gm)
    if graph is not None and any(scope.keeps for scope in visiting.scopes):
        with noting(visiting.scopes, "a graph for a later capture"):
            graph.kept = retained_graphs.keep(visiting.code, gm, output)
        if visiting.backend == "inductor":  # which imports it in any case now
            observers.place_late(_SAVED)
    if visiting.backend == "inductor":
        events.before_loads(visiting.scopes)
    began = time.perf_counter()
    result = real(output, gm, *args, **kwargs)
    if graph is not None:
        graph.seconds = time.perf_counter() - began
        graph.buckets, visiting.buckets = visiting.buckets, ()
        visiting.graphs.append(graph)
    return result


def _line(at: Frame | None) -> str:
    return "a line that is not known" if at is None else f"{os.path.basename(at.file)}:{at.line}"


_SAVED = "torch._inductor.graph:GraphLowering.save_output_code"


@observe_late(_SAVED)
def save_code(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Inductor has the text of a module: generated, or found in a cache."""
    id = torch._guards.CompileContext.current_compile_id()
    visiting = scopes.current()
    mine = visiting.scopes if visiting is not None else scopes.owners_of(getattr(id, "frame_id", None))
    if mine and args:
        with noting(mine, "the code that ran"):
            for scope in mine:
                scope.codes.setdefault(str(id), []).append(str(args[0]))
    return real(*args, **kwargs) if real is not None else None


def _given(gm: Any) -> list[int | None]:
    """Bytes of each tensor that a graph returns."""
    (output,) = (node for node in gm.graph.nodes if node.op == "output")
    made = (fx_values.tensors(node) for node in output.all_input_nodes)
    return [tensor.nbytes for tensors in made for tensor in tensors]


def _sum(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _inputs(gm: Any) -> tuple[str, ...]:
    return tuple(f"{name}: {_described(value)}" for name, value in _tensors(gm))


def _tensors(gm: Any) -> Iterator[tuple[str, torch.Tensor]]:
    placeholders = [n for n in gm.graph.nodes if n.op == "placeholder"]
    yield from dynamo.arguments(gm, [n.meta.get("example_value") for n in placeholders])


def _described(value: torch.Tensor) -> str:
    found = fx_values.tensor(value)
    return f"{found.dtype}[{', '.join(map(str, found.shape))}] {found.device}"


@observe("threading:Thread.start", "what threads compile that were started meanwhile")
def start(real: Any, thread: threading.Thread, *args: Any, **kwargs: Any) -> Any:
    """A thread starts another."""
    scopes.started(thread)
    return real(thread, *args, **kwargs)
