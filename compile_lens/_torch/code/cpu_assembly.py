"""The assembly of C++ kernels: read from the libraries that Inductor built, or compiled without being run, possibly for
another processor.

Inductor builds a library for each kernel and binds its one function to Python. Since torch 2.13 the library has a line
table (``-g1``), which gives the C++ line of each instruction at no cost; before that, the assembly has no links.
"""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...record.kernel import Kernel, Machine
from ..targets import vector_isa
from . import objdump
from .objdump import Frames, Function

READ_SECONDS = 60
"""Time limit, in seconds, of a tool that reads a library."""

LINKS = "lines"
"""Kind under which ``Machine.missing`` has the reason for assembly without links."""

_INSTALL = "install GNU binutils, and capture again"
_CPP_WRAPPER_FUNCTION = "inductor_entry"
"""Name of the one bound function if the wrapper too is C++, in one library with its kernels."""

_VECTOR_HEADERS = ("/ATen/cpu/vec/", "/torch/csrc/inductor/")
"""Folders of torch's headers with the functions that kernels use to compute."""


def with_assembly(module: Any, kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Return the kernels of a built wrapper module with their assembly, or the reason for its absence."""
    return read_libraries(
        {k.name: path for k in kernels if k.language == "cpp" and (path := library(module, k.name))}, kernels
    )


def read_libraries(libraries: Mapping[str, Path], kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """Return the kernels with the assembly from ``libraries``, the library of each kernel by its name."""
    from ..targets import vector_isa

    try:
        functions = _disassembled(sorted(set(libraries.values()))) if libraries else {}
    except ToolMissing as error:
        return tuple(_with_note(kernel, str(error)) for kernel in kernels)
    arch = vector_isa.picked_isa() or platform.machine()
    return tuple(_with_assembly(kernel, libraries.get(kernel.name), functions, arch) for kernel in kernels)


def _with_assembly(
    kernel: Kernel, path: Path | None, functions: Mapping[str, tuple[Function, ...]], arch: str
) -> Kernel:
    if path is None:
        return _with_note(kernel, "the library that it was built into could not be found")
    library_kernel = _LibraryKernel(path, functions.get(str(path), ()), kernel.source)
    if not library_kernel.functions:
        return _with_note(
            kernel, "objdump shows no function of its name in the library that it was built into"
        )
    return dataclasses.replace(kernel, machine=library_kernel.machine(arch))


def library(module: Any, name: str) -> Path | None:
    """Return the library file of a kernel in a built wrapper module."""
    for bound in (name, _CPP_WRAPPER_FUNCTION):
        function = getattr(module, bound, None)
        path = getattr(getattr(function, "__self__", None), "__file__", None)
        if path and Path(path).is_file():
            return Path(path)
    return None


def _with_note(kernel: Kernel, reason: str) -> Kernel:
    if kernel.language == "extern":
        reason = "it is a library call: Inductor generated no code for it"
    elif kernel.language != "cpp":
        return kernel
    return dataclasses.replace(kernel, machine_note=reason)


class ToolMissing(Exception):
    """A tool that reads libraries is missing or fails; the message says what to do."""


def _run(tool: str, options: Sequence[str], given: str | None = None) -> str:
    if shutil.which(tool) is None:
        raise ToolMissing(f"{tool} is not installed, and machine code cannot be read without it: {_INSTALL}")
    try:
        done = subprocess.run(
            [tool, *options],
            input=given,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=READ_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ToolMissing(f"{tool} could not be run ({type(error).__name__}): {_INSTALL}") from None
    if done.returncode:
        last_line = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ToolMissing(f"{tool} failed ({last_line.rpartition(': ')[2]}): {_INSTALL}")
    return done.stdout


def _disassembled(paths: Sequence[Path]) -> dict[str, tuple[Function, ...]]:
    intel = ["-M", "intel"] if platform.machine() in ("x86_64", "AMD64") else []
    text = _run("objdump", ["-d", "-C", *intel, "--no-show-raw-insn", *map(str, paths)])
    return objdump.libraries(text)


class _LibraryKernel:
    """One kernel in its library."""

    def __init__(self, path: Path, functions: Sequence[Function], source: str) -> None:
        self.path = path
        self.source = source
        self.symbol = symbol(source)
        self.functions = objdump.reachable(functions, self.symbol)
        self.frames: dict[int, Frames] = {}
        self.missing = ""
        addresses = "\n".join(hex(i.address) for f in self.functions for i in f.instructions)
        if addresses:
            try:
                output = _run("addr2line", ["-a", "-i", "-e", str(path)], addresses)
                self.frames = objdump.frames(output)
            except ToolMissing as error:
                self.missing = str(error)

    def machine(self, arch: str) -> Machine:
        """Return the kernel's instructions, linked to its source lines where these are known."""
        lines, reason = self._lines()
        kept = [f for f in self.functions if objdump.is_own(f, self.symbol) or self._computes(f, lines)]
        kept.sort(key=lambda f: (f.name.endswith(".cold"), f.name != self.symbol, f.address))
        form = objdump.listing(kept, lines)
        scalable = int(arch[3:]) if re.fullmatch(r"sve\d+", arch) else 0
        return Machine(
            arch=arch,
            compiler=compiler(self.path.read_bytes()),
            forms=(form,),
            instructions=sum(len(f.instructions) for f in kept),
            vector_bits=objdump.vector_bits(kept, scalable),
            missing=((LINKS, reason),) if reason else (),
        )

    def _lines(self) -> tuple[dict[int, int], str]:
        """Return the kernel's source line by address, and the reason if there are none."""
        if not self.frames:
            return {}, self.missing or without_lines()
        placed: dict[str, int | None] = {}
        lines_by_address: dict[int, int] = {}
        last = len(self.source.splitlines())
        for address, frames in self.frames.items():
            for file, line in frames:
                if not file.endswith(".cpp"):
                    continue
                if file not in placed:
                    placed[file] = lines_before(Path(file), self.source)
                before = placed[file]
                if before is not None and 1 <= line - before <= last:
                    lines_by_address[address] = line - before
                    break
        lines_by_address = objdump.without_runtime(
            self.functions, lines_by_address, self.frames, self.source.splitlines()
        )
        return (
            lines_by_address,
            "" if lines_by_address else "the file that was compiled is no longer there as it was",
        )

    def _computes(self, function: Function, lines: dict[int, int]) -> bool:
        """Return True if a function called by the kernel is one of torch's vector functions or from the kernel's own
        file."""
        frames = self.frames.get(function.address, ())
        if not frames:
            return False
        return any(part in frames[-1][0] for part in _VECTOR_HEADERS) or (
            function.address in lines and frames[-1][0].endswith(".cpp")
        )


def symbol(source: str) -> str:
    """Return the symbol of a kernel's function in its library."""
    names = re.findall(r'extern "C"\s+(?:\w+\s+)*?(\w+)\s*\(', source)
    return str(names[-1]) if names else "kernel"


def lines_before(path: Path, source: str) -> int | None:
    """Return the number of lines before a kernel's source in a file; None if it is not in the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    at = text.find(source)
    return text.count("\n", 0, at) if at >= 0 else None


def without_lines() -> str:
    """Return the reason for a library without a line table."""
    import torch
    import torch._inductor.config as config

    if not hasattr(config.aot_inductor, "enable_line_tables"):
        return f"torch {torch.__version__} builds kernels without a table of lines; 2.13 and later with one"
    return "the kernel was built without a table of lines: set aot_inductor.enable_line_tables in Inductor's config"


def compiler(binary: bytes) -> str:
    """Return the compiler recorded in a library: ``g++ 12.2.0 -O3 -march=znver3``."""
    if match := re.search(rb"GNU C\+\+\d* ([\d.]+)([^\0]*)", binary):
        flags = [
            flag for flag in match[2].decode(errors="replace").split() if flag.startswith(("-O", "-march="))
        ]
        return " ".join(["g++", match[1].decode(), *sorted(flags)])
    if match := re.search(rb"clang version ([\w.+-]+)", binary):
        return f"clang++ {match[1].decode()}"
    if match := re.search(rb"GCC: \([^)\0]*\) ([\d.]+)", binary):
        return f"g++ {match[1].decode()}"
    return ""


COMPILE_SECONDS = 300
"""Time limit, in seconds, of a compiler."""

MARCH = {"avx2": "x86-64-v3", "avx512": "x86-64-v4"}
"""Compiler targets by vector ISA, for an absent processor."""

_FAMILIES = {
    **dict.fromkeys(vector_isa.X86, ("x86_64", "amd64")),
    **dict.fromkeys(vector_isa.ARM, ("aarch64", "arm64")),
}


def compile_kernels(kernels: Sequence[Kernel], arch: str = "") -> tuple[Kernel, ...]:
    """Return the kernels, those in C++ with their assembly or the reason for its absence.

    The compiler, flags and libraries are Inductor's own. Nothing is loaded or run.

    Args:
        arch: the vector ISA for which the code was generated (``avx2``); ``""`` for that of this processor.

    Raises:
        UsageError: for an unknown ``arch``.
    """
    with vector_isa.stand_in_for(arch) if arch else contextlib.nullcontext():
        return tuple(
            _compile_kernel(kernel, arch) if kernel.language == "cpp" else kernel for kernel in kernels
        )


def _compile_kernel(kernel: Kernel, arch: str) -> Kernel:
    if reason := _cannot_build(arch):
        return dataclasses.replace(kernel, machine_note=reason)
    with tempfile.TemporaryDirectory(prefix="compile-lens-") as folder:
        source = Path(folder) / "kernel.cpp"
        source.write_text(kernel.source, encoding="utf-8")
        reason = _build(source, arch)
        library = source.with_suffix(".so")
        if not reason and not library.is_file():
            reason = "the C++ compiler built no library"
        if reason:
            return dataclasses.replace(kernel, machine_note=reason)
        return read_libraries({kernel.name: library}, [kernel])[0]


def _cannot_build(arch: str) -> str:
    """Return why the compiler of this machine cannot build for ``arch``, ``""`` if it can."""
    here = platform.machine()
    family = "an x86-64" if arch in vector_isa.X86 else "an ARM"
    if here.lower() in _FAMILIES.get(arch, (here.lower(),)):
        return ""
    return (
        f"the C++ compiler here builds for {here}, not for {arch}: assemble the capture on a machine with "
        f"{family} processor"
    )


def _build(source: Path, arch: str) -> str:
    """Build a library in the folder of ``source``; return the reason if that fails, else ``""``."""
    from torch._inductor import cpp_builder
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    try:
        options = cpp_builder.CppTorchOptions(vec_isa=pick_vec_isa(), include_pytorch=False, shared=True)
        builder = cpp_builder.CppBuilder(
            name=source.stem, sources=str(source), BuildOption=options, output_dir=str(source.parent)
        )
        command = shlex.split(builder.get_command_line())
    except Exception as error:  # torch has several exception types for a missing compiler
        return f"Inductor has no C++ compiler to build with ({_first(str(error)) or type(error).__name__})"
    if arch in MARCH:
        command = [f"-march={MARCH[arch]}" if word == "-march=native" else word for word in command]
    if not any(re.fullmatch(r"-g(\d|line-tables-only)?", word) for word in command):
        command.append("-g1")
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMPILE_SECONDS,
            cwd=source.parent,
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
