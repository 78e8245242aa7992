"""Command-line errors are reported before torch is imported, in a process that lacks it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compile_lens.cli.names import from_file
from compile_lens.cli.precheck import check_function
from compile_lens.errors import UsageError

FILE = "import torch\n\ndef f(x):\n    return x.sin()\n\nclass Net:\n    def forward(self):\n        pass\n"


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, in a Python without torch."""
    (folder / "model.py").write_text(FILE, encoding="utf-8")
    (folder / "broken.py").write_text("def f(:\n", encoding="utf-8")
    code = (
        "import sys\nclass No:\n"
        "    def find_spec(self, name, *_):\n"
        "        assert name.partition('.')[0] != 'torch', 'torch is imported'\n"
        "sys.meta_path.insert(0, No())\n"
        "from compile_lens.cli import main\nsys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("show", "none.py:f"), "there is no file"),
        (("show", "nomodule:f"), "there is no module 'nomodule'"),
        (("show", "model.py:g"), "model.py has no 'g'; what can be called there: f, Net"),
        (("show", "model:g"), "model has no 'g'; what can be called there: f, Net"),
        (("what-if", "model.py:g"), "model.py has no 'g'"),
        (("show", "broken.py:f"), "importing it raised SyntaxError"),
        (("show", "model.py:f("), "the function 'f(' cannot be evaluated: SyntaxError"),
        (
            ("show", "model.py:f", "--input", "torch.rand(3"),
            "--input 'torch.rand(3' cannot be evaluated: SyntaxError",
        ),
        (("show", "model.py:f", "--kwarg", "a=("), "--kwarg a '(' cannot be evaluated: SyntaxError"),
        (("show", "model.py:f", "--input", "1", "--target", "h1000"), "target='h1000' is not known"),
        (("compare", "model.py:f", "--input", "1", "--target", "h1000"), "target='h1000' is not known"),
        (("show", "model.py:f", "-o", "x.pdf"), "has no known file extension"),
        (("run", "none.py"), "there is no script 'none.py'"),
    ],
)
def test_a_mistake_is_told_without_torch(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    done = command(tmp_path, *words)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert "torch is imported" not in done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "if True:\n    def g(): pass\n",
        "try:\n    from other import g\nexcept ImportError:\n    g = None\n",
        "for g in ():\n    pass\n",
        "with open('x') as g:\n    pass\n",
        "from math import *\n",
        "globals()['g'] = 1\n",
        "def make():\n    global g\n    g = 1\nmake()\n",
        "def __getattr__(name):\n    return print\n",
        "import sys\nsys.modules[__name__].g = 1\n",
        "(g, h), *i = (1, 2), 3\n",
        "print(g := 3)\n",
        "exec('g = 1')\n",
        "import a.b as g\n",
        "match 1:\n    case g:\n        pass\n",
        "class C:\n    def f(self):\n        globals()['g'] = 1\n",
    ],
)
def test_what_a_file_may_define_is_not_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(text, encoding="utf-8")
    check_function(str(file), "g", f"{file}:g")


@pytest.mark.parametrize("text", ["def f(): g = 1\n", "class C:\n    g = 1\n", "x = lambda g: g\n"])
def test_names_inside_of_functions_are_not_the_modules(text: str, tmp_path: Path) -> None:
    file = tmp_path / "m.py"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="has no 'g'"):
        check_function(str(file), "g", f"{file}:g")


@pytest.mark.full
@pytest.mark.parametrize("words", [("-o", "r.txt"), ("--out", "r.html"), ("--out=r.json",), ("-or.md",)])
def test_a_report_that_is_asked_for_behind_the_script_is_the_scripts(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "ok.py").write_text("import sys\nprint(sys.argv[1:])\n", encoding="utf-8")
    done = command(tmp_path, "run", "ok.py", "--epochs", "2", *words)
    assert done.returncode == 0 and done.stdout == f"{['--epochs', '2', *words]}\n"
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("compile-lens:")]
    assert "so no report was written" in line and "compile-lens run -o r." in line
    before = command(tmp_path, "run", "-o", "own.txt", "ok.py", *words)
    assert "no report was written" not in before.stderr and (tmp_path / "own.txt").exists()
    others = command(tmp_path, "run", "ok.py", "-o", "model.bin", "--output=x.html")
    assert "no report was written" not in others.stderr


def test_a_file_may_import_its_neighbours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "a_neighbour_of_it.py").write_text("WIDTH = 7\n", encoding="utf-8")
    file = tmp_path / "with_a_neighbour.py"
    file.write_text("from a_neighbour_of_it import WIDTH\n\ndef f():\n    return WIDTH\n", encoding="utf-8")
    assert from_file(file, "with_a_neighbour.py:f").f() == 7
