"""A watched program in words: how it went, what made it slower, and what to try."""

from __future__ import annotations

import ast
import dataclasses
import os
import re

from compile_lens.measures.program import Counts, counts, in_part, places_at_least
from compile_lens.measures.slower import (
    AGAIN,
    AT_LIMIT,
    BREAKS,
    COMPILING,
    GIVEN_UP_ON,
    LEFT_REST,
    LEFT_WHOLE,
    RAISES,
    UNASKED,
    Cause,
)
from compile_lens.record.compilation import DynamicDim
from compile_lens.record.failed_guards import INFERENCE, NORMAL, OTHER, SAME, SET, STATE, THERE
from compile_lens.record.graph import Frame
from compile_lens.record.messages import plain, plain_source
from compile_lens.record.program import (
    COMPILED,
    ERROR,
    FAILS,
    NO_GRAPH,
    FailedGuard,
    ProgramRecord,
    Recompilation,
    Visit,
)
from compile_lens.record.unvisited import STANCE

from .outcome import reason
from .outline import UNSAID, duration, plural

NO_OPERATION = "Dynamo met no tensor operation, and does not look at these functions again"
"""Torch leaves to Python, for good, what it found nothing in: a later call may well compute."""


_FOR_GOOD = "with nothing to compile in a call, and eager in each after it"
_UNTRIED = "left to Python without a compile being tried"


def state(program: ProgramRecord) -> str:
    """``compiled``, ``partial`` or ``nothing``, as of a capture."""
    if not any(v.outcome in (COMPILED, NO_GRAPH) for v in program.visits):
        return "nothing"
    found = counts(program)
    left = (
        found.breaks
        or found.skipped
        or found.left
        or found.limits
        or found.raised
        or found.unvisited
        or found.given_up
    )
    return "partial" if left else "compiled"


def verdict(program: ProgramRecord) -> str:
    """What became of the program, in one sentence without a full stop."""
    found = counts(program)
    if state(program) == "nothing":
        if not program.visits:
            before = sum(len(f.before) for f in program.before)
            known = f"; {plural(before, 'form was', 'forms were')} compiled before" if before else ""
            left = "".join(f"; {one}" for one in _left(program, found))
            return f"nothing was compiled while it was watched{known}{left}"
        left = ", ".join(_left(program, dataclasses.replace(found, given_up=0)))
        return f"nothing was compiled: {left or NO_OPERATION}"
    parts = [plural(found.graphs, "graph")]
    if found.compilations != found.graphs:
        without = f", {found.without_graph} without a graph" if found.without_graph else ""
        parts[0] += f" in {plural(found.compilations, 'compilation')}{without}"
    if found.breaks:
        parts.append(
            f"{plural(found.breaks, 'graph break')} at {in_source(program, found.places)} in the source"
        )
    if found.recompiles:
        parts.append(plural(found.recompiles, "recompile"))
    return ", ".join((*parts, *_left(program, found)))


def in_source(program: ProgramRecord, places: int) -> str:
    """How many places of the source graphs broke at: at least so many where columns are not known."""
    return f"{'at least ' if places_at_least(program) else ''}{plural(places, 'place')}"


def _left(program: ProgramRecord, found: Counts) -> list[str]:
    doubt = "" if any(one.certain or one.kind == STANCE for one in program.unvisited) else _AS_FAR
    told = [
        (found.skipped, "function left to Python", "functions left to Python"),
        (found.left, "left to Python in part", "left to Python in part"),
        (found.limits, "at its recompile limit", "at their recompile limit"),
        (found.raised, "compile that raised", "compiles that raised"),
        (found.given_up, f"function {_FOR_GOOD}", f"functions {_FOR_GOOD}"),
        (found.unvisited, f"function {_UNTRIED}{doubt}", f"functions {_UNTRIED}{doubt}"),
    ]
    return [plural(count, one, many) for count, one, many in told if count]


def place(frame: Frame | None) -> str:
    """A line as ``train.py:31``."""
    return f"{os.path.basename(frame.file)}:{frame.line}" if frame is not None and frame.file else UNSAID


def changed(failed: FailedGuard) -> str:
    """What a guard was made for and what it met, in a few words."""
    if failed.source and failed.new:
        if failed.old:
            verb = "were" if failed.text.startswith(STATE) and " and " in failed.source else "was"
            return f"{failed.source} {verb} {failed.old}, now {failed.new}"
        verb = "are" if ", " in failed.source else "is"
        return f"{failed.source} {verb} {failed.new}, compiled for {plain_source(failed.text)}"
    if failed.source and failed.old:
        return f"{failed.source} was {failed.old}"
    return failed.text


def again(found: Recompilation, made: bool = True) -> str:
    """Why a code was compiled again, or was to be, how often it was, and what became a symbol."""
    newest = changed(found.changed) if found.changed is not None else "torch found no guard that failed"
    dims = [f"{plain_source(d.source)} became {d.symbol}, for any {_kind(d)}" for d in found.dynamic]
    if not made and found.count < found.limit:
        return "; ".join((newest, *dims, f"none of {plural(found.count, 'form')} fits"))
    if not found.limit:  # the log of it does not say
        return "; ".join((newest, *dims, f"form {found.count + 1}"))
    most = f"form {found.count + 1} of at most {found.limit}"
    if found.count >= found.limit:
        most = f"it has {found.count} forms, and may have {found.limit}"
    return "; ".join((newest, *dims, most))


def also(found: Recompilation) -> str:
    """Why the call did not fit the forms that it was farther from, by what else changed; ``""`` where nothing did."""
    forms: dict[str, list[FailedGuard]] = {}
    for one in found.others:
        forms.setdefault(one.source or one.text, []).append(one)
    if found.changed is not None:
        forms.pop(found.changed.source or found.changed.text, None)
    said = [f"{_few([one.id for one in of])}: {changed(of[0])}" for of in forms.values()]
    more = f"; and {plural(len(said) - _OTHERS, 'reason')} more" if len(said) > _OTHERS else ""
    return f"also {'; '.join(said[:_OTHERS])}{more}" if said else ""


def _few(ids: list[str]) -> str:
    return ", ".join(ids[:_OTHERS]) + (f" and {len(ids) - _OTHERS} more" if len(ids) > _OTHERS else "")


def _kind(symbol: DynamicDim) -> str:
    return "size" if ".size(" in symbol.source or ".stride(" in symbol.source else "value"


HEADS = {
    RAISES: "could not be compiled: the call raised",
    AT_LIMIT: "reached its limit of recompiles: each call that fits no form runs eagerly",
    LEFT_WHOLE: "was left to Python whole",
    GIVEN_UP_ON: "had nothing to compile in a call: each call after it runs eagerly",
    UNASKED: f"was {_UNTRIED}",
    LEFT_REST: "was compiled up to an earlier line, and left to Python from there",
    BREAKS: "broke the graph",
    AGAIN: "was compiled again",
    COMPILING: "went into compiling",
}
"""What each kind of cause did."""


def head(cause: Cause, program: ProgramRecord) -> str:
    """What a cause did, where and how often."""
    if cause.kind == COMPILING:
        if not program.seconds:
            return f"{duration(cause.seconds)} {HEADS[COMPILING]}"
        share = cause.seconds / program.seconds
        return f"{duration(cause.seconds)} of {duration(program.seconds)} ({share:.0%}) {HEADS[COMPILING]}"
    times = f", {cause.times} times" if cause.times > 1 else ""
    spent = f", {duration(cause.seconds)} of compiling" if cause.seconds else ""
    what = f"{place(cause.place)} in {cause.function}" if cause.function else place(cause.place)
    did = HEADS[cause.kind]
    if cause.rest:
        what = f"what follows {what}"
    elif cause.kind == BREAKS and cause.place is not None and plain(cause.place.function) != cause.function:
        what = f"{place(cause.place)} in {plain(cause.place.function)}"
        did = f"{did} of {cause.function}"
    if not cause.certain:
        did = _PERHAPS if cause.unasked == STANCE else f"{did}{_AS_FAR}"
    return f"{what} {did}{times}{spent}"


_AS_FAR = ", as far as is known"
_PERHAPS = "was called where nothing may be compiled: the calls that fitted no compiled form ran eagerly"


_OTHERS = 3


def because(cause: Cause) -> str:
    """Why, in torch's words or by the guard that failed; ``""`` where there is nothing to say."""
    if cause.kind == GIVEN_UP_ON:
        return (
            "Dynamo met no tensor operation, and does not look at the function again: torch runs no form of it any "
            "more, also none that it compiled before"
        )
    if cause.recompilation is not None and _of_forms(cause):
        if cause.limit == FAILS and cause.ending is not None:
            return f"{reason(cause.ending).what}: {again(cause.recompilation, made=False)}"
        if cause.limit == ERROR:
            told = again(cause.recompilation, made=False)
            return f"torch._dynamo.config.{ERROR} is set, so that a call which fits no form raises: {told}"
        if cause.kind == RAISES:
            reached = f"{cause.limit} was reached, and fullgraph=True lets no call run eagerly"
            return f"{reached}: {again(cause.recompilation)}"
        others = [changed(other.changed) for other in cause.others if other.changed is not None]
        also = f"; another time {'; '.join(others[:_OTHERS])}" if others else ""
        return f"{again(cause.recompilation)}{also}"
    if cause.ending is None:
        return ""
    said = reason(cause.ending)
    met = f"{place(cause.met)} in {plain(cause.met.function)}" if cause.met is not None else ""
    return ": ".join(x for x in (met, said.what, said.why) if x)


def _of_forms(cause: Cause) -> bool:
    """Whether it is that a code was compiled again, and not what was met while it was."""
    return cause.kind in (AT_LIMIT, AGAIN) or (cause.kind == RAISES and bool(cause.limit))


def advice(cause: Cause) -> str:
    """What to try: torch's own hint, or by what changed."""
    if cause.kind == COMPILING:
        return ""
    if cause.kind == GIVEN_UP_ON:
        what = "the rest" if cause.rest else cause.function
        return (
            f"if {what} computes in other calls, compile that part as a function of its own, and decide outside of it "
            "whether to call it"
        )
    if cause.recompilation is not None and _of_forms(cause):
        if tried := to_try(cause.recompilation, cause.through, cause.rest):
            return tried
    if cause.reached is not None and cause.place is not None:
        return of_library(cause.place, cause.reached, cause.also_reached)
    return reason(cause.ending).hint if cause.ending is not None else ""


def of_torch(cause: Cause) -> bool:
    """Whether what is to be tried is in torch's words, which know the kind of a reason and not the program."""
    said = advice(cause)
    if cause.kind == UNASKED or cause.limit == FAILS or not said:
        return False
    hints = [cause.recompilation.changed.hint] if cause.recompilation and cause.recompilation.changed else []
    return said in (*hints, reason(cause.ending).hint if cause.ending is not None else "")


def to_try(found: Recompilation, through: str = "", rest: bool = False) -> str:
    """What to change so that a code is not compiled again for this, which torch may call ``through`` a function of its
    own; ``""`` where nothing is known. ``rest``: the code is what follows a graph break."""
    failed = found.changed
    if failed is None:
        return ""
    if failed.hint:
        return failed.hint
    if through and failed.source in _WHICH:
        return (
            "torch compiles builtins, partials and its own modules as forms of one function of torch's: compile "
            "functions of your own that call them"
        )
    if ".stride(" in failed.source and ".size(" not in failed.source:
        tensor = failed.source.partition(".stride(")[0]
        return (
            f"give {tensor} one layout each time, as {tensor}.contiguous() before the call does, which copies what has "
            "another one: a layout is a form, whatever sizes may vary"
        )
    if ".size(" in failed.source:
        return _of_sizes(found, failed, rest)
    if any(plain_source(d.source) == failed.source for d in found.dynamic):
        return (
            "the new form takes other values; torch.compile(dynamic=True) makes such a form at the first call"
        )
    if (tried := _of_objects(failed)) is not None:
        return tried
    if failed.source.endswith((".dtype", ".device", ".requires_grad", ".dim()")):
        return "call it with one kind of tensor, or compile one function for each"
    return _of_values(failed)


_TENSOR = re.compile(r"\w+\[[\w, ]*\]$")
"""How a tensor is told: ``float32[4, 3]``."""
_LENGTH = re.compile(r"len\((?P<owner>.*)\)$")
_STATE_OF_OPTIMIZER = re.compile(r"self\.state\b.*\]$")
_KEYS = re.compile(r"list\(dict\.keys\((?P<owner>.*)\)\)\[\d+\]$")


def _of_values(failed: FailedGuard) -> str:
    """What to try where it is a value that changed."""
    if not failed.source or not (failed.old or failed.new):
        return ""
    if length := _LENGTH.match(failed.source):
        owner = length["owner"]
        if failed.old == "0" and _STATE_OF_OPTIMIZER.match(owner):
            return (
                "an optimizer makes its state in its first step: this is one form more, whatever is changed"
            )
        return f"give {owner} one length each time, or compile one function for each"
    if keys := _KEYS.match(failed.source):
        return f"give {keys['owner']} the same keys each time, or compile one function for each"
    values = {failed.old, failed.new}
    if "None" in values and any(_TENSOR.match(value) for value in values):
        return f"give {failed.source} a tensor each time or None each time, or compile one function for each"
    if all(_is_number(value) for value in values if value):
        return (
            f"give {failed.source} few different values, pass it as a tensor, or keep it out of the function"
        )
    return f"give {failed.source} few different values: each is a form; or compile one function for each"


def _is_number(text: str) -> bool:
    try:
        return type(ast.literal_eval(text.removeprefix("at least ").removeprefix("at most "))) in (int, float)
    except (ValueError, SyntaxError):
        return False


def _of_sizes(found: Recompilation, failed: FailedGuard, rest: bool) -> str:
    """What to try where a size changed."""
    line = failed.line or found.asks
    if line is not None:
        return f"{place(line)} asks for the size, so that each answer is a form: decide it outside"
    if {failed.old, *failed.new.split(", ")} & {"0", "1"}:
        alone = (
            "torch has a form of its own for a size of 0 or 1, which marking it as dynamic does not change: give no "
            "such size"
        )
        if rest or ", " in failed.source:
            return alone
        return (
            f"{alone}. Where nothing hangs on the size, or makes it as large as another one (there the call raises), "
            "torch._dynamo.decorators.mark_unbacked(tensor, dim) before the first call makes one form for all"
        )
    if ", " in failed.source:
        return "a form holds for sizes that are so to each other: give always such, or compile one function for each"
    became = any(plain_source(d.source) == failed.source for d in found.dynamic)
    if rest:  # a mark of an argument is not on a tensor that the function made
        return (
            "torch.compile(dynamic=True) makes a form for any size at the first call; to mark an argument does not "
            "help where the function made the tensor"
        )
    if became and failed.old.isdigit():
        return "mark the dimension before the first call: torch._dynamo.mark_dynamic(tensor, dim)"
    return "give few different sizes (pad, or bucket), or mark the dimension as dynamic before the first call"


_WHICH = ("fn", "type(fn)", "fn.__code__")
"""What torch's function through which it calls others has for what it calls."""


def _of_objects(failed: FailedGuard) -> str | None:
    """What to try where it is not a value that changed: a setting of torch's, a class, which object it is."""
    if failed.text.startswith(STATE):
        return f"call it always under one {failed.source}, or compile one function for each"
    if failed.source.startswith("type(") and failed.source.endswith(")"):
        return "call it with one class, or compile one function for each"
    if failed.text.startswith("___check_obj_id("):
        return "give it the same object each time, made once, or compile one function for each"
    if failed.old.startswith((SAME, OTHER)):  # whether a line asks for it or not
        return (
            "torch makes one form for arguments that are one object, and another one for others: give it one for both "
            "each time, or different ones each time (as copies)"
        )
    if {failed.old, failed.new} == {NORMAL, INFERENCE}:
        return (
            "make it under torch.inference_mode each time, or never: a clone() that is made outside of that mode is a "
            "normal tensor"
        )
    if failed.old.startswith(("with the key ", "without ")):
        return ""
    if failed.old in (SET, THERE) or "contains" in failed.text.partition("(")[0]:
        return "give it what holds the same names each time, or compile one function for each"
    return None


def of_library(at: Frame, reached: Frame, more: tuple[Frame, ...] = ()) -> str:
    """What to try where the line is a library's own, which the program called in ``reached``."""
    name = os.path.basename(at.file)
    where = f"{place(reached)}{f' ({reached.text.strip()})' if reached.text.strip() else ''}"
    where += "".join(f", {place(one)}" for one in more[:_OTHERS])
    where += f" and {len(more) - _OTHERS} more" if len(more) > _OTHERS else ""
    said = f"the line is in {name}, not in your program, which came there from {where}"
    if "/torch/optim/" in at.file.replace(os.sep, "/"):
        return (
            f"{said}: torch breaks there on purpose, and compiles the optimizer's step after it by itself. Keep the "
            "call out of the compiled function, or compile it alone"
        )
    return f"{said}: keep that call out of the compiled function, or replace it"


def outcome(visit: Visit) -> str:
    """What became of a visit, in a few words."""
    if in_part(visit):
        return "compiled in part"
    return visit.outcome
