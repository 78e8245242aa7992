"""The inspect backend under its name, for whole programs: nothing is isolated, since it is the user's compile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from . import backend, isolation, session
from .frames import dynamo
from .ground import garbage, hooks
from .ground.recorder import Recorder


def compile(
    gm: torch.fx.GraphModule,
    example_inputs: list[Any],
    patches: dict[str, Any],
    build: bool,
    previous: Any,
    describe: Callable[[Any], str],
) -> tuple[Recorder, Any, str]:
    """Compile one graph of a program: its recorder, what to call, and the name of the program's function.

    ``describe`` says of an input what it is.

    The rest of a function after a graph break continues the recorder of its beginning.
    """
    code = getattr(backend.translator(), "f_code", None)
    name = getattr(code, "co_name", "<graph>")
    continues = name.startswith("torch_dynamo_resume_in_") and isinstance(previous, Recorder)
    recorder = previous if continues else Recorder(build=build, backward=True, patches=patches)
    if not continues:
        recorder.inputs = [f"{name}: {describe(x)}" for name, x in dynamo.arguments(gm, example_inputs)]
    recorder.start()
    devices = {x.device.type for x in example_inputs if isinstance(x, torch.Tensor)} - {"cpu"}
    with hooks.placed(), garbage.later(), contextlib.nullcontext() if build else isolation.no_compiler():
        recorder.isa = session.instruction_set(build)
        compiled = backend.make(recorder)(gm, example_inputs)
    if devices:
        recorder.target = sorted(devices)[0]
    dynamo.keep_source(recorder, code)
    first = next(iter(recorder.drafts.values()), None)
    return recorder, compiled, first.function if first is not None else name
