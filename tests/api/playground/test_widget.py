"""The notebook widget without a browser: its inputs, its captures, and its messages for those that fail."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens import UsageError
from compile_lens.api.playground import widget
from compile_lens.api.playground.settings import Settings

pytest.importorskip("anywidget")

pytestmark = pytest.mark.torch


def f(x: torch.Tensor, weight: torch.Tensor, *rest: Any, scale: float = 2.0) -> torch.Tensor:
    return torch.sin(x) @ weight * scale


def inputs(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> widget.Inputs:
    return widget.Inputs.of(fn, args, kwargs)


def test_dimensions_of_one_size_move_together() -> None:
    found = inputs(f, torch.rand(8, 4), torch.rand(4, 1), [torch.rand(3)], scale=3.0)
    assert found.sizes == {8: "x[0]", 4: "x[1], weight[0]", 3: "rest.0[0]"}
    assert dict(found.offer()["sizes"]) == {"size8": "x[0]", "size4": "x[1], weight[0]", "size3": "rest.0[0]"}


def test_as_many_sliders_as_fit() -> None:
    assert [*inputs(f, torch.empty(2, 3, 4, 5, 6, 7, 8), torch.empty(9)).sizes] == [2, 3, 4, 5, 6, 7]


def test_an_input_of_another_size_has_values_of_the_one_that_was_given() -> None:
    given = torch.arange(6).reshape(2, 3), torch.ones(3, 2, requires_grad=True)
    (x, weight), named = inputs(f, *given).resized({"size2": 4, "size3": 1}, Settings())
    assert x.tolist() == [[0], [1], [2], [3]] and weight.shape == (1, 4)
    assert weight.requires_grad and weight.is_leaf and weight is not given[1] and named == {}
    (x, _), _ = inputs(f, *given).resized({"size3": 4}, Settings())
    assert x.tolist() == [[0, 1, 2, 3], [4, 5, 0, 1]], "begins again at its end"
    (x, _), _ = inputs(f, torch.empty(0, 3), torch.ones(3)).resized({"size3": 2}, Settings())
    assert x.shape == (0, 2)


def test_what_the_notebook_has_stays_as_it_is() -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2)

    x = torch.ones(4)
    made = widget.play(double, x)
    settings = json.loads(made.hello)["settings"]
    for size in (4, 6):
        made._answer({**settings, "size4": size, "requires_grad": False})
        assert made.capture.inputs == (f"x: float32[{size}] cpu",)
    assert x.tolist() == [1, 1, 1, 1] and not x.requires_grad


@pytest.mark.parametrize("size", [0, -1, 10**9, 1.5, True, "4", None])
def test_a_size_that_is_none_is_refused(size: object) -> None:
    with pytest.raises(UsageError, match="a size is a number from 1 to 4096"):
        inputs(f, torch.rand(4), torch.rand(4)).resized({"size4": size}, Settings())


def test_inputs_of_all_memory_are_refused_before_they_are_made() -> None:
    found = inputs(f, torch.rand(2, 2, 2), torch.rand(1))
    with pytest.raises(
        UsageError, match=r"inputs of these sizes have 256\.0 GiB, and a widget makes at most 1"
    ):
        found.resized({"size2": 4096}, Settings())


def test_each_answer_is_a_capture_or_says_why_not() -> None:
    def parts(x: torch.Tensor) -> torch.Tensor:
        return torch.cos(x.view(8, -1)).sum(-1)

    made = widget.play(parts, torch.rand(4, 2))
    sent: list[dict[str, Any]] = []
    made.send = sent.append
    settings = json.loads(made.hello)["settings"]
    for edit, more in enumerate(({}, {"size4": 3}, {"dtype": "complex1"}, {"size4": 8, "dynamic": True})):
        made._hear(made, {"view": "v", "edit": edit, "settings": {**settings, **more}}, [])
    assert [(one["view"], one["of"]) for one in sent] == [("v", 0), ("v", 1), ("v", 2), ("v", 3)]
    whole, shape, dtype, dynamic = sent
    assert json.loads(whole["parts"]["core"]) and all(whole["switches"].values())
    assert "shape '[8, -1]' is invalid for input of size 6" in shape["error"]["message"]
    assert "dtype='complex1' is not one of float64" in dtype["error"]["message"]
    assert "error" not in dynamic and made.capture.options.dynamic


def test_two_targets_are_a_comparison() -> None:
    made = widget.play(lambda x: torch.sin(x) + 1, torch.rand(4))
    settings = json.loads(made.hello)["settings"]
    answer = made._answer({**settings, "beside": "h100", "size4": 6})
    assert set(answer["parts"]) == {"comparison", "column 0", "column 1"} and "error" not in answer
    assert [*made.comparison.captures] == ["this machine", "h100"]
    assert made.capture is made.comparison.captures["this machine"]
    assert made.capture.inputs == ("x: float32[6] cpu",)
    answer = made._answer({**settings, "target": "mps", "beside": "h100", "dtype": "float64"})
    assert answer["error"]["message"].startswith("mps: ") and [*made.comparison.captures] == ["h100"]
    made._answer(settings)
    assert made.comparison is None and made.capture.inputs == ("x: float32[4] cpu",)


def test_a_call_that_does_not_fit_is_an_error_at_once() -> None:
    with pytest.raises(UsageError, match="play"):
        compile_lens.play(3, torch.rand(4))  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        compile_lens.play(f, torch.rand(4))


def test_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    widget._widget_class.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ModuleNotFoundError, match=r"play needs anywidget, .* pip install anywidget"):
        compile_lens.play(f, torch.rand(4), torch.rand(4))


def test_every_keyword_is_the_functions() -> None:
    assert [p.kind.name for p in inspect.signature(compile_lens.play).parameters.values()] == [
        "POSITIONAL_ONLY",
        "VAR_POSITIONAL",
        "VAR_KEYWORD",
    ]

    def g(x: torch.Tensor, target: float) -> torch.Tensor:
        return x * target

    made = widget.play(g, torch.rand(4), target=3.0)
    made._answer(json.loads(made.hello)["settings"])
    assert made.capture.inputs[1] == "target: 3.0"
