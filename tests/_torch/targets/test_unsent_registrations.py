"""Registrations with torch apply to a target where they have an effect, or are reported there and only there. The
oracle is plain torch in the same process: its graphs, its Inductor's node counts, and the functions that it calls."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import compile_lens

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SUBSTITUTED = """
import colorsys, threading, torch, compile_lens

lock = threading.Lock()

@torch.compiler.substitute_in_graph(colorsys.rgb_to_yiq)
def replaced(r, g, b):
    lock  # cannot be sent
    return (7, 7, 7)

def met(x):
    return x.sin() if colorsys.rgb_to_yiq(1, 1, 1)[0] > 4 else x.cos()

def passed_on(x):
    return x + sum(y for y, _, _ in map(colorsys.rgb_to_yiq, [1], [1], [1]))

def other(x):
    return x.exp() if colorsys.rgb_to_hls(1, 1, 1)[0] == 0 else x.tan()

def plain(fn):
    graphs = []
    torch.compile(fn, backend=lambda gm, _: (graphs.append(gm), gm.forward)[1])(torch.ones(8))
    return [n.name for gm in graphs for n in gm.graph.nodes if n.op.startswith("call")]

if __name__ == "__main__":
    for fn in (met, passed_on, other):
        found = compile_lens.capture(fn, torch.ones(8), target="h100")
        calls = [n.name for c in found.compilations for n in c.graphs["dynamo"].calls]
        print(fn.__name__, plain(fn), calls, [(q.kind, q.query) for q in found.target.queries])
"""


def test_a_substitute_that_cannot_be_sent_is_said_where_its_function_is_met(
    child: Callable[..., str],
) -> None:
    said = "[('not transferred', 'torch.compiler.substitute_in_graph(colorsys.rgb_to_yiq)')]"
    assert child(SUBSTITUTED).splitlines() == [
        f"met ['sin'] ['cos'] {said}",
        f"passed_on ['add'] ['add'] {said}",
        "other ['exp'] ['exp'] []",
    ]


LAID_OUT = """
import threading, torch, compile_lens
import torch._inductor.config as config, torch._inductor.lowering as lowering
from torch._inductor import metrics

lock, called = threading.Lock(), []

def operator(name, *tags):
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2
    made = torch.library.custom_op(f"laid::{name}", twice, mutates_args=(), tags=tags)
    made.register_fake(lambda x: torch.empty_like(x))
    return made

tagged, sent, unsent = operator("tagged", torch.Tag.needs_fixed_stride_order), operator("sent"), operator("unsent")

def unsendable(node, *args, **kwargs):
    with lock:
        called.append(str(node.target))
    return args, kwargs

def of_torch(x):
    return x.t().sin() + 1

def calls_tagged(x):
    return tagged(x) + 1

def calls_sent(x):
    return sent(x.t()) + 1

def calls_unsent(x):
    return unsent(x) + 1

def plain(fn):
    torch._dynamo.reset()
    metrics.reset()
    with config.patch(force_disable_caches=True):
        torch.compile(fn)(torch.ones(64, 32))
    return metrics.ir_nodes_pre_fusion

def seen(fn):
    found = compile_lens.capture(fn, torch.ones(64, 32), target="h100")
    return found.ledger.total.loops, [q.query.partition("[")[2] for q in found.target.queries]

if __name__ == "__main__":
    programs = of_torch, calls_tagged, calls_sent, calls_unsent
    before = {fn: (plain(fn), seen(fn)) for fn in programs}
    held = lowering._maybe_layout_constraints
    held[torch.ops.aten.sin.default] = held[torch.ops.laid.sent.default] = lowering.require_contiguous
    held[torch.ops.laid.tagged.default] = held[torch.ops.laid.unsent.default] = unsendable
    for fn in programs:
        called.clear()
        (nodes, (loops, _)), now, (more, said) = before[fn], plain(fn), seen(fn)
        print(fn.__name__, now - nodes, more - loops, called, said)
"""


@pytest.mark.exhaustive
def test_a_layout_that_a_program_asks_for_has_its_effect_or_is_said_where_it_would_have_one(
    child: Callable[..., str],
) -> None:
    """The figures are the additional nodes and loops with the layout constraint."""
    assert child(LAID_OUT).splitlines() == [
        "of_torch 1 1 [] []",
        "calls_tagged 0 0 [] []",
        "calls_sent 1 1 [] []",
        "calls_unsent 0 0 ['laid.unsent.default'] ['laid.unsent.default]']",
    ]


CONTAINERS = """
import dataclasses, threading, torch, compile_lens
import torch.utils._pytree as pytree

lock = threading.Lock()

class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

class Kept(Pair):
    pass

@dataclasses.dataclass
class Data:
    a: torch.Tensor
    b: torch.Tensor

def opened(pair):
    lock  # cannot be sent
    return [pair.a, pair.b], None

pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda v, _: Pair(*v))
pytree.register_dataclass(Data)
pytree.register_pytree_node(Kept, opened, lambda v, _: Kept(*v))

def given(pair):
    return [x.sin() for x in pytree.tree_leaves(pair)]

def made(x):
    return pytree.tree_map(lambda y: y.sin(), Pair(x, x + 1)).b

def of_data(x):
    return pytree.tree_leaves(Data(x, x))[1].tan()

def kept(x):
    return x + len(pytree.tree_leaves(Kept(x, x)))

def without(x):
    return x.exp()

def plain(fn, x):
    graphs = []
    torch.compile(fn, backend=lambda gm, _: (graphs.append(gm), gm.forward)[1])(x)
    return [n.name for gm in graphs for n in gm.graph.nodes if n.op.startswith("call")]

if __name__ == "__main__":
    x = torch.ones(8)
    for fn, arg in ((given, Pair(x, x)), (made, x), (of_data, x), (of_data, x), (kept, x), (without, x)):
        found = compile_lens.capture(fn, arg, target="h100")
        calls = [n.name for c in found.compilations for n in c.graphs["dynamo"].calls]
        print(fn.__name__, plain(fn, arg) == calls, [q.query for q in found.target.queries])
"""


@pytest.mark.exhaustive
def test_classes_that_a_script_registered_as_containers_are_ones_there(child: Callable[..., str]) -> None:
    """A class that cannot be sent is reported for the functions that use it, and only for these."""
    assert child(CONTAINERS).splitlines() == [
        "given True []",
        "made True []",
        "of_data True []",
        "of_data True []",
        "kept True ['torch.utils._pytree.register_pytree_node(Kept)']",
        "without True []",
    ]


OPERATOR = """
import torch

@torch.library.custom_op("met_twice::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return x * 2

op.register_fake(lambda x: torch.empty_like(x))
"""

LIBRARY = """
import torch

library = torch.library.Library("met_library", "DEF")
library.define("op(Tensor x) -> Tensor")
library.impl("op", lambda x: torch.empty_like(x), "Meta")
library.define("cell(Tensor x) -> Tensor")
library.impl("cell", lambda x: torch.empty_like(x), "Meta")
"""

USES = """
import torch, compile_lens, met_first, met_second, met_library

library = torch.library.Library("met_library", "IMPL")
library.impl("op", lambda x: x * 50, "CPU")
cell = "given = torch.library.Library('met_library', 'IMPL'); given.impl('cell', lambda x: x * 50, 'CPU')"
exec(compile(cell, "/tmp/ipykernel_1/2.py", "exec"))

def last(x):
    return branch(torch.ops.met_twice.op(x))

def first(x):
    return branch(met_first.op(x))

def kernel(x):
    return branch(torch.ops.met_library.op(x))

def kernel_of_a_cell(x):
    return branch(torch.ops.met_library.cell(x))

def branch(y):
    return y.sin() if y.sum() > 100 else y.cos()

def plain(fn, x):
    graphs = []
    torch.compile(fn, backend=lambda gm, _: (graphs.append(gm), gm.forward)[1])(x)
    return [n.name for gm in graphs for n in gm.graph.nodes if n.op.startswith("call")][-1]

if __name__ == "__main__":
    x = torch.ones(8)
    for fn in (last, first, kernel, kernel_of_a_cell):
        assert plain(fn, x) == "sin"
        try:
            found = compile_lens.capture(fn, x, target="h100")
        except compile_lens.UsageError as error:
            print(fn.__name__, str(error).partition(" to the child process (")[2].partition(" with ")[0])
        else:
            calls = [n.name for c in found.compilations for n in c.graphs["dynamo"].calls]
            print(fn.__name__, calls[-1], [(q.kind, q.query) for q in found.target.queries])
"""


@pytest.mark.exhaustive
def test_operators_of_two_places_are_those_that_torch_calls_or_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "met_first.py").write_text(OPERATOR)
    (tmp_path / "met_second.py").write_text(OPERATOR.replace("x * 2", "x * 50"))
    (tmp_path / "met_library.py").write_text(LIBRARY)
    (tmp_path / "uses.py").write_text(USES)
    made = [sys.executable, "-W", "ignore", "uses.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(compile_lens.__file__).parents[1])}
    ran = subprocess.run(made, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    assert ran.stdout.splitlines() == [
        "last sin []",
        "first cos [('not transferred', 'met_first.op')]",
        "kernel the program gave met_library::op a kernel for CPU",
        "kernel_of_a_cell the program gave met_library::cell a kernel for CPU",
    ], ran.stderr


OF_TWO = """
import torch

@torch.library.custom_op("met_in_turn::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor:
    return x * 2

op.register_fake(lambda x: torch.empty_like(x))

def calls(x):
    print(__name__, float(torch.ops.met_in_turn.op(x).sum()))
    return x.sin()
"""

IN_TURN = """
import torch, compile_lens, turn_first, turn_second
from compile_lens.child import process

def imports(x):
    import turn_first
    return torch.ops.met_in_turn.op(x)

if __name__ == "__main__":
    x = torch.ones(8)
    turn_first.calls(x)
    for fn in (turn_second.calls, turn_first.calls, turn_second.calls):
        compile_lens.capture(fn, x, target="h100")
    process.close()
    try:
        compile_lens.capture(imports, x, target="h100")
    except compile_lens.UsageError as error:
        print(error)
"""


@pytest.mark.exhaustive
def test_an_operator_of_two_modules_is_the_last_whichever_the_child_imported_first(tmp_path: Path) -> None:
    (tmp_path / "turn_first.py").write_text(OF_TWO)
    (tmp_path / "turn_second.py").write_text(OF_TWO.replace("x * 2", "x * 50"))
    (tmp_path / "in_turn.py").write_text(IN_TURN)
    made = [sys.executable, "-W", "ignore", "in_turn.py"]
    env = {**os.environ, "PYTHONPATH": str(Path(compile_lens.__file__).parents[1])}
    ran = subprocess.run(made, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    *called, said = ran.stdout.splitlines()
    assert called == [f"turn_{which} 400.0" for which in ("first", "second", "first", "second")], ran.stderr
    assert said.startswith(
        "the operator met_in_turn::op is registered by turn_second and by turn_first: torch calls"
    )
