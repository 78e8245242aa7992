"""Generated test that checks a function against its capture."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...measures.quantities import graphs
from ...record.capture import Record


def text_of(
    capture: Record,
    function: str,
    inputs: Sequence[str],
    kwargs: Mapping[str, str],
    *,
    path: Path,
    folder: Path,
) -> str:
    """Return a pytest test, to be saved at ``path``, that checks the capture's reproducible figures."""
    place, separator, expression = function.partition(".py:")
    if separator:
        source = os.path.relpath((folder / f"{place}.py").resolve(), path.parent)
        imports = [
            "import runpy",
            "from pathlib import Path",
            "from types import SimpleNamespace",
            "",
            "import torch",
        ]
        load = f"source = SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / {source!r})))"
    else:
        place, _, expression = function.partition(":")
        imports, load = (
            ["import importlib", "", "import torch"],
            f"source = importlib.import_module({place!r})",
        )
    words = [_value(expression.strip()), *map(_value, inputs)]
    keywords = [f"{key!r}: {_value(text)}" for key, text in kwargs.items()]
    words += [f"kwargs={{{', '.join(keywords)}}}"] if keywords else []
    target = getattr(capture, "target", None)
    words += [f"target={target.requested!r}"] if target is not None else []
    checks = _checks(capture)
    name = "".join(char if char.isalnum() else "_" for char in expression.strip())[:40]
    lines = [
        '"""Holds a function to the code that torch.compile generated for it."""',
        "",
        *imports,
        "",
        load,
        "",
        "",
        f"def test_{name}(compile_lens):",
        f"    expected = compile_lens.expect({', '.join(words)})",
        *(f"    expected.{check}" for check in checks),
        "",
    ]
    return "\n".join(lines)


def _value(expression: str) -> str:
    """Return the code of an expression that may use torch and names of the source module."""
    if expression.isidentifier():
        return f"source.{expression}"
    names = {node.id for node in ast.walk(ast.parse(expression, mode="eval")) if isinstance(node, ast.Name)}
    if names <= {"torch"}:
        return expression
    return f"eval({expression!r}, {{**vars(source), 'torch': torch}})"


def _checks(capture: Record) -> list[str]:
    """Return the expectations for the figures that the record has."""
    from ...measures.ledger import ledger
    from ...record import claims

    checks = [f"graphs({graphs(capture)})"]
    if not capture.lacks(claims.BREAKS):
        checks.append(f"graph_breaks({len(capture.breaks)})")
    if not capture.lacks(claims.RECOMPILES):
        checks.append(f"recompiles({len(capture.recompiles)})")
    launches = ledger(capture).total.launches
    if isinstance(launches, int):
        checks.append(f"launches(at_most={int(launches)})")
    return checks
