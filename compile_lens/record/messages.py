"""Parser of torch's messages about a compile: names, graph breaks, failed guards, for watched programs and logs."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from . import syntax
from .breaks import BREAK, Ending
from .compilation import DynamicDim
from .graph import Frame

if TYPE_CHECKING:  # a capture reads messages too, and needs no program
    from .program import Break, FailedGuard, GuardOrigin, Specialization

_RESUME = re.compile(r"torch_dynamo_resume_in_(?P<name>.*)_at_(?P<line>\d+)")

CANNOT_RESUME = "Encountered graph break that we cannot resume from"
"""Prefix of Dynamo's reason for a break after which it compiles no more of the function."""

SKIPPED_REST = (
    "Dynamo cannot resume after this graph break: it compiled up to an earlier line and skipped the rest"
)

SECOND_BREAK = "*** While handling this graph break, another graph break occurred: ***"
"""Separator between a break and a second one that arose while Dynamo handled it."""

_HINT = re.compile(r"^\s*Hint: (.*(?:\n(?!\s*(?:Hint|Developer|Explanation|For more)\b).*)*)", re.MULTILINE)
_LINK = re.compile(r"please visit: (https?://\S+)")
_FROM = re.compile(r"\n\s*(?:from user code:|Set TORCHDYNAMO_VERBOSE=1)")


def with_counts(names: Iterable[str]) -> list[str]:
    """Return each name once, with its count if there are several: ``2 × aten.sin``."""
    return [name if n == 1 else f"{n} × {name}" for name, n in Counter(names).items()]


def first_names(items: Iterable[str], most: int = 12) -> str:
    """Return names joined by commas; of more than ``most`` the first ones and a count: ``a, b and 3 more``."""
    every = tuple(items)
    return ", ".join(every[:most]) + (f" and {len(every) - most} more" if len(every) > most else "")


def all_names(items: Iterable[str], most: int = 1_000) -> str:
    """Return names joined by commas and *and*: ``a, b and c``; of more than ``most`` as ``first_names``."""
    every = tuple(items)
    if len(every) > most:
        return first_names(every, most)
    return " and ".join(filter(None, (", ".join(every[:-1]), *every[-1:])))


def plain_name(name: str) -> str:
    """Return the function's name in the program for Dynamo's name of a resume function; any other name unchanged."""
    match = _RESUME.fullmatch(name)
    return plain_name(match["name"]) if match else name


def resume_line(name: str) -> int | None:
    """Return the first line of a resume function from Dynamo's name for it; ``None`` for a whole function."""
    match = _RESUME.fullmatch(name)
    return int(match["line"]) if match else None


def summary(message: str) -> str:
    """Return the first line of an error, with Dynamo's explanation if there is one."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    explained = [line.removeprefix("Explanation: ") for line in lines[1:] if line.startswith("Explanation: ")]
    return ". ".join((lines[:1] + explained)[:2]).replace(":. ", ": ")[:600]


WITHOUT_SKIPPED = "the figures cover what was compiled: skipped code is in none of them (capture.skipped)"
"""Note of a capture with skipped code."""

NO_COMPILATION = "the record has no compilation, and does not say why"

_NOTHING = ("no tensor-related objects", "No ops traced", "no content in function call", "does not say why")


def is_nothing_to_compile(reason: str) -> bool:
    """Return True if torch reports that there was nothing to compile."""
    return any(words in reason for words in _NOTHING)


def without_addresses(text: str) -> str:
    """Return a text without addresses, which differ from run to run and tell a reader nothing."""
    return _AT_ADDRESS.sub(" at 0x…", _ADDRESS.sub(r"\1…", _CHECKED.sub(r"\1…", text)))


def without_object_addresses(text: str) -> str:
    """Return a text in which objects have no address: ``<function f>`` for ``<function f at 0x7f3c…>``."""
    return _AT_ADDRESS.sub("", text)


_CHECKED = re.compile(r"(___check_(?:obj|type)_id\([^,]+, |\.data_ptr\(\) == )\d+")
_AT_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+\b")
_ADDRESS = re.compile(r"(?<![.-])(?<![-=<>%*+/] )\b(\w*_)?(\d{12,16})(_c\d+)?\b(?!\.\d| [=<>!])")
"""An object id, but not the digits of a number of the program: ``2.0359170436859131``, ``n == 1099511627776``."""


def ending(text: str, frames: tuple[Frame, ...], kind: str = BREAK) -> Ending:
    """Return the ending from torch's message: the break itself, not an error raised while handling it."""
    text = _FROM.split(text, maxsplit=1)[0].strip().partition(SECOND_BREAK)[0].strip()
    text = text.replace("compile_lens_backend", "inductor")  # the name that a program sees
    hints = (" ".join(hint_text.split()) for hint_text in _HINT.findall(text))
    link = _LINK.search(text)
    return Ending(kind, text, frames, "\n".join(h for h in hints if h), link[1] if link else "")


def break_number(link: str) -> str:
    """Return torch's id of a kind of graph break (``GB0025``) from the link to its page; ``""`` if it has none."""
    number = re.search(r"/(gb\d+)\.html", link)
    return number[1].upper() if number else ""


def limit_type(message: str) -> str:
    """Return the recompile limit named in an error of Dynamo; ``""`` if there is none."""
    limit = _LIMIT.search(message)
    return limit[1] if limit else ""


_LIMIT = re.compile(r"recompile limit exceeded[\s\S]*Limit type: (\w+)")


def consequence(text: str) -> str:
    """Return a summary of the second break in a message, which arose while handling the first; ``""`` if none."""
    text = _FROM.split(text, maxsplit=1)[0]
    return summary(text.rpartition(SECOND_BREAK)[2]) if SECOND_BREAK in text else ""


def graph_break(reason: str, found: Ending, type: str, identity: str, consequence_text: str) -> Break:
    """Return a graph break from Dynamo's logged ``reason`` and its further text on the consequence."""
    from .program import FUNCTION_RUNS_EAGERLY, REST_RUNS_EAGERLY, RESUMED, Break

    then = RESUMED
    if reason.startswith(CANNOT_RESUME):
        then = REST_RUNS_EAGERLY
    elif reason.startswith("Failed to handle"):
        then = FUNCTION_RUNS_EAGERLY
    after = {
        RESUMED: "",
        REST_RUNS_EAGERLY: SKIPPED_REST,
        FUNCTION_RUNS_EAGERLY: consequence_text or summary(reason),
    }
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
"""Torch's own files as guards name them: without the folder of torch."""
_NOT_USER_CODE = "the guard itself is not due user code"
"""Torch's remark on a line that is only the first use of a value, not the cause of the guard."""
_MAX_CHARACTERS = 80
"""Longest text of a value."""


_NUMBER = re.compile(r"___as_tensor\((?P<source>[^()]+)\)\.item\(\)")


def plain_numbers(text: str) -> str:
    """Return a guard with the program's names of numbers, which torch 2.11 wraps in ``___as_tensor().item()``."""
    return _NUMBER.sub(r"\g<source>", text)


def with_place(guard: str) -> tuple[str, Frame | None]:
    """Return a guard without torch's comment on its line, and that line; a string in the guard may look like one."""
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
    if _NOT_USER_CODE in guard[where.start() :]:
        return guard[: where.start()].strip(), None
    at = where.groupdict()
    function, text = plain_name(at["function"]), (at.get("text") or "").strip()
    of_torch = _OF_TORCH.match(at["file"]) is not None
    frame = Frame(at["file"], int(at["line"]), function, text, of_torch=of_torch)
    return guard[: where.start()].strip(), frame


def parse_expression(guard: str) -> ast.expr | None:
    """Return the expression of a guard, ``None`` if it is not an expression."""
    try:
        return syntax.parse(guard.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def without_stack_names(text: str) -> str:
    """Return a text with torch's names of stack values in resume functions (``___stack0``) described in words."""
    return _STACK.sub(lambda m: f"(value {int(m[1]) + 1} from before the break)", text)


def in_program_words(text: str, free_variables: Iterable[tuple[str, str]] = ()) -> str:
    """Return a text with torch's expressions as the program writes them: ``m.fc.weight`` for a parameter, ``free
    variable k of f`` for the content of a closure. ``free_variables`` are names by expression."""
    for expression, name in free_variables:
        text = text.replace(expression, f"free variable {name} of {expression.partition('.__closure__[')[0]}")
    text = _MEMBER.sub(_member, text)
    text = _CELL.sub(lambda match: f"free variable {int(match['number']) + 1} of {match['owner']}", text)
    return without_stack_names(_CODE.sub(r"the code of \1", text))


_MEMBER = re.compile(r"\._(?:parameters|buffers|modules)\['(?P<name>[^']*)'\]")
_CELL = re.compile(r"(?P<owner>\w[\w.]*)\.__closure__\[(?P<number>\d+)\]\.cell_contents")
"""Torch's expression of a free variable."""
_CODE = re.compile(r"\b(\w[\w.]*)\.__code__\b")


def free_variables(source: str, now: Callable[[str], str]) -> tuple[tuple[str, str], ...]:
    """Return each free variable in a source with its name, which the function's code has; ``now`` reads values."""
    cells = {
        cell[0]: now(f"{cell['owner']}.__code__.co_freevars[{cell['number']}]")
        for cell in _CELL.finditer(source)
    }
    return tuple((expression, name.strip("'")) for expression, name in cells.items() if name)


def _member(match: re.Match[str]) -> str:
    name = match["name"]
    return f".{name}" if name.isidentifier() else f"[{name if name.isdecimal() else repr(name)}]"


_STACK = re.compile(r"\b___stack(\d+)\b")


def plain_source(source: str) -> str:
    """Return a source as Python: ``L['x']`` gives ``x``, ``L['self'].n`` gives ``self.n``, ``L['x'].size()[0]`` gives
    ``x.size(0)``, and an attribute of the class of ``x`` gives ``type(x).n``."""
    named = re.sub(r"\b[LG]\['(\w+)'\]", r"\1", source)
    named = _OF_NUMPY.sub(r"\1", named)
    named = re.sub(r"\bdict\((type\([\w.]+\))\.__dict__\)\['(\w+)'\]", r"\1.\2", named)
    return plain_sizes(named)


_OF_NUMPY = re.compile(r"___from_numpy\(((?:[^()]|\([^()]*\))*)\)")
"""The tensor that torch makes of an array of numpy."""


def plain_sizes(source: str) -> str:
    """Return ``L['x'].size(0)`` for ``L['x'].size()[0]``."""
    return re.sub(r"\.(size|stride)\(\)\[(\d+)\]", r".\1(\2)", source)


def clip(text: str) -> str:
    """Return a text cut to its longest length."""
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


OF_SEVERAL = "Duplicate tensors found"
"""Prefix of torch's failed check that several tensors are distinct objects."""


def with_guard_line(
    failed: FailedGuard, origins: tuple[GuardOrigin, ...], specialized: tuple[Specialization, ...] = ()
) -> FailedGuard:
    """Return a failed guard with its line from the older variant's records: its guards, or the specialization of a
    symbol. Torch's own sentence truncates file names."""
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
    """Return the line that makes the new variant, with these guards, reject the older one's value: torch would compile
    two variants even with symbols."""
    for one in specialized:
        if one.source == failed.source and one.line is not None:
            return one.line
    symbols = {d.symbol for d in dynamic if plain_source(d.source) == failed.source}
    try:
        old = syntax.literal(failed.old)
    except (ValueError, SyntaxError):
        return None
    if len(symbols) != 1 or type(old) not in (int, float):
        return None
    (symbol,) = symbols
    for guard in origins:
        if guard.line is not None and _holds(guard.text, symbol, old) is False:
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


def _holds(guard: str, symbol: str, value: float) -> bool | None:
    """Return whether a guard on numbers holds for a value of a symbol; None if it depends on more than that."""
    tree = parse_expression(guard)
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id in _RELATIONS:
        left, *others = tree.args
        tree = ast.Compare(left, [_RELATIONS[tree.func.id]()], others)
    if not isinstance(tree, ast.Compare):
        return None
    return comparison_holds(_Substitution(symbol, value).visit(tree))


def comparison_holds(tree: ast.expr) -> bool | None:
    """Return whether a comparison of numbers holds; None if it is not one."""
    whole = ast.Expression(tree)
    if not isinstance(tree, ast.Compare) or not all(
        isinstance(node, _PLAIN_SUMS) for node in ast.walk(whole)
    ):
        return None
    try:
        return bool(eval(compile(ast.fix_missing_locations(whole), "<guard>", "eval"), {}))
    except (ArithmeticError, ValueError, TypeError):
        return None


class _Substitution(ast.NodeTransformer):
    """Replacement of a symbol by its value in an expression."""

    def __init__(self, symbol: str, value: float) -> None:
        self._symbol, self._value = symbol, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._value) if node.id == self._symbol else node


def failure_lines(message: str) -> list[str]:
    """Return torch's sentences on failed guards from an error that lists them."""
    _, _, text_of_guards = message.partition("triggered by the following guard failure(s):\n")
    return [
        text.strip()
        for text in re.split(r"^\s*- (?=\S*\d+/\d+: )", text_of_guards, flags=re.MULTILINE)
        if text.strip()
    ]
