"""Programs whose modules capture for a target at import, even in the child process: each ends with its
record, after few processes. The modules count and limit the processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import compile_lens

pytestmark = [
    pytest.mark.torch,
    pytest.mark.full,
    pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX"),
]

SECONDS = 120

PACKAGE = str(Path(compile_lens.__file__).parents[1])

COUNTED = f"""
import os, sys
sys.path.insert(0, {PACKAGE!r})
import torch
import compile_lens
with open("processes.txt", "a") as file:
    file.write(f"{{os.getpid()}}\\n")
if len(open("processes.txt").readlines()) > 8:
    os._exit(7)
"""
"""The start of a module: it notes its process, and ends that process if there were too many before."""


def run(folder: Path, modules: dict[str, str], *command: str) -> tuple[str, int]:
    """Return a program's output, and the number of processes that imported its modules."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(COUNTED + textwrap.dedent(text))
    (folder / "processes.txt").touch()
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout, len(set((folder / "processes.txt").read_text().split()))


LIBRARY = """
    def f(x):
        return x.sin() + 1
    RECORD = compile_lens.capture(f, torch.rand(10), target="h100")
    def g(x):
        return f(x).cos()
    SECOND = compile_lens.capture(g, torch.rand(10), target="mps")
"""


@pytest.mark.exhaustive
def test_a_module_that_captures_when_it_is_imported_has_its_records(tmp_path: Path) -> None:
    program = """
        import library
        print([n.target for c in (library.RECORD, library.SECOND) for n in c.compilations[0].graphs["inference"].nodes])
        print(library.RECORD.target.transfer)
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program))
    out, processes = run(tmp_path, {"library": LIBRARY}, "program.py")
    operators = ["aten.sin.default", "aten.add.Tensor"]
    nodes = [n for n in eval(out.splitlines()[0]) if n.startswith("aten.")]
    assert nodes == [*operators, *operators, "aten.cos.default"]
    assert out.splitlines()[1].startswith("in a child process")
    assert processes == 2


@pytest.mark.exhaustive
def test_a_test_file_that_captures_when_it_is_imported_ends(tmp_path: Path) -> None:
    module = f"{LIBRARY}\n    def test_it():\n        assert RECORD.kernels and SECOND.kernels\n"
    out, processes = run(tmp_path, {"test_own": module}, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert "1 passed" in out and processes == 2


@pytest.mark.exhaustive
def test_no_call_for_a_target_starts_child_after_child(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    module = """
        def f(x):
            return x.sin() + 1
        x = torch.rand(10)
        COMPARED = compile_lens.compare(f, x, targets=["h100", "a100"])
        TRIED = compile_lens.what_if(f, x, target="h100")
        VERDICTS = [
            compile_lens.capture(f, x).verify(target="h100").verdict,
            compile_lens.capture(f, x, target="h100").verify().verdict,
        ]
        CPU = compile_lens.capture(lambda x: x.cos(), x, target="cpu:avx512")
    """
    out, processes = run(tmp_path, {"library": module}, "-c", "import library; print(library.VERDICTS)")
    assert out.strip() == "['agrees', 'agrees']" and processes == 2


def test_an_error_that_a_module_catches_is_the_program_s(tmp_path: Path) -> None:
    module = """
        def f(x):
            raise KeyError("not today")
        try:
            compile_lens.capture(f, torch.rand(10), target="mps")
        except compile_lens.CaptureError as error:
            MESSAGE = str(error)
    """
    out, processes = run(tmp_path, {"library": module}, "-c", "import library; print(library.MESSAGE)")
    assert "not today" in out and processes == 2


@pytest.mark.exhaustive
def test_a_function_that_imports_what_captures_has_its_record(tmp_path: Path) -> None:
    lazy = """
        def f(x):
            import library
            return library.f(x) * 2
    """
    program = (
        'import lazy, torch, compile_lens as c; print(c.capture(lazy.f, torch.rand(3), target="mps").kernels)'
    )
    out, processes = run(tmp_path, {"lazy": lazy, "library": LIBRARY}, "-c", program)
    assert "sin" in out and processes <= 3


@pytest.mark.exhaustive
def test_captures_that_contain_each_other_end_with_the_next_step(tmp_path: Path) -> None:
    module = """
        def g(x):
            return x.sin()
        def f(x):
            compile_lens.capture(g, x, target="mps")
            return x * 2
        try:
            compile_lens.capture(f, torch.rand(10), target="mps")
        except compile_lens.UsageError as error:
            MESSAGE = str(error)
    """
    out, processes = run(tmp_path, {"library": module}, "-c", "import library; print(library.MESSAGE)")
    assert "nested 4 deep" in out and 'if __name__ == "__main__"' in out and processes <= 4
