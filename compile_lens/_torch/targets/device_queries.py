"""Where a program did not get what the device would have given, that something stands in for."""

from __future__ import annotations

import importlib.util
import linecache
import os
import sys
import threading
from typing import Any

import torch

from ...record.device import DeviceQuery
from ...record.graph import Frame

ATTRIBUTES = ("is_cuda", "is_cpu", "is_mps", "is_xpu")
"""Attributes of a tensor that ask for its device."""

METHODS = ("get_device", "type")
"""Methods of a tensor that ask for its device where they are given nothing."""

PROPERTIES = "torch.cuda:get_device_properties"
"""Of the device's own Dynamo makes a constant; it reads the model's, which comes to the same."""

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
"""Functions that ask for a device."""

ON_THE_DEVICE = {
    "cuda": {"torch.cuda:device_count": 1, "torch.accelerator:device_count": 1},
    "mps": {
        "torch.backends.mps:is_available": True,
        "torch.backends.mps:is_built": True,
        "torch.accelerator:device_count": 1,
    },
}
"""By kind of device, what those of ``FUNCTIONS`` answer there that Dynamo leaves to Python in the middle of a function:
what comes after them is traced again."""

OF_THE_BUILD = (
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
"""Functions that ask how torch was built, or what is free on the device, also while Dynamo traces. Where the device is
there they have other answers, which are not known here."""

BUILD_FLAGS = {
    "torch.version": ("cuda", "cudnn"),
    "torch._C": ("_has_cuda", "has_cuda", "_has_cudnn", "has_cudnn", "_has_nccl"),
    "torch": ("has_cuda", "has_cudnn"),
}
"""Names of modules that tell how torch was built. Dynamo takes what they are for a constant."""

MARKS = ("torch.cuda.nvtx:range_push", "torch.cuda.nvtx:range_pop", "torch.cuda.nvtx:mark")
"""Functions that tell a profiler of the device where the program is. Nobody listens here."""

_TRITON = importlib.util.find_spec("triton")

_NOT_THE_PROGRAM_S = tuple(
    os.path.join(folder, "")
    for folder in (
        os.path.dirname(torch.__file__),
        os.path.abspath(os.path.join(__file__, *[os.pardir] * 3)),
        *(getattr(_TRITON, "submodule_search_locations", None) or ()),
    )
)


def internal(file: str) -> bool:
    """Whether a file is torch's, also one that it only generated, Triton's, or ours."""
    return file.startswith((*_NOT_THE_PROGRAM_S, "<eval_with_key>"))


def written_by_dynamo(code: Any) -> bool:
    """Whether Dynamo wrote this code: it calls graphs, and in between what broke them."""
    for name in code.co_names:  # no generator, whose frame Dynamo would look at
        if name.startswith(("__compiled_fn_", "__resume_at_")):
            return True
    return False


class Questions:
    """What Python that is not traced asked so far, and what could not run as on the device."""

    def __init__(self) -> None:
        self._found: dict[tuple[Any, ...], int] = {}
        self._thread = threading.get_ident()
        self.on_meta = False  # of what was run nothing was computed

    def put(self, kind: str, asked: str, answer: str, frame: Frame | None, once: bool = False) -> None:
        """Note one; ``once``, however often it is met while a line is traced."""
        if frame is not None and threading.get_ident() == self._thread:
            key = (asked, answer, frame, kind)
            self._found[key] = 1 if once else self._found.get(key, 0) + 1

    def told(self) -> tuple[DeviceQuery, ...]:
        """All of them, in the order in which they first came."""
        return tuple(
            DeviceQuery(asked, answer, frame, times, kind)
            for (asked, answer, frame, kind), times in self._found.items()
        )


def frame_at(file: str, line: int, function: str) -> Frame:
    name = function
    if name.startswith("torch_dynamo_resume_in_"):  # the rest of a function after a break
        name = name.removeprefix("torch_dynamo_resume_in_").rpartition("_at_")[0]
    return Frame(file, line, name, linecache.getline(file, line).strip())


def line_traced() -> Frame | None:
    """The innermost line of the program's that Dynamo traces."""
    for one in reversed(torch._guards.TracingContext.extract_stack()):
        if not internal(one.filename):
            return frame_at(one.filename, one.lineno or 0, one.name)
    return None


def line_running() -> Frame | None:
    """The innermost line of the program's that runs."""
    frame: Any = sys._getframe(1)
    while frame is not None and internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame and frame_at(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)


def text(answer: Any) -> str:
    said = repr(str(answer)) if isinstance(answer, torch.device) else repr(answer)
    return said if len(said) <= 100 else f"{said[:99]}…"
