"""Copies of a callable on new code objects, which Dynamo treats as the original.

Dynamo stores compiled code on code objects. A capture compiles a copy, so that its entries die with the copy and do not
interact with the program's.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Iterator
from typing import Any, cast

import torch

from ..ground import source_places, values
from ..ground.undo import Undo

ALREADY_COMPILED = "it was already compiled: its original is captured, with the options of this call"

PART_COMPILED = "compiled already: captured here as a part of the whole, with the options of this call"


def compiled_notes(fn: Any) -> tuple[str, ...]:
    """Return notes if a module, its parts, or the modules that a function names were compiled in place
    (``module.compile()``, a compiled ``forward``). Does not load the compiler."""
    fn = compiled_module(fn)
    note = [ALREADY_COMPILED] if isinstance(fn, torch.nn.Module) and _is_compiled_in_place(fn) else []
    return (*note, *parts_note([name for name, part in submodules(fn) if _is_compiled_in_place(part)]))


def parts_note(names: list[str]) -> tuple[str, ...]:
    """Return the note on compiled parts of these names; empty without names."""
    several = f"{', '.join(names[:3])}{' and more' if len(names) > 3 else ''} were"
    return (f"{several if len(names) > 1 else names[0] + ' was'} {PART_COMPILED}",) if names else ()


def compiled_module(fn: Any) -> Any:
    """Return the module if ``fn`` is the ``__call__`` of one that was compiled in place, which it runs; else ``fn``."""
    owner = getattr(fn, "__self__", None)
    if not isinstance(fn, types.MethodType) or not isinstance(owner, torch.nn.Module):
        return fn
    return owner if fn.__func__ is torch.nn.Module.__call__ and _is_compiled_in_place(owner) else fn


def submodules(fn: Any) -> list[tuple[str, torch.nn.Module]]:
    """Return by name the modules in a module, or those that a method or function names."""
    behind = _wrapped_function(fn) or fn
    names = {name for code in _codes(getattr(behind, "__code__", None)) for name in code.co_names}
    owner = fn.__self__ if isinstance(fn, types.MethodType) else fn
    while isinstance(owner, torch.nn.Module) and "_orig_mod" in owner.__dict__.get("_modules", {}):
        owner = owner._modules["_orig_mod"]
    if isinstance(owner, torch.nn.Module):
        whole = not isinstance(fn, types.MethodType) or fn.__name__ in _WHOLE
        named = [(name, part) for name, part in owner.named_modules() if name]
        return [(name, part) for name, part in named if whole or name.partition(".")[0] in names]
    if not isinstance(behind, types.FunctionType):
        return []
    cells = zip(behind.__code__.co_freevars, (_cell_value(cell) for cell in behind.__closure__ or ()))
    known = [*((name, behind.__globals__.get(name)) for name in sorted(names)), *cells]
    modules = [(name, value) for name, value in known if isinstance(value, torch.nn.Module)]
    return [
        (f"{name}.{inner}".rstrip("."), part)
        for name, value in modules
        for inner, part in value.named_modules()
        if not inner.startswith("_orig_mod")
    ]


_WHOLE = ("forward", torch.nn.Module.__call__.__name__)
"""Methods of a module that run all of it."""


def _cell_value(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty
        return None


def _codes(code: Any) -> Iterator[types.CodeType]:
    if isinstance(code, types.CodeType):
        yield code
        for inner in code.co_consts:
            yield from _codes(inner)


def _is_compiled_in_place(module: torch.nn.Module) -> bool:
    own = vars(module)
    return (
        own.get("_compiled_call_impl") is not None
        or "_orig_mod" in own.get("_modules", {})
        or _is_compiled(getattr(module, "forward", None))
    )


def _is_compiled(method: Any) -> bool:
    """Return True if a method was passed to ``torch.compile``."""
    return getattr(method, "_torchdynamo_orig_callable", None) is not None and not getattr(
        method, "_torchdynamo_disable", False
    )


def call_uncompiled(undo: Undo, module: Any) -> None:
    """Make a module run its own code until ``undo``, not the result of ``module.compile()`` or a compiled ``forward``,
    into which an outer compiler does not look."""
    if not isinstance(module, torch.nn.Module):
        return
    own = vars(module)
    if own.get("_compiled_call_impl") is not None:
        undo.add(own.__setitem__, "_compiled_call_impl", own["_compiled_call_impl"])
        own["_compiled_call_impl"] = None
    if _is_compiled(module.forward):
        before = own.get("forward")
        undo.add(*(own.pop, "forward", None) if before is None else (own.__setitem__, "forward", before))
        own["forward"] = _wrapped_function(module.forward)


def leave_unmarked(undo: Undo, fn: Any) -> None:
    """Remove at ``undo`` the attribute that compiling sets on a module, unless the program compiled it before."""
    if isinstance(fn, torch.nn.Module) and values.COMPILED_MARK not in vars(fn):
        undo.add(vars(fn).pop, values.COMPILED_MARK, None)


def _wrapped_function(fn: Any) -> Any:
    """Return the original of a compiled function, or None; for a method, bound to the same object."""
    inner = getattr(fn, "_torchdynamo_orig_callable", None)
    if isinstance(fn, types.MethodType) and isinstance(inner, types.FunctionType):
        return types.MethodType(inner, fn.__self__)  # it was compiled in the class body
    return inner


def uncompiled_function(fn: Any) -> tuple[Any, str]:
    """Return the original of a compiled or disabled function, as ``torch.compile`` finds it, and a note for the
    user."""
    from torch._dynamo.eval_frame import innermost_fn

    given, fn = fn, compiled_module(fn)
    note = "" if fn is given else ALREADY_COMPILED
    while True:
        inner = _wrapped_function(fn)
        if isinstance(fn, torch.nn.Module):
            inner = fn.__dict__.get("_modules", {}).get("_orig_mod")
        if inner is None or inner is fn:
            return fn, note
        if getattr(fn, "_torchdynamo_disable", False):
            # torch.compile compiles the inner function if it gets such a function itself, not its caller.
            inside = innermost_fn(fn)
            if isinstance(fn, types.MethodType) and isinstance(inside, types.FunctionType):
                inside = types.MethodType(inside, fn.__self__)
            if inside is fn:
                return fn, note
            fn, note = (
                inside,
                "it is marked with torch.compiler.disable, which torch.compile(f) itself looks through",
            )
            continue
        fn = inner
        note = ALREADY_COMPILED


def copied(undo: Undo, fn: Any) -> Any:
    """Return an equivalent callable on new code objects, valid until ``undo``, which ``torch.compile`` treats as the
    original."""
    if not isinstance(fn, torch.nn.Module):
        return _copied_function(fn)
    if not _own_forward(fn):
        return _wrapped(fn) if _is_skipped(fn) else fn
    if not _has_hooks(fn):
        return _copy_method(fn.forward)  # calling the module runs only this
    # Its hooks run outside of Dynamo and must receive the module itself, so the copy is set on the module.
    _replace_forward(undo, fn)
    return fn


def _copied_function(fn: Any) -> Any:
    bound = isinstance(fn, types.MethodType)
    if not isinstance(fn.__func__ if bound else fn, types.FunctionType) or _is_wrapped(fn):
        return _wrapped(fn)
    return _copy_method(fn) if bound else _copy_function(fn)


def _replace_forward(undo: Undo, module: torch.nn.Module) -> None:
    own = vars(module)
    before = own.get("forward")
    undo.add(*(own.pop, "forward", None) if before is None else (own.__setitem__, "forward", before))
    own["forward"] = _copy_method(module.forward)


def _own_forward(module: torch.nn.Module) -> bool:
    """Return True if the module runs the program's own ``forward``, which can be copied."""
    return (
        type(module).__call__ is torch.nn.Module.__call__
        and getattr(module, "_compiled_call_impl", None) is None
        and isinstance(module.forward, types.MethodType)
        and isinstance(module.forward.__func__, types.FunctionType)
        and not _is_skipped(module)
    )


def _has_hooks(module: torch.nn.Module) -> bool:
    """Return True if calling the module runs hooks as well as ``forward``."""
    own = vars(module)
    shared = vars(torch.nn.modules.module)
    hooks = [v for k, v in own.items() if k.startswith(("_forward", "_backward")) and k.endswith("_hooks")]
    hooks += [
        v
        for k, v in shared.items()
        if k.startswith("_global_") and k.endswith("_hooks") and isinstance(v, dict)
    ]
    return any(hooks)


def _is_wrapped(fn: Any) -> bool:
    """Return True if torch.compile wraps a callable in a frame of torch's, since it has none that Dynamo evaluates.

    The test calls torch, whose rule differs between versions: not all wrap a function without a source file. If
    compilation is switched off, torch returns the callable.
    """
    compiled = torch._dynamo.optimize(_unused_backend)(fn)
    return getattr(compiled, "_torchdynamo_orig_callable", fn) is not fn


def _unused_backend(graph: Any, inputs: Any) -> Any:
    raise AssertionError("nothing is compiled with this backend")


def _is_skipped(module: torch.nn.Module) -> bool:
    """Return True if torch.compile wraps a module in a frame of torch's, as it does with torch's own modules."""
    from torch._dynamo import trace_rules

    return isinstance(module.forward, types.MethodType) and bool(trace_rules.check(module.forward))


def _copy_function(fn: types.FunctionType) -> types.FunctionType:
    clone = types.FunctionType(
        fn.__code__.replace(), fn.__globals__, fn.__name__, fn.__defaults__, fn.__closure__
    )
    clone.__kwdefaults__ = copy.copy(fn.__kwdefaults__)
    clone.__dict__.update(fn.__dict__)
    clone.__qualname__, clone.__module__, clone.__doc__ = fn.__qualname__, fn.__module__, fn.__doc__
    clone.__annotations__ = dict(fn.__annotations__)
    return clone


def _copy_method(method: Any) -> types.MethodType:
    if source_places.is_disable_wrapper(method.__func__.__code__):
        return cast(types.MethodType, method)
    return types.MethodType(_copy_function(method.__func__), method.__self__)


def _wrapped(fn: Any) -> Any:
    """Return a copy of the wrapper that ``torch.compile`` puts around a callable without a frame of its own."""
    from torch._dynamo import external_utils

    return _copy_function(external_utils.wrap_inline(fn))
