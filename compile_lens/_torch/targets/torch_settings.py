"""Torch's settings that affect compiles, saved in one process and restored in another."""

from __future__ import annotations

import contextlib
import importlib
import logging
import operator
import random
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._device import DeviceContext

from ..operators.registrations import Setting

KINDS = ("cpu", "cuda", "mps")
"""Device types for which autocast may be on."""


def snapshot() -> tuple[dict[str, Any], list[Setting]]:
    """Return the settings as plain data, and config entries that are not plain (such as functions), which are sent
    separately."""
    configs: dict[str, dict[str, Any]] = {}
    left: list[Setting] = []
    for name in config_modules():
        values = sys.modules[name].get_config_copy()
        configs[name] = {k: v for k, v in values.items() if _plain(v)}
        left += [(name, k, v) for k, v in values.items() if k not in configs[name] and not k.startswith("_")]
    settings = {
        "configs": configs,
        "grad": torch.is_grad_enabled(),
        "inference": torch.is_inference_mode_enabled(),
        "autocast": {
            kind: (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in KINDS
        },
        "dtype": torch.get_default_dtype(),
        "precision": _precision(),
        "deterministic": _deterministic(),
        "threads": torch.get_num_threads(),
        "attention": attention(),
        "random": _random(),
        "device": default_device(),
        "switches": _switches(),
        "logging": _log_levels(),
    }
    frames = sys.modules.get("torch._dynamo.eval_frame")
    stance = getattr(frames, "_stance", None)
    if stance is not None:
        settings["stance"] = stance.stance, getattr(stance, "skip_guard_eval_unsafe", False)
    return settings, left


@contextlib.contextmanager
def restored(settings: dict[str, Any]) -> Iterator[None]:
    """Apply ``settings`` to torch for the duration."""
    with contextlib.ExitStack() as stack:
        for name, values in settings["configs"].items():
            config = importlib.import_module(name)
            own = config.get_config_copy()
            other = {k: v for k, v in values.items() if k in own and own[k] != v}
            if other:
                stack.enter_context(config.patch(other))
        stack.enter_context(torch.inference_mode(settings["inference"]))
        stack.enter_context(torch.set_grad_enabled(settings["grad"]))
        stack.callback(torch.clear_autocast_cache)
        for kind, (enabled, dtype) in settings["autocast"].items():
            stack.callback(torch.set_autocast_enabled, kind, torch.is_autocast_enabled(kind))
            stack.callback(torch.set_autocast_dtype, kind, torch.get_autocast_dtype(kind))
            torch.set_autocast_enabled(kind, enabled)
            torch.set_autocast_dtype(kind, dtype)
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(settings["dtype"])
        stack.callback(_set_precision, _precision())
        _set_precision(settings["precision"])
        stack.callback(_set_deterministic, _deterministic())
        _set_deterministic(settings["deterministic"])
        stack.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(settings["threads"])  # generated C++ depends on it
        stack.callback(set_attention, attention())
        set_attention(settings["attention"])
        stack.callback(_set_switches, _switches())
        _set_switches(settings["switches"])
        stack.callback(_set_log_levels, _log_levels())
        _set_log_levels(settings["logging"])
        _set_random(settings["random"])
        stance, unsafe = settings.get("stance", ("default", False))
        if (stance, unsafe) != ("default", False):
            stack.enter_context(torch.compiler.set_stance(stance, skip_guard_eval_unsafe=unsafe))
        if settings.get("device"):
            stack.enter_context(torch.device(settings["device"]))
        yield


def default_device() -> str:
    """Return the program's default device (``torch.set_default_device``, or a ``with``), ``""`` if it set none. Torch's
    own query creates a tensor there, which fails for an absent device."""
    for mode in reversed(_get_current_function_mode_stack()):
        if isinstance(mode, DeviceContext):
            return str(mode.device)
    return ""


def _deterministic() -> tuple[bool, bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch._C._get_deterministic_fill_uninitialized_memory(),
    )


def _set_deterministic(state: tuple[bool, bool, bool]) -> None:
    torch.use_deterministic_algorithms(state[0], warn_only=state[1])
    torch._C._set_deterministic_fill_uninitialized_memory(state[2])


def _random() -> dict[str, Any]:
    """Return the states of torch's, Python's and NumPy's random generators, which may decide a branch."""
    numpy = sys.modules.get("numpy.random")
    return {
        "torch": torch.get_rng_state(),
        "python": random.getstate(),
        "numpy": None if numpy is None else numpy.get_state(),
    }


def _set_random(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    random.setstate(state["python"])
    if state["numpy"] is not None:
        importlib.import_module("numpy.random").set_state(state["numpy"])


PRECISIONS = (
    ("generic", "all"),
    *((b, o) for b in ("cuda", "mkldnn") for o in ("all", "matmul", "conv", "rnn")),
)
"""Back ends and kinds of operator with their own float32 precision in torch (``fp32_precision``)."""


def _precision() -> tuple[str, dict[tuple[str, str], str]]:
    """Return the float32 precision of products: torch's single setting, ``""`` if they differ, and each one."""
    get = getattr(torch._C, "_get_fp32_precision_getter", None)
    each = {} if get is None else {place: get(*place) for place in PRECISIONS}
    try:
        return torch.get_float32_matmul_precision(), each
    except RuntimeError:  # torch raises if they differ
        return "", each


def _set_precision(precision: tuple[str, dict[tuple[str, str], str]]) -> None:
    word, each = precision
    if word and word != _precision()[0]:
        torch.set_float32_matmul_precision(word)
    now = _precision()[1]
    for place, value in each.items():  # after the single setting, which changes some of them
        if now.get(place, value) != value:
            torch._C._set_fp32_precision_setter(*place, value)


_IN_C = (
    *("cudnn_enabled", "cudnn_benchmark", "cudnn_deterministic", "cudnn_depthwise_kernel"),
    *("mkldnn_enabled", "mkldnn_deterministic", "nnpack_enabled", "qengine"),
    *("math_sdp_allow_fp16_bf16_reduction", "cublas_allow_fp16_accumulation"),
    *("cublas_allow_fp16_reduced_precision_reduction", "cublas_allow_bf16_reduced_precision_reduction"),
)
"""Switches with a reader and a setter in ``torch._C``: of libraries, which affect the choice of a convolution and the
layout of its result, and of the precision of products."""

_SWITCHES: dict[str, tuple[str, ...]] = {
    **{name: (f"_C._set_{name}", f"_C._get_{name}") for name in _IN_C},
    "fast path of attention": ("backends.mha.set_fastpath_enabled", "backends.mha.get_fastpath_enabled"),
    "order of einsum": (
        "backends.opt_einsum.set_flags",
        "backends.opt_einsum.enabled",
        "backends.opt_einsum.strategy",
    ),
    "anomaly detection": ("set_anomaly_enabled", "is_anomaly_enabled", "is_anomaly_check_nan_enabled"),
    "multithreaded backward": ("_C._set_multithreading_enabled", "_C._is_multithreading_enabled"),
    "replayed views": ("_C._set_view_replay_enabled", "_C._is_view_replay_enabled"),
    "forward gradients": ("_C._set_fwd_grad_enabled", "_C._is_fwd_grad_enabled"),
    "cache of autocast": ("set_autocast_cache_enabled", "is_autocast_cache_enabled"),
    "repeated warnings": ("set_warn_always", "is_warn_always_enabled"),
    "sparse invariants": ("_C._set_check_sparse_tensor_invariants", "_C._check_sparse_tensor_invariants"),
    "overwritten parameters": (
        "__future__.set_overwrite_module_params_on_conversion",
        "__future__.get_overwrite_module_params_on_conversion",
    ),
    "swapped parameters": (
        "__future__.set_swap_module_params_on_conversion",
        "__future__.get_swap_module_params_on_conversion",
    ),
    "validated distributions": (
        "distributions.Distribution.set_default_validate_args",
        "distributions.Distribution._validate_args",
    ),
}
"""Switches that affect a program or its lowering: names in torch of the setter, and of each of its arguments' values or
readers. A tuple that a reader returns is its setter's arguments."""

_RECURSION = "recursion limit"


def _in_torch(name: str) -> Any:
    """Return what has a dotted name in torch; None if this torch has none."""
    try:
        return operator.attrgetter(name)(torch)
    except AttributeError:
        return None


def _switches() -> dict[str, tuple[Any, ...]]:
    """Return the arguments of each switch's setter."""
    values: dict[str, tuple[Any, ...]] = {_RECURSION: (sys.getrecursionlimit(),)}
    for name, (setter, *readers) in _SWITCHES.items():
        each = [value() if callable(value) else value for value in map(_in_torch, readers)]
        if each[0] is not None and _in_torch(setter) is not None:
            values[name] = each[0] if isinstance(each[0], tuple) else tuple(each)
    return values


def _set_switches(settings: dict[str, tuple[Any, ...]]) -> None:
    now = _switches()
    for name, values in settings.items():
        if now.get(name, values) != values:
            (sys.setrecursionlimit if name == _RECURSION else _in_torch(_SWITCHES[name][0]))(*values)


def _log_levels() -> tuple[int, dict[str, int]]:
    """Return the level that disables logging, and the level of each logger that is not torch's; ``""`` is the root."""
    loggers = {
        name: one
        for name, one in list(logging.root.manager.loggerDict.items())
        if name.partition(".")[0] != "torch"
    }
    levels = {name: one.level for name, one in loggers.items() if isinstance(one, logging.Logger)}
    return logging.root.manager.disable, {"": logging.root.level, **levels}


def _set_log_levels(settings: tuple[int, dict[str, int]]) -> None:
    disabled, levels = settings
    if disabled != logging.root.manager.disable:
        logging.disable(disabled)
    for name, level in levels.items():
        if level != logging.getLogger(name).level:
            logging.getLogger(name).setLevel(level)


ATTENTION = ("flash", "mem_efficient", "math", "cudnn", "overrideable")
"""Back ends of ``scaled_dot_product_attention`` that a program can enable and disable."""


def attention() -> tuple[dict[str, bool], list[int]]:
    """Return the enabled state of each back end of attention, and their order."""
    return {name: attention_on(name) for name in ATTENTION}, attention_order()


def attention_on(name: str) -> bool:
    """Return True if a back end of attention is enabled."""
    return bool(getattr(torch._C, f"_get_{name}_sdp_enabled")())


def attention_order() -> list[int]:
    """Return the numbers of the back ends in order."""
    return list(torch._C._get_sdp_priority_order())


def set_attention(settings: tuple[dict[str, bool], list[int]]) -> None:
    """Set the back ends and their order, as returned by ``attention``."""
    for name, enabled in settings[0].items():
        getattr(torch._C, f"_set_sdp_use_{name}")(enabled)
    torch._C._set_sdp_priority_order(settings[1])


def _plain(value: Any) -> bool:
    if isinstance(value, (list, tuple, set)):
        return all(_plain(v) for v in value)
    if isinstance(value, dict):
        return all(_plain(k) and _plain(v) for k, v in value.items())
    return value is None or type(value) in (bool, int, float, str)


CONFIGS = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")


def config_modules() -> list[str]:
    """Return the names of torch's imported config modules; others cannot have been changed."""
    from torch.utils._config_module import ConfigModule

    # isinstance would ask each other module of the process for its __class__, eight times as slow
    loaded = {name for name, module in list(sys.modules.items()) if issubclass(type(module), ConfigModule)}
    others = sorted(name for name in loaded if name.startswith("torch.") and name not in CONFIGS)
    return [name for name in (*CONFIGS, *others) if name in loaded]


NO_CODE_PREFIXES = ("cache_key_tag", "force_disable_caches", "job_id", "pgo_extra_")
"""Prefixes of cache settings that change no code, in addition to those that torch declares."""

MAX_CHARACTERS = 200
"""Limit on the characters of a value."""


def non_default_configs() -> Iterator[tuple[str, str]]:
    """Yield the full name and ``repr`` of each config entry that differs from torch's default, without those that
    change no code."""
    for module in config_modules():
        config = sys.modules[module]
        is_default, entries = getattr(config, "_is_default", None), getattr(config, "_config", {})
        if is_default is None:
            continue
        ignored = tuple(getattr(config, "_cache_config_ignore_prefix", ()) or ())
        for name, entry in list(entries.items()):
            if name.startswith(("_", *ignored, *NO_CODE_PREFIXES)) or is_default(name):
                continue
            if getattr(entry, "deprecated", False):  # it has no effect, and reading it warns
                continue
            value = getattr(config, name)
            # Torch counts an entry as changed after a patch, even with its default value restored.
            if _is_plain(value) and value != getattr(entry, "default", None):
                yield f"{module}.{name}", repr(value)[:MAX_CHARACTERS]


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, str)
