"""Breaks in torch's own code and in Python's library are counted as torch logs them in another process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from full_text import full

pytestmark = pytest.mark.torch

INSIDE = """
import contextlib, os, torch

LOOP = '''
def repeated(function, x):
    for _ in range(2):
        x = function(x)
    return x
'''
def from_file(*path):
    names = {}
    exec(compile(LOOP, os.path.join(*path, "repeated.py"), "exec"), names)
    return names["repeated"]

of_torch = from_file(os.path.dirname(torch.__file__), "optim")
of_python = from_file(os.path.dirname(os.__file__))

def prints(x):
    print("a line")
    return x + 1

@contextlib.contextmanager
def scaled(x):
    print("begin")
    yield x * 2
    print("end")

def in_torchs_loop(x):
    return of_torch(prints, x)

def in_pythons_loop(x):
    return of_python(prints, x)

def in_a_context(x):
    with scaled(x) as y:
        return y.sin()

def main():
    for function in (in_torchs_loop, in_pythons_loop, in_a_context):
        call = torch.compile(function, backend="eager")
        for _ in range(2):
            call(torch.ones(3))
"""
DDP = """
import os, sys, torch, torch.distributed as dist

def main():
    rank = int(os.environ.get("RANK", "0"))
    dist.init_process_group("gloo", rank=rank, world_size=int(os.environ["WORLD_SIZE"]),
                            init_method="file://" + os.environ["STORE"])
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    call = torch.compile(step, backend="aot_eager")
    for _ in range(2):
        call(torch.ones(2, 4))
    dist.destroy_process_group()
"""
WATCHED = """
import compile_lens, json, sys
with compile_lens.watch() as seen:
    program.main()
record = seen.record
ids = [visit.id for visit in seen.evaluations if visit.id]
elsewhere = [b.ending.frames[-1].line for skip in record.library_skips for b in skip.breaks]
document = " ".join(seen.text("full").split())
open(sys.argv[1], "w").write(json.dumps([seen.counts.breaks, ids, elsewhere, document]))
"""


def finished(folder: Path, lines: str, ranks: int, name: str) -> list[str]:
    """Run the ranks of a program, and return the output of each."""
    processes = []
    for rank in range(ranks):
        env = {**os.environ, "TORCH_LOGS": "graph_breaks", "RANK": str(rank), "WORLD_SIZE": full(ranks)}
        env |= {
            "STORE": str(folder / f"store-{name}"),
            "TORCHINDUCTOR_CACHE_DIR": str(folder / f"cache{rank}"),
        }
        command = [sys.executable, "-c", f"import program\n{lines}", str(folder / f"{name}{rank}.json")]
        pipe = subprocess.PIPE
        processes.append(subprocess.Popen(command, cwd=folder, env=env, stdout=pipe, stderr=pipe, text=True))
    try:
        streams = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0] * ranks, streams[0][1][-3000:]
    return [out + error for out, error in streams]


def logged(text: str) -> list[tuple[str, int]]:
    """Compile id and line of each break that torch logs."""
    line = re.compile(r"\[(\d+/\d+)\] \[__graph_breaks\] Graph break .*user code at .*:(\d+)$", re.M)
    return [(id, int(number)) for id, number in line.findall(text)]


@pytest.mark.full
@pytest.mark.parametrize(("program", "ranks"), [(INSIDE, 1), (DDP, 1), (DDP, 2)])
@pytest.mark.cases(full=1)
def test_each_break_that_torch_logs_is_counted(tmp_path: Path, program: str, ranks: int) -> None:
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    plain = finished(tmp_path, "program.main()", ranks, "plain")
    watched = finished(tmp_path, WATCHED, ranks, "watched")
    for rank in range(ranks):
        breaks = logged(plain[rank])
        assert len(breaks) >= 4 and breaks == logged(watched[rank]), "the watch changes none"
        count, ids, elsewhere, document = json.loads((tmp_path / f"watched{rank}.json").read_text("utf-8"))
        assert count == len(breaks) and f"{count} graph breaks" in document
        assert len({id for id, _ in breaks} - set(ids)) == len(elsewhere)
        if program is INSIDE:
            assert elsewhere, "Python's loop was skipped"
            assert f"in the source, {len(elsewhere)} elsewhere" in document
