"""Whole programs, through the backend that is known to torch by name."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

from ..engine.environment import environment
from ..engine.inputs import describe
from ..engine.recorded import recorded
from ..engine.request import Asked
from ..engine.request import patches as patches_of
from ..record.capture import Options
from ..results.capture import Capture

if TYPE_CHECKING:
    from .._torch.named import Program

_lock = threading.Lock()
_UNSEEN = (
    "guards, recompiles and what Dynamo skipped are not seen by the named backend: use capture() for them"
)


_programs: list[Program] = []
"""The program that the named backend saw last."""


def backend(gm: torch.fx.GraphModule, example_inputs: list[Any], **given: Any) -> Any:
    """The inspect backend by name: ``torch.compile(f, backend="compile_lens")``.

    Results are eager's; ``compile_lens.last()`` has the captures. Dynamo calls it with a graph and its inputs.

    Args:
        given: what ``torch.compile`` was given beside the backend: ``mode``, one of ``MODES`` (Inductor's), and
            ``options``, a dict: ``"build": True`` builds and runs the generated code; the others are Inductor's.

    Raises:
        UsageError: a mode or an option is not known.
    """
    from .._torch import named

    options = dict(given.get("options") or {})
    build = Asked(build=options.pop("build", False)).build
    patches = patches_of(given.get("mode"), options or None, None)
    previous = _programs[-1] if _programs else None
    program, compiled = named.compile(gm, example_inputs, patches, build, previous, describe)
    with _lock:
        _programs[:] = [program]
    return compiled


def last() -> Capture | None:
    """The capture of the program that ``backend="compile_lens"`` compiled last; None before the first.

    A function with graph breaks is one program: its parts are the capture's compilations.
    """
    with _lock:
        if not _programs:
            return None
        program = _programs[-1]
    recorder = program.recorder
    return recorded(
        recorder,
        program.function,
        environment(recorder.made_for.device, recorder.made_for.isa),
        Options(build=recorder.wanted.build),
        unseen=_UNSEEN,
        inputs=program.inputs,
    )
