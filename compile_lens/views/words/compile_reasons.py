"""Reasons for compilations and recompiles in a few words: ``scale 2.0 → 3.0``, ``size of x 8 → 4``.

If the record lacks one of the two values, the compiler's own sentence is used.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable
from dataclasses import dataclass

from compile_lens.record import syntax
from compile_lens.record.breaks import BREAK, Ending
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame
from compile_lens.record.guard_values import DTYPES
from compile_lens.record.messages import in_program_words

CALLED = "called"


@dataclass(frozen=True)
class CompileReason:
    """The reason for a compilation.

    Attributes:
        short: in a few words.
        whole: the compiler's own sentences, one per line; ``""`` if there are none.
        again: True for a recompile: the function was compiled before, and none of its variants fitted.
    """

    short: str
    whole: str = ""
    again: bool = False


def compile_reason(capture: Record, number: int) -> CompileReason:
    """Return the reason for the compilation of this number (from 0), with the call if there are several."""
    why, id = _why(capture, number), capture.compilations[number].id
    call = next((i for i, call in enumerate(capture.calls, 1) if id in call.compiled), 0)
    return dataclasses.replace(why, short=f"call {call}: {why.short}") if call else why


def _why(capture: Record, number: int) -> CompileReason:
    compilation = capture.compilations[number]
    reasons = compilation.recompile_reasons
    if reasons:
        return CompileReason(change(reasons[0], compilation), "\n".join(reasons), True)
    rest = _RESUME.fullmatch(compilation.function)
    if rest:
        return CompileReason(_continues(capture, number, rest[1], int(rest[2])))
    return CompileReason(_called(capture, number))


def change(reason: str, compilation: Compilation) -> str:
    """Return a compiler's reason in short: what differs, the old value, and the value that ``compilation`` is for.
    ``"1/0: tensor 'x' size mismatch at index 0. expected 8, actual 4"`` gives ``"size of x 8 → 4"``.
    """
    text = _ID.sub("", reason.strip())
    for pattern, form in _TENSOR:
        match = pattern.fullmatch(text)
        if match:
            before, after = match["before"], match["after"]
            name = in_program_words(_plain(match["name"]))
            return f"{form.format(name)} {DTYPES.get(before, before)} → {DTYPES.get(after, after)}"
    wanted = _GRADIENT.fullmatch(text)
    if wanted:
        before, after = ("True", "False") if wanted["before"] == "1" else ("False", "True")
        return f"requires_grad of {in_program_words(_plain(wanted['name']))} {before} → {after}"
    condition = text.partition(" # ")[0]
    left, equals, right = _plain(condition).partition(" == ")
    if equals and _literal(right):
        now = _now(left, compilation)
        if now and now != right:
            every = (
                _any(left, compilation) if any(_plain(d.source) == left for d in compilation.dynamic) else ""
            )
            taken = f", for {every}" if every and every != now else ""
            return in_program_words(f"{_readable(left)} {right} → {now}{taken}")
    return f"guard failed: {in_program_words(_plain(condition))}" if equals else condition


def recompile_remedy(compilation: Compilation) -> str:
    """Return the key of the remedy for a recompile: ``"mark"`` the dimension, no ``"small"`` size, a symbol for a
    ``"number"``, one ``"kind"`` of tensor; ``""`` if unknown, or if several are needed."""
    remedies = {_remedy(_ID.sub("", reason.strip()), compilation) for reason in compilation.recompile_reasons}
    return remedies.pop() if len(remedies) == 1 else ""


def _remedy(text: str, compilation: Compilation) -> str:
    symbols = {_plain(dim.source): dim for dim in compilation.dynamic}
    if size := _SIZES.fullmatch(text):
        if {size["before"], size["after"]} & {"0", "1"}:
            return "small"
        marked = f"{_plain(size['name'])}.size({size['index']})" in symbols
        # A resume function may receive a tensor that no caller can mark.
        return "mark" if marked and not _RESUME.fullmatch(compilation.function) else ""
    if _KINDS.match(text):
        return "kind"
    left, equals, right = _plain(text.partition(" # ")[0].strip()).partition(" == ")
    symbol = symbols.get(left)
    if not equals or symbol is None or symbol.is_dimension or not _literal(right):
        return ""
    now = symbol.observed
    same = _literal(now) and type(syntax.literal(now)) is type(syntax.literal(right))
    return "number" if same and "0" not in (now, right) and "1" not in (now, right) else ""


def _now(left: str, compilation: Compilation) -> str:
    """Return the value that a compilation is for, by its guards or observed sizes, or the type if it takes any value of
    it; ``""`` if unknown."""
    for guard in compilation.guards:
        for condition in guard.text.split(" and "):
            one, equals, value = _plain(condition.strip()).partition(" == ")
            if equals and one == left and _literal(value):
                return value
    source = _INDEX.sub(r".size(\1)", left)
    seen = (d.observed for d in compilation.dynamic if _plain(d.source) == source and d.observed)
    return next(seen, "") or _any(left, compilation)


def _any(left: str, compilation: Compilation) -> str:
    """Return the type if the guards only check that; ``""`` otherwise."""
    conditions = [_plain(part.strip()) for guard in compilation.guards for part in guard.text.split(" and ")]
    own = {part for part in conditions if re.search(rf"(?<![\w.'\"]){re.escape(left)}(?!\w)", part)}
    number = f"not math.isnan({left})"
    types = {
        match[1]
        for part in own - {number}
        if (match := _TYPE.fullmatch(part)) and part.startswith(f"___check_type_id({left},")
    }
    if len(types) != 1 or len(own - {number}) != 1:
        return ""
    return f"any {types.pop()}{' but nan' if number in own else ''}"


def _called(capture: Record, number: int) -> str:
    """Return ``called in line 7`` for a function that was inlined until the graph broke in it; Python calls it after
    the break."""
    if number == 0:
        return CALLED
    before, own = capture.compilations[number - 1], capture.compilations[number]
    frames = before.ending.frames if before.ending and before.ending.kind == BREAK else ()
    if len(frames) > 1 and (frames[1].file, frames[1].function) == (own.file, own.function):
        return f"called in line {frames[0].line}"
    return CALLED


def _continues(capture: Record, number: int, function: str, line: int) -> str:
    """Return after which break or call a resume function continues. Several breaks in one line are distinguished by
    their calls. Torch names only the line, but each resume code continues a single break, so breaks that another code
    continues are excluded."""
    here = _breaks(capture.compilations[:number], function, line)
    if not here:
        return "continues after a break"
    words = "continues after the call" if len(here[0]) > 1 else "continues after the break"
    if len(_breaks(capture.compilations, function, line)) == 1:
        return words
    codes: dict[str, int] = {}
    for at, one in enumerate(capture.compilations[: number + 1]):
        if one.function == capture.compilations[number].function:
            codes.setdefault(one.id.partition("/")[0], at)
    # Unless each continued the one remaining break, it cannot be determined.
    if any(
        len(_breaks(capture.compilations[:at], function, line)) != i for i, at in enumerate(codes.values(), 1)
    ):
        return words
    own = here[list(codes).index(capture.compilations[number].id.partition("/")[0])][0]
    return f"{words} at {own.within}" if own.within != str(line) else words


def _breaks(compilations: Iterable[Compilation], function: str, line: int) -> list[tuple[Frame, ...]]:
    """Return the stacks of the breaks in a line of a function, the first for each call in the line."""
    stacks: dict[tuple[int | None, int | None], tuple[Frame, ...]] = {}
    for one in compilations:
        frames = one.ending.frames if one.ending and one.ending.kind == BREAK else ()
        if frames and (frames[0].function, frames[0].line) == (function, line):
            stacks.setdefault((frames[0].column, frames[0].end_column), frames)
    return list(stacks.values())


def after(capture: Record, ending: Ending) -> int:
    """Return the number (from 0) of the compilation that continues after a break, or else of the one that broke; -1
    without either."""
    top = ending.frames[0] if ending.frames else None
    for number, one in enumerate(capture.compilations):
        rest = _RESUME.fullmatch(one.function)
        if rest and top and (one.file, rest[1], int(rest[2])) == (top.file, top.function, top.line):
            return number
    return next((i for i, one in enumerate(capture.compilations) if one.ending == ending), -1)


def _plain(text: str) -> str:
    """Return torch's names of values as in the program: ``L['x'].size()[0]`` gives ``x.size()[0]``."""
    return _NAMED.sub(r"\1", text)


def _readable(left: str) -> str:
    size = _SIZE.fullmatch(left)
    return f"size of {size[1]}" if size else left


def _literal(text: str) -> bool:
    try:
        syntax.literal(text)
    except (ValueError, SyntaxError):
        return False
    return True


_RESUME = re.compile(r"torch_dynamo_resume_in_(.*)_at_(\d+)", re.DOTALL)
_ID = re.compile(r"^[\d/.]+: ")
_NAMED = re.compile(r"\b[LG]\['(\w+)'\]")
_TYPE = re.compile(r"___check_type_id\(.*\), type=<class '(\w+)'>")
_SIZE = re.compile(r"(.+)\.size\(\)\[\d+\]")
_INDEX = re.compile(r"\.size\(\)\[(\d+)\]$")
_TENSOR = tuple(
    (re.compile(rf"tensor '(?P<name>.+)' {what}\. expected (?P<before>\S+), actual (?P<after>\S+)"), form)
    for what, form in (
        ("dtype mismatch", "{}"),
        (r"size mismatch at index \d+", "size of {}"),
        (r"stride mismatch at index \d+", "stride of {}"),
        ("rank mismatch", "dimensions of {}"),
    )
)
_GRADIENT = re.compile(
    r"tensor '(?P<name>.+)' requires_grad mismatch\. expected requires_grad=(?P<before>[01])"
)
_SIZES = re.compile(
    r"tensor '(?P<name>.+)' size mismatch at index (?P<index>\d+)\. expected (?P<before>\d+), actual (?P<after>\d+)"
)
_KINDS = re.compile(r"tensor '.+' (?:dtype|rank|requires_grad) mismatch\. ")
