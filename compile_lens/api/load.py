"""Loading and comparison of saved captures, and import of programs from torch's logs."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..record.files import read
from ..results.capture import Capture

if TYPE_CHECKING:
    from ..results.comparison import Difference
    from ..results.program import Program


def load(path: str | os.PathLike[str]) -> Capture:
    """Return the capture in a file written by ``capture.save("….json")``. Runs no code of the record.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        RecordError: it is not a record, is damaged, or was written by a newer compile_lens.
    """
    return read(path, Capture.from_json)


def import_trace(path: str | os.PathLike[str]) -> Program:
    """Return the program recorded in a structured trace of torch, a folder named by ``TORCH_TRACE`` or a log in it; or
    in a trace exported by ``torch.profiler``.

    Frames, graphs, graph breaks, recompiles with the failed guard, guards, symbols, times and cache messages are read
    as a watch would observe them; ``record.missing`` lists what the log lacks, with the reason. Needs no torch, and
    runs nothing of the log. A profiler's trace has only times: of compiled regions, of graphs with their launches, and
    of all that ran (``record.profile``); ``Program.join`` joins it with a record.

    Args:
        path: a log (``dedicated_log_torch_trace_….log``) or a folder with one log; each process writes its own. Or a
            file of ``profiler.export_chrome_trace``, ``.json`` or ``.json.gz``.

    Raises:
        UsageError: there is no such file, it cannot be read, or the folder has no log or several.
        RecordError: it is not a structured trace.
    """
    from ..measures.profile import profile_alone
    from ..record.profiler_trace import is_profiler_trace, read_trace
    from ..record.torch_trace.program import program_from_log, program_of_profile
    from ..results.program import Program

    file = _log(Path(path))
    if is_profiler_trace(file):
        profiled = program_of_profile(profile_alone(read_trace(file)), file.name)
        return Program(lambda: profiled)
    try:
        # Only "\n" ends a line: text of the program may contain other line endings.
        with open(file, encoding="utf-8", errors="replace", newline="\n") as lines:
            record = program_from_log(lines, file.name)
    except OSError as error:
        raise UsageError(f"{str(file)!r} cannot be read: {error.strerror or error}") from None
    if record.rank is None:
        record = replace(record, rank=rank_of_name(file))
    return Program(lambda: record)


def logs(folder: Path) -> list[Path]:
    """Return the non-empty logs in a folder, sorted by rank and name."""
    files = (file for file in folder.glob("*.log") if file.is_file() and file.stat().st_size)
    return sorted(files, key=lambda file: (rank_of_name(file) or 0, file.name))


def rank_of_name(file: Path) -> int | None:
    """Return the rank in the name of a log (``…_rank_2.log``, ``…_rank_2_x8f2.log``); None if it has none."""
    rank = re.search(r"rank_?(\d{1,6})(?=[_.])", file.name)
    return int(rank[1]) if rank else None


def _log(path: Path) -> Path:
    if not os.path.exists(path):
        raise UsageError(
            f"there is no file or folder {str(path)!r}; give what TORCH_TRACE named when the program ran"
        )
    if not os.path.isdir(path):
        return path
    files = logs(path)
    if not files:
        raise UsageError(
            f"{str(path)!r} has no log (*.log); torch writes one when something is compiled while TORCH_TRACE names "
            "the folder"
        )
    if len(files) > 1:
        names = ", ".join(file.name for file in files[:8]) + (", …" if len(files) > 8 else "")
        raise UsageError(
            f"{str(path)!r} has {len(files)} logs, one for each process: compile_lens.merge({str(path)!r}), or "
            f"compile-lens merge, puts them together; give one of {names} to see it alone"
        )
    return files[0]


def diff(a: Any, b: Any) -> Difference:
    """Return the differences between two captures, causes before effects: an edit, an option, a torch version, a
    target.

    Nodes are matched by structure (operators, shapes, data flow), never by name or number, so that renamed variables
    and moved lines make no difference. Every level is compared: settings, graph breaks, Python lines, operators,
    rewrites, lowering, fusion, kernels, counts and bytes, saved tensors, code, guards. Needs no torch.

    Args:
        a, b: captures, or paths of saved ones.

    Returns:
        A ``Difference``, false if nothing differs: ``.summary``, ``.causes``, ``.changes``, ``.at("kernels")``,
        ``.figures``, ``.save("diff.md")``; its text is a page.

    Raises:
        UsageError: an argument is neither a capture nor a path, or there is no such file.
        RecordError: a file is not a record.

    Example::

        print(compile_lens.diff(compile_lens.capture(f, x), compile_lens.capture(g, x)).summary)
    """
    from ..measures.diff.levels import difference
    from ..results.comparison import Difference

    return difference(_capture(a, "a"), _capture(b, "b"), Difference)


def _capture(value: Any, name: str) -> Capture:
    if isinstance(value, Capture):
        return value
    if isinstance(value, (str, os.PathLike)):
        return load(value)
    raise UsageError(
        f"diff needs two captures, or paths of saved ones; {name} is {type(value).__name__}: "
        "diff(compile_lens.capture(f, x), compile_lens.capture(g, x))"
    )
