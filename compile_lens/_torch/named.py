"""The inspect backend under its name, for whole programs: nothing is isolated, since it is the user's compile."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from . import backend, session
from .code import no_compiler
from .frames import dynamo
from .ground import garbage, hooks
from .ground.parts import Wanted
from .ground.recorder import Recorder


@dataclasses.dataclass(frozen=True)
class Program:
    """What was seen of a program: ``function`` is the name of the one that was compiled first, ``inputs`` say what its
    arguments were."""

    recorder: Recorder
    function: str
    inputs: tuple[str, ...]


def compile(
    gm: torch.fx.GraphModule,
    example_inputs: list[Any],
    patches: dict[str, Any],
    build: bool,
    previous: Program | None,
    describe: Callable[[Any], str],
) -> tuple[Program, Any]:
    """Compile one graph of a program: what was seen of the program, and what to call.

    ``describe`` says of an input what it is.

    The rest of a function after a graph break continues the recorder of its beginning.
    """
    code = getattr(backend.translator(), "f_code", None)
    name = getattr(code, "co_name", "<graph>")
    if previous is not None and name.startswith("torch_dynamo_resume_in_"):
        recorder, inputs = previous.recorder, previous.inputs
    else:
        recorder = Recorder(Wanted(build, backward=True, patches=patches))
        inputs = tuple(f"{name}: {describe(x)}" for name, x in dynamo.arguments(gm, example_inputs))
    recorder.clock.start()
    devices = {x.device.type for x in example_inputs if isinstance(x, torch.Tensor)} - {"cpu"}
    with (
        hooks.placed(),
        garbage.later(),
        contextlib.nullcontext() if build else no_compiler.not_asked(recorder.note),
    ):
        recorder.made_for.isa = session.instruction_set(build)
        compiled = backend.make(recorder)(gm, example_inputs)
    if devices:
        recorder.made_for.device = sorted(devices)[0]
    dynamo.keep_source(recorder, code)
    first = next(iter(recorder.drafts.values()), None)
    return Program(recorder, first.function if first is not None else name, inputs), compiled
