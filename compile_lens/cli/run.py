"""``compile-lens run``: run a script as Python does, and watch it from its first compile to its end."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import LensError, UsageError
from .output import say
from .programs import Document
from .script import AfterImport, Interrupt, Script, module, script

if TYPE_CHECKING:
    from ..api.watch import WatchContext
    from ..record.program import ProgramRecord
    from ..record.remedies import Remedy


def find_program(words: list[str]) -> Script:
    """Return the program that words of a command line name, as in Python's: ``-m module …``, ``-mmodule …``, ``script
    …`` or ``-- script …``."""
    first, *rest = words or [""]
    if first.startswith("-m"):
        name, *rest = [first[2:], *rest] if first != "-m" else (rest or [""])
        if not name:
            raise UsageError("-m needs the name of a module")
        return module(name, rest)
    if first == "--":
        first, *rest = rest or [""]
    if not first:
        raise UsageError("run needs a script or -m MODULE: compile-lens run -o report.html train.py")
    return script(first, rest)


class Run:
    """One run of a program, with its report. ``cuda_graphs`` names an NVIDIA GPU, to report which graphs it would
    record as CUDA graphs. With ``json``, stdout is one document, and the program's stdout goes to stderr. ``settings``
    are remedies to apply when the program imports torch's compiler."""

    def __init__(
        self,
        program: Script,
        out: list[Path],
        cuda_graphs: str | None = None,
        json: bool = False,
        full: bool = False,
        settings: tuple[Remedy, ...] = (),
    ) -> None:
        self._settings = settings
        self._applied: Any = None
        self._form = "full" if full else "short"
        self._cuda_graphs = cuda_graphs
        self._document = Document() if json else None
        self._program = program
        self._out = [
            _rank_path(path).absolute() for path in out
        ]  # the program may change the working directory
        self._journal = Journal(_journal_path(self._out[0])) if out else None
        self._watching: WatchContext | None = None
        self._ended = "the program ended"
        self._process = os.getpid()
        self._done = False
        self._interrupt: Interrupt | None = None

    def set_up(self) -> None:
        """Import what writes the report, and move earlier reports aside."""
        # Imported now, since not everything can be imported at exit.
        from ..results import program
        from ..views.render import html, markdown, text
        from ..views.subjects import program as subject
        from ..views.summaries import program_summary, short_text

        self._writers = (program, html, markdown, text, subject, program_summary, short_text)
        if self._document is not None:
            self._document.begin()
        if self._journal is not None:
            with contextlib.suppress(OSError):
                self._journal.remove()  # left by an earlier run that was killed
        for path in self._out:
            _put_aside(path)

    def __call__(self) -> None:
        self.set_up()
        if self._journal is not None:  # reports that nothing was compiled, unless more follows
            self._journal.begin(self._with_earlier(without_compile(self._program)))
        atexit.register(self._finish)  # registered first, so called last
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._terminated)
        # Not earlier: torch reads the environment, which the program may set, when it is imported.
        sys.meta_path.insert(0, AfterImport("torch._dynamo", self._watch))
        self._program.prepare()
        try:
            self._program.run()
        except BaseException as error:
            from ..api.watch import ending

            self._ended = ending(error)
            _trim_traceback()
            if isinstance(error, KeyboardInterrupt):
                self._interrupt = Interrupt()
            raise

    def _watch(self) -> None:
        from ..api.watch import WatchContext

        kept = self._journal.keep if self._journal is not None else None
        self._watching = WatchContext(
            self._program.name, self._program.arguments, kept, whole=True, keeps=self._cuda_graphs is not None
        )
        program = self._watching.__enter__()
        if self._settings:
            from .._torch.watch.remedy_settings import RemedySettings

            self._applied = RemedySettings(self._settings)
            self._applied.apply()
        if self._journal is not None:
            self._journal.begin(self._with_earlier(program.record))

    def _with_earlier(self, record: ProgramRecord) -> ProgramRecord:
        """Return the record with a note on where earlier reports are, in case this run is killed."""
        import dataclasses

        earlier = [aside.name for aside in map(_earlier_path, self._out) if aside.exists()]
        note = f"the report of an earlier run is in {' and '.join(earlier)}"
        return dataclasses.replace(record, notes=(*record.notes, note)) if earlier else record

    def _terminated(self, number: int, frame: types.FrameType | None) -> None:
        self._ended = "SIGTERM"
        self._finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _finish(self) -> None:
        """Write the report once; do nothing in a process that the program forked."""
        if self._done or os.getpid() != self._process:
            return
        self._done = True
        with self._interrupt.kept() if self._interrupt is not None else contextlib.nullcontext():
            self._write()

    def _write(self) -> None:
        from ..results.program import Program

        record = self._with_cuda_graphs(self._record())
        program = Program(lambda: record)
        stream = sys.__stderr__ or sys.stderr
        written: list[Path] = []
        failure: Exception | None = None
        try:
            for path in self._out:
                program.save(path)
                written.append(path)
                with contextlib.suppress(FileNotFoundError):
                    _earlier_path(path).unlink()
            if not self._out and self._document is None:
                say(program.text(self._form), stream)
            if not self._out and (given := _misplaced_out(self._program.arguments)):
                say(f"compile-lens: {given}", stream)
            if self._journal is not None:
                self._journal.remove()
        except (LensError, OSError) as error:
            failure = error
            kept = (
                f"; what was seen is in {self._journal.path}" if self._journal and self._journal.there else ""
            )
            with contextlib.suppress(OSError, ValueError):  # the program may have closed it
                say(f"compile-lens: {error}{kept}", stream)
        if self._document is not None:
            self._document.write(program, written, failure)

    def _record(self) -> ProgramRecord:
        import dataclasses

        if self._watching is None or self._watching.program is None:
            return dataclasses.replace(without_compile(self._program), ended=self._ended)
        self._watching.close(self._ended)
        record = self._watching.program.record
        if self._applied is not None:
            record = dataclasses.replace(record, missing=(*record.missing, *self._applied.missing()))
        failed = self._journal.failed if self._journal is not None else ""
        return dataclasses.replace(record, notes=(*record.notes, failed)) if failed else record

    def _with_cuda_graphs(self, record: ProgramRecord) -> ProgramRecord:
        """Return the record with its CUDA graphs if they were requested, or with why they are missing."""
        if self._cuda_graphs is None:
            return record
        import dataclasses

        from ..record.missing import Missing

        try:
            if self._ended == "SIGTERM":  # perhaps in the middle of a compile: lowering would deadlock
                raise UsageError(
                    "the program was ended by SIGTERM, and graphs are lowered once a program is over"
                )
            if self._watching is None or self._watching.program is None or not record.graphs:
                raise UsageError("no graph was compiled")
            recorded = self._watching.program.with_cuda_graphs(self._cuda_graphs).record
            return dataclasses.replace(record, cuda_graphs=recorded.cuda_graphs)
        except Exception as error:  # the report is written in any case
            why = str(error) if isinstance(error, LensError) else f"{type(error).__name__}: {error}"
            lacks = Missing(f"CUDA graphs for {self._cuda_graphs}", why)
            return dataclasses.replace(record, missing=(*record.missing, lacks))


def _misplaced_out(arguments: tuple[str, ...]) -> str:
    """Return a sentence about an ``--out`` that follows the script and so was passed to it; ``""`` if there is none."""
    for at, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        if word == "-o" or (option == "--out" and not equals):
            value = "".join(arguments[at + 1 : at + 2])
        elif option != "--out":
            value = word[2:] if word.startswith("-o") else ""
        if Path(value).suffix.lower() in (".html", ".json", ".md", ".txt"):
            return (
                f"arguments after the script belong to the script, {word} too, so no report was written; put it before "
                f"the script: `compile-lens run -o {value} …`"
            )
    return ""


def without_compile(program: Script) -> ProgramRecord:
    """Return the record of a program that compiled nothing, without importing torch."""
    import platform

    from ..record.capture import Environment
    from ..record.program import ProgramRecord
    from ..versions import __version__

    torch = getattr(sys.modules.get("torch"), "__version__", "")
    system = f"{platform.system()} {platform.machine()}"
    environment = Environment(__version__, str(torch), "", platform.python_version(), system, "", "")
    why = (
        "the program did not import torch._dynamo, as torch.compile does when it is first called; a function that it "
        "only defines is captured by compile-lens show FILE:FUNCTION --input EXPR"
    )
    if (dynamo := sys.modules.get("torch._dynamo")) is not None:
        why = "torch._dynamo was not imported through sys.meta_path, so nothing was watched"
        if getattr(dynamo.__spec__, "_initializing", False):  # as Python's import system checks
            why = "the program ended while it imported torch._dynamo, before it compiled anything"
    return ProgramRecord(program.name, environment, program.arguments, "the program ended", notes=(why,))


def _rank_path(path: Path) -> Path:
    """Return a path with the rank of this process if torchrun started several: ``report.rank0.html``."""
    rank, world = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if not (rank.isdecimal() and world.isdecimal() and int(world) > 1):
        return path
    return path.with_name(f"{path.stem}.rank{int(rank)}{path.suffix}")


def _journal_path(path: Path) -> Path:
    from ..record.files import PART

    return path.with_name(f"{path.name}{PART}")


def _earlier_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.before-this-run")


def _put_aside(path: Path) -> None:
    """Move an earlier report aside, so that it is not taken for this run's if this run is killed. It is removed when
    the new report is written."""
    if path.is_file() and not path.is_symlink():
        with contextlib.suppress(OSError):  # then writing the report fails too, and says so
            os.replace(path, _earlier_path(path))


class Journal:
    """Journal of a running program, one line for each frame evaluation; it survives if the process is killed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failed = ""
        self._begun = False
        self._file: int | None = None
        self._process = os.getpid()

    @property
    def there(self) -> bool:
        """True if the file exists and belongs to this run; False where it could not be created."""
        return self._begun and os.path.isfile(self.path)

    def begin(self, header_line: ProgramRecord) -> None:
        """Create the file again with the record's header line, atomically."""
        from ..record.files import write_text
        from ..record.journal import header_line as first_line

        if os.getpid() != self._process:  # in a fork: the file belongs to the parent
            return
        self._close()
        self.failed = ""
        try:
            write_text(self.path, first_line(header_line))
            self._begun = True
            flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(self.path, flags)
        except (LensError, OSError) as error:
            self.failed = f"nothing could be recorded while the program ran: {error}"

    def keep(self, part: ProgramRecord) -> None:
        """Write the line of one frame evaluation."""
        if self._file is not None and os.getpid() == self._process:
            self._write(part)

    def _write(self, record: ProgramRecord) -> None:
        from ..record.journal import journal_line

        assert self._file is not None
        data = journal_line(record).encode("utf-8")
        try:
            if os.write(self._file, data) < len(data):
                raise OSError("the disk is full")
        except OSError as error:
            self.failed = f"not everything could be recorded while the program ran: {error}"
            self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self) -> None:
        """Close and remove the file, once the report is written or another run starts."""
        self._close()
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()


def _trim_traceback() -> None:
    """Remove the lines of the launcher from the traceback that Python prints."""
    hook = sys.excepthook

    def trimmed(kind: Any, error: Any, trace: types.TracebackType | None) -> None:
        at = trace
        while at is not None and at.tb_frame.f_code is not Script.run.__code__:
            at = at.tb_next
        shown = trace if at is None else at.tb_next
        while shown is not None and shown.tb_frame.f_code.co_filename == Script.run.__code__.co_filename:
            shown = shown.tb_next
        hook(kind, error.with_traceback(shown), shown)

    sys.excepthook = trimmed
