"""Device queries of a program in Python that Dynamo traces, when the answer depends on an absent device.

Each program takes ``sin`` if the device exists. Certain answers are given here: the tensors are on the device, and
the attention is chosen among the usable kernels. Answers that depend on a build for the device, or on its free memory,
are reported with the line and the answer.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch
from suite import rand

from compile_lens import CaptureError
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("warm"),
    pytest.mark.skipif(
        torch.version.cuda is not None, reason="the answers are those of a build without CUDA"
    ),
]


def here(fn: Any, *args: Any) -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target="h100"), model=resolve("h100")))[0]


def calls(found: Capture) -> list[str]:
    return [n.name for c in found.compilations if "dynamo" in c.graphs for n in c.graphs["dynamo"].calls]


def told(found: Capture) -> list[tuple[str, str]]:
    """Queries with their answers; each is checked to be at the marked line."""
    assert found.target is not None
    for one in found.target.queries:
        assert linecache.getline(one.frame.file, one.frame.line).endswith("# here\n")
    return [(one.query, one.answer) for one in found.target.queries]


def initialized(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.cuda.is_initialized() else x.cos()


def test_the_device_is_initialized_where_its_tensors_are() -> None:
    found = here(initialized, rand(8))
    assert calls(found) == ["sin"] and told(found) == []


def version(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.backends.cudnn.version() else x.cos()  # here


def cuda(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.version.cuda >= "13" else x.cos()  # here


def flag(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch._C._has_cuda else x.cos()  # here


def nccl(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.distributed.is_nccl_available() else x.cos()  # here


def free(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.cuda.mem_get_info()[0] > 2**30 else x.cos()  # here


def large(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.cuda.get_device_properties(0).total_memory / 2**30 > 78 else x.cos()  # here


def flash(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.backends.cuda.is_flash_attention_available() else x.cos()  # here


def acceptable(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.backends.cudnn.is_acceptable(x) else x.cos()  # here


def state(x: torch.Tensor) -> torch.Tensor:
    before = torch.cuda.get_rng_state()  # here
    return x.sin() if before.numel() else x.cos()


@pytest.mark.parametrize(
    ("fn", "asked", "answer", "taken"),
    [
        (version, "torch.backends.cudnn.version()", "None", "cos"),
        (cuda, "torch.version.cuda", "'12.8'", "cos"),
        (flag, "torch._C._has_cuda", "False", "cos"),
        (nccl, "torch.distributed.is_nccl_available()", str(torch.distributed.is_nccl_available()), "cos"),
        (free, "torch.cuda.mem_get_info()", "(85029027840, 85029027840)", "sin"),
        (large, "torch.cuda.get_device_properties().total_memory", "85029027840", "sin"),
        (flash, "torch.backends.cuda.is_flash_attention_available()", "True", "sin"),
        (acceptable, "torch.backends.cudnn.is_acceptable()", "True", "sin"),
        (state, "torch.cuda.get_rng_state()", "tensor([0", "sin"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_depends_on_the_build_is_told(
    fn: Callable[..., Any], asked: str, answer: str, taken: str
) -> None:
    found = here(fn, rand(8))
    ((was, said),) = told(found)
    assert was == asked and said.startswith(answer) and calls(found)[-1] == taken


def test_of_published_gigabytes_both_readings_are_told() -> None:
    """The exact size of an A100 is unknown. 79 times 2^30 lies between the two readings."""
    found, _ = perform(
        Call.read(large, (rand(8),), None, CaptureOptions(target="a100"), model=resolve("a100"))
    )
    ((_, said),) = told(found)
    assert said == "80000000000, its 80 GB of 10^9 bytes: if they are of 2^30, it has 85899345920"


def test_a_state_of_random_numbers_breaks_as_in_torch() -> None:
    """Torch's table of functions lists ``torch.cuda.get_rng_state`` among those that Dynamo skips."""
    assert len(here(state, rand(8)).breaks) == 1


def can_use(q: torch.Tensor) -> torch.Tensor:
    params = torch.backends.cuda.SDPAParams(q, q, q, None, 0.0, True, False)
    return q.sin() if torch.backends.cuda.can_use_flash_attention(params) else q.cos()  # here


@pytest.mark.parametrize(("dtype", "taken"), [(torch.float16, "sin"), (torch.float32, "cos")])
def test_whether_flash_can_be_used_is_as_it_is_chosen(dtype: torch.dtype, taken: str) -> None:
    """The rule is ``check_dtypes_low_precision`` of PyTorch's ``sdp_utils.cpp``."""
    found = here(can_use, torch.zeros(1, 2, 16, 64, dtype=dtype))
    assert calls(found)[-1] == taken
    assert told(found) == [("torch.backends.cuda.can_use_flash_attention()", str(taken == "sin"))]


def clock(x: torch.Tensor) -> torch.Tensor:
    return x * torch.cuda.get_device_properties(0).clock_rate


@pytest.mark.parametrize(
    ("fn", "words"),
    [
        (clock, "the device model h100 does not say clock_rate"),
    ],
    ids=["a property that no one published"],
)
def test_what_is_refused_says_what_is_known(fn: Callable[..., Any], words: str) -> None:
    with pytest.raises(CaptureError, match=words):
        here(fn, rand(8))
