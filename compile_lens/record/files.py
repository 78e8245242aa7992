"""Files: written atomically, read back without running code."""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ..errors import RecordError, UsageError
from .codec import PROGRAM

PART = ".part"
"""Suffix of the file with the unfinished report of a run."""

_count = itertools.count()
_T = TypeVar("_T")


def holds_program(path: str | os.PathLike[str]) -> bool:
    """Return True if a file begins like a program's record or journal; it may still be neither."""
    try:
        with open(path, "rb") as file:
            return json.dumps(PROGRAM).encode() in file.read(100)
    except OSError:
        return False


def finite(data: Any) -> Any:
    """Return plain data in which numbers that JSON lacks are text: ``"inf"``, ``"-inf"``, ``"nan"``."""
    if isinstance(data, Mapping):
        return {key: finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [finite(value) for value in data]
    return str(float(data)) if isinstance(data, float) and not math.isfinite(data) else data


def plain_json(data: object) -> str:
    """Return plain data as JSON text, ending in a newline. The same data give the same text."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False, indent=2) + "\n"


def read(path: str | os.PathLike[str], parse: Callable[[str], _T]) -> _T:
    """Return the result of ``parse`` for the text of a file that ``save`` wrote.

    Raises:
        UsageError: if there is no such file, or it cannot be read.
        RecordError: if it is not a record, is corrupt, or was written by a newer compile_lens.
    """
    source = path_of(path)
    try:
        raw = source.read_bytes()
    except FileNotFoundError:
        part = source.with_name(f"{source.name}{PART}")
        give = "give the path of a saved .json record"
        if part.is_file():
            give = (
                f"a run that ended abruptly, or is still running, left {str(part)!r}, which can be opened too"
            )
        raise UsageError(f"there is no file {str(source)!r}; {give}") from None
    except IsADirectoryError:
        raise UsageError(
            f"{str(source)!r} is a folder; give the path of a saved .json record in it"
        ) from None
    except OSError as error:
        raise UsageError(f"{str(source)!r} cannot be read: {_why(error)}") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise RecordError(
            f"{str(source)!r} is not a record: it is not UTF-8 text; save one with capture.save('x.json')"
        ) from None
    try:
        return parse(text)
    except RecordError as error:
        raise RecordError(f"{str(source)!r}: {error}") from None


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write UTF-8 text atomically; an existing file is replaced.

    Lines end in ``\\n`` on every platform, so that the bytes are the same everywhere. Lone surrogates, which UTF-8
    cannot encode, are written as backslash escapes.

    Raises:
        UsageError: if the path cannot be written; no partial file is left.
    """
    target = path_of(path)
    check_place(target)
    # Follow a link: its target is replaced and the link stays.
    final = Path(os.path.realpath(target))
    data = text.encode("utf-8", "backslashreplace")
    temporary = None
    try:
        temporary = _free_name(final.parent)
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            _copy_permissions(file.fileno(), final)
            os.fsync(file.fileno())
        os.replace(temporary, final)
    except OSError as error:
        raise UsageError(f"cannot write {str(target)!r}: {_why(error)}; {_ADVICE}") from None
    finally:
        if temporary is not None:
            with suppress(OSError):  # it is gone if all went well
                temporary.unlink()
    return target


def _free_name(folder: Path) -> Path:
    """Return an unused name in the folder of the target, where a rename is atomic. A dead process with the same id may
    have left a file there."""
    while True:
        name = folder / f".compile_lens-{os.getpid()}-{next(_count)}.tmp"
        if not os.path.lexists(name):
            return name


def _copy_permissions(handle: int, final: Path) -> None:
    """Copy owner and permissions of a file that is replaced; a new one keeps the process's defaults."""
    try:
        old = final.stat()
    except FileNotFoundError:
        return
    if hasattr(os, "fchown"):
        with suppress(PermissionError):  # only root gives files away
            os.fchown(handle, old.st_uid, old.st_gid)
        os.fchmod(handle, stat.S_IMODE(old.st_mode))


_ADVICE = "choose another place, or free this one"


def path_of(path: str | os.PathLike[str]) -> Path:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str):
        raise UsageError(f"a path must be a str or a Path, not {type(path).__name__}: {path!r}")
    if not name or "\0" in name:
        raise UsageError(f"{name!r} is not a path: give a file name such as 'capture.html'")
    return Path(name).expanduser()


def check_place(target: Path) -> None:
    """Raise ``UsageError`` for a path that cannot be written, before the work of making a page."""
    try:
        refused = _refused(target)
    except OSError as error:  # a name that is too long, a folder that may not be entered
        refused = f"{_why(error)}; {_ADVICE}"
    if refused:
        raise UsageError(f"cannot write {str(target)!r}: {refused}")


def _refused(target: Path) -> str:
    folder = target.parent
    if not stat.S_ISDIR(_kind(folder)):
        what = "is not a folder" if _kind(folder) else "does not exist"
        return f"the folder {str(folder)!r} {what}; make it first, or {_ADVICE}"
    kind = _kind(target)
    if stat.S_ISDIR(kind):
        return f"it is a folder; add a file name, such as {str(target / 'capture.html')!r}"
    if kind and not stat.S_ISREG(kind):
        what = "a pipe" if stat.S_ISFIFO(kind) else "a socket" if stat.S_ISSOCK(kind) else "a device"
        return f"it is {what}, not a file; {_ADVICE}"
    if kind and not os.access(target, os.W_OK):
        return f"it may only be read; {_ADVICE}"
    return ""


def _kind(path: Path) -> int:
    """Return the type bits of a path, following links; 0 if nothing exists. Raise ``OSError``, also for link loops."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0


def _why(error: OSError) -> str:
    known = {
        errno.EACCES: "no permission to write here",
        errno.EROFS: "the file system is read-only",
        errno.ENOSPC: "the disk is full",
        errno.ENAMETOOLONG: "the name is too long",
        errno.ELOOP: "it is a link that leads to itself",
    }
    return known.get(error.errno or 0) or error.strerror or str(error)
