"""Python environments, one for each version of torch, kept in the user's cache folder.

An environment is a folder created by ``python -m venv`` with one torch installed by pip. It is complete only if it
contains the file ``MARK``, which is written last; an incomplete one (after an interrupt, a full disk or a failure of
pip) is created again.
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
"""Name of the file that marks an environment as complete and lists its contents."""

REQUIREMENTS = ("numpy>=1.26", "tqdm>=4.60", "cloudpickle>=3")
"""Requirements of a capture in addition to torch."""

MAX_ERROR_LINES = 12
"""Maximum number of pip's last lines that an error shows if no line starts with ``ERROR``."""


class EnvironmentFailed(LensError, RuntimeError):
    """An environment could not be created; the message contains the errors of pip or venv."""


@dataclass(frozen=True)
class Environment:
    """One environment.

    Attributes:
        asked: the requested version (``"2.13"``).
        folder: where it is.
        torch: the installed version (``"2.13.0+cpu"``); ``""`` if the environment is incomplete.
        extra: further requirements that were installed, as requested.
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
        """The requested version, with the Python version if it is not the running one: ``"2.13-python3.12"``."""
        return self.folder.name.removeprefix("torch-").removesuffix(_python())

    def check(self, torch: str) -> None:
        """Raise ``EnvironmentFailed`` if ``torch``, the version that ran, is not the installed one."""
        # pip's 2.13.0 may report itself as 2.13.0+cu130.
        if torch.partition("+")[0] != self.torch.partition("+")[0]:
            raise EnvironmentFailed(
                f"{self.folder} has torch {self.torch}, but torch {torch} ran: remove the folder of another torch from "
                "PYTHONPATH"
            )

    def size(self) -> int:
        """Return the total size of its files, in bytes."""
        return sum(
            os.lstat(os.path.join(at, name)).st_size
            for at, _, files in os.walk(self.folder)
            for name in files
        )


def home() -> Path:
    """Return the folder of the environments, in the user's cache folder of this system."""
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = str(Path.home() / "Library" / "Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "compile_lens" / "environments"


def checked(version: str) -> str:
    """Return a valid version. Raises ``UsageError`` if it is malformed, or older than the oldest supported."""
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?([abc.+]\w+(\.\w+)*)?", version):
        raise UsageError(f"{version!r} is not a version of torch; write 2.13, or 2.13.0")
    if parse(version) < OLDEST:
        raise UsageError(f"torch {version} is too old: the oldest supported is {OLDEST[0]}.{OLDEST[1]}")
    return version


def kept(folder: Path) -> list[Environment]:
    """Return the environments in a folder, incomplete ones too, sorted by version."""
    names = (path for path in folder.glob("torch-*") if path.is_dir()) if folder.is_dir() else ()
    environments = (_read(path) for path in names)
    return sorted(
        environments, key=lambda one: ([int(n) for n in re.findall(r"\d+", one.asked)], one.folder.name)
    )


def find(version: str, folder: Path) -> Environment:
    """Return the environment of a version for the running Python, whether it exists or not."""
    return _read(folder / f"torch-{checked(version)}{_python()}")


def _python() -> str:
    """Return the suffix of environment folders for the running Python."""
    return f"-python{sys.version_info[0]}.{sys.version_info[1]}"


def make(
    version: str, folder: Path, extra: Sequence[str] = (), index: str = "", quiet: bool = False
) -> Environment:
    """Return the existing environment of a version, or create it. pip's output goes to stderr.

    Args:
        version: ``"2.13"`` for its newest patch release, or ``"2.13.0"`` for that one.
        folder: folder of all environments.
        extra: further requirements to install, as pip takes them.
        index: pip's index URL; ``""`` for its default.
        quiet: True to show pip's output only in an error.

    Raises:
        UsageError: the version is invalid, or the folder cannot be written.
        EnvironmentFailed: venv or pip failed.
    """
    environment = find(version, folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(environment.folder):
            environment = _read(environment.folder)  # another process may have created it meanwhile
            if environment.whole and set(extra) <= set(environment.extra):
                return environment
            return _install(environment, extra, index, quiet)
    except OSError as error:
        raise UsageError(
            f"no environment can be made in {folder}: {error.strerror or error}; name another folder"
        ) from None


def remove(one: Environment) -> None:
    """Remove an environment from the disk."""
    with _locked(one.folder):
        (one.folder / MARK).unlink(missing_ok=True)  # first, so that a partial removal is not complete
        shutil.rmtree(one.folder)
    _lock_path(one.folder).unlink(missing_ok=True)


def _install(one: Environment, extra: Sequence[str], index: str, quiet: bool) -> Environment:
    is_new = not one.whole
    wanted = tuple(dict.fromkeys((*one.extra, *extra)))
    try:
        if is_new:
            shutil.rmtree(one.folder, ignore_errors=True)
            _run([sys.executable, "-m", "venv", str(one.folder)], f"venv could not make {one.folder}", quiet)
        exact = f"torch=={one.asked}" if one.asked.count(".") > 1 else f"torch=={one.asked}.*"
        pin = exact if is_new else f"torch=={one.torch}"
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
        _run([*pip, pin, *REQUIREMENTS, *wanted], f"pip could not install {what}", quiet)
        torch = _run(
            [str(one.python), "-c", "import importlib.metadata as m; print(m.version('torch'))"],
            f"the environment {one.folder} has no torch", True,
        ).strip()  # fmt: skip
        body = {"asked": one.asked, "torch": torch, "python": sys.version.partition(" ")[0], "with": wanted}
        part = one.folder / f"{MARK}.part"
        part.write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
        part.replace(one.folder / MARK)
    except BaseException:
        if is_new:
            shutil.rmtree(one.folder, ignore_errors=True)
        raise
    return _read(one.folder)


def _run(command: list[str], failed: str, quiet: bool) -> str:
    """Run a command and return its output on both streams; it goes to stderr too unless ``quiet``."""
    # Variables for the caller's Python must not affect another one.
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
    return "\n".join(errors or lines[-MAX_ERROR_LINES:]) or "it printed nothing"


def _read(folder: Path) -> Environment:
    version = folder.name.removeprefix("torch-").partition("-python")[0]
    try:
        body = json.loads((folder / MARK).read_text(encoding="utf-8"))
        return Environment(version, folder, str(body["torch"]), tuple(map(str, body["with"])))
    except (OSError, ValueError, KeyError, TypeError):
        return Environment(version, folder)


def _lock_path(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.lock")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold a file lock, so that one process at a time changes an environment; the system releases it when a process
    ends."""
    with open(_lock_path(folder), "ab") as file:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
