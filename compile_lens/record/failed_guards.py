"""Parser of torch's sentences on failed guards: the guarded value, its compiled value and its current one."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Mapping

from . import syntax
from .dimension_marks import is_of_marks
from .graph import Frame
from .guard_values import DTYPES
from .messages import (
    clip,
    free_variables,
    parse_expression,
    plain_numbers,
    plain_source,
    with_place,
    without_addresses,
)
from .program import FailedGuard

Now = Callable[[str], str]
"""Function that returns the current value of an expression, in words; ``""`` if it cannot be read."""

STATE = "GLOBAL_STATE changed: "
"""Prefix of torch's message that a setting of the process or thread has changed."""

SAME, OTHER = "the same object as ", "another object than "
ABSENT, SET = "not set on it", "set on it"
THERE, GONE = "there", "not there"

_HEAD = re.compile(r"(?:Cache|\[?)*(?P<id>(?:!\d+/)?\d+/\d+(?:_\d+)?)\]?: (?P<rest>.*)", re.DOTALL)
_HINT = re.compile(r" \(HINT: (?P<hint>(?:(?! \(HINT: ).)*)\)$", re.DOTALL)
_CLOSURE_HINT = re.compile(r'guard on "[^"]*"[^,\s]*(?:, |$)')
_TYPE_HINT = re.compile(r"type (?P<type>\S+)$")
_DUCK = re.compile(r"  # duck sizing added this equality because .*? \(to (?P<hint>.*)\)$", re.DOTALL)
_ZERO_ONE_COMMENT = "due to 0/1 specialization in the framework"
"""Torch's comment on a guard that no line of the program caused."""
_DYNAMO = re.compile(r"(?:.*torch[/\\])?_dynamo[/\\]")
"""Torch's own files, named for guards that it makes for itself."""
_BOUNDS = re.compile(
    r"(?P<guard>.*?)  # (?P<lower>.*?:\d+ in \S+(?: \(.*?\)\)?)?) and (?P<upper>.*:\d+ in \S+(?: \(.*\))?)$",
    re.DOTALL,
)
"""A range guard with a line for each of its two ends."""
_TENSOR = re.compile(
    r"tensor '(?P<source>.+?)' (?P<what>.*?)\. expected (?P<old>.+?)(?:, actual (?P<new>.+?))?(?:\. |$)",
    re.DOTALL,
)
_KEYS = re.compile(r"DispatchKeySet\((?P<keys>.*)\)$")
"""Dispatch key set of a tensor, which decides its operators' implementations."""
NORMAL, INFERENCE = "a normal tensor", "one made under torch.inference_mode"
_TENSOR_TYPE = re.compile(
    r"expected type of '(?P<source>.+)' to be (?:a tensor type|(?P<old><class '.+?'>)),\s*'? ?but found (?P<new>.*)$",
    re.DOTALL,
)
_CHECKED = re.compile(
    r"___check_(?P<what>type|obj)_id\((?P<source>.+), [^,()]+\)(?:, type=(?P<type>.+))?$", re.DOTALL
)
_CLASS = re.compile(r"<(?:class|enum) '(?P<name>.+)'>$")
_BACKENDS = re.compile(
    r"BACKEND_MATCH failure: .*?Cached backend: (?P<old>.*?)\. New backend: (?P<new>.*?)\. (?P<hint>If .*)"
)
_MISSING = re.compile(r"(?:KeyError|IndexError) on (?P<source>.+)$")
_NO_ATTRIBUTE = re.compile(r"getattr failed on source (?P<source>.+)$")
_NO_FUNCTION = re.compile(r"(?:\w+: )?Not a function on (?P<source>.+)\.__\w+__$")
"""Torch's message if a guard expects a Python function and finds another callable."""
_DICT_TYPE = re.compile(r"TYPE_MISMATCH\((?P<source>.+)\)$")
"""Torch's message if a guard expects another class of dictionary."""
_NAN = re.compile(
    r"\(type\((?P<source>.+)\) is (?:float|complex) and __\w+_isnan\(.+\)\)$"
    r"|not math\.isnan\((?P<number>.+?)\)(?:  # .*)?$"
)
"""Torch's guards on a number that is nan, and on one that is not."""
_MODE_STACK = "___check_torch_function_mode_stack()"
MODES = "the torch function modes around the call"
_CURRENT_DEVICE = "utils_device.CURRENT_DEVICE"
DEFAULT_DEVICE = "the default device"
FUNCTION, NO_FUNCTION = "a Python function", "no Python function"
_DUPLICATES = re.compile(r"Duplicate tensors found: (?P<groups>\[.*\])$", re.DOTALL)
_DELETED = re.compile(r"Cache line invalidated because (?P<source>.+) got deallocated$")
DELETED = "an object that is deleted now"
_LENGTH = re.compile(r"len\((?P<source>.+)\) != (?P<old>\d+)$")
_ABSENT = re.compile(r"not ___dict_contains\('(?P<name>\w+)', (?P<owner>.+)\.__dict__\)$")
"""Guard on a name that is looked up on the class because the object has no such attribute."""
_NO_LINE = re.compile(r"  # \(unknown (?:source|var) .*, please file a bug\)$", re.DOTALL)
"""Comment of torch 2.11 on a guard on a number of the program, in place of a line."""
_ADDRESS = re.compile(r" ?(?:\(id=0x[0-9a-f]+\)|at 0x[0-9a-f]+)")


def failed_guard(text: str, now: Now, setting: Now = lambda _: "") -> FailedGuard:
    """Return a failed guard, parsed from torch's sentence; ``now`` gives the current value of a source, ``setting``
    that of a torch setting (``grad_mode``)."""
    head = _HEAD.match(text)
    id, rest = (head["id"], head["rest"]) if head else ("", text)
    rest = rest.partition("\nUser stack trace:")[0].strip()
    rest = plain_numbers(_NO_LINE.sub("", rest))
    rest, hint, type_ = _hinted(rest)
    rest, line = _placed(rest, now)
    rest = without_addresses(rest)
    if rest.startswith(STATE):
        source, old, new = _state(rest, setting)
    elif rest == _MODE_STACK:
        source, old, new = MODES, "", setting(MODES)
    else:
        source, old, new = _subject_and_values(rest, type_, now)
        if source == _CURRENT_DEVICE:
            source, new = DEFAULT_DEVICE, setting(DEFAULT_DEVICE)
    if rest.startswith("tensor '"):
        rest = rest.partition(". Guard failed on")[0]
    return FailedGuard(id, rest, source, old, new, line, hint, free_variables=free_variables(source, now))


def guarded_object(guard: str) -> str:
    """Return the identity check of a guard on one certain object; ``""`` for other guards."""
    match = _CHECKED.match(guard)
    return plain_source(match["source"]) if match and match["what"] == "obj" else ""


def compiled_for(condition: str) -> tuple[str, str]:
    """Return the value that a condition checks, and its bound in words: ``x.size(0)`` and ``2 to 1024``; ``""`` twice
    if it checks several values or is no comparison."""
    about, words, _ = _compared(condition, lambda _: "")
    return (about, words) if words else ("", "")


def with_compiled_value(failed: FailedGuard, held: Mapping[str, str]) -> FailedGuard:
    """Return a failed guard with the value that its cache entry was compiled for, from ``held``: by guarded value, or
    by ``STATE`` and the name of a torch setting."""
    if failed.text.startswith(STATE):
        names, new = failed.text.removeprefix(STATE).split(), failed.new.split(" and ")
        olds = [held.get(STATE + name) or _NEGATED.get(value, "") for name, value in zip(names, new)]
        return dataclasses.replace(failed, old=" and ".join(olds)) if all(olds) else failed
    old = held.get(failed.source, "") if failed.text.startswith(_BY_NAME) else ""
    return dataclasses.replace(failed, old=old, new=_distinguished(old, failed.new)) if old else failed


_BY_NAME = ("___check_", "expected type of", "TYPE_MISMATCH(")
"""Prefixes of sentences without the object, or the class of tensors, that a cache entry was compiled for."""
_NEGATED = {"True": "False", "False": "True"}


def _distinguished(old: str, new: str) -> str:
    """Return ``new`` with "another" if it has the same words as ``old``: the guard failed, so the objects differ."""
    return f"another {new.removeprefix('a ')}" if new and new == old else new


def _hinted(text: str) -> tuple[str, str, str]:
    """Return a guard without torch's hint, the hint's advice, and the class named in it."""
    duck = _DUCK.search(text)
    if duck:
        return text[: duck.start()].strip(), f"to {duck['hint']}", ""
    backends = _BACKENDS.match(text)
    if backends:
        return text, " ".join(backends["hint"].split()), ""
    match = _HINT.search(text)
    if match is None:
        return text, "", ""
    hint = _CLOSURE_HINT.sub("", match["hint"], count=1).strip()
    type_ = _TYPE_HINT.match(hint)
    return text[: match.start()].rstrip(), "" if type_ else hint, type_["type"] if type_ else ""


def _placed(text: str, now: Now) -> tuple[str, Frame | None]:
    """Return a guard without torch's comment on its line, and the line; for a range that of the violated end."""
    bounds = _BOUNDS.match(text)
    if bounds is not None and (known := _range(parse_expression(bounds["guard"]))) is not None:
        guard = bounds["guard"].strip()
        value = _number(now(known.about))
        if value is None:  # which end was violated is not known
            return guard, None
        low = known.low is not None and value < known.low
        text = f"{guard}  # {bounds['lower' if low else 'upper']}"
    of_torch = _ZERO_ONE_COMMENT in text  # its line is only the first use of the value
    rest, line = with_place(text)
    return rest, None if of_torch or (line is not None and _DYNAMO.match(line.file)) else line


def _subject_and_values(text: str, type_: str, now: Now) -> tuple[str, str, str]:
    """Return the subject of a guard, its old value and its new one."""
    for reading in (_tensors, _objects, _sentences, _membership):
        parsed = reading(text, type_, now)
        if parsed is not None:
            return parsed
    return _compared(text, now)


def _state(text: str, setting: Now) -> tuple[str, str, str]:
    names = text.removeprefix(STATE).split()
    values = [setting(name) for name in names]
    if not all(values):
        return " and ".join(names), "", ""
    olds = [_NEGATED.get(value, "") for value in values]  # the guard failed, so the old value is the opposite
    return " and ".join(names), " and ".join(olds) if all(olds) else "", " and ".join(values)


def _tensors(text: str, _: str, now: Now) -> tuple[str, str, str] | None:
    tensor = _TENSOR.match(text)
    if tensor:
        old, new = tensor["old"], tensor["new"] or ""
        if old in ("requires_grad=0", "requires_grad=1"):  # torch gives only the expected value
            old, new = ("False", "True") if old[-1] == "0" else ("True", "False")
        source = plain_source(tensor["source"])
        if devices := _devices(old, new):
            return f"{source}.device", *devices
        old, new = (DTYPES.get(value, value) for value in _keys(old, new))
        return source + _part(tensor["what"]), old, new
    of_type = _TENSOR_TYPE.match(text)
    if of_type:
        source = f"type({plain_source(of_type['source'])})"
        old = of_type["old"]  # torch 2.15 names the class
        return source, _class(old) if old else "a tensor's", _class(of_type["new"]) or now(source)
    groups = _DUPLICATES.match(text)
    try:
        duplicates = syntax.literal(f"[{groups['groups']}]") if groups else []
    except (SyntaxError, ValueError):
        duplicates = []
    if not duplicates or not duplicates[0]:
        return None
    *others, last = (plain_source(str(name)) for name in duplicates[0])
    other_names = ", ".join(others)
    return last, f"{OTHER}{other_names}", f"{SAME}{other_names}"


def _devices(old: str, new: str) -> tuple[str, str] | None:
    """Return the devices of two dispatch key sets that differ in nothing else; None for others."""
    sets = [_KEYS.match(keys) for keys in (old, new)]
    one, two = (set(match["keys"].split(", ")) if match else set() for match in sets)
    only = [{key for key in keys if not key.startswith("Autograd")} for keys in (one - two, two - one)]
    if not all(len(keys) == 1 and keys <= _DEVICE_KEYS for keys in only):
        return None
    before, after = (keys.pop().lower() for keys in only)
    return before, after


_DEVICE_KEYS = {"CPU", "CUDA", "HIP", "XPU", "MPS", "HPU", "XLA", "MTIA", "IPU", "PrivateUse1", "Meta"}
"""Dispatch keys that name a device."""


def _keys(old: str, new: str) -> tuple[str, str]:
    """Return two dispatch key sets by their differing keys; other texts unchanged."""
    sets = [_KEYS.match(keys) for keys in (old, new)]
    if not all(sets):
        return old, new
    one, two = (set(match["keys"].split(", ")) for match in sets if match)
    parts = [", ".join(sorted(only)) for only in (one - two, two - one)]
    if one ^ two and all(key.startswith(("Autograd", "ADInplaceOrView")) for key in one ^ two):
        if not parts[1]:
            return NORMAL, INFERENCE
        if not parts[0]:
            return INFERENCE, NORMAL
    keys = [
        f"with the key {only}" if only else f"without {other}" for only, other in zip(parts, reversed(parts))
    ]
    return keys[0], keys[1]


def _objects(text: str, type_: str, now: Now) -> tuple[str, str, str] | None:
    checked = _CHECKED.match(text)
    if not checked:
        return None
    source = plain_source(checked["source"])
    if checked["what"] == "type":
        source, old = f"type({source})", _class(checked["type"] or "") or type_
    else:
        old = ""
    return source, old, _distinguished(old, now(source))


def _sentences(text: str, _: str, now: Now) -> tuple[str, str, str] | None:
    if is_of_marks(text):
        return (
            "a tensor",
            "marked otherwise or not at all",
            "marked with mark_dynamic, mark_static or the like",
        )
    backends = _BACKENDS.match(text)
    if backends:
        old, new = (_ADDRESS.sub("", backends[side]) for side in ("old", "new"))
        return "the backend", old, _distinguished(old, new)
    missing = _MISSING.match(text)
    if missing:
        return plain_source(missing["source"]), THERE, GONE
    without = _NO_ATTRIBUTE.match(text)
    if without:
        return f"an attribute of {plain_source(without['source'])}", THERE, GONE
    no_function = _NO_FUNCTION.match(text)
    if no_function:
        source = plain_source(no_function["source"])
        return source, FUNCTION, now(source) or NO_FUNCTION
    if dictionary := _DICT_TYPE.match(text):
        source = f"type({plain_source(dictionary['source'])})"
        return source, "", now(source)
    if nan := _NAN.match(text):
        source = plain_source(nan["source"] or nan["number"])
        return source, "nan" if nan["source"] else "a number other than nan", now(source)
    deleted = _DELETED.match(text)
    if deleted:
        source = plain_source(deleted["source"])
        return source, DELETED, now(source) or "another one"
    length = _LENGTH.match(text)
    if length and (value := now(f"len({plain_source(length['source'])})")) != length["old"]:
        # For a dict torch gives the length it found, not the expected one.
        return f"len({plain_source(length['source'])})", length["old"], value
    return None


def _membership(text: str, _: str, now: Now) -> tuple[str, str, str] | None:
    absent = _ABSENT.match(text)
    if absent:
        source = f"{plain_source(absent['owner'])}.{absent['name']}"
        return source, ABSENT, now(source)
    tree = parse_expression(text)
    held = not (isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not))
    call = tree if held else getattr(tree, "operand", None)
    if not isinstance(call, ast.Call) or len(call.args) != 2:
        if not held and call is not None and not isinstance(call, ast.Call):  # ``not xs``
            source = plain_source(ast.unparse(call))
            length = now(f"len({source})")
            return (f"len({source})", "0", length) if length else (source, "empty, 0 or False", now(source))
        return None
    one, two = (plain_source(ast.unparse(argument)) for argument in call.args)
    function = ast.unparse(call.func)
    if function == "hasattr" and isinstance(call.args[1], ast.Constant):
        source = f"{one}.{call.args[1].value!s}"
        return (source, SET, ABSENT) if held else (source, ABSENT, now(source) or SET)
    if function in ("___dict_contains", "set.__contains__", "frozenset.__contains__"):
        item, owner = (one, two) if function == "___dict_contains" else (two, one)
        return f"{item} in {owner}", str(held), str(not held)
    return None


@dataclasses.dataclass(frozen=True)
class _Range:
    """Range of a number: the expression and its ends."""

    about: str
    low: float | None
    high: float | None
    words: str


_WORDS: dict[type[ast.cmpop], str] = {
    ast.Lt: "less than {}",
    ast.LtE: "at most {}",
    ast.Gt: "more than {}",
    ast.GtE: "at least {}",
    ast.NotEq: "other than {}",
    ast.IsNot: "other than {}",
}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
}


def _range(tree: ast.expr | None) -> _Range | None:
    """Return the range of a guard such as ``2 <= x.size()[0] <= 4``; ``None`` for another one."""
    if not (isinstance(tree, ast.Compare) and len(tree.ops) == 2):
        return None
    low, high = _literal(tree.left), _literal(tree.comparators[1])
    low_value, high_value = _number(low or ""), _number(high or "")
    if low_value is None or high_value is None or not all(isinstance(op, ast.LtE) for op in tree.ops):
        return None
    about = plain_source(ast.unparse(tree.comparators[0]))
    return _Range(about, low_value, high_value, f"{low} to {high}")


def _compared(guard: str, now: Now) -> tuple[str, str, str]:
    """Return the subject of a comparison, its old value and its new one. Sizes that are compared with each other only
    have current values."""
    tree = parse_expression(guard)
    if (known := _range(tree)) is not None:
        return known.about, known.words, now(known.about)
    if not (isinstance(tree, ast.Compare) and len(tree.ops) == 1):
        return "", "", ""
    op, left, right = type(tree.ops[0]), tree.left, tree.comparators[0]
    if _literal(right) is None and _literal(left) is not None:
        op, left, right = _MIRRORED.get(op, op), right, left
    about, constant = plain_source(ast.unparse(left)), _literal(right)
    if constant is not None and _literal(left) is None:
        old = constant if op in (ast.Eq, ast.Is) else _WORDS[op].format(constant) if op in _WORDS else ""
        return about, clip(old), now(about)
    other = plain_source(ast.unparse(right))
    if op is ast.Is:
        value = now(about)
        return about, f"{SAME}{other}", f"another one ({value})" if value else "another one"
    if op is ast.IsNot:
        return about, f"{OTHER}{other}", "the same"
    measures = sorted({*_measures(left), *_measures(right)})  # torch's order of the two sides varies
    values = [now(source) for source in measures]
    if not measures or not all(values):
        return "", "", ""
    return ", ".join(measures), "", ", ".join(values)


_BARE = re.compile(r"torch\.\w+|device\(.*\)|inf|-inf|nan", re.DOTALL)
"""Constants in torch's notation that are not Python literals."""


def _literal(node: ast.expr) -> str | None:
    """Return the text of a constant; ``None`` for another expression."""
    text = ast.unparse(node)
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text if _BARE.fullmatch(text) else None
    return text


def _measures(node: ast.expr) -> list[str]:
    """Return the sizes, strides and names in an expression, each as its largest readable part."""
    if isinstance(node, ast.BinOp):
        return [*_measures(node.left), *_measures(node.right)]
    if isinstance(node, ast.UnaryOp):
        return _measures(node.operand)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):  # ``Max(1, x.size()[0])``
        return [source for argument in node.args for source in _measures(argument)]
    return [] if _literal(node) is not None else [plain_source(ast.unparse(node))]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _class(text: str) -> str:
    """Return ``net.Block`` for ``<class 'net.Block'>``; ``""`` for another text."""
    match = _CLASS.match(text.strip())
    return match["name"] if match else ""


def _part(what: str) -> str:
    """Return the tensor property that torch compared, as a Python suffix: ``.size(0)``, ``.dtype``."""
    at = re.match(r"(?P<what>size|stride) mismatch at index (?P<index>\d+)", what)
    if at:
        return f".{at['what']}({at['index']})"
    word = what.partition(" mismatch")[0]
    return {"rank": ".dim()", "dtype": ".dtype", "device": ".device", "requires_grad": ".requires_grad"}.get(
        word, ""
    )
