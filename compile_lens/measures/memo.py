"""Memo of values computed once from a capture, with the capture's lifetime."""

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
    """Discard the values computed from a capture, after something was added to it."""
    for known in _memos:
        known.pop(id(capture), None)


def memoized(make: Callable[Concatenate[Record, P], T]) -> Callable[Concatenate[Record, P], T]:
    """Cache a function of a capture and plain values by its arguments. Its result must not reference the capture."""
    # By identity: hashing or comparing a large record would cost as much as the function.
    known: dict[int, tuple[weakref.ref[Record], dict[tuple[object, ...], T]]] = {}
    _memos.append(cast("Any", known))

    @functools.wraps(make)
    def of(capture: Record, /, *args: P.args, **kwargs: P.kwargs) -> T:
        key = id(capture)
        if key not in known or known[key][0]() is not capture:

            def forget(ref: weakref.ref[Record]) -> None:
                # A new capture may already have the same id.
                if key in known and known[key][0] is ref:
                    del known[key]

            known[key] = (weakref.ref(capture, forget), {})
        values = known[key][1]
        arguments = (*args, *sorted(kwargs.items()))
        if arguments not in values:
            values[arguments] = make(capture, *args, **kwargs)
        return values[arguments]

    return of
