"""Literal tensors that a program creates on the device: their values are known, and they are on the device.

Logs from machines with a GPU show what Inductor generates there: the constant is on ``cuda``, there is no
``device_put``, and the Triton kernel takes it as an argument.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from compile_lens import capture
from compile_lens._torch.targets import accelerator, cpu_backed_tensors
from compile_lens._torch.targets.device_interfaces import MARK, PHASE
from compile_lens._torch.targets.replacements import Replacements, marked
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

TABLE = [0.5 * i for i in range(20)]


def as_there(fn: Callable[..., Any], *args: Any, target: str = "h100", **asked: Any) -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target, **asked), model=resolve(target)))[
        0
    ]


def listed(x: torch.Tensor) -> torch.Tensor:
    return x[:, [0, 5, 2, 9, 4, 33, 8, 7, 6, 1]]


def product(x: torch.Tensor) -> torch.Tensor:
    return x @ torch.tensor([[1.0] * 8] * 64, device=x.device)


def looked_up(i: torch.Tensor) -> torch.Tensor:
    return torch.tensor(TABLE, device=i.device, dtype=torch.float32)[i].sin()


def edges(x: torch.Tensor) -> torch.Tensor:
    sobel = torch.tensor([[1.0, 0, -1], [2, 0, -2], [1, 0, -1]], device=x.device)
    return F.conv2d(x, sobel.view(1, 1, 3, 3), padding=1)


def bucketed(x: torch.Tensor) -> torch.Tensor:
    return torch.bucketize(x, torch.tensor([0.0, 1.0], device=x.device))


def searched(x: torch.Tensor) -> torch.Tensor:
    return torch.searchsorted(x.new_tensor([0.0, 1.0, 2.0]), x) + torch.searchsorted(
        torch.as_tensor([0.0, 1.0, 2.0], device=x.device), x
    )


def bagged(i: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.embedding_bag(i, weight, torch.tensor([0, 3], device=i.device))


def bounded(i: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.embedding(i, weight, max_norm=1.0)


def segmented(x: torch.Tensor) -> torch.Tensor:
    return torch.segment_reduce(x, "sum", lengths=torch.tensor([16, 16], device=x.device))


def halves(x: torch.Tensor) -> torch.Tensor:
    return x @ torch.tensor([[1.0] * 4] * 64, device=x.device, dtype=torch.bfloat16)


def largest(x: torch.Tensor) -> torch.Tensor:
    return torch.topk(torch.tensor(TABLE, device=x.device), 3)[0] + x[0, 0]


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (listed, (torch.rand(32, 64),)),
    (product, (torch.rand(32, 64),)),
    (looked_up, (torch.arange(5),)),
    (edges, (torch.rand(1, 1, 16, 16),)),
    (bucketed, (torch.rand(32, 64),)),
    (searched, (torch.rand(32, 64),)),
    (bagged, (torch.arange(10), torch.rand(10, 4))),
    (bounded, (torch.arange(10), torch.rand(10, 4))),
    (segmented, (torch.rand(32),)),
    (halves, (torch.rand(32, 64).bfloat16(),)),
    (largest, (torch.rand(32, 64),)),
]


def on_the_cpu(found: Capture) -> list[str]:
    """CPU parts of the code: C++ kernels and buffers."""
    text = "".join(map(str, found.code.values()))
    return re.findall(r"\w+ = empty_strided_cpu\(\(.*|async_compile\.cpp\w*", text)


@pytest.mark.parametrize(("fn", "args"), PROGRAMS, ids=[fn.__name__ for fn, _ in PROGRAMS])
def test_what_is_written_down_on_the_device_is_there(fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
    found = as_there(fn, *args, backward=False)
    assert not found.breaks and not on_the_cpu(found)
    assert {k.language for k in found.kernels} <= {"triton", "extern"}
    for graph in found.compilations[0].graphs.values():
        assert not [
            n.name for n in graph.calls if "device_put" in str(n.target) or "_to_copy" in str(n.target)
        ]
        assert "]cpu" not in graph.readable()


def test_the_kernel_in_triton_is_given_the_constant() -> None:
    code = str(as_there(listed, torch.rand(32, 64), backward=False).code["inference"])
    assert re.search(
        r"^_tensor_constant0 = None  # device\(type='cuda', index=0\) torch.int64 \(10,\)", code, re.M
    )
    assert re.search(r"\.run\(_tensor_constant0, arg0_1, buf0, 320, stream=", code)


def test_also_in_training() -> None:
    found = as_there(lambda x: (listed(x) * 2).sin().sum(), torch.rand(32, 64).requires_grad_())
    assert not on_the_cpu(found) and {k.language for k in found.kernels} == {"triton"}
    assert {"forward", "backward"} <= set(found.code)


def test_a_graph_that_is_recorded_has_no_part_on_the_cpu() -> None:
    (seen,) = as_there(looked_up, torch.arange(5), backward=False).compilations[0].cuda_graphs
    assert [part.recorded for part in seen.partitions] == [True] and not any(
        part.reasons for part in seen.partitions
    )


def test_values_are_those_that_the_program_wrote() -> None:
    pytest.importorskip("triton")  # its interpreter runs the kernel
    x = torch.rand(32, 64)
    assert capture(listed, x, target="h100", backward=False).verify(listed, x).ok


def test_a_constant_of_one_element_is_computed_with() -> None:
    """Torch tracks its value, here through a sum and a negation, and writes it into the kernel."""

    def scaled(x: torch.Tensor) -> torch.Tensor:
        return x * -(torch.tensor([3.0], device=x.device) + 4)

    (kernel,) = as_there(scaled, torch.rand(8), backward=False).kernels
    assert kernel.language == "triton" and re.search(r"-7\.0|-\(?7", kernel.source)


def test_what_is_written_down_on_the_cpu_is_copied_as_there() -> None:
    """``torch.tensor([…])`` is on the CPU also on a GPU machine, and ``.to`` moves it: the copy has its own name."""

    def moved(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor(TABLE).to(x.device)

    found = as_there(moved, torch.rand(20), backward=False)
    graphs = found.compilations[0].graphs
    for stage in ("inference", "inference.post_grad"):
        text = graphs[stage].readable()
        assert '_tensor_constant0: "f32[20][1]cpu"' in text and "device_put" in text
    code = str(found.code["inference"])
    assert "_tensor_constant0 = None  # device(type='cpu')" in code
    assert re.search(r"\.run\(arg0_1, _tensor_constant0_cuda0\w*, buf0, 20, stream=", code)
    assert [k.language for k in found.kernels] == ["triton"] and not on_the_cpu(found)


@pytest.mark.parametrize("fn", [listed, looked_up])
def test_on_a_mac_torch_moves_what_was_made_on_the_cpu(fn: Callable[..., Any]) -> None:
    """``FakeTensorMode.avoid_device_init`` checks for CUDA, so it is True on a Mac: torch lifts the constant on the
    CPU and moves it, and Inductor copies it to the device (``DeviceCopy.create``)."""
    found = as_there(
        fn, torch.rand(32, 64) if fn is listed else torch.arange(5), target="mps", backward=False
    )
    assert not on_the_cpu(found) and {k.language for k in found.kernels} == {"metal"}
    assert "]cpu" in found.compilations[0].graphs["inference.post_grad"].readable()
    assert "_tensor_constant0_mps0 = None  # device(type='mps', index=0)" in str(found.code["inference"])


def in_both(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x.sin(), torch.arange(1000.0).sin()


def rotated(x: torch.Tensor) -> torch.Tensor:
    return x * torch.tensor([1 + 2j] * 64, device=x.device)


def test_a_kernel_for_the_cpu_that_nobody_asked_for_is_said() -> None:
    """Torch for a Mac lifts a literal on the CPU. A kernel for a CPU tensor of the program itself is not reported."""
    words = "C++ for the CPU next to the device's code, though the captured graph has no tensor there"
    found = as_there(rotated, torch.rand(64), target="mps", backward=False)
    (kernel,) = [k.name for k in found.kernels if k.language == "cpp"]
    assert any(f"{kernel} is {words}" in said for said in found.compilations[0].code["inference"].may_differ)
    found = as_there(in_both, torch.rand(64), backward=False)
    assert {k.language for k in found.kernels} == {"cpp", "triton"}
    assert not any(words in said for said in found.compilations[0].code["inference"].may_differ)


@pytest.fixture(params=["cuda", "cuda, which the build has kernels for", "mps"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    kind, _, has_kernels = request.param.partition(", ")
    found = torch.device(kind, 0)
    if has_kernels:  # torch's CUDA wheel on a machine without a GPU
        real = torch._C._dispatch_has_kernel_for_dispatch_key
        monkeypatch.setattr(
            torch._C,
            "_dispatch_has_kernel_for_dispatch_key",
            lambda name, key: name == "aten::empty_strided" or real(name, key),
        )
    with Replacements() as places, places:
        accelerator.place(places, found.type)
        if found.type == "cuda":
            places.attribute(torch.cuda, "_lazy_init", PHASE, lambda: None)
        cpu_backed_tensors.place(places, found)
        with marked(MARK), marked(PHASE), torch.no_grad():
            yield found


def test_it_computes_with_what_it_holds(device: torch.device) -> None:
    a = torch.tensor([3.0, 1.0, 2.0], device=device)
    assert a.device == device and a.tolist() == [3, 1, 2]
    assert (a + 1).device == device and (a + 1).tolist() == [4, 2, 3]
    assert a.sort()[0].tolist() == [1, 2, 3] and a[[0, 2]].tolist() == [3, 2]
    assert torch.full([1], 7, device=device).item() == 7 and torch.arange(3, device=device).tolist() == [
        0,
        1,
        2,
    ]
    assert a.to("cpu").device.type == "cpu" and a.to(torch.bfloat16).device == device
    assert torch.tensor([1 + 2j], device=device).conj().tolist() == [1 - 2j]
    for dtype in (torch.bool, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.uint16):
        assert torch.tensor([1, 0], device=device).to(dtype).tolist() == [1, 0]


def test_each_operator_is_registered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch refuses a second registration. A build for the device also lists operators that are composite elsewhere."""
    registered = []
    real = torch.library.Library.impl

    def impl(self: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        registered.append(name)
        return real(self, name, *args, **kwargs)

    monkeypatch.setattr(torch.library.Library, "impl", impl)
    monkeypatch.setattr(torch._C, "_dispatch_has_kernel_for_dispatch_key", lambda name, key: True)
    with Replacements() as places, places:
        cpu_backed_tensors.place(places, torch.device("cuda", 0))
    assert "silu_backward" in registered and len(registered) == len(set(registered)) > 1000


def test_views_are_of_the_same_memory(device: torch.device) -> None:
    a = torch.arange(6.0, device=device)
    b = a.view(2, 3)[1]
    assert b._is_view() and b.untyped_storage().data_ptr() == a.untyped_storage().data_ptr()
    assert b.mul_(10) is b and a.tolist() == [0, 1, 2, 30, 40, 50]
    copied = copy.deepcopy(a)
    copied.zero_()
    assert copied.device == device and a.tolist() == [0, 1, 2, 30, 40, 50]
    assert (
        cpu_backed_tensors.on_cpu(a).device.type == "cpu"
        and cpu_backed_tensors.on_cpu(a).data_ptr() == a.data_ptr()
    )


def test_elsewhere_the_device_is_not_there() -> None:
    with Replacements() as places, places:
        accelerator.place(places, "cuda")
        places.attribute(torch.cuda, "_lazy_init", PHASE, lambda: None)
        cpu_backed_tensors.place(places, torch.device("cuda", 0))
        with marked(PHASE):
            a = torch.zeros(2, device="cuda")
        with pytest.raises(
            NotImplementedError, match=r"Could not run 'aten::\w+[^']*' with arguments from the 'CUDA'"
        ):
            a + 1
    with pytest.raises((NotImplementedError, RuntimeError)):
        a + 1
