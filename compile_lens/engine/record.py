"""Conversion of a recorder's observations to a capture."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from ..record.capture import Environment, Options
from ..results.capture import Capture
from .cells import in_cells
from .sources import with_inlined

if TYPE_CHECKING:
    from .._torch.ground.recorder import Recorder


def recorded(
    recorder: Recorder,
    function: str,
    where: Environment,
    options: Options,
    not_observed: str = "",
    **more: Any,
) -> Capture:
    """The capture of ``function``; ``not_observed`` is what could not be seen, ``more`` are further attributes."""
    from .. import versions

    recorder.note(versions.note())
    compilations, timings = recorder.finish()
    capture = Capture(
        function=function,
        environment=where,
        options=options,
        sources=with_inlined(recorder.frames.sources.values(), compilations),
        compilations=compilations,
        timings=timings,
        created=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        notes=(*recorder.notes, *filter(None, [not_observed])),
        not_observed=not_observed,
        skipped=recorder.eager_frames(),
        **more,
    )
    return in_cells(capture)
