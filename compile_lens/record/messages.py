"""Reader of torch's messages about a compile: names, graph breaks, guards that failed. It serves a watched program and
a log alike."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from . import syntax
from .breaks import BREAK, Ending
from .compilation import DynamicDim
from .graph import Frame

if TYPE_CHECKING:  # a capture reads messages too, and needs no program
    from .program import Break, FailedGuard, GuardOrigin, Specialization

_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<name>.*)_at_(?P<line>\d+)")

CANNOT_RESUME = "Encountered graph break that we cannot resume from"
"""Prefix of the reason that Dynamo logs for a break after which it compiles nothing more of the function."""

SKIPPED_REST = (
    "Dynamo cannot resume after this graph break: it compiled up to an earlier line and skipped the rest"
)

SECOND_BREAK = "*** While handling this graph break, another graph break occurred: ***"
"""Between the break itself and what Dynamo could not do about it."""

_HINT = re.compile(r"^\s*Hint: (.*(?:\n(?!\s*(?:Hint|Developer|Explanation|For more)\b).*)*)", re.MULTILINE)
_LINK = re.compile(r"please visit: (https?://\S+)")
_FROM = re.compile(r"\n\s*(?:from user code:|Set TORCHDYNAMO_VERBOSE=1)")


def with_counts(names: Iterable[str]) -> list[str]:
    """Each name once, with its count if there are several: ``2 × aten.sin``."""
    return [name if n == 1 else f"{n} × {name}" for name, n in Counter(names).items()]


def first_names(items: Iterable[str], most: int = 12) -> str:
    """Names joined by commas; at most ``most``, then how many more: ``a, b and 3 more``."""
    every = tuple(items)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def all_names(items: Iterable[str], most: int = 1_000) -> str:
    """Names joined by commas and an *and*: ``a, b and c``; of more than ``most`` the first ones."""
    every = tuple(items)
    if len(every) > most:
        return first_names(every, most)
    return " and ".join(filter(None, (", ".join(every[:-1]), *every[-1:])))


def plain_name(name: str) -> str:
    """The name that a function has in the program, where this is what Dynamo calls the rest of it."""
    match = _RESUME.fullmatch(name)
    return plain_name(match["name"]) if match else name


def resume_line(name: str) -> int | None:
    """The line where the rest of a function begins, by the name that Dynamo gives it; ``None`` for a function."""
    match = _RESUME.fullmatch(name)
    return int(match["line"]) if match else None


def summary(message: str) -> str:
    """The first line of an error, and Dynamo's explanation of it where it gives one."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    explained = [line.removeprefix("Explanation: ") for line in lines[1:] if line.startswith("Explanation: ")]
    return ". ".join((lines[:1] + explained)[:2]).replace(":. ", ": ")[:600]


WITHOUT_SKIPPED = (
    "the figures are of what was compiled: what was skipped is in none of them (capture.skipped)"
)
"""Note of a capture with code that was skipped."""

NO_COMPILATION = "the record has no compilation, and does not say why"

_NOTHING = ("no tensor-related objects", "No ops traced", "no content in function call", "does not say why")


def is_nothing_to_compile(reason: str) -> bool:
    """Return True if torch reports that there was nothing to compile."""
    return any(words in reason for words in _NOTHING)


def without_addresses(text: str) -> str:
    """Addresses differ from run to run and say nothing to a reader."""
    return _AT.sub(" at 0x…", _ADDRESS.sub(r"\1…", _CHECKED.sub(r"\1…", text)))


_CHECKED = re.compile(r"(___check_(?:obj|type)_id\([^,]+, )\d+")
_AT = re.compile(r" at 0x[0-9a-f]+\b")
_ADDRESS = re.compile(r"(?<!\.)\b(\w*_)?(\d{12,16})(_c\d+)?\b(?!\.\d)")
"""Not the digits of a number of the program: ``2.0359170436859131``."""


def ending(text: str, frames: tuple[Frame, ...], kind: str = BREAK) -> Ending:
    """Return the end of compiled code, from torch's message: the break itself, not an error met while handling it."""
    text = _FROM.split(text, maxsplit=1)[0].strip().partition(SECOND_BREAK)[0].strip()
    text = text.replace("compile_lens_backend", "inductor")  # the name that a program sees
    hints = (" ".join(hint_text.split()) for hint_text in _HINT.findall(text))
    link = _LINK.search(text)
    return Ending(kind, text, frames, "\n".join(h for h in hints if h), link[1] if link else "")


def break_number(link: str) -> str:
    """Return torch's number of a kind of graph break (``GB0025``) from its page about it; ``""`` if it has none."""
    number = re.search(r"/(gb\d+)\.html", link)
    return number[1].upper() if number else ""


def limit_type(message: str) -> str:
    """Return the recompile limit that an error of Dynamo's is about; ``""`` if it is about none."""
    limit = _LIMIT.search(message)
    return limit[1] if limit else ""


_LIMIT = re.compile(r"recompile limit exceeded[\s\S]*Limit type: (\w+)")


def consequence(text: str) -> str:
    """Return what Dynamo could not do about a break, in a sentence; ``""`` if the message has nothing more."""
    text = _FROM.split(text, maxsplit=1)[0]
    return summary(text.rpartition(SECOND_BREAK)[2]) if SECOND_BREAK in text else ""


def graph_break(reason: str, found: Ending, type: str, identity: str, told: str) -> Break:
    """A graph break from the ``reason`` that Dynamo logs for it, and what else it told of the consequence."""
    from .program import FUNCTION_RUNS_EAGERLY, REST_RUNS_EAGERLY, RESUMED, Break

    then = RESUMED
    if reason.startswith(CANNOT_RESUME):
        then = REST_RUNS_EAGERLY
    elif reason.startswith("Failed to handle"):
        then = FUNCTION_RUNS_EAGERLY
    after = {RESUMED: "", REST_RUNS_EAGERLY: SKIPPED_REST, FUNCTION_RUNS_EAGERLY: told or summary(reason)}
    return Break(found, type, identity, then, after[then])


_WHERE = re.compile(
    r"  # (?P<text>.*)  # (?P<file>[^\s(][^()]*):(?P<line>\d+) in (?P<function>[^\s(]+)(?: \(.*\))?\s*$",
    re.DOTALL,
)
_PLACE = re.compile(r"  # (?:.* )?\(?(?P<file>\S+):(?P<line>\d+) in (?P<function>\S+?)\)?\s*$")
_OF_TORCH = re.compile(
    r"_(?:decomp|dynamo|functorch|higher_order_ops|inductor|library|prims|prims_common|refs|subclasses)[/\\]"
    r"|_(?:meta_registrations|ops|tensor|utils|jit_internal)\.py$"
    r"|fx[/\\](?:experimental|passes)[/\\]|nn[/\\](?:attention|modules|parallel|utils)[/\\]|nn[/\\](?:functional|init)\.py$"
)
"""Files of torch's own, as it names them in a guard: without the folder of torch."""
_NOT_DUE = "the guard itself is not due user code"
"""Torch's remark on a line that uses a value first, and that no guard comes from."""
_ROOM = 80
"""Characters of a value that is told."""


_NUMBER = re.compile(r"___as_tensor\((?P<source>[^()]+)\)\.item\(\)")


def plain_numbers(text: str) -> str:
    """Return a guard's text with a number of the program as the program has it: torch 2.11 asks for its value."""
    return _NUMBER.sub(r"\g<source>", text)


def with_place(guard: str) -> tuple[str, Frame | None]:
    """A guard without torch's comment on its line, and that line; a text in the guard may look like one."""
    where = None
    starts = [m.start() for m in re.finditer("  # ", guard)]
    for start in starts:
        if parse_expression(guard[:start]) is not None:
            where = _WHERE.match(guard, start) or _PLACE.match(guard, start)
            break
    else:
        where = _WHERE.search(guard) or _PLACE.search(guard)
    if where is None:
        return guard, None
    if _NOT_DUE in guard[where.start() :]:
        return guard[: where.start()].strip(), None
    at = where.groupdict()
    function, text = plain_name(at["function"]), (at.get("text") or "").strip()
    of_torch = _OF_TORCH.match(at["file"]) is not None
    frame = Frame(at["file"], int(at["line"]), function, text, of_torch=of_torch)
    return guard[: where.start()].strip(), frame


def parse_expression(guard: str) -> ast.expr | None:
    """The expression of a guard, ``None`` where it is none."""
    try:
        return syntax.parse(guard.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def without_stack_names(text: str) -> str:
    """A text in which what a resume function takes over from Python's stack has no name of torch's: ``___stack0``."""
    return _STACK.sub(lambda m: f"(value {int(m[1]) + 1} from before the break)", text)


_STACK = re.compile(r"\b___stack(\d+)\b")


def plain_source(source: str) -> str:
    """``L['x']`` as ``x``, ``L['self'].n`` as ``self.n``, ``L['x'].size()[0]`` as ``x.size(0)``, what the class
    of ``x`` holds as ``type(x).n``."""
    named = re.sub(r"\b[LG]\['(\w+)'\]", r"\1", source)
    named = re.sub(r"\bdict\((type\([\w.]+\))\.__dict__\)\['(\w+)'\]", r"\1.\2", named)
    return plain_sizes(named)


def plain_sizes(source: str) -> str:
    """``L['x'].size()[0]`` as ``L['x'].size(0)``."""
    return re.sub(r"\.(size|stride)\(\)\[(\d+)\]", r".\1(\2)", source)


def clip(text: str) -> str:
    """A value in the room that it has."""
    return text if len(text) <= _ROOM else text[: _ROOM - 1] + "…"


OF_SEVERAL = "Duplicate tensors found"
"""Prefix of torch's check, for several tensors, that no two are the same one."""


def with_guard_line(
    failed: FailedGuard, origins: tuple[GuardOrigin, ...], specialized: tuple[Specialization, ...] = ()
) -> FailedGuard:
    """A failed guard with the line that made it, as the older form says it: by its guards, or where it made a symbol
    one value. Torch's own sentence cuts the names of files."""
    lines = [(o, o.line) for o in origins if o.line is not None]
    text = plain_source(failed.text)
    same = [line for o, line in lines if text in map(plain_source, (o.text, *o.text.split(" and ")))]
    of_one = failed.source and not failed.text.startswith(OF_SEVERAL)
    about = [line for o, line in lines if of_one and plain_source(o.source) == failed.source]
    fixed = [
        s.line
        for s in specialized
        if s.line is not None and (s.source, s.value) == (failed.source, failed.old)
    ]
    reported_line = failed.line
    whole = [
        line
        for _, line in lines
        if reported_line and line.line == reported_line.line and line.file.endswith(reported_line.file)
    ]
    line = next((of for of in (same, whole, about, fixed) if len(set(of)) == 1), whole or (reported_line,))[0]
    return dataclasses.replace(failed, line=line)


def specializing_line(
    failed: FailedGuard,
    dynamic: tuple[DynamicDim, ...],
    origins: tuple[GuardOrigin, ...],
    specialized: tuple[Specialization, ...] = (),
) -> Frame | None:
    """The line of the program for which the new form, with these guards, does not take what the older one was made
    for: torch would make two forms of them whatever is a symbol."""
    for one in specialized:
        if one.source == failed.source and one.line is not None:
            return one.line
    symbols = {d.symbol for d in dynamic if plain_source(d.source) == failed.source}
    if len(symbols) != 1 or not failed.old.isdigit():
        return None
    (symbol,) = symbols
    for guard in origins:
        if guard.line is not None and _holds(guard.text, symbol, int(failed.old)) is False:
            return guard.line
    return None


_RELATIONS: dict[str, type[ast.cmpop]] = {"Ne": ast.NotEq, "Eq": ast.Eq}
_PLAIN_SUMS = (
    ast.Expression,
    ast.Compare,
    ast.cmpop,
    ast.BinOp,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.Mod,
    ast.FloorDiv,
    ast.UnaryOp,
    ast.USub,
    ast.Constant,
)


def _holds(guard: str, symbol: str, value: int) -> bool | None:
    """Return whether a guard between sizes holds for a value of a symbol; None where it depends on more than that."""
    tree = parse_expression(guard)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _RELATIONS:
        left, *others = tree.args
        tree = ast.Compare(left, [_RELATIONS[tree.func.id]()], others)
    if not isinstance(tree, ast.Compare):
        return None
    return comparison_holds(_Put(symbol, value).visit(tree))


def comparison_holds(tree: ast.expr) -> bool | None:
    """Return whether a comparison of numbers holds; None where it is no such comparison."""
    whole = ast.Expression(tree)
    if not isinstance(tree, ast.Compare) or not all(
        isinstance(node, _PLAIN_SUMS) for node in ast.walk(whole)
    ):
        return None
    try:
        return bool(eval(compile(ast.fix_missing_locations(whole), "<guard>", "eval"), {}))
    except (ArithmeticError, ValueError, TypeError):
        return None


class _Put(ast.NodeTransformer):
    """A value in the place of a symbol."""

    def __init__(self, symbol: str, value: int) -> None:
        self._symbol, self._value = symbol, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._value) if node.id == self._symbol else node
