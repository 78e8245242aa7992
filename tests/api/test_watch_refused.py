"""Calls that raise because the program forbids compiling, against the same calls in plain torch elsewhere."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compile_lens.results.program import Program
from compile_lens.views.words import program as words

pytestmark = pytest.mark.torch

PROGRAM = """
import json
import torch

@torch.compile(backend="eager")
def f(x, r=None):
    return x.sin() if r is None else x + r

@torch.compile(backend="eager")
def g(x):
    return x.cos()

def tried(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return ""

one = torch.ones
f(one(2)); f(one(2), one(2))
with torch.compiler.set_stance("fail_on_recompile"):
    found = [tried(c) for c in (lambda: f(one(2)), lambda: f(one(3, 3)), lambda: f(one(2), one(2)), lambda: g(one(2)))]
with torch._dynamo.config.patch(error_on_recompile=True):
    found += [tried(c) for c in (lambda: f(one(2)), lambda: f(one(7)))]
print(json.dumps(found))
"""


@pytest.mark.full
def test_a_call_that_raises_rather_than_is_compiled(tmp_path: Path) -> None:
    script, saved = tmp_path / "script.py", tmp_path / "seen.json"
    script.write_text(PROGRAM)
    plain = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    watched = [sys.executable, "-m", "compile_lens", "run", "-o", str(saved), str(script)]
    assert subprocess.run(watched, capture_output=True, text=True, check=True).stdout == plain
    said = json.loads(plain)
    assert [bool(text) for text in said] == [False, True, False, True, False, True]
    program = Program.load(saved)
    raised = [visit for visit in program.evaluations if visit.outcome == "raised"]
    assert [v.limit for v in raised] == ["fail_on_recompile"] * 2 + ["error_on_recompile"]
    assert program.counts.raised == 3 and program.counts.recompiles == 1
    for visit, text in zip(raised, (said[1], said[3], said[5]), strict=True):
        failed = visit.recompilation.failed_guards if visit.recompilation is not None else ()
        told = [line.partition("- ")[2] for line in text.splitlines() if "- 0/" in line]
        assert [f"{one.id}: {one.text}" for one in failed] == [" ".join(line.split()) for line in told]
    causes = [cause for cause in program.causes if cause.kind == "compile that raised"]
    because = " ".join(words.because(cause) for cause in causes)
    assert "x.dim() was 1, now 2; none of 2 variants" in because
    assert "x.size(0) was 2, now 7; none of 2 variants" in because
    assert sorted(cause.function for cause in causes) == ["f", "f", "g"]
