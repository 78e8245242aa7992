"""Keeps a capture apart from the program that it looks at.

Dynamo remembers sizes by code location, counts compiles against limits, and keeps a few global tables. What a
capture stores there is taken away when it is over (``ground``), or was never
seen by the program.
"""

from __future__ import annotations

import contextlib
import contextvars
import inspect
import linecache
import os
import random
import sys
import threading
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .frames import dynamo
from .ground import code_entries, hook_points, tallies
from .ground.hooks import free_hook
from .ground.recorder import Recorder
from .ground.undo import Undo

_capturing = threading.local()

_KINDS_OF_COMPILER = tuple(
    f"torch._inductor.cpp_builder:is_{kind}"
    for kind in ("gcc", "clang", "intel_compiler", "apple_clang", "msvc_cl")
)
"""What torch asks of a compiler while it writes code, and remembers."""


def optimize(
    recorder: Recorder, backend: Callable[..., Any], fn: Any, *, fullgraph: bool, dynamic: bool | None
) -> Any:
    """``torch.compile(fn, backend=backend)`` with a region of its own and Dynamo's own hooks for guards."""

    held = weakref.ref(recorder)  # guards outlive the capture where torch keeps them

    def export(found: Any) -> None:
        if (alive := held()) is not None:
            tensors = getattr(_capturing, "tensors", None) or {}
            dynamo.current_draft(alive, None).guards = dynamo.guards(found, tensors)
            tensors.clear()

    def failed(failure: Any) -> None:
        if (alive := held()) is not None:
            alive.frames.now.failed_guards.append(dynamo.failed_guard(alive, str(failure.reason)))

    options: dict[str, Any] = {
        "nopython": fullgraph,
        "dynamic": dynamic,
        "guard_export_fn": export,
        "guard_fail_fn": failed,
        "isolate_recompiles": True,
    }
    known = inspect.signature(torch._dynamo.eval_frame._optimize).parameters
    return torch._dynamo.optimize(backend, **{k: v for k, v in options.items() if k in known})(fn)


@free_hook("torch._dynamo.pgo:get_code_state")
def get_code_state(real: Any, *args: Any, **kwargs: Any) -> Any:
    """A capture starts with no memory of earlier sizes, and leaves none."""
    state = getattr(_capturing, "code_state", None)
    return real(*args, **kwargs) if state is None else state


@free_hook("torch._dynamo.guards:CheckFunctionManager.id_ref")
def id_ref(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch ties guards to every object that they name with a finalizer, which keeps the guards as long as the
    object lives: for a module or a builtin, for ever. Those of a capture are let go with it."""
    finalizers = getattr(_capturing, "finalizers", None)
    registry: Any = getattr(weakref.finalize, "_registry", None)
    if finalizers is None or registry is None:
        return real(*args, **kwargs)
    before = len(registry)
    result = real(*args, **kwargs)
    if len(registry) > before:
        finalizers.append(next(reversed(registry)))
    return result


@free_hook("torch._dynamo.guards:get_tensor_guard_code_part")
def tensor_guard(real: Any, value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """What is asked of a tensor (its type, sizes, strides) is checked in C++; this is the text of it, which torch
    keeps beside its guards and does not export with them."""
    text = real(value, name, *args, **kwargs)
    tensors = getattr(_capturing, "tensors", None)
    if tensors is not None:
        tensors[name] = text
    return text


@free_hook("torch.fx.graph_module:_EvalCacheLoader.cache")
def eval_cache(real: Any, loader: Any, *args: Any, **kwargs: Any) -> Any:
    """torch.fx keeps the source of every graph that it ever made a function of; ours go with the capture."""
    key = real(loader, *args, **kwargs)
    texts = getattr(_capturing, "texts", None)
    if texts is not None:
        texts.append((loader, key))
    return key


def _drop_texts(texts: list[tuple[Any, str]]) -> None:
    for loader, key in texts:
        loader.eval_cache.pop(key, None)
        linecache.cache.pop(key, None)


def _let_go(finalizers: list[Any]) -> None:
    for finalizer in finalizers:
        finalizer.detach()


_one_at_a_time = threading.RLock()


def alone() -> contextlib.AbstractContextManager[Any]:
    """Where torch's configs belong to the whole process (2.11), captures of several threads take turns, or
    each would put back what another is using. Later configs belong to a thread."""
    import torch.utils._config_module as config_module

    return contextlib.nullcontext() if hasattr(config_module, "ContextVar") else _one_at_a_time


def in_own_context(call: Callable[[], None]) -> None:
    """Run ``call`` in a copy of the context: each patch of a torch config leaves a context variable behind,
    for ever. Variables of the program that the call set are set here too, as a plain call would."""
    inner = contextvars.copy_context()
    try:
        inner.run(call)
    finally:
        before = contextvars.copy_context()
        for variable, value in inner.items():
            if not variable.name.startswith("torch.") and before.get(variable, before) is not value:
                variable.set(value)


def isolate(undo: Undo, recorder: Recorder) -> None:
    """Have ``undo`` put back what a capture moves: random numbers, counters, limits, tables, the entries it made."""
    import torch._dynamo.convert_frame as convert_frame
    import torch._dynamo.pgo as pgo
    from torch._dynamo.symbolic_convert import TensorifyState

    _keep_random_state(undo)
    undo.add(_restore_environment, {name: os.environ.get(name) for name in _SET_BY_INDUCTOR})
    undo.add(sys.setrecursionlimit, sys.getrecursionlimit())
    undo.add(_restore_grad_mode, torch.is_grad_enabled())
    undo.add(_trim, edits := _metric_edits(), len(edits))
    undo.add(_settle, recorder)
    undo.add(recorder.owed.visited.clear)
    before = dict(convert_frame.FRAME_COMPILE_COUNTER)
    undo.add(_restore_numbers, before, convert_frame.FRAME_COUNTER, recorder)
    undo.add(_forget, recorder)
    numbers = TensorifyState.force_specializations
    undo.add(_refill, numbers, set(numbers))
    numbers.clear()
    if not recorder.wanted.build:
        ask_no_compiler(undo)
    # This one counts what others compiled as well, in every torch.
    undo.enter(torch._dynamo.config.patch(accumulated_recompile_limit=sys.maxsize))
    finalizers: list[Any] = []
    texts: list[tuple[Any, str]] = []
    undo.add(_let_go, finalizers)
    undo.add(_drop_texts, texts)
    own: dict[str, Any] = {"code_state": defaultdict(pgo.CodeState), "finalizers": finalizers, "texts": texts}
    own |= {"tensors": {}, "note": recorder.note}
    for name, value in own.items():
        undo.add(setattr, _capturing, name, getattr(_capturing, name, None))
        setattr(_capturing, name, value)


@contextlib.contextmanager
def random_state() -> Iterator[None]:
    """Every random state as before, also those of numpy and of devices that are in use."""
    with Undo() as undo, undo:
        _keep_random_state(undo)
        yield


def _keep_random_state(undo: Undo) -> None:
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        undo.add(numpy.random.set_state, numpy.random.get_state())
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        undo.add(torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all())
    if torch.backends.mps.is_available():
        undo.add(torch.mps.set_rng_state, torch.mps.get_rng_state())
    undo.add(random.setstate, random.getstate())
    undo.add(torch.random.set_rng_state, torch.random.get_rng_state())


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Nothing is compiled, and what was compiled before runs without its code."""
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def eagers_numbers() -> Iterator[None]:
    """Code that is generated draws the random numbers that eager PyTorch would."""
    import torch._inductor.config as config

    with config.patch(fallback_random=True):
        yield


@free_hook("torch._inductor.cpu_vec_isa:VecISA.check_build")
def check_build(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Code only asks no compiler whether it knows an instruction set that the processor has."""
    return True if getattr(_capturing, "no_compiler", False) else real(*args, **kwargs)


@free_hook("torch._inductor.cpp_builder:get_cpp_compiler")
def get_cpp_compiler(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Some loops are written differently for each compiler. Where there is none, they are written for the one that
    Inductor looked for, and that is said."""
    if not getattr(_capturing, "no_compiler", False):
        return real(*args, **kwargs)
    try:
        return real(*args, **kwargs)
    except RuntimeError:  # torch has an error of its own for each way of not finding one
        name = _looked_for()
        _capturing.assumed.append(name)
        note = getattr(_capturing, "note", None)
        if note is not None:
            note(f"no C++ compiler was found: the code is what Inductor writes for {name}")
        return name


def _looked_for() -> str:
    import torch._inductor.config as config

    names = config.cpp.cxx if isinstance(config.cpp.cxx, (list, tuple)) else (config.cpp.cxx,)
    return next((str(name) for name in reversed(names) if name), "g++")


@contextlib.contextmanager
def no_compiler() -> Iterator[None]:
    """Take the processor's word for its vector instructions."""
    with Undo() as undo, undo:
        ask_no_compiler(undo)
        yield


def ask_no_compiler(undo: Undo) -> None:
    """As ``no_compiler``, until ``undo``. A later real build in this process must ask the compiler too, so the
    answers are not left behind."""
    found = hook_points.find("torch._inductor.cpu_vec_isa:valid_vec_isa_list")
    probe = getattr(*found) if found is not None else None
    asked = probe is not None and hasattr(probe, "cache_info") and probe.cache_info().currsize > 0
    if probe is not None and hasattr(probe, "cache_clear") and not asked:
        undo.add(probe.cache_clear)
    undo.add(setattr, _capturing, "no_compiler", getattr(_capturing, "no_compiler", False))
    _capturing.no_compiler = True
    kinds = [getattr(*found) for path in _KINDS_OF_COMPILER if (found := hook_points.find(path)) is not None]
    fresh = [k for k in kinds if hasattr(k, "cache_clear") and not k.cache_info().currsize]
    assumed: list[str] = []
    undo.add(_forget_assumed, fresh, assumed)
    undo.add(setattr, _capturing, "assumed", getattr(_capturing, "assumed", None))
    _capturing.assumed = assumed


def _forget_assumed(kinds: list[Any], assumed: list[str]) -> None:
    """Torch remembers what kind of compiler it found; it shall not remember one that there is not."""
    for kind in kinds if assumed else ():
        kind.cache_clear()


def _metric_edits() -> list[Any]:
    """Where torch keeps, for each thread, the stack of every metric that it ever noted."""
    import torch._dynamo.utils as utils

    context = utils.get_metrics_context() if hasattr(utils, "get_metrics_context") else None
    return getattr(context, "_edits", [])


def _trim(items: list[Any], length: int) -> None:
    del items[length:]


_SET_BY_INDUCTOR = (
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR",
)
"""Environment variables that Inductor sets for its own use when it first builds something."""


def _restore_grad_mode(before: bool) -> None:
    if torch.is_grad_enabled() != before:  # the call is one that a mode of the program's sees
        torch.set_grad_enabled(before)


def _restore_environment(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _settle(recorder: Recorder) -> None:
    """Torch's counters, where an interrupt kept them from being put back at once."""
    for undo in list(recorder.owed.tallies):
        tallies.settle(recorder, undo)


def _restore_numbers(before: dict[Any, int], next_number: int, recorder: Recorder) -> None:
    """Frames of a capture take no number of the program's, and count against none of its limits."""
    import torch._dynamo.convert_frame as convert_frame

    for frame_id in {v.frame_id for v in recorder.owed.visited if v.frame_id is not None}:
        if frame_id in before:
            convert_frame.FRAME_COMPILE_COUNTER[frame_id] = before[frame_id]
        else:
            convert_frame.FRAME_COMPILE_COUNTER.pop(frame_id, None)
    taken = {v.frame_id for v in recorder.owed.visited if v.numbered}
    if all(v.done for v in recorder.owed.visited) and convert_frame.FRAME_COUNTER == next_number + len(taken):
        convert_frame.FRAME_COUNTER = next_number  # unless another thread took some, too


def _refill(names: set[str], before: set[str]) -> None:
    """Which Python numbers could not become inputs of a graph: torch remembers it by their names alone, so that it
    would hold for every later function with an argument of such a name."""
    names.clear()
    names.update(before)


def _forget(recorder: Recorder) -> None:
    """Drop what Dynamo keeps of this capture: its backend, and entries on code that outlives it."""
    cached = getattr(torch._dynamo.eval_frame, "cached_backends", None)
    if isinstance(cached, dict):
        for key, backend in list(cached.items()):
            if dynamo.recorder_of(backend) is recorder:
                del cached[key]
    for visited in recorder.owed.visited:
        if not visited.done:
            code_entries.forget(visited, lambda backend: dynamo.recorder_of(backend) is recorder)
    _forget_dead_codes()
    _clear_memos()


def _forget_dead_codes() -> None:
    """Dynamo lists every code object that it ever saw, by weak references that it never drops."""
    import torch._dynamo.convert_frame as convert_frame

    for tracker in (convert_frame.input_codes, convert_frame.output_codes):
        seen: list[Any] = getattr(tracker, "seen", [])
        for reference in [r for r in tuple(seen) if r() is None]:
            with contextlib.suppress(ValueError):  # another thread's capture was faster
                seen.remove(reference)


def _clear_memos() -> None:
    """Methods of ``ShapeEnv`` remember answers without a bound, keyed by the compile that asked, so that each
    compile stays alive for ever; nothing but time is lost when they forget."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    for method in vars(ShapeEnv).values():
        if hasattr(method, "cache_clear"):
            method.cache_clear()
