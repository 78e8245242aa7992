"""Lesson 0, devices: its output, and the claims of its text."""

from __future__ import annotations

import re

import lessons
import pytest
import torch

from compile_lens import capture, support

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("00")


def test_it_tells_operators_from_code() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert cells["where"].strip() == "cpu | meta | torch.Size([1000])"
    assert re.findall(r"^\S+ +(\w+)$", cells["line"], re.M) == ["cpp", "triton", "metal"]
    assert cells["line"].count("sin(") == 3 or cells["line"].count("sin(") == 4, (
        "a C++ kernel may have a tail"
    )
    rows = cells["table"].splitlines()
    assert "lowering" in rows[1] and all("library call" in row for row in rows[3::2])
    assert "mps kernel" in rows[2] and "mps kernel" not in rows[4] + rows[6]
    matches = re.findall(r"no guess; the capture has (\d)", cells["run"])
    assert matches == ["0", "1"]
    named, triangles = cells["kernels"].strip().split("\n\n")
    assert named.startswith("extern") and "\n" not in named
    assert [line.split()[0] for line in triangles.splitlines()].count("cpp") == 1
    assert "lu_factor" in triangles and cells["same"] == "True"
    assert [line.split(".")[-2] for line in triangles.splitlines() if line.startswith("extern")] == [
        "linalg_lu_factor_ex",
        "_linalg_check_errors",
    ], "what the text says a library does"


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    assert "The determinant has a kernel on all three" in prose["table-meaning"]
    for op, everywhere in (("_linalg_det", True), ("_linalg_svd", False), ("_linalg_eigh", False)):
        (overload, *_) = support(f"aten.{op}").overloads
        assert (overload.on("mps").kind == "kernel") is everywhere, op
    record = capture(lambda x: torch.linalg.det(x), torch.rand(4, 4))
    assert {kernel.language for kernel in record.kernels} == {"extern"}
    assert "wrote nothing at all" in prose["run-meaning"]


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
