"""The registered inspect backend, for whole programs. Nothing is isolated: the compile is the user's own."""

from __future__ import annotations

import contextlib
import dataclasses
import types
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
import torch.fx

from . import backend, session
from .code import compiler_probe
from .frames import dynamo
from .ground import hooks, python_runtime
from .ground.recorder import Draft, Recorder
from .ground.recorder_state import CaptureSpec


@dataclasses.dataclass(frozen=True)
class BackendProgram:
    """The recording of a program: everything that one ``torch.compile`` compiled.

    Attributes:
        function: name of the function that was compiled first; ``inputs`` describes its arguments.
        owner: weak reference to the wrapper that ``torch.compile`` created around the backend.
        pending: compiles whose guards torch had not yet built when it called the backend.
    """

    recorder: Recorder
    function: str
    inputs: tuple[str, ...]
    owner: weakref.ref[Any]
    pending: list[Pending] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True)
class Pending:
    """A compile whose guards are to be read: torch's set of them, and the code object and compile id of its cache
    entry."""

    draft: Draft
    guards: Iterable[Any]
    code: weakref.ref[types.CodeType]
    id: str


def compile(
    gm: torch.fx.GraphModule,
    example_inputs: list[Any],
    patches: dict[str, Any],
    build: bool,
    known: Sequence[BackendProgram],
    describe: Callable[[Any], str],
) -> tuple[BackendProgram, Any]:
    """Compile one graph of a program; return its recording and the compiled callable.

    ``describe`` returns the description of an input. A further compile of the same ``torch.compile`` (of another
    function or a resume function, or a recompile) continues its program in ``known``.
    """
    translator = backend.translator()
    code = getattr(translator, "f_code", None)
    name = getattr(code, "co_name", "<graph>")
    output = getattr(translator, "output", None)
    owner = _owner(getattr(output, "compiler_fn", None))
    program = next((p for p in known if owner is not None and p.owner() is owner), None)
    if program is None:
        inputs = tuple(f"{name}: {describe(x)}" for name, x in dynamo.arguments(gm, example_inputs, output))
        recorder = Recorder(CaptureSpec(build, backward=True, patches=patches))
        program = BackendProgram(recorder, name, inputs, weakref.ref(recorder if owner is None else owner))
    else:
        read_guards(program)
    recorder = program.recorder
    recorder.clock.start()
    devices = {x.device.type for x in example_inputs if isinstance(x, torch.Tensor)} - {"cpu"}
    with (
        hooks.in_place(recorder),
        python_runtime.less_garbage_collection(),
        contextlib.nullcontext() if build else compiler_probe.without_probing(recorder.note),
    ):
        recorder.target.isa = session.instruction_set(build)
        compiled = backend.make(recorder)(gm, example_inputs)
    if translator is not None and code is not None:
        _await_guards(program, translator, code)
    if devices:
        recorder.target.device = sorted(devices)[0]
    dynamo.keep_source(recorder, code)
    first = next(iter(recorder.drafts.values()), None)
    return dataclasses.replace(program, function=first.function if first is not None else name), compiled


def _owner(compiler: Any) -> Any:
    """Return the wrapper that ``torch.compile`` created around the backend, given the one that Dynamo calls."""
    for _ in range(8):
        inner = getattr(compiler, "_torchdynamo_orig_backend", None)
        if inner is None or inner is compiler:
            break
        compiler = inner
    return compiler


def _await_guards(program: BackendProgram, translator: Any, code: types.CodeType) -> None:
    """Record the reason for a recompile, and that the guards are to be read once torch has built them."""
    draft = dynamo.current_draft(program.recorder, code)
    guards = translator.output.guards
    id = str(torch._guards.CompileContext.current_compile_id())
    program.pending.append(Pending(draft, getattr(guards, "inner", guards), weakref.ref(code), id))
    context = torch._dynamo.utils.get_metrics_context()
    reason = getattr(context, "_metrics", {}).get("recompile_reason")
    if reason:
        draft.recompile_reasons = [dynamo.failed_guard(program.recorder, str(reason))]


def read_guards(program: BackendProgram) -> None:
    """Read the guards of the last compiles, which torch builds after the backend has returned."""
    while program.pending:
        one = program.pending.pop(0)
        code = one.code()
        entries = [] if code is None else torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code)
        entry = next((e for e in entries if str(getattr(e, "compile_id", "")) == one.id), None)
        if entry is None:
            program.recorder.note(
                f"what the guards of {one.draft.id} ask of tensors is not known: torch let it go"
            )
        one.draft.guards = dynamo.guards(
            one.guards, {} if entry is None else dynamo.tensor_checks(entry.guard_manager.root)
        )
