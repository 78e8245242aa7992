"""Replacements of parts of torch on one thread, which are all undone."""

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
    """Make ``is_marked(name)`` True on this thread for the duration."""
    before = getattr(_local, name, 0)
    setattr(_local, name, before + 1)
    try:
        yield
    finally:
        setattr(_local, name, before)


def is_marked(name: str) -> bool:
    """Return True if this thread is inside ``marked(name)``."""
    return bool(getattr(_local, name, 0))


def marked_only(mark: str, ours: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls ``ours`` on threads inside ``marked(mark)``, and ``real`` on others."""

    @functools.wraps(real)
    def chosen(*args: Any, **kwargs: Any) -> Any:
        return ours(*args, **kwargs) if is_marked(mark) else real(*args, **kwargs)

    return chosen


def skip_in_dynamo(function: Any) -> None:
    """Keep Dynamo from compiling a frame of this function; it may still inline the function."""
    from torch._dynamo.eval_frame import skip_code

    skip_code(function.__code__)


class Replacements(Undo):
    """Replaced attributes and table entries, restored in reverse order."""

    def attribute(self, owner: Any, name: str, mark: str, ours: Callable[..., Any]) -> None:
        """Replace a function of a module or class on marked threads, if torch has it."""
        if not hasattr(owner, name):
            return
        own = name in vars(owner)
        real = getattr(owner, name)
        self.add(*(setattr, owner, name, real) if own else (_remove_attribute, owner, name))
        setattr(owner, name, marked_only(mark, ours, real))

    def entry(self, table: Any, key: Any, value: Any) -> None:
        """Replace an entry of a table."""
        if key in table:
            self.add(table.__setitem__, key, table[key])
        else:
            self.add(table.pop, key, None)
        table[key] = value

    def enter(self, manager: Any) -> Any:
        """Enter a context manager, to be left once, in order with the other steps."""
        entered = [manager]
        value = manager.__enter__()
        self.add(lambda: entered and entered.pop().__exit__(None, None, None))
        return value


def _remove_attribute(owner: Any, name: str) -> None:
    if name in vars(owner):
        delattr(owner, name)
