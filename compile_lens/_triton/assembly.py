"""Compile of one kernel for one launch configuration, down to the device's instructions, with the assembler and
disassembler shipped with Triton."""

from __future__ import annotations

import contextlib
import functools
import io
import linecache
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BuildError
from ..record.kernel import Form, Machine
from . import llvm_ir, mlir, nvidia_text
from .listing import KERNEL_FILE, Numbers

STAGES = ("ttir", "ttgir", "llir", "ptx", "sass")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores")


def compile_machine(recipe: Recipe, candidate: int) -> Machine:
    """Return the texts of a kernel from each stage of Triton and NVIDIA's assembler.

    Registers and spills (bytes) are from ``ptxas -v``; shared memory, from Triton, is what a launch requests. If a
    later stage fails, earlier ones are kept; ``missing`` has the reason for the rest.

    Raises:
        BuildError: if even Triton's first stage failed, with the reason.
    """
    numbering = _LineNumberHook()
    with tempfile.TemporaryDirectory(prefix="compile-lens-") as folder, _settings(folder, numbering):
        log_stream = io.StringIO()
        failure = ""
        compiled: Any = None
        with contextlib.redirect_stdout(log_stream):
            try:
                compiled = _compile(recipe)
            except Exception as error:
                failure = error_text(error, folder)
        texts = _texts(Path(folder))
    if "ttir" not in texts:
        raise BuildError(f"Triton refuses it: {failure}")
    if "llir" in texts:
        texts["llir"] = numbering.llir
    forms, links = _read_forms(texts, numbering.numbers)
    instructions = None
    if compiled is not None:
        try:
            last, instructions = nvidia_text.read_sass(disassemble(compiled.asm["cubin"]), links)
            forms.append(last)
        except BuildError as error:
            failure = str(error)
    kinds = {form.kind for form in forms}
    log = log_stream.getvalue()
    return Machine(
        arch=nvidia_text.arch(texts.get("ptx", "")) or f"sm_{recipe.arch}",
        compiler=f"Triton {triton_version()}, {assembler(int(recipe.arch))}",
        candidate=candidate,
        forms=tuple(forms),
        registers=_number(_REGISTERS, log),
        shared=None if compiled is None else int(compiled.metadata.shared),
        spills=_number(_SPILLS, log),
        instructions=instructions,
        missing=tuple((stage, failure) for stage in STAGES if stage not in kinds),
    )


def _compile(recipe: Recipe) -> Any:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import ASTSource

    return triton.compile(
        ASTSource(recipe.function, recipe.signature, recipe.constants, recipe.attributes),
        target=GPUTarget(recipe.backend, recipe.arch, recipe.warp_size),
        options=recipe.options,
    )


@contextlib.contextmanager
def _settings(folder: str, numbering: _LineNumberHook) -> Iterator[None]:
    """Override Triton's settings and environment: a cache folder of its own, line numbers, a log, no dumps."""
    from triton import knobs

    with knobs.cache.scope(), knobs.compilation.scope(), knobs.nvidia.scope(), knobs.runtime.scope():
        knobs.cache.dir = folder
        for name, value in (
            ("always_compile", True),
            ("disable_line_info", False),
            ("override", False),
            ("dump_ir", False),
            ("store_binary_only", False),
            ("dump_ir_extract_di_local_variables", False),
        ):
            setattr(knobs.compilation, name, value)
        for name, value in (("dump_ptxas_log", True), ("disable_ptxas_opt", False), ("dump_nvptx", False)):
            setattr(knobs.nvidia, name, value)
        knobs.runtime.add_stages_inspection_hook = numbering
        listener, knobs.compilation.listener = knobs.compilation.listener, None
        try:
            yield
        finally:
            knobs.compilation.listener = listener


def _texts(folder: Path) -> dict[str, str]:
    """Return the texts in Triton's cache by stage, up to the stage that failed."""
    return {
        stage: file.read_text(encoding="utf-8")
        for stage in STAGES
        for file in sorted(folder.glob(f"*/*.{stage}"))
    }


class _LineNumberHook:
    """A stage hook for Triton that replaces source lines in LLVM IR by ``Numbers``."""

    def __init__(self) -> None:
        self.llir = ""
        self.numbers = Numbers()

    def __call__(self, backend: Any = None, stages: Any = None, *rest: Any) -> tuple[str, str]:
        if stages is not None:  # called without arguments for a part of the cache key
            make_llir = stages["llir"]
            stages["llir"] = lambda source, metadata: self._take(make_llir(source, metadata))
        return "", ""

    def _take(self, llir: str) -> str:
        self.llir = llvm_ir.without_folders(llir)
        text, self.numbers = llvm_ir.numbered(self.llir)
        return text


def _read_forms(texts: dict[str, str], numbers: Numbers) -> tuple[list[Form], dict[int, tuple[int, ...]]]:
    forms = [mlir.read(texts[kind], kind) for kind in ("ttir", "ttgir") if kind in texts]
    if "llir" in texts:
        forms.append(llvm_ir.read(texts["llir"]))
    links: dict[int, tuple[int, ...]] = {}
    if "ptx" in texts:
        form, links = nvidia_text.read_ptx(texts["ptx"], numbers)
        forms.append(form)
    return forms, links


def _number(pattern: re.Pattern[str], log: str) -> int | None:
    numbers = pattern.findall(log)
    return int(numbers[-1]) if numbers else None


def error_text(error: BaseException, folder: str = "\0") -> str:
    """Return an error's text without this machine's folders."""
    text = str(error).split("Repro command:")[0].replace(folder, "")
    text = re.sub(r"(?:/[^\s:'\"]+)+/", "", text).strip()
    return f"{type(error).__name__}: {text[:600]}" if text else type(error).__name__


MODULE = "_compile_lens_kernel"


def run_definition(source: str, name: str) -> Any:
    """Run the definition of a kernel, a Python module, and return the autotuner of the function ``name``.

    Triton reads the function's text by file and line. Both are provided without writing a file, so that lines are those
    of ``source`` and the file's name is the same on every machine.

    Raises:
        BuildError: if the text defines no such kernel. Exceptions raised by the text itself propagate.
    """
    module = types.ModuleType(MODULE)
    module.__file__ = KERNEL_FILE
    shadowed = sys.modules.get(MODULE)
    sys.modules[MODULE] = module
    linecache.cache[KERNEL_FILE] = (len(source), None, source.splitlines(keepends=True), KERNEL_FILE)
    try:
        exec(compile(source, KERNEL_FILE, "exec"), vars(module))
        tuner = vars(module).get(name)
        if not _is_tuner(tuner):
            tuners = [value for value in vars(module).values() if _is_tuner(value)]
            if len(tuners) != 1:  # the wrapper's name of a kernel may differ from that in its text
                raise BuildError(f"its text defines no kernel {name!r}")
            tuner = tuners[0]
        return tuner
    finally:
        linecache.cache.pop(KERNEL_FILE, None)
        del sys.modules[MODULE]
        if shadowed is not None:
            sys.modules[MODULE] = shadowed


def _is_tuner(value: Any) -> bool:
    return hasattr(value, "configs") and hasattr(value, "fn")


@dataclass(frozen=True)
class Recipe:
    """Inductor's input to Triton's compiler for one launch configuration.

    ``function`` is Triton's; ``backend`` and ``arch`` identify the device in Triton (``cuda``, 90).
    """

    function: Any
    signature: dict[str, str]
    constants: dict[str, Any]
    attributes: dict[Any, Any]
    options: dict[str, Any]
    backend: str
    arch: int | str
    warp_size: int


TOOL_SECONDS = 120


def triton_version() -> str:
    """Return Triton's version."""
    import triton

    return str(triton.__version__)


def assembler(arch: int) -> str:
    """Return the name and version of Triton's assembler for a compute capability (``ptxas 12.8.93``)."""
    from triton.backends.nvidia import compiler

    return _version("ptxas", Path(compiler.get_ptxas(arch).path))


def disassemble(cubin: bytes) -> str:
    """Return the instructions of a cubin, each with its PTX line. Raises ``BuildError`` if nvdisasm fails."""
    from triton import knobs

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.cubin"
        file.write_bytes(cubin)
        try:
            program: Any = knobs.nvidia.nvdisasm
            # -c: code only. -gp: lines of PTX, from the table .nv_debug_line_sass.
            done = subprocess.run(
                [program.path, "-c", "-gp", str(file)], capture_output=True, text=True, timeout=TOOL_SECONDS
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
            [str(path), "--version"], capture_output=True, text=True, timeout=TOOL_SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return name
    match = re.search(r"\bV(\d+(?:\.\d+)+)", output) or re.search(r"release (\d+\.\d+)", output)
    return f"{name} {match[1]}" if match else name
