"""Rehearsed programs of several ranks: no correct one alarms, no fault passes. The expected outcome is by hand, and
real processes (gloo) agree."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import waiting_programs
from full_text import full
from rank_programs import DIFFERS, HANGS, world_of

from compile_lens import rehearse
from compile_lens.views.subjects.ranks import state

pytestmark = [pytest.mark.torch, pytest.mark.full, pytest.mark.filterwarnings("ignore")]

SIZED_BY_VALUES = {
    "as_many_batches_as_the_shortest_of_two",
    "experts_with_own_splits",
    "objects_of_other_sizes",
    "pipeline_with_a_schedule",
}
"""Programs of which a rehearsal cannot compare all sizes: they depend on values of other ranks."""

FROM_ANY = {"messages_from_any_rank"}
"""Programs whose messages are not compared."""

WAITS_UNKNOWN = {"gradients_and_another_group_of_two"}
"""Faults without a known difference: the report names what is not known."""

OWN_SHAPES = {"experts_with_own_splits"}
"""Correct programs whose ranks compile other shapes."""


@pytest.mark.parametrize("name", [*HANGS, *DIFFERS])
@pytest.mark.cases(full=4)
def test_a_sound_program_raises_no_alarm_and_its_fault_is_no_green(name: str) -> None:
    program = {**HANGS, **DIFFERS}[name]
    sound = rehearse(program, False, world_size=world_of(name))
    assert {one.ended for one in sound.programs} == {"the call returned"}
    assert {one.level for one in sound.differences} == ({"shapes"} if name in OWN_SHAPES else set()), str(
        sound
    )
    assert len(sound.not_compared) == (name in SIZED_BY_VALUES | FROM_ANY)
    faulty = rehearse(program, True, world_size=world_of(name))
    assert state(faulty) == "partial" and "✓" not in full(faulty)
    assert bool(faulty.at("collectives")) == (name in HANGS and name not in WAITS_UNKNOWN), full(faulty)
    assert any("when ranks wait" in one for one in faulty.not_compared) == (name in WAITS_UNKNOWN)
    if name in DIFFERS:
        assert faulty.differences


def test_there_are_thirty_programs_and_as_many_faults() -> None:
    assert len(HANGS) + len(DIFFERS) >= 30
    assert not set(HANGS) & set(DIFFERS)


RUN = "import sys, rank_programs, waiting_programs; rank_programs.run(*sys.argv[1:])"


def real(names: list[str], world: int, fault: bool, folder: Path, limit: float) -> list[str]:
    """Return the output of each rank in its own process; for one that exceeds the limit, its output until then."""
    command = [sys.executable, "-c", RUN]
    words = [str(folder / "store"), "fault" if fault else "sound", *names]
    helpers = str(Path(waiting_programs.__file__).parent)
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": helpers}
    files = [folder / f"out{rank}" for rank in range(world)]
    processes = []
    try:
        for rank, file in enumerate(files):
            with file.open("w") as out:
                processes.append(
                    subprocess.Popen(
                        [*command, str(rank), str(world), *words], stdout=out, stderr=out, env=env
                    )
                )
        until = time.monotonic() + limit
        while any(one.poll() is None for one in processes) and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        for one in processes:
            one.kill()
            one.wait()
    return [file.read_text() for file in files]


@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.exhaustive
def test_sound_programs_finish_in_real_processes(world: int, tmp_path: Path) -> None:
    names = [name for name in (*HANGS, *DIFFERS) if world_of(name) == world]
    for printed in real(names, world, False, tmp_path, 200):
        assert [line for line in printed.splitlines() if line.startswith("done ")] == [
            f"done {n}" for n in names
        ]


OTHER_VALUES = ("another_reduction", "pipeline_of_another_size")
"""Faults that gloo does not detect: all ranks finish, with wrong values."""
WAIT = tuple(name for name in HANGS if name not in OTHER_VALUES)
"""Faults that with gloo do not finish on all ranks."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", WAIT)
def test_a_fault_does_not_finish_in_real_processes(name: str, tmp_path: Path) -> None:
    printed = real([name], world_of(name), True, tmp_path, 40)
    assert not all(f"done {name}" in one for one in printed), printed


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*DIFFERS, *OTHER_VALUES])
def test_what_is_no_reason_to_wait_finishes_in_real_processes(name: str, tmp_path: Path) -> None:
    assert all(f"done {name}" in one for one in real([name], 4, True, tmp_path, 100))
