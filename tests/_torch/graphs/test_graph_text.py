"""The text of each graph is the text that torch prints for it, though the capture prints it rarely."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch

from compile_lens import capture
from compile_lens._torch.graphs import fx, graph_text
from compile_lens._torch.ground import hooks

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def leaf() -> torch.Tensor:
    return torch.linspace(0, 1, 64).requires_grad_()


@pytest.mark.full
def test_every_text_is_what_torch_would_write_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch prints each graph again at the moment when the record takes its text."""
    pairs: list[tuple[str, str]] = []
    real = graph_text.readable

    def both(gm: torch.fx.GraphModule) -> str:
        text = real(gm)
        with hooks.compiling(None):
            pairs.append((text, gm.print_readable(**graph_text.TEXT_OPTIONS)))
        return text

    monkeypatch.setattr(fx, "readable", both)
    for dynamic in (False, True):
        capture(wave, leaf(), dynamic=dynamic)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32)
    capture(layer, torch.rand(4, 2, 16))
    assert len(pairs) >= 21
    assert [(ours, torchs) for ours, torchs in pairs if ours != torchs] == []


def test_a_graph_that_stays_as_it_is_is_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    real = torch.fx.GraphModule.print_readable

    def counting(self: Any, *args: Any, **options: Any) -> str:
        written.append(real(self, *args, **options))
        return written[-1]

    monkeypatch.setattr(torch.fx.GraphModule, "print_readable", counting)
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "handlers", [])  # pytest also reads the trace
    found = capture(wave, leaf()).compilations[0]
    # dynamo (and pre_grad), joint, forward and backward, each before and after its post-grad passes
    assert len(written) == 6
    assert found.graphs["dynamo"].text == found.graphs["pre_grad"].text
    assert {g.text for key, g in found.graphs.items() if "loops" not in key and "groups" not in key} == set(
        written
    )


def test_a_stack_trace_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    real = torch.fx.graph._parse_stack_trace

    def reading(trace: str, *args: Any, **options: Any) -> Any:
        if hooks.current() is not None:  # Dynamo prints its graph before the backend gets it
            read.append(trace)
        return real(trace, *args, **options)

    monkeypatch.setattr(torch.fx.graph, "_parse_stack_trace", reading)
    capture(wave, leaf())
    assert len(read) > 1 and len(read) == len(set(read))  # on 2.11 nodes of one line share a trace


def test_a_pass_of_the_program_is_in_the_text() -> None:
    def swap(graph: torch.fx.Graph) -> None:
        for node in graph.nodes:
            if node.target is torch.sin:
                node.target = torch.tanh

    found = capture(wave, leaf(), options={"pre_grad_custom_pass": swap}).compilations[0]
    assert "= torch.sin(" in found.graphs["dynamo"].text and "tanh" not in found.graphs["dynamo"].text
    assert "= torch.tanh(" in found.graphs["pre_grad"].text
    assert "= torch.sin(" not in found.graphs["pre_grad"].text


@pytest.mark.parametrize("reader", ["trace", "log"])
def test_who_reads_torchs_log_or_trace_gets_all_of_it(reader: str) -> None:
    said: list[str] = []

    class Reader(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(f"{getattr(record, 'metadata', '')} {record.getMessage()}")

    from torch._functorch._aot_autograd import graph_compile

    log = logging.getLogger("torch.__trace") if reader == "trace" else graph_compile.aot_graphs_log
    handler, level = Reader(), log.level
    log.addHandler(handler)
    log.setLevel(logging.DEBUG)
    try:
        capture(wave, leaf())
    finally:
        log.setLevel(level)
        log.removeHandler(handler)
    for name in (
        ("aot_joint_graph", "aot_forward_graph", "aot_backward_graph")
        if reader == "trace"
        else (
            "Forward graph",
            "Backward graph",
        )
    ):
        assert any(name in line for line in said), name
