"""Code is written without a C++ compiler being asked: code only needs none, and none need be installed.

Torch asks the compiler while it writes: whether it knows an instruction set that the processor has, and what kind
it is, for some loops are written differently for each.
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
"""What torch asks of a compiler while it writes code, and remembers."""

_ISAS = "torch._inductor.cpu_vec_isa:valid_vec_isa_list"
"""The instruction sets that processor and compiler know, which torch remembers as well."""

_KNOWN = "torch._inductor.cpu_vec_isa:supported_vec_isa_list"
"""All that torch knows; each remembers whether the compiler knows it."""


class _Local(threading.local):
    asked_for: bool = False
    note: Callable[[str], None] | None = None
    assumed: list[str] | None = None
    """Compilers that were not there and that code was written for."""


_local = _Local()


@contextlib.contextmanager
def without_probing(note: Callable[[str], None]) -> Iterator[None]:
    """Take the processor's word for its vector instructions; what was assumed is told to ``note``."""
    with Undo() as undo, undo:
        skip_probes(undo, note)
        yield


def skip_probes(undo: Undo, note: Callable[[str], None]) -> None:
    """As ``not_asked``, until ``undo``.

    A later real build in this process must ask the compiler too, so the answers are not left behind.
    """
    mine = object()
    undo.add(_end, mine)
    _begin(mine)
    kinds = [getattr(*found) for path in _KINDS if (found := hook_points.find(path)) is not None]
    assumed: list[str] = []
    undo.add(_forget, [kind for kind in kinds if _is_unused(kind)], assumed)
    for name, value in (("asked_for", True), ("note", note), ("assumed", assumed)):
        undo.add(setattr, _local, name, getattr(_local, name))
        setattr(_local, name, value)


class _ProbeState:
    """What torch had not asked the compiler about instruction sets when the first of the captures that go on began."""

    def __init__(self) -> None:
        known = hook_points.find(_KNOWN)
        kinds = list(getattr(*known)) if known is not None else []
        found = hook_points.find(_ISAS)
        asked = [getattr(*found)] if found is not None else []
        asked += [value for kind in kinds for base in type(kind).__mro__ for value in vars(base).values()]
        self.probes: list[Any] = [
            probe for probe in dict.fromkeys(filter(callable, asked)) if _is_unused(probe)
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
"""The first's, for each capture that goes on: what they assume stands in tables of the process."""


def _begin(mine: object) -> None:
    with lock:
        _active[mine] = next(iter(_active.values())) if _active else _ProbeState()


def _end(mine: object) -> None:
    with lock:
        if list(_active) == [mine]:
            _active[mine].forget()
        _active.pop(mine, None)


def _is_unused(probe: Any) -> bool:
    """Whether a function that remembers was not asked yet."""
    return hasattr(probe, "cache_clear") and not probe.cache_info().currsize


def _forget(kinds: list[Any], assumed: list[str]) -> None:
    """Torch shall not remember what kind a compiler is that there is not."""
    for kind in kinds if assumed else ():
        kind.cache_clear()


@free_hook("torch._inductor.cpu_vec_isa:VecISA.check_build")
def check_build(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Code only asks no compiler whether it knows an instruction set that the processor has."""
    return True if _local.asked_for else real(*args, **kwargs)


@free_hook("torch._inductor.cpp_builder:get_cpp_compiler")
def get_cpp_compiler(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Where there is no compiler, code is written for the one that Inductor looked for, and that is said."""
    if not _local.asked_for:
        return real(*args, **kwargs)
    try:
        return real(*args, **kwargs)
    except RuntimeError:  # torch has an error of its own for each way of not finding one
        name = _looked_for()
        if _local.assumed is not None:
            _local.assumed.append(name)
        if _local.note is not None:
            _local.note(f"no C++ compiler was found: the code is what Inductor writes for {name}")
        return name


def _looked_for() -> str:
    import torch._inductor.config as config

    names = config.cpp.cxx if isinstance(config.cpp.cxx, (list, tuple)) else (config.cpp.cxx,)
    return next((str(name) for name in reversed(names) if name), "g++")
