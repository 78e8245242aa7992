"""The caller's CPU tensors, presented to Dynamo, AOTAutograd and Inductor as tensors on the target.

Everything else is torch's own: autocast, branches on the device, errors for mixed devices. Tensors that the program
creates on the CPU, such as literals, stay on the CPU, as with the real device.
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
"""Mark of threads that are converting one of the caller's tensors to a fake tensor."""

FAKERS = (
    "torch._dynamo.variables.builder:wrap_to_fake_tensor_and_record",
    "torch._dynamo.utils:deepcopy_to_fake_tensor",
    "torch._functorch.aot_autograd:process_inputs",
    "torch._functorch.aot_autograd:construct_fake_mode",
)
"""Functions that convert the caller's tensors to fake tensors."""

COMPILES = "torch._dynamo.convert_frame:_compile"
"""Dynamo's compile of one frame, including the backend."""


for _path in (*FAKERS, COMPILES):
    hook_points.declare(_path, claims.INPUTS)


def place(places: Replacements, mark: str, device: torch.device) -> None:
    """Present the tensors on ``device`` in compiles of threads marked ``mark``.

    Raises ``UsageError`` if this torch lacks one of these functions, since it would compile for the CPU.
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
            )  # the description is new, and nothing else refers to it
        return description

    places.attribute(MetaTensorDescriber, "describe_tensor", FAKING, described)
    _streams(places)
    _skip_initialisation(places, device)


def _cpu_optimizer_state(places: Replacements) -> dict[int, torch.Tensor]:
    """Return the optimizer state that stays on the CPU with parameters on the device, by ``id``; it grows during
    tracing.

    An optimizer that is not ``capturable`` counts steps on the CPU. Dynamo moves existing counts to the device
    (``move_step_if_cpu``), and creates new ones there. Only NAdam has another number on the CPU, which stays there.
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
            # Autograd starts its device threads once, so for a device added later it must run in this thread.
            with torch.autograd.set_multithreading_enabled(False):
                return within(*args, **kwargs)
        finally:
            _forget_modules()

    return compiles


def _forget_modules() -> None:
    """Clear torch's cached accelerator module, which differs between tracing and untraced Python."""
    getattr(torch.get_device_module, "cache_clear", lambda: None)()


def _within(mark: str, real: Any) -> Any:
    @functools.wraps(real)
    def within(*args: Any, **kwargs: Any) -> Any:
        with marked(mark):
            return real(*args, **kwargs)

    return within


def _streams(places: Replacements) -> None:
    """Let Dynamo start a frame without streams, for which it would query the device's current stream."""
    try:
        from torch._dynamo.variables.streams import SymbolicStreamState
    except ImportError:  # torch 2.11 does not trace streams
        return

    def begin(state: Any) -> None:
        state.cur_stream_stack = collections.deque()

    places.attribute(SymbolicStreamState, "__init__", PHASE, begin)


def _lazy_init(real: Any) -> Any:
    """Let untraced Python create tensors on the device or move them there (``cpu_backed_tensors``)."""

    def started() -> None:
        caller = sys._getframe(2).f_code.co_filename  # the caller of the marked_only function
        if caller.startswith(_CUDA_FOLDER):
            real()  # a query of the driver

    skip_in_dynamo(started)
    return started


_CUDA_FOLDER = os.path.join(os.path.dirname(torch.__file__), "cuda", "")


def _skip_initialisation(places: Replacements, device: torch.device) -> None:
    """Skip torch's initialisation of the device and queries of its driver while it traces."""
    import torch._subclasses.fake_tensor as fake_tensor
    import torch.cuda.graphs as graphs

    places.attribute(fake_tensor, "init_gpu_context", PHASE, lambda *device: None)
    for owner in (torch.cuda, graphs):
        places.attribute(owner, "is_current_stream_capturing", PHASE, lambda: False)
    if device.type == "cuda":  # for a Mac the error remains, which Inductor catches
        places.attribute(torch.cuda, "_lazy_init", PHASE, lambda: None)
        places.attribute(torch.cuda, "_lazy_init", MARK, _lazy_init(torch.cuda._lazy_init))
        # The program's tensors count as being on the device.
        places.attribute(torch.cuda, "is_initialized", PHASE, lambda: True)
