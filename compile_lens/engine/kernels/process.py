"""The caller's side of the process that compiles kernels, which is restarted after a crash, and the JSON messages
between the two."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from ...child.child import Child, TooLong
from ...errors import BuildError, ChildError, UsageError
from ...record.device import DeviceModel, DeviceProperty
from ...record.kernel import Candidate, Form, Kernel, Machine

TIME_LIMIT_SECONDS = 600.0
"""Time limit for one kernel, in seconds; for the first it includes importing torch and Triton."""

_COMPILER_VARIABLES = ("TRITON_", "MLIR_", "LLVM_", "NVPTX_", "PTXAS_", "DISABLE_PTXAS_", "USE_IR_LOC")
"""Prefixes of environment variables that change how Triton compiles."""


def compiled(
    kernels: Sequence[tuple[Kernel, int]], model: DeviceModel, seconds: float = TIME_LIMIT_SECONDS
) -> Iterator[Kernel]:
    """Yield each kernel, in order, with the machine code of the launch configuration whose index is given with it.

    If a kernel crashes the process or takes longer than ``seconds``, its ``machine_note`` says so, and the next ones
    get a new process.

    Raises:
        UsageError: a kernel has no configuration of this index.
        BuildError: the process cannot start.
    """
    with contextlib.ExitStack() as last:
        child: Child | None = None
        for kernel, index in kernels:
            if child is None:
                last.close()
                child = _started(last)
            request = {
                "model": dataclasses.asdict(model),
                "name": kernel.name,
                "source": kernel.source,
                "index": index,
            }
            try:
                answer = child.ask(json.dumps(request).encode(), seconds)
            except TooLong:
                child, answer = None, _failed_answer(f"it was not compiled within {seconds:.0f} seconds")
            except ChildError as error:
                if not error.began:
                    raise BuildError(f"{_exit_text(error)}, before any request") from error
                child, answer = None, _failed_answer(_exit_text(error))
            if "refused" in answer:
                raise UsageError(answer["refused"])
            yield filled(kernel, answer)


def _started(last: contextlib.ExitStack) -> Child:
    """Start a new process, and register its cleanup with ``last``."""
    folder = last.enter_context(tempfile.TemporaryDirectory(prefix="compile-lens-"))
    try:
        child = Child(f"{__package__}.worker", _environment(), folder, show=False)
    except ChildError as error:
        raise BuildError(f"the process that compiles kernels did not start: {error}") from error
    last.callback(child.close)
    return child


def _environment() -> dict[str, str]:
    """Return the caller's environment variables without those that change how Triton compiles."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.endswith("_PATH") or not name.startswith(_COMPILER_VARIABLES)  # paths of tools stay
    }


def _failed_answer(note: str) -> dict[str, Any]:
    return {"candidates": [], "machine": None, "note": note}


def _exit_text(error: ChildError) -> str:
    if error.code is None:
        return f"the process that compiles kernels: {error}"
    last = next((line.strip() for line in reversed(error.last.splitlines()) if line.strip()), "")
    how = f"was ended by signal {-error.code}" if error.code < 0 else f"ended with {error.code}"
    return f"the process that compiles kernels {how}" + (f": {last[:300]}" if last else "")


def model(raw: dict[str, Any]) -> DeviceModel:
    """Return the device model for a ``dataclasses.asdict`` of one."""
    figures = tuple(DeviceProperty(**figure) for figure in raw["properties"])
    return DeviceModel(
        **{
            **raw,
            "torch_names": tuple(raw["torch_names"]),
            "properties": figures,
            "flops": tuple((name, rate) for name, rate in raw["flops"]),
        }
    )


def answer(kernel: Kernel) -> dict[str, Any]:
    """Return the message that reports a compiled kernel."""
    return {
        "candidates": [candidate.settings for candidate in kernel.candidates],
        "machine": None if kernel.machine is None else dataclasses.asdict(kernel.machine),
        "note": kernel.machine_note,
    }


def filled(kernel: Kernel, raw: dict[str, Any]) -> Kernel:
    """Return the kernel with the contents of an answer."""
    return dataclasses.replace(
        kernel,
        candidates=tuple(Candidate(tuple((name, value) for name, value in c)) for c in raw["candidates"]),
        machine=None if raw["machine"] is None else _machine(raw["machine"]),
        machine_note=raw["note"],
    )


def _machine(raw: dict[str, Any]) -> Machine:
    forms = tuple(
        Form(f["kind"], f["text"], tuple((line, source) for line, source in f["links"])) for f in raw["forms"]
    )
    missing = tuple((kind, reason) for kind, reason in raw["missing"])
    return Machine(**{**raw, "forms": forms, "missing": missing})
