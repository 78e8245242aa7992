"""The process that compiles kernels; ``process.py`` starts it.

A request is JSON, ``{"model", "name", "source", "index"}``: the device model, the kernel, and the index of its launch
configuration. The answer is ``{"candidates", "machine", "note"}``, or ``{"refused"}`` if the index does not exist.
"""

from __future__ import annotations

import json
import os
from typing import Any

from ...child.worker import Report, serve
from ...errors import UsageError
from ...record.kernel import Kernel
from . import compiled
from .process import answer, model


def main(replies: int) -> None:
    """Answer until the caller closes the pipe."""
    serve(replies, answered, _caches_here)


def _caches_here() -> None:
    # The caller made the folder for this process, and removes it.
    os.environ["TRITON_CACHE_DIR"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.getcwd()


def answered(request: bytes, _report: Report) -> dict[str, Any]:
    """Compile the kernel of one request and return the reply."""
    fields = json.loads(request)
    kernel = Kernel(fields["name"], "", "triton", "", fields["source"])
    try:
        return answer(compiled.kernel_of(kernel, model(fields["model"]), fields["index"]))
    except UsageError as error:
        return {"refused": str(error)}
