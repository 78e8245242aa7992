"""The walls between the rooms: the direction of imports, allowed imports, and the maximum length of a file.

Data flows up through the rooms, imports go down. A room is a file or a folder at the top of the package, or of
``_torch``.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

import compile_lens
from compile_lens.record import delegates

PACKAGE = Path(compile_lens.__file__).parent
FILES = sorted(path for path in PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(PACKAGE).as_posix() for path in FILES]

FLOORS = (
    {"__main__"},
    {"cli", "pytest_plugin"},
    {"__init__"},
    {"course"},
    {"api"},
    {"trials"},
    {"engine"},
    {"child", "results", "_torch"},
    {"views", "_triton"},
    {"measures"},
    {"layout", "devices"},
    {"record"},
    {"errors", "versions"},
)
"""The rooms, from the top down: a room imports from the floors below it, and from none on its own floor."""

APART = {"_torch", "_triton", "child"}
"""Rooms that use only observations and the floors below them; ``_torch`` also uses ``_triton``."""

ROOMS = {"": 20, "_torch": 15}
"""Maximum number of files and folders in a folder, its ``__init__`` included."""

WITHOUT_TORCH = [
    name
    for name in NAMES
    if name.startswith(("record/", "devices/", "measures/", "views/", "layout/", "results/"))
] + ["errors.py", "__init__.py"]
LONGEST = 450
TEXTS = {name: (PACKAGE / name).read_text(encoding="utf-8") for name in NAMES}
parsed = functools.cache(ast.parse)


def imports(tree: ast.AST, package: str = "compile_lens") -> Iterator[str]:
    """Return full names that a file imports, including those inside functions."""
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
    """Return uses of private torch: imported, reached as an attribute (``torch._dynamo``), or named in a text."""
    uses = []
    for name in imports(tree):
        parts = name.split(".")
        if parts[0] == "torch" and any(p.startswith("_") and not p.startswith("__") for p in parts[1:]):
            uses.append(name)
    for item in ast.walk(tree):
        if isinstance(item, ast.Attribute) and item.attr.startswith("_") and not item.attr.startswith("__"):
            root: ast.expr = item.value
            while isinstance(root, ast.Attribute):
                root = root.value
            if isinstance(root, ast.Name) and root.id == "torch":
                uses.append(ast.unparse(item))
    return uses


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


@pytest.mark.full
def test_private_torch_stays_in_its_folder() -> None:
    trees = {name: parsed(text) for name, text in TEXTS.items() if not name.startswith("_torch/")}
    assert {name: uses for name, tree in trees.items() if (uses := private(tree))} == {}


def test_records_measures_and_views_import_no_torch() -> None:
    assert imported(WITHOUT_TORCH, lambda n: n.split(".")[0] in ("torch", "triton")) == {}


@pytest.mark.full
def test_triton_stays_in_its_folder() -> None:
    outside = [name for name in NAMES if not name.startswith("_triton/")]
    assert imported(outside, lambda n: n.split(".")[0] == "triton" and "." in n) == {}


def imported(files: Iterable[str], unwanted: Callable[[str], bool]) -> dict[str, list[str]]:
    """Return the unwanted imports of files, by file."""
    names = {file: [name for name in imports(parsed(TEXTS[file])) if unwanted(name)] for file in files}
    return {file: unwanted_names for file, unwanted_names in names.items() if unwanted_names}


PLACE = re.compile(r"(?:compile_lens\.)?([a-z_]+(?:\.[a-z_]+)*):[A-Za-z_]\w*")
"""A place named in a text, such as ``"views.drawing.svg:to_svg"``."""


def module_of(name: str) -> tuple[str, ...]:
    """Return the full name of the module in a file of the package, without the package's own name."""
    parts = name.removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(name): name for name in NAMES}


def reached(name: str, source: str) -> Iterator[tuple[str, ...]]:
    """Return the package's modules that a file imports, also for the type checker, or names in a text."""
    package = Path(name).parent.parts
    for item in ast.walk(parsed(source)):
        if isinstance(item, ast.Import):
            wanted: Iterable[tuple[str, ...]] = [tuple(a.name.split(".")) for a in item.names]
            yield from (w[1:] for w in wanted if w[0] == "compile_lens")
        elif isinstance(item, ast.ImportFrom):
            named = tuple((item.module or "").split(".")) if item.module else ()
            if item.level:
                base = package[: len(package) - item.level + 1] + named
            elif named[:1] == ("compile_lens",):
                base = named[1:]
            else:
                continue
            for alias in item.names:
                whole = (*base, alias.name)
                yield whole if whole in MODULES else base
        elif isinstance(item, ast.Constant) and isinstance(item.value, str):
            if item.value.startswith("compile_lens.") and tuple(item.value.split(".")[1:]) in MODULES:
                yield tuple(item.value.split(".")[1:])
            match = PLACE.fullmatch(item.value)
            if match and tuple(match[1].split(".")) in MODULES:
                yield tuple(match[1].split("."))


def arrows(files: Iterable[tuple[str, str]]) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the importing and the imported module of each import."""
    return [(module_of(n), other) for n, text in files for other in reached(n, text) if other != module_of(n)]


def room_of(module: tuple[str, ...], folder: tuple[str, ...]) -> str:
    """Return the room of a folder that contains a module; ``""`` if none does."""
    if module[: len(folder)] != folder:
        return ""
    return module[len(folder)] if len(module) > len(folder) else "__init__"


def between(
    folder: tuple[str, ...], found: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]
) -> dict[tuple[str, str], str]:
    """Return the arrows between the rooms of a folder, each with one import that causes it."""
    results = {}
    for one, other in found:
        rooms = room_of(one, folder), room_of(other, folder)
        if all(rooms) and rooms[0] != rooms[1]:
            results[rooms] = f"{'/'.join(one)} imports {'.'.join(other)}"
    return results


def upward(found: Iterable[tuple[tuple[str, ...], tuple[str, ...]]]) -> list[str]:
    """Return the imports that run up, or into a room that must stay separate."""
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    low = floor["record"]
    wrong = []
    for (one, other), place in between((), found).items():
        apart = one in APART and floor[other] < low and (one, other) != ("_torch", "_triton")
        if floor[one] >= floor[other] or apart:
            wrong.append(place)
    return wrong


def circle(edges: Iterable[tuple[object, object]]) -> list[object]:
    """Return one cycle of the arrows, ``[]`` if there is none."""
    sorter: graphlib.TopologicalSorter[object] = graphlib.TopologicalSorter()
    for one, other in edges:
        sorter.add(one, other)
    try:
        sorter.prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


@functools.cache
def every_arrow() -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return the imports of the package."""
    return arrows(TEXTS.items())


def test_imports_run_down() -> None:
    assert upward(every_arrow()) == []


def test_no_circle_between_rooms() -> None:
    folders = ["", "_torch", *sorted({n.split("/")[0] for n in NAMES if "/" in n} - {"_torch"})]
    circles = {folder: circle(between(tuple(filter(None, [folder])), every_arrow())) for folder in folders}
    assert {folder: rooms for folder, rooms in circles.items() if rooms} == {}


def test_no_circle_between_files() -> None:
    assert circle((one, other) for one, other in every_arrow() if one and other) == []


def test_rooms_are_few() -> None:
    for folder, most in ROOMS.items():
        path = tuple(filter(None, [folder]))
        rooms = {entry.name for entry in PACKAGE.joinpath(*path).iterdir()} - {"__pycache__"}
        assert len(rooms) <= most, (folder, sorted(rooms))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("record/graph.py", "from ..views.render import text"),
        ("record/graph.py", "if TYPE_CHECKING:\n    from ..measures.chain import Chain"),
        ("measures/chain.py", "def f():\n    from compile_lens.views.render import text"),
        ("engine/remote.py", "call('compile_lens.trials.verify:verify')"),
        ("child/worker.py", "FIRST = ('compile_lens.api.capture',)"),
        ("_torch/session.py", "from ..measures import chain"),
        ("errors.py", "from .record.capture import Record"),
    ],
)
def test_the_scan_sees_an_import_that_runs_up(name: str, text: str) -> None:
    assert upward(arrows([(name, text)]))


def test_the_walls_have_something_to_hold() -> None:
    assert {"record/codec.py", "record/capture.py", "measures/ledger.py", "results/capture.py"} <= set(
        WITHOUT_TORCH
    )
    assert any(n.startswith("views/") for n in WITHOUT_TORCH) and any(n.startswith("_torch/") for n in NAMES)


def test_a_file_is_short() -> None:
    """A file that is longer moves one of its nouns to a new file."""
    lines = {name: text.count("\n") for name, text in TEXTS.items()}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def fresh(code: str) -> str:
    """Return the output of a new interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOADED = "import sys; print(*sorted(n for n in sys.modules if n.split('.')[0] in ('torch', 'compile_lens')))"


def test_importing_the_package_loads_the_list_of_delegates_alone() -> None:
    assert fresh(f"import compile_lens; {LOADED}").split() == [
        "compile_lens",
        "compile_lens.record",
        "compile_lens.record.delegates",
    ]


def test_importing_the_package_changes_nothing() -> None:
    look = "tuple(sys.path), dict(os.environ), sys.excepthook, len(sys.meta_path), logging.root.handlers"
    assert (
        fresh(f"import sys, os, logging; a = {look}; import compile_lens; print(a == ({look}))") == "True\n"
    )


def test_errors_and_records_load_without_torch_and_views() -> None:
    loaded = fresh(f"from compile_lens import Capture, RecordError; {LOADED}").split()
    assert "compile_lens.results.capture" in loaded
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


def test_no_module_has_the_name_of_a_public_function() -> None:
    """Python binds a module as an attribute of its package, which would replace the function."""
    assert not {room_of(module, ()) for module in MODULES} & set(compile_lens.__all__)


def test_what_is_made_above_has_a_place() -> None:
    names = {
        str(item.args[0].value)
        for text in TEXTS.values()
        for item in ast.walk(parsed(text))
        if isinstance(item, ast.Call) and isinstance(item.func, ast.Name) and item.func.id == "delegate"
        if item.args and isinstance(item.args[0], ast.Constant)
    }
    assert names == set(delegates.PLACES)
    for place in delegates.PLACES.values():
        module, _, name = place.partition(":")
        assert any(
            getattr(item, "name", "") == name
            for item in parsed(TEXTS[MODULES[tuple(module.split("."))]]).body
        ), place


def test_the_docstring_of_a_capture_leads_to_all_that_it_has() -> None:
    import dataclasses
    import re

    public = compile_lens.Capture
    members = {name: one for base in reversed(public.__mro__[:-1]) for name, one in vars(base).items()}
    names = {name for name in members if not name.startswith("_")} | {
        f.name for f in dataclasses.fields(public)
    }
    words = set(re.findall(r"\w+", public.__doc__ or ""))
    assert len(names) > 30 and names <= words, sorted(names - words)
    returned = {
        re.sub(r"tuple\[(\w+), \.\.\.\]", r"\1", hint["return"])
        for name, member in members.items()
        if name in names
        and (hint := getattr(getattr(member, "fget", member), "__annotations__", {})).get("return")
    }
    ours = {name for name in returned if re.fullmatch(r"[A-Z]\w+", name)} - {"Any", "Path", "Capture"}
    assert {"Ledger", "Verification", "Why"} <= ours <= words, sorted(ours - words)
