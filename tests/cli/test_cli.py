"""The command line: stdout and stderr, exit codes, JSON, and clear errors."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import samples_machine

from compile_lens.api.load import load
from compile_lens.cli import main, output
from compile_lens.cli.names import evaluate, resolve
from compile_lens.cli.output import EXIT_CODES
from compile_lens.errors import UsageError
from compile_lens.record.capture import Environment
from compile_lens.record.codec import to_json
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node, Ref, Tensor
from compile_lens.record.kernel import Code, Kernel
from compile_lens.results.capture import Capture
from compile_lens.trials import doctor
from compile_lens.trials.progress import progress

PROGRAM = """
import torch

TOO_MANY = 3


def double(x, scale=2):
    print("a word of the user's")
    return torch.sin(x) * scale


def fails(x):
    raise ValueError("the user's own error")


class Net(torch.nn.Module):
    def forward(self, x):
        return x.relu()
"""


@pytest.fixture
def record(tmp_path: Path) -> Path:
    tensor = Tensor("float32", (4,), (1,), "cpu", 16)
    frame = Frame("f.py", 2, "f", "return x.sin()  # é→漢")
    nodes = (
        Node("x", "placeholder", "x", "input", outputs=(tensor,)),
        Node(
            "sin",
            "call_function",
            "aten.sin",
            "pointwise",
            True,
            (Ref("x"),),
            outputs=(tensor,),
            frames=(frame,),
        ),
        Node("output", "output", "output", "output", args=((Ref("sin"),),)),
    )
    kernel = Kernel("cpp_fused_sin_0", "inference", "cpp", "pointwise", "// 漢", 1, 1, launch_lines=(2,))
    code = Code("inference", "// 漢\ncpp_fused_sin_0()", "generated only", "cpu", (kernel,))
    stages = (Graph("inference", "", "", nodes, text="sin(x)"), code)
    environment = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpu")
    capture = Capture("fé漢", environment, compilations=(Compilation("0/0", "f", "f.py", 1, stages),))
    path = tmp_path / "record.json"
    path.write_text(to_json(capture), encoding="ascii")
    return path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "the_users_program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def shell(*words: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONIOENCODING"}
    package = str(Path(doctor.__file__).parent.parent)
    path = os.pathsep.join(filter(None, (package, inherited.get("PYTHONPATH"))))
    return subprocess.run(
        [sys.executable, "-m", "compile_lens", *words],
        cwd=cwd,
        env={**inherited, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def test_no_arguments_print_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert all(
        word in out for word in ("demo", "show", "compare", "what-if", "support", "open", "exit codes:")
    )


@pytest.mark.parametrize("command", ["demo", "show", "compare", "what-if", "support", "open", "doctor"])
def test_every_help_documents_the_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "exit codes:" in out and "--json" in out and "--quiet" in out
    assert ("and are evaluated" in out) == (command in ("show", "compare", "what-if"))


BAD = [
    (["dance"], "invalid choice: 'dance'"),
    (["show"], "FUNCTION"),
    (["compare"], "FUNCTION"),
    (
        ["compare", "f", "--out", "x.svg"],
        "'x.svg' has no known file extension; use one of .html .md .txt .json",
    ),
    (["compare", "gone.py:f"], "there is no file"),
    (["support"], "name an operator, such as `compile-lens support sort`"),
    (["support", "--capture", "r.json"], "--capture needs --target mps"),
    (["support", "sort", "--target", "mps"], "--target needs --capture record.json"),
    (["show", "x:f", "--backward", "maybe"], "invalid choice: 'maybe'"),
    (["open"], "record"),
    (["open", "r.json", "--colour"], "--colour"),
    (["show", "f", "--out", "x.pdf"], "'x.pdf' has no known file extension; use one of .html"),
    (["show", "f", "--out", "nowhere/x.svg"], "there is no folder 'nowhere'"),
    (["open", "gone.json"], "gone.json"),
    (["show", "no_function_named"], "write pkg.module:function"),
    (["show", ":f"], "write pkg.module:function"),
    (["show", "gone.py:f"], "there is no file"),
    (["show", "there_is_no_such_module:f"], "there is no module 'there_is_no_such_module'"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(words) for words, _ in BAD])
@pytest.mark.parametrize("form", ["text", "json"])
def test_bad_usage_is_one_clear_line(
    words: list[str],
    said: str,
    form: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*words, *(["--json"] if form == "json" else [])]) == 2
    seen = capsys.readouterr()
    if form == "json":
        assert said in json.loads(seen.out)["error"]["message"]
        assert seen.err == ""
    else:
        assert seen.out == "" and seen.err.count("\n") == 1
        assert seen.err.startswith("compile-lens: ") and said in seen.err
    assert list(tmp_path.iterdir()) == []


def test_open_prints_the_text_page(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", str(record)]) == 0
    short = capsys.readouterr()
    assert short.out.count("\n") <= 25 and 'text("full")' in short.out and short.err == ""
    assert main(["open", str(record), "--full"]) == 0
    seen = capsys.readouterr()
    assert "cpp_fused_sin_0" in seen.out and "launches" in seen.out and seen.err == ""


def test_json_says_what_may_differ_on_the_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "record.json"
    path.write_text(to_json(samples_machine.h100()), encoding="ascii")
    assert main(["open", str(path), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["target"]
    assert data["requested"] == "h100" and data["may_differ"] == list(samples_machine.WHOLE)
    first, second = data["queries"]
    assert (first["query"], first["answer"], first["frame"]["line"]) == ("Tensor.is_cuda", "False", 5)
    assert second["kind"] == "entered"
    assert data["code"][0]["may_differ"] == list(samples_machine.MAY_DIFFER)


def test_open_json_is_one_document_with_ledger_and_kernels(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["open", str(record), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["command"] == "open" and data["ledger"]["total"]["launches"] == 1
    assert [k["name"] for k in data["kernels"]] == ["cpp_fused_sin_0"]
    assert data["failure"] is None and data["written"] == []


def test_open_tells_the_story(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = Capture.from_json(record.read_text(encoding="utf-8")).story()
    assert main(["open", str(record), "--story"]) == 0
    assert capsys.readouterr().out == str(story)
    out = record.with_name("x.html")
    assert main(["open", str(record), "--story", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{story}wrote {out}\n"
    assert main(["open", str(record), "--story", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["story"]
    assert [sentence["text"] for sentence in data] == [sentence.text for sentence in story.sentences]
    assert main(["open", str(record), "--story", "--lang", "zh"]) == 0
    chinese = Capture.from_json(record.read_text(encoding="utf-8")).story("zh")
    assert capsys.readouterr().out == str(chinese) != str(story)
    assert {"chapter", "compilation", "stage", "about"} <= set(data[0])


def test_open_writes_what_it_is_asked_for(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = [record.with_name(f"x{ending}") for ending in (".html", ".svg", ".md", ".txt", ".json")]
    assert main(["open", str(record), *(word for path in wanted for word in ("--out", str(path)))]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {path}" for path in wanted]
    assert all(path.stat().st_size for path in wanted)
    assert wanted[-1].read_text() == record.read_text()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": "compile_lens capture", "schema_version": 99}', "\xff"]
)
def test_open_refuses_what_is_no_record(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(text.encode("latin-1"))
    assert main(["open", str(path), "--out", str(tmp_path / "x.html")]) == 2
    seen = capsys.readouterr()
    assert "bad.json" in seen.err and "Traceback" not in seen.err and seen.out == ""
    assert [p.name for p in tmp_path.iterdir()] == ["bad.json"]


def test_a_terminal_without_utf8_gets_everything(record: Path) -> None:
    done = shell("open", str(record), cwd=record.parent, PYTHONIOENCODING="ascii:strict")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii() and "cpp_fused_sin_0" in done.stdout
    done = shell("open", "gibt_es_nicht_é.json", cwd=record.parent, PYTHONIOENCODING="ascii:strict")
    assert (
        done.returncode == 2 and "gibt_es_nicht_\\xe9.json" in done.stderr and "Traceback" not in done.stderr
    )


@pytest.mark.skipif(os.name != "posix", reason="needs a shell with pipes")
def test_a_reader_that_goes_away_is_no_error(record: Path) -> None:
    command = f"{sys.executable} -m compile_lens open {record} 2>err | true; echo ${{PIPESTATUS[0]}}"
    package = str(Path(doctor.__file__).parent.parent)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=record.parent,
        env={**os.environ, "PYTHONPATH": package},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "0", (record.parent / "err").read_text()
    assert (record.parent / "err").read_text() == ""


def test_traceback_shows_where_an_error_came_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", "gone.json", "--traceback"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_an_error_that_nobody_foresaw_is_one_line_too(
    record: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    def broken(self: Capture, form: str) -> str:
        raise ZeroDivisionError("a bug\nof two lines")

    monkeypatch.setattr(Capture, "text", broken)
    assert main(["open", str(record)]) == 1
    assert (
        capsys.readouterr().err
        == "compile-lens: ZeroDivisionError: a bug of two lines (--traceback shows where)\n"
    )


def test_what_is_not_installed_has_an_exit_code_of_its_own(program: Path) -> None:
    block = program.with_name("sitecustomize.py")
    block.write_text("import sys\nsys.modules['torch'] = None\n", encoding="utf-8")
    path = os.pathsep.join((str(program.parent), str(Path(doctor.__file__).parent.parent)))
    done = shell("show", f"{program}:double", cwd=program.parent, PYTHONPATH=path)
    assert done.returncode == 3 and "torch" in done.stderr and "compile-lens doctor" in done.stderr
    done = shell("doctor", "--json", cwd=program.parent, PYTHONPATH=path)
    data = json.loads(done.stdout)
    assert done.returncode == 3 and data["ok"] is False
    torch = next(check for check in data["checks"] if check["name"] == "torch")
    assert not torch["works"] and "pip install 'torch>=" in torch["advice"]


@pytest.mark.parametrize("command", ["show", "check"])
def test_what_a_program_imports_and_is_not_there_is_named_with_its_line(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "imports.py"
    path.write_text("import json\nimport nosuchmod\n")
    assert main([command, str(path) + (":f" if command == "show" else "")]) == 3
    assert capsys.readouterr().err == f"compile-lens: {path}:2 imports nosuchmod, which is not installed\n"


def test_every_exit_code_is_on_the_page_of_the_commands() -> None:
    codes = {text for name, text in vars(output).items() if name.isupper() and isinstance(text, int)}
    docs = Path(__file__).resolve().parents[2] / "docs"
    for page in (docs / "command-line.md", docs / "zh" / "command-line.md"):
        rows = re.findall(r"^\| (\d+) \|", page.read_text(encoding="utf-8"), re.M)
        assert sorted(map(int, rows)) == sorted(codes), page
    known = dict(re.findall(r"^ *(\d+)  (.+)$", EXIT_CODES, re.M))
    english = (docs / "command-line.md").read_text(encoding="utf-8")
    assert set(map(int, known)) == codes
    assert all(f"| {code} | {text} |" in english for code, text in known.items())


# doctor


@pytest.mark.torch
def test_doctor_says_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    found = doctor.checks()
    assert [c.name for c in found][:4] == ["python", "torch", "triton", "C++ compiler"]
    assert {"cuda", "mps", "cpu", "graphviz (dot)", "graphviz (embedded)", "jupyterlab"} <= {
        c.name for c in found
    }
    for check in found:
        assert check.found and bool(check.advice) != check.works, check
    assert main(["doctor", "--json"]) == (0 if doctor.healthy(found) else 3)
    expected = {"schema": 1, "command": "doctor", **doctor.to_dict(found)}
    assert json.loads(capsys.readouterr().out) == expected
    main(["doctor"])
    assert all(check.name in capsys.readouterr().out for check in found[:1])


def test_doctor_finds_the_compiler_that_torch_would_call(tmp_path: Path, monkeypatch: Any) -> None:
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    monkeypatch.setenv("PATH", str(tmp_path))
    missing = doctor._compiler({})
    assert not missing.works and not missing.needed and usual in missing.found and missing.advice
    assert "CXX names it" in doctor._compiler({"CXX": "gone++"}).found
    if os.name != "posix":
        return
    other = "clang++" if usual == "g++" else "g++"
    for name in (other, usual):
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\necho {name} 1.2.3\n")
        tool.chmod(0o755)
        if name == other:
            assert f"set CXX={other}" in doctor._compiler({}).advice
            assert doctor._compiler({"CXX": other}).works
    assert doctor._compiler({}).works and f"{usual} 1.2.3" in doctor._compiler({}).found


def test_doctor_knows_versions_as_numbers() -> None:
    class Torch:
        __version__ = "2.2.0"

    assert not doctor._torch(Torch, "").works
    Torch.__version__ = "2.11.0+cu128"
    assert doctor._torch(Torch, "").works


def test_doctor_fails_if_nothing_can_draw(monkeypatch: Any) -> None:
    def version(package: str) -> str:
        return ""

    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(doctor, "_version", version)
    found = tuple(doctor._graphviz())
    assert not doctor.healthy(found)
    assert "cannot run here yet" in doctor.page(found) and "pip install 'pygraphviz" in doctor.page(found)


# support and compare


@pytest.mark.torch
def test_support_prints_tables_and_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["support", "sort", "aten.histc", "--quiet"]) == 0
    out = capsys.readouterr().out
    assert "aten.sort.stable" in out and "aten.histc" in out and "Inductor" in out
    assert main(["support", "sort.stable", "--json", "--quiet"]) == 0
    data = json.loads(capsys.readouterr().out)
    (overload,) = data["operators"][0]["overloads"]
    assert overload["name"] == "aten.sort.stable" and data["lacking"] is None
    assert {i["backend"]: i["kind"] for i in overload["implementations"]} == dict.fromkeys(
        ("cpu", "cuda", "mps"), "kernel"
    )
    assert main(["support", "srot", "--quiet"]) == 2
    assert "close to it are" in capsys.readouterr().err


@pytest.mark.torch
def test_support_checks_a_record_for_a_target(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    assert main(["support", "--capture", str(record), "--target", "mps", "--quiet"]) == 0
    assert "every operator has an implementation for mps" in capsys.readouterr().out
    assert main(["support", "--capture", str(record), "--target", "h100", "--json", "--quiet"]) == 0
    lacking = json.loads(capsys.readouterr().out)["lacking"]
    assert lacking["device"] == "cuda" and lacking["checked"] == ["aten.sin"] and lacking["operators"] == []
    assert main(["support", "--capture", str(record), "--target", "h101", "--quiet"]) == 2
    assert "target='h101' is not known" in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.exhaustive
def test_compare_and_show_for_a_target_end_to_end(program: Path) -> None:
    pytest.importorskip("torch")
    words = ("--input", "torch.rand(8)", "--json", "--quiet")
    targets = ("--target", "cpu", "--target", "mps")
    done = shell("compare", f"{program}:double", *words, *targets, "-o", "page.html", cwd=program.parent)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert (
        list(data["targets"]) == ["cpu", "mps"]
        and data["failures"] == {}
        and data["written"] == ["page.html"]
    )
    assert [k["language"] for k in data["targets"]["mps"]["kernels"]] == ["metal"]
    assert data["rows"] and "a word of the user's" in done.stderr
    assert "generated_kernel_0" in (program.parent / "page.html").read_text(encoding="utf-8")

    done = shell("show", f"{program}:double", *words, "--target", "mps", cwd=program.parent)
    assert done.returncode == 0, done.stderr
    assert [k["language"] for k in json.loads(done.stdout)["kernels"]] == ["metal"]
    done = shell("show", f"{program}:double", *words[:2], "--target", "h101", "--quiet", cwd=program.parent)
    assert done.returncode == 2 and "target='h101' is not known" in done.stderr


# names and expressions


@pytest.mark.torch
def test_targets_are_modules_files_and_expressions(program: Path, monkeypatch: Any) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "path", [*sys.path])
    function, scope = resolve(f"{program}:double")
    assert function.__name__ == "double" and scope["torch"].__name__ == "torch"
    net, _ = resolve(f"{program}:Net().eval()")
    assert not net.training
    assert resolve("os.path:join")[0] is os.path.join
    assert evaluate("[TOO_MANY, torch.ones(2).sum().item()]", scope, "--input") == [3, 2.0]
    for text, said in (
        (f"{program}:triple", "has no 'triple'; what can be called there: double, fails, Net"),
        (f"{program}:Net", r"is a class.*Net\(\)'"),
        (f"{program}:TOO_MANY", "is int, not something that can be called"),
        (f"{program}:Net(3)", "cannot be evaluated: TypeError"),
    ):
        with pytest.raises(UsageError, match=said):
            resolve(text)
    with pytest.raises(UsageError, match=r"--input 'torch.rnd\(3\)' cannot be evaluated: AttributeError"):
        evaluate("torch.rnd(3)", scope, "--input")


def test_a_file_that_cannot_be_imported_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    broken = tmp_path / "broken_program.py"
    broken.write_text("def f(x): ...\n\n1 / 0\n")
    with pytest.raises(UsageError, match="importing it raised ZeroDivisionError"):
        resolve(f"{broken}:f")
    assert "broken_program" not in sys.modules
    broken.write_text("import surely_not_installed_here\n")
    with pytest.raises(ModuleNotFoundError, match="surely_not_installed_here"):
        resolve(f"{broken}:f")


# progress


def test_progress_is_silent_for_quick_work_and_with_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("quick"):
        pass
    with progress("hushed", quiet=True, patience=0):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_progress_in_a_log_is_a_line_before_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), progress("slow", patience=0.01):
        time.sleep(0.2)
        raise KeyError
    seen = capsys.readouterr()
    assert seen.out == ""
    first, last = seen.err.splitlines()
    assert (
        first == "compile-lens: slow ..."
        and last.startswith("compile-lens: slow: 0.")
        and last.endswith(" s")
    )


def test_progress_on_a_terminal_counts_and_goes_away(monkeypatch: Any, tmp_path: Path) -> None:
    with (tmp_path / "tty").open("w+", encoding="ascii", newline="") as stream:
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        monkeypatch.setattr(sys, "stderr", stream)
        with progress("drawing é", patience=0.01):
            time.sleep(0.7)
        stream.seek(0)
        text = stream.read()
    assert "drawing \\xe9 ... 00:00" in text.replace("\r", "")
    assert "\n" not in text


# whole runs


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.exhaustive
def test_demo_end_to_end(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    done = shell("demo", "--out", "here", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    names = {"demo.py", "report.html", "record.json", "forward.svg", "backward.svg"}
    assert {path.name for path in (tmp_path / "here").iterdir()} - {"__pycache__"} == names
    assert all(f"wrote {Path('here') / name}" in done.stdout for name in names)
    assert "launches" in done.stdout and "Traceback" not in done.stderr

    opened = shell("open", "here/record.json", "--json", cwd=tmp_path)
    data = json.loads(opened.stdout)
    assert data["headline"] == ["work: 17 eager ops → 2 launches", "memory traffic: ~160 kB → ~20 kB"]
    rows = {name: data["ledger"][name] for name in ("forward", "backward", "total")}
    assert [rows["forward"][c] for c in ("eager_ops", "aten_ops", "loops", "groups", "launches")] == [
        5,
        5,
        1,
        1,
        1,
    ]
    assert [rows["backward"][c] for c in ("aten_ops", "loops", "groups", "launches")] == [12, 1, 1, 1]
    assert rows["forward"]["bytes_before"] == 44_000 and rows["forward"]["bytes_after"] == 8_000
    assert rows["total"]["bytes_after"] == 20_000 and rows["total"]["name"] == "both"

    (tmp_path / "here" / "demo.py").write_text("import torch\n\n\ndef f(x):\n    return x.exp()\n")
    again = shell("demo", "--out", "here", "--json", "--quiet", cwd=tmp_path)
    data = json.loads(again.stdout)
    assert again.returncode == 0 and "compile-lens:" not in again.stderr
    assert data["ledger"]["forward"]["aten_ops"] == 1, "a changed demo.py is kept and captured"


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.exhaustive
def test_show_end_to_end(program: Path) -> None:
    pytest.importorskip("torch")
    target = "the_users_program:double"
    words = (
        "show",
        target,
        "--input",
        "torch.rand(8)",
        "--kwarg",
        "scale=TOO_MANY",
        "--out",
        "x.json",
        "--json",
    )
    done = shell(*words, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    assert data["written"] == ["x.json"] and data["ledger"]["inference"]["launches"] == 1
    assert len(data["breaks"]) == 1 and "a word of the user's" in done.stderr
    assert "cpp_fused" in (program.parent / "x.json").read_text()


@pytest.mark.exhaustive
@pytest.mark.torch
@pytest.mark.parametrize("form", ["text", "json"])
def test_show_of_a_function_that_raises_still_reports(program: Path, form: str) -> None:
    pytest.importorskip("torch")
    words = ["show", f"{program}:fails", "--input", "torch.rand(8)", "--out", "partial.html"]
    done = shell(*words, *(["--json"] if form == "json" else []), cwd=program.parent)
    assert done.returncode == 1
    assert (program.parent / "partial.html").stat().st_size
    if form == "json":
        data = json.loads(done.stdout)
        assert "the user's own error" in data["error"]["message"] and data["failure"]["type"] == "ValueError"
    else:
        assert "the user's own error" in done.stderr and "Traceback" not in done.stderr
        assert "wrote partial.html" in done.stdout


@pytest.mark.torch
def test_show_refuses_inputs_that_cannot_be_made(
    program: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "path", [*sys.path])
    for words, said in (
        (["--input", "torch.rand("], "--input 'torch.rand(' cannot be evaluated: SyntaxError"),
        (["--input", "torch.rand(3, device='nowhere')"], "cannot be evaluated: RuntimeError"),
        (["--kwarg", "scale"], "--kwarg 'scale' is not NAME=EXPR"),
    ):
        assert main(["show", f"{program}:double", "--quiet", *words]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.exhaustive
def test_an_error_of_the_compiler_is_one_line_without_torchs_log(program: Path) -> None:
    pytest.importorskip("torch")
    program.write_text("def f(x, y):\n    return x @ y\n", encoding="utf-8")
    words = ("show", f"{program}:f", "--input", "torch.rand(4)", "--input", "torch.rand(3)", "--quiet")
    done = shell(*words, cwd=program.parent)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and done.stderr.count("compile-lens:") == 1
    assert "Traceback" in shell(*words, "--traceback", cwd=program.parent).stderr


def test_diff_says_what_differs_and_fails_where_asked(
    record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text(record.read_text(encoding="utf-8").replace("aten.sin", "aten.cos"), encoding="utf-8")
    assert main(["diff", str(record), str(record), "--fail-on", "kernels,breaks"]) == 0
    assert "No difference was seen." in capsys.readouterr().out, "the record holds no settings"
    assert main(["diff", str(record), str(record), "--fail-on", "bytes"]) == 4, (
        "nor the bytes of its operator"
    )
    assert main(["diff", str(record), str(other), "--fail-on", "breaks"]) == 0
    capsys.readouterr()
    assert (
        main(["diff", str(record), str(other), "--json", "--fail-on", "operators", "--fail-on", "breaks"])
        == 4
    )
    body = json.loads(capsys.readouterr().out)
    assert body["failed_on"] == ["operators"] and body["differs"]
    assert main(["diff", str(record), str(other), "-o", str(tmp_path / "d.md"), "--quiet"]) == 0
    assert "aten.cos" in (tmp_path / "d.md").read_text(encoding="utf-8")


def test_diff_names_what_it_does_not_know(record: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(record), str(record), "--fail-on", "speed"]) == 2
    assert "--fail-on 'speed' is not one of" in capsys.readouterr().err
    assert main(["diff", str(record), "nowhere.json"]) == 2


def test_a_brief_keeps_its_budget(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["brief", f"{program}:double", "--input", "torch.rand(8)", "--quiet", "--max-tokens"]
    assert main([*words, "300"]) == 0
    brief = capsys.readouterr().out.partition("compile_lens:")[2]
    assert "FACTS" in brief and len(brief.encode()) <= 900
    assert main([*words, "90"]) == 2
    assert "at least 200" in capsys.readouterr().err
    assert main([*words, "300", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["brief"]["facts"]


def test_a_brief_asks_next_for_commands_that_work(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["brief", f"{program}:double", "--input", "torch.rand(8)", "--quiet", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)["brief"]["ask_next"]
    commands = [shlex.split(one["call"]) for one in data]
    for name, *words in commands:
        assert name == "compile-lens"
        if words[0] != "divergence":  # it builds the code
            assert main(words) == 0, words
    capsys.readouterr()
    assert main(["brief", "record.json", "--quiet"]) == 0
    text = capsys.readouterr().out
    assert "compile-lens memory record.json" in text and "capture." not in text.partition("ASK NEXT")[2]


def test_memory_and_cost_are_printed_by_what_is_named(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [f"{program}:double", "--input", "torch.rand(8, requires_grad=True)", "--quiet"]
    assert main(["cost", *words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "line"
    assert main(["memory", *words, "--by", "name"]) == 0
    assert "Memory by name" in capsys.readouterr().out
    assert main(["memory", *words, "--by", "kernel"]) == 2
    assert "'line', 'name'" in capsys.readouterr().err
    assert main(["memory", *words, "--curve", "2"]) == 2
    assert "numbers from 0 to 1" in capsys.readouterr().err


@pytest.mark.full
def test_show_adds_the_memory_curve_where_asked(program: Path, tmp_path: Path) -> None:
    saved = tmp_path / "shown.json"
    words = ["show", f"{program}:double", "--input", "torch.rand(8, requires_grad=True)", "--quiet"]
    assert main([*words, "--memory-curve", "--out", str(saved)]) == 0
    curve = load(saved).budget_curve
    assert curve is not None and {point.budget for point in curve.points} >= {0.0, 0.5, 1.0}


def test_memory_and_cost_of_a_record_are_those_of_its_capture(
    record: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = load(record)
    for command, expected in (("cost", capture.cost("kernel")), ("memory", capture.memory("line"))):
        assert main([command, str(record), "--by", expected.by, "--quiet", "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert {key: document[key] for key in expected.to_dict()} == json.loads(
            json.dumps(expected.to_dict())
        )
    assert main(["cost", str(record), "--input", "1"]) == 2
    assert "takes no --input" in capsys.readouterr().err
    assert main(["memory", str(record), "--curve"]) == 2
    assert "give the function and its inputs" in capsys.readouterr().err


def test_a_star_gives_several_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "net.py"
    file.write_text(
        "import torch\n\ndef calls():\n    return [(torch.ones(3), torch.ones(3))]\n\n"
        "def scaled(x, y, z):\n    return x * y + z\n",
        encoding="utf-8",
    )
    words = ["brief", f"{file}:scaled", "--input", "*calls()[0]", "--quiet", "--input"]
    assert main([*words, "torch.ones(3)"]) == 0
    assert "1 graph" in capsys.readouterr().out
    assert main([*words, "*7"]) == 2
    assert "not a sequence of arguments, but of type int" in capsys.readouterr().err
    assert main([*words, "*torch.rand("]) == 2
    assert "--input" in capsys.readouterr().err


@pytest.mark.exhaustive
@pytest.mark.torch
def test_divergence_of_an_absent_gpu_runs_its_kernels(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    words = ["divergence", f"{program}:double", "--input", "torch.rand(8)", "--json", "--quiet"]
    assert main([*words, "--target", "h100"]) == 0
    data = json.loads(capsys.readouterr().out)
    (value,) = [v for graph in data["graphs"] for v in graph["values"] if v["outcome"] == "agrees"]
    assert value["kernel"].startswith("triton_") and data["agrees"] is True
    assert main([*words, "--target", "h101"]) == 2
    assert "h101' is not known" in capsys.readouterr().out


def test_cost_and_memory_print_all_rows_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sums.py"
    rows = "\n".join(f"    a{i} = torch.sort(x + {i}).values" for i in range(14))
    names = ", ".join(f"a{i}" for i in range(14))
    file.write_text(f"import torch\n\ndef sums(x):\n{rows}\n    return {names}\n", encoding="utf-8")
    record = tmp_path / "sums.json"
    assert main(["show", f"{file}:sums", "--input", "torch.rand(9, 9)", "--quiet", "--out", str(record)]) == 0
    capsys.readouterr()
    places = [f"sums.py:{line}" for line in range(4, 18)]
    for command in ("cost", "memory"):
        assert main([command, str(record)]) == 0
        short = capsys.readouterr().out
        assert " more: --full" in short and not all(place in short for place in places)
        assert main([command, str(record), "--full"]) == 0
        whole = capsys.readouterr().out
        assert " more" not in whole and all(place in whole for place in places)
