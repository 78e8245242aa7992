"""Lesson 7, C++ and SIMD: its output, and the claims of its text."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
from pathlib import Path

import lessons
import pytest
import torch
from needs import not_here
from torch._inductor.cpp_builder import CppTorchOptions, _get_ffast_math_flags

import compile_lens

pytestmark = [pytest.mark.torch, pytest.mark.slow]

NAME = lessons.named("07")


@pytest.mark.exhaustive
def test_it_reads_registers() -> None:
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    assert re.findall(r"no guess; the capture has (\d+) numbers at a time", cells["run"]) == [
        "16",
        "32",
    ]
    kernel = cells["kernel"]
    assert "Vectorized<float>::loadu(" in kernel and "C10_UNLIKELY(" in kernel and ".sin()" in kernel
    assert ", static_cast<int64_t>(8L))" in kernel, "what is left of 1000 after 62 registers of 16"
    half = cells["half"].splitlines()
    assert "Vectorized<at::BFloat16>::loadu" in half[0] and "convert<float,2,at::BFloat16,1>" in half[1]
    assert "convert<at::BFloat16,1,float,2>" in half[-2] and len(half) == 8
    assert re.match(r"step 1\n", cells["scalar"]) and "std::sin(" in cells["scalar"]
    assert "Vectorized" not in cells["scalar"]
    threads, small, large = cells["threads"].splitlines()
    assert threads == f"threads here: {torch.get_num_threads()}"
    assert small.endswith("1,000 numbers: in one thread")
    if torch.get_num_threads() > 1:
        assert large.endswith("1,048,576 numbers: shared among threads")


def test_steps_are_registers() -> None:
    """The table agrees with the widths of the registers: 64-bit numbers take two of them."""
    cells = {name: lessons.text(outputs) for name, outputs in lessons.run(NAME).items()}
    head, *rows = map(str.split, cells["targets"].splitlines())
    assert head == ["float32", "bfloat16", "float64"]
    for target, bits in (("neon", 128), ("sve256", 256), ("avx2", 256), ("avx512", 512)):
        (row,) = (row[1:] for row in rows if row[0] == f"cpu:{target}")
        assert row == [str(bits // 32), str(bits // 16), str(2 * bits // 64)], target


def test_what_its_slider_shows() -> None:
    """The bodies of the loop by size match the text: the numbers processed at a time, and which body is a tail."""
    prose = lessons.prose(NAME)["sizes-meaning"]
    sizes = lessons.said(
        prose, r"(\d+) numbers do not fill .* (\d+) fill it.* For (\d+) .* for ([\d,]+) a tail"
    )
    assert (15, 16, 17, 1000) == sizes and f"for size in {sizes}" in lessons.prose(NAME)["sizes"]
    bodies = {}
    for size in sizes:
        code = compile_lens.capture(lambda x: torch.sin(x) * 2, torch.rand(size), target="cpu:avx512")
        source = code.kernels[0].source
        bodies[size] = re.findall(r"C10_(\w*)LIKELY[^;]*, static_cast<int64_t>\((\d+)L?\)\);", source)
    tails = [("", "15")], [("", "16")], [("", "16"), ("UN", "1")], [("", "16"), ("UN", "8")]
    assert bodies == dict(zip(sizes, tails))
    assert lessons.said(prose, r"tail for (\w+) number, .* a tail for (\w+)") == (1, 8)


def test_its_prose_says_what_the_captures_say() -> None:
    prose = lessons.prose(NAME)
    assert lessons.said(prose["take-home"], r"(\d+) float32 with AVX-512, (\d+) in bfloat16") == (16, 32)
    assert lessons.said(prose["kernel-meaning"], r"512 bits are (\w+) times (\d+)") == (16, 32)
    assert lessons.said(prose["half-meaning"], r"register of (\d+) short numbers") == (32,)
    assert 1000 % 16 and lessons.said(prose["targets-why"], r"(\d+) bits on most ARM") == (128,)


def test_a_cpp_compiler_stops_at_a_sine(tmp_path: Path) -> None:
    """The lesson's loop compiled by g++ alone with Inductor's flags calls a scalar sine."""
    prose, printed = lessons.prose(NAME), lessons.text(lessons.run(NAME)["scalar"])
    loop = printed.partition("\n")[2]
    assert loop.startswith("#pragma GCC ivdep") and "`#pragma GCC ivdep`" in prose["scalar-meaning"]
    if shutil.which("g++") is None or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        not_here("this asks g++ on Linux for x86-64")
    flags = _get_ffast_math_flags()
    assert "ffast-math" not in flags, "which Inductor does not pass"
    head = "#include <cmath>\n#include <cstdint>\nvoid f(const float* in_ptr0, float* out_ptr0)\n{ {\n"
    (tmp_path / "loop.cpp").write_text(head + loop + "} }\n")

    def sines(*more: str) -> set[str]:
        command = ["g++", "-O3", "-mavx512f", "-S", "-o", "-", *more, str(tmp_path / "loop.cpp")]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"(?:call|jmp)\s+(\w*sinf?)\b", text))

    assert sines() == sines(*(f"-{flag}" for flag in flags)) == {"sinf"}
    assert all(name.startswith("_ZGV") for name in sines("-ffast-math")), "a sine of a whole register"
    assert sines("-ffast-math")


def test_gcc_is_told_to_leave_loops_alone(tmp_path: Path) -> None:
    """g++ vectorizes the product of the lesson's loop at -O3, and does not with Inductor's switch."""
    prose = lessons.prose(NAME)
    assert (
        "`-fno-tree-loop-vectorize`" in prose["scalar-meaning"]
        and "switches off GCC's own" in prose["take-home"]
    )
    if shutil.which("g++") is None or (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        not_here("this asks g++ on Linux for x86-64")
    assert "no-tree-loop-vectorize" in " ".join(CppTorchOptions(compiler="g++").get_cflags())
    loop = "#pragma GCC ivdep\nfor (long i = 0; i < 1000; i++) out[i] = in[999 - i] * 2.0f;"
    (tmp_path / "loop.cpp").write_text(f"void f(const float* in, float* out) {{\n{loop}\n}}\n")

    def registers(*more: str) -> bool:
        command = ["g++", "-O3", "-mavx512f", "-S", "-o", "-", *more, str(tmp_path / "loop.cpp")]
        return "%zmm" in subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert registers() and not registers("-fno-tree-loop-vectorize")


def test_its_exercises_wait_for_their_functions() -> None:
    lessons.exercises_wait(NAME)
