"""A program's device queries, and other places where it did not get the device's result, as a stand-in answered."""

from __future__ import annotations

import importlib.util
import os
import sys
import threading
from typing import Any

import torch

from ...record.device import DeviceQuery
from ...record.graph import Frame
from ..ground import source_text

ATTRIBUTES = ("is_cuda", "is_cpu", "is_mps", "is_xpu")
"""Attributes of a tensor that query its device."""

METHODS = ("get_device", "type")
"""Methods of a tensor that query its device if they get no argument."""

PROPERTIES = "torch.cuda:get_device_properties"
"""Dynamo makes a constant of the device's own; it reads the model's, with the same result."""

FUNCTIONS = (
    PROPERTIES,
    "torch.cuda:current_device",
    "torch.cuda:get_device_capability",
    "torch.cuda:get_device_name",
    "torch.cuda:is_bf16_supported",
    "torch.cuda:is_tf32_supported",
    "torch.cuda:is_available",
    "torch.cuda:device_count",
    "torch.cuda:is_initialized",
    "torch.cuda:memory_allocated",
    "torch.cuda:max_memory_allocated",
    "torch.cuda:memory_reserved",
    "torch.cuda:max_memory_reserved",
    "torch.cuda:get_rng_state",
    "torch.backends.cudnn:is_available",
    "torch.backends.mps:is_available",
    "torch.backends.mps:is_built",
    "torch.accelerator:is_available",
    "torch.accelerator:device_count",
    "torch.accelerator:current_accelerator",
)
"""Functions that query a device."""

DEVICE_ANSWERS = {
    "cuda": {"torch.cuda:device_count": 1, "torch.accelerator:device_count": 1},
    "mps": {
        "torch.backends.mps:is_available": True,
        "torch.backends.mps:is_built": True,
        "torch.accelerator:device_count": 1,
    },
}
"""By kind of device, answers of those ``FUNCTIONS`` that run eagerly in the middle of a function: the code after them
is traced again."""

BUILD_FUNCTIONS = (
    "torch.cuda:get_arch_list",
    "torch.cuda:mem_get_info",
    "torch.backends.cuda:is_built",
    "torch.backends.cuda:is_flash_attention_available",
    "torch.backends.cuda:can_use_flash_attention",
    "torch.backends.cuda:can_use_efficient_attention",
    "torch.backends.cuda:can_use_cudnn_attention",
    "torch.backends.cudnn:version",
    "torch.distributed:is_nccl_available",
)
"""Functions that query torch's build, or free memory on the device, also while Dynamo traces. With the device present
they have other answers, which are not known here."""

BUILD_FLAGS = {
    "torch.version": ("cuda", "cudnn"),
    "torch._C": ("_has_cuda", "has_cuda", "_has_cudnn", "has_cudnn", "_has_nccl"),
    "torch": ("has_cuda", "has_cudnn"),
}
"""Names in modules that describe torch's build. Dynamo takes their values for constants."""

PROFILER_MARKS = ("torch.cuda.nvtx:range_push", "torch.cuda.nvtx:range_pop", "torch.cuda.nvtx:mark")
"""Functions that mark places for a profiler of the device. Nobody listens here."""

_TRITON = importlib.util.find_spec("triton")

_INTERNAL_FOLDERS = tuple(
    os.path.join(folder, "")
    for folder in (
        os.path.dirname(torch.__file__),
        os.path.abspath(os.path.join(__file__, *[os.pardir] * 3)),
        *(getattr(_TRITON, "submodule_search_locations", None) or ()),
    )
)


def is_internal(file: str) -> bool:
    """Return True if a file is torch's, also one that it only generated, Triton's, or ours."""
    return file.startswith((*_INTERNAL_FOLDERS, "<eval_with_key>"))


def is_dynamo_code(code: Any) -> bool:
    """Return True if Dynamo generated this code: it calls graphs, and between them what broke them."""
    for name in code.co_names:  # no generator, whose frame Dynamo would look at
        if name.startswith(("__compiled_fn_", "__resume_at_")):
            return True
    return False


class DeviceQueries:
    """The queries of untraced Python so far, and what could not run as on the device."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], int] = {}
        self._thread = threading.get_ident()
        self.on_meta = False  # the run used meta tensors and computed no values

    def put(self, kind: str, query: str, answer: str, frame: Frame | None, once: bool = False) -> None:
        """Note one; ``once``, however often it occurs while a line is traced."""
        if frame is not None and threading.get_ident() == self._thread:
            key = (query, answer, frame, kind)
            self._found[key] = 1 if once else self._found.get(key, 0) + 1

    def recorded(self) -> tuple[DeviceQuery, ...]:
        """Return all of them, in order of first occurrence."""
        return tuple(
            DeviceQuery(asked, answer, frame, times, kind)
            for (asked, answer, frame, kind), times in self._found.items()
        )


def frame_at(file: str, line: int, function: str) -> Frame:
    name = function
    if name.startswith("torch_dynamo_resume_in_"):  # the rest of a function after a break
        name = name.removeprefix("torch_dynamo_resume_in_").rpartition("_at_")[0]
    return Frame(file, line, name, source_text.line(file, line).strip())


def traced_line() -> Frame | None:
    """Return the program's innermost line that Dynamo traces."""
    for one in reversed(torch._guards.TracingContext.extract_stack()):
        if not is_internal(one.filename):
            return frame_at(one.filename, one.lineno or 0, one.name)
    return None


def running_line() -> Frame | None:
    """Return the program's innermost line that runs."""
    frame: Any = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame and frame_at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def answer_text(answer: Any) -> str:
    text = repr(str(answer)) if isinstance(answer, torch.device) else repr(answer)
    return text if len(text) <= 100 else f"{text[:99]}…"
