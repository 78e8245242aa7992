"""Conversion of a recorder's observations to a capture, with the steps of an ablation, and cells named as a notebook
numbers them."""

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
    """The capture of ``function``; ``not_observed`` are claims that could not be seen, ``more`` further attributes.
    With the draft that it is ``lowering`` the compiler goes on, and only what was traced is in it."""
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


LOWERING = "Inductor has not lowered it yet"

LEFT_OUT = "a report before the end of a capture holds no lowered stage"


def _traced(recorder: Recorder, lowering: Draft) -> tuple[Compilation, ...]:
    """Return compilations without what Inductor made of them: of the one in progress it is not whole."""

    def stage(one: Any) -> Any:
        lowered = isinstance(one, (Graph, Code)) and one.key.rpartition(".")[2] in LOWERED_STAGES
        return Missing(one.key, LEFT_OUT) if lowered else one

    nothing: dict[str, Any] = dict.fromkeys(
        ("decisions", "lowered", "passes", "memory", "autotuning", "cuda_graphs"), ()
    )
    return tuple(
        dataclasses.replace(one, stages=tuple(map(stage, one.stages)), partition=None, **nothing)
        for one in recorder.frozen(lowering, LOWERING)
    )


_T = TypeVar("_T")

_OF_KERNEL = re.compile(r"[/\\]ipykernel_\d+[/\\][^/\\]+\.py$")
_OF_TERMINAL = re.compile(r"<ipython-input-(\d+)-\w+>$")
_NUMBER = re.compile(r"In\[(\d+)\]$")


def is_cell(file: str) -> bool:
    """Return True for a file name that IPython made up for a cell: ``/tmp/ipykernel_71/4178438228.py``, ``<ipython-
    input-3-…>``."""
    return _OF_KERNEL.search(file) is not None or _OF_TERMINAL.match(file) is not None


def number(file: str) -> int | None:
    """The number that stands before a cell, ``In [3]``; ``None`` where this process does not know it."""
    terminal = _OF_TERMINAL.match(file)
    if terminal is not None:
        return int(terminal[1])
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    named = getattr(getattr(shell, "compile", None), "format_code_name", None)  # IPython 8.0 and later
    numbered = _NUMBER.match((named(file) or ("", ""))[1]) if named is not None else None
    return int(numbered[1]) if numbered is not None else None


def cell_name(file: str) -> str:
    """Return the name of a cell: ``cell [3]``, or ``a notebook cell`` where its number is not known."""
    known = number(file)
    return "a notebook cell" if known is None else f"cell [{known}]"


def shown(file: str) -> str:
    """The name of a file without its folder, of a cell what it is called."""
    return cell_name(file) if is_cell(file) else os.path.basename(file)


def in_cells(record: _T) -> _T:
    """A record in which files of cells are called by their cells, wherever a field ``file`` names one.

    Two cells never share a name: the second of those whose number is not known, or is that of another, has that of its
    file behind it.
    """
    return record if "IPython" not in sys.modules else _Names().of(record)


class _Names:
    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: set[str] = set()
        self._made: dict[int, tuple[Any, Any]] = {}

    def name(self, file: str) -> str:
        if file not in self._names:
            name = cell_name(file) if is_cell(file) else file
            if name != file and name in self._taken:
                name += f" ({os.path.splitext(os.path.basename(file))[0]})"
            self._names[file] = name
            self._taken.add(name)
        return self._names[file]

    def of(self, value: Any) -> Any:
        """The value; itself where nothing in it is renamed."""
        if not isinstance(value, tuple) and (isinstance(value, type) or not dataclasses.is_dataclass(value)):
            return value
        # Frames are shared by nodes. The value is kept, so that its id stays its own.
        if id(value) not in self._made:
            self._made[id(value)] = (value, self._renamed(value))
        return self._made[id(value)][1]

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
    """The capture with the steps that were compiled beside it."""
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
            compilations = ()  # what was compiled is another step's code
            notes.insert(0, f"this step could not be made: {lacking}")
        notes += _joined(compilations)
        if (
            step.name == ABLATIONS[0]
        ):  # its values have buffers since we gave them one: Inductor had no reason
            compilations = tuple(dataclasses.replace(c, lowered=()) for c in compilations)
        kept = tuple(trimmed_name(c, whole[c.id]) for c in compilations if c.id in whole)
        ablations.append(Ablation(step.name, step.settings, kept, tuple(dict.fromkeys(notes))))
    done = dataclasses.replace(capture, ablations=(*ablations, Ablation(ABLATIONS[-1])))
    if (live := getattr(capture, "_live", None)) is not None:
        object.__setattr__(done, "_live", live)
    return done


def _joined(compilations: Any) -> list[str]:
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
                if len(k.groups) > k.launches  # the same code may serve several groups, one launch each
            ]
    return notes
