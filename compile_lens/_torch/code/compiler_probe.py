"""Keeps torch from probing the C++ compiler: code only needs none, and none need be installed.

Torch probes it during codegen: whether it supports an instruction set of the processor, and its kind, since some loops
are generated differently for each.
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
"""Torch's cached functions for the kind of the compiler, used during codegen."""

_ISAS = "torch._inductor.cpu_vec_isa:valid_vec_isa_list"
"""The instruction sets that processor and compiler support, which torch caches as well."""

_KNOWN = "torch._inductor.cpu_vec_isa:supported_vec_isa_list"
"""All instruction sets that torch knows; each caches whether the compiler supports it."""


class _Local(threading.local):
    asked_for: bool = False
    note: Callable[[str], None] | None = None
    assumed: list[str] | None = None
    """Compilers that are missing, and for which code was generated."""


_local = _Local()


@contextlib.contextmanager
def without_probing(note: Callable[[str], None]) -> Iterator[None]:
    """Assume that the compiler supports the processor's vector instructions; ``note`` gets the assumptions."""
    with Undo() as undo, undo:
        skip_probes(undo, note)
        yield


def skip_probes(undo: Undo, note: Callable[[str], None]) -> None:
    """Like ``without_probing``, until ``undo``.

    A later real build in this process must probe the compiler too, so the answers are not left behind.
    """
    mine = object()
    undo.add(_end, mine)
    _begin(mine)
    kinds = [getattr(*place) for path in _KINDS if (place := hook_points.find(path)) is not None]
    assumed: list[str] = []
    undo.add(_forget, [kind for kind in kinds if _is_unused(kind)], assumed)
    for name, value in (("asked_for", True), ("note", note), ("assumed", assumed)):
        undo.add(setattr, _local, name, getattr(_local, name))
        setattr(_local, name, value)


class _ProbeState:
    """The probes that torch had not run when the first of the active captures began."""

    def __init__(self) -> None:
        known = hook_points.find(_KNOWN)
        kinds = list(getattr(*known)) if known is not None else []
        place = hook_points.find(_ISAS)
        probes = [getattr(*place)] if place is not None else []
        probes += [value for kind in kinds for base in type(kind).__mro__ for value in vars(base).values()]
        self.probes: list[Any] = [
            probe for probe in dict.fromkeys(filter(callable, probes)) if _is_unused(probe)
        ]
        self.described = [(kind, dict(vars(kind))) for kind in kinds if _is_unused(type(kind).__bool__)]
        """Each instruction set is one object, which keeps what the compiler answered."""

    def forget(self) -> None:
        for probe in self.probes:
            probe.cache_clear()
        for kind, described in self.described:
            vars(kind).clear()
            vars(kind).update(described)


lock = threading.Lock()
_active: dict[object, _ProbeState] = {}
"""The first one's state, for each active capture: their assumptions are in tables of the process."""


def _begin(mine: object) -> None:
    with lock:
        _active[mine] = next(iter(_active.values())) if _active else _ProbeState()


def _end(mine: object) -> None:
    with lock:
        if list(_active) == [mine]:
            _active[mine].forget()
        _active.pop(mine, None)


def _is_unused(probe: Any) -> bool:
    """Return True if a cached function has not been called yet."""
    return hasattr(probe, "cache_clear") and not probe.cache_info().currsize


def _forget(kinds: list[Any], assumed: list[str]) -> None:
    """Clear torch's cached kind of a compiler that is missing."""
    for kind in kinds if assumed else ():
        kind.cache_clear()


@free_hook("torch._inductor.cpu_vec_isa:VecISA.check_build")
def check_build(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Skip the question whether the compiler supports an instruction set of the processor, in code only."""
    return True if _local.asked_for else real(*args, **kwargs)


@free_hook("torch._inductor.cpp_builder:get_cpp_compiler")
def get_cpp_compiler(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the compiler that Inductor looked for if there is none, with a note, and generate code for it."""
    if not _local.asked_for:
        return real(*args, **kwargs)
    try:
        return real(*args, **kwargs)
    except RuntimeError:  # torch has an error of its own for each way of not finding one
        name = _looked_for()
        if _local.assumed is not None:
            _local.assumed.append(name)
        if _local.note is not None:
            _local.note(f"no C++ compiler was found: the code is what Inductor generates for {name}")
        return name


def _looked_for() -> str:
    import torch._inductor.config as config

    names = config.cpp.cxx if isinstance(config.cpp.cxx, (list, tuple)) else (config.cpp.cxx,)
    return next((str(name) for name in reversed(names) if name), "g++")
