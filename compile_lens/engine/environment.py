"""Versions, platform, device and settings of a capture."""

from __future__ import annotations

import contextlib
import platform

import torch

from .._torch.ground.program_hooks import without_torch_function
from .._torch.targets import torch_settings
from .._torch.targets.torch_settings import KINDS
from ..record.capture import SETTINGS, THREADS, Environment
from ..record.device import DeviceModel


def environment(
    target: str, isa: str, model: DeviceModel | None = None, settings: tuple[tuple[str, str], ...] = ()
) -> Environment:
    """Return the environment of this process. ``model`` is the absent device, if any; ``settings`` are torch's settings
    at the time of the call."""
    from ..versions import __version__

    kind = target if model is None else model.device
    return Environment(
        compile_lens=__version__,
        torch=torch.__version__,
        triton=_triton(),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        device=_device_name(target) if model is None else model.title,
        target=kind,
        isa=isa if kind == "cpu" else "",
        settings=settings,
    )


@without_torch_function
def settings() -> tuple[tuple[str, str], ...]:
    """Return torch's global settings that affect code: those named in ``SETTINGS`` of the record, and every config
    entry that differs from its default."""
    on = [kind for kind in KINDS if torch.is_autocast_enabled(kind)]
    values = {
        "deterministic algorithms": "off"
        if not torch.are_deterministic_algorithms_enabled()
        else "warn only"
        if torch.is_deterministic_algorithms_warn_only_enabled()
        else "on",
        "grad mode": "inference"
        if torch.is_inference_mode_enabled()
        else "on"
        if torch.is_grad_enabled()
        else "off",
        "autocast": ", ".join(f"{kind} {_name(torch.get_autocast_dtype(kind))}" for kind in on) or "off",
        "default dtype": _name(torch.get_default_dtype()),
        THREADS: str(torch.get_num_threads()),
    }
    with contextlib.suppress(RuntimeError):  # set per operator: there is no single value
        values["float32 matmul precision"] = torch.get_float32_matmul_precision()
    configs = [
        (name, value)
        for name, value in torch_settings.non_default_configs()
        # Torch sets it together with the deterministic algorithms above.
        if not (
            name == "torch._inductor.config.deterministic" and values["deterministic algorithms"] != "off"
        )
    ]
    return (*((name, values[name]) for name in SETTINGS if name in values), *configs)


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _triton() -> str:
    from importlib import metadata

    for name in ("triton", "pytorch-triton", "triton-windows"):
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _device_name(target: str) -> str:
    if target == "cuda" and torch.cuda.is_available():
        return str(torch.cuda.get_device_name())
    return target


def device() -> torch.device:
    """Return the default device for examples: cuda if available, else mps, else cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
