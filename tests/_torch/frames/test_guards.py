"""Guards and graph breaks of a capture, against those of plain ``torch.compile``."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters

from compile_lens import capture, watch
from compile_lens.views.words.outcome import graphs


def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.sin() * y


def torchs_tensor_guards(fn: Any, *args: Any) -> set[str]:
    """Torch's own guards on tensors, as torch prints them."""
    torch._dynamo.reset()
    torch.compile(fn, backend="eager")(*args)
    printed = "".join(
        str(entry.guard_manager)
        for entry in torch._C._dynamo.eval_frame._debug_get_cache_entry_list(fn.__code__)
    )
    return set(re.findall(r"TENSOR_MATCH: (check_tensor\(.*?stride=\[[^\]]*\]\))", printed))


class TestTensorGuards:
    @pytest.mark.parametrize(
        "args",
        [
            (torch.rand(4, 3), torch.rand(3)),
            (torch.rand(4, 3, dtype=torch.float64, requires_grad=True), torch.rand(4, 1).expand(4, 3)),
            (torch.rand(2, 2), torch.nn.Parameter(torch.rand(2))),
        ],
    )
    def test_say_what_torchs_own_guards_ask(self, args: tuple[torch.Tensor, ...]) -> None:
        theirs = torchs_tensor_guards(scaled, *args)
        ours = [g.text for g in capture(scaled, *args).guards if g.kind == "TENSOR_MATCH"]
        assert len(theirs) == len(ours) == 2
        assert {text.partition(" and ")[0] for text in ours} == theirs

    def test_a_size_that_may_be_any_is_told_as_none(self) -> None:
        x = torch.rand(4, 3)
        torch._dynamo.mark_dynamic(x, 0)
        (guard,) = [g for g in capture(torch.sin, x).guards if g.kind == "TENSOR_MATCH"]
        assert "size=[None, 3], stride=[3, 1]" in guard.text


def written() -> Any:
    """Return a function that has no file and prints."""
    made: dict[str, Any] = {}
    exec("def fn(x):\n    y = x.sin()\n    print('')\n    return y.cos()\n", made)
    return made["fn"]


def printing(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    print()
    return y.cos()


def calling(x: torch.Tensor) -> torch.Tensor:
    return printing(x.tan()) + 1


class TestBreaks:
    @pytest.mark.parametrize("fn", [written(), printing, calling], ids=["exec", "one", "callee"])
    def test_are_as_many_as_torch_counts(self, fn: Any) -> None:
        torch._dynamo.reset()
        counters.clear()
        torch.compile(fn, backend="eager")(torch.rand(4))
        theirs = sum(counters["graph_break"].values()), counters["stats"]["unique_graphs"]
        record = capture(fn, torch.rand(4))
        assert (len(record.breaks), graphs(record)) == theirs


class TestLatency:
    """Torch times guards after it has flushed the processor's caches, which takes as long as a small compile."""

    def calls(self, monkeypatch: pytest.MonkeyPatch, work: Any) -> list[float]:
        import torch._dynamo.guards as guards

        found: list[float] = []
        real = guards.profile_guard_manager

        def measured(*args: Any) -> float:
            found.append(real(*args))
            return found[-1]

        monkeypatch.setattr(guards, "profile_guard_manager", measured)
        work()
        return found

    def test_is_not_measured_for_a_capture(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.calls(monkeypatch, lambda: capture(scaled, torch.rand(3), torch.rand(3))) == []

    def test_is_measured_where_torchs_log_shows_it(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        import torch._dynamo.guards as guards

        with caplog.at_level(logging.DEBUG, guards.guards_log.name):
            found = self.calls(monkeypatch, lambda: capture(scaled, torch.rand(3), torch.rand(3)))
        assert len(found) == 1 and found[0] > 0

    def test_is_measured_for_what_the_program_compiles(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def work() -> None:
            with watch():
                torch.compile(lambda x: x.sin(), backend="eager")(torch.rand(3))

        assert len(self.calls(monkeypatch, work)) == 1
