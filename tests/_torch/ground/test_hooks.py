"""Each hook into torch exists and is removed afterwards; without it, one stage is missing and the call succeeds."""

from __future__ import annotations

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from compile_lens import Capture, capture, versions
from compile_lens._torch import backend, session  # noqa: F401  # registers every hook
from compile_lens._torch.ground import hook_points, hooks
from compile_lens._torch.inductor import pipeline
from compile_lens.engine.call import Call
from compile_lens.engine.local import perform
from compile_lens.engine.options import CaptureOptions
from compile_lens.engine.record import NOT_IN_EARLY_REPORT, NOT_LOWERED_YET
from compile_lens.record import claims

pytestmark = pytest.mark.torch

# Hooks that a supported torch lacks: (version, path). hook_points.py records the consequence.
ABSENT: set[tuple[tuple[int, int], str]] = set()
PATHS = sorted((*hooks._registry, *hooks._free))
HERE = [path for path in PATHS if (versions.torch_version(), path) not in ABSENT]


ONE_OF_EACH_ROOM: dict[str, set[str]] = {
    "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break": set(),
    "torch._inductor.compile_fx:_recursive_pre_grad_passes": {"pre_grad"},
    "torch._inductor.dtype_propagation:DtypePropagationOpsHandler.__init__": set(),
    "torch._inductor.cpu_vec_isa:VecISA.check_build": set(),
}
"""A hook of ``frames``, ``graphs``, ``inductor`` and of ``code``, and the stages that are lost with it."""


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def leaf() -> torch.Tensor:
    return torch.linspace(0, 1, 64).requires_grad_()


def lose(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    real = hook_points.find
    monkeypatch.setattr(hook_points, "find", lambda p: None if p == path else real(p))


def test_every_hook_is_there() -> None:
    absent = {path for path in PATHS if hook_points.find(path) is None}
    assert absent == {path for version, path in ABSENT if version == versions.torch_version()}


def held(path: str) -> object:
    """Torch's current object at a hook point."""
    owner, name = hook_points.find(path)  # type: ignore[misc]
    return vars(owner).get(name)


@pytest.mark.exhaustive
def test_every_module_with_a_hook_is_imported_by_a_session() -> None:
    """A module that nothing imports registers no hooks, and nothing reports that they are absent."""
    room = Path(session.__file__).parent
    decorated = re.compile(r"^@(?:hooks\.)?(?:hook|slot_hook|factory_hook|program_hook)\(", re.MULTILINE)
    modules = {
        ".".join((session.__package__, *path.relative_to(room).with_suffix("").parts))
        for path in room.rglob("*.py")
        if decorated.search(path.read_text(encoding="utf-8"))
    }
    assert f"{session.__package__}.inductor.contests" in modules
    loaded = subprocess.run(
        [sys.executable, "-c", f"import sys, {session.__name__}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert modules <= set(loaded)


def test_every_hook_is_put_back() -> None:
    before = {path: held(path) for path in HERE}

    def not_placed() -> list[str]:
        return [path for path in HERE if held(path) is before[path]]

    with hooks.in_place():
        assert not_placed() == []
        with hooks.in_place():
            pass
        assert not_placed() == []
    assert not_placed() == HERE


def test_a_wrapper_of_someone_else_stays() -> None:
    owner, name = hook_points.find(pipeline.RUN)  # type: ignore[misc]
    real = vars(owner)[name]

    def theirs(*args: object, **kwargs: object) -> object:
        return ours(*args, **kwargs)

    with hooks.in_place():
        ours = vars(owner)[name]
        setattr(owner, name, theirs)
    try:
        assert vars(owner)[name] is theirs
        assert capture(wave, leaf()).kernels
    finally:
        setattr(owner, name, real)


def test_a_stage_that_does_not_apply_is_not_missing_for_a_lost_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    lose(monkeypatch, "torch._inductor.compile_fx:partition_fn")
    found = capture(wave, torch.rand(8))
    assert found.missing == () and "joint" in {a.stage for a in found.not_applicable}


def test_what_torch_renamed_keeps_its_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patched torch has the function under its new name only."""
    from torch._inductor import compile_fx

    old, new = "torch._inductor.compile_fx:partition_fn", "torch._inductor.compile_fx:split_joint"
    real = compile_fx.partition_fn
    monkeypatch.setattr(
        compile_fx, "split_joint", lambda *args, **kwargs: real(*args, **kwargs), raising=False
    )
    monkeypatch.delattr(compile_fx, "partition_fn")
    assert hook_points.find(old) is None and "joint" in hook_points.lost_claims()
    monkeypatch.setitem(hook_points.RENAMED, old, new)
    owner, name = hook_points.find(old)  # type: ignore[misc]
    assert (owner, name) == (compile_fx, "split_joint") and not hook_points.lost_claims()
    before = compile_fx.split_joint
    with hooks.in_place():
        assert compile_fx.split_joint is not before
    assert compile_fx.split_joint is before


STAGE_OF = {
    path: claim for path, resting in hook_points.RESTS.items() for claim in resting if claim in claims.STAGES
}


@pytest.mark.parametrize("path", sorted(STAGE_OF))
def test_a_lost_hook_loses_one_stage(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    lose(monkeypatch, path)
    found = capture(wave, leaf())
    (compilation,) = found.compilations
    stage = STAGE_OF[path]
    missing = {m.stage: m.reason for m in compilation.missing}
    wanted = [stage] if stage in ("pre_grad", "joint") else [f"forward.{stage}", f"backward.{stage}"]
    assert sorted(missing) == sorted(wanted)
    assert all("lacks the hook" in reason and torch.__version__ in reason for reason in missing.values())
    assert len(found.kernels) == (0 if stage == "code" else 2)


def early(fn: object, *args: torch.Tensor) -> list[Capture]:
    """The partial captures that are reported each time a graph is about to be lowered."""
    reports: list[Capture] = []
    perform(Call.read(fn, args, None, CaptureOptions()), lambda traced: reports.append(traced()))
    return reports


@pytest.mark.parametrize("path", sorted(STAGE_OF))
def test_a_lost_hook_is_not_a_stage_to_come(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    lose(monkeypatch, path)
    (report,) = early(wave, leaf())
    missing = {m.stage: m.reason for m in report.compilations[0].missing}
    stage = STAGE_OF[path]
    lost = {key for key in missing if stage in (key, key.removeprefix("forward."))}
    assert lost and all("lacks the hook" in missing[key] for key in lost)
    to_come = {"backward", *(f"forward.{one}" for one in ("post_grad", "loops", "groups", "code"))}
    assert missing.keys() - lost == to_come - lost
    assert {missing[key] for key in to_come - lost} == {NOT_LOWERED_YET}


def test_a_graph_lowered_before_is_not_one_to_come() -> None:
    """The backward has no operation, so there is nothing to lower."""

    def broken(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        torch._dynamo.graph_break()
        return torch.cos(y)

    before, now = early(broken, leaf())[1].compilations
    lowered = ("post_grad", "loops", "groups", "code")
    assert {m.stage: m.reason for m in before.missing} == {
        f"forward.{one}": NOT_IN_EARLY_REPORT for one in lowered
    }
    assert {m.stage for m in before.not_applicable} == {f"backward.{one}" for one in lowered}
    assert {m.stage: m.reason for m in now.missing} == dict.fromkeys(
        ("backward", *(f"forward.{one}" for one in lowered)), NOT_LOWERED_YET
    )


@pytest.mark.parametrize("path", sorted(set(PATHS) - set(STAGE_OF)))
@pytest.mark.cases(full=6)
def test_a_lost_detail_loses_no_stage(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    lose(monkeypatch, path)
    found = capture(wave, leaf())
    assert not found.missing
    assert len(found.kernels) == 2
    assert any("lacks the hook" in note for note in found.notes)


def facts(seen: Capture) -> dict[str, object]:
    """The reported facts of a capture: each node, kernel, ledger row, reason and coverage."""
    told: dict[str, object] = {
        "coverage": seen.coverage(),
        "ledger": [row.figures for row in seen.ledger.rows],
    }
    for compilation in seen.compilations:
        for key, graph in compilation.graphs.items():
            told[key] = [(node.name, node.op, node.target, node.origins) for node in graph.nodes]
            if key.endswith("groups"):
                names = [node.name for node in graph.calls]
                told[f"why {key}"] = [
                    str(seen.why(*pair, phase=key.partition(".")[0])) for pair in pairwise(names)
                ]
    for kernel in seen.kernels:
        told[kernel.name] = (
            kernel.launches,
            kernel.launch_lines,
            [(line.line, line.origins) for line in kernel.lines],
        )
    return told


@pytest.mark.cases(quick=len(ONE_OF_EACH_ROOM))
@pytest.mark.parametrize("path", ONE_OF_EACH_ROOM)
def test_a_lost_hook_changes_no_other_claim(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    def rows(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1).cumsum(0).sin()

    x = leaf().detach().reshape(8, 8).requires_grad_()
    whole = facts(capture(rows, x))
    lose(monkeypatch, path)
    lost = facts(capture(rows, x))
    assert {key for key in whole if key not in lost} == ONE_OF_EACH_ROOM[path]
    assert {key: told for key, told in lost.items() if told != whole[key]} == {}


@pytest.mark.parametrize(
    ("text", "pair"),
    [("2.11.0", (2, 11)), ("2.2.1+cu118", (2, 2)), ("3.0.0a0+git1", (3, 0)), ("2.13", (2, 13))],
)
def test_versions_are_numbers(text: str, pair: tuple[int, int]) -> None:
    assert versions.parse(text) == pair


def test_a_version_without_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match="'main'"):
        versions.parse("main")
