"""Capture of whole programs through the named backend, ``torch.compile(f, backend="compile_lens")``."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

from ..engine.environment import environment
from ..engine.options import CaptureOptions, describe, inductor_patches
from ..engine.record import recorded
from ..record import claims
from ..record.capture import Options
from ..record.missing import Missing
from ..results.capture import Capture

if TYPE_CHECKING:
    from .._torch.registered_backend import BackendProgram

_lock = threading.Lock()
_WHY = "what Dynamo skipped is not seen by the named backend, which receives only graphs: use watch() or capture()"
_NOT_OBSERVED = tuple(
    Missing(claim, _WHY) for claim in (claims.BREAKS, claims.SKIPS, claims.RECOMPILES, claims.EVALUATIONS)
)


_programs: list[BackendProgram] = []
"""Programs that the named backend compiled for, the latest last."""


def backend(gm: torch.fx.GraphModule, example_inputs: list[Any], **given: Any) -> Any:
    """Compile a graph and record it, as the backend of ``torch.compile(f, backend="compile_lens")``.

    By default the graph runs eagerly; ``compile_lens.last()`` returns the capture. Dynamo calls this with a graph and
    its inputs.

    Args:
        given: other arguments of ``torch.compile``: ``mode``, one of ``MODES`` (Inductor's), and ``options``, a dict,
            in which ``"build": True`` builds and runs the generated code and the others are Inductor's.

    Raises:
        UsageError: a mode or an option is unknown.
    """
    from .._torch import registered_backend

    options = dict(given.get("options") or {})
    build = CaptureOptions(build=options.pop("build", False)).build
    patches = inductor_patches(given.get("mode"), options or None, None)
    program, compiled = registered_backend.compile(
        gm, example_inputs, patches, build, tuple(_programs), describe
    )
    with _lock:
        others = (p for p in _programs if p.recorder is not program.recorder and p.owner() is not None)
        _programs[:] = [*others, program]
    return compiled


def last() -> Capture | None:
    """Return the capture of the latest program that ``backend="compile_lens"`` compiled; None before the first.

    A program is everything compiled for one call of ``torch.compile``: functions, their parts between graph breaks,
    recompiles. Each is one of the capture's compilations, with its guards.
    """
    from .._torch import registered_backend

    with _lock:
        if not _programs:
            return None
        program = _programs[-1]
        registered_backend.read_guards(program)
    recorder = program.recorder
    return recorded(
        recorder,
        program.function,
        environment(recorder.target.device, recorder.target.isa),
        Options(build=recorder.spec.build),
        not_observed=_NOT_OBSERVED,
        inputs=program.inputs,
    )
