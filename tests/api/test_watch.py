"""Watched programs: the counts are plain torch's in another process, and nothing in the program changes."""

from __future__ import annotations

import concurrent.futures
import json
import linecache
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import watched
from full_text import full
from torch._dynamo import convert_frame, symbolic_convert

import compile_lens
from compile_lens import Program, RecordError, UsageError
from compile_lens._torch.ground import hook_points
from compile_lens._torch.watch import observers, value_reader
from compile_lens.record import failed_guards
from compile_lens.record.program import COMPILED, LIMIT, NOTHING, RAISED, SKIPPED

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)  # these programs are meant to reach a limit
    yield
    logging.disable(level)
    torch._dynamo.reset()


@pytest.fixture(scope="module")
def torchs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Torch's own counts of the programs, in a process without compile_lens."""
    env = {**os.environ, "TORCH_TRACE": str(tmp_path_factory.mktemp("trace"))}
    done = subprocess.run(
        [sys.executable, watched.__file__], env=env, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.exhaustive
def test_counts_and_results_are_plain_torchs(torchs: dict[str, Any]) -> None:
    assert len(watched.PROGRAMS) == 12
    for name in watched.PROGRAMS:
        with compile_lens.watch() as program:
            result = watched.run(name)
        told, counts = torchs[name], program.counts
        assert json.loads(json.dumps(result)) == told["result"], name
        assert counts.graphs == told["graphs"], name
        assert counts.breaks == told["breaks"], name
        # Dynamo's counter lacks breaks in a loop or a ``try``, where it skips the frame, and branches on a value
        # (one in each of two variants).
        lacking = {"loop": 1, "in_try": 1, "training": 2}.get(name, 0)
        assert counts.breaks - lacking == told["counter"], name
        assert counts.compilations == told["compiled"], name
        limits = sum(v.outcome == LIMIT for v in program.evaluations)
        assert counts.recompiles + limits == told["recompiles"], name
        assert program.record.missing == () and program.record.notes == (), name


@pytest.mark.full
def test_a_training_script_is_told_whole() -> None:
    with compile_lens.watch() as program:
        watched.run("training")
    counts = program.counts
    assert (counts.graphs, counts.breaks, counts.break_sites, counts.recompiles) == (7, 5, 3, 3)
    text = Path(watched.__file__).read_text(encoding="utf-8").splitlines()
    own = {b.ending.frames[-1].line for b in program.breaks if b.ending.frames[-1].file == watched.__file__}
    broken = {
        i for i, line in enumerate(text, 1) if line == '        print(end="")' or "if x.mean() > 100" in line
    }
    net = range(text.index("class Net(nn.Module):"), text.index("def training() -> Any:"))
    assert own == {line for line in broken if line in net}
    again = program.recompiles[0].recompilation
    assert again is not None and (
        again.failed_guards[0].source,
        again.failed_guards[0].old,
        again.failed_guards[0].new,
    ) == (
        "ids.size(1)",
        "4",
        "5",
    )
    assert [d.source for d in again.dynamic] == ["L['ids'].size(1)"]


def test_states_of_lines_by_hand() -> None:
    def f(x: torch.Tensor, twice: bool) -> torch.Tensor:
        y = x.sin()
        if twice:
            y = y * 2
        print(end="")
        return y.cos()

    def left(x: torch.Tensor) -> torch.Tensor:
        for _ in range(2):
            x = x + x.sum().item()
        return x

    first, second = f.__code__.co_firstlineno, left.__code__.co_firstlineno
    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(torch.rand(3), False)
        torch.compile(left, backend="eager")(torch.rand(3))
    found = {line.line: line.states for line in program.lines[__file__]}
    assert {n - first: s for n, s in found.items() if n < second} == {
        1: ("compiled",),
        2: ("compiled",),
        3: ("never",),
        4: ("broke",),  # Dynamo goes on in the middle of the line, and no call of it is in a graph
        5: ("compiled",),
    }
    assert {n - second: s for n, s in found.items() if n >= second} == {
        1: ("eager",),
        2: ("broke", "eager"),
        3: ("eager",),
    }


def test_lines_without_code_have_no_state() -> None:
    def f(x: torch.Tensor, twice: bool) -> torch.Tensor:
        """Doubled.

        Or not.
        """

        # A comment.
        y = x.sin()
        if twice:
            # Not reached.
            y = y * 2

        return y.cos()

    def left(x: torch.Tensor) -> torch.Tensor:
        """Not compiled."""
        for _ in range(2):
            # A comment.
            x = x + x.sum().item()

        return x

    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(torch.rand(3), False)
        torch.compile(left, backend="eager")(torch.rand(3))
    text = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert {text[line.line - 1].strip(): line.state for line in program.lines[__file__]} == {
        "y = x.sin()": "compiled",
        "if twice:": "compiled",
        "y = y * 2": "never",
        "return y.cos()": "compiled",
        "for _ in range(2):": "eager",
        "x = x + x.sum().item()": "broke",
        "return x": "eager",
    }


def test_outcomes_and_reasons() -> None:
    def limited(x: torch.Tensor, n: int) -> torch.Tensor:
        return x + n

    with torch._dynamo.config.patch(recompile_limit=2, specialize_int=True), compile_lens.watch() as program:
        f = torch.compile(limited, backend="eager", dynamic=False)
        for n in range(5):
            f(torch.rand(2), n)
        torch.compile(lambda: 1, backend="eager")()
    told = [(v.outcome, v.id.partition("/")[2]) for f in program.frames for v in f.evaluations]
    assert told == [(COMPILED, "0"), (COMPILED, "1"), (LIMIT, "2"), (NOTHING, "0")]
    limit = program.evaluations[2]
    assert (
        limit.limit == "recompile_limit"
        and limit.cause is not None
        and "recompile limit" in limit.cause.reason
    )
    again = program.evaluations[1].recompilation
    assert again is not None and again.failed_guards[0].line is not None
    assert (again.failed_guards[0].source, again.failed_guards[0].old, again.failed_guards[0].new) == (
        "n",
        "0",
        "1",
    )
    assert again.failed_guards[0].line.line == limited.__code__.co_firstlineno + 1
    assert (again.cache_entries, again.limit) == (1, 2)


def test_guards_have_the_line_that_made_them() -> None:
    def f(x: torch.Tensor, flag: str) -> torch.Tensor:
        y = x.sin()
        return y if flag == "a" else y.cos()

    with compile_lens.watch() as program:
        torch.compile(f, backend="eager")(torch.rand(3), "b")
    guard = next(g for g in program.evaluations[0].guards if g.source == "L['flag']" and "'b'" in g.text)
    assert guard.line is not None and guard.line.line == f.__code__.co_firstlineno + 2


def test_the_line_that_made_a_size_a_number_is_what_torch_logs() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        if x.shape[0] == 5:
            y = y + 1
        return y.cos()

    told: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("torch.fx.experimental.symbolic_shapes")
    log.addHandler(handler)
    logging.disable(logging.NOTSET)
    try:
        with torch.fx.experimental._config.patch(print_specializations=True), compile_lens.watch() as program:
            compiled = torch.compile(f, backend="eager")
            for length in (3, 4, 5, 6):
                compiled(torch.ones(length))
    finally:
        log.removeHandler(handler)
    found = [(v.id, s) for v in program.evaluations for s in v.specializations]
    assert len(told) == len(found) == 1 and told[0].endswith("to 5") and "L['x'].size()[0]" in told[0]
    id, one = found[0]
    assert (id, one.source, one.value) == ("0/2", "x.size(0)", "5")
    line = f.__code__.co_firstlineno + 2
    assert one.line is not None and (one.line.file, one.line.line) == (__file__, line)
    failed = program.recompiles[1].recompilation
    assert failed is not None and failed.failed_guards[0].line is not None
    assert (failed.failed_guards[0].source, failed.failed_guards[0].new) == ("x.size(0)", "5")
    assert (failed.failed_guards[0].line.file, failed.failed_guards[0].line.line) == (__file__, line)


def test_bytes_that_cross_a_break_are_those_of_the_tensors() -> None:
    met: list[tuple[int, int]] = []

    def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        def run(*args: Any) -> Any:
            out = gm.forward(*args)
            sides = [{id(t): t.nbytes for t in side if isinstance(t, torch.Tensor)} for side in (args, out)]
            met.append((sum(sides[0].values()), sum(sides[1].values())))
            return out

        return run

    def f(x: torch.Tensor) -> torch.Tensor:
        y, z = x.sin(), x.double()
        print(end="")
        return y.sum() + z.sum()

    with compile_lens.watch() as program:
        torch.compile(f, backend=backend)(torch.ones(3, 4))
    assert [(g.input_bytes, g.output_bytes) for g in program.graphs] == met == [(48, 144), (144, 8)]


def test_dynamo_does_not_look_at_what_observes_it() -> None:
    """A backward is compiled while the watch observes the program's own frames."""

    def step(x: torch.Tensor) -> None:
        (x.sin() ** 2).sum().backward()

    with compile_lens.watch() as program:
        torch.compile(step, backend="aot_eager")(torch.ones(3, requires_grad=True))
    assert program.counts.breaks == 1
    ours = os.path.dirname(compile_lens.__file__)
    assert not [f for f in program.frames if f.file.startswith(ours)]
    here = {
        f.function for f in program.frames if "-packages" not in f.file
    }  # this excludes pytest's own log handlers
    assert here == {"step"}


def test_what_the_program_raises_it_raises() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        print(end="")
        return x.sin()

    def message() -> str:
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported) as caught:
            torch.compile(f, backend="eager", fullgraph=True)(torch.rand(3))
        return str(caught.value)

    plain = message()
    with compile_lens.watch() as program:
        assert message() == plain
    assert [v.outcome for v in program.evaluations] == [RAISED]
    with pytest.raises(ZeroDivisionError), compile_lens.watch() as program:
        raise ZeroDivisionError("of the program")
    assert program.record.ended == "ZeroDivisionError: of the program"


def _state() -> dict[str, Any]:
    owners = [hook_points.find(path) for path in observers._registry]
    held = {f"{owner}.{name}": vars(owner).get(name) for owner, name in filter(None, owners)}
    levels = {name: logging.getLogger(name).level for name in logging.root.manager.loggerDict}
    return {
        **held,
        "levels": levels,
        "handlers": list(logging.root.handlers),
        "rng": torch.get_rng_state().tolist(),
        "inductor": torch._inductor.config.get_config_copy(),
        "dynamo": torch._dynamo.config.get_config_copy(),
        "grad": torch.is_grad_enabled(),
    }


def test_nothing_is_left_behind() -> None:
    watched.run("two_breaks")
    torch.manual_seed(3)
    before = _state()
    with compile_lens.watch():
        during = _state()
    assert _state() == before
    changed = {name for name in before if before[name] != during[name]}
    assert changed == {name for name in before if "<" in name or "." in name} - {
        name for name in before if before[name] is during[name]
    }
    assert all(during[name] == before[name] for name in ("levels", "handlers", "rng", "inductor", "dynamo"))


def test_watches_and_captures_end_in_any_order() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return x.sin()

    before = (
        convert_frame.CatchErrorsWrapper.__call__,
        symbolic_convert.InstructionTranslatorBase.starts_line,
    )
    watching = compile_lens.watch()
    program = watching.__enter__()
    compile_lens.capture(f, torch.rand(3))
    assert program.evaluations == () and program.graphs == () and program.events == (), (
        "a capture is not the program's"
    )
    torch.compile(f, backend="eager")(torch.rand(3))
    assert len(program.graphs) == 1

    from compile_lens._torch.ground import hooks
    from compile_lens._torch.ground.undo import Undo

    with Undo() as undo:
        hooks.place(undo)  # a capture that outlasts the watch does this
        watching.__exit__(None, None, None)
    after = (
        convert_frame.CatchErrorsWrapper.__call__,
        symbolic_convert.InstructionTranslatorBase.starts_line,
    )
    assert after == before
    assert len(program.graphs) == 1 and program.record is program.record


def _made(number: int) -> Any:
    space: dict[str, Any] = {}
    name, text = f"<f{number}>", f"def f{number}(x):\n    return x.sin() + {number}\n"
    exec(compile(text, name, "exec"), space)
    # Torch 2.11 compiles a function without a source as part of one of its own.
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    return torch.compile(space[f"f{number}"], backend="eager")


def test_threads_of_two_watches_own_only_theirs() -> None:
    """Each of two watches has eight threads."""
    functions = [_made(n) for n in range(16)]
    seen: dict[int, Program] = {}
    both = threading.Barrier(2)

    def one(k: int) -> None:
        with compile_lens.watch() as program:
            both.wait()
            workers = [threading.Thread(target=f, args=(torch.rand(3),)) for f in functions[k::2]]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            both.wait()
        seen[k] = program

    watchers = [threading.Thread(target=one, args=(k,)) for k in (0, 1)]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        watcher.join()
    for k in (0, 1):
        assert sorted(f.function for f in seen[k].frames) == sorted(f"f{n}" for n in range(k, 16, 2))
        assert len(seen[k].graphs) == 8
        assert {e.id for e in seen[k].events if e.id} == {v.id for v in seen[k].evaluations}


def test_a_watch_in_a_watch_sees_its_own_part() -> None:
    with compile_lens.watch() as outer:
        _made(0)(torch.rand(3))
        with compile_lens.watch() as inner:
            _made(1)(torch.rand(3))
        _made(2)(torch.rand(3))
    assert [f.function for f in outer.frames] == ["f0", "f1", "f2"]
    assert [f.function for f in inner.frames] == ["f1"]


def test_a_thread_that_was_there_before() -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        with compile_lens.watch() as program:
            pool.submit(_made(0), torch.rand(3)).result()
        assert [f.function for f in program.frames] == ["f0"]
        ready, done = threading.Event(), threading.Event()
        others: list[Program] = []

        def other() -> None:
            with compile_lens.watch() as found:
                ready.set()
                done.wait(60)
            others.append(found)

        thread = threading.Thread(target=other)
        thread.start()
        ready.wait(60)
        with compile_lens.watch() as program:
            pool.submit(_made(1), torch.rand(3)).result()
        done.set()
        thread.join()
    for found in (program, *others):
        assert found.frames == () and "compiled f1" in found.record.notes[0]


def test_compiled_before() -> None:
    f = _made(0)
    f(torch.rand(3))
    with compile_lens.watch() as program:
        f(torch.rand(3))
        f(torch.rand(3, 3))
    (frame,) = program.frames
    assert frame.prior_ids == ("0/0",) and [v.id for v in frame.evaluations] == ["0/1"]
    with compile_lens.watch() as program:
        f(torch.rand(3))
    assert program.frames == () and [f.prior_ids for f in program.record.prior_frames] == [("0/0", "0/1")]
    assert "2 variants were compiled before" in repr(program)


def test_calls_that_dynamo_leaves_alone_each_time_are_counted() -> None:
    with compile_lens.watch() as program:
        torch._dynamo.reset()
        watched.PROGRAMS["disabled_alone"]()

        @torch.compiler.disable(recursive=False)
        def left(x: torch.Tensor) -> torch.Tensor:
            return x.tan()

        f = torch.compile(lambda x: left(x.sin()), backend="eager")
        for _ in range(40):
            f(torch.rand(3))
    visits = [v for frame in program.frames if frame.function == "left" for v in frame.evaluations]
    assert [v.outcome for v in visits] == [SKIPPED, SKIPPED] and visits[1].count == 40


class Shy:
    """Runs code whenever an attribute is read."""

    asked = 0

    def __getattr__(self, name: str) -> Any:
        Shy.asked += 1
        raise AttributeError(name)

    @property
    def size(self) -> int:
        Shy.asked += 1
        return 3


@pytest.mark.parametrize(
    ("text", "source", "old", "new"),
    [
        ("0/0: n == 3  # return x + n  # t.py:4 in f", "n", "3", "7"),
        ("0/1: L['box'].n == 3", "box.n", "3", "9"),
        ("0/0: len(L['xs']) == 2", "len(xs)", "2", "3"),
        ("0/0: L['xs'][0] == 'a  # b'  # g(xs)  # t.py:4 in f", "xs[0]", "'a  # b'", "1"),
        ("0/0: L['shy'].size == 3", "shy.size", "3", ""),
        ("0/0: L['gone'] == 3", "gone", "3", ""),
        ("0/0: tensor 'x' size mismatch at index 1. expected 16, actual 19", "x.size(1)", "16", "19"),
        (
            "0/0: tensor 'x' requires_grad mismatch. expected requires_grad=0",
            "x.requires_grad",
            "False",
            "True",
        ),
        ("0/0: ___check_obj_id(L['f'], 1234)", "f", "", ""),
        (
            "0/0: L['t'].size()[0] != 5  # if t.shape[0] == 5:  # t.py:4 in f (torch/x.py:26 in g)",
            "t.size(0)",
            "other than 5",
            "5",
        ),
        ("0/0: 2 <= L['t'].stride()[1]", "t.stride(1)", "at least 2", "1"),
        ("0/0: L['t'].size()[7] != 5", "t.size(7)", "other than 5", ""),
        ("0/0: not ___dict_contains('n', L['box'].__dict__)", "box.n", "not set on it", "9"),
        (
            "0/0: expected type of 't' to be a tensor type, but found <class 'torch.nn.parameter.Parameter'>",
            "type(t)",
            "a tensor's",
            "torch.nn.parameter.Parameter",
        ),
        (  # in torch 2.15
            "0/0: expected type of 't' to be <class 'torch.nn.parameter.Parameter'>, but found <class 'torch.Tensor'>",
            "type(t)",
            "torch.nn.parameter.Parameter",
            "torch.Tensor",
        ),
    ],
)
def test_values_of_failed_guards(text: str, source: str, old: str, new: str) -> None:
    box = Shy()
    box.__dict__["n"] = 9
    names = {"n": 7, "box": box, "xs": [1, 2, 3], "shy": Shy(), "t": torch.ones(5, 2)}
    Shy.asked = 0
    found = failed_guards.failed_guard(text, lambda source: value_reader.read_now(source, names, {}))
    assert (found.id, found.source, found.old, found.new) == (text.partition(":")[0], source, old, new)
    assert Shy.asked == 0, "no code of the program runs for it"
    assert found.line is None or (found.line.file, found.line.line, found.line.function) == ("t.py", 4, "f")


def test_an_observer_that_fails_is_noted_and_the_program_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("of the observer")

    monkeypatch.setattr("compile_lens._torch.watch.frame_evaluations._broken", fail)
    with compile_lens.watch() as program:
        watched.run("two_breaks")
    assert program.counts.graphs == 2 and program.breaks == ()
    missing = {one.stage: one.reason for one in program.record.missing}
    assert missing.keys() == {"graph breaks", "which lines were traced"}
    assert "RuntimeError: of the observer (2 times)" in missing["graph breaks"]


def test_a_torch_without_a_hook(monkeypatch: pytest.MonkeyPatch) -> None:
    find = hook_points.find
    lost = "torch._dynamo.symbolic_convert:InstructionTranslatorBase.log_graph_break"
    monkeypatch.setattr(hook_points, "find", lambda path: None if path == lost else find(path))
    with compile_lens.watch() as program:
        watched.run("two_breaks")
    assert program.counts.graphs == 2 and program.breaks == ()
    assert {"breaks", "break_sites"} <= {*program.counts.at_least}
    assert [m.stage for m in program.record.missing] == ["graph breaks", "which lines were traced"]
    assert "✓" not in full(program) and "graph breaks not seen" in full(program)


def test_a_decorated_function() -> None:
    @compile_lens.watch
    def step(n: int) -> torch.Tensor:
        """Its own words."""
        return _made(n)(torch.rand(3))

    assert step.__doc__ == "Its own words." and isinstance(step(0), torch.Tensor)
    step(1)
    program = vars(step)["program"]
    assert [f.function for f in program.frames] == ["f1"] and program.record.name.endswith("step")
    with pytest.raises(UsageError, match="watch decorates a function, not int: 3"):
        compile_lens.watch(3)  # type: ignore[type-var]
    watching = compile_lens.watch()
    with watching, pytest.raises(UsageError, match="open already"):
        watching.__enter__()


@pytest.mark.full
def test_a_program_is_kept_and_opened(tmp_path: Path) -> None:
    with compile_lens.watch() as program:
        watched.run("training")
    kept = Program.load(program.save(tmp_path / "p.json"))
    assert kept.record == program.record and full(kept) == full(program)
    assert kept.counts == program.counts and kept.causes == program.causes and kept.lines == program.lines
    raw = json.loads(program.to_json())
    with pytest.raises(RecordError, match="schema_version 99"):
        Program.from_json(json.dumps({**raw, "schema_version": 99}))
    assert Program.from_json(json.dumps({**raw, "new": 1})).record.unknown_fields == ("program.new: 1",)
    with pytest.raises(RecordError, match="'compile_lens program'"):
        Program.from_json(json.dumps({**raw, "format": "compile_lens capture"}))
    with pytest.raises(RecordError, match="program"):
        compile_lens.load(tmp_path / "p.json")
    with pytest.raises(UsageError, match=r"ends in '\.exe'; use one of \.html .*, \.json"):
        program.save(tmp_path / "p.exe")
