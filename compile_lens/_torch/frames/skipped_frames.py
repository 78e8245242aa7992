"""Frames that Dynamo skipped: their places, the reasons, and the lines that run eagerly."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import re
import sys
import sysconfig
import types
from typing import Any

import torch
from torch._dynamo.convert_frame import FRAME_COMPILE_COUNTER, ConvertFrameReturn

from ...record import claims, messages
from ...record.breaks import BREAK, LIMIT, NEVER_RAN, NOT_TRACED, REST, WHOLE, Ending, Skip
from ..ground import cache_entries, counters, python_runtime, source_places
from ..ground.hooks import free_hook
from ..ground.python_runtime import with_stack_room
from ..ground.recorder import Recorder
from ..ground.recorder_state import Frame
from . import dynamo, eager_lines, graph_breaks, own_calls

_LIMITS = "recompile limit exceeded"

_PROGRAM_FOLDERS = ("nn", "optim")
"""Folders of torch, with layers and optimizers, whose functions count as the program's."""


LAYER = "Dynamo compiles a layer of torch only as a part of a function of the program, and its caller runs eagerly"
"""Reason for a layer's ``forward`` that runs eagerly."""


@free_hook("torch._dynamo.convert_frame:ConvertFrameAssert.__call__", claims.SKIPS)
@with_stack_room
def convert_frame(real: Any, converter: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the reason if Dynamo skips a frame."""
    recorder = dynamo.recorder_of(getattr(converter, "_torchdynamo_orig_backend", None))
    if recorder is None:
        return real(converter, frame, *args, **kwargs)
    name = frame.f_code.co_name
    recorder.frames.current = Frame()
    visited = cache_entries.remember(recorder.leftovers.codes, frame.f_code, args)
    attempts_before = FRAME_COMPILE_COUNTER.get(visited.frame_id, 0)
    limit = dynamo.recompile_limit(frame.f_code, recorder)
    try:
        uncounted = counters.without_counting(recorder)
        with (
            python_runtime.less_garbage_collection(),
            uncounted,
            torch._dynamo.config.patch(recompile_limit=limit),
        ):
            result = real(converter, frame, *args, **kwargs)
    except Exception as error:
        if type(error).__name__ == "SkipFrame":  # the frame has nothing to compile
            recorder.frames.skips.append(
                f"{name}: {messages.summary(str(error)) or 'no operation to compile'}"
            )
        else:  # Dynamo may give up on the frame and run it eagerly
            recorder.frames.current.given_up = _given_up(frame.f_code, error)
        raise
    finally:  # a frame that is not compiled uses one of torch's numbers too
        if FRAME_COMPILE_COUNTER.get(visited.frame_id, 0) > attempts_before:
            recorder.numbers.pass_over(visited.frame_id, attempts_before)
    reason = getattr(result, "skip_reason", None)
    if reason and recorder.frames.current.given_up is None:
        recorder.frames.skips.append(f"{name}: {messages.summary(str(reason))}")
    elif getattr(result, "guarded_code", True) is None and not hasattr(result, "skip_reason"):
        recorder.frames.skips.append(f"{name}: no operation to compile (this torch does not say why)")
    return result


@free_hook("torch._dynamo.convert_frame:ConvertFrame.__call__")
def convert_or_skip(real: Any, converter: Any, *args: Any, **kwargs: Any) -> Any:
    """Exclude a capture's frames from torch's counters around the conversion."""
    recorder = dynamo.recorder_of(getattr(converter, "_torchdynamo_orig_backend", None))
    if recorder is None:
        return real(converter, *args, **kwargs)
    with counters.without_counting(recorder):
        return real(converter, *args, **kwargs)


@free_hook("torch._dynamo.convert_frame:CatchErrorsWrapper.__call__", claims.SKIPS)
def catch_errors(real: Any, wrapper: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Record a frame whose error Dynamo suppressed, so that the function runs eagerly."""
    # A frame of ours that the program called is not the program's.
    if own_calls.is_within(frame):
        return ConvertFrameReturn()
    result = real(wrapper, frame, *args, **kwargs)
    if getattr(result, "guarded_code", None) is not None:
        return result
    recorder = dynamo.recorder_of(getattr(wrapper, "_torchdynamo_orig_backend", None))
    if recorder is None:
        return result
    skip, recorder.frames.current.given_up = recorder.frames.current.given_up, None
    mode = str(getattr(result, "skip_reason", None) or "")
    if skip is None and "dispatch mode" in mode:
        skip = _skip(frame.f_code, WHOLE, Ending(NOT_TRACED, mode))
    layer = frame.f_locals.get("self")
    if (
        skip is None
        and "skipfiles" in mode
        and isinstance(layer, torch.nn.Module)
        and _runs_alone(recorder, frame.f_code)
    ):
        skip = dataclasses.replace(
            _skip(frame.f_code, WHOLE, Ending(NOT_TRACED, LAYER)), function=f"{type(layer).__name__}.forward"
        )
    if skip is not None:
        record_skip(recorder, skip, frame.f_code)
    return result


def observe_layers() -> None:
    """Make Dynamo evaluate again those of torch's layers that an earlier call skipped."""
    cache_entries.forget_skips(_layer_codes())


@functools.cache
def _layer_codes() -> tuple[types.CodeType, ...]:
    layers = [kind for kind in vars(torch.nn).values() if isinstance(kind, type)]
    forwards = [getattr(kind, "forward", None) for kind in layers if issubclass(kind, torch.nn.Module)]
    return tuple({f.__code__: None for f in forwards if isinstance(f, types.FunctionType)})


def _runs_alone(recorder: Recorder, code: types.CodeType) -> bool:
    """Return True for the ``forward`` of a layer of torch that is not called from a line already recorded as eager."""
    layers = f"{_roots()[1]}nn{os.sep}"
    if code.co_name != "forward" or not code.co_filename.startswith(f"{layers}modules{os.sep}"):
        return False
    caller: Any = sys._getframe(1)
    while caller is not None and (
        caller.f_code.co_filename.startswith(layers)
        or caller.f_globals.get("__name__", "").startswith("compile_lens.")
    ):
        caller = caller.f_back
    return caller is None or not any(
        skip.file == caller.f_code.co_filename and first <= caller.f_lineno <= last
        for skip in recorder.frames.skipped
        for first, last in skip.lines
    )


def record_skip(recorder: Recorder, skip: Skip, code: Any) -> None:
    """Record a skipped function; one outside the program and torch's layers is only counted."""
    recorder.frames.skips.append(f"{skip.function}: {messages.summary(skip.cause.reason)}")
    root = recorder.frames.root
    if (
        source_places.is_internal(skip.file) and root is not None
    ):  # torch's wrapper around the captured callable
        skip = dataclasses.replace(skip, function=root.name, file=root.file, line=root.line, lines=())
    elif is_foreign(skip.file):
        recorder.frames.foreign_count += 1
        return
    else:
        dynamo.keep_source(recorder, code)
        skip = dataclasses.replace(skip, line=dynamo.first_line(recorder, code))
    for call in recorder.frames.calls[-1:]:
        call.skipped.append(f"{skip.function}: {skip.kind}")
    same = dataclasses.replace(skip, count=1)
    for i, known in enumerate(recorder.frames.skipped):
        if dataclasses.replace(known, count=1) == same:
            recorder.frames.skipped[i] = dataclasses.replace(known, count=known.count + 1)
            return
    recorder.frames.skipped.append(skip)


def foreign_note(recorder: Recorder) -> str:
    """Return a note with the number of skipped functions outside the program; ``""`` for none."""
    if not recorder.frames.foreign_count:
        return ""
    what = (
        "1 function" if recorder.frames.foreign_count == 1 else f"{recorder.frames.foreign_count} functions"
    )
    where = "torch, the standard library and packages without torch"
    return f"outside of the program, Dynamo skipped {what} of {where}"


def summary(recorder: Recorder, limit: int = 4) -> str:
    """Return the skipped functions and the reasons as a sentence without a full stop; ``""`` for none."""
    never = [s.consequence for s in recorder.frames.skipped if s.kind == NEVER_RAN]
    names = [
        f"{s.function}: {messages.summary(s.cause.reason)}"
        for s in recorder.frames.skipped
        if s.kind != NEVER_RAN
    ]
    because = [
        messages.summary(s.cause.reason)
        for s in recorder.frames.skipped
        if s.kind == NEVER_RAN and s.cause.reason != s.consequence
    ]
    more = f"; and {len(names) - limit} more" if len(names) > limit else ""
    skipped = [f"Dynamo skipped {'; '.join(names[:limit])}{more}"] if names else []
    return "; ".join((*never, *because, *skipped))


def never_ran(recorder: Recorder, function: Any, result: Any) -> bool:
    """Return True if the call of ``function`` only created a coroutine or generator, and record that.

    A coroutine is closed, since Python would warn that it was never awaited.
    """
    if inspect.iscoroutine(result) and inspect.getcoroutinestate(result) == inspect.CORO_CREATED:
        code = result.cr_code
        result.close()
        kind, hint = "coroutine", "Capture the functions that it calls, those that are not async."
    elif inspect.isasyncgen(result) and result.ag_frame is not None and not result.ag_running:
        code, kind = result.ag_code, "asynchronous generator"
        hint = "Capture the functions that it calls, those that are not async."
    elif inspect.isgenerator(result) and inspect.getgeneratorstate(result) == inspect.GEN_CREATED:
        code, kind = result.gi_code, "generator"
        hint = (
            f"Capture a function that consumes it, as list({code.co_name}(…)) in an ordinary function does."
        )
    else:
        return False
    own = getattr(function, "__code__", None)  # code generated by Dynamo has only the first line
    if own is not None and (own.co_filename, own.co_firstlineno) == (code.co_filename, code.co_firstlineno):
        code = own
    why = f"calling it made {'an' if kind[0] == 'a' else 'a'} {kind}, and nothing ran its body"
    known = [
        s for s in recorder.frames.skipped if (s.file, s.line) == (code.co_filename, code.co_firstlineno)
    ]
    recorder.frames.skipped = [s for s in recorder.frames.skipped if s not in known]
    because = known[0].cause if known else Ending(NEVER_RAN, why)
    hint = "\n".join(h for h in (hint, because.hint) if h)
    skip = _skip(code, NEVER_RAN, dataclasses.replace(because, hint=hint), why)
    recorder.frames.skipped.append(skip)
    return True


def _given_up(code: Any, error: Exception) -> Skip:
    if _LIMITS in str(getattr(error, "gb_type", "")) or _LIMITS in str(error).partition("\n")[0]:
        return _skip(code, LIMIT, graph_breaks.cause(error, LIMIT))
    logged = type(error).__name__ in ("Unsupported", "UserError")
    kind = REST if eager_lines.is_resume(code) else WHOLE
    return _skip(
        code,
        kind,
        graph_breaks.cause(error, BREAK if logged else NOT_TRACED),
        messages.consequence(str(error)),
    )


_NO_BFLOAT16 = (
    "Inductor compiles no graph with bfloat16 inputs or outputs for a GPU of compute capability below 8.0: use float16 "
    "there."
)


def skip_by_compiler(recorder: Recorder, code: Any, error: Exception) -> None:
    """Record that the compiler made Dynamo skip the frame, so that it runs eagerly."""
    if code is not None:
        kind = REST if eager_lines.is_resume(code) else WHOLE
        hint = _NO_BFLOAT16 if "BF16" in str(error) else ""
        recorder.frames.current.given_up = _skip(code, kind, Ending(NOT_TRACED, str(error), hint=hint))


def _skip(code: Any, kind: str, why: Ending, consequence: str = "") -> Skip:
    if not why.frames:
        why = dataclasses.replace(why, frames=graph_breaks.stack([_definition(code)]))
    name = eager_lines.plain_name(code.co_name)
    return Skip(kind, name, code.co_filename, code.co_firstlineno, why, eager_lines.lines(code), consequence)


def _definition(code: Any) -> Any:
    import traceback

    return traceback.FrameSummary(
        code.co_filename, code.co_firstlineno, eager_lines.plain_name(code.co_name), lookup_line=False
    )


def is_foreign(file: str) -> bool:
    """Return True for a file of the standard library, of an installed package that does not use torch, or of torch
    other than its layers and optimizers."""
    if file.startswith("<frozen"):
        return True
    library, own = _roots()
    if file.startswith(own):
        return file[len(own) :].split(os.sep)[0] not in _PROGRAM_FOLDERS
    if "-packages" in file:
        return uses_no_torch(file)
    return file.startswith(library)


@functools.cache
def _roots() -> tuple[str, str]:
    return sysconfig.get_paths()["stdlib"] + os.sep, os.path.dirname(torch.__file__) + os.sep


_PACKAGES = re.compile(r"[/\\](?:site|dist)-packages[/\\]([^/\\]+)")


def uses_no_torch(file: str) -> bool:
    """Return True if a file belongs to an installed package none of whose loaded modules uses torch, such as a
    notebook's kernel."""
    packages = _PACKAGES.findall(file)
    # Modules loaded later may use it.
    return bool(packages) and not _uses_torch(packages[-1].partition(".")[0], len(sys.modules))


@functools.lru_cache(maxsize=1024)
def _uses_torch(package: str, _loaded: int) -> bool:
    inside = f"{package}."
    names = [name for name in list(sys.modules) if name == package or name.startswith(inside)]
    return any(_imports(name, len(_globals(name))) for name in names)


@functools.cache
def _imports(module: str, _count: int) -> bool:
    return any(_is_from_torch(value) for value in list(_globals(module).values()))


def _globals(module: str) -> dict[str, Any]:
    loaded = sys.modules.get(module)
    return vars(loaded) if isinstance(loaded, types.ModuleType) else {}


def _is_from_torch(value: Any) -> bool:
    """Return True if a global is a module, function or class of torch, or a class derived from one."""
    if isinstance(value, types.ModuleType):
        return _is_torch_module(vars(value).get("__name__"))
    if isinstance(value, type):
        return any(_is_torch_module(vars(base).get("__module__")) for base in type.mro(value))
    return isinstance(value, types.FunctionType) and _is_torch_module(value.__module__)


def _is_torch_module(module: object) -> bool:
    return isinstance(module, str) and (module == "torch" or module.startswith("torch."))
