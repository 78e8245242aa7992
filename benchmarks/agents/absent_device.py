"""Code that Inductor generates for an absent device: kernels launched, library calls, bytes moved.

It uses torch alone. Dynamo traces the program on the CPU; the graph that it passes on is copied, with inputs and
parameters as fake tensors of the device, and Inductor compiles that copy as if the device were present. The
stand-ins below answer its device queries. The code is read and never run.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import os
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import torch._dynamo.device_interface as interfaces
import torch._inductor.compile_fx as compile_fx
from torch._inductor.fx_passes import joint_graph
from torch._inductor.graph import GraphLowering
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.fx.experimental import proxy_tensor
from torch.overrides import TorchFunctionMode

H100 = SimpleNamespace(
    name="NVIDIA H100 80GB HBM3",
    major=9,
    minor=0,
    multi_processor_count=132,
    regs_per_multiprocessor=65536,
    max_threads_per_multi_processor=2048,
    max_threads_per_block=1024,
    warp_size=32,
    total_memory=79 << 30,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=232448,
    shared_memory_per_multiprocessor=233472,
    L2_cache_size=50 << 20,
    is_integrated=0,
    is_multi_gpu_board=0,
    gcnArchName="sm_90",
    clock_rate=1980000,
    memory_clock_rate=2619000,
    memory_bus_width=5120,
)
"""Properties that an H100 SXM reports."""

MPS = SimpleNamespace(name="Apple M3", multi_processor_count=10, warp_size=32, max_threads_per_block=1024)

DEVICES = {"h100": ("cuda", H100), "mps": ("mps", MPS)}

LAUNCHES = re.compile(
    r"(?<![\w.])(?:\w+\.run\(|extern_kernels\.\w+\(|torch\.ops\.[\w.]+\(|aten\.[\w.]+\("
    r"|generated_kernel\w*\(|\w+\.(?:copy|zero)_\(|cpp_fused\w*\()"
)
"""Calls of generated code that start work: kernels, library calls, copies between devices, memory that is cleared for a
kernel, kernels of the CPU."""


class Stop(Exception):
    """Ends a compilation whose code is known."""


class Driver:
    """Triton's driver, as far as code generation needs it."""

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda:0")

    def get_device_interface(self) -> Any:
        return torch.cuda


def interface(kind: str, properties: Any) -> Any:
    """Return the queries of Dynamo and Inductor about a kind of device."""
    base: Any = interfaces.CudaInterface if kind == "cuda" else interfaces.MpsInterface
    answers: dict[str, Any] = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "set_device": lambda device: None,
        "exchange_device": lambda device: 0,
        "maybe_exchange_device": lambda device: 0,
        "synchronize": lambda device=None: None,
        "get_raw_stream": lambda device: 0,
        "get_device_properties": lambda device=None: properties,
        "get_compute_capability": lambda device=None: 90 if kind == "cuda" else "",
        "is_bf16_supported": lambda including_emulation=False: True,
        "is_triton_capable": lambda device=None: kind == "cuda",
        "raise_if_triton_unavailable": lambda device=None: None,
    }
    worker = type(
        "Worker",
        (base.Worker,),
        {name: staticmethod(answers[name]) for name in ("current_device", "get_device_properties")},
    )
    return type(
        "Interface", (base,), {name: staticmethod(one) for name, one in answers.items()} | {"Worker": worker}
    )


class OnCpu(TorchFunctionMode):
    """Makes Inductor compute a graph's constants on the CPU instead of on their device."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        def here(value: Any) -> Any:
            return torch.device("cpu") if isinstance(value, torch.device) else value

        args, kwargs = torch.utils._pytree.tree_map(here, (args, kwargs or {}))
        return function(*args, **kwargs)


def forget() -> None:
    """Empty torch's caches of device queries."""
    import torch._inductor.utils as inductor_utils
    import torch.utils._triton as triton_utils
    from torch._inductor.codecache import CacheBase
    from torch._inductor.runtime.hints import DeviceProperties

    for module in (inductor_utils, triton_utils):
        for value in tuple(vars(module).values()):
            if hasattr(value, "cache_clear") and getattr(value, "__module__", "") == module.__name__:
                value.cache_clear()
    DeviceProperties.create.__func__.cache_clear()  # type: ignore[attr-defined]
    CacheBase.get_system.cache_clear()
    interfaces.caching_worker_device_properties.clear()


@contextlib.contextmanager
def present(target: str) -> Iterator[torch.device]:
    """Answer device queries while Inductor compiles for it."""
    kind, properties = DEVICES[target]
    interfaces.get_interface_for_device("cpu")
    library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libc10.so"))
    guards = (ctypes.c_void_p * 21).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    for slot in (
        1,
        13,
    ):  # cuda, mps: Python indexing of a fake tensor asks for a guard, and the CPU's does nothing
        guards[slot] = guards[slot] or guards[0]
    accelerator = torch.device(kind)
    lazy_init, fold = joint_graph.lazy_init, joint_graph.constant_fold_uniform_value
    constant_name = GraphLowering.constant_name

    def folded(*arguments: Any, **named: Any) -> Any:
        with OnCpu():
            return fold(*arguments, **named)

    def named(self: Any, name: str, device: Any) -> str:
        if device is None or self.constants[name].device == device:
            return constant_name(self, name, device)
        there = f"{name}_{device.type}"
        self.constants.setdefault(there, self.constants[name])
        return there

    answers: list[tuple[Any, str, Any]] = [
        # Patterns are the same on each device, and are traced with tensors.
        (joint_graph, "lazy_init", lambda *devices: lazy_init(torch.device("cpu"))),
        (joint_graph, "constant_fold_uniform_value", folded),
        (GraphLowering, "constant_name", named),
        (
            proxy_tensor,
            "CONSTANT_NUMEL_LIMIT",
            0,
        ),  # the value of torch.tensor(2.0) would be computed on the device
        (FakeTensorMode, "avoid_device_init", property(lambda self: True)),
        (torch.accelerator, "is_available", lambda: True),
        (torch.accelerator, "current_accelerator", lambda check_available=False: accelerator),
        (torch.accelerator, "device_count", lambda: 1),
        (torch.accelerator, "current_device_index", lambda: 0),
    ]
    if kind == "cuda":
        answers += [
            (torch.cuda, "is_available", lambda: True),
            (torch.cuda, "device_count", lambda: 1),
            (torch.cuda, "current_device", lambda: 0),
            (torch.cuda, "_lazy_init", lambda: None),
            (torch.cuda, "device", lambda device: contextlib.nullcontext()),
            (torch.cuda, "get_device_properties", lambda device=None: properties),
            (torch.cuda, "get_device_capability", lambda device=None: (9, 0)),
            (torch.cuda, "get_device_name", lambda device=None: properties.name),
            (torch.cuda, "mem_get_info", lambda device=None: (properties.total_memory,) * 2),
            (torch.cuda, "is_bf16_supported", lambda including_emulation=True: True),
            (torch.cuda, "is_tf32_supported", lambda: True),
            (
                torch.cuda,
                "get_rng_state",
                lambda device=None: torch.zeros(16, dtype=torch.uint8, device="cpu"),
            ),
            (torch.cuda, "set_rng_state", lambda state, device=None: None),
            (torch.cuda, "synchronize", lambda device=None: None),
            (torch.version, "cuda", "12.8"),
            (compile_fx, "_warn_tf32_disabled", lambda: None),
        ]
    else:
        answers += [
            (torch.backends.mps, "is_available", lambda: True),
            (torch.backends.mps, "is_built", lambda: True),
            (torch.backends.mps, "is_macos_or_newer", lambda major, minor: (major, minor) <= (15, 0)),
        ]
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            mock.patch.dict(
                interfaces.device_interfaces,
                {name: interface(kind, properties) for name in (kind, f"{kind}:0")},
            )
        )
        for owner, name, answer in answers:
            stack.enter_context(mock.patch.object(owner, name, answer))
        if kind == "cuda":
            import torch.utils._triton as triton_utils
            from triton.runtime.driver import driver

            stack.callback(driver.set_active, driver._active)
            driver.set_active(Driver())
            stack.enter_context(mock.patch.object(triton_utils, "triton_hash_with_backend", lambda: "none"))
        forget()
        stack.callback(forget)
        yield torch.device(kind, 0)


def moved(module: torch.fx.GraphModule, inputs: list[Any], device: torch.device) -> tuple[Any, list[Any]]:
    """Return a Dynamo graph and its inputs on another device: tensors as fakes, constants of devices replaced."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    module = copy.deepcopy(module)

    def fake(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor):
            return tensor
        with mode:
            whole = torch.empty(
                tensor.untyped_storage().nbytes() // tensor.element_size(), dtype=tensor.dtype, device=device
            )
            return whole.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def there(value: Any) -> Any:
        return device if isinstance(value, torch.device) else value

    for node in module.graph.nodes:
        node.args, node.kwargs = torch.utils._pytree.tree_map(there, (node.args, node.kwargs))
        node.meta.pop("example_value", None)
    module.recompile()
    for part in module.modules():
        for held in (part._parameters, part._buffers):
            for name, tensor in held.items():
                if tensor is not None:
                    held[name] = fake(tensor)
    return module, [fake(one) for one in inputs]


def generated(function: Any, calls: list[tuple[Any, ...]], target: str) -> tuple[list[str], int]:
    """Return the code that Inductor generates for calls on an absent device, and the bytes that Inductor counts."""
    codes: list[str] = []
    moves: list[int] = []

    def keep(self: Any, code: Any) -> Any:
        codes.append(code.value)
        moves.append(sum(node.get_read_write_buffers_sizes() for node in self.scheduler.nodes))
        raise Stop

    settings = {
        "fx_graph_cache": False,
        "compile_threads": 1,
        "shape_padding": False,  # whether it pays off is timed on the device
        "triton.autotune_at_compile_time": False,
    }

    def backend(module: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        known = len(codes)
        with present(target) as device, torch.no_grad(), unset_fake_temporarily():
            graph, moved_inputs = moved(module, inputs, device)
            mode = next(one.fake_mode for one in moved_inputs if isinstance(one, torch.Tensor))
            with (
                torch._guards.tracing(torch._guards.TracingContext(mode)),
                mock.patch.object(GraphLowering, "_compile_to_module_lines", keep),
                torch._functorch.config.patch(enable_autograd_cache=False),
            ):
                try:
                    compile_fx.compile_fx(graph, moved_inputs, config_patches=settings)
                except Exception:
                    if len(codes) == known:
                        raise
        return module.forward  # values are computed on the CPU

    torch._dynamo.reset()
    with torch.no_grad():
        compiled = torch.compile(function, backend=backend)
        for arguments in calls:
            compiled(*arguments)
    return codes, sum(moves)


def launches(code: str) -> list[str]:
    """Return the calls of generated code that start work on the device, in order."""
    body = code.partition("def call(")[2].partition("\nrunner = ")[0]
    return LAUNCHES.findall(re.sub(r"#.*", "", body))
