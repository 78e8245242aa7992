"""Bad input raises one of our errors, which names the value and the next step."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from full_text import full
from torch import nn

from compile_lens import CaptureError, LensError, UsageError, capture, compare

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize(
    "thing", [3, "sin", None, torch.ones(2), [double]], ids=["int", "str", "none", "tensor", "list"]
)
def test_not_callable(thing: Any) -> None:
    with pytest.raises(UsageError, match="call") as caught:
        capture(thing, torch.ones(2))
    assert type(thing).__name__ in str(caught.value) or repr(thing)[:10] in str(caught.value)


@pytest.mark.parametrize("args", [(), (torch.ones(2), torch.ones(2))], ids=["few", "many"])
def test_wrong_arity(args: tuple[Any, ...]) -> None:
    with pytest.raises(LensError, match="argument"):
        capture(double, *args)


def test_wrong_keyword() -> None:
    with pytest.raises(LensError, match="scale"):
        capture(double, torch.ones(2), kwargs={"scale": 2})


def test_kwargs_must_be_a_mapping() -> None:
    with pytest.raises(UsageError, match="kwargs"):
        capture(double, torch.ones(2), kwargs=[1])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"backward": "maybe"}, "maybe"),
        ({"backward": 3}, "backward"),
        ({"mode": "warp"}, "warp"),
        ({"options": {"no_such_option": 1}}, "no_such_option"),
        ({"mode": "max-autotune", "options": {"max_fusion_size": 1}}, "mode"),
        ({"dynamic": "yes"}, "dynamic='yes' is not one of None, True, False"),
        ({"dynamic": 1}, "dynamic=1"),
        ({"backward": 1}, "backward=1 is not one of 'auto', True, False"),
        ({"build": "yes"}, "build='yes' is not one of True, False"),
        ({"fullgraph": None}, "fullgraph=None is not one of True, False"),
        ({"fullgraph": 0}, "fullgraph=0"),
        ({"options": {"max_fuson_size": 3}}, "no option 'max_fuson_size'; did you mean 'max_fusion_size'"),
        ({"options": {"triton.cudagraph": 1}}, "did you mean 'triton.cudagraphs'"),
        ({"options": {"xyzzy": 3}}, "no option 'xyzzy'; torch._inductor.list_options"),
        ({"bild": True}, "capture has no argument 'bild' .given True.; did you mean 'build'"),
        ({"dim": 1}, r"'dim' \(given 1\); it has kwargs, calls, backward.*double\(x.*\) takes no 'dim'"),
    ],
)
def test_bad_option(options: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        capture(double, torch.ones(2), **options)


def test_options_that_torch_knows_under_either_name() -> None:
    for name in ("max_fusion_size", "max-fusion-size"):
        assert capture(double, torch.ones(2), options={name: 3}).kernels


@pytest.mark.parametrize("options", [{"bild": True}, {"build": "yes"}])
def test_a_comparison_refuses_what_a_capture_does(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"bild|build='yes'"):
        compare(double, torch.ones(2), targets=["cpu"], **options)


def test_the_named_backend_refuses_a_build_that_is_no_bool() -> None:
    with pytest.raises(Exception, match="build='yes' is not one of True, False"):
        torch.compile(double, backend="compile_lens", options={"build": "yes"})(torch.ones(2))


@pytest.mark.parametrize(("fn", "args"), [(double, ({},)), (double, ()), (3, ())], ids=["input", "few", "fn"])
def test_verify_names_what_it_cannot_call(fn: Any, args: tuple[Any, ...]) -> None:
    record = capture(double, torch.ones(2))
    with pytest.raises(UsageError, match=r"capture.verify\(f, x\)") as caught:
        record.verify(fn, *args)
    assert ("double raised TypeError" if fn is double else "got 3") in str(caught.value)


def test_device_that_is_not_there() -> None:
    device = "cuda" if not torch.cuda.is_available() else "xpu"

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.to(device) * 2

    with pytest.raises(CaptureError) as caught:
        capture(fn, torch.ones(2))
    # A torch built for that device requires its driver; another reports that it was not built for it.
    said = f"{caught.value} {caught.value.__cause__}".lower()
    assert device in said or "driver" in said


def test_module_on_another_device_than_its_input() -> None:
    with pytest.raises(
        UsageError, match=r"weight is on device 'meta', which holds no data: .*target=\"h100\""
    ):
        capture(nn.Linear(4, 4, device="meta"), torch.ones(2, 4))


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (double, (torch.ones(2),)),
        (torch.argmax, (torch.ones(2, requires_grad=True),)),
        (lambda x: x.detach() * 2, (torch.ones(2, requires_grad=True),)),
    ],
    ids=["no_leaf", "integers", "detached"],
)
def test_backward_true_without_anything_to_differentiate(fn: Any, args: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError, match="backward") as caught:
        capture(fn, *args, backward=True)
    assert "requires_grad" in str(caught.value)


def test_backward_false_skips_it() -> None:
    record = capture(double, torch.ones(2, requires_grad=True), backward=False)
    (compilation,) = record.compilations
    assert "forward" in compilation.graphs and "backward.code" not in {
        s.key for s in compilation.stages if s in compilation.code.values()
    }
    assert "backward" not in compilation.code
    assert record.missing == ()
    assert {m.stage: m.reason for m in record.not_applicable} == {"backward": "backward=False"}


def test_fullgraph_with_a_break() -> None:
    def fn(x: torch.Tensor) -> torch.Tensor:
        y = torch.sin(x)
        torch._dynamo.graph_break()
        return torch.cos(y)

    with pytest.raises(CaptureError, match="break") as caught:
        capture(fn, torch.ones(2), fullgraph=True)
    assert caught.value.capture.failure is not None
    assert caught.value.capture.failure.stage == "dynamo"


def test_fullgraph_without_a_break() -> None:
    assert capture(double, torch.ones(2), fullgraph=True).options.fullgraph is True


def test_error_message_names_the_function_and_the_stage() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise ValueError("no good")

    with pytest.raises(CaptureError) as caught:
        capture(broken, torch.ones(2))
    assert "broken" in str(caught.value) and "no good" in str(caught.value)
    assert caught.value.capture.function == "broken" or caught.value.capture.function.endswith(".broken")


def called_with_four(y: torch.Tensor) -> torch.Tensor:
    if y.shape[0] == 4:
        raise ValueError("four is bad")  # the line of raises
    return y


def raises(x: torch.Tensor) -> torch.Tensor:
    return called_with_four(x.sin())


def asks_for_nope(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.nope()  # type: ignore[operator]  # the line of asks_for_nope


def looks_up_too_far(x: torch.Tensor) -> torch.Tensor:
    rows = torch.arange(x.numel()).flip(0) * 3
    picked = x.gather(0, rows)  # the line of looks_up_too_far
    return picked.sum() + 1


def raises_after_a_break(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    z = x.sin() + 1
    if z.shape[0] != 5:  # torch 2.11 has an error of its own for a plain assert of sizes
        raise AssertionError("not five")  # the line of raises_after_a_break
    return z


def multiplies_what_does_not_fit(x: torch.Tensor) -> torch.Tensor:
    return x @ x.reshape(2, 2)  # the line of multiplies_what_does_not_fit


def breaks(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()  # the line of breaks
    return x.cos()


@pytest.mark.parametrize(
    ("fn", "inside", "said"),
    [
        (raises, "called_with_four", "\nValueError: four is bad\n"),
        (asks_for_nope, "asks_for_nope", "AttributeError: 'Tensor' object has no attribute 'nope'\n"),
        (raises_after_a_break, "raises_after_a_break", "AssertionError: not five\n"),
        (looks_up_too_far, "looks_up_too_far", "RuntimeError: index "),
        (
            multiplies_what_does_not_fit,
            "multiplies_what_does_not_fit",
            "\nTorchRuntimeError: ",
        ),
        (breaks, "breaks", "\nUnsupported: Call to `torch._dynamo.graph_break()`"),
    ],
)
def test_an_error_names_the_line_and_what_to_do(fn: Any, inside: str, said: str) -> None:
    with pytest.raises(CaptureError) as caught:
        capture(fn, torch.ones(4), fullgraph=fn is breaks)
    text, failure = str(caught.value), caught.value.capture.failure
    assert said in text and "(error.capture holds what was seen until then: " in text
    line = next(n for n, t in enumerate(open(__file__), 1) if f"# the line of {fn.__name__}\n" in t)
    first, code = text.split("\n")[:2]
    assert first.endswith(f" at {Path(__file__).name}:{line} in {inside}")
    assert f"# the line of {fn.__name__}" in code and str(Path(__file__).parent) not in text
    assert failure is not None and failure.frames[-1].line == line
    assert all(frame.file == __file__ for frame in failure.frames)
    by_dynamo = failure.stage == "dynamo"
    assert ("\n  hint: " in text) == ("\n  more: https://" in text) == by_dynamo
    assert failure.hint.partition("\n")[0] in text and failure.link in text


async def awaited(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def awaits(x: torch.Tensor) -> torch.Tensor:
    return asyncio.run(awaited(x)) + 1  # the line of awaits


def test_an_error_of_the_lowering_names_the_line_of_the_operator() -> None:
    from torch._inductor.lowering import lowerings

    def multiplies(x: torch.Tensor) -> torch.Tensor:
        y = x.sin() * 2
        return torch.cumsum(y, 0).cos()  # the line of the operator

    def refuses(*_: Any, **__: Any) -> Any:
        raise NotImplementedError("no loop for it")

    kept = lowerings[torch.ops.aten.cumsum.default]
    lowerings[torch.ops.aten.cumsum.default] = refuses
    try:
        with pytest.raises(CaptureError, match="no loop for it") as caught:
            capture(multiplies, torch.ones(4))
    finally:
        lowerings[torch.ops.aten.cumsum.default] = kept
    failure = caught.value.capture.failure
    line = next(n for n, t in enumerate(open(__file__), 1) if t.endswith("# the line of the operator\n"))
    assert failure is not None and failure.stage == "inference.loops"
    assert [(frame.file, frame.line) for frame in failure.frames] == [(__file__, line)]
    assert f" at {Path(__file__).name}:{line} in " in str(caught.value).split("\n")[0]


def test_a_coroutine_that_dynamo_ran_early_is_no_fault_of_the_function() -> None:
    x = torch.ones(4)
    assert torch.equal(awaits(x), x.sin() + 1)
    with pytest.raises(CaptureError, match="a coroutine was expected, got tensor") as caught:
        capture(awaits, x)
    text = str(caught.value)
    assert "hint: awaited: an async function" in text and "torch.compile does that, Python does not" in text
    aside = torch.compiler.disable(lambda x: asyncio.run(awaited(x)))  # the remedy in the hint
    assert capture(lambda x: aside(x) + 1, x).kernels


def test_partial_capture_can_be_shown() -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        raise ValueError("no <good>")

    with pytest.raises(CaptureError) as caught:
        capture(broken, torch.ones(2))
    assert "no <good>" in full(caught.value.capture)


def viewed(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return x.view(-1).sin()


@pytest.mark.full
@pytest.mark.parametrize("target", [None, "h100"])
def test_after_a_view_that_autograd_refuses_torch_dispatches_as_before(target: str | None) -> None:
    """Plain ``torch.compile`` raises the same, and leaves the thread so that ``torch.ones(3) + 1`` fails."""
    x = torch.rand(4, 4)
    for _ in range(2):
        with pytest.raises(CaptureError, match="Cannot set version_counter for inference tensor") as raised:
            capture(viewed, x, target=target)
        assert raised.value.capture.failure is not None
        assert raised.value.capture.failure.frames[-1].function == "viewed"
    assert not torch.is_inference_mode_enabled() and (torch.ones(3) + 1).tolist() == [2, 2, 2]
    assert capture(torch.sin, x, target=target).kernels


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(8, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.qkv(x).view(2, 5, 4, 8)  # the line of Block
        return y.sin()


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x)  # the line of Model


def test_the_first_lines_of_a_failure_are_the_programs() -> None:
    """They have the line, the expression under carets and the method with its class; torch's message follows."""
    with pytest.raises(CaptureError) as caught:
        capture(Model(), torch.rand(2, 5, 8))
    lines = open(__file__).read().split("\n")
    text = str(caught.value.capture)
    for words in (str(caught.value), text):
        at = words.index("in Block.forward")
        assert at < words.index("self.qkv(x).view") < words.index("TorchRuntimeError")
        assert str(Path(__file__).parent) not in words and " in forward" not in words
        marked = [
            code[carets.index("^") : carets.rindex("^") + 1]
            for code, carets in zip(words.split("\n"), words.split("\n")[1:])
            if carets.strip(" ^") == "" and "^" in carets
        ]
        # Python 3.10 has no columns.
        assert marked[:1] == ["self.qkv(x).view(2, 5, 4, 8)"][: sys.version_info >= (3, 11)]
    own = next(n for n, line in enumerate(lines, 1) if line.endswith("# the line of Model"))
    assert f"test_failures.py:{own} in Model.forward  return self.block(x)" in text
    assert text.count("\n") <= 25 and text.index("Model.forward") < text.index("torch says")
    brief = caught.value.capture.brief()
    assert "shape '[2, 5, 4, 8]' is invalid for input of size 240" in brief and "in Block.forward" in brief
