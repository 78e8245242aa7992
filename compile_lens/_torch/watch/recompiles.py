"""Recompiles of a code object: the guard that failed in each older cache entry, with the call's values and torch's
settings, and the nearest entry. Torch reports only the first failed guard of each entry."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...record import claims, failed_guards, guard_values, messages, syntax
from ...record.failed_guards import STATE
from ...record.program import ERROR_ON_RECOMPILE, UNKNOWN, FailedGuard
from . import scopes
from .observers import observe, observing
from .scopes import Evaluation
from .value_reader import Names, NoValue, name_of, read_now, value_of

_SAFE_GUARDS = frozenset(
    ("TYPE_MATCH", "ID_MATCH", "EQUALS_MATCH", "NONE_MATCH", "NOT_NONE", "TRUE_MATCH", "FALSE_MATCH")
)
"""Guards that can be checked separately: they have no state, and run no code of the program."""


def nearest_entry(
    entries: Sequence[Any],
    failed: Sequence[FailedGuard],
    earlier: Sequence[FailedGuard],
    names: Names,
    globals: Names,
) -> int:
    """Return the position in ``failed`` of the entry with the fewest failures among all guards that failed in any
    entry, now or ``earlier``.

    A tie goes to an entry that torch itself specialised to a size of 0 or 1, then to the newest. Torch sorts guards by
    their number of failures, so all entries may report the same guard while more fail in some.
    """
    if len(failed) < 2:
        return 0
    roots = {str(one.compile_id): getattr(one.guard_manager, "root", None) for one in entries}
    known = (*failed, *earlier)
    value_names = list(
        dict.fromkeys(value_name for one in known for value_name in guard_values.guarded_values(one.source))
    )
    parts = {one.source for one in known}
    fails = []
    for one in failed:
        failures = _settings_in(one.text) or {guard_values.guarded_value(one.source) or one.text}
        root = roots.get(one.id)
        if root is not None:
            for value_name in value_names:
                failures |= set(_failing(root, value_name, parts, names, globals))
            if not one.text.startswith(failed_guards.STATE):
                failures |= _changed_settings(root)
        fails.append(len(failures))
    return min(
        range(len(failed)),
        key=lambda at: (fails[at], not guard_values.is_zero_one_specialized(failed[at]), at),
    )


def _settings_in(text: str) -> set[str]:
    """Return the settings that torch reports as changed."""
    return (
        set(text.removeprefix(failed_guards.STATE).split()) if text.startswith(failed_guards.STATE) else set()
    )


def _changed_settings(root: Any) -> set[str]:
    """Return the names of torch's settings that have changed since an entry was compiled."""
    names: set[str] = set()
    for leaf in root.get_leaf_guards():
        if _leaf_fails(leaf, "GLOBAL_STATE", None):
            result = getattr(leaf, "check_verbose", lambda _: None)(None)
            named = (_settings_in(str(part)) for part in getattr(result, "verbose_code_parts", ()))
            names |= set().union(*named) or {"settings"}
    return names


_SIZED = (list, tuple, dict)
"""Classes whose length can be read; ``__len__`` of another class may be code of the program."""


def _failing(root: Any, value_name: str, parts: set[str], names: Names, globals: Names) -> Iterator[str]:
    """Yield an entry's failures for one value: those of ``parts`` that differ for a tensor, else the value."""
    value = value_of(value_name, names, globals)
    for manager in _managers(root, value_name):
        if value is NoValue.UNREAD:
            break
        if value is NoValue.MISSING:
            yield value_name
        elif type(value) in (torch.Tensor, torch.nn.Parameter):
            yield from _failing_tensor_parts(manager, value_name, value, parts)
        elif any(_fails_alone(leaf, value) for leaf in manager.get_leaf_guards()):
            yield value_name
        elif type(value) is dict:
            yield from _failing_keys(manager, value_name, value)
    for leaf in root.get_epilogue_lambda_guards():
        for part in leaf.verbose_code_parts():
            text = messages.plain_source(messages.with_place(part)[0])
            if re.search(rf"(?<!\w){re.escape(value_name)}\.", text) and _is_false(text, names, globals):
                yield (
                    failed_guards.failed_guard(text, lambda source: read_now(source, names, globals)).source
                    or text
                )


def _managers(root: Any, value_name: str) -> Iterator[Any]:
    """Yield an entry's guard managers for one value from torch's tree, which is ordered by access path."""
    for child in root.get_child_managers():
        own = messages.plain_source(str(child.get_source())).replace(".__dict__", "")
        if own == value_name:
            yield child
        elif own in ("L", "G") or (value_name.startswith(own) and value_name[len(own)] in ".["):
            yield from _managers(child, value_name)


def _leaf_fails(leaf: Any, kind: str, value: Any) -> bool:
    return type(leaf).__name__ == kind and not leaf(value)


def _fails_alone(leaf: Any, value: Any) -> bool:
    kind = type(leaf).__name__
    is_safe = kind in _SAFE_GUARDS or (kind in ("LENGTH_CHECK", "DICT_LENGTH") and type(value) in _SIZED)
    return (is_safe and not leaf(value)) or _leaf_fails(leaf, "TENSOR_MATCH", value)


def _failing_tensor_parts(
    manager: Any, value_name: str, value: torch.Tensor, parts: set[str]
) -> Iterator[str]:
    leaves = manager.get_leaf_guards()
    if not any(_fails_alone(leaf, value) for leaf in leaves):
        return
    checks = (guard_values.TENSOR_CHECK.search(part) for leaf in leaves for part in leaf.verbose_code_parts())
    check = next((failing for failing in checks if failing is not None), None)
    if check is None:  # the entry expects something other than a tensor
        yield value_name
        return
    size, stride = syntax.literal(check["size"]), syntax.literal(check["stride"])
    differs = {
        f"{value_name}.dtype": check["dtype"] != str(value.dtype),
        f"{value_name}.requires_grad": check["requires_grad"] != str(value.requires_grad),
        f"{value_name}.dim()": len(size) != value.dim(),
    }
    for what, expected, given in (("size", size, value.shape), ("stride", stride, value.stride())):
        differs |= {
            f"{value_name}.{what}({i})": a is not None and a != n
            for i, (a, n) in enumerate(zip(expected, given))
        }
    failing = [part for part, is_so in differs.items() if is_so and part in parts]
    yield from failing or [value_name]


def _failing_keys(manager: Any, value_name: str, value: dict[Any, Any]) -> Iterator[str]:
    """Yield failures of an entry's guards on the keys of a dict, which are by position."""
    key_guards = manager.get_key_value_managers() if hasattr(manager, "get_key_value_managers") else {}
    if key_guards and max(key_guards) >= len(value):
        yield value_name
    keys = list(dict.keys(value))
    for at, (of_key, _) in key_guards.items():
        if of_key is not None and at < len(keys) and type(keys[at]) in (str, int):
            if any(_fails_alone(leaf, keys[at]) for leaf in of_key.get_leaf_guards()):
                yield f"list(dict.keys({value_name}))[{at}]"


def _is_false(text: str, names: Names, globals: Names) -> bool:
    """Return True if a comparison of sizes is known to be false."""
    tree = messages.parse_expression(text)
    return tree is not None and messages.comparison_holds(_Values(names, globals).visit(tree)) is False


class _Values(ast.NodeTransformer):
    """A transformer that replaces names by their numbers where these can be read."""

    def __init__(self, names: Names, globals: Names) -> None:
        self._names, self._globals = names, globals

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, (ast.Call, ast.Name, ast.Attribute, ast.Subscript)):
            value = value_of(ast.unparse(node), self._names, self._globals)
            return ast.Constant(value) if type(value) in (int, float) else node
        return super().generic_visit(node)


@observe("torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons", claims.RECOMPILES)
def recompilation_reasons(real: Any, entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Record torch's reasons why older entries of a code object did not match."""
    evaluation = scopes.current()
    try:
        reasons = real(entries, frame, *args, **kwargs)
    except torch._dynamo.exc.RecompileError as error:  # the program set ``error_on_recompile``
        if evaluation is not None:
            with observing(evaluation.scopes, claims.RECOMPILES):
                keep_reasons(evaluation, entries, frame, messages.failure_lines(str(error)))
                evaluation.limit = ERROR_ON_RECOMPILE
        raise
    if evaluation is not None:
        with observing(evaluation.scopes, claims.RECOMPILES):
            keep_reasons(evaluation, entries, frame, [str(text) for text in reasons])
    return reasons


def keep_reasons(evaluation: Evaluation, entries: Any, frame: Any, reasons: Sequence[str]) -> None:
    """Record why no entry matches a call: torch's reason for each, with the values of the call."""
    listed = entries if isinstance(entries, list) else _entry_chain(entries)
    names, globals = frame.f_locals, frame.f_globals
    config = torch._dynamo.config
    evaluation.recompiled = len(listed), int(config.recompile_limit)
    evaluation.constants_only = config.assume_static_by_default and not config.automatic_dynamic_shapes
    evaluation.asked = frozenset(str(one.compile_id) for one in listed)
    evaluation.nearest = UNKNOWN  # until all guards are read
    evaluation.failed = [
        failed_guards.failed_guard(text, lambda source: read_now(source, names, globals), current_setting)
        for text in reasons
    ]
    earlier = (
        list(evaluation.scopes[0].failed_of.get(evaluation.code, {}).values()) if evaluation.scopes else []
    )
    evaluation.nearest = nearest_entry(listed, evaluation.failed, earlier, names, globals)


def _entry_chain(entry: Any) -> list[Any]:
    """Return all entries of a code object, given the first, which torch 2.11 passes."""
    entries = []
    while entry is not None:
        entries.append(entry)
        entry = getattr(entry, "next", None)
    return entries


_READERS: dict[str, Callable[[], Any]] = {
    "grad_mode": torch.is_grad_enabled,
    "deterministic_algorithms": torch.are_deterministic_algorithms_enabled,
    "deterministic_algorithms_warn_only": torch.is_deterministic_algorithms_warn_only_enabled,
    "autocast_cache_enabled": torch.is_autocast_cache_enabled,
    "allow_tf32": lambda: torch._C._get_cublas_allow_tf32(),
    "num_threads": torch.get_num_threads,
    "default_dtype": torch.get_default_dtype,
    failed_guards.MODES: lambda: _torch_function_modes(),
    failed_guards.DEFAULT_DEVICE: lambda: repr(torch.get_default_device()),
}
"""Functions that read a setting, by its name in torch's guard."""
_AUTOCAST = re.compile(r"autocast\((?P<device>\w+)\)_(?P<what>enabled|dtype)$")


def current_setting(name: str) -> str:
    """Return the value of a setting by torch's name; ``""`` if the name is unknown."""
    autocast = _AUTOCAST.match(name)
    read = _READERS.get(name)
    try:
        if autocast:
            device = autocast["device"].lower()
            dtype = autocast["what"] == "dtype"
            return str(torch.get_autocast_dtype(device) if dtype else torch.is_autocast_enabled(device))
        return "" if read is None else str(read())
    except RuntimeError:  # a device unknown to this torch, or settings that it cannot report as one value
        return ""


def _torch_function_modes() -> str:
    """Return the torch function modes, outermost first; ``none`` without one."""
    modes = torch.overrides._get_current_function_mode_stack()
    device = torch.utils._device.DeviceContext
    texts = (
        f"torch.set_default_device({str(mode.device)!r})" if type(mode) is device else name_of(type(mode))
        for mode in modes
    )
    return ", ".join(texts) or "none"


_REMEMBERED = ("num_threads", "default_dtype", "autocast(cpu)_dtype", "autocast(cuda)_dtype")
"""Settings with more than two values, whose old value cannot be inferred from the new one."""


def remembered_settings() -> dict[str, str]:
    """Return the values of these settings by the names that ``failed_guards.with_compiled_value`` reads."""
    settings = {STATE + name: current_setting(name) for name in _REMEMBERED}
    return settings | {failed_guards.MODES: current_setting(failed_guards.MODES)}
