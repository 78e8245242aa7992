"""Device queries of Dynamo, Inductor and Triton, and the random generator, answered from a device model."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import types
from typing import Any

import torch

from ...record.device import DeviceModel
from . import user_kernels
from .device_queries import DeviceQueries
from .replacements import Replacements, is_marked, marked_only, skip_in_dynamo

MARK = "stand-in"
"""Mark of threads on which a device model answers for the device."""

PHASE = "stand-in phase"
"""Mark of threads on which Dynamo or its backend compiles a frame and the device counts as available. Untraced Python
runs on the CPU, and gets the CPU's answers."""

MACOS = (15, 0)
"""The assumed version of macOS on an Apple device."""


class Properties(types.SimpleNamespace):
    """The device's properties from the model."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"the device model {self._of} does not say {name}, which the device reports: no published figure of "
            "it is used. A model of your own may have it (target is then the path of its JSON file)"
        )


def properties(model: DeviceModel) -> Any:
    """Return the equivalent of ``torch.cuda.get_device_properties`` for a model of any device type."""
    known = {figure.name: figure.value for figure in model.properties}
    known_properties = Properties(name=model.torch_names[0] if model.torch_names else model.title, **known)
    known_properties.__dict__["_of"] = model.name or model.title
    if model.device == "cuda":
        known_properties.gcnArchName = model.arch
        known_properties.is_integrated = known_properties.is_multi_gpu_board = 0
    return known_properties


def place(places: Replacements, model: DeviceModel, queries: DeviceQueries) -> None:
    """Let a device model answer on marked threads; ``queries`` notes what cannot run without the device."""
    import torch._inductor.compile_fx as compile_fx

    _accelerator(places, torch.device(model.device, 0))
    if model.device == "cuda":
        _cuda(places, model, queries)
        # Torch warns once per process of settings that are slow on the device, where the program does not run.
        places.attribute(compile_fx, "_warn_tf32_disabled", MARK, lambda: None)
    else:
        _register(places, "mps", _mps_interface(properties(model)))
        for name in ("is_available", "is_built"):
            places.attribute(torch.backends.mps, name, PHASE, lambda: True)
        places.add(setattr, torch.version, "cuda", torch.version.cuda)
        torch.version.cuda = None  # as in torch for a Mac
        for name, answer in (("is_available", False), ("device_count", 0)):
            places.attribute(torch.cuda, name, PHASE, lambda answer=answer: answer)
        is_newer = getattr(torch.backends.mps, "is_macos_or_newer", None)
        if is_newer is not None:  # decides how bfloat16 is compiled
            places.attribute(
                torch.backends.mps, "is_macos_or_newer", MARK, lambda major, minor: (major, minor) <= MACOS
            )


def _accelerator(places: Replacements, device: torch.device) -> None:
    """Make ``torch.accelerator`` report the device while torch compiles, and none to untraced Python."""
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
        elsewhere = {}  # the device that is present answers
    for mark, answers in ((MARK, elsewhere), (PHASE, there)):
        for name, answer in answers.items():
            places.attribute(torch.accelerator, name, mark, answer)
    if hasattr(torch._C, "_get_accelerator"):  # get_device_module calls it, which would find no driver
        places.attribute(torch._C, "_get_accelerator", PHASE, lambda *checked: torch.device(device.type))


def clear_caches(places: Replacements) -> None:
    """Clear torch's cached facts about devices, now and when the stand-in is removed.

    This includes results of fake operators. They are cached by their inputs, which have a device type but no model, and
    device queries on the way to a cached result would not be repeated in a second capture.
    """
    _clear_caches()
    places.add(_clear_caches)


def _register(places: Replacements, kind: str, interface: Any) -> None:
    import torch._dynamo.device_interface as device_interface

    device_interface.get_interface_for_device("cpu")  # registers the real interfaces first
    for name in (kind, f"{kind}:0"):
        places.entry(device_interface.device_interfaces, name, interface)


def _cuda(places: Replacements, model: DeviceModel, queries: DeviceQueries) -> None:
    props = properties(model)
    _register(places, "cuda", _cuda_interface(props))
    capability = (props.major, props.minor)
    answers: dict[str, Any] = {
        "get_device_properties": lambda device=None: props,
        "get_device_capability": lambda device=None: capability,
        "get_device_name": lambda device=None: props.name,
        "current_device": lambda: 0,
        "mem_get_info": lambda device=None: (props.total_memory, props.total_memory),
        "is_bf16_supported": lambda including_emulation=True: including_emulation or props.major >= 8,
        "is_tf32_supported": lambda: props.major >= 8,
        "get_rng_state": lambda device="cuda": torch.zeros(16, dtype=torch.uint8, device="cpu"),
        "set_rng_state": lambda new_state, device="cuda": None,
        "synchronize": lambda device=None: None,
        "set_device": _set_device,
    }
    for name, answer in answers.items():
        skip_in_dynamo(answer)
        places.attribute(torch.cuda, name, MARK, answer)
    for name in _NO_OPS:
        if hasattr(torch._C, name):
            places.attribute(torch._C, name, MARK, lambda *ignored: None)
        else:  # a build without CUDA
            places.add(delattr, torch._C, name)
            setattr(torch._C, name, lambda *ignored: None)
    import torch.cuda.amp.common as amp

    # Otherwise torch turns autocast off in its constructor, even for a region in which a frame is compiled later.
    places.attribute(amp, "amp_definitely_not_available", MARK, lambda: False)
    places.attribute(torch.cuda, "is_available", PHASE, lambda: True)
    places.attribute(torch.cuda, "device_count", PHASE, lambda: 1)
    _device_context(places)
    _cuda_version(places)
    _triton(places, model, queries)


_NO_OPS = ("_cuda_emptyCache", "_cuda_resetAccumulatedMemoryStats", "_cuda_resetPeakMemoryStats")
"""Torch's calls of the driver that return nothing and do not affect results."""


def _set_device(device: Any) -> None:
    """Accept device 0, and raise CUDA's error for any other."""
    index = device if isinstance(device, int) else torch.device(device).index
    if index:
        raise RuntimeError(
            f"CUDA error: invalid device ordinal: the target is one device, and {index} is requested"
        )


def _device_context(places: Replacements) -> None:
    """Replace the class ``torch.cuda.device`` by a subclass that does nothing on marked threads."""
    import contextlib

    real = torch.cuda.device

    class device(real):  # type: ignore[misc,valid-type]
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            from .replacements import is_marked

            return contextlib.nullcontext() if is_marked(PHASE) else real(*args, **kwargs)

    places.add(setattr, torch.cuda, "device", real)
    torch.cuda.device = device


def _cuda_version(places: Replacements) -> None:
    """Set a CUDA version in a build without CUDA; Inductor reads it for some code."""
    if torch.version.cuda is None:
        places.add(setattr, torch.version, "cuda", None)
        torch.version.cuda = "12.8"


def _triton(places: Replacements, model: DeviceModel, queries: DeviceQueries) -> None:
    import torch.utils._triton as triton_utils

    if importlib.util.find_spec("triton") is not None:
        from ..._triton import driver

        places.enter(driver.model_driver(model))
        user_kernels.place(places, MARK, queries)
        version = f"Triton {importlib.metadata.version('triton')}"
    else:
        # Without Triton, kernels can be generated but not compiled.
        import torch._inductor.scheduler as scheduler

        places.attribute(scheduler, "has_triton", PHASE, lambda: True)
        version = "no Triton"
    # The key under which a machine shares kernel timings. Torch reads all of Triton's files for it, which takes a third
    # of a second, and the real device's machine has another key anyway.
    places.attribute(triton_utils, "triton_hash_with_backend", PHASE, lambda: version)


def _cuda_interface(props: Any) -> Any:
    import torch._dynamo.device_interface as device_interface

    real = device_interface.CudaInterface
    worker = real.Worker

    class CudaStandIn(real):  # type: ignore[misc,valid-type]
        class Worker(worker):  # type: ignore[misc,valid-type]
            current_device = staticmethod(marked_only(MARK, lambda: 0, worker.current_device))
            get_device_properties = staticmethod(
                marked_only(MARK, lambda device=None: props, worker.get_device_properties)
            )

        device_count = staticmethod(marked_only(MARK, lambda: 1, real.device_count))
        current_device = staticmethod(marked_only(MARK, lambda: 0, real.current_device))

    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "set_device": lambda device: None,
        "exchange_device": lambda device: 0,
        "maybe_exchange_device": lambda device: 0,
        "synchronize": lambda device=None: None,
        "get_raw_stream": lambda device: 0,
        "get_device_properties": lambda device=None: props,
        "get_compute_capability": lambda device=None: props.major * 10 + props.minor,
        "is_bf16_supported": lambda including_emulation=False: props.major >= 8,
        "is_triton_capable": lambda device=None: True,
        "raise_if_triton_unavailable": lambda device=None: None,
    }
    for name, answer in answers.items():
        if hasattr(real, name):
            setattr(CudaStandIn, name, staticmethod(marked_only(MARK, answer, getattr(real, name))))
    return CudaStandIn


def _mps_interface(props: Any) -> Any:
    import torch._dynamo.device_interface as device_interface

    real = device_interface.MpsInterface
    worker = real.Worker

    class MpsStandIn(real):  # type: ignore[misc,valid-type]
        class Worker(worker):  # type: ignore[misc,valid-type]
            get_device_properties = staticmethod(
                marked_only(MARK, lambda device=None: props, worker.get_device_properties)
            )
            current_device = staticmethod(marked_only(MARK, lambda: 0, worker.current_device))

        is_available = staticmethod(marked_only(MARK, lambda: True, real.is_available))
        synchronize = staticmethod(marked_only(MARK, lambda device=None: None, real.synchronize))

    return MpsStandIn


def _clear_caches() -> None:
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
        cached = getattr(owner, name, None)
        clear = getattr(getattr(cached, "__func__", cached), "cache_clear", None)
        if clear is not None:
            clear()
    device_interface.caching_worker_device_properties.clear()


_STATE = 16
"""Bytes in the state of a CUDA generator, a seed and an offset (aten/src/ATen/cuda/CUDAGeneratorImpl.cpp)."""


def place_generator(places: Replacements, device: torch.device) -> None:
    """Provide a generator for ``device`` in ``torch.cuda.default_generators`` while torch compiles, unless there is
    one.

    A checkpoint draws the same numbers again, so for CUDA the partitioner gives the forward and the backward one
    generator each, ``fwd_rng_state_0`` and ``bwd_rng_state_0``, copies of the device's own. There and in Inductor,
    torch reads a generator's device and copies the generator, but draws nothing.
    """
    if device.type != "cuda" or torch.cuda.default_generators:
        return
    places.add(setattr, torch.cuda, "default_generators", torch.cuda.default_generators)
    torch.cuda.default_generators = _Generators(_Generator())
    # Called by Inductor in torch 2.15.
    places.attribute(torch._C, "_accelerator_getDefaultGenerator", PHASE, lambda index: _Generator())


class _Generators(tuple):  # type: ignore[type-arg]
    """The generators of the process: none, except on marked threads while torch compiles."""

    _there: torch.Generator

    def __new__(cls, there: torch.Generator) -> _Generators:
        generators = super().__new__(cls)
        generators._there = there
        return generators

    def __getitem__(self, index: Any) -> Any:
        return (self._there,)[index] if is_marked(PHASE) else super().__getitem__(index)

    def __len__(self) -> int:
        return 1 if is_marked(PHASE) else 0

    def __iter__(self) -> Any:
        return iter((self._there,) if is_marked(PHASE) else ())


class _Generator(torch.Generator):  # type: ignore[misc]  # torch has no types for it
    """A generator of the device, from which nothing is drawn, since code that would draw is not run."""

    @property
    def device(self) -> torch.device:
        return torch.device("cuda", 0)

    def clone_state(self) -> _Generator:
        return _Generator()

    def graphsafe_get_state(self) -> _Generator:
        return _Generator()

    def get_state(self) -> torch.Tensor:
        return torch.zeros(_STATE, dtype=torch.uint8, device="cpu")

    def __reduce__(self) -> Any:  # so that a copy has the device too
        return _Generator, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> _Generator:
        return _Generator()
