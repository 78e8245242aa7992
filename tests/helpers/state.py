"""Snapshots of the process state that a capture must leave unchanged, and their comparison.

A snapshot covers far more than our own code changes today: a tool that hooks a compiler can only be trusted
if everything that it could have left in place is checked after each call.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import logging
import os
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import torch._dynamo
import torch._dynamo.config
import torch._functorch.config
import torch._inductor.config
import torch.fx.experimental._config
import torch.utils.cpp_extension  # torch loads it for its first build, and it adds to sys.path
from torch._dynamo.backends.registry import list_backends

CONFIGS = (
    "torch._dynamo.config",
    "torch._inductor.config",
    "torch._functorch.config",
    "torch.fx.experimental._config",
    "torch.compiler.config",
    "torch._export.config",
)

# Modules and classes in which tools like ours install hooks; all their attributes are compared by identity.
PATCHABLE = (
    "torch.compile",
    "torch.autograd",
    "torch._dynamo",
    "torch._dynamo.convert_frame",
    "torch._dynamo.eval_frame",
    "torch._dynamo.output_graph",
    "torch._dynamo.output_graph.OutputGraph",
    "torch._dynamo.guards",
    "torch._dynamo.guards.CheckFunctionManager",
    "torch._dynamo.backends.common",
    "torch._functorch.aot_autograd",
    "torch._functorch.partitioners",
    "torch._functorch._aot_autograd.graph_compile",
    "torch._inductor.compile_fx",
    "torch._inductor.codecache",
    "torch._inductor.codecache.PyCodeCache",
    "torch._inductor.codegen.common",
    "torch._inductor.codegen.common.CSE",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp.CppKernel",
    "torch._inductor.codegen.cpp.CppScheduling",
    "torch._inductor.codegen.wrapper.PythonWrapperCodegen",
    "torch._inductor.cpp_builder",
    "torch._inductor.cpu_vec_isa",
    "torch._inductor.debug",
    "torch._inductor.graph",
    "torch._inductor.graph.GraphLowering",
    "torch._inductor.ir",
    "torch._inductor.ir.Pointwise",
    "torch._inductor.ir.Loops",
    "torch._inductor.loop_body",
    "torch._inductor.loop_body.LoopBody",
    "torch._inductor.loop_body.LoopBodyBlock",
    "torch._inductor.pattern_matcher",
    "torch._inductor.scheduler",
    "torch._inductor.scheduler.Scheduler",
    "torch._inductor.virtualized",
    "torch._dynamo.device_interface",
    "torch._dynamo.device_interface.CudaInterface",
    "torch._dynamo.device_interface.MpsInterface",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.runtime.triton_helpers",
    "torch._inductor.utils",
    "torch.cuda",
    "torch.mps",
    "torch.utils._triton",
    "torch._logging._internal",
    "torch.fx.Graph",
    "torch.fx.Interpreter",
    "torch.fx.GraphModule",
)

# Attributes that Python and torch themselves rebind; they are not hooks.
_OWN = frozenset({"__warningregistry__", "__abstractmethods__", "_abc_impl", "__annotations__"})


def snapshot(codes: Iterable[Any] = ()) -> dict[str, Any]:
    """Return all global state that a capture could have changed, by a readable name.

    Args:
        codes: functions or code objects whose Dynamo cache entries are counted.
    """
    state: dict[str, Any] = {}
    for name in CONFIGS:
        config = _find(name)
        if config is None:
            continue
        for key, value in config.get_config_copy().items():
            state[f"config {name}.{key}"] = _value(value)
    for name in PATCHABLE:
        owner = _find(name)
        if owner is None:
            continue
        if not isinstance(owner, (types.ModuleType, type)):
            state[f"attribute {name}"] = id(owner)
            continue
        for key, value in list(vars(owner).items()):
            if key not in _OWN and _hookable(value):
                state[f"attribute {name}.{key}"] = id(value)
    state |= _loggers()
    state |= _torch_modes()
    state |= _interpreter()
    state |= _devices()
    for code in codes:
        code = getattr(code, "__code__", code)
        entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(code)
        state[f"cache entries of {code.co_name}"] = tuple(id(e) for e in entries)
    return state


def diff(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Return one line for each difference; empty if the state is unchanged.

    A new logger or lazily bound attribute of torch is no difference, since importing more of torch creates
    them. Everything that existed before must still exist unchanged.
    """
    lines = []
    for key, old in before.items():
        if key not in after:
            lines.append(f"{key}: is gone (it was {old!r})")
        elif not _equal(old, after[key]):
            lines.append(f"{key}: {_short(old)} became {_short(after[key])}")
    for key in after.keys() - before.keys():
        if key.startswith(("config ", "cache entries", "device interface", "kernels of")):
            lines.append(f"{key}: is new ({_short(after[key])})")
    return sorted(lines)


def leaves(but: tuple[str, ...] = ()) -> Callable[..., Any]:
    """Return a decorator that fails a test if it changes the state of the process.

    Not a fixture, since pytest's own log handlers differ between set-up and call. ``but`` lists the beginnings of
    lines about state that the test itself changes.
    """

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def checked(*args: Any, **kwargs: Any) -> None:
            before = snapshot()
            test(*args, **kwargs)
            changed = [line for line in diff(before, snapshot()) if not (but and line.startswith(but))]
            assert not changed, "\n".join(changed)

        return checked

    return decorate


unchanged = leaves()


def held(tree: Any) -> list[torch.Tensor]:
    """Return the tensors in a tree, including the parameters and buffers of its modules."""
    tensors: list[torch.Tensor] = []
    for leaf in torch.utils._pytree.tree_leaves(tree):
        parts = [*leaf.parameters(), *leaf.buffers()] if isinstance(leaf, torch.nn.Module) else [leaf]
        tensors += [t for t in parts if isinstance(t, torch.Tensor)]
    return tensors


def flags(tensor: torch.Tensor) -> dict[str, Any]:
    """Return the properties of the caller's tensor that a capture must not change, whatever happens to its values."""
    grad = tensor.grad if tensor.is_leaf else None
    return {
        "gradient": None if grad is None else (id(grad), grad._version),
        "requires_grad": tensor.requires_grad,
        "leaf": tensor.is_leaf,
        "hooks": len(tensor._backward_hooks or ()),
    }


def _find(name: str) -> Any:
    """Return a module or an attribute of one by its dotted name; ``None`` if this torch lacks it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        parent, _, attribute = name.rpartition(".")
        owner = _find(parent) if parent else None
        return getattr(owner, attribute, None)


def _hookable(value: Any) -> bool:
    return isinstance(
        value, (types.FunctionType, types.BuiltinFunctionType, type, staticmethod, classmethod, property)
    )


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _value(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value)(value)
    return value


def _loggers() -> dict[str, Any]:
    state: dict[str, Any] = {
        "logging.disable": logging.root.manager.disable,
        "logging.raise": logging.raiseExceptions,
    }
    known = {"root": logging.root} | {
        n: item
        for n, item in list(logging.root.manager.loggerDict.items())
        if isinstance(item, logging.Logger)
    }
    for name, logger in known.items():
        state[f"logger {name}"] = (
            logger.level,
            tuple((id(h), h.level, len(h.filters)) for h in logger.handlers),
            tuple(id(f) for f in logger.filters),
            bool(logger.disabled),
            logger.propagate,
        )
    internal = torch._logging._internal
    state["torch logs"] = (
        dict(internal.log_state.log_qname_to_level),
        set(internal.log_state.artifact_names),
    )
    return state


def _torch_modes() -> dict[str, Any]:
    stack = torch.utils._python_dispatch._get_current_dispatch_mode_stack()
    state = {
        "grad mode": torch.is_grad_enabled(),
        "inference mode": torch.is_inference_mode_enabled(),
        "autocast cache": torch.is_autocast_cache_enabled(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,
        ),
        "threads": torch.get_num_threads(),
        "matmul precision": torch.get_float32_matmul_precision(),
        "anomaly mode": (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        "saved tensor hooks": torch._C._autograd._top_saved_tensors_default_hooks(True),
        "function modes": tuple(id(m) for m in torch.overrides._get_current_function_mode_stack()),
        "dispatch modes": tuple(id(m) for m in stack),
        "multithreaded backward": torch._C._is_multithreading_enabled(),
        "flush denormal": bool(torch.tensor([1e-40]).mul(1.0).item() == 0.0),
        "random cpu": torch.get_rng_state().clone(),
        "random python": random.getstate(),
        "tracing context": id(torch._guards.TracingContext.try_get()),
        "compile context": id(torch._guards.CompileContext.try_get()),
        "dynamo backends": tuple(list_backends(exclude_tags=())),
        "dynamo stance": repr(torch._dynamo.eval_frame._stance),
        "dynamo callback": _eval_frame_callback(),
        "dynamo start hooks": len(torch._dynamo.callback.callback_handler.start_callbacks),
        "dynamo end hooks": len(torch._dynamo.callback.callback_handler.end_callbacks),
        "bytecode hooks": len(torch._dynamo.convert_frame._bytecode_hooks),
        "dynamo counters": {k: dict(v) for k, v in torch._dynamo.utils.counters.items() if v},
    }
    for device in ("cpu", "cuda"):
        state[f"autocast {device}"] = (torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
    if "numpy" in sys.modules:
        kind, keys, *rest = sys.modules["numpy"].random.get_state()
        state["random numpy"] = (kind, keys.tolist(), *rest)
    return state


def _devices() -> dict[str, Any]:
    """Return torch's device registrations and what selects implementations for a device."""
    from torch._dynamo.device_interface import device_interfaces, get_interface_for_device
    from torch._inductor import lowering
    from torch._inductor.decomposition import decompositions

    get_interface_for_device("cpu")  # torch registers its own on first use
    attention = torch.ops.aten.scaled_dot_product_attention.default
    state: dict[str, Any] = {f"device interface {k}": id(v) for k, v in device_interfaces.items()}
    # New lowerings are torch's own: it creates one for each operator that it meets for the first time.
    state |= {f"lowering {k}": id(v) for k, v in lowering.lowerings.items()}
    state |= {f"decomposition {k}": id(v) for k, v in decompositions.items()}
    state |= {
        "cuda version": torch.version.cuda,
        "cuda is available": torch.cuda.is_available(),
        "cuda is initialized": torch.cuda.is_initialized(),
        "kernels of attention": {str(k): id(v) for k, v in attention.py_kernels.items()},
        "device guards": _device_guards(),
    }
    driver = sys.modules.get("triton.runtime.driver")
    if driver is not None:
        state["triton driver"] = id(driver.driver._active)
    return state


def _device_guards() -> tuple[Any, ...]:
    library = Path(torch.__file__).parent / "lib" / "libc10.so"
    if not library.exists():
        return ()
    registry = "_ZN3c104impl26device_guard_impl_registryE"
    return tuple((ctypes.c_void_p * 20).in_dll(ctypes.CDLL(str(library)), registry))


def _eval_frame_callback() -> Any:
    """Return Dynamo's callback for new frames in this thread; ``None`` outside of compiled code."""
    previous = torch._dynamo.eval_frame.set_eval_frame(None)
    torch._dynamo.eval_frame.set_eval_frame(previous)
    return None if previous is None else repr(previous)


def _interpreter() -> dict[str, Any]:
    return {
        "trace": id(sys.gettrace()),
        "profile": id(sys.getprofile()),
        "excepthook": id(sys.excepthook),
        "displayhook": id(sys.displayhook),
        "stdout": id(sys.stdout),
        "stderr": id(sys.stderr),
        "recursion limit": sys.getrecursionlimit(),
        "garbage": (gc.isenabled(), gc.get_threshold()),
        "path": tuple(sys.path),
        "meta path": tuple(id(f) for f in sys.meta_path),
        "directory": os.getcwd(),
        # pytest itself writes the phase of the running test there.
        "environment": {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"},
        "warning filters": tuple(warnings.filters),
        "showwarning": id(warnings.showwarning),
    }


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    return type(a) is type(b) and bool(a == b)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 160 else text[:157] + "…"
