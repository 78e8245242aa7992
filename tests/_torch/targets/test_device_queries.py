"""Untraced Python that queries an absent device: the record has the line and the answer."""

from __future__ import annotations

import linecache
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from state import unchanged
from suite import rand
from torch._dynamo import trace_rules

from compile_lens import CaptureError, capture
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.record.device import DeviceQuery
from compile_lens.results.capture import Capture
from compile_lens.views.words import stamp

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]


def here(fn: Any, *args: Any, target: str = "h100") -> Capture:
    return perform(Call.read(fn, args, None, CaptureOptions(target=target), model=resolve(target)))[0]


def questions(found: Capture) -> list[tuple[str, str, str]]:
    """Queries with their answers, and the mark on the line that the record names."""
    assert found.target is not None
    told = []
    for one in found.target.queries:
        line = linecache.getline(one.frame.file, one.frame.line)
        assert one.frame.text == line.strip()
        told.append((one.query, one.answer, line.partition("# ")[2].strip()))
    return told


BY_DYNAMO = "torch.mps.is_available" in trace_rules.manual_torch_name_rule_map
"""Whether Dynamo asks for itself whether there is a Mac's GPU, instead of leaving that to Python."""
NONE_HERE = not torch.cuda.is_available()
ASKED_OF_PYTHON = pytest.mark.skipif(BY_DYNAMO, reason="this torch's Dynamo answers it while it traces")


def is_cuda(x: torch.Tensor) -> torch.Tensor:
    if x.is_cuda:
        return x.sin()
    return x.cos()


def count(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.cuda.device_count() > 0 else x.cos()  # here


def apple(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.backends.mps.is_available() else x.cos()  # here


def held(x: torch.Tensor) -> torch.Tensor:
    return x * torch.cuda.memory_allocated()  # here


def cudnn(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.backends.cudnn.is_available() else x.cos()  # here


def built(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.backends.cuda.is_built() else x.cos()  # here


@pytest.mark.skipif(torch.cuda.is_available(), reason="the answers are those of a machine without the device")
@pytest.mark.parametrize(
    ("fn", "asked", "answer"),
    [
        (held, "torch.cuda.memory_allocated()", "0"),
        (cudnn, "torch.backends.cudnn.is_available()", str(torch.version.cuda is not None)),
        (built, "torch.backends.cuda.is_built()", str(torch.version.cuda is not None)),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_what_dynamo_leaves_to_python(fn: Callable[..., Any], asked: str, answer: str) -> None:
    """Dynamo breaks the graph at these functions of torch."""
    found = here(fn, rand(4, 4))
    assert questions(found) == [(asked, answer, "here")] and len(found.breaks) == 1


def traced_calls(found: Capture) -> list[str]:
    graphs = [c.graphs["dynamo"] for c in found.compilations if "dynamo" in c.graphs]
    return [n.target for graph in graphs for n in graph.calls]


@pytest.mark.parametrize(("target", "taken"), [("h100", "cos"), ("mps", "sin")])
def test_what_dynamo_asks_of_torch_is_answered_as_there(target: str, taken: str) -> None:
    """Newer versions trace the query; older ones break the graph for it, and trace the resume function."""
    found = capture(apple, rand(4, 4), target=target)
    assert traced_calls(found) == [taken] and questions(found) == []
    assert len(found.breaks) == (0 if BY_DYNAMO else 1)


def test_there_is_one_device_where_a_break_asks_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oracle is the calls of plain torch with a count of one. Untraced Python gets an answer that is reported."""
    found = here(count, rand(4, 4))
    seen: list[str] = []

    def keep(gm: torch.fx.GraphModule, inputs: Any) -> Any:
        seen.extend(str(n.target) for n in gm.graph.nodes if n.op.startswith("call"))
        return gm.forward

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    torch._dynamo.reset()
    torch.compile(count, backend=keep)(rand(4, 4))
    monkeypatch.undo()
    torch._dynamo.reset()
    assert traced_calls(found) == seen == ["sin"] and questions(found) == [] and len(found.breaks) == 1
    untraced = here(lambda x: torch.compiler.disable(count)(x.sin()), rand(4, 4))
    assert questions(untraced) == ([("torch.cuda.device_count()", "0", "here")] if NONE_HERE else [])


def state(x: torch.Tensor) -> torch.Tensor:
    return x + torch.cuda.get_rng_state().numel()  # here


@pytest.mark.skipif(torch.cuda.is_available(), reason="the answer is the device's own")
def test_what_answers_for_the_device_is_nothing_that_is_compiled() -> None:
    """The device's driver fills 16 bytes, which is not an operator of the program."""
    found = here(state, rand(4, 4))
    assert traced_calls(found) == ["operator.add"] and len(found.breaks) == 1
    ((asked, _, mark),) = questions(found)
    assert (asked, mark) == ("torch.cuda.get_rng_state()", "here")


def architectures(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if "sm_90" in torch.cuda.get_arch_list() else x.cos()  # here


@pytest.mark.skipif(torch.version.cuda is not None, reason="the answer is that of a build without CUDA")
def test_what_dynamo_asks_of_the_build_while_it_traces() -> None:
    """Dynamo takes the answer as a constant, so no Python code is left that could be observed."""
    found = here(architectures, rand(4, 4))
    assert questions(found) == [("torch.cuda.get_arch_list()", "[]", "here")] and not found.breaks


def stream(x: torch.Tensor) -> torch.Tensor:
    torch.cuda.Stream()  # here
    return x.sin()


def event(x: torch.Tensor) -> torch.Tensor:
    torch.cuda.Event(enable_timing=True).record()  # here
    return x.sin()


def recorded(x: torch.Tensor) -> torch.Tensor:
    torch.cuda.CUDAGraph()  # here
    return x.sin()


def generated(x: torch.Tensor) -> torch.Tensor:
    return x + torch.rand(4, generator=torch.Generator(device="cuda"), device="cuda")  # here


def pinned(x: torch.Tensor) -> torch.Tensor:
    return x.cpu().pin_memory().sin()  # here


@pytest.mark.skipif(torch.version.cuda is not None, reason="what torch says without CUDA")
@pytest.mark.parametrize("fn", [stream, event, recorded, generated, pinned], ids=lambda f: f.__name__)
def test_what_only_the_driver_makes_is_refused_with_the_line(fn: Callable[..., Any]) -> None:
    with pytest.raises(CaptureError, match="the driver creates this") as raised:
        here(fn, rand(4, 4))
    assert raised.value.capture.failure is not None
    assert any("# here" in frame.text for frame in raised.value.capture.failure.frames)


def marked(x: torch.Tensor) -> torch.Tensor:
    torch.cuda.set_device(0)
    torch.cuda.nvtx.range_push("forward")
    y = x.sin()
    torch.cuda.nvtx.range_pop()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    return y.cos()


def test_what_changes_nothing_on_the_device_changes_nothing_here() -> None:
    before = dir(torch._C)
    found = here(marked, rand(4, 4))
    assert questions(found) == [] and dir(torch._C) == before
    graphs = [c.graphs["dynamo"] for c in found.compilations if "dynamo" in c.graphs]
    assert [n.target for g in graphs for n in g.calls if n.target in ("sin", "cos")] == ["sin", "cos"]
    with pytest.raises(CaptureError, match="invalid device ordinal"):
        here(lambda x: (torch.cuda.set_device(1), x.sin())[1], rand(4, 4))


@pytest.mark.skipif(torch.cuda.is_available(), reason="the answers are those of a machine without the device")
@ASKED_OF_PYTHON
def test_a_function_without_a_name_may_ask_torch_s_backends() -> None:
    """It is sent by value; torch.backends is a module with its own class."""
    found = capture(
        lambda x: x.sin() if torch.backends.mps.is_available() else x.cos(), rand(4, 4), target="h100"
    )
    assert traced_calls(found) == ["cos"] and questions(found) == []


def asks_around(x: torch.Tensor) -> torch.Tensor:
    y = inside(x.sin())
    return y.cos()


@torch.compiler.disable
def inside(x: torch.Tensor) -> torch.Tensor:
    return x if x.is_cuda or torch.cuda.is_available() else x + 1


@pytest.mark.full
def test_listening_changes_no_stage() -> None:
    """Graphs and breaks are those of a capture without a target."""

    def told(found: Capture) -> Any:
        graphs = [c.graphs["dynamo"] for c in found.compilations if "dynamo" in c.graphs]
        mine = [[(f.line, f.function) for f in b.frames if f.file == __file__] for b in found.breaks]
        ended = [(b.reason.splitlines()[0], frames) for b, frames in zip(found.breaks, mine)]
        return len(found.compilations), [[n.target for n in g.calls] for g in graphs], ended

    for fn in (asks_around, cudnn, held):
        plain = told(capture(fn, rand(4, 4)))
        assert told(here(fn, rand(4, 4))) == plain == told(here(fn, rand(4, 4)))


def passes_on(x: torch.Tensor) -> torch.Tensor:
    device = x.device
    more = torch.zeros(4, device=device) + torch.ones(4, device=x.device)
    return x + more.to(x.device)


def same_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y if x.device == y.device else x


def test_a_device_that_is_only_passed_on_is_no_question() -> None:
    assert questions(here(passes_on, rand(4, 4))) == []
    assert questions(here(lambda x: torch.relu(x) @ x, rand(4, 4))) == []
    assert questions(here(same_place, rand(4, 4), rand(4, 4))) == []


@torch.compiler.disable
def untraced(x: torch.Tensor) -> torch.Tensor:
    if x.is_cuda:  # a
        return x
    more = torch.zeros(4, device=x.device)
    if x.device.type == "cuda":  # b
        return x
    if torch.cuda.is_available():  # c
        return x
    with torch.autocast("cuda", dtype=torch.float16):  # d
        y = x @ x
    with torch.autocast("cuda", dtype=torch.float16, enabled=False):
        return x @ y + more


def broken(x: torch.Tensor) -> torch.Tensor:
    return untraced(x.sin()).cos()


def test_what_was_asked_where_dynamo_does_not_trace() -> None:
    found = here(broken, rand(4, 4))
    told = [(asked, mark) for asked, _, mark in questions(found)]
    assert told == [
        ("Tensor.is_cuda", "a"),
        ("Tensor.device", "b"),
        ("torch.cuda.is_available()", "c"),
        ("torch.autocast('cuda', torch.float16)", "d"),
    ]
    assert len(found.compilations) == 2 and len(found.breaks) == 1


TABLE = {torch.device("cpu"): 2.0, torch.device("cuda", 0): 3.0}


@torch.compiler.disable
def asked_otherwise(x: torch.Tensor) -> torch.Tensor:
    x = x.type(torch.float32) * TABLE[x.device]  # a
    if x.type() == "torch.cuda.FloatTensor":  # b
        return x
    return x if x.get_device() >= 0 else x + 1  # c


def test_a_device_is_also_asked_for_by_a_table_and_by_methods() -> None:
    found = here(lambda x: asked_otherwise(x.sin()).cos(), rand(4, 4))
    assert questions(found) == [
        ("Tensor.device", "'cpu'", "a"),
        ("Tensor.type()", "'torch.FloatTensor'", "b"),
        ("Tensor.get_device()", "-1", "c"),
    ]
    assert "type" not in vars(torch.Tensor) and "get_device" not in vars(torch.Tensor)


def by_module(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.get_device_module() is torch.cuda else x.cos()


@pytest.mark.skipif(torch.cuda.is_available(), reason="here the module is that of the device itself")
def test_the_accelerator_s_module_is_the_device_s_where_dynamo_traces() -> None:
    before = torch.get_device_module()  # torch caches its result
    found = here(by_module, rand(4, 4))
    assert [n.target for n in found.compilations[0].graphs["dynamo"].calls] == ["sin"]
    assert questions(found) == [] and torch.get_device_module() is before


@torch.compiler.disable
def mixed(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", dtype=torch.bfloat16):  # a
        y = x @ x
    with torch.autocast("cpu", dtype=torch.bfloat16):  # b
        z = x @ x
    with torch.autocast("cuda", enabled=False):
        return y + z


def test_regions_of_autocast_in_python() -> None:
    found = here(lambda x: mixed(x.sin()), rand(4, 4))
    (first, second) = questions(found)
    assert first[::2] == ("torch.autocast('cuda', torch.bfloat16)", "a") and "nothing was cast" in first[1]
    assert second[::2] == ("torch.autocast('cpu', torch.bfloat16)", "b") and "it cast" in second[1]
    assert found.target is not None and {q.kind for q in found.target.queries} == {"entered"}


@torch.autocast("cuda", dtype=torch.float16)  # a
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x @ x


@torch.autocast("cpu", dtype=torch.bfloat16)
def decorated_too(x: torch.Tensor) -> torch.Tensor:
    return x @ x


MADE = torch.autocast("cuda", dtype=torch.float16)


def made_before(x: torch.Tensor) -> torch.Tensor:
    with MADE:  # c
        return x @ x


@torch.compiler.disable
def made_before_untraced(x: torch.Tensor) -> torch.Tensor:
    with MADE:  # d
        return x @ x


@pytest.mark.skipif(torch.cuda.is_available(), reason="the answers are those of a machine without the device")
def test_regions_of_autocast_that_were_made_before() -> None:
    """Torch disabled them when they were created, which looks the same as a region that the program disabled."""
    for fn, mark in (
        (decorated, "a"),
        (made_before, "c"),
        (lambda x: made_before_untraced(x.sin()), "d"),
    ):
        (one,) = questions(here(fn, rand(4, 4)))
        assert one[::2] == ("torch.autocast('cuda', torch.float16)", mark)
        assert one[1].startswith("nothing was cast: it was off before the capture")
    assert questions(here(decorated_too, rand(4, 4))) == []  # a CPU region casts nothing there


def left_before_the_break(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", torch.float16):
        y = x @ x
    torch._dynamo.graph_break()
    return y.sin()


def left_after_the_break(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", torch.float16):  # e
        y = x @ x
        torch._dynamo.graph_break()
        z = y @ x
    return z.sin()


def test_a_region_around_a_break_is_told_of_what_broke_alone() -> None:
    """Operators that Dynamo traced in the region were cast, as the graphs show."""
    assert questions(here(left_before_the_break, rand(4, 4))) == []
    found = here(left_after_the_break, torch.rand(4, 4))
    (one,) = questions(found)
    assert one[::2] == ("torch.autocast('cuda', torch.float16)", "e")
    assert not one[1].startswith("nothing was cast") and "traced code was cast" in one[1]
    cast = [
        n.outputs[0].dtype
        for c in found.compilations
        for n in c.graphs["inference"].calls
        if "mm" in n.target
    ]
    assert cast == ["float16", "float16"]


@pytest.mark.skipif(torch.cuda.is_available(), reason="torch switches no scaler off")
def test_a_scaler_that_was_off_before_the_capture() -> None:
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(layer.parameters())
    with pytest.warns(UserWarning, match="Disabling"):
        scaler = torch.amp.GradScaler("cuda")

    def step(x: torch.Tensor) -> Any:
        scaler.scale(layer(x).sum()).backward()  # scale
        scaler.step(optimizer)  # step
        scaler.update()  # update
        return None

    found = here(step, torch.rand(4, 4))
    told = [one for one in questions(found) if "GradScaler" in one[0]]
    assert [mark for *_, mark in told] == ["scale", "step", "update"]
    assert "nothing was scaled: it was off before" in told[0][1] and "step was taken" in told[1][1]
    assert "_enabled" not in vars(torch.amp.GradScaler)


def test_a_scaler_that_is_made_in_the_function_is_on() -> None:
    """As on the device, branches of plain Python take this path, and it scales by its initial scale."""

    def scaled(x: torch.Tensor) -> torch.Tensor:
        scaler = torch.amp.GradScaler("cuda")
        y = scaler.scale(x)
        return y.sin() if scaler.is_enabled() and bool((y == x * 65536).all()) else y.cos()

    found = here(scaled, torch.ones(4))
    graphs = [c.graphs["dynamo"] for c in found.compilations if "dynamo" in c.graphs]
    calls = [n.target for graph in graphs for n in graph.calls]
    assert "sin" in calls and "cos" not in calls
    assert [one for one in questions(found) if "GradScaler" in one[0]] == []


def test_torch_warns_of_nothing_where_there_is_cuda() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        here(lambda x: mixed(x.sin()), rand(4, 4))
    assert not [one for one in heard if "Disabling autocast" in str(one.message)]


def test_a_generated_frame_is_no_line_of_the_program() -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.call_function(getattr, (x, "is_cpu"))
    graph.output(x)
    made = torch.fx.GraphModule({}, graph)
    generated = torch.compiler.disable(made.forward)
    assert questions(here(lambda x: generated(x.sin()), rand(4, 4))) == []


@torch.compiler.disable
def loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(3):
        if not x.is_cuda:  # here
            x = x.sin()
    return x


def test_a_question_is_told_once_and_counted() -> None:
    found = here(lambda x: loop(x.sin()), rand(4, 4))
    assert found.target is not None
    (one,) = found.target.queries
    assert one == DeviceQuery("Tensor.is_cuda", "False", one.frame, 3) and one.frame.function == "loop"


@pytest.mark.full
@unchanged
def test_nothing_is_left_behind() -> None:
    before = vars(torch.Tensor).keys() | set()
    for fn in (count, broken, apple, lambda x: mixed(x.sin())):
        here(fn, rand(4, 4))
    assert vars(torch.Tensor).keys() == before
    assert torch.cuda.is_available.__module__ == "torch.cuda" and not hasattr(
        torch.accelerator.is_available, "__wrapped__"
    )


def test_the_child_tells_them_too() -> None:
    found = capture(broken, rand(4, 4), target="mps")
    assert [mark for *_, mark in questions(found)] == [
        "a",
        "b",
        "c",
    ]  # and no region: a Mac has no CUDA
    assert Capture.from_json(found.to_json()) == found
    assert capture(is_cuda, rand(4, 4)).target is None


def test_what_a_mac_answers_too_is_not_said_to_differ() -> None:
    @torch.compiler.disable
    def asks(x: torch.Tensor) -> torch.Tensor:
        if x.is_cuda or torch.cuda.is_available():
            x = x + 1
        return x * 2 if x.is_mps else x

    def fn(x: torch.Tensor) -> torch.Tensor:
        return asks(x.sin())

    target = capture(fn, rand(4, 4), target="mps").target
    assert target is not None and len(target.queries) == 3
    (said,) = [s for s in stamp.of_target(target) if "queried" in s]
    assert "Tensor.is_mps" in said
    h100 = capture(fn, rand(4, 4), target="h100").target
    assert h100 is not None and sum("queried" in s for s in stamp.of_target(h100)) == 3


def of_cuda_alone(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x.sin() if torch.cuda.get_device_capability() >= (9, 0) else x.cos()


@pytest.mark.skipif(torch.accelerator.is_available(), reason="a device that is there answers by itself")
def test_an_answer_that_is_an_error_has_the_line_that_asked() -> None:
    """The frame in which compile_lens observes the query is not a line of the program."""
    with pytest.raises(CaptureError, match=r"CUDA|NVIDIA") as raised:
        perform(
            Call.read(
                of_cuda_alone, (torch.ones(4),), None, CaptureOptions(target="mps"), model=resolve("mps")
            )
        )
    failure = raised.value.capture.failure
    assert failure is not None
    assert "torch.cuda.get_device_capability()" in failure.frames[-1].text
