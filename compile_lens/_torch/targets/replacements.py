"""Puts something in place of torch's own, for one thread, and puts everything back."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..ground.undo import Undo

_local = threading.local()


@contextlib.contextmanager
def marked(name: str) -> Iterator[None]:
    """For the duration, ``on(name)`` holds on this thread."""
    before = getattr(_local, name, 0)
    setattr(_local, name, before + 1)
    try:
        yield
    finally:
        setattr(_local, name, before)


def on(name: str) -> bool:
    """Whether this thread is inside ``marked(name)``."""
    return bool(getattr(_local, name, 0))


def aware(mark: str, ours: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """``ours`` on a thread that is inside ``marked(mark)``, ``real`` on every other."""

    @functools.wraps(real)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs) if on(mark) else real(*args, **kwargs)

    return chosen


def not_compiled(function: Any) -> None:
    """Dynamo is not to compile a frame of this function. It may still trace it from within another's."""
    from torch._dynamo.eval_frame import skip_code

    skip_code(function.__code__)


class Places(Undo):
    """Attributes and entries that were replaced, in order."""

    def attribute(self, owner: Any, name: str, mark: str, ours: Callable[..., Any]) -> None:
        """Replace a function of a module or class on marked threads. One that torch lacks is left alone."""
        if not hasattr(owner, name):
            return
        own = name in vars(owner)
        real = getattr(owner, name)
        self.add(*(setattr, owner, name, real) if own else (_take_away, owner, name))
        setattr(owner, name, aware(mark, ours, real))

    def entry(self, table: Any, key: Any, value: Any) -> None:
        """Replace an entry of a table."""
        if key in table:
            self.add(table.__setitem__, key, table[key])
        else:
            self.add(table.pop, key, None)
        table[key] = value

    def enter(self, manager: Any) -> Any:
        """Enter a context manager, and leave it once in its turn."""
        entered = [manager]
        found = manager.__enter__()
        self.add(lambda: entered and entered.pop().__exit__(None, None, None))
        return found


def _take_away(owner: Any, name: str) -> None:
    if name in vars(owner):
        delattr(owner, name)
