"""Reasons why max-autotune has no template, against the functions of torch that decide it."""

from __future__ import annotations

import types
from typing import Any
from unittest import mock

import pytest
import torch
from torch._inductor import config, utils
from torch._inductor.codegen import common
from torch._inductor.ir import FixedLayout

from compile_lens.devices.models import resolve
from compile_lens.record import autotuning

pytestmark = pytest.mark.torch

TYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64, torch.int16, torch.uint8, torch.bool,
    torch.complex64, torch.complex128,
)  # fmt: skip


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_by_type(dtype: torch.dtype) -> None:
    layout = FixedLayout(torch.device("cuda", 0), dtype, [64, 64], [64, 1])
    with (
        mock.patch.object(utils, "is_big_gpu", lambda device: True),
        mock.patch.object(common, "has_backend_feature", lambda device, feature: True),
        config.patch(max_autotune=True),
    ):
        torchs = [utils.use_triton_template(layout, enable_int32=more) for more in (False, True)]
    name = str(dtype).removeprefix("torch.")
    for operator in autotuning.FLOAT_OPERATORS:
        assert (autotuning.no_template_reason("cuda", resolve("h100"), operator, name) == "") is any(torchs)


@pytest.mark.parametrize("target", ["t4", "l4", "a10g", "rtx3090", "a100", "h100"])
def test_by_the_size_of_the_device(target: str) -> None:
    model = resolve(target)
    count = model.figure("multi_processor_count")

    def create(*ignored: Any) -> Any:
        return types.SimpleNamespace(multi_processor_count=count, major=model.figure("major"))

    with mock.patch.object(utils.DeviceProperties, "create", create):
        torchs = getattr(utils.is_big_gpu, "__wrapped__", utils.is_big_gpu)(torch.device("cuda", 0))
    assert (autotuning.too_small_reason(model) == "") is torchs
    assert (autotuning.no_template_reason("cuda", model, "mm", "float32") == "") is torchs
