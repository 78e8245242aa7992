"""Triton's interpreter launches the program's own kernels, so that a capture for an absent device has their values. The
oracle is plain Triton with ``TRITON_INTERPRET=1`` in another process, and PyTorch by hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from full_text import full

from compile_lens import capture
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.results.capture import Capture
from compile_lens.views.words import stamp

pytest.importorskip("triton")

import triton_kernels as k

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(33, 70, generator=generator), torch.randn(33, 70, generator=generator)


def here(fn: Any, *args: Any) -> tuple[Capture, Any]:
    found, outcome = perform(Call.read(fn, args, None, CaptureOptions(target="h100"), model=resolve("h100")))
    return found, outcome.result


BY_HAND: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (k.launched, lambda x, y: (x + y).relu() * 2),
    (k.softmax, lambda x, y: x.softmax(-1) + y),
    (k.product, lambda x, y: (x @ y.t()).sin()),
    (k.in_place, lambda x, y: y.sin()),
    (k.constants_anywhere, lambda x, y: (x + 1).cos() + y),
    (k.after_a_break, lambda x, y: ((x + y).relu() * 2 + y).relu() * 2 + 1),
]
PLAIN = """
import sys, torch
sys.path.insert(0, sys.argv[1])
import triton_kernels as k
x, y = torch.load("inputs.pt")
k.tiles.configs = k.tiles.configs[:1]  # to time several it asks for a device
def value(name):
    try:
        return getattr(k, name)(x, y)
    except Exception as error:
        return repr(error)
torch.save([value(name) for name in sys.argv[2:]], "values.pt")
"""


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor | str]:
    """Results of plain Triton's interpreter, all eager, in its own process; or the text of its error."""
    folder = tmp_path_factory.mktemp("plain")
    torch.save(inputs(), folder / "inputs.pt")
    names = [fn.__name__ for fn, _ in BY_HAND]
    helpers = str(Path(k.__file__).parent)
    command = [sys.executable, "-W", "ignore", "-c", PLAIN, helpers, *names]
    environment = {"TRITON_INTERPRET": "1", "PATH": ""}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return dict(zip(names, torch.load(folder / "values.pt")))


@pytest.mark.full
@pytest.mark.parametrize(("fn", "by_hand"), BY_HAND, ids=lambda f: f.__name__)
@pytest.mark.cases(full=2)
def test_the_values_are_those_of_the_interpreter(
    fn: Any, by_hand: Any, plain: dict[str, torch.Tensor | str]
) -> None:
    x, y = inputs()
    found, result = here(fn, x, y)
    torch.testing.assert_close(result, by_hand(x, y))
    there = plain[fn.__name__]
    if isinstance(there, str):  # Triton 3.6 reads a number from an array in a way that numpy removed
        assert version("triton").startswith("3.6.") and "only 0-dimensional arrays" in there
    else:
        torch.testing.assert_close(result, there)
    assert found.target is not None and found.target.queries == ()
    assert all(torch.equal(a, b) for a, b in zip((x, y), inputs()))


def test_a_kernel_of_the_program_is_no_template() -> None:
    found, _ = here(k.launched, *inputs())
    kinds = {kernel.kind for kernel in found.kernels if "tl.load" in kernel.source}
    assert kinds == {"user-written", "pointwise"}  # the launch, and Inductor's own relu and product
    assert "Triton user-written" in full(found) and "emplate" not in full(found)


def test_a_branch_on_what_a_kernel_wrote_is_taken_as_there() -> None:
    found, _ = here(k.in_place, *inputs())
    assert [n.target for c in found.compilations for n in c.graphs["dynamo"].calls][-1] == "sin"


def test_the_interpreter_s_own_mistake_about_a_bool_is_none_here() -> None:
    x, y = inputs()
    torch.testing.assert_close(here(k.truth, x, y)[1], (x + 1).cos() + y)


UNWRITTEN = [
    (k.outside, "beyond", "outside the tensors that it is given"),
    (k.long, "endless", "would compute more than 67,108,864 elements"),
    (k.instructions, "assembled", "inline_asm not supported"),
    (k.tuned, "tiles_assembled", "inline_asm not supported"),
]


@pytest.mark.parametrize("plainly", [False, True], ids=["in a graph", "by plain Python"])
@pytest.mark.parametrize(("fn", "kernel", "why"), UNWRITTEN, ids=lambda v: getattr(v, "__name__", None))
def test_what_cannot_be_interpreted_leaves_all_as_it_was_and_is_said(
    fn: Any, kernel: str, why: str, plainly: bool
) -> None:
    x, y = inputs()
    found, result = here(k.left_to_python(fn) if plainly else fn, x, y)
    # Its partial writes are undone.
    assert torch.equal(result, torch.ones_like(result).sin() if plainly else torch.ones_like(result))
    assert found.target is not None
    (one,) = found.target.queries
    assert one.kind == "not run" and one.query == kernel and why in one.answer
    assert one.frame.function == fn.__name__ and f"{kernel}[" in one.frame.text
    (said,) = [
        words for words in stamp.of_target(found.target) if f"launched {kernel}, a Triton kernel" in words
    ]
    assert (
        f"triton_kernels.py:{one.frame.line} " in said
        and "its outputs are unchanged" in said
        and "zeros" not in said
    )


def test_a_kernel_of_a_backward_is_said_with_the_line_that_asked_and_compiled_once() -> None:
    """By hand: it is in the backward of the one graph that has the function, and nowhere else."""
    found, _ = here(k.stepped, *inputs())
    assert found.target is not None
    said = [(one.kind, one.query, one.frame.text) for one in found.target.queries]
    assert said == [("not run", "assembled", "loss.backward()")]
    graphs = [c.graphs["dynamo"] for c in found.compilations if "dynamo" in c.graphs]
    assert [[n.target for n in graph.calls][:1] for graph in graphs] == [
        ["detach"],
        ["autograd_function_apply"],
    ]
    assert [kernel.name for kernel in found.kernels if "assembled" in kernel.name] == ["assembled_0"]


def test_triton_is_afterwards_as_it_was() -> None:
    import triton
    import triton.language as tl
    from triton.runtime import interpreter, jit

    owners = (tl, tl.core, tl.tensor, tl.math, jit.JITFunction, interpreter, interpreter.TensorHandle)
    places = (*owners, interpreter.interpreter_builder, interpreter.ReduceOps, triton.runtime.Autotuner)

    def state() -> list[Any]:
        last = ("grid_dim", "grid_idx")  # the program at which the interpreter stopped
        return [{n: id(value) for n, value in vars(o).items() if n not in last} for o in places]

    here(k.launched, *inputs())  # creates Triton's lazy objects
    before, tuner = state(), dict(vars(k.tiles))
    for fn in (k.product, k.outside, k.in_place):
        here(fn, *inputs())
        assert state() == before
    assert vars(k.tiles) == tuner and k.tiles.cache == {}
    assert not hasattr(k, "interpreter_builder") and not hasattr(k, "np")
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        k.summed(1, 2)


@pytest.mark.parametrize("fn", [k.launched, k.product, k.in_place, k.truth], ids=lambda f: f.__name__)
@pytest.mark.cases(full=2)
def test_such_a_capture_is_verified(fn: Any) -> None:
    x, y = inputs()
    found = capture(fn, x, y, target="h100").verify()
    assert found.ok and found.comparisons and found.same_code is True, full(found)
    assert "kernels that the program wrote in Triton ran in the interpreter on both sides" in found.runner


def test_what_cannot_be_interpreted_is_not_verified_and_says_so() -> None:
    x, y = inputs()
    found = capture(k.outside, x, y, target="h100").verify()
    ((part, reason),) = found.not_run
    assert part == "outside" and "outside the tensors" in reason and not found.comparisons and not found.ok


@pytest.mark.exhaustive
def test_wrong_code_around_a_kernel_does_not_agree(child: Callable[..., str]) -> None:
    program = """
import sys, torch
sys.path.insert(0, {helpers!r})
import triton_kernels as k
from compile_lens._torch.targets import interpreted_wrapper as running, torch_settings
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.trials import verify_interpreted

real = running.module
for old, new in (("", ""), ("2.0", "2.5"), ("tl.load(y_ptr", "tl.load(x_ptr")):
    running.module = lambda text, *rest: real(text.replace(old, new) if old else text, *rest)
    inputs = torch.rand(100), torch.rand(100)
    settings = torch_settings.snapshot()[0]
    said, _ = verify_interpreted.serve(
        Call.read(k.launched, inputs, model=resolve("h100")), settings, 0.1
    )
    print([c["ok"] for c in said["comparisons"] if c["name"] == "result"])
"""
    said = child(program.format(helpers=str(Path(k.__file__).parent))).splitlines()
    assert said == ["[True]", "[False]", "[False]"]


SCRIPT = """
import torch, triton, triton.language as tl
import compile_lens

FACTOR = tl.constexpr(3)

@triton.jit
def scaled(x):
    return x * FACTOR

@triton.heuristics({"EVEN": lambda given: given["n"] % 128 == 0})
@triton.autotune(configs=[triton.Config({"BLOCK": 128})], key=["n"])
@triton.jit(do_not_specialize=["n"])
def kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(o_ptr + at, scaled(tl.load(x_ptr + at, mask=at < n)) + EVEN, mask=at < n)

def f(x):
    o = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, o, x.numel())
    return o.sum() + 1 if o[0] > 3 else o.sum() - 1

if __name__ == "__main__":
    x = torch.ones(256)
    found = compile_lens.capture(f, x, target="h100")
    print([n.target for c in found.compilations for n in c.graphs["dynamo"].calls][-1], found.target.queries)
    print("scaled(tl.load" in found.kernels[0].source, found.verify().ok)
"""


@pytest.mark.exhaustive
def test_kernels_of_a_script_cross_to_the_child(child: Callable[..., str]) -> None:
    assert child(SCRIPT).splitlines() == ["operator.add ()", "True True"]
