"""Environments of Python, one for each version of torch: made once in the user's cache folder, kept, and removed.

An environment is a folder that ``python -m venv`` made and into which pip installed one torch. It counts only
when the file ``MARK`` stands in it, which is written last: what an interrupt, a full disk or a failure of pip left
behind is never taken for whole, and is made anew.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..errors import LensError, UsageError
from ..versions import OLDEST, parse

MARK = "compile_lens.json"
"""The file that says that an environment is whole, and what is in it."""

NEEDED = ("numpy>=1.26", "tqdm>=4.60", "cloudpickle>=3")
"""Requirements of a capture beside torch."""

LAST = 12
"""Lines of pip's that an error shows where none of them says ``ERROR``."""


class EnvironmentFailed(LensError, RuntimeError):
    """An environment could not be made; the message holds what pip, or venv, said."""


@dataclass(frozen=True)
class Environment:
    """One environment.

    Attributes:
        asked: the version as it was asked for (``"2.13"``).
        folder: where it is.
        torch: the version that is installed (``"2.13.0+cpu"``); ``""`` in what was left half made.
        extra: what was installed beside torch, as it was asked for.
    """

    asked: str
    folder: Path
    torch: str = ""
    extra: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """True if the environment was created completely."""
        return bool(self.torch) and self.python.exists()

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    @property
    def name(self) -> str:
        """Its version as it was asked for, and its Python if another version of Python runs: ``"2.13-python3.12"``."""
        return self.folder.name.removeprefix("torch-").removesuffix(_python())

    def check(self, torch: str) -> None:
        """Raise ``EnvironmentFailed`` if ``torch``, the version that ran, is not the one that is installed."""
        # What pip calls 2.13.0 may call itself 2.13.0+cu130.
        if torch.partition("+")[0] != self.torch.partition("+")[0]:
            raise EnvironmentFailed(
                f"{self.folder} has torch {self.torch}, and what ran was {torch}: "
                "take the folder of another torch out of PYTHONPATH"
            )

    def size(self) -> int:
        """Bytes of its files."""
        return sum(
            os.lstat(os.path.join(at, name)).st_size
            for at, _, files in os.walk(self.folder)
            for name in files
        )


def home() -> Path:
    """The folder of the environments: in the user's folder for caches, as the system has it."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "compile_lens" / "environments"


def checked(version: str) -> str:
    """A version that can be asked for. Raises ``UsageError`` for what is none, or is older than what is supported."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?([abc.+]\w+(\.\w+)*)?", version):
        raise UsageError(f"{version!r} is not a version of torch; write 2.13, or 2.13.0")
    if parse(version) < OLDEST:
        raise UsageError(f"torch {version} is too old: the oldest supported is {OLDEST[0]}.{OLDEST[1]}")
    return version


def kept(folder: Path) -> list[Environment]:
    """The environments of a folder, also what was left half made, by version."""
    names = (path for path in folder.glob("torch-*") if path.is_dir()) if folder.is_dir() else ()
    environments = (_read(path) for path in names)
    return sorted(
        environments, key=lambda one: ([int(n) for n in re.findall(r"\d+", one.asked)], one.folder.name)
    )


def find(version: str, folder: Path) -> Environment:
    """The environment of a version for the Python that runs, made or not."""
    return _read(folder / f"torch-{checked(version)}{_python()}")


def _python() -> str:
    """The end of the folder's name of an environment for the Python that runs."""
    return f"-python{sys.version_info[0]}.{sys.version_info[1]}"


def make(
    version: str, folder: Path, extra: Sequence[str] = (), index: str = "", quiet: bool = False
) -> Environment:
    """The environment of a version: the one that is kept, or a new one. What pip says goes to stderr.

    Args:
        version: ``"2.13"`` is its newest patch, ``"2.13.0"`` that one.
        folder: of the environments.
        extra: requirements, as pip takes them, that are installed beside torch.
        index: where pip looks for packages; ``""``: where it does anyway.
        quiet: whether pip's output is only kept for the error.

    Raises:
        UsageError: no such version can be asked for, or the folder cannot be written.
        EnvironmentFailed: venv or pip failed, with what they said.
    """
    environment = find(version, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(environment.folder):
            environment = _read(environment.folder)  # another process may have made it meanwhile
            if environment.whole and set(extra) <= set(environment.extra):
                return environment
            return _install(environment, extra, index, quiet)
    except OSError as error:
        raise UsageError(
            f"no environment can be made in {folder}: {error.strerror or error}; name another folder"
        ) from None


def remove(one: Environment) -> None:
    """Remove an environment from the disk."""
    with _alone(one.folder):
        (one.folder / MARK).unlink(missing_ok=True)  # first: what is half removed is not whole
        shutil.rmtree(one.folder)
    _lock(one.folder).unlink(missing_ok=True)


def _install(one: Environment, extra: Sequence[str], index: str, quiet: bool) -> Environment:
    fresh = not one.whole
    wanted = tuple(dict.fromkeys((*one.extra, *extra)))
    try:
        if fresh:
            shutil.rmtree(one.folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(one.folder)], f"venv could not make {one.folder}", quiet)
        exact = f"torch=={one.asked}" if one.asked.count(".") > 1 else f"torch=={one.asked}.*"
        pin = exact if fresh else f"torch=={one.torch}"
        pip = [
            str(one.python),
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "--progress-bar",
            "off",
        ]
        pip += ["--index-url", index] if index else []
        what = " ".join((pin, *wanted))
        _run([*pip, pin, *NEEDED, *wanted], f"pip could not install {what}", quiet)
        torch = _run(
            [str(one.python), "-c", "import importlib.metadata as m; print(m.version('torch'))"],
            f"the environment {one.folder} has no torch", True,
        ).strip()  # fmt: skip
        body = {"asked": one.asked, "torch": torch, "python": sys.version.partition(" ")[0], "with": wanted}
        part = one.folder / f"{MARK}.part"
        part.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
        part.replace(one.folder / MARK)
    except BaseException:
        if fresh:
            shutil.rmtree(one.folder, ignore_errors=True)
        raise
    return _read(one.folder)


def _run(command: list[str], failed: str, quiet: bool) -> str:
    """Run a command and return its output on both streams; it goes to stderr too unless ``quiet``."""
    # What the caller's Python is told by its variables is not meant for another one.
    own = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET")}
    own["PYTHONUNBUFFERED"] = "1"
    lines: list[str] = []
    with subprocess.Popen(
        command, env=own, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            if not quiet:
                print(f"  {line}", end="", file=sys.stderr, flush=True)
    if process.returncode:
        raise EnvironmentFailed(f"{failed} (exit code {process.returncode}): {_error_lines(lines)}")
    return "".join(lines)


def _error_lines(output: Iterable[str]) -> str:
    lines = [line.strip() for line in output if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return "\n".join(errors or lines[-LAST:]) or "it printed nothing"


def _read(folder: Path) -> Environment:
    version = folder.name.removeprefix("torch-").partition("-python")[0]
    try:
        body = json.loads((folder / MARK).read_text(encoding="utf-8"))
        return Environment(version, folder, str(body["torch"]), tuple(map(str, body["with"])))
    except (OSError, ValueError, KeyError, TypeError):
        return Environment(version, folder)


def _lock(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process at a time makes or removes an environment; the system lets go when a process ends."""
    with open(_lock(folder), "ab") as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
