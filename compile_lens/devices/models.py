"""Device models: those included in the package (``devices/*.json``) and those of users.

Speeds are peaks, which real code does not reach: bandwidth of the device's memory, and operations per second by
type, without sparsity. A multiply-add is two operations. ``float32`` is the rate outside of tensor cores, since PyTorch
does not use TF32 by default, and so is ``float64``. Rates of 16-bit types are for matrix products on tensor cores:
generated code does all other arithmetic on 16-bit numbers in ``float32``. CPUs have no speeds here: the speed of a CPU
depends on its memory, its clock and other programs, so it must be measured.
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..record.benchmark import DeviceSpeed
from ..record.device import DeviceModel, DeviceProperty

FOLDER = Path(__file__).parent
DEFAULTS = {"cuda": "h100", "mps": "m2"}
"""The default model of a device type."""

USUAL = {"sm_80": "a100", "sm_86": "rtx3090", "sm_89": "rtx4090", "sm_90": "h100"}
"""The default model of an architecture that several models have."""

VECTOR = ("float32", "float64")
"""Types whose rate is for arithmetic outside of tensor cores."""

CPUS = ("avx2", "avx512", "neon", "sve256")
"""Vector instruction sets for which Inductor generates C++."""

_FIELDS = frozenset("name title device arch torch_names properties bandwidth flops source flops_note".split())


@functools.cache
def models() -> tuple[DeviceModel, ...]:
    """Return the models included in the package, sorted by name."""
    return tuple(read(path) for path in sorted(FOLDER.glob("*.json"), key=lambda p: p.stem))


def find(device: str) -> DeviceModel | None:
    """Return the model with this name, title or PyTorch name; ``None`` if there is none."""
    return next((m for m in models() if device in (m.name, m.title, *m.torch_names)), None)


def speed(device: str, dtype: str = "float32") -> tuple[DeviceSpeed | None, str]:
    """Return the peaks of a device for a type, or ``None`` and the reason."""
    model = find(device)
    if model is None:
        return (
            None,
            f"there is no model of the device {device!r}: measure one with compile_lens.measure_speed",
        )
    return speed_of(model, dtype)


def speed_of(model: DeviceModel, dtype: str = "float32") -> tuple[DeviceSpeed | None, str]:
    """Return the peaks of a model for a type, or ``None`` and the reason."""
    rates = dict(model.flops)
    if dtype not in rates or not model.bandwidth:
        return None, model.flops_note or f"{model.title} has no published rate for {dtype} here"
    vector = tuple((kind, rate) for kind, rate in model.flops if kind in VECTOR)
    return DeviceSpeed(model.title, model.bandwidth, rates[dtype], dtype, False, model.source, vector), ""


def resolve(target: str | DeviceModel | Path) -> DeviceModel:
    """Return the device model of a target.

    Args:
        target: a name (``"h100"``), a type (``"cuda"``, ``"mps"``), a type with an architecture or a chip
            (``"cuda:sm_80"``, ``"mps:m1"``, ``"cpu:avx2"``), the path of a model's JSON file, or a model.

    Raises:
        UsageError: for anything else; the message lists the known ones.
    """
    if isinstance(target, DeviceModel):
        return target
    if isinstance(target, Path) or (isinstance(target, str) and target.endswith(".json")):
        return read(Path(target))
    if not isinstance(target, str):
        raise UsageError(
            f"target={target!r} is {type(target).__name__}, not a name or a DeviceModel: {_known()}"
        )
    kind, _, detail = target.partition(":")
    if kind == "cpu":
        return _cpu(detail, target)
    if not detail:
        named = next((m for m in models() if m.name == DEFAULTS.get(kind, kind)), None)
    elif kind == "cuda":
        detail = USUAL.get(detail, detail)
        named = next((m for m in models() if m.device == kind and detail in (m.arch, m.name)), None)
    else:
        named = next((m for m in models() if m.device == kind and m.name == detail), None)
    if named is None:
        raise UsageError(f"target={target!r} is not known: {_why_not(kind, detail)}{_known()}")
    return named


def read(path: Path) -> DeviceModel:
    """Read a device model from its file. Raises ``UsageError``, with the position, if the file is not a valid model."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(
            f"there is no device model {str(path)!r}: {_known()}, as {FOLDER / 'h100.json'}"
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is not a device model: {error}") from None
    try:
        return _model(raw)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"{path} is not a device model: {problem}; {FOLDER / 'h100.json'} shows the format"
        ) from None


def _model(raw: dict[str, Any]) -> DeviceModel:
    if unknown := set(raw) - _FIELDS:
        raise ValueError(f"it has unknown fields {', '.join(sorted(unknown))}")
    if raw["device"] not in ("cuda", "mps"):
        raise ValueError(f"its device is {raw['device']!r}, not 'cuda' or 'mps'")
    figures = []
    for name, entry in raw["properties"].items():
        if isinstance(entry["value"], bool) or not isinstance(entry["value"], (int, float, str)):
            raise ValueError(f"its property {name} is {entry['value']!r}, not a number or a string")
        figures.append(DeviceProperty(name, entry["value"], str(entry["source"])))
    model = DeviceModel(
        name=str(raw["name"]),
        title=str(raw["title"]),
        device=raw["device"],
        arch=str(raw["arch"]),
        torch_names=tuple(str(k) for k in raw.get("torch_names", ())),
        properties=tuple(figures),
        bandwidth=float(raw.get("bandwidth", 0.0)),
        flops=tuple((str(k), float(v)) for k, v in raw.get("flops", {}).items()),
        source=str(raw.get("source", "")),
        flops_note=str(raw.get("flops_note", "")),
    )
    for name in REQUIRED[model.device]:
        if not isinstance(model.figure(name), int):
            raise ValueError(f"its property {name} is {model.figure(name)!r}, not a whole number")
    return model


REQUIRED = {
    "cuda": (
        "major",
        "minor",
        "multi_processor_count",
        "regs_per_multiprocessor",
        "max_threads_per_multi_processor",
        "max_threads_per_block",
        "warp_size",
        "shared_memory_per_block",
        "shared_memory_per_block_optin",
        "shared_memory_per_multiprocessor",
        "total_memory",
    ),
    "mps": ("multi_processor_count",),
}
"""Required properties of a model by type of device: generated code depends on them."""


AMD = "AMD's GPUs are not offered, since Inductor generates other code for them and needs ROCm for it; "
INTEL = (
    "Intel's GPUs are not offered, since the code that Inductor generates for them depends on properties that only "
    "their driver reports; "
)
B300 = (
    "it is not offered, since no published figure of its multiprocessors was found, by which Inductor splits "
    "reductions (a file of your own may have those that your device reports); "
)


def _why_not(kind: str, detail: str) -> str:
    """Return the reason why an existing device is not supported; ``""`` for other names."""
    name = detail or kind
    if kind in ("rocm", "hip", "amd") or re.fullmatch(r"gfx\w+|mi\d{2,3}[a-z]*", name):
        return AMD
    if kind in ("xpu", "intel") or name in ("arc", "pvc"):
        return INTEL
    return B300 if name in ("b300", "gb300", "sm_103") else ""


def _cpu(detail: str, target: str) -> DeviceModel:
    if detail and detail not in CPUS:
        raise UsageError(f"target={target!r} is not known: {_known()}")
    title = f"a CPU with {detail.upper()}" if detail else "the CPU of this machine"
    return DeviceModel(target, title, "cpu", detail)


def _known() -> str:
    by_type = {kind: [m.name for m in models() if m.device == kind] for kind in DEFAULTS}
    archs = sorted({m.arch for m in models() if m.device == "cuda"}, key=lambda a: int(a[3:]))
    return (
        f"the GPUs are {', '.join(by_type['cuda'])} ('cuda' is {DEFAULTS['cuda']}; 'cuda:…' takes {', '.join(archs)}); "
        f"of Apple, as 'mps:…', {', '.join(by_type['mps'])} ('mps' is {DEFAULTS['mps']}); "
        f"CPUs are 'cpu' and 'cpu:…' with {', '.join(CPUS)}; a device of your own is the path of its JSON file"
    )
