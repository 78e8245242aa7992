"""Wrappers in the place of torch's own functions, which can be taken away again in any order.

Several sets can be in place at once: those of captures, and those of a watch. Each wraps what stood there;
when one that others wrap goes, they get what stood below it, so that nothing stays behind.
"""

from __future__ import annotations

import dataclasses
import inspect
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from .undo import Undo

lock = threading.RLock()
"""Held while wrappers are placed or taken away."""


@dataclasses.dataclass
class _Placed:
    owner: object
    name: str
    real: Any
    wrapper: Any
    own: bool  # whether the owner itself had the attribute, rather than what it inherits from


_sets: list[Placement] = []


class Placement:
    """Wrappers that come and go together."""

    def __init__(self) -> None:
        self._placed: list[_Placed] = []
        self._users: set[object] = set()
        _sets.append(self)

    @property
    def in_use(self) -> bool:
        """Return True if anybody keeps them in place."""
        return bool(self._users)

    def keep(self, undo: Undo, fill: Callable[[], None]) -> None:
        """Keep them in place until ``undo``. If nobody did, ``fill`` places them."""
        user = object()
        undo.add(self._leave, user)
        with lock:
            if not self._users:
                self.remove()  # what an interrupt left half placed
                fill()
            self._users.add(user)

    def _leave(self, user: object) -> None:
        with lock:
            self._users.discard(user)
            if not self._users:
                self.remove()

    def put(self, owner: object, name: str, wrap: Callable[[Any], Any]) -> None:
        """Replace the attribute ``name`` of ``owner`` by ``wrap(real)``. The caller holds the lock."""
        own = name in vars(owner)
        real = vars(owner)[name] if own else getattr(owner, name)
        placed = _Placed(owner, name, real, wrap(real), own)
        self._placed.append(placed)
        setattr(owner, name, placed.wrapper)

    def has(self, owner: object, name: str) -> bool:
        """Return True if one of them stands there."""
        return any(p.owner is owner and p.name == name for p in self._placed)

    def remove(self) -> None:
        """Take all of them away. The caller holds the lock; it may be repeated."""
        while self._placed:
            placed = self._placed[-1]
            held = vars(placed.owner).get(placed.name)
            above = next((p for s in _sets for p in s._placed if p.real is placed.wrapper), None)
            # Someone else may have wrapped our wrapper meanwhile; theirs stays, and ours calls through.
            if held is placed.wrapper:
                if placed.own:
                    setattr(placed.owner, placed.name, placed.real)
                else:
                    delattr(placed.owner, placed.name)
            elif above is not None:
                above.real, above.own = placed.real, placed.own
            del self._placed[-1:]


def defining(owner: object, name: str) -> object:
    """Return the class that defines a method which ``owner`` may only inherit: a wrapper on a class that
    inherits it would come before those of its siblings."""
    if not inspect.isclass(owner):
        return owner
    return next((cls for cls in owner.__mro__ if name in vars(cls)), owner)


_F = TypeVar("_F", bound=Any)

DISGUISE = ", around torch/_dynamo/convert_frame.py"
"""Suffix of the file names of our frames; torch compares how the name ends."""

CONVERT_FRAME = "torch._dynamo.convert_frame:"
"""Prefix of the hook paths whose wrappers stand among the frames of ``convert_frame.py``."""


def as_convert_frame(function: _F) -> _F:
    """``function``, whose frames torch takes for those of its own ``convert_frame.py``.

    Dynamo looks at the frames above it: for a function under ``disable(recursive=False)`` right above its own, for
    the stack of the program up to them.
    """
    function.__code__ = _disguised(function.__code__)
    return function


def _disguised(code: types.CodeType) -> types.CodeType:
    inner = (_disguised(one) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    name = code.co_filename.removesuffix(DISGUISE) + DISGUISE
    return code.replace(co_filename=name, co_consts=tuple(inner))
