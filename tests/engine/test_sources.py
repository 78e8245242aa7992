"""Sources of inlined functions are located by the lines that the nodes name."""

from __future__ import annotations

import dataclasses
import linecache
from pathlib import Path

import pytest
import samples

from compile_lens.engine.sources import with_inlined
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Source

TEXT = """import torch

def helper(x):
    return x.sin()

class Block:
    @decorated
    def forward(self, x):
        def inner(y):
            return [helper(v) for v in y]
        return inner(x)

short = lambda x: x.cos()
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    linecache.checkcache(str(path))
    return str(path)


def compiled(*frames: Frame) -> Compilation:
    capture = samples.sample()
    graph = capture.compilations[0].graphs["dynamo"]
    node = dataclasses.replace(graph.nodes[1], frames=frames)
    return dataclasses.replace(capture.compilations[0], stages=(dataclasses.replace(graph, nodes=(node,)),))


def test_functions_are_found_around_their_lines_callers_first(file: str) -> None:
    frames = [Frame(file, n, "f") for n in (11, 10, 4, 13)]
    found = with_inlined((), [compiled(*frames)])
    assert [(s.name, s.first_line) for s in found] == [
        ("Block.forward", 7),
        ("helper", 3),
        ("<module>", 13),
    ]
    assert found[0].text.startswith("    @decorated\n    def forward") and found[0].text.endswith(
        "inner(x)\n"
    )
    assert found[1].text == "def helper(x):\n    return x.sin()\n"


def test_an_inner_function_alone_is_the_innermost_one(file: str) -> None:
    assert [s.name for s in with_inlined((), [compiled(Frame(file, 10, "inner"))])] == ["inner"]


def test_what_is_known_is_kept_and_not_said_twice(file: str) -> None:
    known = Source(file, 3, "helper", "def helper(x):\n    return x.sin()\n")
    assert with_inlined([known], [compiled(Frame(file, 4, "helper"))]) == (known,)


def test_a_method_is_named_by_its_class_also_where_python_did_not_say_it(file: str) -> None:
    """Python 3.10 has no qualified names in code objects."""
    known = Source(file, 7, "forward", "    @decorated\n    def forward(self, x):\n")
    assert [s.name for s in with_inlined([known], [])] == ["Block.forward"]
    unknown = dataclasses.replace(known, first_line=70)
    assert with_inlined([unknown], []) == (unknown,)


def test_no_text_gives_no_source(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("%matplotlib inline\nx = (\n")
    frames = [Frame("<string>", 1, "f"), Frame(str(tmp_path / "gone.py"), 3, "g"), Frame(str(broken), 2, "h")]
    assert with_inlined((), [compiled(*frames)]) == ()
    assert with_inlined((), []) == ()
