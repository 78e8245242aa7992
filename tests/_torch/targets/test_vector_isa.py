"""C++ for vector instructions that the processor may lack."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from full_text import full
from needs import not_here

from compile_lens._torch.targets import vector_isa
from compile_lens.api.capture import capture
from compile_lens.devices import models
from compile_lens.errors import UsageError
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]
STEPS = {"avx2": 8, "avx512": 16, "neon": 4, "sve256": 8}
"""Floats that one vector holds."""


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def seen_for(arch: str, fn: Any = wave, *args: Any, **options: Any) -> Capture:
    with vector_isa.stand_in_for(arch):
        return capture(fn, *(args or (torch.rand(64, 1000),)), **options)


def step(made: Capture) -> int:
    """The step of the widest loop."""
    steps = re.findall(r"x\d\+=static_cast<int64_t>\((\d+)L\)", made.kernels[0].source)
    return max(map(int, steps))


def picked() -> tuple[str, int]:
    from torch._inductor import cpu_vec_isa

    found = cpu_vec_isa.pick_vec_isa()
    return full(found), found.bit_width()


def test_the_names_are_those_of_the_targets() -> None:
    assert set(vector_isa.NAMES) == set(models.CPUS) == set(STEPS)


@pytest.mark.parametrize("arch", STEPS)
def test_code_is_written_for_these_instructions(arch: str) -> None:
    made = seen_for(arch)
    assert step(made) == STEPS[arch]
    assert "Vectorized<float>" in made.kernels[0].source and not made.notes
    assert made.kernels[0].lines and any(line.origins == ("sin",) for line in made.kernels[0].lines)


def test_widths_are_in_the_record() -> None:
    assert seen_for("avx2").environment.isa.startswith("avx2")


@pytest.mark.parametrize("arch", STEPS)
def test_backwards_too(arch: str) -> None:
    made = seen_for(arch, lambda x: torch.softmax(torch.sin(x), -1), torch.rand(8, 64, requires_grad=True))
    assert {k.phase for k in made.kernels} == {"forward", "backward"}
    assert all(f"+=static_cast<int64_t>({STEPS[arch]}L)" in k.source for k in made.kernels)


@pytest.mark.full
def test_everything_is_as_before() -> None:
    from torch._inductor import cpu_vec_isa, utils
    from torch._inductor.kernel.flex import flex_cpu

    def places() -> list[Any]:
        return [
            cpu_vec_isa.valid_vec_isa_list,
            cpu_vec_isa.get_isa_from_cpu_capability,
            cpu_vec_isa.pick_vec_isa,
            flex_cpu.check_cpu_supported,
            utils._use_template_for_cpu,
        ]

    before, own, sources = places(), picked(), [k.source for k in capture(wave, torch.rand(64, 1000)).kernels]
    memory = cpu_vec_isa.valid_vec_isa_list.cache_info()
    for arch in STEPS:
        with pytest.raises(ZeroDivisionError), vector_isa.stand_in_for(arch):
            assert picked() != (None, None)
            raise ZeroDivisionError
    assert all(now is then for now, then in zip(places(), before, strict=True))
    assert cpu_vec_isa.valid_vec_isa_list.cache_info().currsize == memory.currsize
    assert picked() == own
    assert [k.source for k in capture(wave, torch.rand(64, 1000)).kernels] == sources


def test_other_threads_see_the_processor() -> None:
    own = picked()
    other = next(arch for arch in vector_isa.ARM if vector_isa.instructions(arch)[0].bit_width() != own[1])
    seen: list[Any] = []
    with vector_isa.stand_in_for(other):
        thread = threading.Thread(
            target=lambda: seen.append((picked(), capture(wave, torch.rand(64)).kernels))
        )
        thread.start()
        thread.join(60)
        assert picked() != own
    assert seen[0][0] == own
    assert seen[0][1][0].source == capture(wave, torch.rand(64)).kernels[0].source


def test_no_compiler_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import cpp_builder, cpu_vec_isa

    def asked(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a compiler was asked")

    monkeypatch.setattr(cpu_vec_isa.VecISA, "check_build", asked)
    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", asked)
    for arch in STEPS:
        with vector_isa.stand_in_for(arch):
            assert bool(cpu_vec_isa.pick_vec_isa())
        assert seen_for(arch).failure is None


WITHOUT = """
import json, os, sys
os.environ["PATH"] = sys.argv[1]
os.environ.pop("CXX", None)
import torch
from torch._inductor import cpp_builder
from compile_lens import capture
found = {}
for name, fn in {"sum": lambda x: x.sin().sum(), "softmax": lambda x: torch.softmax(x, -1)}.items():
    for target in (None, "cpu:avx2"):
        seen = capture(fn, torch.linspace(0, 1, 4096).reshape(64, 64), target=target)
        found[f"{name} {target}"] = [[k.source for k in seen.kernels], list(seen.notes)]
print(json.dumps([found, cpp_builder.is_gcc.cache_info().currsize]))
"""


@pytest.mark.exhaustive
def test_code_is_written_where_there_is_no_compiler(tmp_path: Path) -> None:
    """A function with a reduction queries the kind of the compiler; a laptop may have none."""

    if shutil.which("g++") is None:
        not_here("there is no g++ to compare with")

    def run(path: str) -> tuple[dict[str, Any], int]:
        command = [sys.executable, "-c", WITHOUT, path]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        found, remembered = json.loads(done.stdout.splitlines()[-1])
        return found, remembered

    there, _ = run(os.environ["PATH"])
    missing, remembered = run(str(tmp_path))
    assert not remembered, "torch would take a compiler for granted"
    for case, (kernels, notes) in missing.items():
        assert kernels and kernels == there[case][0]
        assert any("no C++ compiler was found" in note for note in notes), case
        assert not any("no C++ compiler was found" in note for note in there[case][1])


AFTERWARDS = """
import json, sys
import torch
from torch._inductor import cpu_vec_isa
if sys.argv[1] == "captured":
    from compile_lens import capture
    seen = capture(lambda x: torch.softmax(x.sin(), -1), torch.rand(64, 64))
    assert "at::vec" in seen.kernels[0].source or not cpu_vec_isa.x86_isa_checker()
found = [str(kind) for kind in cpu_vec_isa.valid_vec_isa_list()]
flags = {str(kind): kind.build_arch_flags() for kind in cpu_vec_isa.supported_vec_isa_list}
print(json.dumps([found, str(cpu_vec_isa.pick_vec_isa()), flags]))
"""


@pytest.mark.exhaustive
def test_a_later_compile_asks_the_compiler_all_that_it_would_have_asked(tmp_path: Path) -> None:
    """The compiler knows no vector instructions, so code that needs one could not be built."""
    compiler = tmp_path / "g++"
    compiler.write_text('#!/bin/sh\ncase "$*" in *--version*) echo "g++ 9.9.9";; *) exit 1;; esac\n')
    compiler.chmod(0o755)
    variables = {**os.environ, "CXX": str(compiler)}
    answers = []
    for name in ("plain", "captured"):
        variables["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path / name)
        command = [sys.executable, "-c", AFTERWARDS, name]
        done = subprocess.run(command, capture_output=True, text=True, env=variables, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        answers.append(json.loads(done.stdout.splitlines()[-1]))
    assert answers[0][:2] == [[], "INVALID_VEC_ISA"]
    assert answers[1] == answers[0]


def test_what_is_assumed_in_two_threads_is_forgotten_with_the_last() -> None:
    from torch._inductor import cpu_vec_isa

    from compile_lens._torch.code import compiler_probe
    from compile_lens._torch.ground import hooks

    probe = cpu_vec_isa.valid_vec_isa_list
    probe.cache_clear()
    with hooks.in_place():
        first, second = (compiler_probe.without_probing(lambda note: None) for _ in range(2))
        first.__enter__()
        cpu_vec_isa.pick_vec_isa()
        second.__enter__()
        first.__exit__(None, None, None)
        cpu_vec_isa.pick_vec_isa()
        second.__exit__(None, None, None)
    assert not probe.cache_info().currsize


def test_the_variable_for_the_own_processor_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert step(seen_for("avx512")) == 16
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert step(seen_for("neon")) == 4


def test_a_width_that_the_user_asks_for_counts() -> None:
    assert step(seen_for("avx512", options={"cpp.simdlen": 256})) == 8
    scalar = seen_for("avx2", options={"cpp.simdlen": 512})
    assert "Vectorized" not in scalar.kernels[0].source


def test_no_template_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import codecache

    def built(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("something was built")

    monkeypatch.setattr(codecache.CppCodeCache, "load_async", built)
    pair = (torch.rand(4, 64, 64), torch.rand(4, 64, 64))
    made = seen_for("avx512", torch.bmm, *pair, options={"max_autotune": True})
    assert [k.language for k in made.kernels] == ["extern"]


def test_another_name_is_refused_with_the_known_ones() -> None:
    with (
        pytest.raises(UsageError, match=r"'avx1024'.*avx2, avx512, neon, sve256"),
        vector_isa.stand_in_for("avx1024"),
    ):
        pass


@pytest.mark.parametrize("arch", STEPS)
def test_what_may_differ_is_said(arch: str) -> None:
    said = vector_isa.isa_caveats(arch)
    assert any(f"{torch.get_num_threads()} thread" in sentence for sentence in said)
    assert any("MKL" in sentence for sentence in said) == (arch in vector_isa.ARM and not arm())
    assert all(sentence.endswith(".") for sentence in said)


def arm() -> bool:
    import platform

    return platform.machine().lower() in ("aarch64", "arm64")


def test_the_threads_that_are_baked_in_are_those_that_are_named() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(before + 3)
    try:
        made, said = seen_for("avx2"), vector_isa.isa_caveats("avx2")
    finally:
        torch.set_num_threads(before)
    assert f"num_threads({before + 3})" in made.kernels[0].source
    assert any(f"the {before + 3} threads" in sentence for sentence in said)


def test_instructions_have_a_name() -> None:
    from torch._inductor.cpu_vec_isa import VecAVX512VNNI, invalid_vec_isa

    assert [vector_isa.name_of(vector_isa.instructions(arch)[0]) for arch in vector_isa.NAMES] == list(
        vector_isa.NAMES
    )
    assert vector_isa.name_of(VecAVX512VNNI()) == "avx512" and vector_isa.name_of(invalid_vec_isa) == ""
