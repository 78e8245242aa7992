"""Tables of operators that backends implement, as text."""

from __future__ import annotations

import textwrap

from compile_lens.record.messages import first_names
from compile_lens.record.support import (
    BACKENDS,
    KIND_MEANINGS,
    Overload,
    Support,
    Unsupported,
    UnsupportedOperator,
)

from .words.characters import aligned, flat
from .words.labels import places

WIDTH = 110


def page(support: Support) -> str:
    """Return a table with a row for each overload, followed by an explanation."""
    rows: list[tuple[str, ...]] = [("", *BACKENDS, "Inductor")]
    rows += [(o.name, *(o.on(b).kind for b in BACKENDS), o.inductor) for o in support.overloads]
    table = aligned(rows, [False] * len(rows[0]), "  ")
    lines = [f"{flat(support.operator)}: {support.source}", "", *table, ""]
    for overload in support.overloads:
        lines += [
            *_wrapped(overload.name + _functions(overload), "  "),
            *_wrapped(overload.inductor_note, "    "),
        ]
        if overload.others:
            lines += _wrapped(f"further kernels: {', '.join(overload.others)}", "    ")
    used = dict.fromkeys(i.kind for o in support.overloads for i in o.implementations)
    lines += ["", *(line for how in used for line in _wrapped(f"{how}: {KIND_MEANINGS[how]}", "  "))]
    return "\n".join([*lines, "", *(line for note in support.notes for line in _wrapped(note, "  "))]) + "\n"


def lacking(result: Unsupported) -> str:
    """Return the operators that a target lacks, with Python lines, or that it lacks none."""
    lines = [f"{flat(result.function)} on {result.target}: {_verdict(result)}", ""]
    for lack in result.operators:
        lines += _lack(lack)
    if result.unknown:
        lines += _wrapped(f"not in torch's table, so not known: {first_names(result.unknown, 20)}", "  ")
    lines += [line for note in result.notes for line in _wrapped(note, "  ")]
    return "\n".join([*lines, *_wrapped(f"({result.source})", "  ")]) + "\n"


def _verdict(result: Unsupported) -> str:
    if result.operators:
        return (
            f"{len(result.operators)} things are lacking"
            if len(result.operators) > 1
            else "one thing is lacking"
        )
    if not result.checked:
        return "there is no operator to look up"
    sentence = f"every operator has an implementation for {result.device}"
    return f"{sentence}, by torch's tables ({len(result.checked)} looked up)"


def _lack(lack: UnsupportedOperator) -> list[str]:
    where = f" at {places(lack.frames)}" if lack.frames else ""
    stands = f" ({', '.join(lack.places)})" if lack.places else ""
    lines = _wrapped(f"{flat(lack.op)}{where}: {lack.reason}{stands}", "  ")
    for frame in lack.frames[:3]:
        lines += [f"      {flat(frame.text.strip())}"] if frame.text.strip() else []
    return [*lines, *(_wrapped(lack.compiled, "    ") if lack.compiled else [])]


def _functions(overload: Overload) -> str:
    by: dict[str, list[str]] = {}
    for one in overload.implementations:
        if one.function:
            by.setdefault(one.function, []).append(one.backend)
    return ": " + "; ".join(f"{', '.join(where)} by {name}" for name, where in by.items()) if by else ""


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ") if text else []
