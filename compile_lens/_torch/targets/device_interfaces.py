"""What Dynamo, Inductor and Triton ask of a device, answered by a device model."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import types
from typing import Any

import torch

from ...record.device import DeviceModel
from . import user_kernels
from .device_queries import Questions
from .replacements import Places, aware, not_compiled

MARK = "stand-in"
"""Threads on which a device model answers for the device."""

PHASE = "stand-in phase"
"""Threads on which Dynamo compiles a frame, its backend included, where the device is said to be available. Python that
Dynamo does not trace runs on the CPU, and is told so."""

MACOS = (15, 0)
"""The system that an Apple device is taken to run."""


class Properties(types.SimpleNamespace):
    """What the model says of the device."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"the device model {self._of} does not say {name}, which the device tells: no published figure of "
            "it is used. A model of your own may have it (target is then the path of its JSON file)"
        )


def properties(model: DeviceModel) -> Any:
    """What ``torch.cuda.get_device_properties`` gives, or its like for another type."""
    known = {figure.name: figure.value for figure in model.properties}
    found = Properties(name=model.torch_names[0] if model.torch_names else model.title, **known)
    found.__dict__["_of"] = model.name or model.title
    if model.device == "cuda":
        found.gcnArchName = model.arch
        found.is_integrated = found.is_multi_gpu_board = 0
    return found


def place(places: Places, model: DeviceModel, questions: Questions) -> None:
    """Let a device model answer on marked threads; what cannot run in its place is noted."""
    import torch._inductor.compile_fx as compile_fx

    _accelerator(places, torch.device(model.device, 0))
    if model.device == "cuda":
        _cuda(places, model, questions)
        # Torch warns, once in a process, of settings that cost time on the device. The program does not run there.
        places.attribute(compile_fx, "_warn_tf32_disabled", MARK, lambda: None)
    else:
        _register(places, "mps", _mps_interface(properties(model)))
        for name in ("is_available", "is_built"):
            places.attribute(torch.backends.mps, name, PHASE, lambda: True)
        places.add(setattr, torch.version, "cuda", torch.version.cuda)
        torch.version.cuda = None  # of torch for a Mac
        for name, answer in (("is_available", False), ("device_count", 0)):
            places.attribute(torch.cuda, name, PHASE, lambda answer=answer: answer)
        newer = getattr(torch.backends.mps, "is_macos_or_newer", None)
        if newer is not None:  # what bfloat16 becomes depends on it
            places.attribute(
                torch.backends.mps, "is_macos_or_newer", MARK, lambda major, minor: (major, minor) <= MACOS
            )


def _accelerator(places: Places, device: torch.device) -> None:
    """C++ takes the device for the accelerator meanwhile; to Python that is not traced there is none."""
    there: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_accelerator": lambda check_available=False: torch.device(device.type),
        "current_device_index": lambda: 0,
    }
    elsewhere: dict[str, Any] = {
        "is_available": lambda: False,
        "device_count": lambda: 0,
        "current_accelerator": lambda check_available=False: None,
    }
    if torch.cuda.is_available() or torch.backends.mps.is_available():
        elsewhere = {}  # what is there answers
    for mark, answers in ((MARK, elsewhere), (PHASE, there)):
        for name, answer in answers.items():
            places.attribute(torch.accelerator, name, mark, answer)
    if hasattr(torch._C, "_get_accelerator"):  # get_device_module asks it, and finds no driver
        places.attribute(torch._C, "_get_accelerator", PHASE, lambda *checked: torch.device(device.type))


def forget(places: Places) -> None:
    """Answers about devices that torch remembers must be asked anew, now and when the real device is back.

    What a fake operator gave is among them: it is remembered by its inputs, of which the kind of device is one and its
    model is none, and what was asked on the way to it would not be asked in a second capture.
    """
    _clear_memory()
    places.add(_clear_memory)


def _register(places: Places, kind: str, interface: Any) -> None:
    import torch._dynamo.device_interface as device_interface

    device_interface.get_interface_for_device("cpu")  # registers the real ones first
    for name in (kind, f"{kind}:0"):
        places.entry(device_interface.device_interfaces, name, interface)


def _cuda(places: Places, model: DeviceModel, questions: Questions) -> None:
    found = properties(model)
    _register(places, "cuda", _cuda_interface(found))
    capability = (found.major, found.minor)
    answers: dict[str, Any] = {
        "get_device_properties": lambda device=None: found,
        "get_device_capability": lambda device=None: capability,
        "get_device_name": lambda device=None: found.name,
        "current_device": lambda: 0,
        "mem_get_info": lambda device=None: (found.total_memory, found.total_memory),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or found.major >= 8,
        "is_tf32_supported": lambda: found.major >= 8,
        "get_rng_state": lambda device="cuda": torch.zeros(16, dtype=torch.uint8, device="cpu"),
        "set_rng_state": lambda new_state, device="cuda": None,
        "synchronize": lambda device=None: None,
        "set_device": _set_device,
    }
    for name, answer in answers.items():
        not_compiled(answer)
        places.attribute(torch.cuda, name, MARK, answer)
    for name in _FOR_NOTHING:
        if hasattr(torch._C, name):
            places.attribute(torch._C, name, MARK, lambda *given: None)
        else:  # a build without CUDA
            places.add(delattr, torch._C, name)
            setattr(torch._C, name, lambda *given: None)
    import torch.cuda.amp.common as amp

    # Else torch switches a region of autocast off when it is made, also one in which a frame is compiled later.
    places.attribute(amp, "amp_definitely_not_available", MARK, lambda: False)
    places.attribute(torch.cuda, "is_available", PHASE, lambda: True)
    places.attribute(torch.cuda, "device_count", PHASE, lambda: 1)
    _device_context(places)
    _cuda_version(places)
    _triton(places, model, questions)


_FOR_NOTHING = (
    "_cuda_emptyCache",
    "_cuda_resetAccumulatedMemoryStats",
    "_cuda_resetPeakMemoryStats",
)
"""What torch's functions ask of the driver, which gives nothing and changes nothing that is computed."""


def _set_device(device: Any) -> None:
    """There is one, which is the current one."""
    index = device if isinstance(device, int) else torch.device(device).index
    if index:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: the target is one device, and {index} is asked for"
        )


def _device_context(places: Places) -> None:
    """``torch.cuda.device`` is a class, so that the others on it must still see the class."""
    import contextlib

    real = torch.cuda.device

    class device(real):  # type: ignore[misc,valid-type]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            from .replacements import on

            return contextlib.nullcontext() if on(PHASE) else real(*args, **kwargs)

    places.add(setattr, torch.cuda, "device", real)
    torch.cuda.device = device


def _cuda_version(places: Places) -> None:
    """Wheels without CUDA name no version of it; Inductor asks before it writes some code."""
    if torch.version.cuda is None:
        places.add(setattr, torch.version, "cuda", None)
        torch.version.cuda = "12.8"


def _triton(places: Places, model: DeviceModel, questions: Questions) -> None:
    import torch.utils._triton as triton_utils

    if importlib.util.find_spec("triton") is not None:
        from ..._triton import driver

        places.enter(driver.model_driver(model))
        user_kernels.place(places, MARK, questions)
        version = f"Triton {importlib.metadata.version('triton')}"
    else:
        # Kernels can be written without it, not compiled.
        import torch._inductor.scheduler as scheduler

        places.attribute(scheduler, "has_triton", PHASE, lambda: True)
        version = "no Triton"
    # Under this key a machine shares timings of kernels. torch reads all of Triton's files for it, which takes a third
    # of a second, and a real device's machine has another one.
    places.attribute(triton_utils, "triton_hash_with_backend", PHASE, lambda: version)


def _cuda_interface(found: Any) -> Any:
    import torch._dynamo.device_interface as device_interface

    real = device_interface.CudaInterface
    worker = real.Worker

    class CudaStandIn(real):  # type: ignore[misc,valid-type]
        class Worker(worker):  # type: ignore[misc,valid-type]
            current_device = staticmethod(aware(MARK, lambda: 0, worker.current_device))
            get_device_properties = staticmethod(
                aware(MARK, lambda device=None: found, worker.get_device_properties)
            )

        device_count = staticmethod(aware(MARK, lambda: 1, real.device_count))
        current_device = staticmethod(aware(MARK, lambda: 0, real.current_device))

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "set_device": lambda device: None,
        "exchange_device": lambda device: 0,
        "maybe_exchange_device": lambda device: 0,
        "synchronize": lambda device=None: None,
        "get_raw_stream": lambda device: 0,
        "get_device_properties": lambda device=None: found,
        "get_compute_capability": lambda device=None: found.major * 10 + found.minor,
        "is_bf16_supported": lambda including_emulation=False: found.major >= 8,
        "is_triton_capable": lambda device=None: True,
        "raise_if_triton_unavailable": lambda device=None: None,
    }
    for name, answer in answers.items():
        if hasattr(real, name):
            setattr(CudaStandIn, name, staticmethod(aware(MARK, answer, getattr(real, name))))
    return CudaStandIn


def _mps_interface(found: Any) -> Any:
    import torch._dynamo.device_interface as device_interface

    real = device_interface.MpsInterface
    worker = real.Worker

    class MpsStandIn(real):  # type: ignore[misc,valid-type]
        class Worker(worker):  # type: ignore[misc,valid-type]
            get_device_properties = staticmethod(
                aware(MARK, lambda device=None: found, worker.get_device_properties)
            )
            current_device = staticmethod(aware(MARK, lambda: 0, worker.current_device))

        is_available = staticmethod(aware(MARK, lambda: True, real.is_available))
        synchronize = staticmethod(aware(MARK, lambda device=None: None, real.synchronize))

    return MpsStandIn


def _clear_memory() -> None:
    import torch._dynamo.device_interface as device_interface
    import torch._inductor.codecache as codecache
    import torch._inductor.utils as inductor_utils
    import torch.utils._triton as triton_utils
    from torch._inductor.runtime.hints import DeviceProperties
    from torch._subclasses.fake_tensor import FakeTensorMode

    FakeTensorMode.cache_clear()
    for module in (inductor_utils, triton_utils):
        for value in tuple(vars(module).values()):
            if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == module.__name__:
                value.cache_clear()
    for owner, name in ((DeviceProperties, "create"), (codecache.CacheBase, "get_system")):
        found = getattr(owner, name, None)
        clear = getattr(getattr(found, "__func__", found), "cache_clear", None)
        if clear is not None:
            clear()
    device_interface.caching_worker_device_properties.clear()
