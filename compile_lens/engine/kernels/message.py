"""Messages between the caller and the process that compiles kernels: plain JSON, both ways."""

from __future__ import annotations

import dataclasses
from typing import Any

from ...record.device import DeviceModel, DeviceProperty
from ...record.kernel import Candidate, Form, Kernel, Machine


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
