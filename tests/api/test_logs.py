"""Torch's logs of a run contain the same facts as a watch of it, and a damaged log is reported as such."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import farther_forms
import pytest
import traced
from full_text import full

from compile_lens import Program, RecordError, UsageError, import_trace, versions, watch
from compile_lens.cli import main
from compile_lens.record import claims
from compile_lens.record.program import (
    FAILED,
    LIMIT,
    NOTHING,
    RESUMED,
    SKIPPED,
    UNKNOWN,
    FailedGuard,
    FrameEvaluation,
    ProgramRecord,
    Recompilation,
    Specialization,
)
from compile_lens.record.torch_trace.nearest import LoggedVariant, nearest_variant
from compile_lens.record.torch_trace.program import program_from_log
from compile_lens.views.words import program as words

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the watch's record of twelve programs (``live.json``), and torch's log of the same run."""
    folder = tmp_path_factory.mktemp("run")
    env = {**os.environ, "TORCH_TRACE": str(folder / "log")}
    helpers = str(Path(traced.__file__).parent)
    env["PYTHONPATH"] = os.pathsep.join((helpers, env.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, traced.__file__, str(folder / "live.json")],
        env=env,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_places_of_a_log_are_at_least_so_many(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    live, logged = Program.load(run / "live.json"), import_trace(run / "log")
    places = logged.counts.break_sites
    assert 0 < places <= live.counts.break_sites, (
        "two breaks of one line and reason are one place without columns"
    )
    assert main(["import", str(run / "log"), "--full"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"at at least {places} places in the source" in text and f"at least {places} in the source" in text
    if versions.torch_version() >= (2, 12):  # earlier versions log no columns
        told = " ".join(full(live).partition("Lines")[0].split())
        assert "at least" not in told.partition("graph break")[2][:60]
    assert main(["import", str(run / "log"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["at_least"] == ["break_sites"]


def visits(record: ProgramRecord) -> list[tuple[Any, FrameEvaluation]]:
    found = [(frame, visit) for frame in record.frames for visit in frame.evaluations if visit.id]
    return sorted(found, key=lambda one: one[1].number)


def logged(guard: FailedGuard) -> FailedGuard:
    """A failed guard without the facts that a log lacks: columns, and the new value of anything but a tensor."""
    line = guard.line and dataclasses.replace(guard.line, column=None, end_column=None)
    return dataclasses.replace(guard, line=line, new=guard.new if " mismatch" in guard.text else "")


def test_a_log_holds_what_a_watch_saw(run: Path) -> None:
    live, log = Program.load(run / "live.json").record, import_trace(run / "log").record
    assert len(visits(live)) == len(visits(log)) == 40
    places, made = set(), 0
    for (frame, seen), (told_of, told) in zip(visits(live), visits(log), strict=True):
        where = f"{frame.function}:{seen.id}"
        for name in ("function", "file", "line", "resume_line"):
            assert getattr(frame, name) == getattr(told_of, name), where
        for name in ("outcome", "id", "graphs", "limit", "restarts", "dynamic"):
            assert getattr(seen, name) == getattr(told, name), (where, name)
        assert told.caller == (seen.caller if seen.outcome != LIMIT else None), where
        assert told.guard_count == (len(seen.guards) if seen.guards else None), where
        for one, other in zip(seen.breaks, told.breaks, strict=True):
            stack = [
                dataclasses.replace(f, column=None, end_column=None, of_torch=False)
                for f in one.ending.frames
            ]
            assert (
                dataclasses.replace(one, ending=dataclasses.replace(one.ending, frames=tuple(stack))) == other
            ), where
            places.add((stack[-1].file, stack[-1].line, other.gb_id))
        assert (seen.recompilation is None) == (told.recompilation is None), where
        if seen.recompilation is not None:
            failed = tuple(logged(guard) for guard in seen.recompilation.failed_guards)
            # If nothing was compiled for a call, its guards do not show which cache entry was nearest.
            at = UNKNOWN if seen.outcome == LIMIT else seen.recompilation.nearest_entry
            expected = dataclasses.replace(seen.recompilation, failed_guards=failed, nearest_entry=at)
            assert expected == told.recompilation, where
        if seen.cause is not None and seen.outcome != NOTHING:  # a log has no reason for an empty compile
            assert told.cause is not None and (seen.cause.kind, seen.cause.reason) == (
                told.cause.kind,
                told.cause.reason,
            )
        own, others = tensors(seen), tensors(told)
        # For a check made by torch's own code, a log names that code and not the calling line.
        lines = {source: line for source, line in others.items() if line}
        assert lines.items() <= own.items(), where
        made += len(lines)
        assert own.keys() == others.keys(), where
    assert len(places) == 12 and made > 20
    assert [(g.id, g.operators, g.inputs) for g in live.graphs] == [
        (g.id, g.operators, g.inputs) for g in log.graphs
    ]

    def events(record: ProgramRecord) -> Counter[Any]:
        return Counter((e.name, e.id, e.phase, bool(e.duration), e.detail) for e in record.events)

    assert events(live) == events(log)
    assert live.environment.torch == log.environment.torch
    assert log.log == "TORCH_TRACE" and log.seconds == 0 and log.missing


def test_breaks_of_an_older_torch_are_those_that_resume_functions_prove(run: Path) -> None:
    """An older torch writes the same log without graph break entries, and its stacks end at the caller."""
    full = program_from_log(lines(run), "log")
    older, of_break = [], False
    for line in lines(run):
        of_break = '"dynamo_graph_break_reason"' in line or (of_break and line.startswith("\t"))
        if not of_break:
            line = re.sub(r', \{"line": \d+, "name": "[^"]+", "filename": \d+\}\]\}', "]}", line)
            older.append(line.replace('"dynamo_cumulative_compile_time_us"', '"dynamo_time"'))
    record = program_from_log(older, "log")

    def breaks(of: ProgramRecord) -> list[tuple[str, int | None]]:
        return [(v.id, b.graph) for _, v in visits(of) for b in v.breaks if b.outcome == RESUMED]

    def outcomes(of: ProgramRecord) -> list[tuple[str, int, str]]:
        # If a compile ended in a graph break, the log does not show whether the call raised.
        return [(f.function, f.line, v.outcome.replace(FAILED, SKIPPED)) for f, v in visits(of)]

    assert outcomes(record) == outcomes(full)
    assert breaks(record) == breaks(full) and len(breaks(full)) > 10
    assert record.lacks(claims.BREAKS)


@pytest.mark.exhaustive
def test_specializations_of_a_log_are_those_of_a_watch(tmp_path: Path) -> None:
    script = tmp_path / "fixed.py"
    script.write_text(
        "import torch\n"
        "@torch.compile(backend='eager', dynamic=True)\n"
        "def f(x, n):\n"
        "    if x.size(0) == 5:\n"
        "        x = x.sin()\n"
        "    return [x + i for i in range(x.size(1))]\n"
        "f(torch.ones(5, 7), 3)\n"
    )
    environment = {**os.environ, "TORCH_TRACE": str(tmp_path / "log")}
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    (imported,) = import_trace(tmp_path / "log").record.evaluations
    with watch() as watched:
        runpy.run_path(str(script))
    (seen,) = watched.record.evaluations
    assert len(seen.specializations) == 2

    def without_columns(one: Specialization) -> Specialization:
        line = one.line and dataclasses.replace(one.line, column=None, end_column=None)
        return dataclasses.replace(one, line=line)

    assert imported.specializations == tuple(map(without_columns, seen.specializations))


FAILING = """
import torch
def broken(gm, inputs):
    raise RuntimeError("no backend")
@torch.compile(backend=broken)
def f(x):
    return x.sin()
with torch._dynamo.config.patch(suppress_errors=True):
    assert torch.equal(f(torch.ones(3)), torch.ones(3).sin())
"""


@pytest.mark.exhaustive
def test_a_compile_that_failed_is_the_same_in_a_log_and_a_watch(tmp_path: Path) -> None:
    """The call itself succeeds, as the program checks in plain torch."""
    script = tmp_path / "failing.py"
    script.write_text(FAILING)
    environment = {**os.environ, "TORCH_TRACE": str(tmp_path / "log")}
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    imported = import_trace(tmp_path / "log")
    with watch() as watched:
        runpy.run_path(str(script))
    for program in (imported, watched):
        assert [v.outcome for v in program.evaluations] == [FAILED]
        assert (program.counts.raised, program.counts.skipped, program.counts.graphs) == (1, 0, 0)
        assert words.verdict(program.record) == "nothing was compiled: 1 compile that raised"


def tensors(visit: FrameEvaluation) -> dict[str, tuple[str, int] | None]:
    """Guarded tensors, each with the line that added the guard, or None if torch's own code did."""
    found = (g for g in visit.guards if g.kind == "TENSOR_MATCH")
    return {
        g.source: None if g.line is None or "/torch/" in g.line.file else (g.line.file, g.line.line)
        for g in found
    }


def test_the_command_needs_no_torch(run: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from compile_lens.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    out = tmp_path / "program.json"
    words = [
        sys.executable,
        "-c",
        code,
        "import",
        str(run / "log"),
        "-o",
        str(out),
        "-o",
        str(tmp_path / "a.html"),
    ]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["command"] == "import" and told["counts"]["graphs"] == 32 and told["counts"]["breaks"] == 15
    assert Program.load(out).record == import_trace(run / "log").record


def lines(run: Path) -> list[str]:
    (log,) = (run / "log").iterdir()
    with open(log, encoding="utf-8", newline="\n") as file:
        return file.readlines()


def test_a_log_that_is_cut_off_gives_what_was_whole(run: Path) -> None:
    whole = lines(run)
    full = program_from_log(whole, "log")
    text = "".join(whole)
    draw = random.Random(0)
    for _ in range(12):
        cut = text[: draw.randrange(2000, len(text))]
        record = program_from_log(cut.splitlines(keepends=True), "log")
        # The facts that remain are those of the whole log.
        seen, known = visits(record), visits(full)
        assert [(f.function, v.id, v.outcome) for f, v in seen] == [
            (f.function, v.id, v.outcome) for f, v in known[: len(seen)]
        ]
        assert len(seen) == 40 or any("left out" in n for n in record.notes) or len(seen) < 40


def test_damage_is_counted(run: Path) -> None:
    whole = lines(run)
    reasons = next(i for i, line in enumerate(whole) if '"recompile_reasons"' in line)
    damaged = [*whole]
    damaged[reasons + 1] = "\tchanged\n"
    at = next(i for i, line in enumerate(whole) if '"dynamo_start"' in line)
    damaged.insert(at, "some other line\n")
    place = damaged.index(whole[at])
    damaged[place] = whole[at].replace('"stack": [', '"stack": 3, "else": [')
    told = [missing.stage for missing in program_from_log(damaged, "log").missing]
    assert "1 lines of the log" in told
    assert "1 texts of entries (recompile_reasons)" in told
    assert "1 entries (dynamo_start)" in told


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not a log\n",
        "{}\n",
        "\x00\x01" * 400,
        "V1123 19:15:20.875000 1 a.py:1] " + "[" * 50_000,
        "\t\n\t\n",
    ],
)
def test_what_is_no_log_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(text + "\n", encoding="utf-8")
    with pytest.raises(RecordError, match="not a structured trace of torch"):
        import_trace(tmp_path / "a.log")


def test_hostile_entries_are_counted_and_escaped() -> None:
    head = "V1123 19:15:20.875000 6788 torch/a.py:1] "
    bad = "<script>alert(1)</script>"
    ids = {"frame_id": 0, "frame_compile_id": 0, "attempt": 0}
    start = {"dynamo_start": {"stack": [{"line": 1, "name": bad, "filename": 0}]}, **ids}
    metrics = {"compilation_metrics": {"graph_op_count": "many", "cache_size": [], "guard_count": 1}, **ids}
    entries: list[Any] = [
        {"str": [bad, 0]}, start, {"chromium_event": {}, **ids}, {"dynamo_output_graph": 3, **ids},
        {"create_symbol": "s", **ids}, {"describe_source": None, **ids}, {"str": 7},
        {"compilation_metrics": None, **ids}, {"dynamo_start": {"stack": []}, **ids}, {"frame_id": "x"}, metrics,
    ]  # fmt: skip
    record = program_from_log([head + json.dumps(entry) + "\n" for entry in entries], bad)
    assert [v.outcome for v in record.evaluations] == ["compiled"]
    assert any(m.stage.startswith("6 entries") for m in record.missing), record.missing
    from compile_lens.views.render.html import page as page_of
    from compile_lens.views.subjects.program import document

    page = page_of(document(record))
    assert bad not in page and "&lt;script&gt;alert(1)" in page


def test_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="there is no file or folder"):
        import_trace(tmp_path / "none")
    with pytest.raises(UsageError, match="has no log"):
        import_trace(tmp_path)
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text("x\n", encoding="utf-8")
    with pytest.raises(
        UsageError, match=r"2 logs, one for each process: .*merge.* give one of a\.log, b\.log"
    ):
        import_trace(tmp_path)
    assert main(["import", str(tmp_path / "a.log")]) == 2
    assert "TORCH_TRACE=FOLDER" in capsys.readouterr().err


@pytest.fixture(scope="module")
def farther(tmp_path_factory: pytest.TempPathFactory) -> ProgramRecord:
    """The log of programs whose last call is nearer to an older cache entry than to the newest."""
    folder = tmp_path_factory.mktemp("farther")
    program_from_log = "import farther_forms as f; [f.run(one, one.last) for one in f.programs().values()]"
    helpers = str(Path(traced.__file__).parent)
    path = os.pathsep.join((helpers, os.environ.get("PYTHONPATH", "")))
    env = {**os.environ, "TORCH_TRACE": str(folder), "PYTHONPATH": path}
    subprocess.run(
        [sys.executable, "-c", program_from_log], env=env, check=True, capture_output=True, timeout=300
    )
    return import_trace(folder)


PROGRAMS = farther_forms.programs()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_nearest_form_of_a_log_is_that_by_its_guards(name: str, farther: ProgramRecord) -> None:
    """The reported change is the one that makes the call fit, which ``test_watch_nearest`` tries in plain torch."""
    one, frame = PROGRAMS[name], farther.frames[list(PROGRAMS).index(name)]
    assert (frame.function, len(farther.frames)) == (one.function.__name__, len(PROGRAMS))
    again = frame.evaluations[-1].recompilation
    assert again is not None and len(again.failed_guards) == len(one.calls)
    if (
        len(one.calls) == one.limit
    ):  # nothing was compiled for the call, so nothing shows what its arguments were
        assert (
            again.nearest_entry == UNKNOWN
            and again.change is None
            and again.other_guards == again.failed_guards
        )
        assert words.again(again, made=False).startswith(
            f"which of {one.limit} variants it came nearest to is not in the log; "
        )
        assert words.to_try(again) == ""
        return
    assert again.change is not None and again.change.source == one.source
    if one.alike:
        assert again.change.id == frame.evaluations[0].id


@pytest.mark.exhaustive
@pytest.mark.parametrize("last", [1, 0])
def test_a_size_of_0_or_1_has_the_same_advice_in_a_log(last: int, tmp_path: Path) -> None:
    """Torch itself reports that no line causes that guard, and yet names one."""
    script = tmp_path / "rope.py"
    script.write_text(
        "import torch\n"
        "@torch.compile(backend='aot_eager')\n"
        "def rope(pos, q, table):\n"
        "    return torch.cat((q * table[pos], q), -1)\n"
        f"for n in (7, 19, {last}):\n"
        "    rope(torch.arange(n), torch.randn(n, 16), torch.randn(512, 16))\n"
    )
    environment = {**os.environ, "TORCH_TRACE": str(tmp_path / "log")}
    subprocess.run([sys.executable, str(script)], env=environment, check=True)
    imported = import_trace(tmp_path / "log").record
    with watch() as watched:
        runpy.run_path(str(script))
    for record in (imported, watched.record):
        visit = record.recompiles[-1]
        assert visit.recompilation is not None and visit.recompilation.change is not None
        change, said = visit.recompilation.change, words.to_try(visit.recompilation)
        assert (change.source, change.new, change.line) == ("pos.size(0)", str(last), None)
        assert "mark_unbacked" in said and "depends on the size" not in said


def test_a_log_without_the_guards_of_a_form_says_no_nearest_one() -> None:
    failed = tuple(FailedGuard(f"0/{i}", f"n == {i}", "n", str(i), "7") for i in (1, 0))
    tree = "+- RootGuardManager\n| +- GuardManager: source=L['n'], accessed_by=X(), type=<class 'int'>, tag_safe=(0)\n"
    forms = {
        f"0/{i}": LoggedVariant(
            FrameEvaluation("compiled", f"0/{i}"), f"{tree}| | +- EQUALS_MATCH: L['n'] == {i}\n"
        )
        for i in (0, 1)
    }
    new = LoggedVariant(FrameEvaluation("compiled", "0/2"), f"{tree}| | +- EQUALS_MATCH: L['n'] == 7\n")
    assert nearest_variant(failed, forms, new) == 0
    assert nearest_variant(failed, forms, None) == UNKNOWN
    assert nearest_variant(failed, {"0/0": forms["0/0"]}, new) == UNKNOWN
    alike = Recompilation(failed, 2, 8, nearest_entry=UNKNOWN)
    assert alike.change is failed[0], "the same keeps each form from the call"
    other = dataclasses.replace(failed[1], source="m")
    assert dataclasses.replace(alike, failed_guards=(failed[0], other)).change is None
