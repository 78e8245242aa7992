"""Operators that a script registered are the same in the child process; the oracle is plain torch's own graphs.

Each program is a file that another process runs, since the child can import what a test module registers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import torch

from compile_lens._torch.operators import custom_operators

pytestmark = pytest.mark.torch

HEAD = """
import json, sys
import torch
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd

def plain(fn, *args):
    found = {}
    def keep(name):
        def compiler(gm, inputs):
            found[name] = sorted(str(n.target) for n in gm.graph.nodes if n.op == "call_function")
            return make_boxed_func(gm.forward)
        return compiler
    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=keep("forward"), bw_compiler=keep("backward"))
    torch.compile(fn, backend=backend)(*args).sum().backward()
    return found

def ours(fn, *args, target="h100"):
    import compile_lens
    (made,) = compile_lens.capture(fn, *args, target=target).compilations
    return {
        name: sorted(n.target for n in made.graphs[name].calls)
        for name in ("forward", "backward")
    }
"""

REGISTERED = """
FACTOR = 3.0

@torch.library.custom_op("of_a_script::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by * FACTOR

@scaled.register_kernel("cpu")
def on_cpu(x, by):
    return x * by * FACTOR + 0

@scaled.register_fake
def shape_of(x, by):
    return torch.empty_like(x)

def context(ctx, inputs, output):
    ctx.by = inputs[1]

def backward(ctx, grad):
    return scaled(grad, ctx.by), None  # the operator itself

scaled.register_autograd(backward, setup_context=context)
scaled.register_vmap(lambda info, dims, x, by: (scaled(x, by), dims[0]))

sin = torch.ops.aten.sin.default
cos = torch.ops.aten.cos
by_name = torch.ops.of_a_script

def held(x):
    return sin(scaled(x, 2.0)) + cos(x)

def named(x):
    return torch.ops.of_a_script.scaled(x, 2.0).sin()

def spelled(x):
    return getattr(by_name, "scaled")(x, 2.0).sin()

def batched(x):
    return torch.vmap(lambda row: scaled(row, 2.0))(x).sin()
"""


def printed(folder: Path, text: str) -> object:
    """Run a script, and return the JSON that it prints."""
    file = folder / "script.py"
    file.write_text(HEAD + text)
    ran = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=600, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    warned = [line for line in ran.stderr.splitlines() if "Warning" in line and "triton" not in line]
    assert not warned, ran.stderr  # newer versions of Triton warn about one of their own defaults
    return json.loads(ran.stdout)


@pytest.mark.exhaustive
def test_operators_of_a_script_are_registered_in_the_child_with_all_that_they_were_given(
    tmp_path: Path,
) -> None:
    found = printed(
        tmp_path,
        REGISTERED
        + """
x = torch.rand(4, 4, requires_grad=True)
print(json.dumps({
    fn.__name__: (plain(fn, x), ours(fn, x)) for fn in (held, named, spelled, batched)
}))
""",
    )
    assert isinstance(found, dict) and len(found) == 4
    for name, (theirs, mine) in found.items():
        assert theirs == mine, name
    assert sum("scaled" in target for target in found["held"][1]["backward"]) == 1


@pytest.mark.exhaustive
def test_a_cell_that_is_run_again_registers_anew(tmp_path: Path) -> None:
    found = printed(
        tmp_path,
        """
def cell(gradient):
    @torch.library.custom_op("of_a_script::again", mutates_args=())
    def again(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    again.register_fake(torch.empty_like)
    again.register_autograd(lambda ctx, grad: gradient(grad))
    return lambda x: again(x)

x = torch.rand(4, 4, requires_grad=True)
first, second = [], []
for gradient in (torch.sin, lambda grad: grad * 2):
    f = cell(gradient)
    first.append(plain(f, x)), second.append(ours(f, x))
print(json.dumps([first, second]))
""",
    )
    assert isinstance(found, list) and found[0] == found[1]
    assert [graphs["backward"] for graphs in found[1]] == [["aten.sin.default"], ["aten.mul.Tensor"]]


@pytest.mark.exhaustive
def test_values_and_casts_are_those_of_the_script(tmp_path: Path) -> None:
    """A branch on the result of the script's kernel goes the same way as here. Autocast casts its arguments."""
    found = printed(
        tmp_path,
        """
@torch.library.custom_op("of_a_script::counted", mutates_args=(), device_types="cpu")
def counted(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, 7)

@torch.library.custom_op("of_a_script::raised", mutates_args={"x"}, schema="(Tensor(a!) x) -> ()")
def raised(x):
    x.add_(1)

counted.register_fake(torch.empty_like)
counted.register_autocast("cuda", torch.float16)

def branches(x):
    y = counted(x)
    raised(y)
    return y.sin() if y.sum().item() == 32 else y.cos()

def casts(x):
    with torch.autocast("cuda", torch.bfloat16):
        return counted(x)

import compile_lens
torch._logging.set_logs(dynamo=40)
made = compile_lens.capture(branches, torch.rand(4), target="h100")
went = [n.target for c in made.compilations for n in c.graphs["dynamo"].calls]
(made,) = compile_lens.capture(casts, torch.rand(4), target="h100").compilations
cast = [n.target for n in made.graphs["inference"].calls]
print(json.dumps([went, cast]))
""",
    )
    assert isinstance(found, list)
    assert "sin" in found[0] and "cos" not in found[0], found
    assert found[1] == ["prims.convert_element_type.default", "of_a_script.counted.default"]


KERNEL = """
import triton, triton.language as tl

@triton.jit
def doubled(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

@torch.library.triton_op("of_a_script::twice", mutates_args={})
def twice(x: torch.Tensor) -> torch.Tensor:
    o = torch.empty_like(x)
    torch.library.wrap_triton(doubled)[(triton.cdiv(x.numel(), 128),)](x, o, x.numel(), B=128)
    return o

twice.register_autograd(lambda ctx, grad: twice(grad))

def f(x):
    return twice(x).sin()
"""


@pytest.mark.exhaustive
def test_an_operator_of_triton_kernels_is_looked_into(tmp_path: Path) -> None:
    """The result matches that of a kernel that the child imports (test_templates.py)."""
    pytest.importorskip("triton")
    found = printed(
        tmp_path,
        KERNEL
        + """
import compile_lens
made = compile_lens.capture(f, torch.rand(1024, requires_grad=True), target="h100")
print(json.dumps([[k.phase, k.name.rstrip("_0123456789"), "tl.load(x + i" in k.source] for k in made.kernels]))
""",
    )
    assert isinstance(found, list)
    assert [one for one in found if one[2]] == [["forward", "doubled", True], ["backward", "doubled", True]]
    assert len(found) == 4


@pytest.mark.full
def test_operators_of_a_module_come_with_it(tmp_path: Path) -> None:
    """Three ways: held by the function, found by an imported name only, and defined with a library in the module."""
    (tmp_path / "has_operators.py").write_text(
        "import torch\n\n\n@torch.library.custom_op('of_a_module::held', mutates_args=())\n"
        "def held(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n\n\n"
        "held.register_fake(torch.empty_like)\nheld.register_autograd(lambda ctx, grad: grad)\n"
        "library = torch.library.Library('of_a_library', 'DEF')\nlibrary.define('defined(Tensor x) -> Tensor')\n"
        "library.impl('defined', lambda x: x.sin(), 'CompositeImplicitAutograd')\n"
    )
    found = printed(
        tmp_path,
        """
from has_operators import held
def holds(x):
    return held(x) + 1
def names(x):
    return torch.ops.of_a_module.held(x) + 1
def defined(x):
    return torch.ops.of_a_library.defined(x) + 1
x = torch.rand(4, 4, requires_grad=True)
print(json.dumps([[plain(fn, x), ours(fn, x)] for fn in (defined, names, holds)]))
""",
    )
    assert isinstance(found, list)
    for theirs, mine in found:
        assert theirs == mine


@pytest.mark.full
@pytest.mark.parametrize("held", [False, True], ids=["named", "held"])
@pytest.mark.cases(full=1)
def test_what_cannot_be_read_is_refused_with_what_to_do(tmp_path: Path, held: bool) -> None:
    found = printed(
        tmp_path,
        f"""
library = torch.library.Library("of_a_script", "DEF")
library.define("defined(Tensor x) -> Tensor")
library.impl("defined", lambda x: x.sin(), "CompositeExplicitAutograd")
operator = torch.ops.of_a_script.defined.default
def named(x):
    return torch.ops.of_a_script.defined(x)
def held(x):
    return operator(x)
import compile_lens
try:
    compile_lens.capture({"held" if held else "named"}, torch.rand(4), target="h100")
except compile_lens.UsageError as error:
    print(json.dumps(str(error)))
""",
    )
    assert isinstance(found, str)
    assert "of_a_script::defined" in found and "Define it with torch.library.custom_op" in found
    assert "picklable" not in found


def test_an_operator_gets_back_the_effect_that_it_had() -> None:
    definition = MagicMock()
    definition._qualname = "written_here::sine"
    given = {
        "function": len,
        "kernels": {},
        "disabled": set(),
        "fake": None,
        "autograd": (None, None),
        "dispatch": {},
        "vmap": None,
        "autocast": {},
        "triton": None,
    }
    custom_operators._restore(definition, {**given, "effect": "ORDERED"})
    definition.register_effect.assert_called_once_with(torch._library.effects.EffectType.ORDERED)
