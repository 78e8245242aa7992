"""The process that compiles kernels, seen from the caller: it is started, asked, and started again if it dies; and the
messages between the two, plain JSON both ways."""

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

SECONDS = 600.0
"""Time limit for one kernel, in seconds. The first one includes the import of torch and Triton."""

_CHANGES = ("TRITON_", "MLIR_", "LLVM_", "NVPTX_", "PTXAS_", "DISABLE_PTXAS_", "USE_IR_LOC")
"""Prefixes of environment variables that Triton's compiler obeys."""


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
                child, answer = None, _gone(f"it was not compiled within {seconds:.0f} seconds")
            except ChildError as error:
                if not error.began:
                    raise BuildError(f"{_last_words(error)}, before any request") from error
                child, answer = None, _gone(_last_words(error))
            if "refused" in answer:
                raise UsageError(answer["refused"])
            yield filled(kernel, answer)


def _started(last: contextlib.ExitStack) -> Child:
    """A new process, and what must be done when it is not needed any more."""
    folder = last.enter_context(tempfile.TemporaryDirectory(prefix="compile-lens-"))
    try:
        child = Child(f"{__package__}.worker", _environment(), folder, show=False)
    except ChildError as error:
        raise BuildError(f"the process that compiles kernels did not start: {error}") from error
    last.callback(child.close)
    return child


def _environment() -> dict[str, str]:
    """The caller's, without what would change how Triton compiles."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.endswith("_PATH") or not name.startswith(_CHANGES)  # a path says where a tool is
    }


def _gone(note: str) -> dict[str, Any]:
    return {"candidates": [], "machine": None, "note": note}


def _last_words(error: ChildError) -> str:
    if error.code is None:
        return f"the process that compiles kernels: {error}"
    last = next((line.strip() for line in reversed(error.last.splitlines()) if line.strip()), "")
    how = f"was ended by signal {-error.code}" if error.code < 0 else f"ended with {error.code}"
    return f"the process that compiles kernels {how}" + (f": {last[:300]}" if last else "")


def model(raw: dict[str, Any]) -> DeviceModel:
    """A device model from ``dataclasses.asdict`` of one."""
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
    """The kernel with what an answer says."""
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
