"""The process that compiles kernels, seen from the caller: it is started, asked, and started again if it dies."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from ...child import life, start
from ...errors import BuildError, UsageError
from ...record.device import DeviceModel
from ...record.kernel import Kernel
from .message import filled

SECONDS = 600.0
"""How long one kernel may take. The first one waits for torch and Triton to load as well."""

_CHANGES = ("TRITON_", "MLIR_", "LLVM_", "NVPTX_", "PTXAS_", "DISABLE_PTXAS_", "USE_IR_LOC")
"""How the names of environment variables begin that Triton's compiler obeys."""


def compiled(
    kernels: Sequence[tuple[Kernel, int]], model: DeviceModel, seconds: float = SECONDS
) -> Iterator[Kernel]:
    """Each kernel with its machine code, in order, for the launch configuration of the index beside it.

    A kernel that brings the process down, or takes longer than ``seconds``, says so in its ``machine_note``; the
    next ones have a process of their own.

    Raises:
        UsageError: for an index that a kernel does not have.
        BuildError: if the process cannot even start.
    """
    done = 0
    while done < len(kernels):
        with tempfile.TemporaryDirectory(prefix="compile-lens-") as folder:
            begun = done
            for kernel, answer in _asked(kernels[done:], model, seconds, folder):
                done += 1
                if "refused" in answer:
                    raise UsageError(answer["refused"])
                yield filled(kernel, answer)
                if "died" in answer:
                    break
            if done == begun:
                raise BuildError("the process that compiles kernels did not start")


def _asked(
    kernels: Sequence[tuple[Kernel, int]], model: DeviceModel, seconds: float, folder: str
) -> Iterator[tuple[Kernel, dict[str, Any]]]:
    """Kernels and answers, until all are answered or the process is gone."""
    with open(Path(folder) / "stderr", "w+", encoding="utf-8", errors="replace") as errors:
        module = f"{__package__}.worker"
        process, held = start.start(module, _environment(), stderr=errors, cwd=folder)
        assert process.stdin is not None and process.stdout is not None
        answers: queue.Queue[bytes] = queue.Queue()
        reader = threading.Thread(target=_read, args=(process.stdout, answers), daemon=True)
        reader.start()
        try:
            _tell(process.stdin, dataclasses.asdict(model))
            for kernel, index in kernels:
                asked = {"name": kernel.name, "source": kernel.source, "index": index}
                # In a thread of its own: a process that does not read must not block the caller.
                threading.Thread(target=_tell, args=(process.stdin, asked), daemon=True).start()
                try:
                    line = answers.get(timeout=seconds)
                except queue.Empty:
                    yield kernel, _gone(f"it was not compiled within {seconds:.0f} seconds")
                    return
                if not line:
                    code = life.end(process)
                    errors.seek(0)
                    yield kernel, _gone(_last_words(code, errors.read()))
                    return
                yield kernel, json.loads(line)
        finally:
            life.end(process)
            reader.join()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
            os.close(held)


def _environment() -> dict[str, str]:
    """The caller's, without what would change how Triton compiles."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.endswith("_PATH") or not name.startswith(_CHANGES)  # a path says where a tool is
    }


def _tell(stdin: IO[bytes], said: dict[str, Any]) -> None:
    left = memoryview(json.dumps(said).encode() + b"\n")
    try:
        while left:
            left = left[stdin.write(left) :]
    except BrokenPipeError:
        pass  # the process is gone; the missing answer says so


def _read(stdout: IO[bytes], answers: queue.Queue[bytes]) -> None:
    for line in stdout:
        answers.put(line)
    answers.put(b"")


def _gone(note: str) -> dict[str, Any]:
    return {"candidates": [], "machine": None, "note": note, "died": True}


def _last_words(code: int, errors: str) -> str:
    last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "")
    how = f"was ended by signal {-code}" if code < 0 else f"ended with {code}"
    return f"the process that compiles kernels {how}" + (f": {last[:300]}" if last else "")
