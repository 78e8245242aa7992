"""Suppression of torch's probes of the C++ compiler: a code-only capture needs none, so none need be installed.

During codegen, torch probes whether the compiler supports an instruction set, and what kind it is, since some loops are
generated differently for each kind.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..ground import hook_points
from ..ground.hooks import free_hook
from ..ground.undo import Undo

_KINDS = tuple(
    f"torch._inductor.cpp_builder:is_{kind}"
    for kind in ("gcc", "clang", "intel_compiler", "apple_clang", "msvc_cl")
)
"""Torch's cached functions that test for one kind of compiler during codegen."""

_ISAS = "torch._inductor.cpu_vec_isa:valid_vec_isa_list"
"""Torch's cached function for the instruction sets that both processor and compiler support."""

_ALL_ISAS = "torch._inductor.cpu_vec_isa:supported_vec_isa_list"
"""All of torch's instruction sets; each caches whether the compiler supports it."""


class _Local(threading.local):
    suppressed: bool = False
    note: Callable[[str], None] | None = None
    assumed: list[str] | None = None
    """Missing compilers for which code was generated."""


_local = _Local()


@contextlib.contextmanager
def without_probing(note: Callable[[str], None]) -> Iterator[None]:
    """Assume, for the duration, that the compiler supports the processor's vector ISA; pass assumptions to ``note``."""
    with Undo() as undo, undo:
        skip_probes(undo, note)
        yield


def skip_probes(undo: Undo, note: Callable[[str], None]) -> None:
    """Suppress probes as ``without_probing`` does, until ``undo``.

    The assumed results are then cleared, since a later build in this process must probe the compiler.
    """
    user = object()
    undo.add(_end, user)
    _begin(user)
    kinds = [getattr(*place) for path in _KINDS if (place := hook_points.find(path)) is not None]
    assumed: list[str] = []
    undo.add(_clear_kinds, [kind for kind in kinds if _is_unused(kind)], assumed)
    for name, value in (("suppressed", True), ("note", note), ("assumed", assumed)):
        undo.add(setattr, _local, name, getattr(_local, name))
        setattr(_local, name, value)


class _ProbeState:
    """The probes that torch had not run when the first active capture began."""

    def __init__(self) -> None:
        known = hook_points.find(_ALL_ISAS)
        kinds = list(getattr(*known)) if known is not None else []
        place = hook_points.find(_ISAS)
        probes = [getattr(*place)] if place is not None else []
        probes += [value for kind in kinds for base in type(kind).__mro__ for value in vars(base).values()]
        self.probes: list[Any] = [
            probe for probe in dict.fromkeys(filter(callable, probes)) if _is_unused(probe)
        ]
        self.described = [(kind, dict(vars(kind))) for kind in kinds if _is_unused(type(kind).__bool__)]
        """Attributes of each instruction set, which is one object that stores the compiler's result."""

    def forget(self) -> None:
        for probe in self.probes:
            probe.cache_clear()
        for kind, described in self.described:
            vars(kind).clear()
            vars(kind).update(described)


lock = threading.Lock()
_active: dict[object, _ProbeState] = {}
"""The first capture's state, for each active capture, since their assumptions share the process's tables."""


def _begin(user: object) -> None:
    with lock:
        _active[user] = next(iter(_active.values())) if _active else _ProbeState()


def _end(user: object) -> None:
    with lock:
        if list(_active) == [user]:
            _active[user].forget()
        _active.pop(user, None)


def _is_unused(probe: Any) -> bool:
    """Return True if a cached function has not been called yet."""
    return hasattr(probe, "cache_clear") and not probe.cache_info().currsize


def _clear_kinds(kinds: list[Any], assumed: list[str]) -> None:
    """Clear torch's cached kind of a compiler that is missing."""
    for kind in kinds if assumed else ():
        kind.cache_clear()


@free_hook("torch._inductor.cpu_vec_isa:VecISA.check_build")
def check_build(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Return True without compiling the test for an instruction set, in a code-only capture."""
    return True if _local.suppressed else real(*args, **kwargs)


@free_hook("torch._inductor.cpp_builder:get_cpp_compiler")
def get_cpp_compiler(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the C++ compiler; if there is none, in a code-only capture, the one Inductor looked for, with a note."""
    if not _local.suppressed:
        return real(*args, **kwargs)
    try:
        return real(*args, **kwargs)
    except RuntimeError:  # torch has several exception types for a missing compiler
        name = _expected_compiler()
        if _local.assumed is not None:
            _local.assumed.append(name)
        if _local.note is not None:
            _local.note(f"no C++ compiler was found: the code is what Inductor generates for {name}")
        return name


def _expected_compiler() -> str:
    import torch._inductor.config as config

    names = config.cpp.cxx if isinstance(config.cpp.cxx, (list, tuple)) else (config.cpp.cxx,)
    return next((str(name) for name in reversed(names) if name), "g++")
