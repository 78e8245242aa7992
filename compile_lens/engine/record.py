"""Conversion of a recorder's observations to a capture, with ablation steps, and with notebook cells named by their
numbers."""

from __future__ import annotations

import dataclasses
import datetime
import os
import re
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from ..measures.steps import trimmed_name
from ..record import claims
from ..record.capture import ABLATIONS, Ablation, Environment, Options
from ..record.compilation import LOWERED_STAGES, Compilation
from ..record.graph import Graph
from ..record.kernel import Code
from ..record.missing import Missing
from ..results.capture import Capture
from .sources import with_inlined

if TYPE_CHECKING:
    from .._torch.ground.recorder import Draft, Recorder


def recorded(
    recorder: Recorder,
    function: str,
    where: Environment,
    options: Options,
    not_observed: tuple[Missing, ...] = (),
    lowering: Draft | None = None,
    **more: Any,
) -> Capture:
    """Return the capture of ``function``. ``not_observed`` are claims that could not be observed, ``more`` further
    attributes. If ``lowering`` is given, compilation is still running and the record holds only what was traced so
    far."""
    from .. import versions

    recorder.note(versions.note())
    compilations, timings = recorder.finish() if lowering is None else (_traced(recorder, lowering), ())
    capture = Capture(
        function=function,
        environment=where,
        options=options,
        sources=with_inlined(recorder.frames.sources.values(), compilations),
        compilations=compilations,
        timings=timings,
        created=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        notes=(*recorder.notes, *dict.fromkeys(one.reason for one in not_observed)),
        not_observed=(*not_observed, *recorder.not_observed()),
        skipped=recorder.eager_frames(),
        **more,
    )
    return in_cells(capture)


NOT_LOWERED_YET = "Inductor has not lowered it yet"

NOT_IN_EARLY_REPORT = "a report before the end of a capture holds no lowered stage"


def _traced(recorder: Recorder, lowering: Draft) -> tuple[Compilation, ...]:
    """Return the compilations without Inductor's stages, which are incomplete for the one in progress."""

    def stage(one: Any) -> Any:
        lowered = isinstance(one, (Graph, Code)) and one.key.rpartition(".")[2] in LOWERED_STAGES
        return Missing(one.key, NOT_IN_EARLY_REPORT) if lowered else one

    nothing: dict[str, Any] = dict.fromkeys(
        ("decisions", "lowered", "passes", "memory", "autotuning", "cuda_graphs"), ()
    )
    return tuple(
        dataclasses.replace(one, stages=tuple(map(stage, one.stages)), partition=None, **nothing)
        for one in recorder.frozen(lowering, NOT_LOWERED_YET)
    )


_T = TypeVar("_T")

_KERNEL_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\][^/\\]+\.py$")
_TERMINAL_CELL = re.compile(r"<ipython-input-(\d+)-\w+>$")
_CELL_LABEL = re.compile(r"In\[(\d+)\]$")


def is_cell(file: str) -> bool:
    """Return True for a file name that IPython invented for a cell: ``/tmp/ipykernel_71/4178438228.py``,
    ``<ipython-input-3-…>``."""
    return _KERNEL_CELL.search(file) is not None or _TERMINAL_CELL.match(file) is not None


def number(file: str) -> int | None:
    """Return the number shown at a cell (3 for ``In [3]``); None if this process does not know it."""
    terminal = _TERMINAL_CELL.match(file)
    if terminal is not None:
        return int(terminal[1])
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)  # IPython 8.0 and later
    numbered = _CELL_LABEL.match((named(file) or ("", ""))[1]) if named is not None else None
    return int(numbered[1]) if numbered is not None else None


def cell_name(file: str) -> str:
    """Return the name of a cell: ``cell [3]``, or ``a notebook cell`` where its number is not known."""
    known = number(file)
    return "a notebook cell" if known is None else f"cell [{known}]"


def shown(file: str) -> str:
    """Return the name of a cell, or the name of a file without its folder."""
    return cell_name(file) if is_cell(file) else os.path.basename(file)


def in_cells(record: _T) -> _T:
    """Return a record in which every field ``file`` that names a cell's file has the cell's name.

    Names are unique: a cell whose name is already taken gets the name of its file appended.
    """
    return record if "IPython" not in sys.modules else _Names().of(record)


class _Names:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._renamed_values: dict[int, tuple[Any, Any]] = {}

    def name(self, file: str) -> str:
        if file not in self._names:
            name = cell_name(file) if is_cell(file) else file
            if name != file and name in self._taken:
                name += f" ({os.path.splitext(os.path.basename(file))[0]})"
            self._names[file] = name
            self._taken.add(name)
        return self._names[file]

    def of(self, value: Any) -> Any:
        """Return the value with cells renamed; the same object if nothing changes."""
        if not isinstance(value, tuple) and (isinstance(value, type) or not dataclasses.is_dataclass(value)):
            return value
        # Nodes share frames, so results are cached by id; the value is kept alive so that its id stays valid.
        if id(value) not in self._renamed_values:
            self._renamed_values[id(value)] = (value, self._renamed(value))
        return self._renamed_values[id(value)][1]

    def _renamed(self, value: Any) -> Any:
        if isinstance(value, tuple):
            parts = tuple(map(self.of, value))
            same = all(a is b for a, b in zip(parts, value, strict=True))
            return value if same else type(value)(*parts) if hasattr(value, "_fields") else parts
        changed = {}
        for field in dataclasses.fields(value):
            old = getattr(value, field.name)
            new = self.name(old) if field.name == "file" and isinstance(old, str) else self.of(old)
            if field.init and new is not old and new != old:
                changed[field.name] = new
        return dataclasses.replace(value, **changed) if changed else value


if TYPE_CHECKING:
    from .._torch.session import Outcome


def with_steps(capture: Capture, outcome: Outcome) -> Capture:
    """Return the capture with the ablation steps that were compiled with it."""
    whole = {c.id: c for c in capture.compilations}
    ablations = []
    for step in outcome.steps:
        compilations, _ = step.recorder.finish()
        notes = list(step.recorder.notes)
        if step.error is not None:
            first = str(step.error).strip().splitlines()
            notes.insert(
                0, f"this step could not be made: {type(step.error).__name__}: {(first or [''])[0][:200]}"
            )
        step.recorder.drafts.clear()
        step.error = None
        if lacking := capture.lacks(claims.ABLATIONS):
            compilations = ()  # the compiled code is another step's
            notes.insert(0, f"this step could not be made: {lacking}")
        notes += _fusion_notes(compilations)
        # The first step gives every value a buffer, so that Inductor records no reason for any.
        if step.name == ABLATIONS[0]:
            compilations = tuple(dataclasses.replace(c, lowered=()) for c in compilations)
        kept = tuple(trimmed_name(c, whole[c.id]) for c in compilations if c.id in whole)
        ablations.append(Ablation(step.name, step.settings, kept, tuple(dict.fromkeys(notes))))
    done = dataclasses.replace(capture, ablations=(*ablations, Ablation(ABLATIONS[-1])))
    if (live := getattr(capture, "_live", None)) is not None:
        object.__setattr__(done, "_live", live)
    return done


def _fusion_notes(compilations: Any) -> list[str]:
    """Return notes on loops that were fused although the step fuses nothing."""
    notes = []
    for c in compilations:
        for phase, code in c.code.items():
            stage = f"{phase}.groups"
            groups = c.graphs[stage].nodes if stage in c.graphs else ()
            several = [g for g in groups if len(g.members) > 1]
            notes += [f"{phase}: {g.name} still has {len(g.members)} loops" for g in several]
            notes += [
                f"{phase}: {k.name} runs {len(k.groups)} groups in {k.launches} launch(es)"
                for k in code.kernels
                if len(k.groups) > k.launches  # the same code may run for several groups, one launch each
            ]
    return notes
