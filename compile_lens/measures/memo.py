"""Memo of values computed once from a capture; it goes when the capture goes."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from compile_lens.record.capture import Record

P = ParamSpec("P")
T = TypeVar("T")


_memos: list[dict[int, tuple[weakref.ref[Record], dict[tuple[object, ...], object]]]] = []


def forget(capture: Record) -> None:
    """Forget what was computed from a capture: something was added to it."""
    for known in _memos:
        known.pop(id(capture), None)


def memoized(make: Callable[Concatenate[Record, P], T]) -> Callable[Concatenate[Record, P], T]:
    """A function of a capture (and of plain values) that is run once for each. It may not keep the capture."""
    # By identity: hashing or comparing a large record would cost as much as what is made of it.
    known: dict[int, tuple[weakref.ref[Record], dict[tuple[object, ...], T]]] = {}
    _memos.append(cast("Any", known))

    @functools.wraps(make)
    def of(capture: Record, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = id(capture)
        if key not in known or known[key][0]() is not capture:

            def forget(ref: weakref.ref[Record]) -> None:
                # The number may have been given to a new capture already.
                if key in known and known[key][0] is ref:
                    del known[key]

            known[key] = (weakref.ref(capture, forget), {})
        values = known[key][1]
        wanted = (*args, *sorted(kwargs.items()))
        if wanted not in values:
            values[wanted] = make(capture, *args, **kwargs)
        return values[wanted]

    return of
