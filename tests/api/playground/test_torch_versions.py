"""Programs under another torch: the name of an environment selects it, and any other name is refused."""

from __future__ import annotations

import importlib.metadata
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from torch_environments import environment

from compile_lens import UsageError
from compile_lens.api.playground import captures as captures_module
from compile_lens.api.playground.capture_process import CaptureProcess, Limits
from compile_lens.api.playground.captures import Captures
from compile_lens.api.playground.torch_versions import TorchVersions
from compile_lens.child import launcher
from compile_lens.trials import environments
from compile_lens.trials.environments import MARK, Environment

from .test_session import FOREVER, SIN, stage_names

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the environments' Python is a script of sh")

HERE = importlib.metadata.version("torch")  # without the build suffix (+cu130) of package index wheels
LIMITS = Limits(seconds=4.0, memory=6 << 30)


def request(source: str, name: str, **settings: Any) -> dict[str, Any]:
    return {"program": {"source": source, "settings": {"torch": name, **settings}}, "file": "f.py"}


def ask(captures: Captures, source: str, name: str, **settings: Any) -> dict[str, Any]:
    return captures.ask(request(source, name, **settings), threading.Event())


# Environments -----------------------------------------------------------------------------------------------


def test_whole_environments_are_offered(tmp_path: Path) -> None:
    environment(tmp_path, "2.12", "2.12.1")
    environment(tmp_path, "2.9001", HERE)
    (environments.find("2.13", tmp_path).python.parent).mkdir(parents=True)
    gone = environment(tmp_path, "2.14", "2.14.0")
    gone.python.unlink()
    other = environment(tmp_path, "2.15", "2.15.9001").folder
    other.rename(other.with_name("torch-2.15-python3.99"))
    offered = TorchVersions(tmp_path).offered()
    assert offered == [
        ("", HERE),
        ("2.12", "2.12.1"),
        ("2.15-python3.99", "2.15.9001"),
        ("2.9001", f"{HERE} (2.9001)"),
    ]
    assert TorchVersions(tmp_path / "none").offered() == [("", HERE)]


@pytest.mark.parametrize(
    "name",
    [
        "2.13",
        "2.11.0",
        "../torch-2.12",
        "/usr/bin/python3",
        "torch-2.12",
        "2.12/bin/python",
        ".",
        "2.12 ",
        "\0",
    ],
)
def test_a_name_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    folder = environment(tmp_path, "2.12", "2.12.1").folder
    half = environments.find("2.13", tmp_path)
    half.python.parent.mkdir(parents=True)
    for one in (name, str(folder), str(folder / "bin" / "python")):
        with pytest.raises(UsageError) as caught:
            TorchVersions(tmp_path).check(one)
        words = str(caught.value)
        assert repr(one) in words and "'2.12'" in words and HERE in words
        assert words.endswith(f"to make it: compile-lens upgrade --torch {one}") == (
            one in ("2.13", "2.11.0")
        )
    TorchVersions(tmp_path).check("2.12")
    TorchVersions(tmp_path).check("")


# Processes --------------------------------------------------------------------------------------------------


class StandIn:
    """A process that records its requests, and answers like a child."""

    created: ClassVar[list[StandIn]] = []

    def __init__(self, folder: Path, limits: Limits, environment: Environment | None = None) -> None:
        self.environment, self.closed, self.ready = environment, False, True
        self.asked: list[dict[str, Any]] = []
        self.created.append(self)

    def ask(
        self,
        request: dict[str, Any],
        _: threading.Event,
        early: Callable[[dict[str, Any]], None] | None = None,
        **__: float,
    ) -> dict[str, Any]:
        self.asked.append(request)
        if self.environment is None:
            return {
                "traced" if request.get("kind") == "traced" else "parts": request.get("record"),
                "seconds": 1.0,
            }
        if early is not None:
            early({"record": "early", "kind": "traced", "torch": self.environment.torch})
        return {"record": "whole", "kind": "capture", "torch": self.environment.torch, "seconds": 2.0}

    def forget(self) -> None:
        self.closed = True

    close = forget


@pytest.fixture
def stand_ins(monkeypatch: pytest.MonkeyPatch) -> list[StandIn]:
    monkeypatch.setattr(StandIn, "created", [])
    monkeypatch.setattr(captures_module, "CaptureProcess", StandIn)
    return StandIn.created


def test_a_record_of_another_torch_becomes_a_page_here(tmp_path: Path, stand_ins: list[StandIn]) -> None:
    one = environment(tmp_path, "2.12", "2.12.1")
    captures = Captures(tmp_path, LIMITS, TorchVersions(tmp_path))
    reports: list[Any] = []
    answer = captures.ask(request(SIN, "2.12"), threading.Event(), reports.append)
    assert answer == {"parts": "whole", "torch": "2.12.1", "seconds": 3.0}
    assert reports == [{"traced": "early"}]
    assert [process.environment for process in stand_ins] == [None, one]
    assert [asked["record"] for asked in stand_ins[0].asked] == ["early", "whole"], "no program runs here"
    assert ask(captures, SIN, "")["parts"] is None and len(stand_ins) == 2
    assert "program" in stand_ins[0].asked[-1] and len(stand_ins[1].asked) == 1
    ask(captures, SIN, "2.12")
    assert len(stand_ins) == 2 and len(stand_ins[1].asked) == 2, "it stays for the next"
    captures.close()
    assert all(process.closed for process in stand_ins)


def test_no_process_is_started_for_a_name_that_is_none(tmp_path: Path, stand_ins: list[StandIn]) -> None:
    folder = environment(tmp_path, "2.12", "2.12.1").folder
    captures = Captures(tmp_path, LIMITS, TorchVersions(tmp_path))
    for name in ("2.11", str(folder / "bin" / "python"), "/bin/sh", "../x"):
        assert repr(name) in ask(captures, SIN, name)["error"]["message"]
    assert len(stand_ins) == 1 and stand_ins[0].asked == []


def test_an_environment_that_is_gone_or_another_one_ends_its_process(
    tmp_path: Path, stand_ins: list[StandIn]
) -> None:
    one = environment(tmp_path, "2.12", "2.12.1")
    captures = Captures(tmp_path, LIMITS, TorchVersions(tmp_path))
    ask(captures, SIN, "2.12")
    environment(tmp_path, "2.12", "2.12.2")
    assert ask(captures, SIN, "2.12")["torch"] == "2.12.2"
    assert [process.closed for process in stand_ins] == [False, True, False]
    (one.folder / MARK).unlink()
    assert "not on this machine" in ask(captures, SIN, "2.12")["error"]["message"]
    assert stand_ins[2].closed and len(stand_ins) == 3


@pytest.mark.parametrize("early", [False, True])
def test_what_ran_under_another_torch_than_was_chosen_has_no_page(
    tmp_path: Path, stand_ins: list[StandIn], monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    environment(tmp_path, "2.12", "2.12.1")
    captures = Captures(tmp_path, LIMITS, TorchVersions(tmp_path))
    ask(captures, SIN, "2.12")
    _, process = stand_ins
    answers = process.ask

    def other(*given: Any) -> dict[str, Any]:
        return {**answers(*given[:2]), "torch": "2.13.0+cpu"}

    def other_early(_: Any, __: Any, report: Any) -> dict[str, Any]:
        report({"record": "early", "kind": "traced", "torch": "2.13.0+cpu"})
        raise AssertionError("its report was taken")

    monkeypatch.setattr(process, "ask", other_early if early else other)
    reports: list[Any] = []
    answer = captures.ask(request(SIN, "2.12"), threading.Event(), reports.append if early else None)
    assert set(answer) == {"error"} and reports == []
    assert "has torch 2.12.1, but torch 2.13.0+cpu ran" in answer["error"]["message"]


def test_a_process_under_another_python_has_that_ones_folders(tmp_path: Path) -> None:
    """The process also gets the folder of this package."""
    facts = (
        "import json, os, sys; print(json.dumps([sys.argv[-2], os.read(int(sys.argv[-1]), 9999).decode()]))"
    )
    quoted = f"exec {sys.executable} -c '{facts}'"
    one = environment(tmp_path, "2.12", "2.12.1", quoted)
    process, life = launcher.start("some.module", os.environ, python=str(one.python))
    output = process.communicate(timeout=60)[0]
    os.close(life)
    module, known = json.loads(output)
    assert module == "some.module"
    assert json.loads(known)["path"] is None and json.loads(known)["files"] == {}


# With children ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captures]:
    """Captures with environments: one has this torch, one has another than it is marked with, and two are broken."""
    folder = tmp_path_factory.mktemp("play")
    environment(folder, "2.13", HERE)
    environment(folder, "2.12", "2.12.0")
    environment(folder, "2.14", "2.14.0", f"exec {sys.executable} -S")
    environment(folder, "2.15", "2.15.0", "exit 3;")
    captures = Captures(folder, LIMITS, TorchVersions(folder))
    yield captures
    captures.close()


def flat(parts: dict[str, str]) -> dict[str, str]:
    """The parts of a page, in which those of a comparison have the names of their columns."""
    columns = {name: json.loads(text) for name, text in parts.items() if name.startswith("column ")}
    own = {f"{column} {name}": text for column, inner in columns.items() for name, text in inner.items()}
    return {name: text for name, text in parts.items() if name not in columns} | own


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize("settings", [{}, {"target": "h100"}, {"beside": "h100"}, {"requires_grad": True}])
def test_the_page_is_that_of_the_same_program_here(captures: Captures, settings: dict[str, Any]) -> None:
    """The environment has this torch under another name, so every part is equal except for times."""
    own, other = ask(captures, SIN, "", **settings), ask(captures, SIN, "2.13", **settings)
    assert own.keys() == other.keys() and other["torch"] == HERE
    first, second = flat(own["parts"]), flat(other["parts"])
    assert first.keys() == second.keys() and len(first) > 4
    differ = {name for name, text in first.items() if second[name] != text}
    assert differ <= {name for name in first if name.endswith("core")}, "which have times"
    assert {**own, "parts": 0, "seconds": 0} == {**other, "parts": 0, "seconds": 0}


@pytest.mark.torch
@pytest.mark.full
def test_its_graphs_are_reported_before_they_are_lowered(captures: Captures) -> None:
    reports: list[Any] = []
    answer = captures.ask({**request(SIN, "2.13"), "early": True}, threading.Event(), reports.append)
    (report,) = reports
    early, whole = stage_names(report["traced"]), stage_names(answer["parts"])
    assert "inference" in early and early == {key: whole[key] for key in early}


@pytest.mark.torch
@pytest.mark.full
def test_its_page_is_one_file(captures: Captures) -> None:
    answer = captures.ask({**request(SIN, "2.13"), "page": True}, threading.Event())
    assert answer["page"].startswith("<!doctype html>") and "cpp_fused" in answer["page"]


@pytest.mark.exhaustive
@pytest.mark.torch
def test_its_errors_and_limits_are_as_here(captures: Captures) -> None:
    fault = ask(captures, SIN.replace("cos", "cosine"), "2.13")["error"]
    assert fault["line"] == 5 and "cosine" in fault["message"]
    assert ask(captures, FOREVER, "2.13") == {"stopped": "time"}
    assert captures.ready(request(SIN, "2.13")), "its process stays"
    unwanted = threading.Event()
    threading.Timer(0.5, unwanted.set).start()
    assert captures.ask(request(FOREVER, "2.13"), unwanted) == {"interrupted": True}
    huge = "import torch\ninputs = [torch.ones(1 << 34)]\n" + SIN
    assert "memory" in ask(captures, huge, "2.13")["error"]["message"].lower()
    assert "parts" in ask(captures, SIN, "2.13")


@pytest.mark.torch
@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("2.12", f"has torch 2.12.0, but torch {HERE} ran"),
        ("2.14", "No module named"),
        ("2.15", "with code 3"),
    ],
)
def test_a_broken_environment_is_said(captures: Captures, name: str, words: str) -> None:
    answer = ask(captures, SIN, name)
    assert set(answer) == {"error"} and words in answer["error"]["message"]
    if name != "2.12":
        assert (
            f"upgrade --remove {name}, then compile-lens upgrade --torch {name}" in answer["error"]["message"]
        )
    assert "parts" in ask(captures, SIN, ""), "this torch goes on"


@pytest.mark.exhaustive
@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="/proc says which processes there are")
def test_no_process_is_left(tmp_path: Path) -> None:
    environment(tmp_path, "2.13", HERE)
    captures = Captures(tmp_path, LIMITS, TorchVersions(tmp_path))
    for name in ("2.13", ""):
        assert "parts" in ask(captures, SIN, name)
    processes: list[CaptureProcess] = [captures._own, *captures._others.values()]
    pids = [process._child.pid for process in processes if process._child is not None]
    assert len(pids) == 2 and all(Path(f"/proc/{pid}").exists() for pid in pids)
    captures.close()
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert ask(captures, SIN, "2.13") == ask(captures, SIN, "") == {"interrupted": True}
