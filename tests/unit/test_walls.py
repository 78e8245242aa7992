"""The walls between the parts: who may import what, and how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import compile_lens

PACKAGE = Path(compile_lens.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(PACKAGE).as_posix() for path in FILES]
WITHOUT_TORCH = [n for n in NAMES if n.startswith(("measures/", "views/", "layout/")) or n in (
    "codec.py", "record.py", "graph.py", "kernel.py", "decision.py", "lowered.py", "rewrite.py", "memory.py",
    "measurement.py", "device_model.py", "device_models.py", "machine.py", "comparison.py",
    "implementation.py", "errors.py", "__init__.py", "progress.py",
)]  # fmt: skip
LONGEST = 450


def imports(tree: ast.AST, package: str = "compile_lens") -> Iterator[str]:
    """Full names that a file imports, also inside functions."""
    for item in ast.walk(tree):
        if isinstance(item, ast.Import):
            yield from (alias.name for alias in item.names)
        elif isinstance(item, ast.ImportFrom) and not item.level:
            yield from (f"{item.module}.{alias.name}" for alias in item.names)
        elif (
            isinstance(item, ast.Call)
            and getattr(item.func, "id", getattr(item.func, "attr", ""))
            in ("import_module", "__import__", "find_spec")
            and item.args
            and isinstance(item.args[0], ast.Constant)
        ):
            yield str(item.args[0].value)


def private(tree: ast.AST) -> list[str]:
    """Uses of private torch: imported, reached as an attribute (``torch._dynamo``), or named in a text."""
    found = []
    for name in imports(tree):
        parts = name.split(".")
        if parts[0] == "torch" and any(p.startswith("_") and not p.startswith("__") for p in parts[1:]):
            found.append(name)
    for item in ast.walk(tree):
        if isinstance(item, ast.Attribute) and item.attr.startswith("_") and not item.attr.startswith("__"):
            root: ast.expr = item.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id == "torch":
                found.append(ast.unparse(item))
    return found


@pytest.mark.parametrize(
    "source",
    [
        "import torch._dynamo",
        "import torch._inductor.config as c",
        "from torch import _dynamo",
        "from torch._C import _TensorBase",
        "def f():\n    from torch.fx._lazy import x",
        "import torch\nx = torch._dynamo.config",
        "import torch\nx = torch.fx._utils.y",
        "import importlib\nimportlib.import_module('torch._guards')",
    ],
)
def test_the_scan_sees_private_torch(source: str) -> None:
    assert private(ast.parse(source))


@pytest.mark.parametrize(
    "source", ["import torch.fx", "import torch\ntorch.__version__", "self._torch", "from ._torch import x"]
)
def test_the_scan_lets_public_torch_pass(source: str) -> None:
    assert not private(ast.parse(source))


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("_torch/")])
def test_private_torch_stays_in_its_folder(name: str) -> None:
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    assert private(tree) == []


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_records_measures_and_views_import_no_torch(name: str) -> None:
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    assert [n for n in imports(tree) if n.split(".")[0] in ("torch", "triton")] == []


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith("_triton/")])
def test_triton_stays_in_its_folder(name: str) -> None:
    tree = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    assert [n for n in imports(tree) if n.split(".")[0] == "triton" and "." in n] == []


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("measures/", "views/", "layout/"))])
def test_no_arrow_goes_back_to_the_capture(name: str) -> None:
    for item in ast.walk(ast.parse((PACKAGE / name).read_text(encoding="utf-8"))):
        if isinstance(item, ast.ImportFrom):
            parts = [*(item.module or "").split("."), *(alias.name for alias in item.names)]
            ours = item.level > 0 or parts[0] == "compile_lens"
            assert not (ours and {"_torch", "verify", "cli"} & set(parts)), ast.unparse(item)
            assert not (ours and (item.module or "").split(".")[-1] == "capture"), ast.unparse(item)


def test_the_walls_have_something_to_hold() -> None:
    assert {"codec.py", "record.py", "measures/ledger.py", "measures/chain.py"} <= set(WITHOUT_TORCH)
    assert any(n.startswith("views/") for n in WITHOUT_TORCH) and any(n.startswith("_torch/") for n in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_short(name: str) -> None:
    lines = (PACKAGE / name).read_text(encoding="utf-8").count("\n")
    assert lines <= LONGEST, f"{name} has {lines} lines; give one of its nouns a file of its own"


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = "import sys; print(*sorted(n for n in sys.modules if n.split('.')[0] in ('torch', 'compile_lens')))"


def test_importing_the_package_loads_neither_torch_nor_any_part() -> None:
    assert fresh(f"import compile_lens; {LOADED}").split() == ["compile_lens"]


def test_importing_the_package_changes_nothing() -> None:
    look = "tuple(sys.path), dict(os.environ), sys.excepthook, len(sys.meta_path), logging.root.handlers"
    assert (
        fresh(f"import sys, os, logging; a = {look}; import compile_lens; print(a == ({look}))") == "True\n"
    )


def test_errors_and_records_load_without_torch_and_views() -> None:
    loaded = fresh(f"from compile_lens import Capture, RecordError; {LOADED}").split()
    assert "compile_lens.record" in loaded
    assert not [
        name for name in loaded if name.startswith(("torch", "compile_lens.views", "compile_lens._torch"))
    ]


def test_the_public_names_are_all_there() -> None:
    assert set(compile_lens.__all__) <= set(dir(compile_lens))
    assert compile_lens.__version__ == "0.1.0"
    with pytest.raises(AttributeError, match=r"has no attribute 'captures'; it has .*capture"):
        compile_lens.captures  # noqa: B018


@pytest.mark.torch
def test_every_public_name_can_be_had() -> None:
    pytest.importorskip("torch")
    for name in compile_lens.__all__:
        assert callable(getattr(compile_lens, name)), name


@pytest.mark.torch
@pytest.mark.parametrize(
    "first",
    [
        "import compile_lens.capture",
        "from compile_lens.capture import backend",
        "compile_lens.show",
        "compile_lens.capture",
    ],
)
def test_capture_is_the_function_whatever_was_imported_before(first: str) -> None:
    pytest.importorskip("torch")
    code = f"import compile_lens; {first}; print(type(compile_lens.capture).__name__)"
    assert fresh(code) == "function\n"


def test_the_docstring_of_a_capture_leads_to_all_that_it_has() -> None:
    import dataclasses
    import re

    found = compile_lens.Capture
    names = {name for name in vars(found) if not name.startswith("_")} | {
        f.name for f in dataclasses.fields(found)
    }
    told = set(re.findall(r"\w+", found.__doc__ or ""))
    assert len(names) > 30 and names <= told, sorted(names - told)
    returned = {
        re.sub(r"tuple\[(\w+), \.\.\.\]", r"\1", hint["return"])
        for member in vars(found).values()
        if (hint := getattr(getattr(member, "fget", member), "__annotations__", {})).get("return")
    }
    ours = {name for name in returned if re.fullmatch(r"[A-Z]\w+", name)} - {"Any", "Path", "Capture"}
    assert {"Ledger", "Verification", "Why"} <= ours <= told, sorted(ours - told)
