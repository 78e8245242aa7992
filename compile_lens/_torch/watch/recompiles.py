"""Which of a code's forms a call came nearest to: of each, torch tells the first guard that failed and no other one."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...record import failed_guards, messages, nearness
from ...record.failed_guards import STATE
from ...record.program import ERROR_ON_RECOMPILE, FailedGuard
from . import scopes
from .observers import noting, observe
from .scopes import Visiting
from .value_reader import Lacking, Names, now, value_of

_ASKED = frozenset(
    ("TYPE_MATCH", "ID_MATCH", "EQUALS_MATCH", "NONE_MATCH", "NOT_NONE", "TRUE_MATCH", "FALSE_MATCH")
)
"""Guards that can be asked alone: they keep nothing, and run no code of the program."""


def nearest(
    entries: Sequence[Any],
    failed: Sequence[FailedGuard],
    earlier: Sequence[FailedGuard],
    names: Names,
    globals: Names,
) -> int:
    """The place in ``failed`` of the form in which least fails of what failed in any of them, now or ``earlier``; of
    several that which a size of 0 or 1 is kept from by torch itself and by no line, and else the newest.

    Torch sorts guards by how often they failed, so that all forms may name the same one while more fails in some.
    """
    if len(failed) < 2:
        return 0
    roots = {str(one.compile_id): getattr(one.guard_manager, "root", None) for one in entries}
    known = (*failed, *earlier)
    abouts = list(dict.fromkeys(about for one in known for about in nearness.abouts(one.source)))
    parts = {one.source for one in known}
    fails = []
    for one in failed:
        found = _settings(one.text) or {nearness.value_of(one.source) or one.text}
        root = roots.get(one.id)
        if root is not None:
            for about in abouts:
                found |= set(_failing(root, about, parts, names, globals))
            if not one.text.startswith(failed_guards.STATE):
                found |= _settings_of(root)
        fails.append(len(found))
    return min(range(len(failed)), key=lambda at: (fails[at], not nearness.of_zero_or_one(failed[at]), at))


def _settings(text: str) -> set[str]:
    """The settings that torch names where it says that they are others."""
    return (
        set(text.removeprefix(failed_guards.STATE).split()) if text.startswith(failed_guards.STATE) else set()
    )


def _settings_of(root: Any) -> set[str]:
    """The settings of torch's that a form is made for, and that are others now."""
    found: set[str] = set()
    for leaf in root.get_leaf_guards():
        if _of(leaf, "GLOBAL_STATE", None):
            told = getattr(leaf, "check_verbose", lambda _: None)(None)
            named = (_settings(str(part)) for part in getattr(told, "verbose_code_parts", ()))
            found |= set().union(*named) or {"settings"}
    return found


_SIZED = (list, tuple, dict)
"""Whose length a guard may be asked about: that of another class may be code of the program."""


def _failing(root: Any, about: str, parts: set[str], names: Names, globals: Names) -> Iterator[str]:
    """What fails of a form that is about one value: each of ``parts`` that is known of a tensor, else the value."""
    value = value_of(about, names, globals)
    for manager in _managers(root, about):
        if value is Lacking.UNREAD:
            break
        if value is Lacking.MISSING:
            yield about
        elif type(value) in (torch.Tensor, torch.nn.Parameter):
            yield from _of_tensor(manager, about, value, parts)
        elif any(_fails(leaf, value) for leaf in manager.get_leaf_guards()):
            yield about
        elif type(value) is dict:
            yield from _of_keys(manager, about, value)
    for leaf in root.get_epilogue_lambda_guards():
        for part in leaf.verbose_code_parts():
            text = messages.plain_source(messages.with_place(part)[0])
            if re.search(rf"(?<!\w){re.escape(about)}\.", text) and _false(text, names, globals):
                yield failed_guards.failed(text, lambda source: now(source, names, globals)).source or text


def _managers(root: Any, about: str) -> Iterator[Any]:
    """What a form asks of one value, which torch keeps as a tree by how it comes to the value."""
    for child in root.get_child_managers():
        own = messages.plain_source(str(child.get_source())).replace(".__dict__", "")
        if own == about:
            yield child
        elif own in ("L", "G") or (about.startswith(own) and about[len(own)] in ".["):
            yield from _managers(child, about)


def _of(leaf: Any, kind: str, value: Any) -> bool:
    return type(leaf).__name__ == kind and not leaf(value)


def _fails(leaf: Any, value: Any) -> bool:
    kind = type(leaf).__name__
    asked = kind in _ASKED or (kind in ("LENGTH_CHECK", "DICT_LENGTH") and type(value) in _SIZED)
    return (asked and not leaf(value)) or _of(leaf, "TENSOR_MATCH", value)


def _of_tensor(manager: Any, about: str, value: torch.Tensor, parts: set[str]) -> Iterator[str]:
    leaves = manager.get_leaf_guards()
    if not any(_fails(leaf, value) for leaf in leaves):
        return
    checks = (nearness.CHECK.search(part) for leaf in leaves for part in leaf.verbose_code_parts())
    check = next((found for found in checks if found is not None), None)
    if check is None:  # it is asked for something else than a tensor
        yield about
        return
    size, stride = ast.literal_eval(check["size"]), ast.literal_eval(check["stride"])
    differs = {
        f"{about}.dtype": check["dtype"] != str(value.dtype),
        f"{about}.requires_grad": check["requires_grad"] != str(value.requires_grad),
        f"{about}.dim()": len(size) != value.dim(),
    }
    for what, asked, given in (("size", size, value.shape), ("stride", stride, value.stride())):
        differs |= {
            f"{about}.{what}({i})": a is not None and a != n for i, (a, n) in enumerate(zip(asked, given))
        }
    found = [part for part, is_so in differs.items() if is_so and part in parts]
    yield from found or [about]


def _of_keys(manager: Any, about: str, value: dict[Any, Any]) -> Iterator[str]:
    """What fails of the keys that a form asks of a dict, which it keeps by their place."""
    asked = manager.get_key_value_managers() if hasattr(manager, "get_key_value_managers") else {}
    if asked and max(asked) >= len(value):
        yield about
    keys = list(dict.keys(value))
    for at, (of_key, _) in asked.items():
        if of_key is not None and at < len(keys) and type(keys[at]) in (str, int):
            if any(_fails(leaf, keys[at]) for leaf in of_key.get_leaf_guards()):
                yield f"list(dict.keys({about}))[{at}]"


def _false(text: str, names: Names, globals: Names) -> bool:
    """Whether a comparison of sizes is known not to hold."""
    tree = messages.parsed(text)
    return tree is not None and messages.holds(_Values(names, globals).visit(tree)) is False


class _Values(ast.NodeTransformer):
    """Numbers in the place of what can be read."""

    def __init__(self, names: Names, globals: Names) -> None:
        self._names, self._globals = names, globals

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.Subscript)):
            value = value_of(ast.unparse(node), self._names, self._globals)
            return ast.Constant(value) if type(value) in (int, float) else node
        return super().generic_visit(node)


@observe("torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons", "recompiles")
def recompilation_reasons(real: Any, entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch asks why older forms of a code did not fit."""
    visiting = scopes.current()
    try:
        reasons = real(entries, frame, *args, **kwargs)
    except torch._dynamo.exc.RecompileError as error:  # the program asked for one (``error_on_recompile``)
        if visiting is not None:
            with noting(visiting.scopes, "why a function was compiled again"):
                note(visiting, entries, frame, failed_guards.listed(str(error)))
                visiting.limit = ERROR_ON_RECOMPILE
        raise
    if visiting is not None:
        with noting(visiting.scopes, "why a function was compiled again"):
            note(visiting, entries, frame, [str(text) for text in reasons])
    return reasons


def note(visiting: Visiting, entries: Any, frame: Any, reasons: Sequence[str]) -> None:
    """Keep why no form fits a call: torch's sentence about each of them, read beside what the call was given."""
    found = entries if isinstance(entries, list) else _chain(entries)
    names, globals = frame.f_locals, frame.f_globals
    visiting.recompiled = len(found), int(torch._dynamo.config.recompile_limit)
    visiting.asked = frozenset(str(one.compile_id) for one in found)
    visiting.failed = [
        failed_guards.failed(text, lambda source: now(source, names, globals), current_settings)
        for text in reasons
    ]
    earlier = list(visiting.scopes[0].failed_of.get(visiting.code, {}).values()) if visiting.scopes else []
    visiting.nearest = nearest(found, visiting.failed, earlier, names, globals)


def _chain(entry: Any) -> list[Any]:
    """The forms of a code where torch gives the first of them (torch 2.11)."""
    found = []
    while entry is not None:
        found.append(entry)
        entry = getattr(entry, "next", None)
    return found


_READ: dict[str, Callable[[], Any]] = {
    "grad_mode": torch.is_grad_enabled,
    "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "deterministic_algorithms_warn_only": torch.is_deterministic_algorithms_warn_only_enabled,
    "autocast_cache_enabled": torch.is_autocast_cache_enabled,
    "allow_tf32": lambda: torch._C._get_cublas_allow_tf32(),
    "num_threads": torch.get_num_threads,
    "default_dtype": torch.get_default_dtype,
}
"""By the name that torch's guard has for each."""
_AUTOCAST = re.compile(r"autocast\((?P<device>\w+)\)_(?P<what>enabled|dtype)$")


def current_settings(name: str) -> str:
    """What a setting is, by the name that torch has for it; ``""`` where that is not known."""
    autocast = _AUTOCAST.match(name)
    read = _READ.get(name)
    try:
        if autocast:
            device = autocast["device"].lower()
            dtype = autocast["what"] == "dtype"
            return str(torch.get_autocast_dtype(device) if dtype else torch.is_autocast_enabled(device))
        return "" if read is None else str(read())
    except RuntimeError:  # a device that this torch does not know, or settings that it cannot tell as one
        return ""


_KEPT = ("num_threads", "default_dtype", "autocast(cpu)_dtype", "autocast(cuda)_dtype")
"""Those that have more than two values: what one was is not known by what it is."""


def settings_of_entry() -> dict[str, str]:
    """What they are, as ``failed_guards.with_old`` takes it."""
    return {STATE + name: current_settings(name) for name in _KEPT}
