"""The caller's CPU tensors as Dynamo, AOTAutograd and Inductor see them: on the target.

From there on everything is torch's own: autocast, branches on the device, errors of mixed devices. Tensors that the
program itself makes on the CPU meanwhile, such as literals, are on the CPU, as they would be beside the real device.
"""

from __future__ import annotations

import collections
import functools
import os
import sys
from typing import Any

import torch
from torch._subclasses.meta_utils import MetaTensorDescriber

from ...errors import UsageError
from ...record import claims
from ..ground import hook_points
from .device_interfaces import MARK, PHASE
from .replacements import Replacements, marked, skip_in_dynamo

FAKING = "stand-in given"
"""Threads on which a tensor of the caller's is being made fake."""

FAKERS = (
    "torch._dynamo.variables.builder:wrap_to_fake_tensor_and_record",
    "torch._dynamo.utils:deepcopy_to_fake_tensor",
    "torch._functorch.aot_autograd:process_inputs",
    "torch._functorch.aot_autograd:construct_fake_mode",
)
"""Functions that make fake tensors from the caller's."""

COMPILES = "torch._dynamo.convert_frame:_compile"
"""Dynamo's compile of one frame, its backend included."""


for _path in (*FAKERS, COMPILES):
    hook_points.declare(_path, claims.INPUTS)


def place(places: Replacements, mark: str, device: torch.device) -> None:
    """Put them on ``device`` for what ``mark``-ed threads compile.

    Raises ``UsageError`` where this torch lacks one of these functions: what torch then compiled would be the CPU's.
    """
    functions = {path: hook_points.find(path) for path in (*FAKERS, COMPILES)}
    for path, target in functions.items():
        if target is None:
            raise UsageError(
                f"a capture for a target is not possible here: {hook_points.lacks(path)}, through which torch gets "
                "tensors of the device; leave target= out, or use a torch that compile_lens was tested with"
            )
        owner, name = target
        real = getattr(owner, name)
        places.attribute(owner, name, mark, _compiling(real) if path == COMPILES else _within(FAKING, real))
    describe = MetaTensorDescriber.describe_tensor
    on_the_cpu = _cpu_optimizer_state(places)

    def described(describer: Any, tensor: Any, **more: Any) -> Any:
        description = describe(describer, tensor, **more)
        if description.device.type in ("cpu", "meta") and id(tensor) not in on_the_cpu:
            object.__setattr__(
                description, "device", device
            )  # it was made just now, and nobody else holds it
        return description

    places.attribute(MetaTensorDescriber, "describe_tensor", FAKING, described)
    _streams(places)
    _start_nothing(places, device)


def _cpu_optimizer_state(places: Replacements) -> dict[int, torch.Tensor]:
    """Return tensors of optimizers that are on the CPU beside parameters on the device, by ``id``; grows during
    tracing.

    An optimizer that is not ``capturable`` counts its steps on the CPU. Dynamo moves those that plain steps have made
    (``move_step_if_cpu``), and new ones during tracing are on the device. NAdam alone keeps another number on the CPU,
    which stays there.
    """
    from torch._dynamo.variables.optimizer import OptimizerVariable

    tensors: dict[int, torch.Tensor] = {}
    move: Any = OptimizerVariable.move_step_if_cpu

    def moves(variable: Any) -> None:
        if isinstance(variable.value, torch.optim.NAdam):
            for group in variable.value.param_groups:
                states = [variable.value.state.get(p, {}) for p in group["params"]]
                kept = [state["mu_product"] for state in states if "mu_product" in state]
                if not group["capturable"]:
                    tensors.update((id(tensor), tensor) for tensor in kept)
        move(variable)

    places.attribute(OptimizerVariable, "move_step_if_cpu", PHASE, moves)
    return tensors


def _compiling(real: Any) -> Any:
    within = _within(PHASE, real)

    @functools.wraps(real)
    def compiles(*args: Any, **kwargs: Any) -> Any:
        _forget_modules()
        try:
            # Autograd starts its threads for devices once. For one that came later it works in this thread.
            with torch.autograd.set_multithreading_enabled(False):
                return within(*args, **kwargs)
        finally:
            _forget_modules()

    return compiles


def _forget_modules() -> None:
    """Clear torch's cached module of the accelerator: while tracing it is another than in untraced Python."""
    getattr(torch.get_device_module, "cache_clear", lambda: None)()


def _within(mark: str, real: Any) -> Any:
    @functools.wraps(real)
    def within(*args: Any, **kwargs: Any) -> Any:
        with marked(mark):
            return real(*args, **kwargs)

    return within


def _streams(places: Replacements) -> None:
    """Start without streams: Dynamo queries the device's current stream at the beginning of a frame."""
    try:
        from torch._dynamo.variables.streams import SymbolicStreamState
    except ImportError:  # torch 2.11 follows no streams
        return

    def begin(state: Any) -> None:
        state.cur_stream_stack = collections.deque()

    places.attribute(SymbolicStreamState, "__init__", PHASE, begin)


def _lazy_init(real: Any) -> Any:
    """Let Python that is not traced make tensors on the device, or move them there: see ``cpu_backed_tensors``."""

    def started() -> None:
        caller = sys._getframe(2).f_code.co_filename  # beyond the function that chose this one
        if caller.startswith(_CUDA_FOLDER):
            real()  # the driver is asked

    skip_in_dynamo(started)
    return started


_CUDA_FOLDER = os.path.join(os.path.dirname(torch.__file__), "cuda", "")


def _start_nothing(places: Replacements, device: torch.device) -> None:
    """Skip torch's starts of the device and queries of its driver while it traces."""
    import torch._subclasses.fake_tensor as fake_tensor
    import torch.cuda.graphs as graphs

    places.attribute(fake_tensor, "init_gpu_context", PHASE, lambda *device: None)
    for owner in (torch.cuda, graphs):
        places.attribute(owner, "is_current_stream_capturing", PHASE, lambda: False)
    if device.type == "cuda":  # for a Mac the error stays: Inductor catches it
        places.attribute(torch.cuda, "_lazy_init", PHASE, lambda: None)
        places.attribute(torch.cuda, "_lazy_init", MARK, _lazy_init(torch.cuda._lazy_init))
        # Its tensors determine the target.
        places.attribute(torch.cuda, "is_initialized", PHASE, lambda: True)
