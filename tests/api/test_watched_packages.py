"""Packages installed next to a program: those that use torch are part of it, the others are only counted."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
import torch

import compile_lens
from compile_lens._torch.frames.skipped_frames import is_foreign

pytestmark = pytest.mark.torch

PACKAGES = {
    "lens_layers/__init__.py": "",
    "lens_layers/bases.py": "import torch\nclass Layer(torch.nn.Module):\n    pass\n",
    "lens_layers/sizes.py": "def size(n):\n    return n + 1\n",
    "lens_models.py": "from lens_layers.bases import Layer\nclass Deep(Layer): ...\ndef depth(n):\n    return n\n",
    "lens_pipes.py": "import sys\ndef write(n):\n    return n - 1\n",
}


def test_a_package_is_the_programs_where_it_uses_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lib" / "site-packages"
    for name, text in PACKAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    try:
        sizes = importlib.import_module("lens_layers.sizes")
        assert is_foreign(sizes.__file__), "nothing of it uses torch as yet"
        models = importlib.import_module("lens_models")  # its class derives from torch's indirectly
        pipes = importlib.import_module("lens_pipes")

        def left(x: torch.Tensor) -> torch.Tensor:
            for n in range(1):  # a break in a loop makes it, and its callees, run eagerly
                torch._dynamo.graph_break()
                x = x + pipes.write(sizes.size(models.depth(n)))
            return x

        torch._dynamo.reset()
        with compile_lens.watch() as program:
            torch.compile(left, backend="eager")(torch.ones(2))
    finally:
        for name in [n for n in sys.modules if n.startswith("lens_")]:
            del sys.modules[name]
        torch._dynamo.reset()
    asked = {Path(frame.file).name for frame in program.frames}
    assert {"sizes.py", "lens_models.py"} <= asked and "lens_pipes.py" not in asked
    assert not any("lens_pipes" in file for file in program.lines)
    assert sum(found.count for found in program.library_skips) > 0
