"""Compiles C++ kernels to assembly without running them: also for a processor that is not here."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import re
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...record.kernel import Kernel
from ..targets import isa
from . import cpu_assembly

SECONDS = 300
"""After which a compiler is given up."""

MARCH = {"avx2": "x86-64-v3", "avx512": "x86-64-v4"}
"""What a compiler may use for these vector instructions, where the processor itself is not here to be asked."""

_FAMILIES = {**dict.fromkeys(isa.X86, ("x86_64", "amd64")), **dict.fromkeys(isa.ARM, ("aarch64", "arm64"))}


def compiled(kernels: Sequence[Kernel], arch: str = "") -> tuple[Kernel, ...]:
    """The kernels with the assembly of those that are C++, or the reason why there is none.

    The compiler, the flags and the libraries are those that Inductor builds with. Nothing is loaded or run.

    Args:
        arch: the vector instructions that the code was written for (``avx2``); ``""``: those of this processor.

    Raises:
        UsageError: for an unknown ``arch``.
    """
    with isa.standing_in(arch) if arch else contextlib.nullcontext():
        return tuple(_compiled(kernel, arch) if kernel.language == "cpp" else kernel for kernel in kernels)


def _compiled(kernel: Kernel, arch: str) -> Kernel:
    if reason := _foreign(arch):
        return dataclasses.replace(kernel, machine_note=reason)
    with tempfile.TemporaryDirectory(prefix="compile-lens-") as folder:
        source = Path(folder) / "kernel.cpp"
        source.write_text(kernel.source, encoding="utf-8")
        reason = _build(source, arch)
        library = source.with_suffix(".so")
        if not reason and not library.is_file():
            reason = "the C++ compiler wrote no library"
        if reason:
            return dataclasses.replace(kernel, machine_note=reason)
        return cpu_assembly.read({kernel.name: library}, [kernel])[0]


def _foreign(arch: str) -> str:
    """Why the compiler of this machine cannot build for ``arch``, ``""`` if it can."""
    here = platform.machine()
    family = "an x86-64" if arch in isa.X86 else "an ARM"
    if here.lower() in _FAMILIES.get(arch, (here.lower(),)):
        return ""
    return (
        f"the C++ compiler here builds for {here}, not for {arch}: assemble the capture on a machine with "
        f"{family} processor"
    )


def _build(source: Path, arch: str) -> str:
    """Build a library beside ``source``; the reason if that fails, else ``""``."""
    from torch._inductor import cpp_builder
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    try:
        options = cpp_builder.CppTorchOptions(vec_isa=pick_vec_isa(), include_pytorch=False, shared=True)
        builder = cpp_builder.CppBuilder(
            name=source.stem, sources=str(source), BuildOption=options, output_dir=str(source.parent)
        )
        command = shlex.split(builder.get_command_line())
    except Exception as error:  # torch has an error of its own for each way of not finding a compiler
        return f"Inductor has no C++ compiler to build with ({_first(str(error)) or type(error).__name__})"
    if arch in MARCH:
        command = [f"-march={MARCH[arch]}" if word == "-march=native" else word for word in command]
    if not any(re.fullmatch(r"-g(\d|line-tables-only)?", word) for word in command):
        command.append("-g1")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=SECONDS, cwd=source.parent
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"the C++ compiler could not be run ({type(error).__name__})"
    if done.returncode:
        failed = [line for line in done.stderr.splitlines() if "error" in line]
        return f"the C++ compiler refuses it: {_first(''.join(failed[:1]).rpartition('error: ')[2])}"
    return ""


def _first(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0].rstrip(".") if lines else ""
