"""Start of child processes: with the caller's interpreter, flags and module files, or with the Python and the modules
of another environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

from . import imports
from .nesting import Nesting

BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot.py")


def start(
    module: str,
    environment: Mapping[str, str],
    fds: Sequence[int] = (),
    cwd: str | None = None,
    python: str = "",
) -> tuple[subprocess.Popen[bytes], int]:
    """Start a process that calls ``main(*fds)`` of ``module``. Return it and a descriptor: closing it ends the process.

    The process leads its own session, so that an interrupt reaches only the caller, which then ends the process. Raises
    ``OSError`` if it cannot be started.

    Args:
        python: the interpreter of another environment, which imports only this package from here; ``""`` for the
            caller's interpreter.
    """
    read, write = os.pipe()
    try:
        with tempfile.TemporaryFile() as known:
            facts = {
                "caller": os.getpid(),
                "life": read,
                "depth": Nesting.depth + 1,
                "path": None if python else [p for p in sys.path if isinstance(p, str)],
                "files": {} if python else imports.loaded(),
            }
            known.write(json.dumps(facts).encode())
            known.seek(0)
            numbers = [known.fileno(), *fds]
            process = subprocess.Popen(
                [python or sys.executable, *flags(), BOOT, module, *map(str, numbers)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                env=dict(environment),
                cwd=cwd,
                pass_fds=(*numbers, read),
                start_new_session=True,
            )
    except BaseException:
        os.close(write)
        raise
    finally:
        os.close(read)
    return process, write


def flags() -> list[str]:
    """Return the interpreter options that this process was started with."""
    own = sys.flags
    given = ["-" + "O" * own.optimize] if own.optimize else []
    given += ["-" + "b" * own.bytes_warning] if own.bytes_warning else []
    given += ["-B"] if own.dont_write_bytecode else []
    given += ["-S"] if own.no_site else []
    if own.isolated:
        given.append("-I")
    else:
        given += ["-E"] if own.ignore_environment else []
        given += ["-s"] if own.no_user_site else []
        given += ["-P"] if getattr(own, "safe_path", False) else []
    for words in sys.warnoptions:
        given += ["-W", words]
    options = dict(sys._xoptions)
    if own.dev_mode:
        options.setdefault("dev", True)
    if own.utf8_mode:
        options.setdefault("utf8", True)
    for name, value in options.items():
        given += ["-X", name if value is True else f"{name}={value}"]
    return given
