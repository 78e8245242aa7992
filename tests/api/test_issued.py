"""Collectives that a process issues: real processes (gloo) wait for each other where a rehearsal predicts it, and calls
from Python and from a graph are recorded alike."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from full_text import full
from samples_program import program

import compile_lens
from compile_lens import merge, rehearse
from compile_lens.record.collectives import EarlierCollectives
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
@pytest.mark.cases(full=1)
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
    assert ("waited" in told) == opposite  # the other rank may first see that its peer gave up

    file = tmp_path / "body.py"
    file.write_text("import torch.distributed as dist\n" + BODY, encoding="utf-8")
    space: dict[str, Any] = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    found = rehearse(
        lambda: torch.compile(space["f"], backend=eager)(torch.ones(4, 16), opposite), world_size=2
    )
    calls = [[one.collective.name for one in p.issued or ()] for p in found.programs]
    order = ["broadcast", "all_reduce"]
    assert calls == [order, order[::-1] if opposite else order]
    broadcast = next(
        one.collective for one in found[0].record.issued or () if one.collective.name == "broadcast"
    )
    assert (broadcast.bytes, broadcast.group, broadcast.arguments) == (256, (0, 1), "root 0")
    line = broadcast.line
    assert line is not None and line.file == str(file) and line.function == "f"
    assert "dist.broadcast" in file.read_text(encoding="utf-8").splitlines()[line.line - 1]
    first = [one for one in found.differences if one.level == "collectives"]
    if opposite:
        assert [(value.partition(" ")[0], ranks) for value, ranks in first[0].values] == [
            ("broadcast", (0,)),
            ("all_reduce", (1,)),
        ]
    else:
        assert not first
    listed = found.to_dict()["collectives"]["0"]
    assert [listed["distinct"][number]["collective"]["name"] for number in listed["order"]] == order


def everything(x: torch.Tensor) -> torch.Tensor:
    size = dist.get_world_size()
    all, part = torch.empty(size * x.numel()), torch.empty(x.numel() // size)
    dist.all_gather_into_tensor(all, x)
    dist.reduce_scatter_tensor(part, x)
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    dist.all_to_all_single(torch.empty_like(x), x)
    return all.sum() + part.sum()


def test_python_and_a_graph_are_recorded_alike_at_each_call() -> None:
    kernels = torch._C._dispatch_dump("c10d::allreduce_")

    def both() -> None:
        compiled = torch.compile(everything, backend=eager)
        for _ in range(3):
            compiled(torch.ones(6))
        everything(torch.ones(6))
        dist.barrier()

    rehearsal = rehearse(both, world_size=3)
    assert not rehearsal.differences
    names = ["all_gather_into_tensor", "reduce_scatter_tensor", "all_reduce", "all_to_all_single"]
    for ranked in rehearsal.programs:
        calls = [dataclasses.replace(one.collective, line=None) for one in ranked.issued or ()]
        assert [one.name for one in calls] == [*names * 4, "barrier"]
        assert calls[:4] == calls[4:8] == calls[8:12] == calls[12:16]
        assert [one.arguments for one in calls[:4]] == ["", "sum", "max", ""]
        assert all(one.group == (0, 1, 2) for one in calls)
        (graph,) = ranked.graphs
        assert [one.name for one in graph.collectives] == names
    assert torch._C._dispatch_dump("c10d::allreduce_") == kernels


@pytest.mark.full
def test_groups_are_known_by_their_members() -> None:
    def some(fault: bool) -> None:
        pair, other = dist.new_group([0, 1]), dist.new_group([2, 3])
        mine = pair if dist.get_rank() < 2 else other
        torch.compile(torch.sin, backend=eager)(torch.ones(2))
        calls = [lambda: dist.all_reduce(torch.ones(3), group=mine), lambda: dist.broadcast(torch.ones(4), 0)]
        for call in reversed(calls) if fault and dist.get_rank() == 1 else calls:
            call()

    assert not rehearse(some, False, world_size=4).differences
    found = rehearse(some, True, world_size=4)
    (one,) = found.at("collectives")  # the members of each group agree, and wait for each other across groups
    assert one.group == (0, 1, 2, 3)
    assert [value.partition(" of ")[0] for value, _ in one.values] == [
        "waits at all_reduce",
        "waits at broadcast",
        "waits at broadcast",
        "waits at broadcast",
    ]


def test_what_was_issued_before_all_ranks_raised_is_there() -> None:
    def raises() -> None:
        dist.all_reduce(torch.ones(2))
        raise ValueError(f"of rank {dist.get_rank()}")

    found = rehearse(raises, world_size=2)
    assert [one.ended for one in found.programs] == ["ValueError: of rank 0", "ValueError: of rank 1"]
    assert [[one.collective.name for one in p.issued or ()] for p in found.programs] == [["all_reduce"]] * 2
    text = " ".join(full(found).split())
    assert "✓" not in text and "the program did not end as it should (rank 0, 1)" in text


@pytest.mark.parametrize(("code", "sound"), [(0, True), (None, True), (3, False)])
def test_a_rank_that_exits_ends_alone(code: int | None, sound: bool) -> None:
    """``SystemExit`` is not an ``Exception``, and neither is the error that torch's checkpoints raise."""

    def exits(early: bool) -> None:
        torch.compile(torch.sin, backend=eager)(torch.ones(3))
        dist.all_reduce(torch.ones(2))
        if dist.get_rank() == 1:
            sys.exit(code)
        if early:
            dist.barrier()

    ranks = rehearse(exits, False, world_size=2)
    assert [one.ended for one in ranks.programs] == ["the call returned", f"exit {code}"]
    assert not ranks.differences and (not ranks.not_compared) is sound
    assert rehearse(exits, True, world_size=2).at("collectives")


def test_what_is_no_exception_ends_a_rank_too() -> None:
    class Refusal(BaseException):
        pass

    def raises() -> None:
        torch.compile(torch.cos, backend=eager)(torch.ones(3))
        if dist.get_rank():
            raise Refusal("no checkpoint")

    assert [one.ended for one in rehearse(raises, world_size=2).programs][1] == "Refusal: no checkpoint"


def test_a_merge_says_that_it_did_not_see_them() -> None:
    base = program()
    one, other = Program(lambda: base), Program(lambda: dataclasses.replace(base, seconds=base.seconds + 1))
    text = " ".join(merge(one, other).text("full").split())
    assert "no difference between the 2 ranks is known" in text and "✓" not in text
    assert "the collectives that were issued were not observed, or not all (rank 0, 1)" in text


def test_a_watch_that_begins_later_says_how_many_it_missed(tmp_path: Path) -> None:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    try:
        x = torch.ones(3)
        for _ in range(2):
            dist.all_reduce(x)
        with compile_lens.watch() as watched:
            dist.broadcast(x, 0)
    finally:
        dist.destroy_process_group()
    issued = watched.record.issued
    assert issued is not None and [one.collective.name for one in issued] == ["broadcast"]
    assert issued.earlier == (EarlierCollectives((0,), 0, 2),)


def test_a_watch_has_the_waits_for_handles_and_tensors_and_dynamo_breaks_as_without(tmp_path: Path) -> None:
    import torch.distributed._functional_collectives as functional

    def step(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        work = dist.all_reduce(y, async_op=True)
        z = x + 1
        dist.barrier()
        work.wait()
        return y + z

    def breaks() -> list[str]:
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        torch.compile(step, backend=eager)(torch.ones(3))
        return sorted(torch._dynamo.utils.counters["graph_break"])

    def waits() -> None:
        x = torch.ones(3)
        first = functional.all_reduce(x, "sum", dist.group.WORLD)
        second = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
        dist.all_reduce(x)
        assert (first + second).sum() == 9
        handles = [dist.all_reduce(x, async_op=True) for _ in range(2)]
        handles[0].get_future()
        handles[1].wait()
        handles[1].wait()
        handles[0].wait()
        dist.all_reduce(x, async_op=True).is_completed()
        dist.all_reduce(x, async_op=True)

    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    methods = dict(vars(torch._C._distributed_c10d.Work))
    try:
        plain = breaks()
        with compile_lens.watch() as watched:
            assert breaks() == plain
        with compile_lens.watch() as waited:
            waits()
    finally:
        dist.destroy_process_group()
    assert dict(vars(torch._C._distributed_c10d.Work)) == methods
    assert any("`wait` of class `Work`" in one for one in plain), "Dynamo does not trace it"
    issued = watched.record.issued
    assert issued is not None and [one.waits for one in issued] == [False, True] and issued.waits == ((2, 0),)
    issued = waited.record.issued
    assert issued is not None and [one.waits for one in issued] == [
        False,
        False,
        True,
        False,
        True,
        None,
        False,
    ]
    assert issued.waits == ((3, 0), (3, 1), (5, 3))


WAITS = """
import sys, threading, time, torch.distributed as dist, compile_lens
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
ticks = []
def tick():
    while True:
        ticks.append(1)
        time.sleep(0.01)
threading.Thread(target=tick, daemon=True).start()
with compile_lens.watch() as watched:
    dist.barrier()
    if rank:
        time.sleep(1)
    before = len(ticks)
    dist.monitored_barrier()
    print(len(ticks) - before, [one.collective.name for one in watched.record.issued], flush=True)
"""


@pytest.mark.exhaustive
def test_other_threads_run_while_a_watched_call_waits(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text(WAITS, encoding="utf-8")
    started = [
        subprocess.Popen(
            [sys.executable, "waits.py", str(rank), str(tmp_path / "store")],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    first, second = (one.communicate(timeout=100)[0].decode().strip() for one in started)
    assert all(one.endswith("['barrier', 'monitored_barrier']") for one in (first, second))
    assert int(first.split()[0]) > 10  # rank 1 arrives a second later
