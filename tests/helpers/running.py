"""A capture together with the result of the function's only call."""

from __future__ import annotations

from typing import Any

from compile_lens.engine.call import Call
from compile_lens.engine.entry import outside_dynamo
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture


@outside_dynamo
def run(fn: Any, *args: Any, kwargs: dict[str, Any] | None = None, **options: Any) -> tuple[Capture, Any]:
    """Capture as ``capture`` does, and return the result too. The backward is compiled, and the caller can start it."""
    record, outcome = perform(Call.read(fn, args, kwargs, CaptureOptions(**options)))
    return record, outcome.result
