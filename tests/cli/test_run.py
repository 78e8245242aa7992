"""``compile-lens run``: a program behaves as under plain Python, and leaves a report however it ends."""

from __future__ import annotations

import ast
import json
import os
import random
import re
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest
import samples_program

import compile_lens
from compile_lens import Program
from compile_lens.cli import main
from compile_lens.record.journal import CUT_OFF, NOTHING_SEEN

pytestmark = [pytest.mark.torch, pytest.mark.slow]

SCRIPT = '''
"""A program that ends in many ways."""
import atexit, os, pickle, sys, threading, time
os.environ["TORCH_COMPILE_OF_THE_PROGRAM"] = "set before torch is imported"
assert "torch" not in sys.modules, sorted(m for m in sys.modules if m.startswith("torch"))[:3]
import torch

class Own:
    pass

def f(x, n):
    print(end="")
    return x.sin() + n

def say(*words):
    print(*words, flush=True)

def main():
    how = sys.argv[1]
    say(sys.argv, __name__, __file__, sys.path[0], __spec__ and __spec__.name, __package__, __doc__)
    say(pickle.loads(pickle.dumps(Own())).__class__ is Own, sys.modules["__main__"].Own is Own)
    g = torch.compile(f, backend="eager")
    torch.manual_seed(0)
    say(g(torch.ones(3), 1).tolist(), torch.rand(2).tolist())
    if how == "end":
        atexit.register(lambda: say("at exit", g(torch.ones(3), 2).tolist()))
        threading.Thread(target=lambda: (time.sleep(0.5), say("thread", g(torch.ones(3), 3).tolist()))).start()
        os.chdir("/")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "raise":
        raise ValueError("of the program")
    if how == "exit":
        sys.exit(7)
    if how == "words":
        sys.exit("some words")
    if how == "fork":
        if os.fork() == 0:
            say("child")
            sys.exit(5)
        say("parent", os.waitstatus_to_exitcode(os.wait()[1]))
    if how == "hard":
        os._exit(9)
    if how == "crash":
        os.abort()
    if how == "wait":
        say("waiting")
        time.sleep(60)
    if how == "on":
        for n in range(2, 10**9):  # until it is killed
            torch.compile(f, backend="eager", dynamic=False)(torch.ones(n), n)

main()
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("program")
    (place / "script.py").write_text(SCRIPT, encoding="utf-8")
    (place / "package").mkdir()
    (place / "package" / "__init__.py").write_text("", encoding="utf-8")
    (place / "package" / "__main__.py").write_text(SCRIPT, encoding="utf-8")
    return place


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell ignores interrupts for its background processes, and their children inherit it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def both(folder: Path, report: Path, *words: str) -> tuple[str, Program]:
    """Run a program under Python and under ``compile-lens run``, with equal observable results; return its output."""
    plain = start(folder, *words)
    watched = start(folder, "-m", "compile_lens", "run", "-o", str(report), *words)
    wanted, output = plain.communicate(timeout=300), watched.communicate(timeout=300)
    assert output[0] == wanted[0]
    assert [line for line in output[1].splitlines() if "<frozen runpy>" not in line] == [
        line for line in wanted[1].splitlines() if "<frozen runpy>" not in line
    ]
    assert watched.returncode == plain.returncode
    assert not report.with_name(report.name + ".part").exists()
    return wanted[0], Program.load(report)


@pytest.mark.cases(full=1)
@pytest.mark.parametrize(
    ("how", "ended"),
    [
        ("end", "the program ended"),
        ("raise", "ValueError: of the program"),
        ("exit", "exit 7"),
        ("words", "exit 'some words'"),
        ("fork", "the program ended"),
        ("interrupt", "KeyboardInterrupt"),
    ],
)
def test_a_script_is_as_under_python(folder: Path, tmp_path: Path, how: str, ended: str) -> None:
    out, program = both(folder, tmp_path / "r.json", "script.py", how, "--json", "-o", "x")
    assert "__main__" in out and f"['script.py', '{how}', '--json', '-o', 'x']" in out
    assert program.record.ended == ended and program.record.name == "script.py"
    assert program.record.arguments == (how, "--json", "-o", "x")
    # A thread compiles once more after the end of the script, for any number: it is recorded too.
    assert program.counts.graphs == (2 if how == "end" else 1)
    assert len({v.thread for v in program.evaluations}) == (2 if how == "end" else 1)
    assert program.counts.break_sites == 1 and program.record.missing == ()


@pytest.mark.exhaustive
def test_a_module(folder: Path, tmp_path: Path) -> None:
    out, program = both(folder, tmp_path / "r.json", "-m", "package", "end", "--flag")
    assert "package.__main__" in out and program.counts.graphs == 2


def _until(process: subprocess.Popen[str], word: str) -> str:
    assert process.stdout is not None
    text = ""
    while word not in text:
        line = process.stdout.readline()
        assert line, process.communicate()
        text += line
    return text


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize(
    ("number", "ended"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "SIGTERM")]
)
@pytest.mark.cases(full=1)
def test_signals(folder: Path, tmp_path: Path, number: signal.Signals, ended: str) -> None:
    codes = []
    for words in ([], ["-m", "compile_lens", "run", "-o", str(tmp_path / "r.json")]):
        process = start(folder, *words, "script.py", "wait")
        _until(process, "waiting")
        time.sleep(0.5)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        codes.append((process.returncode, errors.splitlines()[-1:], errors.count("File")))
    assert codes[0] == codes[1]
    program = Program.load(tmp_path / "r.json")
    assert program.record.ended == ended and program.counts.graphs == 1


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.exhaustive
def test_what_was_seen_is_there_after_a_kill(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.html"
    part = tmp_path / "r.html.part"
    for _ in range(3):
        process = start(folder, "-m", "compile_lens", "run", "-o", str(report), "script.py", "on")
        _until(process, "[0.")
        time.sleep(random.uniform(0.0, 2.0))
        process.kill()
        process.communicate()
        assert not report.exists()
        program = Program.load(part)
        assert program.record.ended == CUT_OFF and program.counts.graphs >= 1
        assert [v.number for v in program.evaluations] == list(range(len(program.evaluations)))
        assert program.record.missing[0].stage == "the time of compiling"
    # A truncated line is left out, and reported.
    text = part.read_text(encoding="utf-8")
    for _ in range(20):
        at = random.randrange(text.index("\n") + 2, len(text))
        part.write_text(text[:at], encoding="utf-8")
        assert len(Program.load(part).evaluations) <= len(program.evaluations)


LENS = Path(sysconfig.get_path("scripts")) / "compile-lens"
"""The installed command."""


@pytest.mark.cases(full=1)
@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize("torch", ["", "import torch"])
@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 2)", -signal.SIGINT),
        # Python forgets the interrupt when it creates such a class.
        (
            "import atexit; atexit.register(lambda: __import__('typing').NamedTuple('N')); raise KeyboardInterrupt",
            1,
        ),
    ],
)
@pytest.mark.parametrize("words", [["s.py"], ["-m", "s"]])
def test_a_program_that_was_interrupted_ends_by_the_signal(
    tmp_path: Path, torch: str, end: str, code: int, words: list[str]
) -> None:
    (tmp_path / "s.py").write_text(f"import time\n{torch}\n{end}\ntime.sleep(9)\n", encoding="utf-8")
    plain = start(tmp_path, *words)
    wanted = plain.communicate(timeout=60)
    for command in ([sys.executable, "-m", "compile_lens"], [sys.executable, str(LENS)]):
        watched = start(tmp_path, *command[1:], "run", "-o", "r.json", *words)
        output = watched.communicate(timeout=60)
        assert (watched.returncode, output[0]) == (plain.returncode, wanted[0]) == (code, "")
        assert output[1].splitlines()[-1] == wanted[1].splitlines()[-1] == "KeyboardInterrupt"
        assert Program.load(tmp_path / "r.json").record.ended == "KeyboardInterrupt"
        watched = start(tmp_path, *command[1:], "run", *words)
        output = watched.communicate(timeout=60)
        assert watched.returncode == plain.returncode and "Ended: KeyboardInterrupt" in output[1]


TRAINING = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters())


def loss(x):
    made = model(x)
    print(end="")
    return made.square().mean()


step = torch.compile(loss, backend="eager")
for length in range(2, 8):
    step(torch.ones(length, 4)).backward()
    optimizer.step()
    optimizer.zero_grad()
    print(length, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize(
    "moments", [5, pytest.param(50, marks=[pytest.mark.exhaustive, pytest.mark.timeout(7200)])]
)
@pytest.mark.exhaustive
def test_a_kill_at_any_moment_leaves_files_that_say_what_they_are(
    folder: Path, tmp_path: Path, moments: int
) -> None:
    (folder / "training.py").write_text(TRAINING, encoding="utf-8")
    words = ("-m", "compile_lens", "run", "-o", str(tmp_path / "r.json"), "training.py")
    report, part = tmp_path / "r.json", tmp_path / "r.json.part"
    began = time.monotonic()
    process = start(folder, *words)
    _until(process, "2")
    first = time.monotonic() - began
    process.communicate(timeout=300)
    whole = time.monotonic() - began
    assert [path.name for path in tmp_path.iterdir()] == ["r.json"]
    every = len(Program.load(report).evaluations)
    assert every >= 4  # two functions, each for one length and then for any
    kinds = {"nothing": 0, "part": 0, "report": 0}
    for number in range(moments):
        for path in tmp_path.iterdir():
            path.unlink()
        process = start(folder, *words)
        # Every second run is killed while it compiles and writes; most of the time before is the import of torch.
        time.sleep(random.uniform(0.3 * whole if number % 2 else 0.9 * first, 1.1 * whole))
        process.kill()
        out, _ = process.communicate()
        # An interrupted save leaves a file under another name, which cannot be taken for a report.
        left = {
            path: Program.load(path)
            for path in tmp_path.iterdir()
            if not path.name.startswith(".compile_lens-")
        }
        assert set(left) <= {report, part}
        kinds["report" if report in left else "part" if part in left else "nothing"] += 1
        if report in left:
            assert left[report].record.ended == "the program ended" and len(left[report].evaluations) == every
        if part in left:
            seen = left[part].evaluations
            assert left[part].record.ended == (CUT_OFF if seen else NOTHING_SEEN)
            assert [v.number for v in seen] == list(range(len(seen)))
        if out.split() and report not in left:  # a step was done: its compiles are in the report
            assert left[part].counts.graphs >= 1
    print(kinds)


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name != "posix", reason="limits are as POSIX has them")
@pytest.mark.parametrize("room", [100, 3_000, 0])
def test_where_there_is_no_room_the_program_goes_on_and_no_file_is_half(
    folder: Path, tmp_path: Path, room: int
) -> None:
    import resource

    (folder / "training.py").write_text(TRAINING, encoding="utf-8")
    report = tmp_path / "r.json"
    if not room:  # a little less than the report needs, whose size varies with its measured times
        start(folder, "-m", "compile_lens", "run", "-o", str(report), "training.py").communicate(timeout=300)
        room, fits = report.stat().st_size - 1_000, True
        report.unlink()
    else:
        fits = False
    process = subprocess.Popen(
        [sys.executable, "-B", "-m", "compile_lens", "run", "-o", str(report), "training.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)),
    )
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0 and out.split() == [str(n) for n in range(2, 8)]
    assert not report.exists() and "compile-lens: cannot write" in errors and "Traceback" not in errors
    part = report.with_name("r.json.part")
    left = [path.name for path in tmp_path.iterdir()]
    assert left in (["r.json.part"], [])
    if part.exists() and "\n" in part.read_text(encoding="utf-8"):
        assert Program.load(part).record.ended in (CUT_OFF, NOTHING_SEEN)
    if fits:
        assert len(Program.load(part).evaluations) >= 1


@pytest.mark.exhaustive
def test_killed_before_anything_was_seen(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "early.py").write_text(
        "import os, torch, torch._dynamo\nprint(torch.rand(1), flush=True)\nos._exit(3)\n", encoding="utf-8"
    )
    part = tmp_path / "r.html.part"
    part.write_text("of an earlier run", encoding="utf-8")
    process = start(folder, "-m", "compile_lens", "run", "-o", str(tmp_path / "r.html"), "early.py")
    process.communicate(timeout=120)
    assert process.returncode == 3
    assert main(["open", str(part), "--full"]) == 0
    output = capsys.readouterr().out
    assert NOTHING_SEEN in output and "the time of compiling not seen" in output.replace("\n      ", " ")
    # A frame evaluation that was not finished does not count.
    part.write_text(part.read_text(encoding="utf-8") + '{"format":', encoding="utf-8")
    assert Program.load(part).record.ended == NOTHING_SEEN
    (folder / "early.py").write_text("import os\nos._exit(3)\n", encoding="utf-8")
    process = start(folder, "-m", "compile_lens", "run", "-o", str(tmp_path / "r.html"), "early.py", "again")
    process.communicate(timeout=120)
    record = Program.load(part).record
    assert (record.ended, record.arguments) == (NOTHING_SEEN, ("again",)), "it is not the earlier run's"
    assert record.environment.torch == "" and "did not import torch._dynamo" in record.notes[0]


@pytest.mark.parametrize(("how", "code"), [("hard", 9), ("crash", -6)])
@pytest.mark.cases(full=1)
def test_killed_without_a_word(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str, code: int
) -> None:
    process = start(folder, "-m", "compile_lens", "run", "-o", str(tmp_path / "r.json"), "script.py", how)
    process.communicate(timeout=120)
    assert process.returncode == code and not (tmp_path / "r.json").exists()
    assert main(["open", str(tmp_path / "r.json.part"), "-o", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert CUT_OFF in page and "script.py" in page
    assert main(["open", str(tmp_path / "r.json.part"), "--json"]) == 0
    assert '"graphs": 1' in capsys.readouterr().out


def test_a_program_without_torch(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("import sys\nprint('torch' in sys.modules)\n", encoding="utf-8")
    out, program = both(tmp_path, tmp_path / "r.json", "s.py")
    assert out == "False\n" and "did not import torch._dynamo" in program.record.notes[0]
    process = start(tmp_path, "-m", "compile_lens", "run", "s.py")
    output = process.communicate(timeout=60)
    assert output[0] == "False\n" and "nothing was compiled while it was watched" in output[1]


ASKS = """
import importlib.machinery, importlib.util, sys
spec = importlib.util.find_spec("torch._dynamo")
print(spec.name, type(spec.loader).__name__, "torch._dynamo" in sys.modules)
print(importlib.util.find_spec("torch._dynamo").origin == spec.origin)
HOW
import torch
g = torch.compile(lambda x: x.sin(), backend="eager")
print(g(torch.zeros(2)).tolist())
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "how",
    [
        "",
        "sys.modules[spec.name] = made = importlib.util.module_from_spec(spec); spec.loader.exec_module(made)",
        "sys.meta_path.insert(0, importlib.machinery.PathFinder)",
    ],
)
def test_a_program_that_asks_for_the_compiler_before_it_imports_it(tmp_path: Path, how: str) -> None:
    (tmp_path / "s.py").write_text(ASKS.replace("HOW", how), encoding="utf-8")
    out, program = both(tmp_path, tmp_path / "r.json", "s.py")
    assert out == "torch._dynamo SourceFileLoader False\nTrue\n[0.0, 0.0]\n"
    if "insert" in how:
        assert program.counts.graphs == 0 and "so nothing was watched" in program.record.notes[0]
    else:
        assert program.counts.graphs == 1 and program.record.notes == ()


def test_errors_in_the_text_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("print(1)\n  x = \n", encoding="utf-8")
    both(tmp_path, tmp_path / "r.json", "s.py")


@pytest.mark.exhaustive
def test_cuda_graphs_of_a_run(folder: Path, tmp_path: Path) -> None:
    out = [tmp_path / name for name in ("r.json", "r.html")]
    words = [word for path in out for word in ("-o", str(path))]
    plain = start(folder, "script.py", "raise")
    wanted = plain.communicate(timeout=120)
    run = start(folder, "-m", "compile_lens", "run", "--cuda-graphs", "h100", *words, "script.py", "raise")
    output = run.communicate(timeout=300)
    assert (run.returncode, output[0]) == (plain.returncode, wanted[0])
    assert output[1].splitlines()[-1] == wanted[1].splitlines()[-1], (
        "nothing is said beside what the program says"
    )
    record = Program.load(out[0]).record
    assert record.ended == "ValueError: of the program" and record.missing == ()
    assert len(record.graphs) == 1 and {one.device for one in record.cuda_graphs} == {"h100"}
    (one,) = record.cuda_graphs
    assert (
        (one.graph, one.id) == (0, record.graphs[0].id) and one.result.phase and not one.result.unknown_reason
    )
    page = out[1].read_text(encoding="utf-8")
    assert "CUDA graphs" in page and "Unknown until it runs" in page
    start(folder, "-m", "compile_lens", "run", *words, "script.py", "raise").communicate(timeout=120)
    assert "CUDA graphs" not in out[1].read_text(encoding="utf-8"), "they are there where they are asked for"


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.exhaustive
def test_cuda_graphs_that_are_not_known_are_said(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = Program(lambda: samples_program.program())
    for name, message in (("m2", "m2 has no CUDA graphs"), ("h1000", "h1000")):
        assert main(["run", "--cuda-graphs", name, "script.py", "end"]) == 2
        output = " ".join(capsys.readouterr().err.split())
        with pytest.raises(compile_lens.UsageError) as raised:
            loaded.with_cuda_graphs(name)
        assert message in output and str(raised.value) in output, "one message, of one place"
    (folder / "none.py").write_text("import torch, torch._dynamo\n", encoding="utf-8")
    words = ("-m", "compile_lens", "run", "--cuda-graphs", "h100", "-o", str(tmp_path / "r.json"))
    start(folder, *words, "none.py").communicate(timeout=120)
    assert Program.load(tmp_path / "r.json").record.missing[0].reason == "no graph was compiled"
    process = start(folder, *words, "script.py", "wait")
    _until(process, "waiting")
    process.terminate()
    process.communicate(timeout=120)
    (lacks,) = Program.load(tmp_path / "r.json").record.missing
    assert lacks.stage == "CUDA graphs for h100" and "SIGTERM" in lacks.reason


SAYS = """
import pprint, sys
n: int = 3
main = sys.modules["__main__"]
told = {name: value for name, value in vars(main).items() if name.startswith("__") and name != "__loader__"}
pprint.pprint([sys.argv, sys.orig_argv, sys.path[0], main.__loader__ and type(main.__loader__), told])
import helper
print(helper.__file__)
"""


@pytest.mark.parametrize("how", ["alone", "with annotations"])
@pytest.mark.parametrize(
    "words",
    [["says.py"], ["made"], ["made/"], ["./made", "-o"], ["made.zip", "a b"], ["-m", "made"], ["-m", "says"]],
)
@pytest.mark.cases(full=1)
def test_what_a_program_sees_of_itself(tmp_path: Path, words: list[str], how: str) -> None:
    text = SAYS if how == "with annotations" else SAYS.replace("n: int = 3", "print(__annotations__)")
    if how == "alone" and "-m" not in words and sys.version_info >= (3, 14):
        text = text.replace(
            "print(__annotations__)", ""
        )  # there a program has no annotations of its own before it writes one
    (tmp_path / "made").mkdir()
    for place in (tmp_path / "says.py", tmp_path / "made" / "__main__.py"):
        place.write_text(text, encoding="utf-8")
        (place.parent / "helper.py").write_text("", encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        for name in ("__main__.py", "helper.py"):
            archive.write(tmp_path / "made" / name, name)
    for options in ([], ["-s", "-X", "utf8"]):
        plain = start(tmp_path, *options, *words)
        watched = start(tmp_path, *options, "-m", "compile_lens", "run", *words)
        wanted, output = plain.communicate(timeout=60), watched.communicate(timeout=60)
        assert plain.returncode == watched.returncode == 0, wanted[1]
        assert re.sub("0x[0-9a-f]+", "", output[0]) == re.sub("0x[0-9a-f]+", "", wanted[0])


def test_beneath_a_program_stand_the_frames_that_the_documentation_names(tmp_path: Path) -> None:
    text = """
import inspect
def within():
    print([f.function for f in inspect.stack()])
within()
def calls(n=0):
    try:
        return calls(n + 1)
    except RecursionError:
        return n
print(calls())
"""
    (tmp_path / "s.py").write_text(text, encoding="utf-8")
    results = []
    for words in ([], [str(LENS), "run"], ["-m", "compile_lens", "run"]):
        out, _ = start(tmp_path, *words, "s.py").communicate(timeout=60)
        frames, depth = out.splitlines()
        results.append((ast.literal_eval(frames), int(depth)))
    (plain, deep), *watched = results
    assert plain == ["within", "<module>"]
    ours = ["run", "__call__", "main", "<module>"]
    assert [frames for frames, _ in watched] == [
        [*plain, *ours],
        [*plain, *ours, "_run_code", "_run_module_as_main"],
    ]
    assert all(5 <= deep - depth <= 9 for _, depth in watched)


@pytest.mark.parametrize(
    "words",
    [
        ["s.py", "a", "--", "b"],
        ["s.py", "--", "--x"],
        ["s.py", "--json", "-o", "--", "-m", "b"],
        ["--", "s.py", "--", "a"],
        ["-m", "s", "a", "--", "b"],
        ["-m", "s", "--", "--x", "-o", "y"],
        ["-ms", "a", "--json", "--", "-o", "b"],
    ],
)
@pytest.mark.cases(full=1)
def test_a_program_has_all_that_follows_it(tmp_path: Path, words: list[str]) -> None:
    (tmp_path / "s.py").write_text("import sys\nprint(sys.argv)\n", encoding="utf-8")
    plain = start(tmp_path, *words).communicate(timeout=60)
    assert plain[0].startswith("["), plain[1]
    for options in ([], ["-o", "r.txt"], ["-or.txt", "--quiet"], ["--cuda", "h100", "--out=r.txt"]):
        watched = start(tmp_path, "-m", "compile_lens", "run", *options, *words).communicate(timeout=60)
        assert watched[0] == plain[0], watched[1]
        assert ("nothing was compiled" in watched[1]) == (not options)


def test_options_of_python_in_one_word(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text("import sys\nprint(sys.orig_argv[1:])\n", encoding="utf-8")
    output, errors = start(tmp_path, "-sm", "compile_lens", "run", "s.py", "x").communicate(timeout=60)
    assert output == "['-s', 's.py', 'x']\n", errors


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.exhaustive
def test_an_earlier_report_is_not_taken_for_that_of_a_run_that_was_killed(
    folder: Path, tmp_path: Path
) -> None:
    out = [tmp_path / name for name in ("r.html", "r.json")]
    words = ("-m", "compile_lens", "run", *(word for path in out for word in ("-o", str(path))), "script.py")
    start(folder, *words, "end").communicate(timeout=120)
    first = [path.read_text(encoding="utf-8") for path in out]
    aside = [path.with_name(f"{path.name}.before-this-run") for path in out]
    for _ in range(2):  # also if one more is killed
        process = start(folder, *words, "wait")
        _until(process, "waiting")
        process.kill()
        process.communicate()
        assert {path.name for path in tmp_path.iterdir()} == {"r.html.part", *(path.name for path in aside)}
        assert [path.read_text(encoding="utf-8") for path in aside] == first
    start(folder, *words, "raise").communicate(timeout=120)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.html", "r.json"]
    assert Program.load(out[1]).record.ended == "ValueError: of the program"


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX has them")
@pytest.mark.parametrize("torch", ["", "import torch, torch._dynamo"])
@pytest.mark.cases(full=1)
def test_a_run_that_was_killed_before_it_compiled_says_so_and_where_the_earlier_report_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], torch: str
) -> None:
    report, aside = tmp_path / "r.html", tmp_path / "r.html.before-this-run"
    report.write_text("an earlier report", encoding="utf-8")
    (tmp_path / "s.py").write_text(
        f"import sys, time\n{torch}\nprint(1, flush=True)\ntime.sleep(60 * len(sys.argv[1:]))\n",
        encoding="utf-8",
    )
    words = ("-m", "compile_lens", "run", "-o", str(report), "s.py")
    process = start(tmp_path, *words, "wait")
    _until(process, "1")
    process.kill()
    process.communicate()
    part = tmp_path / "r.html.part"
    assert {path.name for path in tmp_path.iterdir()} == {"s.py", part.name, aside.name}
    assert aside.read_text(encoding="utf-8") == "an earlier report"
    assert main(["open", str(part)]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert NOTHING_SEEN in output and f"the report of an earlier run is in {aside.name}" in output
    assert ("did not import torch._dynamo" in output) == (not torch)
    assert main(["open", str(report)]) == 2
    assert repr(str(part)) in " ".join(capsys.readouterr().err.split()), "who looks for the report is told"
    start(tmp_path, *words).communicate(timeout=120)
    assert {path.name for path in tmp_path.iterdir()} == {"s.py", report.name}
    assert "an earlier run" not in report.read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="it forks")
@pytest.mark.exhaustive
def test_a_child_that_imports_torch_leaves_what_its_parent_wrote_down(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(
        "import os\n"
        "reader, writer = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.read(reader, 1)\n"
        "    import torch._dynamo\n"
        "    os._exit(0)\n"
        "import torch\n"
        "torch.compile(lambda x: x.sin(), backend='eager')(torch.ones(3))\n"
        "os.write(writer, b'1')\n"
        "os.wait()\n"
        "os._exit(3)\n",
        encoding="utf-8",
    )
    start(tmp_path, "-m", "compile_lens", "run", "-o", "r.json", "s.py").communicate(timeout=120)
    assert Program.load(tmp_path / "r.json.part").counts.graphs == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "run needs a script or -m MODULE"),
        (["gone.py"], "there is no script 'gone.py'"),
        (["."], "is a folder without a __main__.py"),
        (["-m"], "needs the name of a module"),
        (["-m", "no.such.module"], "there is no module 'no.such.module'"),
        (["-o", "x.exe", "s.py"], "has no known file extension; use one of .html .md .txt .json"),
        (["-o", "nowhere/x.json", "s.py"], "there is no folder"),
    ],
)
def test_what_cannot_be_run(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["run", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.exhaustive
def test_one_document_on_stdout(folder: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.json"
    (folder / "child.py").write_text(
        "import subprocess, sys, torch\n"
        "handed = []\n"
        "def backend(gm, inputs):\n    handed.append(gm)\n    return gm.forward\n"
        "torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))\n"
        "print('printed', len(handed))\n"
        "subprocess.run([sys.executable, '-c', 'print(12345)'])\n"
        "sys.exit(7)\n",
        encoding="utf-8",
    )
    run = start(folder, "-m", "compile_lens", "run", "--json", "-o", str(report), "child.py", "--word")
    out, errors = run.communicate(timeout=300)
    assert run.returncode == 7 and "printed 1" in errors and "12345" in errors
    data = json.loads(out)
    assert (data["command"], data["ended"], data["written"]) == ("run", "exit 7", [str(report)])
    assert data["arguments"] == ["--word"] and data["counts"]["graphs"] == 1 and "error" not in data


def test_what_could_not_be_written_down_is_not_said_to_be_there(folder: Path) -> None:
    """The folder does not allow files."""
    if not Path("/proc/self").is_dir():
        pytest.skip("needs Linux's /proc")
    (folder / "one.py").write_text("print('ran')\n", encoding="utf-8")
    run = start(folder, "-m", "compile_lens", "run", "--json", "-o", "/proc/x.json", "one.py")
    out, errors = run.communicate(timeout=300)
    assert run.returncode == 0 and "ran" in errors
    assert "cannot write" in errors and "what was seen is in" not in errors
    assert json.loads(out)["written"] == [] and "/proc/x.json" in json.loads(out)["error"]["message"]
