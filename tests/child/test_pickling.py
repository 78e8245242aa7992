"""Objects sent by value arrive as they were here: code with its files, tensors with torch's marks."""

from __future__ import annotations

import operator
import pickle
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens.child import pickling

pytestmark = pytest.mark.torch

TEXT = """
def outer(y):
    def inner(x):
        return [value + y for value in x]
    return inner
"""


def files_of(code: types.CodeType) -> set[tuple[str, str, int]]:
    """Each nested code object by name, with its file and first line."""
    found = {(code.co_filename, code.co_name, code.co_firstlineno)}
    for constant in code.co_consts:
        found |= files_of(constant) if isinstance(constant, types.CodeType) else set()
    return found


def test_code_keeps_the_file_and_lines_that_it_was_written_in() -> None:
    """They locate Dynamo's frames and Triton's sources; newer versions of cloudpickle do not keep them."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(TEXT, "/tmp/ipykernel_71/4178438228.py", "exec"), space)
    sent = (space["outer"], space["outer"](3))
    outer, inner = pickle.loads(pickling.pack(sent).data)
    assert inner([1, 2]) == [4, 5] and outer(1)([1]) == [2]
    for here, there in zip(sent, (outer, inner), strict=True):
        assert there is not here and there.__code__ is not here.__code__
        assert files_of(there.__code__) == files_of(here.__code__)
        assert {file for file, _, _ in files_of(there.__code__)} == {"/tmp/ipykernel_71/4178438228.py"}


def symbolic(x: torch.Tensor) -> list[bool]:
    """Return True for each size that plain torch compiles as a symbol."""
    found: list[bool] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        (value,) = (
            n.meta["example_value"]
            for n in gm.graph.nodes
            if n.op == "placeholder" and isinstance(n.meta["example_value"], torch.Tensor)
        )
        found.extend(isinstance(size, torch.SymInt) for size in value.shape)
        return gm.forward

    torch._dynamo.reset()
    torch.compile(lambda x: x.sin() + 1, backend=backend)(x)
    return found


def marked(how: str) -> torch.Tensor:
    x = torch.rand(8, 16)
    if how == "dynamic":
        torch._dynamo.mark_dynamic(x, 0)
    if how == "a range":
        torch._dynamo.mark_dynamic(x, 1, min=4, max=512)
    if how == "perhaps":
        torch._dynamo.maybe_mark_dynamic(x, 1)
    if how == "unknown":
        torch._dynamo.decorators.mark_unbacked(x, 0)
    if how == "static":
        torch._dynamo.mark_static(x, 0)
    if how == "address":
        torch._dynamo.mark_static_address(x)
    return x


@pytest.mark.parametrize("how", ["dynamic", "a range", "perhaps", "unknown", "static", "address", "not"])
def test_a_tensor_keeps_what_torch_was_told_of_its_sizes(how: str) -> None:
    here = marked(how)
    there = pickle.loads(pickling.pack(here).data)
    assert there is not here and vars(there) == vars(here)
    expected = {"dynamic": [True, False], "a range": [False, True], "perhaps": [False, True]}
    assert symbolic(there) == symbolic(marked(how)) == expected.get(how, [how == "unknown", False])


@pytest.mark.full
def test_a_dynamic_size_is_one_for_a_target_too() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sin().sum(0)

    made = {how: compile_lens.capture(f, marked(how), target="h100") for how in ("dynamic", "not")}
    assert [d.source for d in made["dynamic"].compilations[0].dynamic] == ["L['x'].size(0)"]
    # Inductor writes a known size into the kernel.
    assert {how: "r0_numel = 8\n" in c.kernels[0].source for how, c in made.items()} == {
        "dynamic": False,
        "not": True,
    }


@pytest.mark.parametrize("path", ["attention.SDPBackend", "functional.ScalingType"])
def test_a_class_that_has_another_name_in_python_is_that_class_there(path: str) -> None:
    """Cells import such classes from torch, and their functions then have them among their globals."""
    made = operator.attrgetter(path)(torch.nn)
    value = next(iter(made.__members__.values()))
    assert pickle.loads(pickling.pack((made, value)).data) == (made, value)


SCRIPT = """
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
import compile_lens

def f(q):
    with sdpa_kernel(SDPBackend.{}):
        return torch.nn.functional.scaled_dot_product_attention(q, q, q)

if __name__ == "__main__":
    found = compile_lens.capture(f, torch.zeros(2, 4, 128, 64, dtype=torch.float16), target="h100")
    print([k.name for k in found.kernels if "attention" in k.name])
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["FLASH_ATTENTION", "EFFICIENT_ATTENTION"])
def test_a_script_says_which_attention_it_takes(name: str, tmp_path: Path) -> None:
    """Plain pickle has no support for that name."""
    script = tmp_path / "ask.py"
    script.write_text(SCRIPT.format(name), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert f"_scaled_dot_product_{name.lower()}" in done.stdout
