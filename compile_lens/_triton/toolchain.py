"""The programs that come with Triton: NVIDIA's assembler, which Triton runs itself, and its disassembler."""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ..errors import BuildError

SECONDS = 120


def triton_version() -> str:
    """Return Triton's version."""
    import triton

    return str(triton.__version__)


def assembler(arch: int) -> str:
    """Return name and version of the assembler that Triton uses for a compute capability (``ptxas 12.8.93``)."""
    from triton.backends.nvidia import compiler

    return _version("ptxas", Path(compiler.get_ptxas(arch).path))


def disassemble(cubin: bytes) -> str:
    """Return the instructions of a cubin, with the line of PTX of each. Raises ``BuildError`` if that fails."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        try:
            program: Any = knobs.nvidia.nvdisasm
            # -c: code only. -gp: lines of PTX, from the table .nv_debug_line_sass.
            done = subprocess.run(
                [program.path, "-c", "-gp", str(file)], capture_output=True, text=True, timeout=SECONDS
            )
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            raise BuildError(f"nvdisasm could not be run: {type(error).__name__}") from error
    if done.returncode != 0:
        raise BuildError(f"nvdisasm failed: {done.stderr.replace(folder, '').strip()[:500]}")
    return done.stdout


@functools.cache
def _version(name: str, path: Path) -> str:
    try:
        output = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return name
    match = re.search(r"\bV(\d+(?:\.\d+)+)", output) or re.search(r"release (\d+\.\d+)", output)
    return f"{name} {match[1]}" if match else name
