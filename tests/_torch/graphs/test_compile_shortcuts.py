"""A capture skips the graph copies and texts that nobody reads; a program that requests them gets them."""

from __future__ import annotations

import io
import logging
from typing import Any

import pytest
import torch
from torch._dynamo.repro import after_aot
from torch._inductor import pattern_matcher

from compile_lens import capture
from compile_lens._torch.ground import hook_points

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

TRACE = logging.getLogger("torch.__trace")


def loss(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (torch.softmax(x @ y, -1).exp() ** 2).sum()


def leaves() -> tuple[torch.Tensor, ...]:
    return torch.rand(8, 8, requires_grad=True), torch.rand(8, 8, requires_grad=True)


class Calls:
    """Counts the calls of a torch function, which it replaces."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.count = 0
        real = getattr(owner, name)

        def counting(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, counting)


@pytest.mark.exhaustive
def test_no_graph_is_made_python_that_nobody_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = Calls(monkeypatch, torch.fx.GraphModule, "recompile")
    torch.compile(loss, backend=lambda gm, inputs: gm.forward)(*leaves())
    dynamos, compiled.count = compiled.count, 0
    assert dynamos
    capture(loss, *leaves())
    assert compiled.count <= dynamos
    before = compiled.count
    with torch._inductor.config.patch(force_disable_caches=True):
        torch._dynamo.reset()
        torch.compile(loss)(*leaves()).backward()
    assert compiled.count - before > dynamos  # plain torch recompiles more


def test_a_module_that_a_pass_makes_is_called_as_ever() -> None:
    found: list[tuple[torch.fx.GraphModule, str, float]] = []

    def makes(graph: torch.fx.Graph) -> None:
        own = torch.fx.Graph()
        own.output(own.call_function(torch.mul, (own.placeholder("x"), 3)))
        module = torch.fx.GraphModule(torch.nn.Module(), own)
        found.append((module, module.code, module(2)))
        own.find_nodes(op="call_function", target=torch.mul)[0].args = (
            own.find_nodes(op="placeholder")[0],
            5,
        )
        module.recompile()

    capture(loss, *leaves(), options={"pre_grad_custom_pass": makes})
    ((module, code, result),) = found
    assert "torch.mul(x, 3)" in code and result == 6
    assert module(2) == 10 and "torch.mul(x, 5)" in module.code and isinstance(module, torch.fx.GraphModule)


@pytest.mark.full
def test_graphs_are_copied_for_the_minifier_if_it_may_run(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = Calls(monkeypatch, torch.fx.Graph, "__deepcopy__")
    capture(loss, *leaves())
    assert copied.count == 0  # nor is the backward graph copied for a call that never comes
    capture(loss, *leaves(), build=True)
    without, copied.count = copied.count, 0
    with torch._dynamo.config.patch(repro_after="aot"):
        capture(loss, *leaves(), build=True)
    assert without and copied.count == without + 2  # forward and backward


@pytest.mark.full
def test_a_graph_is_written_as_a_program_for_torchs_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    written = Calls(monkeypatch, after_aot, "generate_compiler_repro_string")
    monkeypatch.setattr(TRACE, "handlers", [])  # pytest also reads the trace
    capture(loss, *leaves())
    assert written.count == 0
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    TRACE.addHandler(handler)
    try:
        capture(loss, *leaves())
    finally:
        TRACE.removeHandler(handler)
    programs = [r.payload for r in records if "fx_graph_runnable" in str(getattr(r, "metadata", ""))]
    assert len(programs) == 2 and all("run_repro(mod, load_args" in text for text in programs)


def test_a_pass_of_the_program_gets_the_text_that_it_asks_for() -> None:
    texts: list[str] = []

    def asks(graph: torch.fx.Graph) -> None:
        module = torch.fx.GraphModule(torch.nn.Module(), graph)
        inputs = [n.meta["example_value"] for n in graph.find_nodes(op="placeholder")]
        file = io.StringIO()
        after_aot.save_graph_repro(file, module, inputs, "inductor", save_dir=None)
        texts.append(file.getvalue())

    capture(loss, *leaves(), options={"pre_grad_custom_pass": asks})
    assert len(texts) == 1 and "run_repro(mod, load_args" in texts[0]


@pytest.mark.skipif(
    hook_points.find("torch._inductor.pattern_matcher:_should_debug_node") is None,
    reason="this torch has no such switch",
)
def test_the_pattern_matcher_tells_who_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Calls(monkeypatch, pattern_matcher, "_should_debug_node")
    capture(loss, *leaves())
    assert asked.count == 0
    monkeypatch.setenv("TORCHINDUCTOR_PATTERN_MATCH_DEBUG", "none_of_these_nodes")
    capture(loss, *leaves())
    assert asked.count > 10
