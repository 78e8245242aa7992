"""Several ranks: the report on a real run of two (gloo) matches the records of the program's own backend."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import two_ranks
from full_text import full
from samples_program import program

import compile_lens
from compile_lens import Program, RecordError, UsageError, merge, rehearse
from compile_lens.cli import main
from compile_lens.measures.ranks import differences
from compile_lens.record.program import ProgramRecord


def port() -> int:
    """A free port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def torchrun(how: str, folder: Path) -> list[dict[str, Any]]:
    """Run two ranks under ``compile-lens run``, and return each rank's own records."""
    command = [
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        f"--master-port={port()}",
        "--no-python",
        sys.executable,
    ]
    watched = ["-m", "compile_lens", "run", "-o", "program.json", two_ranks.__file__, how, str(folder)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, *command, *watched]
    done = subprocess.run(words, env=env, cwd=folder, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((folder / f"told{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "levels"), [("same", set()), ("shape", {"shapes"}), ("order", {"collectives"})]
)
@pytest.mark.cases(full=1)
def test_two_ranks(how: str, levels: set[str], tmp_path: Path) -> None:
    told = torchrun(how, tmp_path)
    found = merge(tmp_path / "program.rank1.json", tmp_path / "program.rank0.json")
    assert found.ranks == (0, 1) and [p.world for p in found.programs] == [2, 2]
    assert {one.level for one in found.differences} == levels
    for rank in (0, 1):
        graphs = found[rank].graphs
        # DDP hands its buckets to the backend one by one: together they are one of torch's graphs.
        handed = told[rank]["handed"][: len(told[rank]["handed"]) - len(told[rank]["pieces"])]
        assert [[c.name for c in g.collectives] for g in graphs][: len(handed)] == handed
        pieces = [(sum(sizes), len(sizes)) for sizes in told[rank]["pieces"]]
        assert [(b.bytes, b.parameters) for g in graphs for b in g.buckets] == pieces
        assert len(pieces) == (3 if how == "same" else 0)
    lines = Path(two_ranks.__file__).read_text(encoding="utf-8").splitlines()
    reduced = next(c for g in found[0].graphs for c in g.collectives if c.name == "all_reduce")
    assert reduced.line is not None and "fc.all_reduce" in lines[reduced.line.line - 1]
    assert (reduced.inputs, reduced.bytes) == (("float32[8]",), 32)
    if how == "shape":
        (one,) = found.differences
        assert one.values == (("x: float32[8] cpu", (0,)), ("x: float32[9] cpu", (1,)))
    if how == "order":
        (one,) = found.differences
        assert [v.partition(" ")[0] for v, _ in one.values] == ["all_reduce", "all_gather_into_tensor"]


def changed(record: ProgramRecord, **graph: Any) -> ProgramRecord:
    return dataclasses.replace(
        record, graphs=(dataclasses.replace(record.graphs[0], **graph), *record.graphs[1:])
    )


def test_each_difference_is_told_once_and_alone() -> None:
    base = program()

    def levels(other: ProgramRecord) -> list[tuple[str, tuple[tuple[int, ...], ...]]]:
        found = differences({0: base, 1: base, 5: other})
        return [(one.level, tuple(ranks for _, ranks in one.values)) for one in found]

    assert levels(base) == []
    assert levels(changed(base, operators=99)) == [("graphs", ((0, 1), (5,)))]
    assert levels(changed(base, inputs=("x: float32[9] cpu",))) == [("shapes", ((0, 1), (5,)))]
    assert levels(dataclasses.replace(base, frames=base.frames[:-1])) == [("functions", ((0, 1), (5,)))]
    first = base.frames[0]
    visits = (dataclasses.replace(first.evaluations[0], breaks=()), *first.evaluations[1:])
    frames = (dataclasses.replace(first, evaluations=visits), *base.frames[1:])
    assert levels(dataclasses.replace(base, frames=frames)) == [("breaks", ((0, 1), (5,)))]
    fewer = (dataclasses.replace(first, evaluations=first.evaluations[:-1]), *base.frames[1:])
    assert levels(dataclasses.replace(base, frames=fewer)) == [
        ("outcomes", ((0, 1), (5,))),
        ("recompiles", ((0, 1), (5,))),
    ]


def test_ranks_of_two_torches_and_of_a_huge_world() -> None:
    base = program()
    environment = dataclasses.replace(base.environment, torch="2.0.1")
    records = (
        dataclasses.replace(base, rank=0, world=10**12),
        dataclasses.replace(base, rank=3, world=10**12, environment=environment, created="later"),
    )
    ranks = merge(*(Program(lambda record=record: record) for record in records))
    text = " ".join(ranks.text("full").split())
    assert f"versions of torch differ: {base.environment.torch} (rank 0); 2.0.1 (rank 3)" in text
    assert "of 1000000000000 ranks, these are missing: 1, 2, 4, " in text


def test_a_rank_beyond_its_world_is_refused() -> None:
    base = program()

    def of(rank: int, world: int) -> Program:
        return Program(lambda: dataclasses.replace(base, rank=rank, world=world, created=f"rank {rank}"))

    with pytest.raises(UsageError, match="is of rank 9 in a world of 2, whose ranks are 0 to 1"):
        merge(of(0, 2), of(9, 2))
    assert "of 10 ranks, these are missing: 1, " in " ".join(merge(of(0, 10), of(9, 10)).text("full").split())
    assert "these ranks are not of a world of 2: 9" in merge(of(0, 2), of(9, 0)).text("full")


def test_files_and_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "<script>alert(1)</script>"
    base = program(hostile)
    paths = []
    for rank, operators in ((0, 5), (1, 6)):
        record = dataclasses.replace(changed(base, operators=operators), rank=rank, world=4)
        paths.append(Program(lambda record=record: record).save(tmp_path / f"{rank}.json"))
    out = [tmp_path / f"found{ending}" for ending in (".html", ".md", ".txt", ".json")]
    words = [word for path in out for word in ("-o", str(path))]
    assert main(["merge", *map(str, paths), *words]) == 0
    page, _, text, data = (path.read_text(encoding="utf-8") for path in out)
    assert hostile not in page and "&lt;script&gt;" in page
    assert (
        "rank 0: 5 operators" in text
        and "rank 1: 6 operators" in text
        and "of 4 ranks, these are missing: 2, 3" in text
    )
    assert json.loads(data)["differences"][0]["values"] == [["5 operators", [0]], ["6 operators", [1]]]
    capsys.readouterr()
    assert main(["merge", *map(str, paths), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["same"] is False
    with pytest.raises(UsageError, match="two ranks or more, not 1"):
        merge(paths[0])
    again = changed(base, operators=7)
    another = Program(lambda: dataclasses.replace(again, rank=0, world=4)).save(tmp_path / "another.json")
    with pytest.raises(UsageError, match="two programs are of rank 0"):
        merge(paths[0], another)
    copy = shutil.copy(paths[0], tmp_path / "copy.json")
    for twice in (paths[0], copy, str(paths[0])):
        with pytest.raises(UsageError, match="are the same program: give each rank's program once") as error:
            merge(paths[0], paths[1], twice)
        assert repr(str(paths[0])) in str(error.value) and repr(str(twice)) in str(error.value)
    assert main(["merge", str(paths[0]), str(paths[0])]) == 2
    assert "are the same program" in capsys.readouterr().err
    none = Program(lambda: base)
    with pytest.raises(UsageError, match="has no rank, and others"):
        merge(paths[0], none)
    other = Program(lambda: dataclasses.replace(base, seconds=base.seconds + 1))
    assert merge(none, other).notes[0].startswith("no program reports its rank")
    logged = Program(lambda: dataclasses.replace(base, log="TORCH_TRACE", rank=1))
    with pytest.raises(UsageError, match="only logs"):
        merge(paths[0], logged)
    (tmp_path / "bad.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RecordError):
        merge(paths[0], tmp_path / "bad.json")
    with pytest.raises(KeyError, match="no rank 7; there are 0, 1"):
        merge(*paths)[7]


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.usefixtures("warm")
@pytest.mark.exhaustive
def test_a_rehearsal_says_what_two_real_ranks_say(tmp_path: Path) -> None:
    torchrun("same", tmp_path)
    real = merge(tmp_path / "program.rank0.json", tmp_path / "program.rank1.json")
    before = torch.random.get_rng_state().tolist(), torch.is_grad_enabled(), dict(os.environ)
    rehearsal = rehearse(two_ranks.main, "same", tmp_path, world_size=2)
    assert before == (torch.random.get_rng_state().tolist(), torch.is_grad_enabled(), dict(os.environ))
    assert not torch.distributed.is_initialized()
    for one, other in zip(real.programs, rehearsal.programs, strict=True):
        # A process that imports while it compiles has more frames: their numbers depend on earlier imports.
        assert [dataclasses.replace(g, seconds=0.0, id="") for g in one.graphs] == [
            dataclasses.replace(g, seconds=0.0, id="") for g in other.graphs
        ]
        assert sum(len(g.buckets) for g in other.graphs) == 3
        assert (one.rank, one.world) == (other.rank, other.world)
    assert rehearsal.differences == real.differences == ()


def by_rank(x: torch.Tensor) -> None:
    rank = torch.distributed.get_rank()
    torch.compile(two_ranks.local, backend="aot_eager")(x[: 7 if rank == 5 else 8])
    if rank == 6:
        raise ValueError("of rank 6")
    torch.compile(two_ranks.gathered, backend="aot_eager")(x)


@pytest.mark.torch
@pytest.mark.slow
def test_a_mismatch_is_found_before_the_cluster() -> None:
    compiled = torch.compile(two_ranks.local, backend="eager")
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list
    rehearsal = rehearse(by_rank, torch.ones(8), world_size=8)
    values = {one.level: one.values for one in rehearsal.differences}
    assert values["shapes"] == (
        ("x: float32[8] cpu", (0, 1, 2, 3, 4, 6, 7)),
        ("x: float32[7] cpu", (5,)),
    )
    assert [ranks for _, ranks in values["collectives"]] == [(0, 1, 2, 3, 4, 5, 7), (6,)]
    assert rehearsal[6].record.ended == "ValueError: of rank 6"
    (gathered,) = (c for g in rehearsal[0].graphs for c in g.collectives)
    assert (gathered.name, gathered.bytes, gathered.group) == ("all_gather_into_tensor", 32, tuple(range(8)))
    # Nothing is left behind: the program then compiles its own code as usual.
    assert entries(two_ranks.local.__code__) == [] == entries(two_ranks.gathered.__code__)
    with compile_lens.watch() as program:
        compiled(torch.ones(9))
    assert program.graphs[0].inputs == ("x: float32[9] cpu",)


@pytest.mark.exhaustive
@pytest.mark.torch
def test_an_error_after_a_rehearsal_is_shown_as_without_one(tmp_path: Path) -> None:
    said = []
    for rehearsed in (
        "",
        "compile_lens.rehearse(torch.compile(f, backend='eager'), torch.ones(3), world_size=3)",
    ):
        text = (
            f"import compile_lens, torch\ndef f(x): return x.sin()\n{rehearsed}\nraise ValueError('later')\n"
        )
        (tmp_path / "s.py").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "s.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
        )
        said.append((done.returncode, done.stderr))
    assert said[0] == said[1] and said[0][1].startswith("Traceback")
    before = sys.excepthook
    with pytest.raises(RuntimeError, match="of the program"):
        rehearse(_raises, world_size=2)
    assert sys.excepthook is before


def _raises() -> None:
    raise RuntimeError("of the program")


def test_what_cannot_be_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="give 2 or more"):
        rehearse(two_ranks.local, torch.ones(3), world_size=1)
    with pytest.raises(UsageError, match="came to no torch\\.compile on rank 0"):
        rehearse(two_ranks.local, torch.ones(3), world_size=2)
    with pytest.raises(ZeroDivisionError):
        rehearse(lambda: 1 // 0, world_size=2)
    with monkeypatch.context() as patch:
        patch.delattr("torch._dynamo.pgo._CODE_STATE")
        with pytest.raises(
            UsageError, match=r"nothing can be rehearsed: .*it has no torch\._dynamo\.pgo\._CODE_STATE"
        ):
            rehearse(lambda: 1, world_size=2)


@pytest.mark.parametrize("compiled", ["nothing", "partial"])
def test_ranks_that_compiled_nothing_or_not_all_are_not_told_as_if_they_had(compiled: str) -> None:
    handed: list[int] = []

    def backend(gm: Any, inputs: Any) -> Any:
        handed.append(len(inputs))
        return gm.forward

    def broken(x: torch.Tensor) -> torch.Tensor:
        torch._dynamo.graph_break()
        return x + 1 if compiled == "partial" else x

    def program() -> None:
        torch.compile(broken, backend=backend)(torch.ones(2))

    rehearsal = rehearse(program, world_size=2)
    assert bool(handed) == (compiled == "partial")
    assert [(rank.counts.graphs > 0, rank.counts.breaks) for rank in (rehearsal[0], rehearsal[1])] == [
        (bool(handed), 1)
    ] * 2
    assert not rehearsal.differences and "✓" not in full(rehearsal)
    page = " ".join(full(rehearsal).split())
    said = {
        "nothing": "no graph was compiled on any of 2 ranks, so there are no graphs, shapes or collectives to "
        "compare; each met the same: 1 break",
        "partial": "◐ all 2 ranks compiled the same: graphs, shapes, breaks, recompiles and collectives; not all of "
        "the program was compiled",
    }
    assert said[compiled] in page and f"cl-{compiled}" in rehearsal._repr_mimebundle_()["text/html"]


DDP = """
import os, sys, torch, torch.distributed as dist
from torch import nn

dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=0, world_size=1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 64), nn.Linear(64, 8)

    def forward(self, x):
        return self.b(self.a(x).relu())

def backend(gm, inputs):  # one by its name has torch import all its backends
    return gm.forward

def program():
    compiled = torch.compile(nn.parallel.DistributedDataParallel(Net()), backend=backend)
    for rows in (4, 6):
        compiled(torch.ones(rows, 8)).sum().backward()

if sys.argv[1] == "plain":
    from torch._dynamo.backends.distributed import DDPOptimizer
    real = DDPOptimizer.compile_fn

    def noted(optimizer, *args):
        made = real(optimizer, *args)
        print(torch._guards.CompileContext.current_compile_id(), [(b.size, len(b.params)) for b in optimizer.buckets])
        return made

    DDPOptimizer.compile_fn = noted
    program()
else:
    import compile_lens
    with compile_lens.watch() as watched:
        program()
    for graph in watched.graphs:
        print(graph.id, [(b.bytes, b.parameters) for b in graph.buckets])
dist.destroy_process_group()
"""


@pytest.mark.exhaustive
@pytest.mark.torch
def test_buckets_of_the_first_compile_are_those_that_plain_torch_makes(tmp_path: Path) -> None:
    (tmp_path / "ddp.py").write_text(DDP, encoding="utf-8")
    told = []
    for how in ("plain", "watched"):
        words = [sys.executable, "ddp.py", how, str(tmp_path / f"store.{how}")]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        told.append(done.stdout.splitlines())
    plain, watched = told
    assert len(plain) == 2 and "(4384, 4)" in plain[0]
    # A watch changes Dynamo's frame count, so the comparison leaves out the frame numbers.
    assert [line.partition("/")[2] for line in watched] == [line.partition("/")[2] for line in plain]


MISSET = """import torch
from compile_lens import rehearse
parallel = torch.nn.parallel.DistributedDataParallel
def backend(gm, inputs):
    return gm.forward
def misset():
    layers = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)])
    torch.compile(parallel(layers, bucket_cap_mb=0.5), backend=backend)(torch.ones(4, 256))
def sound():
    torch.compile(torch.nn.Linear(16, 16), backend=backend)(torch.ones(2, 16))
ended = {p.ended.removeprefix("AssertionError: ")[:30] for p in rehearse(misset, world_size=2).programs}
print(*ended, parallel._get_active_ddp_module())
print([p.ended for p in rehearse(sound, world_size=2).programs])
"""


@pytest.mark.exhaustive
@pytest.mark.torch
def test_an_error_in_ddp_is_not_met_again_by_the_next_rehearsal() -> None:
    """It runs in its own process: Dynamo skips DDP after it gave it up once."""
    done = subprocess.run([sys.executable, "-c", MISSET], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = done.stdout.splitlines()
    assert first.startswith("First bucket should be smaller") and first.endswith(" None")
    assert second == str(["the call returned"] * 2)


def test_what_the_process_compiled_before_is_no_recompile_of_rank_0() -> None:
    """Torch's own code was compiled for another shape before, which a new process would not have."""
    torch._dynamo.reset()
    torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8)), backend="eager")(torch.ones(4, 8))

    def step() -> None:
        torch.compile(torch.nn.Sequential(torch.nn.Linear(4, 4)), backend="eager")(torch.ones(2, 4))

    ranks = compile_lens.rehearse(step, world_size=2)
    assert not ranks.differences, full(ranks)
    assert [one.recompilation for rank in ranks.programs for one in rank.evaluations] == [None] * 2
