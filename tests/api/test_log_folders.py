"""Folders with the logs of several ranks, made by hand; each test spells out the collectives of each rank."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from log_entries import artifact, compiled, names

from compile_lens import UsageError, import_trace, merge
from compile_lens.cli import main
from compile_lens.record.ranks import COLLECTIVES


def log(schedules: Sequence[Sequence[str]], calls: Sequence[int] = (), older: bool = False) -> str:
    """A log with a compile for each list of collectives, and the order in which their graphs were called."""
    text = names()
    for number, schedule in enumerate(schedules):
        text += compiled(f"{number}/0", f"f{number}", 10 * number + 1)
        text += artifact("inductor_collective_schedule", json.dumps(schedule), f"{number}/0")
    if older:
        return text + "".join(
            artifact("inductor_graph_execution", json.dumps({"graph": f"graph_{number}"})) for number in calls
        )
    order = [{"compile_id": f"[{number}/0]"} for number in calls]
    return text + (artifact("graph_execution", json.dumps({"graph_execution_order": order})) if calls else "")


def of_rank(rank: int) -> str:
    """A log whose entries have a rank."""
    return log([[A]]) + artifact("other", "{}", rank=rank)


def folder(path: Path, logs: Sequence[str]) -> Path:
    """A folder with a log of each rank, named as by torch, an empty log and an unrelated file."""
    for rank, text in enumerate(logs):
        (path / f"dedicated_log_torch_trace_rank_{rank}_x{rank}f.log").write_text(
            text, encoding="utf-8", newline="\n"
        )
    (path / "other.txt").write_text("x", encoding="utf-8")
    return path


A, B = (
    "torch.ops._c10d_functional.all_reduce_.default",
    "torch.ops._c10d_functional.all_gather_into_tensor.default",
)


def test_a_folder_is_the_logs_in_it_by_the_ranks_in_their_names(tmp_path: Path) -> None:
    alike = [log([[A], [B]]) for _ in range(12)]
    ranks = merge(folder(tmp_path, alike))
    assert ranks.ranks == tuple(range(12)) and not ranks.differences
    assert ranks[11].record.name == "dedicated_log_torch_trace_rank_11_x11f.log"
    assert "all 12 ranks" not in repr(ranks), "what a log does not hold was not compared"


@pytest.mark.parametrize(
    ("logs", "position"),
    [
        ([log([[A, B]]), log([[B, A]])], 0),
        ([log([[A], [B]]), log([[A]])], 1),
        ([log([[A], [B]], [0, 1, 0]), log([[A], [B]], [0, 1])], 2),
        ([log([[A], [B]], [0, 1, 0], older=True), log([[A], [B]], [0, 0, 1], older=True)], 1),
        ([log([[A], [B]], [0, 1]), log([[A], [B]], [0, 1])], None),
        ([log([[A], [B]], [0, 1, 0]), log([[A], [B]])], None),
    ],
)
def test_collectives_of_logs_are_compared_by_call(
    logs: list[str], position: int | None, tmp_path: Path
) -> None:
    ranks = merge(folder(tmp_path, logs))
    assert [one.position for one in ranks.at(COLLECTIVES)] == ([] if position is None else [position])


def test_a_schedule_that_cannot_be_read_is_not_compared(tmp_path: Path) -> None:
    ranks = merge(folder(tmp_path, [log([[A, B]]), log([[A, B]]).replace("all_reduce_", "all_reduceX")]))
    assert not ranks.at(COLLECTIVES) and ranks.not_compared


def test_ranks_are_those_of_entries_unless_several_say_the_same(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    ranks = merge(folder(tmp_path / "a", [of_rank(1), of_rank(0)]))
    assert [(rank, program.name[-8:]) for rank, program in zip(ranks.ranks, ranks.programs, strict=True)] == [
        (0, "_x1f.log"),
        (1, "_x0f.log"),
    ]
    copied = merge(folder(tmp_path / "b", [of_rank(0), of_rank(0)]))
    assert copied.ranks == (0, 1) and any("same rank" in note for note in copied.notes)


def test_the_commands_name_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, [log([[A]]), log([[A]])])
    (tmp_path / "dedicated_log_torch_trace_rank_2.log").touch()
    with pytest.raises(UsageError, match="compile-lens merge"):
        import_trace(tmp_path)
    assert import_trace(tmp_path / "dedicated_log_torch_trace_rank_1_x1f.log").record.rank == 1
    assert main(["merge", str(tmp_path)]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 ranks" in printed and "these logs are empty and are left out" in printed
