"""Transfer of a program's changes to Inductor's tables of lowerings, decompositions and patterns.

Torch's entries are recognised by fingerprints from a process that ran none of the program (``torch_entries``), since a
program may register a function of torch's for another operator. Entries that torch itself adds later are functions of
torch's for its own operators without an entry.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import operator
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._ops import OpOverload, OpOverloadPacket

from . import transfers
from .native_functions import TORCH_NAMESPACES
from .transfers import Registration, Undo, cell_content, display_name, function_in, functions_in, is_torchs

TABLES = (
    ("torch._inductor.lowering", "lowerings", "lowering"),
    ("torch._inductor.lowering", "user_lowerings", "lowering"),
    ("torch._inductor.lowering", "_maybe_layout_constraints", "constraint"),
    ("torch._inductor.decomposition", "decompositions", "decomposition"),
)
"""Tables by operator: module, name, and kind of entry."""

PATTERNS = "torch._inductor.fx_passes."
"""Prefix of the modules with Inductor's patterns."""

Own = Mapping[str, Mapping[str, str]]
"""Fingerprints of torch's entries by table and operator name."""

# In the other process, before it runs anything ---------------------------------------------------------------

_initial: dict[str, dict[Any, Any]] = {}


def remember() -> None:
    """Record the present entries of the tables as torch's own."""
    for module, name, _ in TABLES:
        loaded = importlib.import_module(module)
        _initial[name] = dict(getattr(loaded, name, {}))
    extra = getattr(loaded, "extra_random_decomps", {})
    _initial["fast_random_decomps"] = {**_initial["decompositions"], **extra}


def torch_entries() -> Own:
    """Return the fingerprints of the recorded entries."""
    return {
        name: {_name(one): _fingerprint(value) for one, value in held.items()}
        for name, held in _initial.items()
    }


# In this process ---------------------------------------------------------------------------------------------------


def may_be_changed() -> bool:
    """Return True if the tables are loaded, so that the program may have changed them."""
    return TABLES[0][0] in sys.modules


def changed_entries(torchs: Own) -> Iterator[Registration]:
    """Yield the program's additions to and removals from the tables; ``torchs`` are torch's own entries."""
    for module, name, kind in TABLES:
        if module in sys.modules:
            yield from _changes_of_table(module, name, kind, torchs)
    yield from _added_patterns()


_torchs_entries: dict[str, dict[Any, Any]] = {}
"""Entries known to be torch's, by table."""

_complete: set[str] = set()
"""Tables from which no entry of torch's was missing at the last check."""


def _changes_of_table(module: str, name: str, kind: str, torchs: Own) -> Iterator[Registration]:
    table, initial_name = _current_table(module, name)
    known = _torchs_entries.setdefault(initial_name, {})
    same = len(known) == len(table) and all(map(operator.is_, known.values(), table.values()))
    if same and initial_name in _complete:
        return
    reads = torchs.get(initial_name, {})
    fresh: dict[Any, Any] = {}
    programs: list[tuple[Any, Any]] = []
    for key, value in list(table.items()):
        if known.get(key, known) is value:
            fresh[key] = value
        elif _is_torchs(name, key, value, reads, torchs):
            if (
                kind != "constraint" or _namespace(key) in TORCH_NAMESPACES
            ):  # otherwise it belongs to the lowering
                fresh[key] = value
        else:
            programs.append((key, value))
    _torchs_entries[initial_name] = fresh
    others = {id(value): one for one, value in fresh.items() if _name(one) in reads} if programs else {}
    for key, value in programs:
        if kind == "constraint" and key not in sys.modules[module].lowerings:
            continue  # torch recreates the entry with a lowering when it compiles the operator
        where, function = f"{module}.{name}[{_name(key)}]", function_in(value)
        if id(value) in others:  # torch's for another operator
            yield Registration(where, kind, _like, (module, name, key, others[id(value)]), None)
        else:
            by = None if is_torchs(function) else function
            watch = transfers.watch_entry, (where, module, name, key)
            yield Registration(where, kind, _put, (module, name, key, value), by, watch=watch)
    removed = sorted(reads.keys() - {_name(key) for key in table})
    (_complete.discard if removed else _complete.add)(initial_name)
    for gone in removed:
        yield Registration(f"{module}.{name} without {gone}", "removal", _remove, (module, name, gone), None)


def _current_table(module: str, name: str) -> tuple[dict[Any, Any], str]:
    """Return the table that torch uses, and its name in ``_initial``; torch copies decompositions on first use."""
    loaded = sys.modules[module]
    fast = getattr(loaded, "fast_random_decomps", None)
    if name == "decompositions" and fast is not None and fast.cache_info().currsize:
        return fast(), "fast_random_decomps"
    return getattr(loaded, name, {}), name


def _is_torchs(name: str, key: Any, value: Any, table: Mapping[str, str], torchs: Own) -> bool:
    reads = table.get(_name(key))
    if reads is not None:
        return reads == _fingerprint(value)
    if name == "_maybe_layout_constraints" and _name(key) in torchs.get("lowerings", {}):
        return False  # torch adds a constraint only together with a lowering
    namespace, function = _namespace(key), function_in(value)
    if function is not None and not is_torchs(function):
        return False
    return not namespace or namespace in TORCH_NAMESPACES or _is_made_on_demand(name, key, value)


def _is_made_on_demand(name: str, key: Any, value: Any) -> bool:
    """Return True if torch itself creates the entry when it compiles an operator without one: a fallback to the
    operator, or the layout constraint of its tags."""
    if name == "_maybe_layout_constraints":
        lowering: Any = sys.modules[TABLES[0][0]]
        tag = torch._library.utils.get_layout_constraint_tag(key, with_default=True)
        called = _is_made_on_demand("lowerings", key, lowering.lowerings.get(key))
        return called and value is lowering.tag_to_layout_constraint(tag)
    function = function_in(value)
    if name != "lowerings" or function is None or not function.__qualname__.startswith("fallback_handler."):
        return False
    held = (_name(cell_content(cell)) for cell in function.__closure__ or ())
    return any(_name(key) == one or _name(key).startswith(f"{one}.") for one in held)


def _namespace(key: Any) -> str:
    packet = str(getattr(key, "_qualified_op_name", "")).partition("::")[0]
    return getattr(key, "namespace", "") or packet


def _name(key: Any) -> str:
    if isinstance(key, (str, OpOverload, OpOverloadPacket)):
        return str(key)
    return display_name(key)


def _fingerprint(value: Any) -> str:
    return hashlib.md5(repr(_facts(value, 5)).encode(), usedforsecurity=False).hexdigest()


def _facts(value: Any, depth: int) -> Any:
    """Return plain data that identify a function in any process: its place and its closure, down to ``depth``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (OpOverload, OpOverloadPacket)):
        return str(value)
    if depth == 0:
        return type(value).__name__
    if isinstance(value, types.FunctionType):
        cells = [_facts(cell_content(cell), depth - 1) for cell in value.__closure__ or ()]
        code = value.__code__
        return value.__module__, value.__qualname__, code.co_filename, code.co_firstlineno, cells
    if isinstance(value, functools.partial):
        return "partial", *(_facts(one, depth - 1) for one in (value.func, value.args, value.keywords))
    if isinstance(value, (list, tuple)):
        return [_facts(one, depth - 1) for one in value]
    if isinstance(value, dict):
        return [(str(one), _facts(held, depth - 1)) for one, held in value.items()]
    if isinstance(value, types.MethodType):
        return _facts(value.__func__, depth - 1)
    return getattr(value, "__module__", ""), getattr(value, "__qualname__", type(value).__name__)


# Patterns ----------------------------------------------------------------------------------------------------------


def _added_patterns() -> Iterator[Registration]:
    matcher = sys.modules.get("torch._inductor.pattern_matcher")
    kind = getattr(matcher, "PatternMatcherPass", None)
    if kind is None:
        return
    passes = _passes(kind)
    entries = [one for _, matcher_pass in passes for some in matcher_pass.patterns.values() for one in some]
    if len(entries) == len(_torchs_patterns) and all(map(operator.is_, entries, _torchs_patterns)):
        return
    known = {id(one) for one in _torchs_patterns}
    programs: dict[int, list[tuple[Any, ...]]] = {}
    for path, matcher_pass in passes:
        for key, some in list(matcher_pass.patterns.items()):
            for position, one in enumerate(some):
                if id(one) not in known and not all(map(is_torchs, functions_in(one))):
                    programs.setdefault(id(one), [one]).append((path, key, position))
    _torchs_patterns[:] = [one for one in entries if id(one) not in programs]
    for number, (entry, *at) in enumerate(programs.values()):
        by = next(one for one in functions_in(entry) if not is_torchs(one))
        module, name, _ = at[0][0]
        where = f"{module}.{name}: {display_name(by)}" + (f" ({number + 1})" if number else "")
        yield Registration(
            where,
            "pattern",
            transfers.insert_pattern,
            (entry, at),
            by,
            watch=(transfers.watch_pattern, (where, at)),
        )


_torchs_patterns: list[Any] = []
"""Patterns known to be torch's."""

Path = tuple[str, str, Any]
"""Place of a pass: a module, a name, and a key in the value of that name."""

_cached_passes: tuple[int, list[tuple[Path, Any]]] = (0, [])


def _passes(kind: type) -> list[tuple[Path, Any]]:
    """Return the passes in Inductor's modules."""
    global _cached_passes
    if _cached_passes[0] != len(sys.modules):
        passes: dict[int, tuple[Path, Any]] = {}
        for module, held in list(sys.modules.items()):
            if module.startswith(PATTERNS):
                for name, value in list(vars(held).items()):
                    for place, one in _inside(value):
                        if isinstance(one, kind):
                            passes.setdefault(id(one), ((module, name, place), one))
        _cached_passes = len(sys.modules), list(passes.values())
    return _cached_passes[1]


def _inside(value: Any) -> Iterator[tuple[Any, Any]]:
    yield None, value
    if type(value) is list:
        yield from enumerate(value)
    elif type(value) is dict:
        yield from value.items()


# In the other process ----------------------------------------------------------------------------------------------


def _changed(module: str, change: Callable[[dict[Any, Any]], Undo], name: str) -> Undo:
    loaded = importlib.import_module(module)
    forget = getattr(getattr(loaded, "fast_random_decomps", None), "cache_clear", int)
    undo = change(getattr(loaded, name))
    forget()
    return lambda: (undo(), forget())


def _put(arguments: tuple[str, str, Any, Any]) -> Undo:
    module, name, key, value = arguments
    lowering: Any = importlib.import_module(module)
    if name == "_maybe_layout_constraints" and key not in lowering.lowerings:
        # Create both entries, as torch had before the program changed this one; else torch would recreate them later.
        held = lowering.lowerings, lowering._maybe_layout_constraints
        before = [dict(one) for one in held]
        lowering.make_fallback(key, layout_constraint=value, warn=False)
        return lambda: [(one.clear(), one.update(old)) for one, old in zip(held, before)]

    def put(table: dict[Any, Any]) -> Undo:
        there, before = key in table, table.get(key)
        table[key] = value
        return lambda: table.__setitem__(key, before) if there else table.pop(key, None)

    return _changed(module, put, name)


def _like(arguments: tuple[str, str, Any, Any]) -> Undo:
    module, name, key, other = arguments
    return _put((module, name, key, getattr(importlib.import_module(module), name)[other]))


def _remove(arguments: tuple[str, str, str]) -> Undo:
    module, name, gone = arguments

    def remove(table: dict[Any, Any]) -> Undo:
        taken = {key: table.pop(key) for key in list(table) if _name(key) == gone}
        return lambda: table.update(taken)

    return _changed(module, remove, name)
