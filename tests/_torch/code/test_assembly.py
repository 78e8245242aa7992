"""The assembly of built C++ kernels, checked against the C++ from which it was compiled."""

from __future__ import annotations

import platform
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from needs import not_here

from compile_lens import versions
from compile_lens._torch import session
from compile_lens._torch.code import cpu_assembly
from compile_lens._torch.targets import vector_isa
from compile_lens.api.capture import capture
from compile_lens.errors import StageMissing
from compile_lens.record.kernel import Kernel
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch]
NO_HEADERS = {"cpp_cache_precompile_headers": False}
"""Flags of their own would have Inductor compile torch's headers first, and keep them."""

X86 = platform.machine() in ("x86_64", "AMD64")


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    if lacks := session.missing_compiler():
        not_here(f"there is no C++ compiler: {lacks}")
    for tool in ("objdump", "addr2line"):
        if shutil.which(tool) is None:
            not_here(f"{tool} is not installed")


def wave(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def gated(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x + bias) * torch.sigmoid(x)


def norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (64,), weight, bias)


INPUTS = {"wave": 1, "softmax": 1, "gated": 2, "norm": 3}


def inputs(name: str) -> tuple[torch.Tensor, ...]:
    return (torch.rand(16, 64), torch.rand(64), torch.rand(64))[: INPUTS[name]]


@pytest.fixture(scope="module")
def libraries() -> dict[str, Path]:
    """Paths of the libraries of the built kernels, which Inductor keeps; ``whole`` fills it."""
    return {}


@pytest.fixture(scope="module")
def whole(libraries: dict[str, Path]) -> dict[str, Capture]:
    """Built captures."""
    real = cpu_assembly.library

    def library(module: Any, name: str) -> Path | None:
        path = real(module, name)
        if path is not None:
            libraries[name] = path
        return path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_assembly, "library", library)
        return {name: capture(globals()[name], *inputs(name), build=True) for name in INPUTS}


@pytest.fixture(scope="module")
def kernels(whole: dict[str, Capture]) -> dict[str, Kernel]:
    """The kernels, compiled a second time on a torch that builds without a line table."""
    found = {name: made.kernels[0] for name, made in whole.items()}
    if versions.torch_version() >= (2, 13):
        return found
    return {name: cpu_assembly.compile_kernels([kernel])[0] for name, kernel in found.items()}


def linked(kernel: Kernel) -> list[tuple[str, str, tuple[str, ...]]]:
    """Instructions, each with its linked line of C++ and the nodes of that line."""
    assert kernel.machine is not None, kernel.machine_note
    form = kernel.machine.form("assembly")
    assert form is not None
    text, source = form.text.splitlines(), kernel.source.splitlines()
    origins = {line.line: line.origins for line in kernel.lines}
    return [
        (" ".join(text[at - 1].split()), source[line - 1].strip(), origins.get(line, ()))
        for at, line in form.links
    ]


@pytest.mark.full
def test_the_record_has_the_assembly(whole: dict[str, Capture]) -> None:
    for made in whole.values():
        machine = made.kernels[0].machine
        assert machine is not None and machine.form("assembly") is not None
        assert made.kernels[0].assembly.startswith("kernel:\n")
        listed = [x for x in made.kernels[0].assembly.splitlines() if x.startswith("        ")]
        assert machine.instructions == len(listed) > 20
        assert machine.arch == vector_isa.picked_isa() or not vector_isa.picked_isa()
        assert re.match(r"(g|clang)\+\+ \d+", machine.compiler)
        assert Capture.from_json(made.to_json()).kernels[0].machine == machine


@pytest.mark.full
def test_the_width_is_that_of_the_instructions_that_were_picked(whole: dict[str, Capture]) -> None:
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    for made in whole.values():
        machine = made.kernels[0].machine
        assert machine is not None and machine.vector_bits == pick_vec_isa().bit_width()


@pytest.mark.full
@pytest.mark.skipif(not X86, reason="names of x86 instructions")
@pytest.mark.parametrize(
    ("name", "instruction", "line", "origins"),
    [
        ("wave", r"call Sleef_sinf\d+_", r"tmp\d+\.sin\(\)", ("sin",)),
        ("wave", r"call Sleef_cosf\d+_", r"tmp\d+\.cos\(\)", ("cos",)),
        ("wave", r"vmulps", r"(tmp\d+) \* \1;", ("pow_1", "pow_2")),
        ("wave", r"vaddps", r"tmp\d+ \+ tmp\d+;", ("add",)),
        ("wave", r"vmovups [YZ]MMWORD PTR \[r(?!bp|sp)", r"\.store\(out_ptr0", ("add",)),
        ("softmax", r"call Sleef_expf\d+_", r"\.exp\(\)", ("exp",)),
        ("softmax", r"vmaxps", r"maximum\(", ("amax",)),
        ("softmax", r"vsubps", r"tmp\d+ - tmp\d+;", ("sub",)),
        ("softmax", r"vdivps", r"tmp\d+ / tmp\d+;", ("div",)),
        ("gated", r"call Sleef_tanhf\d+_", r"tmp\d+\.tanh\(\)", ("tanh",)),
        ("gated", r"call Sleef_expf\d+_", r"\.exp\(\)", ("sigmoid",)),
        ("gated", r"vdivps", r"\.exp\(\)", ("sigmoid",)),
        ("gated", r"vmovups [YZ]MMWORD PTR \[r(?!bp|sp)", r"\.store\(out_ptr0", ("mul",)),
        ("norm", r"(v\w*sqrt\w+|call \w*sqrt\w*)", r"sqrt\(", ("rsqrt",)),
    ],
)
def test_an_instruction_is_linked_to_the_line_that_asks_for_it(
    kernels: dict[str, Kernel], name: str, instruction: str, line: str, origins: tuple[str, ...]
) -> None:
    found = [(said, nodes) for text, said, nodes in linked(kernels[name]) if re.match(instruction, text)]
    assert found, kernels[name].assembly
    for said, nodes in found:
        assert re.search(line, said), said
        assert nodes and set(nodes) <= set(origins), (said, nodes)


@pytest.mark.full
@pytest.mark.parametrize("name", INPUTS)
def test_every_line_that_computes_has_instructions(kernels: dict[str, Kernel], name: str) -> None:
    """Only buffers local to the loop are exempt: the compiler may keep them in registers."""
    lines = {line for _, line, _ in linked(kernels[name])}
    asked = [
        text.strip()
        for text in kernels[name].source.splitlines()
        if re.search(r"\.(sin|cos|exp|tanh)\(|\.store\(\w*out_ptr", text)
    ]
    assert asked and [text for text in asked if text not in lines] == []


@pytest.mark.full
def test_most_instructions_are_linked_and_barriers_to_no_operator(kernels: dict[str, Kernel]) -> None:
    for kernel in kernels.values():
        assert kernel.machine is not None and kernel.machine.instructions is not None
        assert len(linked(kernel)) / kernel.machine.instructions > 0.8
        runtime = [
            (line, nodes) for text, line, nodes in linked(kernel) if "GOMP_" in text or "__kmpc" in text
        ]
        assert all("#pragma omp" in line and not nodes for line, nodes in runtime)


@pytest.mark.full
def test_the_text_is_of_the_kernel_alone(kernels: dict[str, Kernel]) -> None:
    for kernel in kernels.values():
        heads = [x for x in kernel.assembly.splitlines() if x.endswith(":") and not x.startswith(".L")]
        assert heads and all(head.startswith("kernel") for head in heads)
        assert "Py" not in kernel.assembly and "/" not in kernel.assembly
        assert not re.search(r"(?m)^ +(j\w+|call) +[0-9a-f]{4,}\b|\[rip[+-]|#|<.*[+-]0x", kernel.assembly)


@pytest.mark.exhaustive
def test_a_table_of_lines_changes_no_instruction(
    kernels: dict[str, Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._inductor.config as config

    if not hasattr(config.aot_inductor, "enable_line_tables"):
        record = capture(wave, *inputs("wave"), build=True)
        reason = "builds kernels without a table of lines"
    else:
        with config.patch({"aot_inductor.enable_line_tables": False, **NO_HEADERS}):
            record = capture(wave, *inputs("wave"), build=True)
        reason = "set aot_inductor.enable_line_tables"
    machine = record.kernels[0].machine
    assert machine is not None and machine.forms[0].links == ()
    assert reason in dict(machine.missing)[cpu_assembly.LINKS]
    assert machine.forms[0].text == kernels["wave"].assembly


@pytest.mark.full
def test_externs_say_that_they_are_library_calls() -> None:
    record = capture(lambda x: x @ x, torch.rand(16, 16), build=True)
    with pytest.raises(StageMissing, match="library call"):
        assert record.kernels[0].assembly


def test_code_that_is_only_generated_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*args: Any) -> str:
        raise AssertionError("a tool was run")

    monkeypatch.setattr(cpu_assembly, "_run", run)
    assert capture(wave, torch.rand(16)).kernels[0].machine is None


@pytest.mark.full
def test_a_tool_that_is_not_there_costs_its_part_only(
    whole: dict[str, Capture], libraries: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = whole["wave"].kernels[0]
    real = shutil.which
    monkeypatch.setattr(
        cpu_assembly.shutil, "which", lambda tool: None if tool == "addr2line" else real(tool)
    )
    machine = cpu_assembly.read_libraries(libraries, [kernel])[0].machine
    assert machine is not None and machine.forms[0].links == ()
    assert "addr2line is not installed" in dict(machine.missing)[cpu_assembly.LINKS]
    monkeypatch.setattr(cpu_assembly.shutil, "which", lambda tool: None)
    note = cpu_assembly.read_libraries(libraries, [kernel])[0].machine_note
    assert "objdump is not installed" in note and "binutils" in note


@pytest.mark.full
def test_a_library_that_cannot_be_read_is_said(whole: dict[str, Capture], tmp_path: Path) -> None:
    kernel = whole["wave"].kernels[0]
    broken = tmp_path / "kernel.so"
    broken.write_bytes(b"no library")
    note = cpu_assembly.read_libraries({kernel.name: broken}, [kernel])[0].machine_note
    assert note.startswith("objdump failed (") and str(tmp_path) not in note
    assert "could not be found" in cpu_assembly.read_libraries({}, [kernel])[0].machine_note


@pytest.mark.full
def test_the_libraries_are_opened_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def run(tool: str, options: Any, given: str | None = None) -> str:
        asked.append(tool)
        return real(tool, options, given)

    real = cpu_assembly._run
    monkeypatch.setattr(cpu_assembly, "_run", run)
    record = capture(lambda x: (torch.sin(x) @ x).cos(), torch.rand(16, 16), build=True)
    written = [k for k in record.kernels if k.language == "cpp"]
    assert len(written) == 2 and all(k.machine for k in written)
    assert asked == ["objdump", "addr2line", "addr2line"]


@pytest.mark.full
@pytest.mark.skipif(not X86, reason="compiles for x86")
@pytest.mark.parametrize(
    ("arch", "bits", "register"),
    [
        ("avx2", 256, "ymm"),
        pytest.param("avx512", 512, "zmm", marks=[pytest.mark.slow, pytest.mark.exhaustive]),
    ],
)
def test_a_kernel_for_another_processor_is_compiled_but_not_run(arch: str, bits: int, register: str) -> None:
    with vector_isa.stand_in_for(arch):
        record = capture(wave, *inputs("wave"))
    kernel = cpu_assembly.compile_kernels(record.kernels, arch)[0]
    assert kernel.machine is not None, kernel.machine_note
    assert (kernel.machine.arch, kernel.machine.vector_bits) == (arch, bits)
    assert cpu_assembly.MARCH[arch] in kernel.machine.compiler or "clang" in kernel.machine.compiler
    assert max(re.findall(r"[xyz]mm", kernel.assembly)) == register
    assert any(re.match(r"call Sleef_sinf\d+", text) and ".sin()" in line for text, line, _ in linked(kernel))


@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_runs_is_what_the_same_compiler_makes_again(
    whole: dict[str, Capture], kernels: dict[str, Kernel]
) -> None:
    for name, kernel in kernels.items():
        again = cpu_assembly.compile_kernels([whole[name].kernels[0]])[0]
        assert again.assembly == whole[name].kernels[0].assembly
        assert again.machine == kernel.machine


def test_a_processor_of_another_family_needs_another_machine() -> None:
    arch = "neon" if X86 else "avx2"
    with vector_isa.stand_in_for(arch):
        record = capture(wave, torch.rand(64))
    note = cpu_assembly.compile_kernels(record.kernels, arch)[0].machine_note
    assert platform.machine() in note and arch in note and "on a machine with an" in note


@pytest.mark.slow
@pytest.mark.exhaustive
def test_scalar_code_has_no_vector() -> None:
    record = capture(
        lambda x: x.sin() * 2, torch.rand(64), build=True, options={"cpp.simdlen": 1, **NO_HEADERS}
    )
    machine = record.kernels[0].machine
    assert machine is not None and machine.vector_bits == 0


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_wrapper_in_cpp_has_its_kernels_in_one_library() -> None:
    record = capture(wave, torch.rand(64), build=True, options={"cpp_wrapper": True})
    kernel = record.kernels[0]
    assert kernel.machine is not None, kernel.machine_note
    assert "Sleef_sinf" in kernel.assembly or not X86
    assert kernel.assembly.startswith(f"{kernel.name}:\n")
