"""Reasons for in-place operators without any effect in the code, against eager PyTorch.

Each program runs without a compiler, with two different values in place of the one that the operator writes. If result
or input differ, something reads the written value, whatever was compiled.
"""

from __future__ import annotations

from pathlib import Path
from types import FunctionType

import pytest
import torch

import compile_lens

pytestmark = pytest.mark.torch

UNREAD = "nothing reads what it computes"
SILENT = "the record does not say what became of it"
PROGRAMS = {
    "copy": "t = x.clone(); t.add_(NUMBER); return x * 2",
    "memory": "t = torch.empty_like(x); t.fill_(NUMBER); return x * 2",
    "sum": "t = x + 1; t.mul_(NUMBER); return x * 2",
    "view": "t = (x + 1)[1:]; t.mul_(NUMBER); return x * 2",
    "item": "t = x.exp(); t[0] = NUMBER; return x * 2",
    "twice": "t = x.clone(); t.add_(NUMBER); t.mul_(0.5); return x * 2",
    "input": "x.add_(NUMBER); return x * 2",
    "view of the input": "t = x[1:]; t.add_(NUMBER); return x * 2",
    "perhaps the input": "r = torch.nn.functional.dropout(x, 0.3, False); r.add_(NUMBER); return x * 2",
    "as float": "r = x.float(); r.add_(NUMBER); return x * 2",
    "contiguous": "r = x.contiguous(); r.add_(NUMBER); return x * 2",
    "read": "t = x.clone(); t.add_(NUMBER); return t * 2",
    "read through a view": "t = x.clone(); v = t[1:]; t.add_(NUMBER); return v * 2",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("writes")


def made(folder: Path, name: str, number: float) -> FunctionType:
    body = PROGRAMS[name].replace("NUMBER", str(number))
    path = folder / f"{name}{number}.py".replace(" ", "_")
    path.write_text("import torch\ndef f(x):\n" + "".join(f"    {line}\n" for line in body.split("; ")))
    scope: dict[str, FunctionType] = {}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope["f"]


def eager(function: FunctionType) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.ones(4)
    return function(x), x


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_nothing_reads_changes_nothing(folder: Path, name: str) -> None:
    one, other = (eager(made(folder, name, number)) for number in (2.0, 3.0))
    read = any(not torch.equal(a, b) for a, b in zip(one, other, strict=True))
    seen = compile_lens.capture(made(folder, name, 2.0), torch.ones(4))
    (write, *_) = (
        node
        for node in seen.compilations[0].graphs["pre_grad"].calls
        if node.kind == "mutation" or node.target.endswith("setitem")
    )
    reason = seen.chain.why_not(("0/0", "pre_grad", write.name))
    assert reason in (("", SILENT) if read else (UNREAD,))


def test_what_is_copied_to_itself() -> None:
    from compile_lens.measures.dead_ends import _copies_to_itself
    from compile_lens.record.graph import Node, Ref

    def node(target: str, *args: object) -> Node:
        return Node("n", "call_method", target, "mutation", True, args)  # type: ignore[arg-type]

    assert _copies_to_itself(node("copy_", Ref("x"), Ref("x")))
    for other in (
        node("copy_", Ref("x"), Ref("y")),
        node("add_", Ref("x"), 1.0),
        node("add_", Ref("x"), Ref("x")),
    ):
        assert not _copies_to_itself(other)
