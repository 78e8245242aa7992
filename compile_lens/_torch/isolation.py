"""Isolation of a capture from the program.

Dynamo remembers sizes by code location, counts compiles against limits, and keeps a few global tables. Whatever a
capture stores there is removed at its end (``ground``) or hidden from the program.
"""

from __future__ import annotations

import contextlib
import contextvars
import gc
import inspect
import linecache
import os
import random
import sys
import threading
import traceback
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, MutableSet
from typing import Any

import torch

from ..record import claims
from .code import compiler_probe
from .frames import code_copies, dynamo, skipped_frames
from .ground import cache_entries, counters, hook_points, log_filters
from .ground.hooks import free_hook
from .ground.recorder import Recorder
from .ground.undo import Undo

_capturing = threading.local()


def optimize(
    recorder: Recorder, backend: Callable[..., Any], fn: Any, *, fullgraph: bool, dynamic: bool | None
) -> Any:
    """Return ``torch.compile(fn, backend=backend)``, isolated from other cache entries where torch can isolate per
    thread, with callbacks that record guards and guard failures."""

    recorder_ref = weakref.ref(recorder)  # torch may keep guards longer than the capture

    def record_guards(guards: Any) -> None:
        if (alive := recorder_ref()) is not None:
            tensors = getattr(_capturing, "tensors", None) or {}
            draft = dynamo.current_draft(alive, None)
            with draft.recording("guards", claims.GUARDS):
                draft.guards = dynamo.guards(guards, tensors)
            tensors.clear()

    def record_failure(failure: Any) -> None:
        if (alive := recorder_ref()) is not None:
            try:
                alive.frames.current.failed_guards.append(dynamo.failed_guard(alive, str(failure.reason)))
            except Exception as error:
                why = f"compile_lens failed to record it ({type(error).__name__}: {error})"
                alive.lacking.setdefault(claims.RECOMPILES, why)

    options: dict[str, Any] = {
        "nopython": fullgraph,
        "dynamic": dynamic,
        "guard_export_fn": record_guards,
        "guard_fail_fn": record_failure,
        "isolate_recompiles": dynamo.can_isolate(),
    }
    supported = inspect.signature(torch._dynamo.eval_frame._optimize).parameters
    with Undo() as undo, undo:
        code_copies.leave_unmarked(undo, fn)
        return torch._dynamo.optimize(backend, **{k: v for k, v in options.items() if k in supported})(fn)


@free_hook("torch._dynamo.pgo:get_code_state", claims.SIZES)
def get_code_state(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the capture's own table of sizes, so that it sees no sizes from before and leaves none behind."""
    state = getattr(_capturing, "code_state", None)
    return real(*args, **kwargs) if state is None else state


@free_hook("torch._dynamo.guards:CheckFunctionManager.id_ref")
def id_ref(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Collect the finalizers of guards, to detach them when the capture ends.

    Torch attaches a finalizer to every object that a guard refers to, and the finalizer keeps the guard alive as long
    as the object: forever for a module or a builtin.
    """
    finalizers = getattr(_capturing, "finalizers", None)
    registry: Any = getattr(weakref.finalize, "_registry", None)
    if finalizers is None or registry is None:
        return real(*args, **kwargs)
    before = len(registry)
    result = real(*args, **kwargs)
    if len(registry) > before:
        finalizers.append(next(reversed(registry)))
    return result


@free_hook("torch._dynamo.guards:get_tensor_guard_code_part", claims.GUARDS)
def tensor_guard(real: Any, value: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """Record the text of a tensor's checks (type, sizes, strides), which run in C++: torch has this text with its
    guards but does not export it."""
    text = real(value, name, *args, **kwargs)
    tensors = getattr(_capturing, "tensors", None)
    if tensors is not None:
        tensors[name] = text
    return text


@free_hook("torch.fx.graph_module:_EvalCacheLoader.cache")
def eval_cache(real: Any, loader: Any, *args: Any, **kwargs: Any) -> Any:
    """Collect the keys of the sources that torch.fx caches for every graph, to drop the capture's own at its end."""
    key = real(loader, *args, **kwargs)
    texts = getattr(_capturing, "texts", None)
    if texts is not None:
        texts.append((loader, key))
    return key


@free_hook("torch._dynamo.utils:CleanupHook.create")
def cleanup(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Collect the hooks that remove names which Dynamo adds to a function's globals.

    Torch calls them when the compiled code dies. An abandoned attempt, as before each graph break, has no code, so its
    names would stay forever; so would, from 2.14 on, an entry in one of torch's tables.
    """
    created = real(*args, **kwargs)
    cleanups = getattr(_capturing, "cleanups", None)
    if cleanups is not None:
        cleanups.append(created)
    return created


def _clean_up(created: list[Any]) -> None:
    """Call the cleanup hooks of abandoned attempts."""
    from torch._dynamo.utils import CleanupManager

    lists = dict(getattr(CleanupManager.instance, "values", {})).values()
    owned = {id(one) for hooks in lists for one in hooks}
    while created:
        one = created.pop()
        if id(one) not in owned and one.name in one.scope:
            one()


def _drop_texts(texts: list[tuple[Any, str]]) -> None:
    for loader, key in texts:
        loader.eval_cache.pop(key, None)
        linecache.cache.pop(key, None)


def _detach(finalizers: list[Any]) -> None:
    for finalizer in finalizers:
        finalizer.detach()


_CAPTURE_LOCK = threading.RLock()


def capture_lock() -> contextlib.AbstractContextManager[Any]:
    """Return a lock if torch's configs are global to the process (2.11), else a null context. Without it, one thread's
    capture would restore settings that another's is using; later configs are per thread."""
    import torch.utils._config_module as config_module

    return contextlib.nullcontext() if hasattr(config_module, "ContextVar") else _CAPTURE_LOCK


_PYTHON_KEYS = tuple(
    getattr(torch._C.DispatchKey, name) for name in ("PythonDispatcher", "Python", "PythonTLSSnapshot")
)


def dispatch_state() -> tuple[bool, ...]:
    """Return this thread's inference mode, and which of Python's dispatch keys are included."""
    return (
        torch.is_inference_mode_enabled(),
        *map(torch._C._dispatch_tls_is_dispatch_key_included, _PYTHON_KEYS),
    )


def restore_dispatch(before: tuple[bool, ...], error: BaseException) -> None:
    """Restore the dispatch state ``before``, after the compiler raised ``error``.

    If autograd rejects a view under inference mode while AOTAutograd traces, torch stays in that mode with its Python
    dispatcher on and without a target, so that the program's next operator fails.
    """
    if dispatch_state() == before:
        return
    at: BaseException | None = error
    while at is not None:  # the mode ends when the frames that keep it alive are gone
        traceback.clear_frames(at.__traceback__)
        for frame, _line in traceback.walk_tb(at.__traceback__):
            _ = frame.f_locals  # refresh the cached dictionary, which otherwise keeps the old locals
        at = at.__cause__ or at.__context__
    gc.collect()
    for key, included in zip(_PYTHON_KEYS, before[1:]):
        torch._C._dispatch_tls_set_dispatch_key_included(key, included)


def in_own_context(call: Callable[[], None]) -> None:
    """Run ``call`` in a copy of the context, since each patch of a torch config leaves a context variable behind
    forever. The program's own variables that the call sets are set in the caller's context too."""
    inner = contextvars.copy_context()
    try:
        inner.run(call)
    finally:
        before = contextvars.copy_context()
        for variable, value in inner.items():
            if not variable.name.startswith("torch.") and before.get(variable, before) is not value:
                variable.set(value)


def isolate(undo: Undo, recorder: Recorder) -> None:
    """Have ``undo`` restore what a capture changes: random numbers, counters, limits, tables, and cache entries."""
    import torch._dynamo.convert_frame as convert_frame
    import torch._dynamo.pgo as pgo

    _keep_random_state(undo)
    log_filters.bypass_root_handlers(undo)
    _ENVIRONMENT.keep(undo)
    _RECURSION_LIMIT.keep(undo)
    undo.add(_restore_grad_mode, torch.is_grad_enabled())
    undo.add(_trim, edits := _metric_edits(), len(edits))
    undo.add(_restore_counters, recorder)
    undo.add(recorder.leftovers.codes.clear)
    skipped_frames.observe_layers()
    before = dict(convert_frame.FRAME_COMPILE_COUNTER)
    undo.add(_restore_frame_numbers, before, convert_frame.FRAME_COUNTER, recorder)
    undo.add(_drop_references, recorder)
    _clear_specialized_numbers(undo)
    _restore_metal_headers(undo)
    if not recorder.spec.build:
        compiler_probe.skip_probes(undo, recorder.note)
    # In every torch this limit also counts what others compiled.
    undo.enter(torch._dynamo.config.patch(accumulated_recompile_limit=sys.maxsize))
    finalizers: list[Any] = []
    texts: list[tuple[Any, str]] = []
    cleanups: list[Any] = []
    undo.add(_clean_up, cleanups)
    undo.add(_detach, finalizers)
    undo.add(_drop_texts, texts)
    own: dict[str, Any] = {
        "code_state": defaultdict(pgo.CodeState),
        "finalizers": finalizers,
        "texts": texts,
        "cleanups": cleanups,
        "tensors": {},
    }
    for name, value in own.items():
        undo.add(setattr, _capturing, name, getattr(_capturing, name, None))
        setattr(_capturing, name, value)


@contextlib.contextmanager
def random_state() -> Iterator[None]:
    """Restore every random state on exit, including numpy's and those of devices in use."""
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
def forced_eager() -> Iterator[None]:
    """Compile nothing for the duration, and run compiled functions eagerly."""
    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def eager_random_numbers() -> Iterator[None]:
    """For the duration, generate code that draws the same random numbers as eager PyTorch."""
    import torch._inductor.config as config

    with config.patch(fallback_random=True), _eager_rrelu():
        yield


@contextlib.contextmanager
def _eager_rrelu() -> Iterator[None]:
    """Draw eager's numbers for ``rrelu``, which Inductor before 2.13 rewrites even under ``fallback_random``."""
    from torch._decomp.decompositions_for_rng import extra_random_decomps
    from torch._inductor.decomposition import decompositions

    op = torch.ops.aten.rrelu_with_noise_functional.default
    rewritten = None if op in extra_random_decomps else decompositions.pop(op, None)
    try:
        yield
    finally:
        if rewritten is not None:
            decompositions[op] = rewritten


def _metric_edits() -> list[Any]:
    """Return this thread's list of metric edits with their stacks, to which torch only appends."""
    import torch._dynamo.utils as utils

    context = utils.get_metrics_context() if hasattr(utils, "get_metrics_context") else None
    return getattr(context, "_edits", [])


def _trim(items: list[Any], length: int) -> None:
    del items[length:]


SET_BY_INDUCTOR = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "_TORCHINDUCTOR_PYOBJECT_TENSOR_DATA_PTR")
"""Environment variables that Inductor sets for itself on its first build."""


def _restore_grad_mode(before: bool) -> None:
    if torch.is_grad_enabled() != before:  # a mode of the program would see a redundant call
        torch.set_grad_enabled(before)


def restore_environment(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


class _Shared:
    """State of the process that captures of several threads change at once. The last capture restores the value from
    before the first; if each restored what it had read, one would bring back another's change."""

    def __init__(self, read: Callable[[], Any], restore: Callable[[Any], object]) -> None:
        self._read, self._restore = read, restore
        self._lock = threading.Lock()
        self._users: set[object] = set()
        self._before: Any = None

    def keep(self, undo: Undo) -> None:
        """Restore the state once this capture and all that overlap with it have ended."""
        user = object()
        undo.add(self._leave, user)
        with self._lock:
            if not self._users:
                self._before = self._read()
            self._users.add(user)

    def _leave(self, user: object) -> None:
        with self._lock:
            if user in self._users:
                if len(self._users) == 1:
                    self._restore(self._before)
                self._users.remove(user)


_ENVIRONMENT = _Shared(lambda: {name: os.environ.get(name) for name in SET_BY_INDUCTOR}, restore_environment)
_RECURSION_LIMIT = _Shared(sys.getrecursionlimit, sys.setrecursionlimit)


def _restore_counters(recorder: Recorder) -> None:
    """Restore torch's counters if an interrupt prevented that earlier."""
    for undo in list(recorder.leftovers.counters):
        counters.restore(recorder, undo)


def _restore_frame_numbers(before: dict[Any, int], next_number: int, recorder: Recorder) -> None:
    """Release the frame numbers of a capture, so that they count against none of the program's limits."""
    import torch._dynamo.convert_frame as convert_frame

    for frame_id in {v.frame_id for v in recorder.leftovers.codes if v.frame_id is not None}:
        if frame_id in before:
            convert_frame.FRAME_COMPILE_COUNTER[frame_id] = before[frame_id]
        else:
            convert_frame.FRAME_COMPILE_COUNTER.pop(frame_id, None)
    taken = {v.frame_id for v in recorder.leftovers.codes if v.numbered}
    if all(v.done for v in recorder.leftovers.codes) and convert_frame.FRAME_COUNTER == next_number + len(
        taken
    ):
        convert_frame.FRAME_COUNTER = next_number  # unless another thread took numbers as well


def _clear_specialized_numbers(undo: Undo) -> None:
    """Clear, until ``undo``, torch's names of Python numbers that cannot be graph inputs: torch applies them to every
    later function with an argument of such a name."""
    place = hook_points.find("torch._dynamo.symbolic_convert:TensorifyState.force_specializations")
    names = getattr(*place) if place is not None else None
    if isinstance(names, set):
        undo.add(_refill, names, set(names))
        names.clear()


def _refill(names: MutableSet[str], before: Iterable[str]) -> None:
    names.clear()
    for name in before:
        names.add(name)


def _restore_metal_headers(undo: Undo) -> None:
    """Restore the headers that torch stores on its class of Metal kernels. A header that one kernel needs (for
    reductions, or for index checks, which add an error buffer) would go into all later kernels of the process."""
    place = hook_points.find("torch._inductor.codegen.mps:MetalKernel.headers")
    headers = getattr(*place) if place is not None else None
    if isinstance(headers, MutableSet):
        undo.add(_refill, headers, list(headers))
    place = hook_points.find("torch._inductor.codegen.mps:MetalKernel.multistage_reduction_entry")
    entries = getattr(*place) if place is not None else None
    if isinstance(entries, list):  # not empty only if an error or an interrupt kept torch from clearing it
        undo.add(_trim, entries, len(entries))


def _drop_references(recorder: Recorder) -> None:
    """Drop Dynamo's references to this capture: its cached backend, and cache entries on code that outlives it."""
    cached = getattr(torch._dynamo.eval_frame, "cached_backends", None)
    if isinstance(cached, dict):
        for key, backend in list(cached.items()):
            if dynamo.recorder_of(backend) is recorder:
                del cached[key]
    for visited in recorder.leftovers.codes:
        if not visited.done:
            cache_entries.drop_entries(visited, lambda backend: dynamo.recorder_of(backend) is recorder)
    _forget_dead_codes()
    _clear_memos()


def _forget_dead_codes() -> None:
    """Drop dead weak references from Dynamo's lists of all input and output code objects."""
    import torch._dynamo.convert_frame as convert_frame

    for tracker in (convert_frame.input_codes, convert_frame.output_codes):
        seen: list[Any] = getattr(tracker, "seen", [])
        for reference in [r for r in tuple(seen) if r() is None]:
            with contextlib.suppress(ValueError):  # another thread's capture was faster
                seen.remove(reference)


def _clear_memos() -> None:
    """Clear caches whose keys keep a compile's objects alive: forever in ``ShapeEnv``, for 32 kernels in the tilings.
    This costs only time."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    simd = getattr(sys.modules.get("torch._inductor.codegen.simd"), "SIMDScheduling", None)
    tilings = getattr(simd, "candidate_tilings", None)
    for method in (*vars(ShapeEnv).values(), tilings):
        if hasattr(method, "cache_clear"):
            method.cache_clear()
