"""A capture confirms every figure of the README and of its pages, and every piece of their code runs."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from markdown_pages import FENCED, blocks, sections

import compile_lens
from compile_lens import cli, versions

pytestmark = pytest.mark.torch

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "README.md",
    *("docs/record.md", "docs/checking.md", "docs/command-line.md", "docs/ledger.md"),
    *("docs/targets.md", "docs/targets-run.md"),
    *("docs/programs.md", "docs/programs-run.md"),
    *("docs/testing.md", "docs/diff.md", "docs/what-if.md", "docs/wrong-numbers.md"),
    "docs/play.md",
)
"""Pages with code or figures, in an order in which each page's code can use the previous pages' names."""

README = "\n".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
SECTIONS = {key: text for page in PAGES for key, text in sections(ROOT / page).items()}
PYTHON = {key: blocks(text, "python") for key, text in SECTIONS.items()}
"""The Python blocks of each section, in order."""
COMMANDS = {
    key: [line for line in text.splitlines() if line.startswith("compile-lens ")]
    for key, text in SECTIONS.items()
}
"""The commands of each section, in order."""


def _run(code: str, scope: dict[str, Any], folder: Path, name: str) -> None:
    file = folder / f"{name}.py"  # a file, so that the source lines of its functions can be read
    file.write_text(code, encoding="utf-8")
    exec(compile(code, str(file), "exec"), scope)


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the names of the first block, which the others use."""
    monkeypatch.chdir(tmp_path)
    # Torch identifies a file's functions by their text, and remembers which sizes changed in an earlier test.
    torch._dynamo.reset()
    scope: dict[str, Any] = {"__name__": "readme"}
    _run(PYTHON["README#in-a-notebook"][0], scope, tmp_path, "readme")
    return scope


def test_the_ledger(session: dict[str, Any]) -> None:
    ledger = session["capture"].ledger
    cells = re.findall(
        r"^\| ([a-z]+ ops|ATen ops|loops|groups|launches|bytes \w+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| .+ "
        r"\| (measured|modelled) \|$",
        README,
        re.MULTILINE,
    )
    assert [cell[0] for cell in cells] == [
        "eager ops",
        "ATen ops",
        "loops",
        "groups",
        "launches",
        "bytes before",
        "bytes after",
    ]
    for column, forward, backward, both, basis in cells:
        name = column.lower().replace(" ", "_")
        figures = [getattr(row, name) for row in (ledger.forward, ledger.backward, ledger.total)]
        assert [f"{figure:,}" for figure in figures] == [forward, backward, both]
        assert {figure.basis for figure in figures} == {basis}


def test_the_figures_in_the_text(session: dict[str, Any]) -> None:
    graphs = session["capture"].compilations[0].graphs
    for stage, title in (("forward", "Forward"), ("backward", "Backward")):
        output = f"{title} graph: {len(graphs[stage].nodes)} nodes, {len(graphs[stage].calls)} calls"
        assert output in README
    assert f"# {len(graphs['joint'].calls)} nodes" in README
    total = session["capture"].ledger.total
    output = (
        f"eager PyTorch runs {total.eager_ops} operators that move\n{total.bytes_before:,} bytes; "
        f"compiled, there are {total.launches} kernel launches that move {total.bytes_after:,}."
    )
    assert output in README
    assert re.search(rf"capture\.ledger\.total\.launches +# {total.launches}\n", README)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_record_in_code(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["record"][0], session, tmp_path, "record")
    assert "compiled agrees with eager" in capsys.readouterr().out
    loaded = compile_lens.load(tmp_path / "f.json")
    assert loaded == session["capture"]
    call = session["call"]
    assert call.text.strip() == "return torch.sin(x) ** 2 + torch.cos(x) ** 2"
    chained = session["capture"].chain.kernels(call.file, call.line)
    assert chained == session["capture"].kernels == session["capture"].chain.kernels(call.address)
    if sys.version_info >= (3, 11) and versions.torch_version() >= (2, 12):
        assert str(call).endswith(": torch.sin(x)")
    assert session["capture"].ledger.total.launches == 2


def test_a_program_that_is_watched(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["programs"][0], session, tmp_path, "watched")
    program = session["program"]
    assert (program.counts.graphs, program.counts.break_sites, program.counts.recompiles) == (4, 1, 2)
    assert "why is it not faster" in capsys.readouterr().out
    assert compile_lens.Program.load(tmp_path / "program.json").record == program.record


def test_a_function_called_several_times(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["programs"][0], session, tmp_path, "watched")
    capsys.readouterr()
    _run(PYTHON["programs-run#several-calls-of-one-function"][0], session, tmp_path, "calls")
    assert capsys.readouterr().out
    calls = session["capture"].calls
    assert len(calls) == 3


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="builds C++")
def test_times_of_kernels(
    session: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    _run(PYTHON["programs"][0], session, tmp_path, "watched")
    session["x"] = session["torch"].rand(8)
    capsys.readouterr()
    with session["torch"]._inductor.config.patch({"cpp.enable_kernel_profile": False}):  # restored afterwards
        _run(PYTHON["programs#times-of-kernels"][0], session, tmp_path, "profile")
    output = capsys.readouterr().out
    assert "2 kernels measured" in output and "cpp_fused_sin_0" in output


def test_the_backend_by_name(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not metadata.entry_points(group="torch_dynamo_backends", name="compile_lens"):
        pytest.skip(
            "compile_lens is not installed here, so torch does not know its backend: pip install -e ."
        )
    _run(PYTHON["programs-run#by-the-name-of-a-backend"][0], session, tmp_path, "backend")
    output = " ".join(capsys.readouterr().out.split())
    assert "of a program: 1 graph" in output and "What ran eagerly was not seen" in output
    torch.testing.assert_close(session["model"](session["x"]), session["f"](session["x"]))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_each_step_saves(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["checking#what-each-step-saves"][0], session, tmp_path, "steps")
    output = capsys.readouterr().out
    assert "nothing inlined or fused: 17 loops" in output
    assert "forward+backward: " in output and "x eager's speed" in output


@pytest.mark.full
def test_an_absent_device(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["targets"][0], session, tmp_path, "there")
    output = capsys.readouterr().out
    assert "@triton.jit" in output and "launch configurations" in output and "mps" in output
    assert (tmp_path / "targets.html").exists()


def test_a_layer_that_is_larger_than_the_machine(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["targets#does-it-fit-the-device"][0], session, tmp_path, "meta")
    # By hand: the weight, the bias, the input and the result, two bytes each.
    size = 200_000 * 250_000 + 250_000 + 16 * 200_000 + 16 * 250_000
    assert int(capsys.readouterr().out) == 2 * size


def test_which_targets_there_are(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["targets#which-targets-there-are"][0], session, tmp_path, "devices")
    output = capsys.readouterr().out
    assert "Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), static_cast<int64_t>(16))" in output
    assert "aten.sort" in output and "mps" in output


def test_device_queries(session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(PYTHON["targets-run#device-queries"][0], session, tmp_path, "asks")
    (output,) = capsys.readouterr().out.splitlines()
    assert output.startswith("torch.cuda.mem_get_info() (") and "asks.py:2 in g" in output


def test_a_step_of_an_optimizer_for_a_device(session: dict[str, Any], tmp_path: Path) -> None:
    code = PYTHON["targets-run"][0].replace("h100 =", "before = weight.detach().clone()\nh100 =")
    _run(code, session, tmp_path, "step")
    assert "@triton.jit" in session["h100"].kernels[0].source
    assert {"in_ptr0", "in_ptr1"} <= set(re.findall(r"in_ptr\d", session["h100"].kernels[0].source))
    assert torch.equal(session["weight"], session["before"])


def test_a_kernel_written_in_triton(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    _run(PYTHON["targets#your-triton-kernels"][0], session, tmp_path, "own")
    assert "['double_0', 'triton_poi_fused_add_0']" in capsys.readouterr().out


def test_what_autotuning_would_try(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    _run(PYTHON["targets#what-autotuning-would-try"][0], session, tmp_path, "autotune")
    output = capsys.readouterr().out
    assert "nothing was timed" in output and "extern_kernels.mm" in output and "num_warps" in output


def test_what_would_be_a_cuda_graph(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["targets#cuda-graphs"][0], session, tmp_path, "recorded")
    assert capsys.readouterr().out.count("'cpu ops'") == 2  # the copy, forward and backward


@pytest.mark.full
def test_what_is_counted_of_a_program_and_its_graphs(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["programs"][0], session, tmp_path, "watched")
    capsys.readouterr()
    _run(PYTHON["programs#in-code"][0], session, tmp_path, "names")
    output = capsys.readouterr().out.splitlines()
    assert output[0].startswith("recompile 2 watched.py:1") and output[1].startswith(
        "graph break 2 watched.py:3"
    )
    _run(PYTHON["programs#what-is-counted"][0], session, tmp_path, "counts")
    counted = dict(re.findall(r"(\w+)=(\d+)", capsys.readouterr().out))
    promised = re.search(r"# (\d) graphs, breaks at (\d) place, (\d) recompiles", README)
    assert promised is not None
    assert promised.groups() == (counted["graphs"], counted["break_sites"], counted["recompiles"])
    _run(PYTHON["programs#one-graph-in-depth"][0], session, tmp_path, "graphs")
    output = capsys.readouterr().out
    assert "cpp_fused_sin_0" in output and "@triton.jit" in output and "CUDA graph" in output


def test_what_ran_eagerly(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["programs#what-ran-eagerly"][0], session, tmp_path, "eager")
    promised = re.search(r"each\.certain\) +# (.*)", README)
    assert promised is not None and capsys.readouterr().out == f"{promised[1]}\n"


@pytest.mark.slow
@pytest.mark.exhaustive
def test_machine_code_and_the_interpreter(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("triton")
    _run(PYTHON["targets#machine-code"][0], session, tmp_path, "machine")
    output = capsys.readouterr().out
    assert "STG.E" in output and "compiled agrees with eager" in output


def test_the_one_kernel(session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(PYTHON["testing#one-kernel-or-the-reason-why-not"][0], session, tmp_path, "one")
    output = capsys.readouterr().out
    assert "@triton.jit" in output and "is 3 kernels, not one" in output
    assert "(reduction barrier)" in output and "Reduce over the last dimension" in output


def test_expectations(session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(PYTHON["testing#expectations"][0], session, tmp_path, "held")
    output = capsys.readouterr().out
    assert "launches: expected 1, found 2" in output and "library call" in output


def test_what_changed(session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(PYTHON["diff"][0], session, tmp_path, "changed")
    output = capsys.readouterr().out
    assert output.startswith("torch.sort is new ← changed.py:3: return torch.sort(y)[0]")
    promised = re.search(r"so: launches (\d+) → (\d+)", README)
    assert promised is not None
    assert session["difference"].figures["launches"] == (int(promised[1]), int(promised[2]))
    assert (tmp_path / "diff.html").exists()


@pytest.mark.slow
def test_what_would_change_it(
    session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _run(PYTHON["what-if"][0], session, tmp_path, "what_if")
    output = capsys.readouterr().out
    assert "split_reductions=False: launches 2 → 1" in output
    assert "option split_reductions: default became False" in output


@pytest.mark.full
def test_other_numbers(session: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _run(PYTHON["wrong-numbers"][0], session, tmp_path, "numbers")
    output = capsys.readouterr().out
    assert "both are equally good" in output or "values are equal" in output
    assert (tmp_path / "divergence.html").exists() and session["result"].agrees is True
    _run(PYTHON["wrong-numbers#in-a-test"][0], session, tmp_path, "agreement")


def test_what_the_playground_captures(session: dict[str, Any], tmp_path: Path) -> None:
    """A program with its own inputs: the page's other programs are captured in tests/api/playground."""
    _run(PYTHON["play#what-is-captured"][0], session, tmp_path, "program")
    captured = compile_lens.capture(session["f"], *session["inputs"])
    assert session["f"](*session["inputs"]).shape == (64, 256)
    assert len(captured.inputs) == 2 and captured.kernels
    pytest.importorskip("anywidget")
    _run(PYTHON["play#in-a-notebook"][0], session, tmp_path, "cell")
    assert "x[0]" in session["widget"].hello


ELSEWHERE = {
    **{
        f"testing#{section}": 1 for section in ("in-pytest", "snapshots")
    },  # in tests/api/test_pytest_plugin.py
    "testing#without-pytest": 1,  # in tests/cli/test_check.py
}
"""Sections whose Python is run by other tests, with the number of their blocks."""


def test_no_block_is_left_out() -> None:
    others = [page for page in ROOT.glob("docs/*.md") if f"docs/{page.name}" not in PAGES]
    run_here = re.findall(r'PYTHON\["([\w#-]+)"\]\[0\]', Path(__file__).read_text(encoding="utf-8"))
    counts = {key: len(code) for key, code in PYTHON.items() if code}
    assert counts == dict.fromkeys(run_here, 1) | ELSEWHERE
    assert not [p for p in others if re.search("```(python|bash)", p.read_text(encoding="utf-8"))]
    named = {page: [line.split()[1] for line in lines] for page, lines in COMMANDS.items() if lines}
    assert named == {
        "programs-run#run-a-script": ["run"],
        "programs-run#try-the-remedies": ["run"],  # in tests/cli/test_run_remedies.py
        "programs-run#from-a-log": ["import"],  # in tests/api/test_logs.py
        "programs-run#several-ranks": ["merge"],  # in tests/api/test_ranks.py
        "command-line": [
            *("show", "show", "show", "brief", "compare", "show", "support", "open", "import", "import"),
            *("merge", "what-if", "divergence", "doctor"),
            "run",  # in tests/cli/test_run.py
            *("cost", "memory"),
            "run",  # in tests/cli/test_run_remedies.py
        ],
        "diff#on-the-command-line": ["show", "diff"],
        "testing#without-pytest": ["check"],  # in tests/cli/test_check.py
    }


@pytest.mark.parametrize(
    "page",
    [*sorted((ROOT / "docs").rglob("*.md")), *ROOT.glob("README*.md"), *ROOT.glob("tutorials/**/*.md")],
)
def test_commands_inside_sentences_and_their_options_exist(
    page: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    for words in (shlex.split(found) for found in re.findall(r"`(?:[^`]* )?compile-lens ([^`]+)`", text)):
        with pytest.raises(SystemExit) as left:
            cli.main([words[0], "--help"])
        assert left.value.code == 0, words
        known = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", capsys.readouterr().out))
        assert {word for word in words[1:] if word.startswith("-")} <= known, words


def test_a_program_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    words = shlex.split(COMMANDS["programs-run#run-a-script"][0])[1:]
    (tmp_path / "train.py").write_text("import sys\nprint(sys.argv)\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "compile_lens", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "['train.py', '--epochs', '2']\n" and done.stderr == ""
    assert "train.py" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.full
def test_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands run unchanged, with programs of the names that they use."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text("import torch\n\n\ndef net(x):\n    return torch.tanh(x) * x\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text(
        "import torch\n\n\ndef function(x, dim):\n    return torch.softmax(x, dim)\n"
    )
    assert cli.main(shlex.split(COMMANDS["command-line"][0])[1:]) == cli.OK
    assert "backward" in capsys.readouterr().out
    assert (tmp_path / "net.html").exists()
    assert (
        cli.main([*shlex.split(COMMANDS["command-line"][1])[1:], "--quiet", "--out", "record.json"]) == cli.OK
    )
    assert cli.main(shlex.split(COMMANDS["command-line"][7])[1:]) == cli.OK
    assert "softmax" in (tmp_path / "page.md").read_text(encoding="utf-8")
    capsys.readouterr()
    assert cli.main(shlex.split(COMMANDS["command-line"][2])[1:]) == cli.OK
    assert "NVIDIA H100 SXM" in capsys.readouterr().out
    assert cli.main(shlex.split(COMMANDS["command-line"][3])[1:]) == cli.OK
    assert "FACTS" in capsys.readouterr().out
    assert cli.main(shlex.split(COMMANDS["command-line"][4])[1:]) == cli.OK
    assert (tmp_path / "targets.html").exists()
    capsys.readouterr()
    assert cli.main(shlex.split(COMMANDS["command-line"][5])[1:]) == cli.OK
    assert capsys.readouterr().out.startswith("The story of net")
    assert cli.main(shlex.split(COMMANDS["command-line"][6])[1:]) == cli.OK
    assert "MPS" in capsys.readouterr().out
    assert cli.main(shlex.split(COMMANDS["command-line"][11])[1:]) == cli.OK
    assert "what would change net" in (tmp_path / "what-if.html").read_text(encoding="utf-8")
    capsys.readouterr()
    assert cli.main(shlex.split(COMMANDS["command-line"][12])[1:]) == cli.OK
    assert "compiled against eager: net" in capsys.readouterr().out
    assert cli.main(shlex.split(COMMANDS["command-line"][13])[1:]) == cli.OK
    capsys.readouterr()
    assert cli.main(shlex.split(COMMANDS["command-line"][15])[1:]) == cli.OK
    assert "Cost by kernel" in capsys.readouterr().out
    assert cli.main(shlex.split(COMMANDS["command-line"][16])[1:]) == cli.OK
    assert "activation_memory_budget" in (tmp_path / "curve.html").read_text(encoding="utf-8")
    assert cli.main(shlex.split(COMMANDS["diff#on-the-command-line"][0])[1:]) == cli.OK
    assert cli.main([*shlex.split(COMMANDS["diff#on-the-command-line"][0])[1:-1], "before.json"]) == cli.OK
    capsys.readouterr()
    assert cli.main(shlex.split(COMMANDS["diff#on-the-command-line"][1])[1:]) == cli.OK
    assert "Nothing differs" in capsys.readouterr().out
    assert (
        cli.main([*shlex.split(COMMANDS["command-line"][1])[1:], "--quiet", "--out", "before.json"]) == cli.OK
    )
    assert cli.main(shlex.split(COMMANDS["diff#on-the-command-line"][1])[1:]) == cli.DIFFERS
    assert "which --fail-on names" in capsys.readouterr().out
