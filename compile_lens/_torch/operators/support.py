"""Support for an operator in this torch, from its table of kernels, its dispatcher, and Inductor's registries."""

from __future__ import annotations

import difflib
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch

from ...errors import UsageError
from ...record.support import BACKENDS, Implementation, Overload
from . import native_functions
from .native_functions import Entry

KEYS = {"cpu": "CPU", "cuda": "CUDA", "mps": "MPS"}
"""Dispatch keys of the backends. PyTorch uses ``CUDA`` for AMD's GPUs too."""

MPS_ON_CPU = {
    "embedding_renorm_": "embedding_renorm_",
    "linalg_svd": "_linalg_svd.U",
    "linalg_svd.U": "_linalg_svd.U",
}
"""Operators that the MPS backend itself runs on the CPU (``aten/src/ATen/mps/MPSFallback.mm``), if the table has no MPS
kernel for the operator on the right."""


def source(namespace: str = "aten") -> str:
    """Return the source of the facts about operators of a namespace."""
    if namespace != "aten":
        return f"what is registered in this process, torch {torch.__version__}"
    return f"torchgen/{native_functions.PATH} of torch {torch.__version__}"


def entries() -> dict[str, Entry]:
    """Return the table. Raises ``UsageError`` if this torch lacks it."""
    rows = native_functions.table()
    if not rows:
        raise UsageError(
            f"torch {torch.__version__} came without its table of operators (torchgen/{native_functions.PATH}): "
            "install torch from an official wheel, which has it"
        )
    return dict(rows)


def names_of(op: Any) -> tuple[str, str, str]:
    """Return ``(namespace, name, overload)`` for a user's operator or name; the overload is ``""`` if not given.

    Raises ``UsageError`` if ``op`` is no operator, or a function of several.
    """
    if isinstance(op, str):
        text = op.strip().removeprefix("torch.ops.").replace("::", ".")
        parts = text.split(".")
        if not text or len(parts) > 3 or not all(part.isidentifier() for part in parts):
            raise UsageError(
                f"{op!r} is not the name of an operator: write, for example, 'sort' or 'aten.sort.stable'"
            )
        if len(parts) == 1:
            return "aten", parts[0], ""
        if len(parts) == 3:
            return parts[0], parts[1], parts[2]
        known = parts[0] in {name.partition("::")[0] for name in _registered()}
        return (parts[0], parts[1], "") if known else ("aten", parts[0], parts[1])
    if isinstance(op, torch._ops.OpOverload):
        namespace, _, name = op._schema.name.partition("::")
        return namespace, name, op._overloadname
    if isinstance(op, torch._ops.OpOverloadPacket):
        namespace, _, name = op._qualified_op_name.partition("::")
        return namespace, name, ""
    return _of_function(op)


def _of_function(op: Any) -> tuple[str, str, str]:
    from torch.jit import _builtins

    find: Callable[[Any], str | None] = getattr(_builtins, "_find_builtin", lambda _: None)
    with warnings.catch_warnings():  # the lookup uses deprecated parts of torch.jit
        warnings.simplefilter("ignore")
        full_name = find(op) if callable(op) else None
    name = getattr(op, "__name__", "")
    if not full_name and type(op).__name__ == "method_descriptor" and f"aten::{name}" in _registered():
        full_name = f"aten::{name}"  # torch.Tensor.sort
    if full_name and not hasattr(
        op, "__code__"
    ):  # einsum is mapped too, but is a Python function that calls several
        namespace, _, name = full_name.partition("::")
        return namespace, name, ""
    if not callable(op):
        raise UsageError(f"{op!r} is {type(op).__name__}: give an operator or its name, such as 'aten.sort'")
    bases = {full.partition(".")[0] for full in _registered()}
    hint = f", such as 'aten.{name}'" if f"aten::{name}" in bases else ""
    raise UsageError(
        f"{getattr(op, '__qualname__', op)!r} is a Python function, which may call several operators: name one of "
        f"them{hint}, or capture a call of it and call capture.unsupported(target)"
    )


def overloads(op: Any) -> tuple[Overload, ...]:
    """Return every overload of ``op``. Raises ``UsageError``, with close matches, if there is none."""
    namespace, name, wanted = names_of(op)
    if namespace != "aten":
        return _custom(op, namespace, name, wanted)
    table = entries()
    registered = _registered()
    names = [n for n in table if n.partition(".")[0] == name and f"aten::{n}" in registered]
    if not names:
        bases = sorted({n.partition(".")[0] for n in table})
        raise UsageError(
            f"there is no operator {_shown(op)} in torch {torch.__version__}{_close(name, bases)}"
        )
    if wanted:
        full = name if wanted == "default" else f"{name}.{wanted}"
        if full not in names:
            listed = ", ".join(_aten(n) for n in names)
            raise UsageError(f"aten.{name} has no overload {wanted!r}; it has {listed}")
        names = [full]
    else:
        names = [n for n in names if not _writes_out(n)] or names
    return tuple(_overload(table, n) for n in names)


def is_higher_order(name: str) -> bool:
    """Return True for an operator that runs functions, such as ``cond``."""
    return name in getattr(torch._ops, "_higher_order_ops", ())


KEPT_IN_PLACE = frozenset(
    "_amp_update_scale_ as_strided_ bernoulli_ copy_ fill_ index_put_ resize_ resize_as_ scatter_ scatter_add_ "
    "scatter_reduce_ set_ unsqueeze_".split()
)
"""In-place ATen operators that may remain after AOTAutograd, or that Inductor adds: for the write to an input at the
end of a graph, for its own lowerings, and for kernels that it calls. Some ``_foreach_*_`` are also such."""


def functional_name(overload: str) -> str:
    """Return the functional operator for one that writes in place or to ``out=``: ``add`` for ``aten.add_.Tensor``.
    Return ``""`` for an operator that does neither, or that functional graphs may contain."""
    name = overload.removeprefix("aten.")
    op = _operator("aten", name)
    base = name.partition(".")[0]
    kept = base in KEPT_IN_PLACE or base.startswith("_foreach_")
    if kept or op is None or not op._schema.is_mutable:
        return ""
    plain = f"__{base[3:]}" if base.startswith("__i") else base.removesuffix("_")
    if plain == base and not _writes_out(name):
        return ""
    names = {n.partition(".")[0] for n in entries()}
    return next((n for n in (f"{base}functional", plain) if n in names), "")


def _writes_out(name: str) -> bool:
    """Return True if an overload writes its results to keyword arguments (``out=``)."""
    op = _operator("aten", name)
    return op is not None and any(
        a.kwarg_only and a.alias_info is not None and a.alias_info.is_write for a in op._schema.arguments
    )


def _shown(op: Any) -> str:
    return repr(op) if isinstance(op, str) else str(op)


def _close(name: str, names: list[str]) -> str:
    close = difflib.get_close_matches(name, names, n=5, cutoff=0.6)
    close += [n for n in names if name and name in n and n not in close][: 5 - len(close)]
    return (
        f"; close to it are {', '.join(f'aten.{n}' for n in close)}"
        if close
        else "; names look like 'aten.sort'"
    )


def _aten(name: str) -> str:
    return f"aten.{name}"


def _overload(table: dict[str, Entry], name: str) -> Overload:
    entry = table[name]
    implementations = tuple(_implementation(table, name, backend) for backend in BACKENDS)
    others = native_functions.other_keys(table, name, tuple(KEYS.values()))
    registered = _operator("aten", name)
    inductor, note = _inductor(registered, implementations)
    schema = str(registered._schema).partition("::")[2] if registered is not None else entry.schema
    return Overload(_aten(name), schema, implementations, others, inductor, note)


def lookup(target: str, backend: str) -> Implementation | None:
    """Return the implementation of an operator such as ``"aten.sort.stable"`` on a backend; None if it is not in
    torch's table."""
    parts = target.split(".")
    if parts[0] != "aten" or len(parts) < 2:
        return None
    table = entries()
    name = ".".join(p for p in parts[1:] if p != "default")
    return _implementation(table, name, backend) if name in table else None


def _implementation(table: dict[str, Entry], name: str, backend: str) -> Implementation:
    how, by = native_functions.implementation(table, name, KEYS[backend])
    if how != "kernel" and _dispatches(f"aten::{name}", backend):
        if how == "none":
            return Implementation(backend, "registered")  # in Python, or elsewhere outside of the table
    if backend == "mps" and how != "kernel" and name in MPS_ON_CPU:
        part = MPS_ON_CPU[name]
        if part not in table or native_functions.implementation(table, part, "MPS")[0] != "kernel":
            return Implementation(backend, "on the CPU", "aten/src/ATen/mps/MPSFallback.mm")
    return Implementation(backend, how, by)


def _custom(op: Any, namespace: str, name: str, wanted: str) -> tuple[Overload, ...]:
    """Return the overloads of a library's operator, for which only this process's registrations are known."""
    own = [n for n in _registered() if n.partition(".")[0] == f"{namespace}::{name}"]
    if wanted:
        full = f"{namespace}::{name}" + ("" if wanted == "default" else f".{wanted}")
        own = [n for n in own if n == full]
    if not own:
        names = sorted(
            {n.partition("::")[2].partition(".")[0] for n in _registered() if n.startswith(f"{namespace}::")}
        )
        close = difflib.get_close_matches(name, names, n=5) or names[:5]
        more = f"; in {namespace} there are {', '.join(f'{namespace}.{n}' for n in close)}" if close else ""
        raise UsageError(f"there is no operator {_shown(op)} in this process{more}; import its library first")
    supported = []
    for full in sorted(own):
        implementations = tuple(
            Implementation(b, "registered" if _dispatches(full, b) else "unknown") for b in BACKENDS
        )
        registered = _operator(namespace, full.partition("::")[2])
        schema = str(registered._schema).partition("::")[2] if registered is not None else ""
        supported.append(
            Overload(
                full.replace("::", "."), schema, implementations, (), *_inductor(registered, implementations)
            )
        )
    return tuple(supported)


def _registered() -> frozenset[str]:
    return frozenset(torch._C._dispatch_get_all_op_names())


def is_of_library(name: str) -> bool:
    """Return True for a bare name that another library in this process has and ATen lacks."""
    libraries = {
        full.partition("::")[0] for full in _registered() if full.partition("::")[2].partition(".")[0] == name
    }
    return bool(libraries) and "aten" not in libraries


def _dispatches(name: str, backend: str) -> bool:
    """Return True if this process has a kernel for an operator on a backend."""
    try:
        return bool(torch._C._dispatch_has_computed_kernel_for_dispatch_key(name, KEYS[backend]))
    except RuntimeError:  # it is in the table but not registered
        return False


def _operator(namespace: str, name: str) -> Any:
    base, _, overload = name.partition(".")
    packet = getattr(getattr(torch.ops, namespace, None), base, None)
    return getattr(packet, overload or "default", None)


# Inductor


def _inductor(op: Any, implementations: tuple[Implementation, ...]) -> tuple[str, str]:
    """Return Inductor's treatment of an operator, as a short term and as a sentence."""
    if op is None:
        return "not registered", "Inductor does not know it: it is not registered in this process."
    try:
        from torch._inductor import decomposition, lowering
    except ImportError:
        return "", "This torch has no Inductor to query."
    if op._schema.is_mutable:
        return (
            "not registered",
            "It writes to its arguments: AOTAutograd replaces it by the variant that does not.",
        )
    lowered = lowering.lowerings.get(op)
    decomposed = op in decomposition.select_decomp_table()
    if decomposed and lowered is None:
        return "decomposition", "It is decomposed into other operators before it is lowered."
    first = " A decomposition looks at it before that, and decomposes some calls." if decomposed else ""
    if getattr(lowered, "_is_fallback_handler", False):
        sentence = "Inductor calls it as it is: it generates no code for it, and fuses nothing with it."
        return "library call", sentence + first
    if lowered is not None and _is_choice(lowered):
        sentence = (
            "Inductor calls a library for it, or generates it from a template where a setting allows that."
        )
        return "library or template", sentence + first
    if lowered is not None:
        limits = _limits(op)
        sentence = "Inductor has a lowering for it" + ("." if limits else ", and generates code.")
        if _may_call_kernel(lowered):
            sentence = (
                "Inductor has a lowering for it, which generates code or calls the operator's kernel, by type, size, "
                "device or setting: a capture says which."
            )
        return "lowering", sentence + limits + first
    if any(i.kind == "composite" for i in implementations) and op.has_kernel_for_dispatch_key(_IMPLICIT):
        return "decomposition", "It is decomposed into the operators that it calls before Inductor sees it."
    return "not registered", "Inductor has no lowering for it: where it meets it, it calls it as it is."


def _is_choice(lowering: Any) -> bool:
    """Return True if a lowering chooses among library calls and templates (products, convolutions)."""
    home = getattr(lowering, "__module__", "") or ""
    return home.startswith("torch._inductor.kernel") or home == "torch._inductor.mkldnn_lowerings"


def _may_call_kernel(lowering: Any) -> bool:
    """Return True if a lowering that generates code may instead use one of Inductor's fallbacks, which calls the
    operator."""
    function = inspect.unwrap(lowering)
    code = getattr(function, "__code__", None)
    read = [function.__globals__.get(name) for name in code.co_names] if code is not None else []
    return any(
        getattr(value, "_is_fallback_handler", False) is True
        or getattr(value, "__name__", "") == "fallback_handler"
        for value in read
    )


_IMPLICIT = torch._C.DispatchKey.CompositeImplicitAutograd


def _limits(op: Any) -> str:
    from ...record.support import NEEDS

    feature, words = NEEDS.get(op._schema.name.partition("::")[2], ("", ""))
    if not feature:
        return ""
    by_backend = {backend: features(backend) for backend in BACKENDS}
    lacking = [b for b, has in by_backend.items() if has is not None and feature not in has]
    able = [b for b, has in by_backend.items() if has is not None and feature in has]
    sentence = f" It needs {words}, which Inductor can generate for {', '.join(able) or 'no device'}"
    return f"{sentence}; for {', '.join(lacking)} it calls the library." if lacking else f"{sentence}."


def features(device: str) -> tuple[str, ...] | None:
    """Return the features of Inductor's backend for a device type beyond loops (``SCAN``, ``SORT``); None if not
    observed."""
    try:
        from torch._inductor.codegen import common

        return tuple(sorted(f.name for f in common.get_backend_features(device)))
    except (ImportError, AttributeError, AssertionError, RuntimeError, NotImplementedError):
        return None  # some versions of torch query the absent device for this


def lowering_kind(target: str) -> str:
    """Return Inductor's treatment of an operator as a short term, ``""`` for an unknown operator."""
    op = _of_target(target)
    return _inductor(op, ())[0] if op is not None else ""


def may_call(target: str) -> bool:
    """Return True if Inductor's lowering of an operator may call the operator instead of generating code."""
    try:
        from torch._inductor import lowering
    except ImportError:
        return False
    lowered = lowering.lowerings.get(_of_target(target))
    return lowered is not None and _may_call_kernel(lowered)


def _of_target(target: str) -> Any:
    parts = target.split(".")
    return _operator(parts[0], ".".join(p for p in parts[1:] if p != "default"))
