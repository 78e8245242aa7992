"""Transfer of a program's custom operators to another process.

Torch's operators, and those of modules that the other process can import, are sent by name. An operator that a script
or notebook cell defined with ``torch.library.custom_op`` or ``triton_op`` is registered again with all its parts:
kernels, fake, autograd, vmap, autocast. Registrations with ``torch.library.Library`` are in C++ and cannot be read, so
such an operator is an error that names it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import os
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
import torch._library.custom_ops as custom_ops
import torch._library.triton as triton_ops
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

from ...errors import UsageError
from . import inductor_tables, registrations
from .native_functions import TORCH_NAMESPACES as _TORCHS
from .transfers import Registration


class OutOfOrder(UsageError):
    """Raised if two modules register the same operator and the other process imported them in another order. A new
    process imports them in the order of the request."""

    retry_in_new_process = True


Importable = Callable[[str], bool]
"""A function that returns True if another process can import the module of a name."""


class OperatorTransfer:
    """The operators of one request: those that it refers to and those that its code names.

    Args:
        importable: returns True if the other process can import the module of a name.
        own: the program's own modules by name, including its script.
        settings: torch's settings that are not plain values.
        tables: the original entries of Inductor's tables.
    """

    def __init__(
        self,
        importable: Importable,
        own: Mapping[str, Any],
        settings: Sequence[registrations.Setting] = (),
        tables: inductor_tables.Own | None = None,
    ) -> None:
        self._importable = importable
        self._own = own
        self._told = (settings, tables)
        self._places: list[Registration] | None = None
        self._names: set[str] = set()
        self._names_there: set[str] = set()
        self._sent: set[str] = set()
        self.registered, self._modules = _kernels_given_to_torch(importable, own)

    kinds = (
        OpOverload,
        OpOverloadPacket,
        HigherOrderOperator,
        type(torch.ops.aten),
        custom_ops.CustomOpDef,
        torch.library.Library,
    )
    """Types that are transferred in a special way."""

    def places(self) -> list[Registration]:
        """Return the program's other registrations with torch."""
        if self._places is None:
            self._places = [*registrations.collect(self._own, *self._told)]
        return self._places

    def mark(self) -> Any:
        """Return the operators sent so far, for ``back``."""
        return set(self._sent)

    def back(self, mark: Any) -> None:
        """Discard the operators recorded as sent since ``mark``, which do not arrive."""
        self._sent = mark

    def reduced(self, value: Any) -> Any:
        """Return the pickle reduction of an operator; None for another value."""
        if isinstance(value, types.CodeType):
            self._names.update(_names_in(value))
        if isinstance(value, OpOverload):
            packet, _, overload = value.name().partition(".")
            return _overload, (packet, self._source(packet), overload or "default")
        if isinstance(value, OpOverloadPacket):
            packet = str(value._qualified_op_name)
            return _packet, (packet, self._source(packet))
        if isinstance(value, HigherOrderOperator) and _of_torch(value) is value:
            return _higher_order, (value.name(),)
        if isinstance(value, type(torch.ops.aten)) and value is getattr(torch.ops, _short(value), None):
            return getattr, (torch.ops, _short(value))
        if isinstance(value, custom_ops.CustomOpDef):
            return self._operator(value)
        if isinstance(value, torch.library.Library):
            raise UsageError(
                f"it holds the torch.library.Library of {value.ns!r}: what that registered cannot be read"
            )
        return None

    def named_there(self, code: types.CodeType) -> None:
        """Record names used in code that the other process imports, since its module may not import the operators."""
        self._names_there.update(_names_in(code))

    def rest(self) -> Any:
        """Return further operators, which code only names; None if there are no more."""
        modules, self._modules = self._modules, []
        if modules:
            return [_Module(name) for name in modules]
        names = self._names | self._names_there
        if "ops" not in names and not self._sent:
            return None
        known = {name.partition(".")[0] for name in torch._C._dispatch_get_all_op_names()}
        operators: list[Any] = []
        for name in sorted(name for name in known - self._sent if names.issuperset(name.split("::"))):
            self._sent.add(name)
            if name.partition("::")[0] not in _TORCHS:
                source = self._source(name)
                if source or self._names.issuperset(name.split("::")):
                    operators.append(_Named(name, source))
        return operators or None

    def _source(self, name: str) -> Any:
        """Return the definition of an operator, or the name of the module that registers it; ``""`` for torch's own."""
        if name.partition("::")[0] in _TORCHS:
            return ""
        definition = custom_ops.OPDEFS.get(name)
        if definition is None:
            self._refuse_kernels_of_a_script(name)
        return definition or self._module_of(name)

    def _refuse_kernels_of_a_script(self, name: str) -> None:
        """Raise UsageError if a module's operator has kernels from a script or cell, which cannot be read for the
        transfer."""
        start = name.replace("::", "/")
        if not any(key.startswith((f"{start}/", f"{start}.")) for key in torch.library._impls):
            return
        own = _file_that_defined(name)
        dump = torch._C._dispatch_dump(name)
        for device, file in re.findall(r"^(\w+): registered at (.+?):\d+ ", dump, re.MULTILINE):
            at = os.path.abspath(file)
            if file.endswith((".py", ">")) and at != own and not _is_of_a_module(at):
                raise UsageError(
                    f"the program gave {name} a kernel for {device} with torch.library, which cannot be read: "
                    "register it in a module that the program imports"
                )

    def _operator(self, definition: Any) -> Any:
        name = f"{definition._namespace}::{definition._name}"
        last = custom_ops.OPDEFS.get(name, definition)
        if last is not definition:
            raise UsageError(
                f"the operator {name} was registered a second time, in {_module_that_made(last)}: torch calls "
                "the one registered last, which depends on the order of imports. Use two names"
            )
        self._sent.add(name)
        module = _module_that_made(definition)
        if self._importable(module):
            path = _path_in(module, definition)
            return (_of_module, (module, path)) if path else (_registered_by, (module, name))
        given = (
            definition._namespace,
            definition._name,
            definition._schema,
            [str(tag.name) for tag in definition._tags],
        )
        return _create, given, _registered_parts(definition), None, None, _restore

    def _module_of(self, name: str) -> str:
        """Return the module that defined an operator with a ``Library`` if another process can import it, else
        ``""``."""
        file = _file_that_defined(name)
        for module in list(sys.modules.values()):
            if file and getattr(module, "__file__", None) == file and self._importable(module.__name__):
                return str(module.__name__)
        return ""


class _Named:
    """An operator that code names."""

    def __init__(self, name: str, source: Any) -> None:
        self._given = (name, source)

    def __reduce__(self) -> Any:
        return _packet, self._given


class _Module:
    """A module that registers kernels for torch's operators on import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> Any:
        return importlib.import_module, (self._name,)


def _kernels_given_to_torch(
    importable: Importable, own: Mapping[str, Any]
) -> tuple[frozenset[str], list[str]]:
    """Return the program's kernels for torch's own operators, as torch's keys, and the modules that register them.

    The other process must import these modules for any function, since they change what torch compiles. Raises
    ``UsageError`` if a script or notebook cell registered such a kernel.
    """
    places_by_key: dict[str, Any] = {}
    for name, module in own.items():
        if name == "__main__" or importable(name):
            file = str(module.__file__)
            words = _words_beside_a_library(file)
            for key in torch.library._impls if words else ():
                namespace, operator, _ = key.split("/")
                if namespace in _TORCHS and operator.partition(".")[0] in words:
                    places_by_key[key] = name, file
    modules = {}
    for key, (name, file) in places_by_key.items():
        namespace, operator, device = key.split("/")
        dumped = torch._C._dispatch_dump(f"{namespace}::{operator}")
        places = re.findall(rf"^{re.escape(device)}: registered at (.+?):\d+ ", dumped, re.MULTILINE)
        if file in map(os.path.abspath, places) or any(
            place.endswith("torch/library.py") for place in places
        ):
            if name == "__main__":
                raise UsageError(
                    f"the program gave {namespace}::{operator} a kernel for {device} with torch.library, which "
                    "cannot be read: register it in a module that the program imports"
                )
            modules[key] = name
    return frozenset(modules), sorted(set(modules.values()))


@functools.cache
def _words_of(file: str, written: int) -> frozenset[str]:
    with open(file, encoding="utf-8", errors="replace") as opened:
        text = opened.read()
    return frozenset(re.findall(r"\w+", text)) if _LIBRARY.search(text) else frozenset()


def _words_beside_a_library(file: str) -> frozenset[str]:
    """Return the words of a file that uses ``torch.library``; empty for another or a missing file."""
    try:
        return _words_of(file, os.stat(file).st_mtime_ns)
    except OSError:
        return frozenset()


_LIBRARY = re.compile(
    r"\bLibrary\s*\(|\blibrary\s*\.\s*(impl|register_\w+)\b|\bfrom\s+torch\.library\s+import\b"
)


def _names_in(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, str) and len(constant) < 200:
            yield from re.split(r"::|\.", constant)  # getattr(torch.ops, "mine")


def _short(namespace: Any) -> str:
    return str(getattr(namespace, "name", "")).removeprefix("torch.ops.")


def _of_torch(operator: Any) -> Any:
    return getattr(torch.ops.higher_order, operator.name(), None)


def _file_that_defined(name: str) -> str:
    with contextlib.suppress(RuntimeError):
        match = re.search(r"^debug: registered at (.+?):\d+", torch._C._dispatch_dump(name), re.MULTILINE)
        if match and os.path.exists(match[1]):
            return os.path.abspath(match[1])
    return ""


def _is_of_a_module(file: str) -> bool:
    """Return True if the program imported the file, rather than ran it."""
    program = sys.modules.get("__main__")
    others = [module for module in list(sys.modules.values()) if module is not program]
    return any(os.path.abspath(getattr(module, "__file__", None) or "") == file for module in others)


def _module_that_made(definition: Any) -> str:
    function = definition._init_fn
    while getattr(function, "__module__", "") in (triton_ops.__name__, custom_ops.__name__):
        inside = _closure(function).get("fn")
        if inside is None:
            break
        function = inside
    return str(getattr(function, "__module__", "") or "")


def _path_in(module: str, definition: Any) -> str:
    for name, value in list(vars(sys.modules[module]).items()):
        if value is definition:
            return name
    return ""


def _closure(function: Any) -> dict[str, Any]:
    code = getattr(function, "__code__", None)
    names, cells = getattr(code, "co_freevars", ()), getattr(function, "__closure__", None) or ()
    return dict(zip(names, (cell.cell_contents for cell in cells)))


def _registered_parts(definition: Any) -> dict[str, Any]:
    """Return everything that the program registered for an operator."""
    kernels = {}
    for kind, wrapped in definition._backend_fns.items():
        kernel = _closure(inspect.unwrap(wrapped)).get("fn")
        if kernel is None:
            raise UsageError(f"the kernel of {definition} for {kind or 'all devices'} cannot be read")
        kernels[kind] = kernel
    return {
        "function": definition._init_fn,
        "kernels": kernels,
        "fake": definition._abstract_fn,
        "autograd": (definition._backward_fn, definition._setup_context_fn),
        "dispatch": dict(definition._torch_dispatch_fns),
        "vmap": definition._vmap_fn,
        "autocast": _autocast(definition),
        "disabled": set(definition._disabled_kernel),
        "effect": _effect(definition),
        "triton": triton_ops.triton_ops_to_kernels.get(definition._qualname),
    }


def _autocast(definition: Any) -> dict[str, Any]:
    known = getattr(definition, "_autocast_dtype", None)
    if known is None:  # torch 2.11 has an attribute per device type
        known = {kind: getattr(definition, f"_autocast_{kind}_dtype", None) for kind in ("cpu", "cuda")}
    return {kind: dtype for kind, dtype in known.items() if dtype is not None}


def _effect(definition: Any) -> str | None:
    effect = torch._library.simple_registry.singleton.find(definition._qualname).effect.effect
    return None if effect is None else str(effect.name)


# In the other process --------------------------------------------------------------------------------------


def _packet(name: str, source: Any) -> Any:
    """Return the operator with a name. ``source`` is its definition, already registered, or the module that registers
    it."""
    if source and isinstance(source, str):
        importlib.import_module(source)
    namespace, _, operator = name.partition("::")
    try:
        return getattr(getattr(torch.ops, namespace), operator)
    except AttributeError:
        raise UsageError(
            f"the operator {name} is not known there: what torch.library.Library, define and impl were given cannot be "
            "read from another process. Define it with torch.library.custom_op or triton_op, or in a module that the "
            "function imports"
        ) from None


def _overload(name: str, source: Any, overload: str) -> Any:
    return getattr(_packet(name, source), overload)


def _higher_order(name: str) -> Any:
    return getattr(torch.ops.higher_order, name)


def _of_module(module: str, name: str) -> Any:
    definition = getattr(importlib.import_module(module), name)
    _check_last(definition._qualname, module)
    return definition


def _registered_by(module: str, name: str) -> Any:
    importlib.import_module(module)
    return _check_last(name, module)


def _check_last(name: str, module: str) -> Any:
    """Return the operator that ``module`` defined. Raises OutOfOrder if another module has registered it since."""
    definition = custom_ops.OPDEFS[name]
    if (other := _module_that_made(definition)) != module:
        raise OutOfOrder(
            f"the operator {name} is registered by {module} and by {other}: torch calls the last, which is that of "
            f"{module} here, and of {other} there. Give them two names"
        )
    _last_modules[name] = module, weakref.ref(sys.modules["__main__"])
    return definition


_last_modules: dict[str, tuple[str, weakref.ref[Any]]] = {}
"""The module with an operator's last registration, and the script of that request, by operator."""


def check_order() -> None:
    """Raise ``OutOfOrder`` if this request registered again an operator that was already registered here."""
    for name, (module, script) in [*_last_modules.items()]:
        if script() is sys.modules["__main__"]:
            _check_last(name, module)
    _last_modules.clear()


def _create(namespace: str, name: str, schema: str, tags: list[str]) -> Any:
    """Return an operator with only a schema, since its further registrations may refer to it."""
    return custom_ops.CustomOpDef(
        namespace, name, schema, _unregistered, [getattr(torch.Tag, tag) for tag in tags]
    )


def _unregistered(*args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("the operator is still being registered")


def _restore(definition: Any, given: dict[str, Any]) -> None:
    definition._init_fn = given["function"]
    for kind, kernel in given["kernels"].items():
        definition.register_kernel(kind)(kernel)
    definition._disabled_kernel.update(given["disabled"])
    if given["fake"] is not None:
        definition.register_fake(given["fake"])
    backward, context = given["autograd"]
    if backward is not None:
        definition.register_autograd(backward, setup_context=context)
    for kind, rule in given["dispatch"].items():
        definition.register_torch_dispatch(kind, rule)
    if given["vmap"] is not None:
        definition.register_vmap(given["vmap"])
    for kind, dtype in given["autocast"].items():
        definition.register_autocast(kind, dtype)
    if given["effect"] != _effect(definition):
        effects: Any = torch._library.effects.EffectType
        definition.register_effect(effects[given["effect"]] if given["effect"] else None)
    if given["triton"] is not None:
        triton_ops.triton_ops_to_kernels[definition._qualname] = given["triton"]
