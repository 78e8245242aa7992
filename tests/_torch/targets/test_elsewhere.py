"""Captures for other devices leave this process unchanged, and send the child the objects of this process."""

from __future__ import annotations

import importlib.util
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
import torch
from state import unchanged
from suite import rand, wave

from compile_lens import CaptureError, ChildError, capture
from compile_lens.child import pickling, process, tensors
from compile_lens.devices.models import resolve
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.errors import UsageError
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

SCALE = 2.0


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * SCALE


def literals(found: Capture) -> list[Any]:
    graph = found.compilations[0].graphs["dynamo"]
    return [getattr(a, "value", a) for n in graph.calls for a in n.args if not hasattr(a, "name")]


@pytest.mark.full
@pytest.mark.parametrize("target", ["h100", "mps"])
@unchanged
def test_a_capture_in_the_child_changes_nothing_here(target: str) -> None:
    before = capture(wave, rand(50))
    found = capture(wave, rand(50), target=target)
    assert found.kernels[0].language in ("triton", "metal")
    after = capture(wave, rand(50))
    assert before.code == after.code and before.kernels == after.kernels


@pytest.mark.parametrize("target", ["h100", "mps", "cpu:avx2"])
@unchanged
def test_a_capture_in_this_process_puts_everything_back(target: str) -> None:
    before = capture(wave, rand(50))
    made, _ = perform(Call.read(wave, (rand(50),), model=resolve(target)))
    assert made.kernels
    after = capture(wave, rand(50))
    assert before.code == after.code and before.kernels == after.kernels


@pytest.mark.parametrize("where", ["torch._inductor.scheduler", "torch._inductor.graph"])
@unchanged
def test_also_when_it_fails_half_way(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def fails(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("injected")

    owner = importlib.import_module(where)
    cls, name = {
        "torch._inductor.scheduler": ("Scheduler", "codegen"),
        "torch._inductor.graph": ("GraphLowering", "run"),
    }[where]
    with monkeypatch.context() as patch:
        patch.setattr(getattr(owner, cls), name, fails)
        with pytest.raises(CaptureError, match="injected"):
            perform(Call.read(wave, (rand(50),), model=resolve("h100")))
    made, _ = perform(Call.read(wave, (rand(50),), model=resolve("h100")))
    assert made.kernels[0].language == "triton"


def test_another_thread_sees_the_real_device_meanwhile() -> None:
    seen: list[Any] = []

    def look() -> None:
        seen.append((torch.cuda.is_available(), torch.cuda.device_count()))

    def fn(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    real = torch.cuda.is_available(), torch.cuda.device_count()

    def interpret(
        text: str, lowering: Any
    ) -> Any:  # called inside Inductor, where the device appears to exist
        assert torch.cuda.is_available()
        other = threading.Thread(target=look)
        other.start()
        other.join()
        raise RuntimeError("enough")

    with pytest.raises(CaptureError, match="enough"):
        perform(Call.read(fn, (rand(5),), model=resolve("h100")), interpret=interpret)
    assert seen == [real] and (torch.cuda.is_available(), torch.cuda.device_count()) == real


@pytest.mark.full
def test_globals_of_a_module_cross_as_they_are_now(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 2.0 in literals(capture(scaled, rand(5), target="mps"))
    monkeypatch.setattr(f"{__name__}.SCALE", 7.5)
    assert 7.5 in literals(capture(scaled, rand(5), target="mps"))


def test_closures_and_lambdas_cross_by_value() -> None:
    factor = 3.25
    assert 3.25 in literals(capture(lambda x: x * factor, rand(5), target="mps"))

    class Local(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * factor

    found = capture(Local(), rand(5), target="mps")
    assert found.function == "Local" and 3.25 in literals(found)


def test_a_module_under_another_name_crosses_by_value(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(
        "import torch\n\nK = 4.5\n\n\ndef helper(x):\n    return x * K\n\n\ndef f(x):\n    return helper(x)\n"
    )
    spec = importlib.util.spec_from_file_location("not_its_name", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["not_its_name"] = module
    try:
        spec.loader.exec_module(module)
        assert 4.5 in literals(capture(module.f, rand(5), target="mps"))
        module.K = 6.5
        assert 6.5 in literals(capture(module.f, rand(5), target="mps"))
    finally:
        del sys.modules["not_its_name"]
    assert "not_its_name" not in cloudpickle.list_registry_pickle_by_value()


@pytest.mark.full
def test_settings_cross() -> None:
    with torch.no_grad():
        assert capture(wave, rand(5), target="mps").compilations[0].phases == ("inference",)
    torch.set_autocast_enabled("mps", True)
    try:
        found = capture(torch.nn.Linear(8, 8), rand(8, 8), target="mps")
    finally:
        torch.set_autocast_enabled("mps", False)
    assert any("float16" in str(n.outputs) for n in found.compilations[0].graphs["forward"].calls)
    with torch._inductor.config.patch(max_fusion_size=1):
        split = capture(lambda x: (x.sum(0), x.sum(0) * 2, x.amax(0)), rand(64, 64), target="mps")
    fused = capture(lambda x: (x.sum(0), x.sum(0) * 2, x.amax(0)), rand(64, 64), target="mps")
    assert len(split.kernels) > len(fused.kernels)


ENCODER = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
LOGGER = logging.getLogger("of_a_program")


def encoded(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return ENCODER(x)


def if_logged(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if LOGGER.isEnabledFor(logging.DEBUG) else x.cos()


def if_deep(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if sys.getrecursionlimit() > 5_000 else x.cos()


def if_swapped(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.__future__.get_swap_module_params_on_conversion() else x.cos()


def if_anomalies(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled() else x.cos()


def if_cached(x: torch.Tensor) -> torch.Tensor:
    return x.cos() if torch.is_autocast_cache_enabled() else x.sin()


@pytest.mark.parametrize(
    ("function", "read", "change", "value"),
    [
        pytest.param(
            encoded,
            torch.backends.mha.get_fastpath_enabled,
            torch.backends.mha.set_fastpath_enabled,
            False,
            marks=pytest.mark.full,
        ),
        (if_logged, lambda: LOGGER.level, LOGGER.setLevel, logging.DEBUG),
        (if_deep, sys.getrecursionlimit, sys.setrecursionlimit, 6_000),
        (
            if_swapped,
            torch.__future__.get_swap_module_params_on_conversion,
            torch.__future__.set_swap_module_params_on_conversion,
            True,
        ),
        (
            if_anomalies,
            torch.is_anomaly_enabled,
            lambda on: torch.set_anomaly_enabled(on, check_nan=not on),
            True,
        ),
        (if_cached, torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, False),
    ],
)
def test_switches_of_torch_and_python_cross(
    function: Callable[[torch.Tensor], torch.Tensor],
    read: Callable[[], Any],
    change: Callable[[Any], Any],
    value: Any,
) -> None:
    def operators() -> tuple[set[str], set[str]]:
        """Return the operators that plain PyTorch calls here, and those in the target's graphs."""
        x = rand(2, 3, 8)
        with torch.profiler.profile() as profiler:
            function(x)
        phases = ("forward", "inference")
        called = {event.name.removeprefix("aten::") for event in profiler.events()}
        compilations = capture(function, x, target="h100").compilations
        graphs = (graph for one in compilations for stage, graph in one.graphs.items() if stage in phases)
        return called, {node.target.split(".")[1] for graph in graphs for node in graph.calls}

    before = read()
    change(value)
    try:
        changed, crossed = operators()
    finally:
        change(before)
    plain, afterwards = operators()
    names = {"sin", "cos", "_transformer_encoder_layer_fwd"}
    assert changed & names != plain & names
    assert (crossed & names, afterwards & names) == (changed & names, plain & names)


def test_values_that_decide_cross() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if bool(x.sum() > 0) else x.cos()

    for sign, name in ((1.0, "sin"), (-1.0, "cos")):
        found = capture(branch, torch.full((10,), sign), target="mps")
        assert name in str([n.target for c in found.compilations for n in c.graphs["dynamo"].calls])


def test_large_tensors_cross_as_shapes_and_are_counted() -> None:
    large = torch.ones(tensors.VALUES_BUDGET // 4 + 1)
    found = capture(wave, large, target="mps")
    assert found.target is not None and "1 large tensor sent as shapes only" in found.target.transfer
    assert found.compilations[0].graphs["dynamo"].nodes[0].outputs[0].shape == tuple(large.shape)
    assert "shapes" not in (capture(wave, rand(5), target="mps").target or pytest.fail()).transfer


def test_memory_that_is_shared_stays_shared() -> None:
    whole = torch.arange(10.0)
    parcel = pickling.pack((whole[:4], whole[2:], whole))
    import pickle

    first, second, again = pickle.loads(parcel.data)[0:3]
    first[3] = -1.0
    assert second[1] == -1.0 and again[3] == -1.0 and whole[3] == 3.0
    weights = torch.nn.Linear(2, 2)
    twin = pickle.loads(pickling.pack(weights).data)
    assert isinstance(twin.weight, torch.nn.Parameter) and torch.equal(twin.weight, weights.weight)


def test_what_cannot_cross_is_refused_for_a_gpu_and_captured_here_for_a_cpu() -> None:
    lock = threading.Lock()

    def guarded(x: torch.Tensor) -> torch.Tensor:
        return x.sin() if not lock.locked() else x

    with pytest.raises(UsageError, match=r"child process .*lock.*picklable"):
        capture(guarded, rand(5), target="h100")
    found = capture(guarded, rand(5), target="cpu:avx2")
    assert found.target is not None and "in this process" in found.target.transfer
    assert "lock" in found.target.transfer and found.kernels[0].language == "cpp"


@pytest.mark.exhaustive
def test_a_module_that_only_loads_here_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "once_only.py").write_text(
        "import os\n\nassert os.environ.pop('ONCE_ONLY')\n\n\ndef f(x):\n    return x.sin()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("ONCE_ONLY", "1")
    process.close()  # a new child would inherit the variable, and must start without it
    module = importlib.import_module("once_only")
    with pytest.raises(UsageError, match=r"AssertionError|KeyError"):
        capture(module.f, rand(5), target="h100")


def test_what_the_function_prints_is_printed_here(capsys: pytest.CaptureFixture[str]) -> None:
    def talks(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        print("said in the child")
        return x.sin()

    capture(talks, rand(5), target="mps")
    assert "said in the child" in capsys.readouterr().out


def test_the_function_is_not_called_here() -> None:
    called: list[int] = []

    def counts(x: torch.Tensor) -> torch.Tensor:
        called.append(1)
        return x.sin()

    capture(counts, rand(5), target="mps")
    assert called == []


class Own(Exception):
    """An exception of the program."""


def test_its_exceptions_are_raised_here() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        x.sin()
        raise Own("mine")

    with pytest.raises(CaptureError) as raised:
        capture(fails, rand(5), target="mps")
    assert isinstance(raised.value.__cause__, Own) and "mine" in str(raised.value)
    with pytest.raises(UsageError, match="nothing in"):
        capture(lambda x: x.sin(), rand(5, grad=False), target="mps", backward=True)


@pytest.mark.exhaustive
def test_a_child_that_dies_is_replaced() -> None:
    def dies(x: torch.Tensor) -> torch.Tensor:
        os.kill(os.getpid(), signal.SIGKILL)
        return x

    mine = os.getpid()

    def careful(x: torch.Tensor) -> torch.Tensor:
        assert os.getpid() != mine
        return dies(x)

    with pytest.raises(ChildError, match="signal 9"):
        capture(torch.compiler.disable(careful), rand(5), target="mps")
    assert capture(wave, rand(5), target="mps").kernels


@pytest.mark.exhaustive
def test_the_child_is_kept_and_ends_with_its_owner(child: Any) -> None:
    said = child(
        """
import torch
import compile_lens
from compile_lens.child import process

def f(x):
    return x.sin() * k

k = 3.0
found = [compile_lens.capture(f, torch.rand(5), target=t) for t in ("h100", "mps", "h100")]
(kept,) = process._children.values()
print(len(found), kept._process.pid, "child process" in found[0].target.transfer)
print([getattr(a, "value", a) for n in found[0].compilations[0].graphs["dynamo"].calls for a in n.args])
"""
    )
    count, pid, crossed = said.splitlines()[0].split()
    assert (count, crossed) == ("3", "True") and "3.0" in said
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


def test_what_a_request_leaves_in_the_child_can_be_collected() -> None:
    def kept() -> int:
        return int(process.call("gc:get_freeze_count")[0])

    capture(wave, rand(5), target="mps")
    before = kept()
    capture(wave, rand(6), target="mps")
    assert kept() == before > 0


@pytest.mark.exhaustive
def test_a_capture_in_the_child_does_not_load_the_compiler_here(child: Any) -> None:
    said = child(
        """
import sys
import torch
import compile_lens

def f(x):
    return x.sin() * 2

found = compile_lens.capture(f, torch.rand(5), target="mps")
print(len(found.kernels), sorted(m for m in ("torch._dynamo", "torch._inductor") if m in sys.modules))
print(len(compile_lens.capture(f, torch.rand(5)).kernels))
"""
    )
    assert said.splitlines() == ["1 []", "1"]


@pytest.mark.exhaustive
def test_what_the_child_loads_is_what_a_plain_import_loads(child: Any) -> None:
    said = child(
        """
import gc
import inspect
real = inspect.getframeinfo
import os
from compile_lens.child import message, worker
os.environ[message.FIRST] = "compile_lens._torch.preload"
with worker.quick_imports():
    worker.load()
from torch._inductor.codegen.common import KernelTemplate
from torch._inductor.kernel import mm
from torch._library import utils
print(gc.isenabled(), inspect.getframeinfo is real)

def here():
    return utils.get_source(2)

plain = here()
with worker.quick_imports():
    quick = here()
print(plain.rpartition(":")[0] == quick.rpartition(":")[0], int(quick.split(":")[-1]) - int(plain.split(":")[-1]))

source = "{{ a }} of {{ b | indent_except_first(1) }}"
made = KernelTemplate._template_from_string(source)
later = mm.mm_template.template
print(type(made).__name__, type(later).__name__, bool(later), callable(later.render))
from compile_lens._torch import preload
with preload.late_templates():
    kept = KernelTemplate._template_from_string(source)
print(type(kept).__name__, kept.render(a=1, b="2") == made.render(a=1, b="2") == "1 of 2")
"""
    )
    assert said.splitlines() == [
        "True True",
        "True 2",
        "Template LateTemplate True True",
        "LateTemplate True",
    ]


OPERATORS = """
import torch
from torch._library import simple_registry
for name in sorted(torch.ops._dir):
    packets = {n: p for n, p in vars(getattr(torch.ops, name)).items() if hasattr(p, "overloads")}
    print(name, [(n, sorted(p._dir)) for n, p in sorted(packets.items())])
for name, entry in sorted(simple_registry.singleton._data.items()):
    print(name, getattr(entry.fake_impl.kernel, "source", None))
"""


@pytest.mark.exhaustive
def test_operators_are_registered_as_by_a_plain_import(child: Any) -> None:
    own = "import compile_lens._torch.preload\n"
    plain = child("import torch._dynamo, torch._inductor.compile_fx\n" + own + OPERATORS)
    assert "('sin', [" in plain and plain.rstrip().rpartition(":")[2].isdigit()
    assert (
        child(f"from compile_lens.child import worker\nwith worker.quick_imports():\n    {own}{OPERATORS}")
        == plain
    )


@pytest.mark.exhaustive
def test_the_child_begins_before_either_side_loads_what_it_need_not(child: Any) -> None:
    said = child(
        """
import sys
from compile_lens.child import worker
print("torch" in sys.modules)
import torch
import compile_lens
from compile_lens.child import launcher
real = launcher.start

def records():
    return sorted(name for name in sys.modules if name.startswith("compile_lens.record."))

def started(*given):
    print(records())
    return real(*given)

launcher.start = started
compile_lens.capture(torch.sin, torch.rand(5), target="mps")
print("compile_lens.record.codec" in records(), "compile_lens.record.program" in records())
"""
    )
    assert said.splitlines() == ["False", "['compile_lens.record.delegates']", "True False"]


class Refused(Exception):
    """Has other arguments than the ones that it stores, like many exceptions of programs."""

    def __init__(self, code: int, *, where: str) -> None:
        super().__init__(f"{code} at {where}")
        self.code, self.where = code, where


def refuses(x: torch.Tensor) -> torch.Tensor:
    try:
        raise LookupError("nothing is there")
    except LookupError as error:
        raise Refused(x.numel(), where="the gate") from error  # here


@pytest.mark.parametrize("target", [None, "mps", "h100"])
def test_an_exception_of_the_programs_own_is_what_it_was(target: str | None) -> None:
    with pytest.raises(CaptureError, match="Refused: 5 at the gate") as raised:
        capture(refuses, rand(5), target=target)
    cause = raised.value.__cause__
    assert isinstance(cause, Refused) and (cause.code, cause.where) == (5, "the gate")
    assert cause.args == ("5 at the gate",) and isinstance(cause.__cause__, LookupError)
    assert str(cause.__cause__) == "nothing is there"
    assert raised.value.capture.failure is not None
    assert raised.value.capture.failure.frames[-1].text.endswith("# here")
    assert "in refuses\n  raise Refused(" in str(raised.value)
    if target is not None and hasattr(cause, "__notes__"):  # Python 3.10 has none
        assert "In the child process" in cause.__notes__[0] and "# here" in cause.__notes__[0]


def test_an_exception_whose_class_is_only_there_has_its_words() -> None:
    def local(x: torch.Tensor) -> torch.Tensor:
        class Local(Exception):
            pass

        raise Local("of the function")

    with pytest.raises(CaptureError, match="Local: of the function") as raised:
        capture(local, rand(5), target="mps")
    assert repr(raised.value.__cause__) == "RuntimeError('Local: of the function')"


def test_a_backward_under_anomaly_detection_goes_to_a_target() -> None:
    w = rand(8, 4).requires_grad_()
    with torch.autograd.set_detect_anomaly(True):
        record = capture(lambda x: (x @ w).relu(), rand(3, 8), target="h100", backward=True)
    assert {kernel.phase for kernel in record.kernels} == {"forward", "backward"}
