"""Checks of this machine for ``compile-lens doctor``: what works, what is missing, and what to install.

Nothing is installed, built or changed. A check is ``needed`` if capturing and drawing a function depend on it; the
others are for optional features (building the code, other devices).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..versions import NEWEST_TESTED, OLDEST, TRITON, parse, triton_command

OLDEST_PYTHON = (3, 10)

KNOWN = ("torch", "triton", "pygments", "pygraphviz", "jupyterlab", "mcp")
"""Modules for which a check gives an install command."""


@dataclass(frozen=True)
class Check:
    """The result of one check.

    Attributes:
        name: name of the feature.
        works: True if it is present and usable.
        found: the version or path found, or the purpose of a missing feature.
        advice: what to do if it does not work; ``""`` if it does.
        needed: True if capturing and drawing cannot work without it.
    """

    name: str
    works: bool
    found: str
    advice: str = ""
    needed: bool = False


def checks() -> tuple[Check, ...]:
    """Run all checks and return them in display order. Imports torch if it is installed."""
    torch, problem = _import("torch")
    return (
        _python(),
        _torch(torch, problem),
        _triton(torch),
        _compiler(os.environ),
        *_devices(torch),
        *_graphviz(),
        _package("pygments", "colours in code", "pip install 'pygments>=2.17'", needed=True),
        _package("jupyterlab", "notebook cells", "pip install jupyterlab"),
        _package("mcp", "answers for coding agents", "pip install 'mcp>=2'"),
    )


def healthy(results: tuple[Check, ...]) -> bool:
    """Return True if all needed checks passed."""
    return all(check.works for check in results if check.needed)


def page(results: tuple[Check, ...]) -> str:
    """Return the checks as text: one line each, followed by advice for those that failed."""
    width = max(len(check.name) for check in results)
    lines = []
    for check in results:
        mark = "ok" if check.works else "MISSING" if check.needed else "no"
        lines.append(f"{check.name:<{width}}  {mark:<7}  {check.found}")
        if check.advice:
            lines.append(f"{'':<{width}}           -> {check.advice}")
    if healthy(results):
        lines.append("\nCapturing and drawing work here. Try: compile-lens demo")
    else:
        names = ", ".join(check.name for check in results if check.needed and not check.works)
        lines.append(f"\nThe main job cannot run here yet: see {names}.")
    return "\n".join(lines)


def to_dict(results: tuple[Check, ...]) -> dict[str, Any]:
    """Return the checks as plain JSON data."""
    return {"ok": healthy(results), "checks": [asdict(check) for check in results]}


def _import(name: str) -> tuple[Any, str]:
    """Return a module and ``""``, or None and why it could not be imported. A broken install may raise any
    exception."""
    try:
        return importlib.import_module(name), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _python() -> Check:
    version = f"{platform.python_version()} ({sys.executable})"
    if sys.version_info >= OLDEST_PYTHON:
        return Check("python", True, version, needed=True)
    return Check("python", False, version, f"use Python {_dots(OLDEST_PYTHON)} or newer", needed=True)


def _torch(torch: Any, problem: str) -> Check:
    span = f"{_dots(OLDEST)} or newer, tested up to {_dots(NEWEST_TESTED)}"
    install = f"pip install 'torch>={_dots(OLDEST)}'"
    if torch is None:
        advice = f"{install} (records can be opened, measured and drawn without it)"
        return Check("torch", False, f"cannot be imported: {problem}", advice, needed=True)
    version = str(torch.__version__)
    if parse(version) < OLDEST:
        return Check("torch", False, f"{version} is too old; {span}", install, needed=True)
    return Check("torch", True, f"{version} ({span})", needed=True)


def _triton(torch: Any) -> Check:
    version = _version("triton") or _version("pytorch-triton")
    running = parse(str(torch.__version__)) if torch is not None else None
    if version:
        fitting = TRITON.get(running) if running is not None else None
        if fitting and not version.startswith(f"{fitting}."):
            return Check(
                "triton", False, f"{version}; this torch is made with {fitting}", triton_command(running)
            )
        return Check("triton", True, f"{version}: code for NVIDIA GPUs, their machine code, its interpreter")
    install = triton_command(running) if running is not None else "pip install triton"
    return Check(
        "triton",
        False,
        "not installed; code for NVIDIA GPUs is generated without it, and not compiled",
        f"{install} (Linux; with torch for CUDA it is there already)",
    )


def _compiler(environment: Mapping[str, str]) -> Check:
    """Check the C++ compiler that Inductor would call: ``CXX``, else g++ (clang++ on macOS, cl on Windows).

    As in ``torch/_inductor/config.py`` (``cpp.cxx``) and ``cpp_builder.py``.
    """
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    wanted = environment.get("CXX") or usual
    if path := shutil.which(wanted):
        return Check("C++ compiler", True, f"{_first_line(path)} ({path}): build=True works on the CPU")
    named = "CXX names it, but it" if environment.get("CXX") else "it"
    finding = f"{wanted}: {named} is not on PATH; only build=True needs one, code alone does not"
    for other in ("g++", "clang++"):
        if other != wanted and (path := shutil.which(other)):
            return Check("C++ compiler", False, finding, f"{path} is here: set CXX={other} to use it")
    install = {"darwin": "xcode-select --install", "win32": "install Visual Studio's C++ build tools"}
    return Check(
        "C++ compiler",
        False,
        finding,
        install.get(sys.platform, "apt install g++ (or your system's package)"),
    )


def _devices(torch: Any) -> list[Check]:
    if torch is None:
        return [
            Check(name, False, "cannot be looked for without torch", "") for name in ("cuda", "mps", "cpu")
        ]
    checks = []
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        checks.append(
            Check("cuda", True, f"{', '.join(names)} (CUDA {torch.version.cuda or torch.version.hip})")
        )
    elif torch.version.cuda or torch.version.hip:
        advice = "install or update the GPU's driver if there is one in this machine"
        checks.append(Check("cuda", False, "this torch has CUDA, but no GPU can be used", advice))
    else:
        advice = "with an NVIDIA GPU, install torch's CUDA build (https://pytorch.org/get-started)"
        checks.append(Check("cuda", False, "this torch is built without CUDA", advice))
    if torch.backends.mps.is_available():
        checks.append(Check("mps", True, f"Apple GPU, macOS {platform.mac_ver()[0]}"))
    else:
        checks.append(
            Check(
                "mps", False, "no Apple GPU can be used", "needs a Mac with Apple silicon, macOS 14 or newer"
            )
        )
    checks.append(Check("cpu", True, f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}"))
    return checks


def _graphviz() -> list[Check]:
    """Return two checks of which one must pass: the system's ``dot``, and the Graphviz inside the pygraphviz wheel."""
    dot = shutil.which("dot")
    inside = _version("pygraphviz")
    either = "" if dot or inside else "pip install 'pygraphviz>=2', or install Graphviz (apt, brew or winget)"
    system = f"{_first_line(dot, '-V')} ({dot})" if dot else "not on PATH"
    advice = "" if dot else "nothing to do: the embedded Graphviz draws" if inside else either
    first = Check("graphviz (dot)", bool(dot), system, advice, needed=not (dot or inside))
    finding = f"pygraphviz {inside}" if inside else "pygraphviz is not installed"
    advice = "" if inside else "nothing to do: the system's dot draws" if dot else either
    return [first, Check("graphviz (embedded)", bool(inside), finding, advice, needed=not (dot or inside))]


def _package(name: str, purpose: str, install: str, needed: bool = False) -> Check:
    version = _version(name)
    if version:
        return Check(name, True, f"{version}: {purpose}", needed=needed)
    return Check(name, False, f"not installed; for {purpose}", install, needed=needed)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _first_line(program: str, flag: str = "--version") -> str:
    """Return the first line of a program's version, or why the program cannot be run."""
    try:
        done = subprocess.run(
            [program, flag], capture_output=True, timeout=10, check=False, text=True, errors="replace"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not answer ({error})"
    lines = (done.stdout or done.stderr).splitlines()
    return lines[0].strip() if lines else "it says nothing about its version"


def _dots(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
