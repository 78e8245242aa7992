"""Consistency check of a record: each item that one part refers to exists in the other.

A file with emptied lists would claim that "there was none". Records are written consistently, so an inconsistent one
was changed or damaged. A consistent change cannot be detected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import RecordError
from . import claims
from .breaks import REST
from .capture import Record
from .kernel import Code
from .messages import WITHOUT_SKIPPED
from .program import COMPILED

if TYPE_CHECKING:
    from .compilation import Compilation
    from .program import ProgramRecord

_DEFINITION = re.compile(r"^(\w+) = async_compile\.", re.MULTILINE)
"""Definition of a kernel in a module that Inductor generated."""


_RESUMED = "torch_dynamo_resume_in_"
"""Prefix of Dynamo's names of resume functions, which go on after a graph break."""


def check(record: Record | ProgramRecord) -> None:
    """Raise ``RecordError`` if two parts of a record contradict each other."""
    contradiction = next(_of_capture(record) if isinstance(record, Record) else _of_program(record), "")
    if (
        contradiction
    ):  # it has names from the file: escape terminal controls and characters that cannot be encoded
        contradiction = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in contradiction
        )
        raise RecordError(f"{contradiction}: the record was changed or is damaged; record it again")


def _of_capture(record: Record) -> Iterator[str]:
    ids = {one.id: one for one in record.compilations}
    for skip in record.skipped:
        if skip.compilation and skip.compilation not in ids:
            yield f"skipped names compilation {skip.compilation}, which is not in compilations"
        compilation = ids.get(skip.compilation) if skip.kind == REST else None
        if compilation is not None and compilation.ending is None and not record.lacks(claims.BREAKS):
            yield f"skipped has the rest of compilation {compilation.id}, whose ending is null"
    for call in record.calls:
        for id in (*call.compiled, *call.executed):
            if id not in ids:
                yield f"calls name compilation {id}, which is not in compilations"
        if call.skipped and not record.skipped:
            yield f"calls name what was skipped ({call.skipped[0]}), and skipped is empty"
    if WITHOUT_SKIPPED in record.notes and not record.skipped:
        yield "notes say that something was skipped, and skipped is empty"
    functions = (compilation.function for compilation in record.compilations)
    resumed = next((name for name in functions if name.startswith(_RESUMED)), "")
    if resumed and not record.breaks and not record.lacks(claims.BREAKS):
        yield f"{resumed} goes on after a graph break, and no break is in the record"
    for compilation in record.compilations:
        yield from _of_compilation(record, compilation)


def _of_compilation(record: Record, one: Compilation) -> Iterator[str]:
    if not one.stages:
        yield f"compilation {one.id} has neither a stage nor a reason why there is none"
    for code in (stage for stage in one.stages if isinstance(stage, Code)):
        names = {kernel.name for kernel in code.kernels}
        absent = [name for name in _DEFINITION.findall(code.text) if name not in names]
        if absent and not record.lacks(claims.KERNELS):
            yield f"the code of {one.id} {code.phase} defines {absent[0]}, which is not in kernels"
    named = [(phase, d.loops, "decisions") for phase, of_phase in one.decisions for d in of_phase]
    named += [(row.phase, row.loops, "lowered") for row in one.lowered]
    nodes = {key: {node.name for node in graph.nodes} for key, graph in one.graphs.items()}
    for phase, loops, field in named:
        for name in sorted({*loops} - nodes.get(f"{phase}.loops", {*loops})):
            yield f"{field} of {one.id} {phase} name {name}, which is not in its loops"


def _of_program(record: ProgramRecord) -> Iterator[str]:
    if record.log:  # a log may begin late and leave out anything
        return
    numbers = {graph.number for graph in record.graphs}
    if not record.lacks(claims.GRAPHS):
        for evaluation in record.evaluations:
            for number in (*evaluation.graphs, *(b.graph for b in evaluation.breaks if b.graph is not None)):
                if number not in numbers:
                    yield f"frames name graph {number}, which is not in graphs"
            if evaluation.outcome == COMPILED and not evaluation.graphs:
                yield f"evaluation {evaluation.number} is compiled, and has no graph"
    if not record.lacks(claims.EVALUATIONS):
        of = {number for evaluation in record.evaluations for number in evaluation.graphs}
        for number in sorted(numbers - of):
            yield f"graph {number} is of no evaluation in frames"
    for frame in record.frames:
        if not (frame.evaluations or frame.prior_ids or frame.eager_lines):
            yield f"{frame.function} is in frames, and has no evaluations"
