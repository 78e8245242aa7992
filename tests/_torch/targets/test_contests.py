"""Candidates that max-autotune would time on an absent device: its templates, without a winner."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from compile_lens import capture
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.record.kernel import Kernel
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

pytest.importorskip("triton")


def here(fn: Any, *args: Any, target: str = "h100", build: bool = False, **options: Any) -> Capture:
    settings: dict[str, Any] = {"mode": None if options else "max-autotune", "options": options or None}
    asked = CaptureOptions(target=target, build=build, **settings)
    return perform(Call.read(fn, args, None, asked, model=resolve(target)))[0]


def product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return (x @ w).relu()


def pair(m: int = 64, k: int = 96, n: int = 32, dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    return [torch.rand(m, k, dtype=dtype) - 0.5, torch.rand(k, n, dtype=dtype) - 0.5]


def sizes(kernel: Kernel) -> dict[str, int]:
    return dict(kernel.candidates[0].settings)


INTERPRETED = """
import json, sys
from pathlib import Path
import torch
from compile_lens._torch.targets import interpreted_wrapper

torch.manual_seed(0)
x, w = torch.rand(64, 96) - 0.5, torch.rand(96, 32) - 0.5
with interpreted_wrapper.folder() as folder:
    for name, source, grid in json.loads(Path("templates.json").read_text()):
        out = torch.full((64, 32), torch.nan)
        interpreted_wrapper.kernel(source, name, folder).run(x, w, out, grid, 1, 1, stream=0)
        print((out - x @ w).abs().max().item())
"""


@pytest.mark.exhaustive
def test_each_template_computes_the_product(child: Callable[..., str], tmp_path: Path) -> None:
    """Triton's interpreter runs the text of each; a damaged template computes another result."""
    x, w = pair()
    (one,) = here(product, x, w).autotuning
    assert (one.operator, one.nodes, one.phase) == ("mm", ("mm",), "inference")
    assert one.inputs == ("float32[64, 96]", "float32[96, 32]")
    assert one.choices[0].name == "extern_kernels.mm" and one.choices[0].kind == "extern"
    assert len(one.templates) >= 5 and len({k.candidates for k in one.templates}) == len(one.templates)
    programs = [
        (k.name, k.source, -(-64 // sizes(k)["BLOCK_M"]) * -(-32 // sizes(k)["BLOCK_N"]))
        for k in one.templates
    ]
    name, source, grid = programs[0]
    programs.append((name, source.replace("acc +=", "acc -="), grid))
    (tmp_path / "templates.json").write_text(json.dumps(programs))
    *apart, damaged = map(float, child(INTERPRETED).split())
    assert len(apart) == len(one.templates) and max(apart) < 1e-5 < 1e-2 < damaged


def test_no_template_has_won() -> None:
    plain = capture(product, *pair(), target="h100")
    tuned = here(product, *pair())
    assert [k.name for k in tuned.kernels] == [k.name for k in plain.kernels]
    assert (
        not plain.autotuning and tuned.autotuning[0].choices[tuned.autotuning[0].in_code].language == "extern"
    )
    assert tuned.target is not None and any("nothing was timed" in text for text in tuned.target.may_differ)


def test_what_follows_a_template_is_fused_with_it() -> None:
    """The oracle for ``why`` on a winning template is a program that has no other choice."""
    found = here(product, *pair(), max_autotune_gemm=True, max_autotune_gemm_backends="TRITON")
    (kernel,) = found.kernels
    assert kernel.kind == "template" and "tl.dot" in kernel.source and "relu" in kernel.name
    (one,) = found.autotuning
    assert one.in_code == 0 and {k.language for k in one.choices} == {"triton"}


def test_why_a_call_stands_alone_names_the_contest() -> None:
    found = here(product, *pair())
    said = " ".join(found.why("mm", "relu").facts)
    assert f"{len(found.autotuning[0].templates)} templates of mm" in said and "not done here" in said
    plain = capture(product, *pair(), target="h100").why("mm", "relu")
    assert "templates" not in " ".join(plain.facts)


def test_equal_products_are_one_contest() -> None:
    def chain(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ((x @ a).relu() @ b).relu()

    square = [torch.rand(64, 64) for _ in range(3)]
    (one,) = here(chain, *square).autotuning
    assert one.nodes == ("mm", "mm_1")


def convolved(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.conv2d(x, w)


def test_a_convolution() -> None:
    (one,) = here(convolved, torch.rand(2, 16, 14, 14), torch.rand(32, 16, 3, 3)).autotuning
    assert one.operator == "convolution" and one.choices[one.in_code].name == "extern_kernels.convolution"
    assert {sizes(k)["KERNEL_H"] for k in one.templates} == {3}


def test_attention_has_no_library_beside_it() -> None:
    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
        return flex_attention(q, k, v)

    found = here(attention, *(torch.rand(1, 2, 128, 64, requires_grad=True) for _ in range(3)))
    assert [(c.phase, c.operator) for c in found.autotuning] == [
        ("forward", "flex_attention"),
        ("backward", "flex_attention_backward"),
    ]
    for one in found.autotuning:
        assert len(one.templates) == len(one.choices) > 1 and one.in_code == 0
        first = one.templates[0]
        (shown,) = [k for k in found.kernels if k.kind == "template" and k.phase == one.phase]
        for name in ("BLOCK_M", "BLOCK_M1"):
            if name in sizes(first):
                assert f"{name} : tl.constexpr = {sizes(first)[name]}" in shown.source


def test_a_product_that_is_taken_apart() -> None:
    """For a long inner dimension Inductor also offers a sum of several products: a graph instead of a template."""
    (one,) = here(lambda x, w: x @ w, *pair(16, 8192, 16)).autotuning
    apart = [k for k in one.choices if k.language == "graph"]
    assert apart and all("aten.bmm" in k.source for k in apart)
    splits = [sizes(k)["k_split"] for k in apart]
    assert all(8192 % split == 0 for split in splits) and len(set(splits)) == len(splits)


@pytest.mark.parametrize(
    ("target", "words"),
    [("l4", "NVIDIA L4 has 58"), ("t4", "NVIDIA T4 has 40"), ("mps", "times nothing")],
)
def test_where_it_changes_no_product_it_says_so(target: str, words: str) -> None:
    dtype = torch.float32 if target == "mps" else torch.float16
    tuned = here(product, *pair(dtype=dtype), target=target)
    assert not tuned.autotuning and tuned.target is not None
    assert any(words in text for text in tuned.target.may_differ)
    plain = capture(product, *pair(dtype=dtype), target=target)
    assert [k.name for k in tuned.kernels] == [k.name for k in plain.kernels]


@pytest.mark.exhaustive
def test_machine_code_of_the_templates() -> None:
    """Shared memory by hand: each pipeline stage has one block of each operand, in bf16."""
    found = here(
        product, *pair(256, 256, 256, torch.bfloat16), build=True,
        max_autotune_gemm=True, max_autotune_gemm_backends="ATEN,TRITON",
        **{"test_configs.autotune_choice_name_regex": "^(mm|triton_mm_[0-9]*)$",
           "test_configs.autotune_choice_desc_regex": "BLOCK_K=64, BLOCK_M=128, BLOCK_N=128|^$"},
    )  # fmt: skip
    (one,) = found.autotuning
    assert 1 <= len(one.templates) <= 3
    for kernel in one.templates:
        assert kernel.machine is not None and kernel.machine.arch.startswith("sm_90")
        assert "HGMMA" in kernel.sass and "wgmma" in kernel.ptx
        by_hand = sizes(kernel)["num_stages"] * (128 * 64 + 64 * 128) * 2
        assert kernel.machine.shared == by_hand
    assert Capture.from_json(found.to_json()) == found


def test_views_tell_the_contests(tmp_path: Path) -> None:
    found = here(product, *pair())
    count = f"1 contest, {len(found.autotuning[0].choices)} contenders"
    for suffix in ("md", "html"):
        assert count in found.save(tmp_path / f"page.{suffix}").read_text()


@pytest.mark.exhaustive
def test_without_triton_there_are_no_templates(child: Callable[..., str]) -> None:
    said = child(
        """
import sys
sys.modules["triton"] = None  # importing it fails from here on
import torch
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.devices.models import resolve

x = torch.rand(64, 64)
found = perform(
    Call.read(lambda x: (x @ x).relu(), (x,), None, CaptureOptions(mode="max-autotune"), model=resolve("h100"))
)[0]
print(found.autotuning, found.target.may_differ[0])
"""
    )
    assert said.startswith("() max-autotune times templates") and "written with Triton" in said
