"""Compiles kernels in a process of its own, which ``process.py`` starts.

The first line of standard input is the device model in JSON. Each line after it is a kernel, ``{"name", "source",
"index"}``, and is answered by one line, ``{"candidates", "machine", "note"}`` or ``{"refused"}`` for an index that
the kernel does not have. What a kernel's text prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from typing import IO

from ...errors import UsageError
from ...record.kernel import Kernel
from . import compiled, message


def main() -> None:
    """Answers until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # The caller made the folder for this process, and removes it.
    os.environ["TRITON_CACHE_DIR"] = os.environ["TORCHINDUCTOR_CACHE_DIR"] = os.getcwd()
    serve(sys.stdin, answers)


def serve(lines: Iterable[str], answers: IO[str]) -> None:
    """Answer every kernel in ``lines``, after the device model in the first."""
    model = None
    for line in lines:
        asked = json.loads(line)
        if model is None:
            model = message.model(asked)
            continue
        kernel = Kernel(asked["name"], "", "triton", "", asked["source"])
        try:
            made = compiled.kernel_of(kernel, model, asked["index"])
            answer = message.answer(made)
        except UsageError as error:
            answer = {"refused": str(error)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
