"""The code to copy for a switch: in another process with plain torch, it sets what it promises."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import Any

import pytest
import torch

from compile_lens import what_if
from compile_lens.trials.switches import SWITCHES, applied, merged

pytestmark = [pytest.mark.torch, pytest.mark.slow]

BY_NAME = {switch.name: switch for switch in SWITCHES}

PLAIN = """
import ast, json, sys
import torch


class Enough(Exception):
    pass


def f(x):
    return torch.tanh(x * 2).sum(0)


def scattered(i, x):
    return torch.zeros(100).scatter_reduce(0, i, x, "sum") + 1


model = torch.nn.Linear(4, 4)


def copied(text, more):
    # The lines before the call are run as they are, in a module that has imported torch and no more.
    tree = ast.parse(text)
    last = ast.Expression(tree.body.pop().value)
    scope = {"torch": torch, "f": f, "scattered": scattered, "model": model, **more}
    exec(compile(tree, "copied", "exec"), scope)
    return eval(compile(last, "copied", "eval"), scope)


def seen(text, names):
    compiled = copied(text, {"options": {"pattern_matcher": False}})
    from torch._dynamo.utils import counters
    from torch._functorch import config as functorch
    from torch._inductor import config as inductor
    from torch._inductor.graph import GraphLowering

    values, sizes = {}, []

    def run(self, *args):
        for name in names:
            place = functorch if hasattr(functorch, name) else inductor
            for part in name.split("."):
                place = getattr(place, part)
            values[name] = place
        sizes.append(any(not isinstance(s, int) for n in self.graph.nodes if n.op == "placeholder"
                         for s in getattr(n.meta.get("val"), "shape", ())))
        raise Enough

    whole, GraphLowering.run = GraphLowering.run, run
    try:
        compiled(torch.rand(8, 4, requires_grad=True))
    except torch._dynamo.exc.BackendCompilerFailed as error:
        assert "Enough" in str(error), error
    finally:
        GraphLowering.run = whole
        torch._dynamo.reset()
    return {"values": values, "any_size": sizes[0]}


def code(text):
    from torch._inductor.graph import GraphLowering

    texts = []

    def stop(self, wrapper, *args):
        texts.append(wrapper.value)
        raise Enough

    GraphLowering._compile_to_module_lines = stop
    try:
        copied(text, {})(torch.randint(0, 100, (1000,)), torch.rand(1000))
    except torch._dynamo.exc.BackendCompilerFailed as error:
        assert "Enough" in str(error), error
    return texts


given = json.load(sys.stdin)
print("RESULT" + json.dumps({"seen": [seen(*one) for one in given["seen"]], "code": list(map(code, given["code"]))}))
"""


def plain(seen: list[tuple[str, list[str]]], code: list[str]) -> Any:
    """Settings that plain torch, in a process without our code, has inside the compiles that the texts start."""
    done = subprocess.run(
        [sys.executable, "-c", PLAIN],
        input=json.dumps({"seen": seen, "code": code}),
        capture_output=True,
        text=True,
    )
    assert "RESULT" in done.stdout, done.stderr
    return json.loads(done.stdout.rpartition("RESULT")[2])


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * 2).sum(0)


def scattered(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return torch.zeros(100).scatter_reduce(0, i, x, "sum") + 1


@pytest.mark.exhaustive
def test_each_line_sets_what_it_says() -> None:
    asked: list[tuple[str, dict[str, Any], bool]] = []
    for switch in SWITCHES:
        if switch.compiling.keys() - inspect.signature(torch.compile).parameters.keys():
            continue  # this torch lacks the option
        wanted = {**switch.options, **switch.partitioner}
        asked.append((applied(f, switch, {}), wanted, switch.name == "dynamic"))
    pair = merged((BY_NAME["activation_memory_budget"], BY_NAME["combo_kernels"], BY_NAME["dynamic"]))
    asked.append((applied(f, pair, {}), {**pair.options, **pair.partitioner}, True))
    # In addition to the given options: values, one that is not a literal (a variable has it), and a module.
    own = {"options": {"max_fusion_size": 8, "cpp.simdlen": 256}, "fullgraph": True, "backward": False}
    beside = {"max_fusion_size": 8, "cpp.simdlen": 256, "combo_kernels": True}
    asked.append((applied(f, BY_NAME["combo_kernels"], own), beside, False))
    named = applied(f, BY_NAME["combo_kernels"], {"options": {"post_grad_custom_pre_pass": print}})
    assert "**options" in named and "print" not in named
    asked.append((named, {"pattern_matcher": False, "combo_kernels": True}, False))
    module = applied(torch.nn.Linear(4, 4), BY_NAME["combo_kernels"], {})
    assert module == 'torch.compile(model, options={"combo_kernels": True})'
    asked.append((module, {"combo_kernels": True}, False))
    found = plain([(text, list(wanted)) for text, wanted, _ in asked], [])["seen"]
    for (text, wanted, any_size), one in zip(asked, found, strict=True):
        assert one == {"values": wanted, "any_size": any_size}, text
        assert text.rpartition("\n")[2].startswith("torch.compile(")


def test_the_line_gives_the_code_of_the_trial() -> None:
    name = "cpp.fallback_scatter_reduce_sum"
    result = what_if(
        scattered, torch.randint(0, 100, (1000,)), torch.rand(1000), switches=[name], show_progress=False
    )
    (trial,) = result.helpful
    assert trial.to_apply == 'torch.compile(scattered, options={"cpp.fallback_scatter_reduce_sum": False})'
    with_it, without = plain([], [trial.to_apply, "torch.compile(scattered)"])["code"]
    assert trial.capture is not None
    for made, own in ((trial.capture, with_it), (result.base, without)):
        (code,) = own
        assert (
            code.partition("\n")[2] == made.code["inference"].partition("\n")[2]
        )  # the first line numbers the graph


@pytest.mark.parametrize(
    ("fn", "name"), [(lambda x: x, "f"), (torch.sin, "f"), (torch.nn.Linear(2, 2).forward, "f"), (f, "f")]
)
def test_what_has_no_name_of_its_own_gets_one(fn: Any, name: str) -> None:
    assert applied(fn, BY_NAME["dynamic"], {}) == f"torch.compile({name}, dynamic=True)"
    text = applied(fn, BY_NAME["dynamic"], {"mode": "max-autotune", "target": "h100"})
    assert text == f'torch.compile({name}, mode="max-autotune", dynamic=True)'
