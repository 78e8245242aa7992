"""Collectives that Python calls outside of graphs: real processes (gloo) wait for each other where a rehearsal says so,
and what one gives is what a graph that has the same call is said to give."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from samples_program import program

from compile_lens import merge, rehearse
from compile_lens.measures.ranks import collectives
from compile_lens.results.program import Program

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning"),
    pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace"),
]


def eager(gm: Any, inputs: Any) -> Any:
    return gm.forward


BODY = """
def f(x, opposite):
    y = x + 1
    if opposite and dist.get_rank():
        dist.all_reduce(y)
        dist.broadcast(y, 0)
    else:
        dist.broadcast(y, 0)
        dist.all_reduce(y)
    return y.sum()
"""

PLAIN = (
    """
import datetime, sys, torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=int(sys.argv[1]), world_size=2,
                        timeout=datetime.timedelta(seconds=4))
"""
    + BODY
    + """
try:
    f(torch.ones(4, 16), sys.argv[3] == "True")
    print("done")
except RuntimeError as error:
    print("waited" if "Timed out" in str(error) else error)
"""
)


@pytest.mark.full
@pytest.mark.parametrize("opposite", [False, True])
def test_real_processes_wait_where_a_rehearsal_says_that_they_will(opposite: bool, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN, encoding="utf-8")
    words = [str(tmp_path / "store"), str(opposite)]
    started = [
        subprocess.Popen(
            [sys.executable, "plain.py", str(rank), *words], cwd=tmp_path, stdout=subprocess.PIPE
        )
        for rank in range(2)
    ]
    told = [one.communicate(timeout=100)[0].decode().strip() for one in started]
    assert all(one == "done" for one in told) != opposite
    assert ("waited" in told) == opposite  # the other may hear first that its peer gave up

    file = tmp_path / "body.py"
    file.write_text("import torch.distributed as dist\n" + BODY, encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    found = rehearse(
        lambda: torch.compile(space["f"], backend=eager)(torch.ones(4, 16), opposite), world_size=2
    )
    calls = [[one.name for _, one, _ in collectives(p)] for p in found.programs]
    order = ["broadcast", "all_reduce"]
    assert calls == [order, order[::-1] if opposite else order]
    (broadcast,) = found[0].record.eager_collectives or ()
    assert (broadcast.collective.name, broadcast.collective.bytes, broadcast.graphs_before) == (
        "broadcast",
        256,
        1,
    )
    line = broadcast.collective.line
    assert line is not None and line.file == str(file) and line.function == "f"
    assert "dist.broadcast" in file.read_text(encoding="utf-8").splitlines()[line.line - 1]
    first = [one for one in found.differences if one.level == "collectives"]
    if opposite:
        assert [(value.partition(" ")[0], ranks) for value, ranks in first[0].values] == [
            ("broadcast", (0,)),
            ("all_reduce", (1,)),
        ]
        rows = [line.split()[:5] for line in str(found).splitlines() if " of float32[4, 16] " in line]
        assert ["1", "0", "Python", "broadcast", "of"] in rows and [
            "2",
            "1",
            "Python",
            "broadcast",
            "of",
        ] in rows
    else:
        assert not first
    listed = found.to_dict()["collectives"]["0"]
    assert [(one["graph"] != "", one["name"]) for one in listed] == [
        (False, "broadcast"),
        (True, "all_reduce"),
    ]


def everything(x: torch.Tensor) -> torch.Tensor:
    size = dist.get_world_size()
    all, part = torch.empty(size * x.numel()), torch.empty(x.numel() // size)
    dist.all_gather_into_tensor(all, x)
    dist.reduce_scatter_tensor(part, x)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    dist.all_to_all_single(torch.empty_like(x), x)
    return all.sum() + part.sum()


def test_python_and_a_graph_are_told_the_same_of_the_same_calls() -> None:
    methods = {name: vars(dist.ProcessGroup)[name] for name in ("allreduce", "broadcast", "barrier")}

    def both() -> None:
        torch.compile(everything, backend=eager)(torch.ones(6))
        everything(torch.ones(6))
        dist.barrier()

    found = rehearse(both, world_size=3)
    assert not found.differences
    for ranked in found.programs:
        told = [(graph, dataclasses.replace(one, line=None)) for graph, one, _ in collectives(ranked)]
        assert [bool(graph) for graph, _ in told] == [True] * 4 + [False] * 5
        assert [one for _, one in told[:4]] == [one for _, one in told[4:8]]
        assert told[8][1].name == "barrier"
        lines = [one.line.line for _, one, _ in collectives(ranked)[:8] if one.line is not None]
        assert lines[:4] == lines[4:] and len(lines) == 8
    assert methods == {name: vars(dist.ProcessGroup)[name] for name in methods}


def test_what_some_ranks_call_among_themselves_is_listed_and_not_compared() -> None:
    def some() -> None:
        pair = dist.new_group([0, 1])
        torch.compile(torch.sin, backend=eager)(torch.ones(2))
        if dist.get_rank() < 2:
            dist.all_reduce(torch.ones(3), group=pair)
        else:
            dist.send(torch.ones(3), 0)

    found = rehearse(some, world_size=3)
    assert [
        [one.name for _, one, compared in collectives(p) if not compared and one.name == "all_reduce"]
        for p in found.programs
    ] == [["all_reduce"], ["all_reduce"], []]
    assert not found.at("collectives")
    assert "Python, not compared" in str(found)


def test_a_merge_says_that_it_did_not_see_them() -> None:
    base = program()
    one, other = Program(lambda: base), Program(lambda: dataclasses.replace(base, seconds=base.seconds + 1))
    text = " ".join(str(merge(one, other)).split())
    assert "recompiles and collectives of graphs" in text
    assert (
        "collectives that Python calls outside of graphs, as where a graph breaks at one, were not seen"
        in text
    )
