"""Validates the output of ``--json`` against the schema that the documentation publishes."""

from __future__ import annotations

import importlib.util
import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import compile_lens
from compile_lens.cli import main
from compile_lens.cli.output import document

jsonschema = pytest.importorskip("jsonschema")

pytestmark = [pytest.mark.torch]

ROOT = Path(__file__).parents[2]
SCHEMA = json.loads((ROOT / "docs" / "static" / "output.schema.json").read_text(encoding="utf-8"))

CODE = """
import torch


def f(x):
    return (x.sin() * x.cos()).sum()


def g(x):
    y = x.sin()
    print("here")
    return y.cos()


def fails(x):
    raise ValueError("not today")


def check_launches(compile_lens):
    compile_lens.expect(f, torch.rand(8)).launches(9)
"""

SCRIPT = """
import torch
from net import g

compiled = torch.compile(g, backend="aot_eager")
for length in (3, 4, 5):
    compiled(torch.ones(length))
"""

INPUT = ("--input", "torch.rand(8)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a program and the records of its captures and of a run."""
    folder = tmp_path_factory.mktemp("schema")
    (folder / "net.py").write_text(CODE, encoding="utf-8")
    (folder / "script.py").write_text(SCRIPT, encoding="utf-8")
    net = runpy.run_path(str(folder / "net.py"))
    import torch

    x = torch.rand(8, requires_grad=True)
    compile_lens.capture(net["f"], x).save(folder / "f.json")
    compile_lens.capture(net["g"], x).save(folder / "g.json")
    with compile_lens.watch() as program:
        torch.compile(net["g"], backend="aot_eager")(x)
    program.save(folder / "p.json")
    return folder


@pytest.fixture
def printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Return the document that a command prints, validated against the schema."""
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))

    def printed(*words: str) -> Any:
        capsys.readouterr()
        main([*words, "--json", "--quiet"])
        return held(capsys.readouterr().out, words[0])

    return printed


def held(text: str, command: str) -> Any:
    """Return the document of a command, validated against the schema."""
    output = json.loads(text)
    jsonschema.Draft202012Validator(SCHEMA).validate(output)
    assert output.get("command") == command or set(output) == {"schema", "error"}
    return output


def test_the_schema_is_the_one_that_the_program_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_schema", ROOT / "docs" / "make_schema.py")
    assert spec is not None and spec.loader is not None
    make_schema = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_schema", make_schema)
    spec.loader.exec_module(make_schema)
    assert make_schema.schema() == SCHEMA, "run python docs/make_schema.py"
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_a_field_that_the_schema_does_not_know_is_refused(printed: Callable[..., Any]) -> None:
    output = printed("open", "f.json")
    for place in (output, output["ledger"], output["kernels"][0], output["environment"]):
        place["other"] = 1
        assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(output)
        del place["other"]
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(output)


@pytest.mark.parametrize(
    "words",
    [
        ("open", "f.json"),
        ("open", "g.json", "--story"),
        ("open", "p.json"),
        ("open", "none.json"),
        ("diff", "f.json", "g.json", "--fail-on", "breaks"),
        ("merge", "p.json", "p.json"),
        ("support", "sin"),
        ("support", "--capture", "f.json", "--target", "mps"),
        ("upgrade", "--list"),
    ],
    ids=" ".join,
)
def test_documents_of_records(printed: Callable[..., Any], words: tuple[str, ...]) -> None:
    assert printed(*words)["schema"] == 1


@pytest.mark.full
@pytest.mark.parametrize(
    "words",
    [
        ("show", "net.py:g", *INPUT),
        ("show", "net.py:f", *INPUT, "--target", "mps"),
        ("show", "net.py:fails", *INPUT),
        ("brief", "net.py:f", *INPUT),
        ("cost", "net.py:f", *INPUT),
        ("cost", "net.py:fails", *INPUT),
        ("memory", "net.py:f", *INPUT),
        ("memory", "net.py:f", "--input", "torch.rand(8, requires_grad=True)", "--curve", "0.5"),
        ("compare", "net.py:g", *INPUT, "--target", "cpu", "--target", "mps"),
        ("what-if", "net.py:f", *INPUT, "--switch", "pattern_matcher", "--pairs", "0"),
        ("check", "net.py"),
        ("doctor",),
    ],
    ids=" ".join,
)
@pytest.mark.cases(full=4)
def test_documents_of_captures(printed: Callable[..., Any], words: tuple[str, ...]) -> None:
    assert printed(*words)["schema"] == 1


@pytest.mark.full
def test_the_document_of_a_run(folder: Path) -> None:
    words = (sys.executable, "-m", "compile_lens", "run", "--json", "--quiet", "script.py")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert held(done.stdout, "run")["counts"]["recompiles"] == 2  # g, and its resume function


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_document_of_a_divergence(printed: Callable[..., Any]) -> None:
    assert printed("divergence", "net.py:f", *INPUT)["agrees"] is True


@pytest.mark.parametrize("number", ["inf", "-inf", "nan"])
def test_a_number_that_json_lacks_is_text(number: str) -> None:
    body = json.loads(document({"command": "divergence", "values": [{"difference": float(number)}]}))
    assert body["values"] == [{"difference": number}]
