"""Wrappers installed over torch's own functions, which can be removed in any order.

Several sets can be in place at once: those of captures and that of a watch. Each wraps the function that was there;
when an inner wrapper is removed, the one around it is relinked to the function below, so that nothing is left behind.
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
"""Held while wrappers are installed or removed."""


@dataclasses.dataclass
class _Placed:
    owner: object
    name: str
    real: Any
    wrapper: Any
    own: bool  # True if the owner itself had the attribute, False if it was inherited


_sets: list[Placement] = []


class Placement:
    """A set of wrappers that are installed and removed together."""

    def __init__(self) -> None:
        self._placed: list[_Placed] = []
        self._users: set[object] = set()
        _sets.append(self)

    @property
    def in_use(self) -> bool:
        """True if any user keeps the wrappers in place."""
        return bool(self._users)

    def keep(self, undo: Undo, fill: Callable[[], None]) -> None:
        """Keep the wrappers in place until ``undo``; for the first user, ``fill`` installs them."""
        user = object()
        undo.add(self._leave, user)
        with lock:
            if not self._users:
                self.remove()  # an interrupt may have left some
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
        """Return True if one of the wrappers replaces this attribute."""
        return any(p.owner is owner and p.name == name for p in self._placed)

    def remove(self) -> None:
        """Remove all wrappers. The caller holds the lock; it may be repeated."""
        while self._placed:
            placed = self._placed[-1]
            installed = vars(placed.owner).get(placed.name)
            above = next((p for s in _sets for p in s._placed if p.real is placed.wrapper), None)
            # If other code has wrapped our wrapper meanwhile, theirs stays, and ours calls through.
            if installed is placed.wrapper:
                if placed.own:
                    setattr(placed.owner, placed.name, placed.real)
                else:
                    delattr(placed.owner, placed.name)
            elif above is not None:
                above.real, above.own = placed.real, placed.own
            del self._placed[-1:]


def defining(owner: object, name: str) -> object:
    """Return the class that defines a method of ``owner``. A wrapper on a class that inherits the method would not
    apply to sibling classes."""
    if not inspect.isclass(owner):
        return owner
    return next((cls for cls in owner.__mro__ if name in vars(cls)), owner)


_F = TypeVar("_F", bound=Any)

DISGUISE = ", around torch/_dynamo/convert_frame.py"
"""Suffix for the file names of our frames; torch compares the end of the name."""

CONVERT_FRAME = "torch._dynamo.convert_frame:"
"""Prefix of the hook paths whose wrappers run between the frames of ``convert_frame.py``."""


def as_convert_frame(function: _F) -> _F:
    """Return ``function``, changed so that torch takes its frames for those of its own ``convert_frame.py``.

    Dynamo inspects the frames that called it: the one right above its own, for ``disable(recursive=False)``, and those
    above its own, as the program's stack.
    """
    function.__code__ = _disguised(function.__code__)
    return function


def _disguised(code: types.CodeType) -> types.CodeType:
    inner = (_disguised(one) if isinstance(one, types.CodeType) else one for one in code.co_consts)
    name = code.co_filename.removesuffix(DISGUISE) + DISGUISE
    return code.replace(co_filename=name, co_consts=tuple(inner))
