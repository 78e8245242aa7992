"""Programs in the playground's child: the newest gets an answer, and no program outlives its limits."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compile_lens.api.playground.capture_process import Limits
from compile_lens.api.playground.captures import Captures
from compile_lens.api.playground.session import Session
from compile_lens.api.playground.torch_versions import TorchVersions
from compile_lens.engine.record import NOT_LOWERED_YET

pytestmark = [pytest.mark.torch, pytest.mark.full]

SIN = "import torch\n\n\ndef f(x):\n    return torch.sin(x) ** 2 + torch.cos(x) ** 2\n"
FOREVER = "while True:\n    pass\n"
SECOND = (
    "import sys\nagain = hasattr(sys, 'run_before')\nsys.run_before = True\nwhile again:\n    pass\n" + SIN
)
"""Endless when it is run for the second target."""
DEAF = "print(sum(range(10**13)))\n"
"""A loop in C, which hears no interrupt."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("play")


@pytest.fixture(scope="module")
def captures(folder: Path) -> Iterator[Captures]:
    versions = TorchVersions(folder / "environments")
    captures = Captures(folder, Limits(seconds=4.0, memory=6 << 30), versions)
    yield captures
    captures.close()


def ask(captures: Captures, source: str, file: str = "f.py", **settings: Any) -> dict[str, Any]:
    return captures.ask(
        {"program": {"source": source, "settings": settings}, "file": file}, threading.Event()
    )


def test_a_program_becomes_the_parts_of_its_page(captures: Captures) -> None:
    answer = ask(captures, SIN, rows=3, columns=5)
    assert answer["function"] == "f" and answer["inputs"] == ["x: float32[3, 5] cpu"]
    core = json.loads(answer["parts"]["core"])
    assert core["sources"][0]["code"]["text"] == SIN.partition("\n\n\n")[2]
    assert "sin" in answer["parts"]["index"]


def test_settings_reach_the_capture(captures: Captures) -> None:
    answer = ask(captures, SIN, dtype="float64", requires_grad=True, rows=4, columns=4)
    assert answer["inputs"] == ["x: float64[4, 4] cpu requires_grad"]
    assert "backward" in answer["parts"]["index"]
    target = ask(captures, SIN, target="h100")
    assert "triton" in json.dumps(target["parts"]) and "cuda" in json.dumps(target["parts"])
    switched = ask(captures, SIN, switches=["pattern_matcher"])
    assert "pattern_matcher" in switched["parts"]["core"]


def early_reports(captures: Captures, source: str, **settings: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the early reports of a program, and its answer."""
    reports: list[Any] = []
    request = {"program": {"source": source, "settings": settings}, "file": "f.py", "early": True}
    return reports, captures.ask(request, threading.Event(), reports.append)


def stage_names(parts: dict[str, str]) -> dict[str, list[str]]:
    """Names of the items of each stage, keyed by stage."""
    index = json.loads(parts["index"])
    return {
        stage["key"]: index["names"][stage["start"] : stage["start"] + stage["count"]]
        for stage in index["stages"]
    }


@pytest.mark.parametrize("target", ["", "h100"])
@pytest.mark.parametrize("grad", [False, True])
def test_graphs_are_reported_before_they_are_lowered(captures: Captures, target: str, grad: bool) -> None:
    settings = {"target": target, "requires_grad": grad}
    (report,), answer = early_reports(captures, SIN, **settings)
    early, whole = stage_names(report["traced"]), stage_names(answer["parts"])
    call = "forward" if grad else "inference"
    assert set(early) == {"python", "dynamo", "pre_grad", call, *(["joint"] if grad else [])}
    assert early == {key: whole[key] for key in early}
    operators = {"sin", "pow_1", "cos", "pow_2", "add"}  # counted by hand in the program
    assert operators <= set(early[call])
    stages = json.loads(report["traced"]["index"])["stages"]
    graphs = {stage["part"] for stage in stages if stage["key"] != "python"}
    assert set(report["traced"]) == {"core", "index", *graphs}, "what a page shows of it"
    assert 0 < answer["reported"] < answer["seconds"]
    core = json.loads(report["traced"]["core"])
    steps = [step for lane in core["compilations"][0]["lanes"] for step in lane["steps"]]
    lowered = [step for step in steps if "." in step["key"]]
    assert lowered and all(step["missing"] == NOT_LOWERED_YET and step["stage"] < 0 for step in lowered)


def test_the_collector_looks_through_little_after_each_answer(captures: Captures) -> None:
    """The count leaves out the 80,000 or so objects that torch creates for its first compile."""
    assert "parts" in ask(captures, SIN)
    answer = ask(captures, "import gc\nraise ValueError(len(gc.get_objects()))")
    assert int(answer["error"]["message"]) < 40_000


def test_captures_for_a_gpu_leave_no_graphs(captures: Captures) -> None:
    count = (
        "import gc, torch\nraise ValueError(sum(isinstance(one, torch.fx.Graph) for one in gc.get_objects()))"
    )
    left = []
    for _ in range(3):
        assert "parts" in ask(
            captures, "import torch\n\n\ndef f(x): return torch.softmax(x, -1)\n", target="h100"
        )
        left.append(ask(captures, count)["error"]["message"])
    assert left[1:] == left[:-1]


def test_a_report_changes_nothing_of_the_answer(captures: Captures) -> None:
    ask(captures, SIN)
    _, reported = early_reports(captures, SIN, requires_grad=True)
    plain = ask(captures, SIN, requires_grad=True)
    changed = {name for name, text in plain["parts"].items() if reported["parts"][name] != text}
    assert changed <= {"core"} and reported.keys() == plain.keys()
    first, second = (json.loads(one["parts"]["core"]) for one in (reported, plain))
    for core in (first, second):
        core["notes"] = [note for note in core["notes"] if not note.startswith("Time")]
    differ = {name for name in first if first[name] != second[name]}
    assert differ <= {"compilations", "created"}, "which have times"


def test_graph_breaks_are_in_an_early_report(captures: Captures) -> None:
    broken = SIN.replace("    return torch.sin(x)", "    y = torch.sin(x)\n    print(1)\n    return y")
    reports, answer = early_reports(captures, broken)
    first = json.loads(reports[0]["traced"]["core"])
    assert [one["line"] for one in first["breaks"]] == [6]
    assert len(first["compilations"]) == 1 < len(json.loads(answer["parts"]["core"])["compilations"])


def test_what_does_not_compile_was_reported_before(captures: Captures) -> None:
    refusing = (
        "def refuse(graph):\n    raise ValueError('not this one')\n\n\n"
        "torch._inductor.config.post_grad_custom_pre_pass = refuse\n"
    )
    reports, answer = early_reports(captures, f"import torch\n{refusing}{SIN}")
    assert len(reports) == 1 and "not this one" in answer["error"]["message"]


def test_no_report_that_nobody_wants(captures: Captures) -> None:
    reports: list[Any] = []
    request = {"program": {"source": SIN, "settings": {}}, "file": "f.py"}
    assert "parts" in captures.ask(request, threading.Event(), reports.append) and reports == []
    assert early_reports(captures, SIN, beside="h100")[0] == [], "a page of two targets waits for both"


def test_an_interrupt_in_a_report_waits_for_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a message would make the next answer unreadable."""
    from compile_lens.api.playground.worker import EarlyReports, Interrupt
    from compile_lens.views.live import page

    monkeypatch.setattr(page, "traced_parts", lambda capture: {})
    monkeypatch.setattr(Interrupt, "running", True)
    sent: list[Any] = []

    def send(data: dict[str, Any]) -> None:
        Interrupt.handle()
        sent.append(data)

    EarlyReports(send, False)(lambda: None)  # type: ignore[arg-type, return-value]
    assert sent == [{"traced": {}}] and Interrupt.running
    with pytest.raises(KeyboardInterrupt):
        Interrupt.handle()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_an_interrupted_program_started_is_waited_for(captures: Captures) -> None:
    """An interrupt may drop the process id before anything stores it, and then nothing else reaps the process."""
    ask(captures, "import os\nos.spawnlp(os.P_NOWAIT, 'true', 'true')\n" + SIN)
    assert "parts" in ask(captures, "import time\ntime.sleep(0.2)\n" + SIN)
    assert "parts" in ask(captures, SIN)
    assert captures._own._child is not None
    ended = []
    for children in Path(f"/proc/{captures._own._child.pid}/task").glob("*/children"):
        for pid in children.read_text().split():
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            ended += [pid] if state == "Z" else []
    assert ended == []


def test_two_targets_are_the_columns_of_a_comparison(captures: Captures) -> None:
    """Each column equals the capture for that target only."""
    both = ask(captures, SIN, target="cpu:avx2", beside="h100")
    assert "error" not in both and set(both["parts"]) == {"comparison", "column 0", "column 1"}
    shown = json.loads(both["parts"]["comparison"])
    assert [column["target"] for column in shown["columns"]] == ["cpu:avx2", "h100"]
    for number, target in enumerate(("cpu:avx2", "h100")):
        alone = ask(captures, SIN, target=target)["parts"]
        column = json.loads(both["parts"][f"column {number}"])
        assert column.keys() == alone.keys()
        assert {name for name in alone if column[name] != alone[name]} <= {"core"}, "that has the time"


def test_what_fails_for_one_target_stands_beside_the_other(captures: Captures) -> None:
    for settings, there in (({"beside": "mps"}, 0), ({"target": "mps", "beside": "h100"}, 1)):
        answer = ask(captures, SIN, dtype="float64", **settings)
        assert answer["error"]["message"].startswith("mps: ") and "float64" in answer["error"]["message"]
        assert set(answer["parts"]) == {"comparison", f"column {there}"}
        failures = [column["failure"] for column in json.loads(answer["parts"]["comparison"])["columns"]]
        assert "float64" in failures[1 - there] and failures[there] == ""
    torn = SIN.replace("torch.sin", "torch.sine")
    assert ask(captures, torn, beside="h100")["error"] == ask(captures, torn)["error"], (
        "the same for both: once"
    )
    neither = ask(captures, SIN, dtype="float64", target="mps", beside="no_such")
    assert "parts" not in neither
    first, second = neither["error"]["message"].splitlines()
    assert first.startswith("mps: ") and second.startswith("no_such: ")


def test_settings_of_one_program_do_not_reach_the_next(captures: Captures) -> None:
    changing = "import torch\ntorch.set_default_dtype(torch.float64)\ntorch.manual_seed(7)\n" + SIN
    assert ask(captures, changing)["inputs"] == ["x: float64[64, 128] cpu"]
    assert ask(captures, SIN)["inputs"] == ["x: float32[64, 128] cpu"]


@pytest.mark.parametrize(
    ("source", "type_", "line"),
    [
        ("def f(x):\n    return torch.sin(x\n", "SyntaxError", 2),
        ("import torch\n1 / 0\n", "ZeroDivisionError", 2),
        ("def g(x):\n    return x\n\n\ng(nothing)\n", "NameError", 5),
        ("import torch\n\n\ndef f(x):\n    y = x + 1\n    return y @ torch.rand(3, 3)\n", "RuntimeError", 6),
        ('def f(x):\n    raise ValueError("no")\n', "ValueError", 2),
        ("import sys\nsys.exit(3)\n", "SystemExit", 2),
        ("x = 1\n", "", 0),
        ("def f(*, x):\n    return x\n", "", 0),
        ("inputs = 3\n\n\ndef f(x):\n    return x\n", "", 0),
    ],
)
def test_an_error_is_at_its_line(captures: Captures, source: str, type_: str, line: int) -> None:
    error = ask(captures, source)["error"]
    assert (error["type"], error["line"]) == (type_, line) and error["message"]


def test_memory_has_a_limit(captures: Captures) -> None:
    error = ask(captures, "import torch\nx = torch.zeros(1 << 36)\n")["error"]
    assert error["line"] == 2 and "memory" in error["message"]


@pytest.mark.parametrize(
    "source", [FOREVER, f"{SIN}\n{FOREVER}", SIN.replace("    return", "    while True: x = x\n    return")]
)
@pytest.mark.cases(full=1)
def test_an_endless_program_is_stopped_and_the_child_stays(captures: Captures, source: str) -> None:
    ask(captures, SIN)
    child = captures._own._child
    assert ask(captures, source) == {"stopped": "time"}
    assert "parts" in ask(captures, SIN) and captures._own._child is child


@pytest.mark.exhaustive
def test_one_that_is_endless_for_the_second_target_is_stopped(captures: Captures) -> None:
    assert ask(captures, SECOND, beside="h100") == {"stopped": "time"}
    assert "parts" in ask(captures, SIN, beside="h100")


def test_a_program_that_hears_nothing_is_ended_with_its_child(captures: Captures) -> None:
    ask(captures, SIN)
    child = captures._own._child
    assert child is not None
    assert ask(captures, DEAF)["stopped"] == "time"
    assert not os.path.exists(f"/proc/{child.pid}") or sys.platform != "linux"
    assert "parts" in ask(captures, SIN) and captures._own._child is not child


def test_a_program_that_ends_the_child_is_said(captures: Captures) -> None:
    answer = ask(captures, "import os\nos._exit(3)\n")
    assert answer["stopped"] == "ended" and "code 3" in answer["message"]
    assert "parts" in ask(captures, SIN)


def test_modules_beside_the_file_are_read_anew(captures: Captures, tmp_path: Path) -> None:
    source = (
        "import torch\nfrom beside_it import size\n"
        "inputs = [torch.rand(size)]\n\n\ndef f(x):\n    return x + 1\n"
    )
    for size in (3, 4):
        (tmp_path / "beside_it.py").write_text(f"size = {size}\n{'#' * size}", encoding="utf-8")
        answer = ask(captures, source, str(tmp_path / "own.py"))
        assert answer["inputs"] == [f"x: float32[{size}] cpu"]
    assert [path.name for path in tmp_path.iterdir()] == ["beside_it.py"], "nothing is written there"


def test_the_page_as_one_file_is_that_of_the_program(captures: Captures) -> None:
    answer = captures.ask(
        {"program": {"source": SIN, "settings": {}}, "file": "f.py", "page": True}, threading.Event()
    )
    assert answer["page"].startswith("<!doctype html>") and "cpp_fused" in answer["page"]
    both = captures.ask(
        {"program": {"source": SIN, "settings": {"beside": "h100"}}, "file": "f.py", "page": True},
        threading.Event(),
    )
    assert "cpp_fused" in both["page"] and "triton_poi_fused" in both["page"]


@pytest.mark.parametrize(("endless", "settings"), [(FOREVER, {}), (SECOND, {"beside": "h100"})])
def test_only_the_newest_program_is_answered(
    captures: Captures, endless: str, settings: dict[str, Any]
) -> None:
    """Each keystroke cancels the previous capture: of twenty programs at once, the last gets a new answer."""

    async def typed() -> list[dict[str, Any]]:
        answers: list[dict[str, Any]] = []
        done = asyncio.Event()

        async def send(answer: dict[str, Any]) -> None:
            answers.append(answer)
            if answer["of"] == 20 and "starting" not in answer:
                done.set()

        session = Session(captures, "f.py", send)
        work = asyncio.create_task(session.run())
        for number in range(1, 21):
            source = endless if number < 20 else SIN
            session.want({"edit": number, "program": {"source": source, "settings": settings}})
            await asyncio.sleep(0.02)
        await asyncio.wait_for(done.wait(), 60)
        work.cancel()
        return answers

    ask(captures, SIN)
    answers = [answer for answer in asyncio.run(typed()) if "starting" not in answer]
    assert [answer["of"] for answer in answers] == [20] and "parts" in answers[0]


class ReportingCaptures:
    """Captures that report before they answer; ``newer`` makes the first one obsolete in between."""

    def __init__(self, newer: Callable[[], None]) -> None:
        self.newer = newer

    def ready(self, request: dict[str, Any]) -> bool:
        return True

    def ask(
        self, request: dict[str, Any], unwanted: threading.Event, early: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        if request["program"] == "replaced":
            self.newer()
            assert unwanted.wait(60)
        early({"traced": request["program"]})
        return {"seconds": 1.0}


@pytest.mark.parametrize("first", ["wanted", "replaced"])
def test_a_report_is_sent_before_its_answer_and_not_of_what_was_replaced(first: str) -> None:
    async def typed() -> list[dict[str, Any]]:
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        newest = {"edit": 2, "program": "newest"}

        def newer() -> None:
            loop.call_soon_threadsafe(session.want, newest)

        captures = ReportingCaptures(newer)
        session: Session = Session(captures, "f.py", answers.put)  # type: ignore[arg-type]
        work = asyncio.create_task(session.run())
        session.want({"edit": 1, "program": first})
        sent = [await asyncio.wait_for(answers.get(), 60) for _ in range(2)]
        work.cancel()
        return sent

    number, program = (1, "wanted") if first == "wanted" else (2, "newest")
    assert asyncio.run(typed()) == [{"of": number, "traced": program}, {"of": number, "seconds": 1.0}]


def test_only_changed_parts_are_sent(captures: Captures) -> None:
    async def typed(*sources: str) -> list[dict[str, Any]]:
        answers: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        session = Session(captures, "f.py", answers.put)
        work = asyncio.create_task(session.run())
        every = []
        for number, source in enumerate(sources):
            session.want({"edit": number, "program": {"source": source, "settings": {}}})
            answer = await asyncio.wait_for(answers.get(), 60)
            every.append(await answers.get() if "starting" in answer else answer)
        work.cancel()
        return every

    whole = {name: text for name, text in ask(captures, SIN.replace("cos", "tan"))["parts"].items()}
    first, second = asyncio.run(typed(SIN, SIN.replace("cos", "tan")))
    assert set(first["parts"]) == set(first["names"])
    assert 0 < len(second["parts"]) <= len(second["names"]) == len(whole)
    kept = {**first["parts"], **second["parts"]}
    assert {name: kept[name] for name in second["names"]}.keys() == whole.keys()


def test_what_is_written_is_in_the_folder(folder: Path, captures: Captures) -> None:
    source = "import os, tempfile\nopen('beside.txt', 'w').close()\nprint(tempfile.mkdtemp())\n" + SIN
    assert "parts" in ask(captures, source)
    work = folder / "work"
    assert (work / "beside.txt").exists() and any(path.name.startswith("tmp") for path in work.iterdir())


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which processes there are")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_is_left_when_it_ends(tmp_path: Path, number: int) -> None:
    """After an interrupt of the command, neither its child nor its folder is left."""
    pytest.importorskip("uvicorn")
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "compile_lens", "play", "--no-browser"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        # If the tests run in the background of a shell, they and their children ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert "http://127.0.0.1:" in process.stderr.readline()
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("utf-8").split()
    assert children
    process.send_signal(number)
    assert process.wait(30) == 0
    process.stderr.close()
    assert list(tmp_path.iterdir()) == []
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]
