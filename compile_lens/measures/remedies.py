"""Remedies for causes that are torch settings, and whether a run with one of them helped."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from compile_lens.record import claims
from compile_lens.record.dimension_marks import is_limited, is_static
from compile_lens.record.graph import Frame
from compile_lens.record.messages import plain_source
from compile_lens.record.program import ProgramRecord, Recompilation
from compile_lens.record.remedies import (
    CAPTURE_SCALARS,
    CAPTURE_SHAPES,
    DYNAMIC,
    FLAGS,
    ISOLATE,
    LIMIT,
    MARK_DYNAMIC,
    REORDER_LOGGING,
    TOTAL_LIMIT,
    UNSPECIALIZED_INTS,
    DimensionMark,
    EagerPart,
    Remedy,
    RemedyRun,
    RunFigures,
)

from .causes import (
    CACHE_BYPASSED,
    COMPILE_RAISED,
    GRAPH_BREAK,
    RECOMPILE_LIMIT,
    RECOMPILED,
    Cause,
    causes,
)
from .program import counts, is_library

LIMIT_FACTOR = 8
"""Factor by which a limit that was reached is raised."""

_COMPILED_KINDS = (GRAPH_BREAK, RECOMPILED, CACHE_BYPASSED)
"""Kinds of causes for which at most the line itself runs eagerly."""

SIZE = re.compile(r"(?P<tensor>[^,]+)\.size\((?P<dim>\d+)\)$")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?$")
_LOGGING = re.compile(
    r"(?<![\w.])(print|warnings\.warn|logging\.(?:debug|info|warning|error|critical|exception|log))\("
)
_CONFIG = "torch._dynamo.config"
_ISOLATE_VERSION = (2, 13)
"""First torch version with ``isolate_recompiles``."""


def remedies(program: ProgramRecord) -> tuple[tuple[Remedy, tuple[int, ...]], ...]:
    """Return each remedy that is a setting, with the numbers, from 1, of the causes for which it may help."""
    numbers: dict[str, list[int]] = {}
    by_key: dict[str, Remedy] = {}
    for number, cause in enumerate(causes(program), 1):
        for effect in cause.effects or (cause,):
            for remedy in _of_effect(effect, program.environment.torch):
                key = f"{remedy.kind} {number}" if remedy.marks else remedy.kind
                known = by_key.get(key)
                by_key[key] = remedy if known is None else _merged(known, remedy)
                numbers.setdefault(key, []).append(number)
    return tuple((_with_code(remedy), tuple(dict.fromkeys(numbers[key]))) for key, remedy in by_key.items())


def _of_effect(effect: Cause, torch: str) -> Iterator[Remedy]:
    of_limit = effect.limit in (LIMIT, TOTAL_LIMIT)
    if effect.kind in (RECOMPILED, RECOMPILE_LIMIT) or (effect.kind == COMPILE_RAISED and of_limit):
        for recompilation in filter(None, (effect.recompilation, *effect.other_recompilations)):
            yield from _of_recompile(effect, recompilation)
        if effect.sharing > 1 and _version(torch) >= _ISOLATE_VERSION:
            yield Remedy(ISOLATE, "")
    if of_limit:
        limit = effect.recompilation.limit if effect.recompilation is not None else 0
        yield Remedy(effect.limit, "", LIMIT_FACTOR * (limit if effect.limit == LIMIT and limit else 256))
        return
    if effect.ending is None:
        return
    words = f"{effect.ending.reason}\n{effect.ending.hint}"
    for kind in (CAPTURE_SCALARS, CAPTURE_SHAPES):
        if kind in words:
            yield Remedy(kind, "")
    lines = (effect.place, effect.caller, effect.origin_line, *effect.ending.frames)
    if names := logging_calls(at.text for at in lines if at is not None):
        yield Remedy(REORDER_LOGGING, "", functions=names)


def logging_calls(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the functions called in Python lines that Dynamo can reorder as logging functions."""
    return tuple(dict.fromkeys(name for line in lines for name in _LOGGING.findall(line)))


def sizes_made_dynamic(recompilation: Recompilation) -> tuple[str, ...]:
    """Return the value that changed and those that the new entry has as symbols, as the function names them."""
    failed = recompilation.change
    changed = () if failed is None else (failed.source,)
    return (*changed, *(plain_source(dim.source) for dim in recompilation.dynamic))


def _of_recompile(effect: Cause, recompilation: Recompilation) -> Iterator[Remedy]:
    failed = recompilation.change
    if failed is None:
        return
    if UNSPECIALIZED_INTS in failed.hint:  # torch.compile(dynamic=True) keeps it constant
        yield Remedy(UNSPECIALIZED_INTS, "")
        return
    if any(is_static(mark) or is_limited(mark) for mark in (failed.old_mark, failed.new_mark)):
        return  # the program's own mark decides
    if ".size(" in failed.source or all(_NUMBER.match(value) for value in (failed.old, failed.new)):
        yield Remedy(DYNAMIC, "")
    place = effect.place
    if ".size(" not in failed.source or place is None or effect.after_break or effect.torch_caller:
        return
    marks = []
    for match in filter(None, map(SIZE.match, sizes_made_dynamic(recompilation))):
        marks.append(
            DimensionMark(effect.function, place.file, place.line, match["tensor"], int(match["dim"]))
        )
    if marks:
        yield Remedy(MARK_DYNAMIC, "", marks=tuple(dict.fromkeys(marks)))


def _version(torch: str) -> tuple[int, int]:
    version = re.match(r"(\d+)\.(\d+)", torch)
    return (0, 0) if version is None else (int(version[1]), int(version[2]))


def _merged(one: Remedy, other: Remedy) -> Remedy:
    return replace(
        one,
        value=max(one.value, other.value),
        functions=tuple(dict.fromkeys((*one.functions, *other.functions))),
        marks=tuple(dict.fromkeys((*one.marks, *other.marks))),
    )


def _with_code(remedy: Remedy) -> Remedy:
    if remedy.marks:
        by_function: dict[tuple[str, str, int], list[str]] = {}
        for mark in remedy.marks:
            call = f"torch._dynamo.mark_dynamic({mark.tensor}, {mark.dim})"
            by_function.setdefault((mark.function, mark.file, mark.line), []).append(call)
        code = ", ".join(
            f"{'; '.join(calls)} before the call of {function} ({os.path.basename(file)}:{line})"
            for (function, file, line), calls in by_function.items()
        )
    elif remedy.kind in FLAGS:
        code = f"{_CONFIG}.{remedy.kind} = True"
    elif remedy.value:
        code = f"{_CONFIG}.{remedy.kind} = {remedy.value}"
    elif remedy.functions:
        listed = ", ".join(remedy.functions)
        code = f"{_CONFIG}.{remedy.kind}.update({{{listed}}})"
    else:
        code = f"torch.compile(…, {remedy.kind}=True)"
    return replace(remedy, code=code)


def run_figures(program: ProgramRecord) -> RunFigures:
    """Return the figures of one run of a program."""
    own = counts(program)
    eager = tuple(
        EagerPart(effect.kind, _plain(effect.place), effect.function)
        for cause in causes(program)
        for effect in cause.effects or (cause,)
        if effect.kind not in _COMPILED_KINDS
    )
    unknown = program.lacks(
        claims.EVALUATIONS, claims.BREAKS, claims.SKIP_REASONS, claims.LIMITS, claims.RESTS
    )
    return RunFigures(
        None if program.lacks(claims.GRAPHS, claims.EVALUATIONS) else own.graphs,
        None if program.lacks(claims.BREAKS) else own.breaks,
        None if program.lacks(claims.RECOMPILES) else own.recompiles,
        None if unknown else eager,
    )


def _plain(at: Frame | None) -> Frame | None:
    return None if at is None else replace(at, text="") if is_library(at) else at


def helped(run: RemedyRun, base: RunFigures | None) -> bool:
    """Return True if a remedy reduces eager code or, if that is equal, graph breaks or, if these are equal, recompiles;
    False if the results differ or the remedy was not run."""
    if run.figures is None or base is None or run.agrees is False:
        return False
    for before, after in zip(_order(base), _order(run.figures), strict=True):
        if before is None or after is None:
            return False
        if before != after:
            return after < before
    return False


def _order(figures: RunFigures) -> tuple[int | None, ...]:
    eager = None if figures.eager is None else len(figures.eager)
    return eager, figures.breaks, figures.recompiles
