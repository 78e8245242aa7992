"""Watched programs for users, with measures and views as methods; and programs of several ranks."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..record.delegates import delegate
from ..record.kernel import SAME_CODE
from ..record.program import ProgramRecord
from ..record.ranks import RanksRecord
from .text_forms import TextForms

if TYPE_CHECKING:
    from ..measures.causes import Cause
    from ..measures.compile_time import Cache
    from ..measures.program import Counts, Line
    from ..record.breaks import EagerFrame
    from ..record.device import DeviceModel
    from ..record.kernel import Code
    from ..record.program import (
        Break,
        CompileEvent,
        FrameEvaluation,
        LibrarySkips,
        ProgramFrame,
        ProgramGraph,
    )
    from ..views.document import Document
    from ..views.summaries.summary import Summary
    from .capture import Capture


class Program(TextForms):
    """Result of ``compile_lens.watch``. It can be queried at any time, also while the watch is open.

    ``record`` has everything as frozen plain data (``ProgramRecord``), with ``frames``, ``evaluations``, ``graphs``,
    ``breaks``, ``recompiles``, ``skipped``, ``eager_frames``, ``events`` and ``library_skips``. From these follow
    ``counts`` (``Counts``, as torch counts), ``causes`` (``Cause``: why it is not faster, ranked), ``lines``
    (``Line``: compiled, eager, broke or never) and ``caches`` (``Cache``). ``print(program)`` shows it, ``save`` writes
    it, ``save_trace`` writes its times for Perfetto, ``Program.load`` opens a saved file.
    """

    def __init__(
        self,
        current_record: Callable[[], ProgramRecord],
        kept: Callable[[int], tuple[Any, list[str]]] | None = None,
    ) -> None:
        self._current_record = current_record
        self._retained = kept

    @property
    def record(self) -> ProgramRecord:
        """Record of the program so far; it no longer changes once the watch is closed."""
        return self._current_record()

    @property
    def frames(self) -> tuple[ProgramFrame, ...]:
        """Each code object that Dynamo evaluated, with the outcomes."""
        return self.record.frames

    @property
    def evaluations(self) -> tuple[FrameEvaluation, ...]:
        """All frame evaluations, in order."""
        return self.record.evaluations

    @property
    def graphs(self) -> tuple[ProgramGraph, ...]:
        """Each graph that a backend was called with, in order."""
        return self.record.graphs

    @property
    def breaks(self) -> tuple[Break, ...]:
        """The graph breaks in frames, one for each time that Dynamo logged one."""
        return self.record.breaks

    @property
    def recompiles(self) -> tuple[FrameEvaluation, ...]:
        """The frame evaluations that were recompiles, each with the failed guards."""
        return self.record.recompiles

    @property
    def skipped(self) -> tuple[FrameEvaluation, ...]:
        """The frame evaluations after which the code, or its new variants, run eagerly."""
        return self.record.skipped

    @property
    def eager_frames(self) -> tuple[EagerFrame, ...]:
        """Functions that ran eagerly, or may have, without a frame evaluation."""
        return self.record.eager_frames

    @property
    def events(self) -> tuple[CompileEvent, ...]:
        """Parts of compiles with their times, as torch reports them."""
        return self.record.events

    @property
    def library_skips(self) -> tuple[LibrarySkips, ...]:
        """Code outside the program that Dynamo skipped, counted."""
        return self.record.library_skips

    @property
    def counts(self) -> Counts:
        """Graphs, breaks, recompiles and eager functions, counted as torch does."""
        from ..measures.program import counts

        return counts(self.record)

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Causes that keep it from being faster, ranked (see ``compile_lens.measures.causes``)."""
        from ..measures.causes import causes

        return causes(self.record)

    @property
    def caches(self) -> tuple[Cache, ...]:
        """The compiler's caches: how often each was hit, missed or bypassed, and why."""
        from ..measures.compile_time import caches

        return caches(self.record)

    @property
    def lines(self) -> dict[str, tuple[Line, ...]]:
        """Lines that have code, by file, with the state of each."""
        from ..measures.program import lines

        return lines(self.record)

    def capture(self, graph: ProgramGraph | int, target: str | Path | DeviceModel | None = None) -> Capture:
        """Return a capture of one of its graphs: every stage, decision and link, with the settings of the original run.

        The graph is lowered again as it was handed to the backend; nothing runs, and nothing is built. If the text of
        the code equals the code that the program compiled, or found in a cache, its stamp says ``same code,
        verified``. Graph breaks and eager code are facts of the program, not of the capture.

        Args:
            graph: one of ``graphs``, or its number.
            target: another device to lower it for, as in ``compile_lens.capture``. The graph is the one traced when the
                program ran, and its code did not run: ``capture.target`` says so. Symbols have the observed sizes.

        Raises:
            UsageError: if it is no graph of this program, or was not retained (the program was loaded, or ran under
                ``compile-lens run``), or cannot be lowered for a ``target``; the message says why.
            CaptureError: if the graph could not be lowered; ``error.capture`` has the stages before that.
        """
        number = self._number(graph)
        kept, codes = self._retained(number) if self._retained is not None else (None, [])
        if kept is None:
            raise UsageError(
                f"graph {number} was not retained: a program that was loaded, or run by compile-lens run, has only its "
                "record; watch it with compile_lens.watch(), or capture the function"
            )
        capture: Capture = delegate("Program.capture")(self, number, kept, codes, target)
        return capture

    def _number(self, graph: Any) -> int:
        from ..record.program import ProgramGraph

        graphs = self.graphs
        if not graphs:
            raise UsageError(f"the program has no graph, so there is none to capture: {self!r}")
        known = ", ".join(f"{g.number} ({g.id})" for g in graphs[:8]) + (", …" if len(graphs) > 8 else "")
        if isinstance(graph, int) and not isinstance(graph, bool):
            if not 0 <= graph < len(graphs):
                raise UsageError(
                    f"there is no graph {graph}; the program has {len(graphs)}, counted from 0: {known}"
                )
            return graph
        if not isinstance(graph, ProgramGraph):
            raise UsageError(
                f"capture takes one of program.graphs or its number, not {str(graph)[:80]!r} of type "
                f"{type(graph).__name__}: program.capture(program.graphs[0]); the graphs are {known}"
            )
        if not 0 <= graph.number < len(graphs) or graphs[graph.number].id != graph.id:
            raise UsageError(
                f"graph {graph.number} ({graph.id}) belongs to another program: the graphs of this one are {known}"
            )
        return graph.number

    def join(self, trace: str | Path) -> Program:
        """Return this program with kernel times from a trace that torch's profiler exported in the same process
        (``profiler.export_chrome_trace``), as ``record.profile``.

        Compiled graphs are matched by compile id. Each retained graph is lowered again, as by ``capture``; if the text
        of its code equals the program's, its kernels have their lines, nodes and modules. Times of other kernels are
        listed by the names in the trace.

        Args:
            trace: the file, ``.json`` or ``.json.gz``.

        Raises:
            UsageError: if there is no such file, or it cannot be read.
            RecordError: if it is no trace of the profiler.
        """
        from ..measures.profile import profile_of_graphs
        from ..record.profiler_trace import read_trace

        parsed = read_trace(Path(trace))
        record = replace(self.record, profile=profile_of_graphs(parsed, _Codes(self)))
        return Program(lambda: record, self._retained)

    def with_cuda_graphs(self, target: str | Path | DeviceModel | None = None) -> Program:
        """Return this program with the CUDA graphs that torch would record (``mode="reduce-overhead"``), and the lines
        that prevent others, as ``record.cuda_graphs``, a section of its page.

        Each graph is lowered again, as by ``capture``, and checked by the compiler's own rules. Conditions that are
        only known at run time are left out. A graph that cannot be lowered is listed with the reason.

        Args:
            target: an NVIDIA GPU to lower the graphs for, possibly absent; by default the one that they ran on.

        Raises:
            UsageError: if ``target`` is no NVIDIA GPU; if it is not given and the graphs are for none; or if no graph
                was retained.
        """
        from ..measures.cuda_graphs import cuda_graphs_of, nvidia_gpu
        from ..record.cuda_graphs import CudaGraphs, ProgramCudaGraphs
        from .capture import CaptureError

        name = "" if target is None else nvidia_gpu(target).name
        all_results: list[ProgramCudaGraphs] = []
        failed: list[Exception] = []
        why: Exception | None
        capture: Capture | None
        for graph in self.graphs:
            try:
                capture = self.capture(graph, target)
            except CaptureError as error:  # results from before the failure are valid
                why, capture = error, error.capture
            except UsageError as error:
                why, capture = error, None
            else:
                why = None
            results = (
                () if capture is None else cuda_graphs_of(graph, name or capture.environment.device, capture)
            )
            if why is not None and not results:
                failed.append(why)
                results = (
                    ProgramCudaGraphs(
                        graph.number, graph.id, name, CudaGraphs("", False, False, unknown_reason=str(why))
                    ),
                )
            all_results += results
        if len(failed) == len(self.graphs) and failed:
            raise UsageError(f"CUDA graphs are not known of any graph: {failed[0]}")
        if len(failed) == len(all_results):
            raise UsageError(
                "no graph of the program is for an NVIDIA GPU: name one that they are to be lowered for, as in "
                "with_cuda_graphs('h100')"
            )
        record = replace(self.record, cuda_graphs=tuple(all_results))
        return Program(lambda: record, self._retained)

    def what_if(self, fn: Callable[..., Any], *args: Any, **options: Any) -> Program:
        """Return this program with ``record.remedies``: ``fn(*args)`` runs again in child processes, unchanged, with
        each setting that may help against ``causes`` (``dynamic=True``, …), and with all that helped. This process is
        not affected, but each run repeats the effects of ``fn`` on files.

        Args:
            fn, args: a function that repeats the watched code, and its arguments.
            time_limit: most seconds for a run; by default four times the first run's, and at least a minute.

        Raises:
            UsageError: if an argument is invalid, or the function cannot be sent to another process.
        """
        tried = delegate("Program.what_if")(fn, *args, program=self, **options)
        record = replace(self.record, remedies=tried)
        return Program(lambda: record, self._retained)

    def to_json(self) -> str:
        """Return the record as JSON text, from which ``from_json`` restores an equal one."""
        from ..record.codec import to_json

        return to_json(self.record)

    @classmethod
    def from_json(cls, text: str) -> Program:
        """Return the program in a JSON text, without running code; raise ``RecordError`` if it is invalid or newer."""
        from ..record import codec, consistency

        record = codec.from_json(text, ProgramRecord)
        consistency.check(record)
        return cls(lambda: record)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Program:
        """Return the program in a file that ``save("….json")`` wrote, or in the ``.part`` file that ``compile-lens
        run`` leaves if it is killed, without running its code.

        Raises:
            UsageError: if there is no such file, or it cannot be read.
            RecordError: if it is not a program, is corrupt, or was written by a newer compile_lens.
        """
        from ..record.files import read
        from ..record.journal import from_journal, is_journal

        def parsed_program(text: str) -> Program:
            if not is_journal(text):
                return cls.from_json(text)
            record = from_journal(text)
            return cls(lambda: record)

        return read(path, parsed_program)

    def save(self, path: str | Path, captures: bool = False) -> Path:
        """Write the program to ``path`` atomically; the suffix selects the form: .html .json .md .txt.

        With ``captures``, also write a page for each graph's capture, to which the program's page links. Raise
        ``UsageError`` for another suffix, an unwritable path, or ``captures`` without a graph.
        """
        from ..views.live.program import page
        from ..views.render.formats import PROGRAM, save
        from .capture_pages import save_captures

        beside = save_captures(self.graphs, self.capture, Path(path)) if captures else ()
        shown = functools.partial(page, self.record, *beside)
        return save(path, PROGRAM, self._document, json=self.to_json, html=shown)

    def save_trace(self, path: str | Path) -> Path:
        """Write the compile times as trace-event JSON, which Perfetto and speedscope open, atomically.

        Raise ``UsageError`` for an unwritable path.
        """
        from ..record.files import write_text
        from ..views.findings.compile_time import to_trace

        return write_text(path, to_trace(self.record))

    def __repr__(self) -> str:
        from ..views.words.program import verdict

        record = self.record
        return f"<Program {record.name}: {verdict(record)}>"

    def _summary(self) -> Summary:
        from ..views.summaries.program_summary import summary

        return summary(self.record)

    def _document(self) -> Document:
        from ..views.subjects.program import document

        return document(self.record)


class _Codes:
    """Function from a compile id and phase of a program to the code that ran, or the reason why there is none."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[int, Capture | str] = {}

    def __call__(self, id: str, phase: str) -> tuple[Capture, Code] | str:
        numbers = [graph.number for graph in self._program.graphs if graph.id == id]
        if not numbers:
            return "no graph of this compile id was seen in the program"
        if len(numbers) > 1:
            return "several graphs of the program have this compile id"
        number = numbers[0]
        if number not in self._known:
            self._known[number] = self._lowered(number)
        known = self._known[number]
        if isinstance(known, str):
            return known
        code = next((c.code[phase] for c in known.compilations if phase in c.code), None)
        if code is None:
            return f"lowered again, the graph has no {phase}"
        if not code.stamp.startswith(SAME_CODE):
            return f"its lines are not known for certain: {code.stamp}"
        return known, code

    def _lowered(self, number: int) -> Capture | str:
        from .capture import CaptureError

        try:
            return self._program.capture(number)
        except (UsageError, CaptureError) as error:
            return str(error)


class Ranks(TextForms, RanksRecord):
    """Result of ``compile_lens.merge`` and ``compile_lens.rehearse``: programs by rank and their differences;
    ``ranks[2]`` is the program of rank 2."""

    _kind = "ranks"

    def __getitem__(self, rank: int) -> Program:
        if rank not in self.ranks:
            raise KeyError(f"no rank {rank}; there are {', '.join(map(str, self.ranks))}")
        record = self.programs[self.ranks.index(rank)]
        return Program(lambda: record)

    def at(self, level: str) -> tuple[Any, ...]:
        """Return the differences of one level; raise ``KeyError`` for an unknown level."""
        from ..record.ranks import LEVELS

        if level not in LEVELS:
            raise KeyError(f"no level {level!r}; there are {', '.join(LEVELS)}")
        return tuple(one for one in self.differences if one.level == level)

    def to_dict(self) -> dict[str, Any]:
        """Return the differences, and the collectives and buckets of each rank, as plain JSON data."""
        from ..views.subjects.ranks import to_dict

        return to_dict(self)

    def __repr__(self) -> str:
        from ..views.subjects.ranks import verdict

        return f"<Ranks {', '.join(map(str, self.ranks))}: {verdict(self)}>"

    def _summary(self) -> Summary:
        from ..views.summaries.ranks_summary import summary

        return summary(self)

    def _document(self) -> Document:
        from ..views.subjects.ranks import document

        return document(self)
