"""One capture from start to end: compile, run once, record, restore everything."""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Callable
from typing import Any

import torch

from ..record import messages
from ..record.capture import Failure
from ..record.device import DeviceModel
from . import ablation, backend, isolation, targets
from .frames import code_copies, dynamo, own_calls, skipped_frames
from .frames.failure import failure
from .ground import compiler_stance, hook_points, hooks, log_filters, values
from .ground.gradient_edges import gradient_edges
from .ground.program_hooks import without_torch_function
from .ground.recorder import Recorder
from .ground.recorder_state import Call, CaptureSpec
from .ground.undo import Undo


@dataclasses.dataclass(frozen=True)
class Request(CaptureSpec):
    """The options of one session: those of the capture and of the calls that it captures.

    Attributes:
        launch_backward: with ``build``, run the compiled backward too, which frees the result's autograd graph.
        steps: names of the ablations to compile with the capture.
        model: the device to generate code for, if not that of the inputs.
        later: arguments of the calls after the first, each as ``(args, kwargs)``.
        then: called after the calls, while the compiled code still exists, with the outcome, the compiled callable, the
            eager one, and the switch between steps.
        compiled: notes about functions compiled in place, for a module from another process, which arrives without
            them.
    """

    dynamic: bool | None = None
    fullgraph: bool = False
    launch_backward: bool = False
    steps: tuple[str, ...] = ()
    model: DeviceModel | None = None
    later: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = ()
    then: Callable[[Outcome, Any, Any, ablation.Switch], None] | None = None
    compiled: tuple[str, ...] | None = None


@dataclasses.dataclass
class Outcome:
    """The recording of one session. ``error`` is the exception that the function or the compiler raised, ``later`` the
    results of the calls after the first."""

    recorder: Recorder
    steps: list[ablation.Step] = dataclasses.field(default_factory=list)
    result: Any = None
    later: list[Any] = dataclasses.field(default_factory=list)
    error: Exception | None = None
    failure: Failure | None = None
    nothing: str = ""


def inductor_patches(
    mode: str | None, options: dict[str, Any] | None, dynamic: bool | None
) -> dict[str, Any]:
    """Return Inductor's settings for a ``mode`` and ``options``, checked by torch itself.

    Raises RuntimeError, as ``torch.compile`` does, for an unknown mode or option.
    """
    if isinstance(options, dict) and all(isinstance(name, str) for name in options):
        known = {name for name in inductor_settings() if not name.isupper()}
        for name in options:
            if name.replace("-", "_") not in known:
                close = difflib.get_close_matches(name.replace("-", "_"), sorted(known), 3)
                meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
                raise RuntimeError(
                    f"Inductor has no option {name!r}; {meant}torch._inductor.list_options() lists all "
                    f"{len(known)}"
                )
    wrapper = torch._TorchCompileInductorWrapper(mode, options, dynamic)
    return dict(wrapper.config)


def inductor_settings() -> dict[str, Any]:
    """Return Inductor's current settings by name."""
    import torch._inductor.config as config

    return dict(config.get_config_copy())


def run(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], request: Request) -> Outcome:
    """Compile ``fn`` for these arguments while recording, and call it once."""
    recorder = Recorder(request)
    target, note = code_copies.uncompiled_function(fn)
    known = code_copies.compiled_notes(target) if request.compiled is None else request.compiled
    for text in dict.fromkeys((note, *known)):
        recorder.note(text)
    dynamo.keep_root(recorder, target)
    for path in hook_points.absent_paths():
        recorder.lose(path, hook_points.lacks(path))
    outcome = Outcome(recorder)

    def call() -> None:
        with Undo() as undo, undo:
            hooks.place(undo, recorder)
            hooks.compile_for(undo, None)
            own_calls.skip_own_files(undo)
            isolation.isolate(undo, recorder)
            if request.model is not None:
                log_filters.drop_duplicates(undo)
            with targets.stand_in_for(recorder, request.model):
                code_copies.call_uncompiled(undo, target)
                copied = code_copies.copied(undo, target)
                stands_in = request.model is not None and request.model.device == "cpu" and request.model.arch
                recorder.target.isa = stands_in or instruction_set(request.build)
                outcome.steps = ablation.steps(request.steps, recorder)
                switch = ablation.Switch()
                inspect_backend = (
                    ablation.make(recorder, outcome.steps, switch)
                    if outcome.steps
                    else backend.make(recorder)
                )
                compiled = isolation.optimize(
                    recorder, inspect_backend, copied, fullgraph=request.fullgraph, dynamic=request.dynamic
                )
                recorder.clock.start()
                before = isolation.dispatch_state()
                try:
                    if request.later:
                        recorder.frames.calls.append(Call())
                    outcome.result = _finish_call(recorder, request, target, compiled(*args, **kwargs))
                    for more, by_name in request.later:
                        recorder.frames.calls.append(Call())
                        result = _finish_call(recorder, request, target, compiled(*more, **by_name))
                        outcome.later.append(result)
                except Exception as error:
                    outcome.error = error
                    outcome.failure = failure(recorder, error)
                    outcome.result = None
                    outcome.later.clear()
                    isolation.restore_dispatch(before, error)
                if request.then is not None and outcome.error is None:
                    request.then(outcome, compiled, target, switch)

    with isolation.capture_lock():
        isolation.in_own_context(call)
    for text in code_copies.parts_note(dynamo.compiled_inside(recorder, target)):
        recorder.note(text)
    recorder.note(skipped_frames.foreign_note(recorder))
    if recorder.eager_frames():
        recorder.note(messages.WITHOUT_SKIPPED)
    outcome.nothing = _reason_for_no_graph(recorder, fn, target) if outcome.error is None else ""
    return outcome


def _finish_call(recorder: Recorder, request: Request, target: Any, result: Any) -> Any:
    """Return ``result``, that of a call of the compiled ``target``, after running its backward and stamping the code
    that ran, as the request says."""
    recorder.clock.lap("run")
    never_ran = skipped_frames.never_ran(recorder, target, result)
    if request.build:
        if not never_ran:
            recorder.stamp("inference", "ran")
            recorder.stamp("forward", "ran")
        if request.launch_backward:
            try:
                ran = _run_backward(result)
            except (
                Exception
            ) as error:  # the program calls no backward, so torch.compile would not have raised
                if any("backward" in draft.stages for draft in recorder.drafts.values()):
                    recorder.note(NOT_LAUNCHED.format(type(error).__name__, messages.summary(str(error))))
                return result
            if ran:
                recorder.stamp("backward", "ran")
                recorder.clock.lap("run")
    return result


NOT_LAUNCHED = "the backward was built and not run to its end: {0}: {1}"
"""Note about a backward that raised when the capture ran it, which the program did not ask for."""


def instruction_set(build: bool) -> str:
    """Return the vector ISA for which C++ code is generated; with ``build`` the compiler is probed for support."""
    import torch._inductor.config as config
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    try:
        with config.patch({} if build else {"cpp.vec_isa_ok": True}):
            return str(pick_vec_isa())
    except Exception as error:  # no compiler to probe; a build raises its own error
        return f"unknown ({type(error).__name__})"


def missing_compiler() -> str:
    """Return why Inductor finds no C++ compiler, ``""`` if it finds one."""
    from torch._inductor import cpp_builder

    try:
        cpp_builder.get_cpp_compiler()
    except Exception as error:  # torch has several exception types for a missing compiler
        lines = str(error).strip().splitlines()
        return lines[0].rstrip(".") if lines else type(error).__name__
    return ""


def _run_backward(result: Any) -> bool:
    """Run the compiled backward on the sum of the differentiable outputs without touching ``.grad``; return False if
    there are none."""
    roots = differentiable(result)
    if not roots:
        return False
    gradients(roots)
    return True


@without_torch_function
def differentiable(result: Any) -> list[torch.Tensor]:
    """Return the tensors of a result on which backward can be called."""
    return [
        x for x in result_tensors(result) if x.requires_grad and (x.is_floating_point() or x.is_complex())
    ]


def result_tensors(result: Any) -> list[torch.Tensor]:
    """Return the tensors in a result, in containers of any kind."""
    return [x for _, x in values.named_tensors([("result", result)])]


def gradients(roots: list[torch.Tensor]) -> list[torch.Tensor | None]:
    """Return the gradient of the sum of ``roots`` with respect to each leaf that they depend on, without touching
    ``.grad``."""
    edges = [edge for _, edge in gradient_edges(roots)]
    if not edges:
        return []
    ones = [torch.ones_like(r) for r in roots]
    return list(torch.autograd.grad(roots, edges, ones, allow_unused=True))


_DISABLE_VARIABLE = "TORCHDYNAMO_DISABLE"
"""Environment variable that makes torch.compile return its argument; another sets the config."""


def _reason_for_no_graph(recorder: Recorder, fn: Any, target: Any) -> str:
    if any("dynamo" in draft.stages for draft in recorder.drafts.values()):
        return ""
    if torch._dynamo.config.disable:
        return "torch.compile is switched off in this process (torch._dynamo.config.disable)"
    if os.environ.get(_DISABLE_VARIABLE) == "1":
        return f"torch.compile is switched off in this process ({_DISABLE_VARIABLE}=1 in its environment)"
    for candidate in (fn, target, getattr(target, "forward", None)):
        if getattr(candidate, "_torchdynamo_disable", False):
            return "the function is marked with torch.compiler.disable"
    endings = [
        d.ending for d in recorder.drafts.values() if d.ending is not None and d.ending.kind != "return"
    ]
    skipped_text = skipped_frames.summary(recorder)
    if endings:
        first = messages.summary(endings[0].reason)
        sentence = f"Dynamo found no tensor operation to compile before a graph break: {first}"
        return f"{sentence}; then {skipped_text}" if skipped_text else sentence
    if skipped_text:
        return skipped_text
    if recorder.drafts:
        return "Dynamo looked at it and found no tensor operation to compile"
    if recorder.frames.skips:
        return "Dynamo skipped every frame: " + "; ".join(dict.fromkeys(recorder.frames.skips))
    stance = compiler_stance.current()
    if stance in compiler_stance.EFFECTS:
        return f"torch.compiler.set_stance({stance!r}) is in force: {compiler_stance.EFFECTS[stance]}"
    return "Dynamo skipped every frame: no tensor reached a Python function that it compiles"
