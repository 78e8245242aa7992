"""Sessions that run the README's two commands on every supported pair of Python and torch.

``nox --list`` names them; ``nox -s 'pair(python 3.10, torch 2.11)'`` runs one, ``nox`` all. An interpreter is taken
from the PATH (``python3.10``) or from pyenv. A session whose interpreter is missing is skipped, or fails after
``-- required``; after ``-- main-job`` it runs no tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import nox

nox.options.reuse_existing_virtualenvs = False
nox.options.default_venv_backend = "venv"

ROOT = Path(__file__).parent
PAIRS = (("3.10", "2.11.0"), ("3.11", "2.13.0"), ("3.12", "2.13.0"), ("3.13", "2.14.1"), ("3.13", "2.15.0"))
"""Python and torch: the oldest of both, the pair that CI runs, and the newest of both."""

UNPINNED = {"PIP_CONSTRAINT": os.devnull}
"""Environment of the installations: constraints of the machine do not decide which releases are tested."""


def interpreter(version: str) -> str:
    """Return the path of an interpreter of this version, or the version itself for nox to report as missing."""
    candidates = [shutil.which(f"python{version}")]
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True).stdout.strip()
        candidates += sorted(map(str, Path(root, "versions").glob(f"{version}.*/bin/python3")), reverse=True)
    for path in filter(None, candidates):
        # A shim of pyenv has the name of every version that is installed, and fails for those that are not active.
        if subprocess.run([path, "--version"], capture_output=True).returncode == 0:
            return path
    return version


def readme_command(ending: str) -> list[str]:
    """Return the arguments of the part of the README's set-up line that ends so, after ``.venv/bin/``."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"^python3 -m venv \.venv .*{re.escape(ending)}$", readme, re.MULTILINE)
    return str(line).rpartition(".venv/bin/")[2].split()


@nox.session(python=False)
@nox.parametrize("python,torch", PAIRS, ids=[f"python {p}, torch {t[:-2]}" for p, t in PAIRS])
def pair(session: nox.Session, python: str, torch: str) -> None:
    """Run the main job and the quick tier of the tests with one Python and one torch."""
    base = interpreter(python)
    if base == python:
        reason = f"Python {python} was not found, neither as python{python} nor in pyenv"
        session.error(reason) if "required" in session.posargs else session.skip(reason)
    venv = Path(session.create_tmp()).resolve() / f"venv-{python}-{torch}"
    shutil.rmtree(venv, ignore_errors=True)
    session.run(base, "-m", "venv", str(venv), external=True)
    binaries = venv / "bin"

    def run(*command: str) -> None:
        session.run(str(binaries / command[0]), *command[1:], external=True, env=UNPINNED)

    run("pip", "install", "-q", f"torch=={torch}")
    run("pip", "install", "-q", ".")
    with session.chdir(session.create_tmp()):
        run(*readme_command("compile-lens demo"), "--quiet")
    if "main-job" not in session.posargs:
        run("pip", "install", "-q", "-e", ".[dev]")
        run(*readme_command("python -m pytest"))
    shutil.rmtree(venv)
