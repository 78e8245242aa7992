"""Lookups in the compiler's caches, against torch's own counters in a process without a watch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch
from full_text import full
from torch._inductor.utils import fresh_cache

import compile_lens
from compile_lens._torch.ground import hook_points
from compile_lens._torch.watch import events
from compile_lens.measures.compile_time import Cache

pytestmark = pytest.mark.torch

PROGRAM = """
import torch

def f(x, w):
    y = x.sin() @ w
    print(end="")
    return y.exp().sum()

def run():
    torch._dynamo.reset()
    torch.compile(f)(torch.ones(4, 8), torch.ones(8, 8, requires_grad=True)).backward()
"""

COUNTS = """
import json
counters, told = torch._dynamo.utils.counters, []
for off in (False, False, True):
    counters.clear()
    with torch.compiler.config.patch(force_disable_caches=off):
        run()
    told.append({**counters["inductor"], **counters["aot_autograd"]})
print(json.dumps(told))
"""
NAMES = {"Inductor's FX graphs": "fxgraph_cache", "AOTAutograd": "autograd_cache"}


def as_counters(caches: tuple[Cache, ...]) -> Counter[str]:
    found = Counter({f"{NAMES[cache.name]}_hit": cache.hits for cache in caches})
    found.update({f"{NAMES[cache.name]}_miss": cache.misses for cache in caches})
    return +found


@pytest.mark.exhaustive
def test_hits_and_misses_are_those_that_torch_counts(tmp_path: Path) -> None:
    env = {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"),
        "TORCH_TRACE": str(tmp_path / "log"),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + COUNTS], env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    counted = [
        Counter({name: n for name, n in one.items() if name.endswith(("_cache_hit", "_cache_miss"))})
        for one in json.loads(done.stdout)
    ]
    cold, warm, off = counted
    assert (
        cold["fxgraph_cache_miss"]
        == warm["fxgraph_cache_hit"]
        > warm["autograd_cache_hit"]
        > 0
        == off.total()
    )

    program: dict[str, object] = {}
    exec(PROGRAM, program)
    run = program["run"]
    assert callable(run)
    with fresh_cache():
        for expected in (cold, warm):
            with compile_lens.watch() as watched:
                run()
            assert as_counters(watched.caches) == expected
    with torch.compiler.config.patch(force_disable_caches=True), compile_lens.watch() as watched:
        run()
    (none,) = watched.caches
    assert (none.hits, none.misses, none.disabled) == (0, 0, cold["fxgraph_cache_miss"])
    told = " ".join(full(watched).split())
    assert f"switched off for {none.disabled} graphs" in told and "force_disable_caches is set" in told
    assert as_counters(compile_lens.import_trace(tmp_path / "log").caches) == cold + warm
    torch._dynamo.reset()


@pytest.mark.full
def test_a_torch_without_that_lookup_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    find = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda path: None if path == events.LOADS else find(path))
    with compile_lens.watch() as watched:
        torch.compile(lambda x: x.sin() + 1)(torch.ones(3))
    (lost,) = watched.record.missing
    assert lost.stage == "cache messages" and "FxGraphCacheLoadable.load" in lost.reason
    assert " 0 misses" not in full(watched) or "at least 0 misses" in full(watched)
    torch._dynamo.reset()
