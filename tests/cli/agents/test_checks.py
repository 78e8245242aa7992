"""Accepted input of an assistant: paths of the folder, names and expressions of a bounded length."""

from __future__ import annotations

from pathlib import Path

import pytest

from compile_lens.cli.agents import checks
from compile_lens.errors import UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "m.py").write_text("")
    (tmp_path / "m.py").write_text("")
    (folder / "away").symlink_to(tmp_path)
    (tmp_path / "inside2").mkdir()
    return folder.resolve()


@pytest.mark.parametrize(
    "text", ["m.py:f", "./m.py:Net().eval()", "away/inside/m.py:f", "package.module:f", "m:f"]
)
def test_a_function_of_the_folder_is_taken_as_it_is(folder: Path, text: str) -> None:
    assert checks.function(text, folder) == text


@pytest.mark.parametrize(
    "text",
    [
        "../m.py:f",
        "away/m.py:f",
        "/etc/passwd.py:f",
        "../inside2/m.py:f",
        "sub/../../m.py:f",
        "~/../../m.py/../../x.py:f\x00",
        "m.py:f\n--out=x",
        "--out=x.py:f",
        "-m.py:f",
        "m.py",
        "m.py:",
        ":f",
        "",
        "os/path:f",
        "os..path:f",
        "m.py:" + "f" * 10_000_000,
        "m.py:\u202ef",
    ],
)
def test_what_leads_out_of_the_folder_or_is_no_name_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(UsageError) as error:
        checks.function(text, folder)
    assert len(str(error.value)) < 2_500


def test_an_input_is_one_word_whatever_it_begins_with(folder: Path) -> None:
    words = checks.call("m.py:f", ["--out=/tmp/x", "-1", "torch.rand(2)"], {"dim": "-1"}, folder)
    assert words == [
        "m.py:f",
        "--input=--out=/tmp/x",
        "--input=-1",
        "--input=torch.rand(2)",
        "--kwarg=dim=-1",
    ]


@pytest.mark.parametrize(
    ("inputs", "kwargs"),
    [
        (["x" * 10_000_000], {}),
        (["\x00"], {}),
        ([""], {}),
        (["1"] * 65, {}),
        ([], {"a b": "1"}),
        ([], {"--x": "1"}),
    ],
)
def test_inputs_that_cannot_be_are_refused(folder: Path, inputs: list[str], kwargs: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        checks.call("m.py:f", inputs, kwargs, folder)
