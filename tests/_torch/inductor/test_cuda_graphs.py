"""Parts of a graph that torch would record as CUDA graphs, against the parts and reasons in torch's own log."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from full_text import full

pytestmark = [pytest.mark.torch, pytest.mark.slow]

HELPER = Path(__file__).parents[2] / "helpers" / "cuda_graphs.py"


@pytest.fixture(scope="module")
def found() -> dict[str, dict[str, Any]]:
    out = subprocess.run(
        [sys.executable, str(HELPER)], check=True, capture_output=True, text=True, timeout=900
    ).stdout
    return {one["name"]: one for one in map(json.loads, out.splitlines())}


def logged(lines: list[str]) -> list[tuple[bool, int, dict[str, str]]]:
    """Torch's first list of partitions: for each, if it is recorded, its number of nodes, and its reasons by node."""
    parts: list[tuple[bool, int, dict[str, str]]] = []
    for line in lines[1:]:
        if line.startswith("Created"):
            break
        if at := re.match(r"  Partition \d+: (\d+) nodes, (non-)?cudagraphable", line):
            parts.append((at[2] is None, int(at[1]), {}))
        elif at := re.match(r"    (\S+): reason=(.*?), ir=", line):
            parts[-1][2][at[1]] = at[2]
    return parts


PROGRAMS = ("clean", "item", "dynamic", "mutated", "incompatible", "branch", "moved", "parameters")


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_and_reasons_are_those_of_torch(found: dict[str, dict[str, Any]], name: str) -> None:
    (made,) = found[name]["made"]
    assert made["unknown_reason"] == "" and made["graph_partition"] and not made["enabled"]
    said = [(part["recorded"], len(part["groups"]), dict(part["reasons"])) for part in made["partitions"]]
    if name == "branch":  # torch refuses the whole graph while it lowers, whatever its parts
        assert (
            said == []
            and made["skip_reason"] == "control flow operator: torch.cond"
            and made["node"] == "cond"
        )
    else:
        assert said == logged(found[name]["log"]) and said and made["skip_reason"] == ""


def test_what_each_program_comes_to(found: dict[str, dict[str, Any]]) -> None:
    parts = {n: [p["recorded"] for p in one["made"][0]["partitions"]] for n, one in found.items()}
    assert parts["clean"] == [True] and parts["incompatible"] == [True, False, True]
    assert parts["moved"] == [True, False] and parts["dynamic"] == [False]
    assert True in parts["item"] and False in parts["item"]
    mutated = {n: [m["static"] for m in one["made"][0]["mutated_inputs"]] for n, one in found.items()}
    assert {n: m for n, m in mutated.items() if m} == {"mutated": [False], "parameters": [True] * 3}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("item", "x.sum().to(torch.int64).item()"),
        ("dynamic", "return (x.sin() + 1) @ x.t()"),
        ("mutated", "x.add_(1)"),
        ("incompatible", "z = torch.ops.of_test.unsafe(y)"),
        ("branch", "return torch.cond("),
        ("moved", 'y = (x @ x).to("cpu") + 1'),
    ],
)
def test_the_line_that_prevents_it_is_named(found: dict[str, dict[str, Any]], name: str, text: str) -> None:
    source = HELPER.read_text(encoding="utf-8").splitlines()
    refused = [row for row in found[name]["rows"] if row[2] in ("no", "nothing")]
    lines = {int(n) for row in refused for n in re.findall(r"\d+", row[5].partition(":")[2])}
    assert any(text in source[line - 1] for line in lines), (refused, lines)


REFUSES = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
import torch._inductor.config as config
from torch._inductor import lowering
from torch._inductor.output_code import CompiledFxGraph
from cuda_graphs import branch

assert "compile_lens" not in {m for m in sys.modules if "_torch" in m}
config.fx_graph_cache = False
torch._functorch.config.enable_autograd_cache = False
lowering.is_triton = lambda _: True  # what torch asks of each tensor that is given to a branch
real = CompiledFxGraph.__init__


def noted(graph, *args, **kwargs):
    real(graph, *args, **kwargs)
    print(json.dumps(graph.disabled_cudagraphs_reason), flush=True)


CompiledFxGraph.__init__ = noted
torch.compile(branch, mode="reduce-overhead")(torch.rand(16, 16))
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="builds C++")
@pytest.mark.exhaustive
def test_a_branch_is_refused_with_the_words_and_the_line_of_torch(found: dict[str, dict[str, Any]]) -> None:
    """The oracle is a plain torch compile on this machine that takes the tensors for a GPU's, and prints its reason."""
    words = [sys.executable, "-c", REFUSES, str(HELPER.parent)]
    out = subprocess.run(words, check=True, capture_output=True, text=True, timeout=300).stdout
    reason = json.loads(out.splitlines()[0])
    (made,) = found["branch"]["made"]
    assert reason.startswith(made["skip_reason"] + ".") and made["skip_reason"]
    torchs = re.findall(r'cuda_graphs\.py", line (\d+), in branch', reason)
    (row,) = [row for row in found["branch"]["rows"] if row[2] == "nothing"]
    assert torchs and row[4] == made["skip_reason"] and row[5] == f"cuda_graphs.py:{torchs[-1]}"


IN_A_PROGRAM = {
    "clean": "",
    "mutated": "x.add_(1)",
    "moved": '.to("cpu")',
    "parameters": "self.norm(x)",
    "branch": "",
}
"""Functions of a program, and the line of each that is named."""


@pytest.fixture(scope="module")
def program() -> Any:
    import cuda_graphs
    import torch

    import compile_lens

    torch._dynamo.reset()
    known = {name: (function, args) for name, function, args, _ in cuda_graphs.programs()}
    with compile_lens.watch() as program:
        for name in IN_A_PROGRAM:
            function, args = known[name]
            torch.compile(function, backend="eager")(*args)
    return program


@pytest.fixture(scope="module")
def asked(program: Any) -> Any:
    return program.with_cuda_graphs("h100")


def test_a_program_says_of_each_graph_what_torch_does(
    found: dict[str, dict[str, Any]], program: Any, asked: Any
) -> None:
    phases = {(one.graph, one.result.phase): one for one in asked.record.cuda_graphs}
    assert program.record.cuda_graphs == ()
    assert [*phases] == [
        (0, "inference"), (1, "inference"), (2, "inference"), (3, "forward"), (3, "backward"), (4, "inference"),
    ]  # fmt: skip
    source = HELPER.read_text(encoding="utf-8").splitlines()
    for number, (name, line) in enumerate([*IN_A_PROGRAM.items()][:4]):
        one = next(one for (graph, _), one in phases.items() if graph == number)
        said = [(part.recorded, len(part.groups), dict(part.reasons)) for part in one.result.partitions]
        if name != "parameters":  # its log was made without a backward
            assert said == logged(found[name]["log"]), name
        static = [m["static"] for m in found[name]["made"][0]["mutated_inputs"]]
        assert [m.static for m in one.result.mutated_inputs] == static, "buffers stay where they are"
        assert (one.result.skip_reason, one.device, one.result.unknown_reason) == ("", "h100", "")
        told = {source[f.line - 1] for _, frames in one.lines for f in frames if f.file == str(HELPER)}
        assert any(line in text for text in told) if line else not told, (name, told)
    assert phases[4, "inference"].result.skip_reason == found["branch"]["made"][0]["skip_reason"]


def test_a_program_shows_it_in_every_view(program: Any, asked: Any, tmp_path: Path) -> None:
    from compile_lens import Program

    assert Program.load(asked.save(tmp_path / "p.json")).record == asked.record
    source = HELPER.read_text(encoding="utf-8").splitlines()
    moved = 1 + next(i for i, line in enumerate(source) if '.to("cpu")' in line)
    for end in ("html", "txt", "md"):
        text = asked.save(tmp_path / f"p.{end}").read_text(encoding="utf-8")
        flat = " ".join(re.sub(r"\\(.)", r"\1", text).split())
        missed = [
            words
            for words in (
                "it runs on the CPU (cpu ops)",
                f"cuda_graphs.py:{moved}",
                "1 part is recorded, 1 not",
                "unless it is itself of an earlier CUDA graph",
                "it is written into, at an address that stays",
                "Unknown until it runs",
                "3 of 6 phases recorded whole for h100",
            )
            if words not in flat
        ]
        assert not missed, (end, missed)
    assert "cuda graphs" not in full(program).lower().replace("cuda_graphs", "")


def test_a_device_that_tracing_wrote_into_a_graph_is_said_to_be_of_then() -> None:
    import torch

    import compile_lens

    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sin() @ x + torch.arange(16, device=x.device)

    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(torch.rand(16, 16))
    (one,) = program.with_cuda_graphs("h100").record.cuda_graphs
    line = f.__code__.co_firstlineno + 1
    assert any(f"(arange, {Path(__file__).name}:{line})" in said for said in one.may_differ), one.may_differ


def test_what_has_no_cuda_graphs_is_refused() -> None:
    import torch

    import compile_lens

    with compile_lens.watch() as program:
        torch.compile(torch.sin, backend="eager")(torch.rand(4))
        torch.compile(lambda x: x.sin(), backend="eager")(torch.rand(4))
    with pytest.raises(compile_lens.UsageError, match=r"no graph of the program is for an NVIDIA GPU.*h100"):
        program.with_cuda_graphs()
    with pytest.raises(compile_lens.UsageError, match="has no CUDA graphs"):
        program.with_cuda_graphs("m2")
    again = compile_lens.Program.from_json(program.to_json())
    with pytest.raises(compile_lens.UsageError, match="not retained"):
        again.with_cuda_graphs("h100")


def test_of_a_cpu_nothing_is_said() -> None:
    import torch

    import compile_lens
    from compile_lens.views.findings import findings

    capture = compile_lens.capture(torch.sin, torch.rand(4))
    assert capture.compilations[0].cuda_graphs == ()
    assert "cuda_graphs" not in {f.key for f in findings(capture)}
