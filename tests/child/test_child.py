"""The child process: its answers, its end, its imports, and its output. The tests use real processes and
signals, each with a time limit."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import compile_lens
from compile_lens import ChildError
from compile_lens.child import output, pickling, process

pytestmark = [pytest.mark.torch, pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")]

HERE = Path(__file__).resolve().parent
PLACES = [str(Path(compile_lens.__file__).parents[1]), str(HERE), str(HERE.parent / "helpers")]


@contextlib.contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raises in the block after this time, so that nothing hangs."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    with within(600):
        yield


def asked(name: str, *args: Any) -> Any:
    return process.call(f"in_child:{name}", *args)[0]


def runs(pid: int) -> bool:
    """Return True if a process still runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def gone(*pids: int, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(map(runs, pids)):
            return True
        time.sleep(0.05)
    return False


def program(text: str, folder: Path, *flags: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    file = folder / "program.py"
    places = f"import sys\nsys.path[1:1] = {PLACES!r}\n"
    file.write_text(places + textwrap.dedent(text))
    pipe = subprocess.PIPE
    command = [sys.executable, *flags, str(file)]
    return subprocess.Popen(command, cwd=cwd or folder, stdout=pipe, stderr=pipe, text=True)


def said(text: str, folder: Path, *flags: str, cwd: Path | None = None, seconds: float = 100) -> str:
    with program(text, folder, *flags, cwd=cwd) as running:
        try:
            out, err = running.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
    assert running.returncode == 0, err[-3000:]
    return out


# Answers belong to their request ----------------------------------------------------------------------------


@pytest.mark.full
def test_a_function_that_forks_leaves_one_server() -> None:
    mine, other = asked("fork_and_return")
    for i in range(8):
        assert asked("echo", i) == i
    assert asked("pid") == mine and gone(other)


@pytest.mark.parametrize("how", ["fork_and_raise", "fork_in_c"])
def test_a_fork_that_comes_back_ends(how: str, capfd: pytest.CaptureFixture[str]) -> None:
    mine, other = asked("pid"), asked(how)
    assert gone(other)
    assert [asked("echo", i) for i in range(4)] == [0, 1, 2, 3] and asked("pid") == mine
    assert ("of the fork alone" in capfd.readouterr().err) == (how == "fork_and_raise")


def one(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    os.fork()
    return x.sin()


@pytest.mark.full
def test_a_capture_of_a_function_that_forks_does_not_answer_for_others() -> None:
    def two(x: torch.Tensor) -> torch.Tensor:
        return x.cos()

    def three(x: torch.Tensor) -> torch.Tensor:
        return x.tan()

    x = torch.rand(5)
    found = [compile_lens.capture(fn, x, target="mps") for fn in (one, two, three, two, three)]
    assert [c.function.rpartition(".")[2] for c in found] == ["one", "two", "three", "two", "three"]
    for capture, name in zip(found, ("sin", "cos", "tan", "cos", "tan")):
        graphs = [c.graphs["dynamo"] for c in capture.compilations if "dynamo" in c.graphs]
        assert any(name in n.target for graph in graphs for n in graph.calls)


@pytest.mark.full
def test_a_reply_of_another_request_is_not_taken() -> None:
    before = asked("pid")
    with pytest.raises(ChildError, match="request other than"):
        asked("write_everywhere")
    assert gone(before) and asked("echo", "mine") == "mine"


@pytest.mark.exhaustive
def test_a_fork_of_the_program_has_a_child_of_its_own(tmp_path: Path) -> None:
    found = said(
        """
        import os
        from compile_lens.child import process

        def pids(n):
            return {process.call("in_child:pid")[0] for _ in range(n)}

        mine = pids(1)
        read, write = os.pipe()
        if os.fork() == 0:
            own = pids(5)
            process.close()
            os.write(write, " ".join(map(str, own)).encode())
            os._exit(0)
        again = pids(20)
        os.wait()
        other = set(map(int, os.read(read, 100).split()))
        print(len(other), again == mine == pids(1), other.isdisjoint(mine))
        """,
        tmp_path,
    )
    assert found.split() == ["1", "True", "True"]


def test_a_request_within_a_request_is_not_sent() -> None:
    class Asking:
        def write(self, text: str) -> None:
            with pytest.raises(pickling.CannotCross, match="already waiting"):
                asked("pid")

        def flush(self) -> None:
            pass

    with contextlib.redirect_stdout(Asking()):
        asked("talk")
    assert asked("echo", 1) == 1


# Exits, kills, stops ----------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_a_program_ends_while_a_daemon_thread_waits(tmp_path: Path) -> None:
    begun = time.monotonic()
    pid = said(
        """
        import threading, time
        from compile_lens.child import process

        print(process.call("in_child:pid")[0], flush=True)
        threading.Thread(target=process.call, args=("time:sleep", 1000), daemon=True).start()
        time.sleep(1)
        """,
        tmp_path,
    )
    assert time.monotonic() - begun < 500 and gone(int(pid))


@pytest.mark.full
def test_a_program_that_is_killed_takes_the_child_along(tmp_path: Path) -> None:
    text = """
        from compile_lens.child import process

        process.call("in_child:sleepers_then_work")
        """
    with program(text, tmp_path, "-u") as running:
        assert running.stdout is not None
        pids = list(map(int, running.stdout.readline().split()))
        assert len(pids) == 2 and all(map(runs, pids))
        running.kill()
    assert gone(*pids)


@pytest.mark.full
def test_also_a_child_that_is_stopped(tmp_path: Path) -> None:
    text = """
        from compile_lens.child import process

        print(process.call("in_child:pid")[0])
        process.call("in_child:stop")
        """
    with program(text, tmp_path, "-u") as running:
        assert running.stdout is not None
        pid = int(running.stdout.readline())
        time.sleep(0.5)
        running.kill()
    assert gone(pid)


@pytest.mark.full
def test_a_child_that_is_stopped_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compile_lens.child.child.STOPPED_SECONDS", 1.0)
    before = asked("pid")
    begun = time.monotonic()
    with pytest.raises(ChildError, match="stopped by a signal"):
        asked("stop")
    assert time.monotonic() - begun < 500 and gone(before) and asked("echo", 1) == 1


@pytest.mark.full
def test_a_child_that_is_stopped_for_a_while_goes_on() -> None:
    before = asked("pid")
    assert asked("stop", 1.5) == "went on" and asked("pid") == before


@pytest.mark.full
@pytest.mark.parametrize("how", ["stop", "sleep"])
@pytest.mark.cases(full=1)
def test_an_interrupt_ends_the_wait(how: str) -> None:
    before = asked("pid")

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    handler = signal.signal(signal.SIGUSR1, interrupt)
    mine = os.getpid()
    sender = subprocess.Popen(["sh", "-c", f"sleep 1; kill -USR1 {mine}"])
    begun = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            asked("stop") if how == "stop" else process.call("time:sleep", 1000)
    finally:
        sender.wait()
        signal.signal(signal.SIGUSR1, handler)
    assert time.monotonic() - begun < 500 and gone(before) and asked("echo", 1) == 1


def test_what_a_killed_child_started_ends_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildError, match="signal 9"):
        asked("sleeper_then_death")
    (pid,) = map(int, capsys.readouterr().out.split())
    assert gone(pid)


@pytest.mark.full
def test_what_a_child_started_ends_when_it_is_closed() -> None:
    started = [asked("pid"), asked("sleeper", False)]
    # Without /proc a process in its own session cannot be found.
    started += [asked("sleeper", True)] if Path("/proc/self/stat").exists() else []
    assert all(map(runs, started))
    process.close()
    assert gone(*started)


# Files and flags --------------------------------------------------------------------------------------------

HIDING = (
    "abc bisect calendar cProfile colorsys copy ctypes dataclasses inspect json linecache logging operator pickle "
    "pprint profile pstats queue random secrets select signal statistics string struct tempfile timeit token "
    "tokenize traceback types typing uuid weakref"
).split()


@pytest.mark.exhaustive
@pytest.mark.parametrize("first", ["cwd", "empty", "folder"])
def test_files_that_are_called_as_python_s_modules_are_not_run(first: str, tmp_path: Path) -> None:
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    for name in HIDING:
        (hiding / f"{name}.py").write_text("print('RUN:', __name__)\nraise ImportError('not the real one')\n")
    insert = {"cwd": "", "empty": "sys.path.insert(0, '')", "folder": f"sys.path.insert(0, {str(hiding)!r})"}
    found = said(
        f"""
        import tokenize, torch, compile_lens

        def f(x):
            return x.sin().sum()

        {insert[first]}
        found = compile_lens.capture(f, torch.rand(5), target="h100", build=True)
        (kernel,) = found.kernels
        print(found.target.transfer.split(";")[0], kernel.machine is not None or kernel.machine_note)
        """,
        tmp_path,
        cwd=hiding,
    )
    assert found.startswith("in a child process") and "RUN" not in found


@pytest.mark.exhaustive
def test_a_module_of_the_program_is_the_program_s_in_the_child(tmp_path: Path) -> None:
    (tmp_path / "tabnanny.py").write_text("K = 4.5\n\n\ndef f(x):\n    return x * K\n")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "helper.py").write_text("raise ImportError('the other one')\n")
    (tmp_path / "helper.py").write_text("import tabnanny\n\n\ndef g(x):\n    return tabnanny.f(x) + 0.25\n")
    found = said(
        f"""
        import torch, compile_lens, helper

        sys.path.insert(0, {str(elsewhere)!r})
        found = compile_lens.capture(helper.g, torch.rand(5), target="mps")
        print(found.target.transfer.split(";")[0])
        print([n.args for n in found.compilations[0].graphs["dynamo"].calls])
        """,
        tmp_path,
    )
    assert found.startswith("in a child process") and "4.5" in found and "0.25" in found


@pytest.mark.parametrize(
    "flags",
    [
        ["-O", "-B", "-W", "ignore::DeprecationWarning", "-X", "faulthandler"],
        ["-OO", "-X", "dev", "-s"],
        ["-E", "-X", "utf8", "-b", "-W", "error::BytesWarning"],
        ["-I", "-W", "error"],
    ],
    ids=" ".join,
)
def test_the_interpreter_s_flags_cross(flags: list[str], tmp_path: Path) -> None:
    found = said(
        """
        import json, os, in_child
        from compile_lens.child import launcher, lifetime

        read, write = os.pipe()
        process, held = launcher.start("in_child", os.environ, (write,))
        os.close(write)
        with open(read) as pipe:
            there = json.load(pipe)
        lifetime.end(process)
        here = in_child.interpreter()
        flags = here["flags"], there["flags"]
        print({k: (flags[0][k], flags[1][k]) for k in flags[0] if flags[0][k] != flags[1][k]})
        print(here["options"] == there["options"], set(here["warnings"]) == set(there["warnings"]))
        """,
        tmp_path,
        *flags,
    )
    assert found.splitlines() == ["{}", "True True"]


@pytest.mark.slow  # in its first run Python compiles all of torch
@pytest.mark.exhaustive
def test_without_assertions_the_same_program_is_captured(tmp_path: Path) -> None:
    (tmp_path / "checked.py").write_text(
        "def f(x):\n    assert (x.exp() > 0).all() is not None\n    return x.sin() if __debug__ else x.cos()\n"
    )
    found = said(
        """
        import torch, compile_lens, checked

        for target in (None, "mps"):
            found = compile_lens.capture(checked.f, torch.rand(5), target=target)
            print([n.target for n in found.compilations[0].graphs["dynamo"].calls])
        """,
        tmp_path,
        "-O",
        seconds=500,
    )
    here, there = found.splitlines()
    assert here == there and "cos" in here and "exp" not in here


@pytest.mark.exhaustive
def test_a_warning_that_is_an_error_does_not_stop_the_child(tmp_path: Path) -> None:
    text = """
        from compile_lens.child import process

        print(process.call("in_child:echo", 7)[0])
        """
    assert said(text, tmp_path, "-W", "error") == "7\n"


@pytest.mark.full
def test_arguments_and_variables_are_those_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    asked("pid")
    monkeypatch.setenv("OF_THE_TEST", "set late")
    monkeypatch.setattr(sys, "argv", ["program", "--late"])
    monkeypatch.syspath_prepend("/somewhere/else")
    found = asked("around")
    assert found == {"argv": sys.argv, "variable": "set late", "path": sys.path}
    monkeypatch.delenv("OF_THE_TEST")
    assert asked("around")["variable"] is None


# Output -----------------------------------------------------------------------------------------------------

TALK = "python 1\nc 2\npython 3, c 4\nshell 5\ndescriptor 6 \ufffd\n"


def test_what_python_and_c_print_comes_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    asked("talk")
    found = capsys.readouterr()
    assert found.out == TALK
    assert found.err == "warned in python\nwarned on the descriptor\n"


def test_it_goes_where_the_program_s_output_goes() -> None:
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        asked("talk")
    assert out.getvalue() == TALK and "descriptor" in err.getvalue()
    latin = io.TextIOWrapper(io.BytesIO(), "latin-1", newline="")
    with contextlib.redirect_stdout(latin):
        asked("talk")
    latin.flush()
    assert b"descriptor 6 \\ufffd\n" in latin.buffer.getvalue()  # type: ignore[attr-defined]


def test_much_output_does_not_block(capsys: pytest.CaptureFixture[str]) -> None:
    asked("talk_much")
    assert capsys.readouterr().out.splitlines() == [f"line {i} of many" for i in range(20_000)]


def test_a_child_that_never_stops_to_print_does_not_hold_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    come: list[int] = []

    def read(fd: int, most: int) -> bytes:
        come.append(most)
        assert len(come) < 1000
        return b"x" * most

    monkeypatch.setattr(output.os, "read", read)
    fd = os.open(os.devnull, os.O_RDONLY)
    heard = output.OutputReader("stdout", fd)
    heard.read(False)
    os.close(fd)
    assert sum(come) == 1 << 20 and heard.open, "as much as a pipe holds"


def test_last_words_are_heard(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ChildError, match=r"signal 6(.|\n)*the reason"):
        asked("last_words")
    found = capsys.readouterr()
    assert found.out == "on the way out\n" and "the reason" in found.err


@pytest.mark.full
def test_output_of_a_capture_is_not_among_the_replies(capsys: pytest.CaptureFixture[str]) -> None:
    def talks(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        os.write(1, b"on the descriptor\n")
        return x.sin()

    calls: list[Callable[..., Any]] = [talks, talks]
    for fn in calls:
        compile_lens.capture(fn, torch.rand(5), target="mps")
    assert capsys.readouterr().out == "on the descriptor\n" * 2
