"""Where a capture is made: versions, platform, device."""

from __future__ import annotations

import contextlib
import platform
from typing import Any

import torch

from .._torch.ground import set_configs
from .._torch.ground.unseen import unseen
from .._torch.targets.carried_settings import KINDS
from ..record.capture import SETTINGS, Environment
from ..record.device import DeviceModel
from . import inputs


def environment(
    target: str, isa: str, model: DeviceModel | None = None, settings: tuple[tuple[str, str], ...] = ()
) -> Environment:
    """What this process runs on, or for. ``model`` answers for a device that is not there; ``settings`` are those of
    torch when the function was called."""
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


@unseen
def settings() -> tuple[tuple[str, str], ...]:
    """Torch's global settings that change the code, as they are now: those that ``SETTINGS`` of the record names, and
    of torch's configurations what is set otherwise than torch has it."""
    on = [kind for kind in KINDS if torch.is_autocast_enabled(kind)]
    found = {
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
    }
    with contextlib.suppress(RuntimeError):  # set per operator, for which torch has no one word
        found["float32 matmul precision"] = torch.get_float32_matmul_precision()
    configs = [
        (name, value)
        for name, value in set_configs.otherwise()
        # Torch sets it with what is told above.
        if not (name == "torch._inductor.config.deterministic" and found["deterministic algorithms"] != "off")
    ]
    return (*((name, found[name]) for name in SETTINGS if name in found), *configs)


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


@unseen
def target_of(args: tuple[Any, ...], kwargs: dict[str, Any], fn: Any) -> str:
    kinds = {t.device.type for _, t in inputs.tensors(args, kwargs)}
    module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    if isinstance(module, torch.nn.Module):
        kinds |= {p.device.type for p in module.parameters()}
    others = sorted(kinds - {"cpu"})
    return others[0] if others else "cpu"


def device() -> torch.device:
    """The device to teach on: cuda where there is one, else mps, else cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")
