"""The program's cache entries on code that several functions share."""

from __future__ import annotations

import threading
from typing import Any

import torch

from ..ground import hook_points
from ..ground.cache_entries import StoppedFrame, match_no_entry, stop_frames_of
from ..ground.undo import Undo
from . import code_copies

SIZES = "torch._dynamo.convert_frame:compute_cache_size"
"""Path of the function that counts the entries of a frame's code before Dynamo compiles it."""

COMPILES, RECOMPILES, FITS, REFUSED = "compiles", "recompiles", "fits", "refused"


def first_call(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], options: dict[str, Any]) -> str:
    """Return how the first call of ``torch.compile(fn, **options)`` would be treated, given the program's entries.

    ``COMPILES``: as if there were none. ``RECOMPILES``: none matches, so it recompiles. ``FITS``: one matches and runs.
    ``REFUSED``: none matches and their limit is reached, so it runs eagerly. ``""``: not known. Nothing is compiled or
    run.
    """
    place = hook_points.find(SIZES)
    target, _ = code_copies.uncompiled_function(fn)
    method = target.forward if isinstance(target, torch.nn.Module) else target
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    if place is None or code is None:
        return ""
    (module, name), me = place, threading.get_ident()
    real = getattr(module, name)
    lookups: list[bool] = []
    recompiles: list[bool] = []

    def sizes(*arguments: Any, **named: Any) -> Any:
        size = real(*arguments, **named)
        if threading.get_ident() != me:
            return size
        recompiles.append(torch._dynamo.convert_frame.is_recompilation(size))
        raise StoppedFrame

    with Undo() as undo, undo:
        code_copies.call_uncompiled(undo, target)
        backends = getattr(torch._dynamo.eval_frame, "cached_backends", {})
        undo.add(_drop_others, backends, set(backends))
        code_copies.leave_unmarked(undo, target)
        compiled = torch.compile(target, **options)
        undo.add(setattr, module, name, real)
        setattr(module, name, sizes)
        match_no_entry(undo, lookups.append)
        torch._dynamo.eval_frame.skip_code(stop_frames_of(undo, code).__code__)
        try:
            compiled(*args, **kwargs)
        except StoppedFrame:
            pass
    if lookups and lookups[-1]:
        return FITS
    if recompiles:
        return RECOMPILES if recompiles[0] else COMPILES
    return REFUSED if lookups else ""


def _drop_others(table: dict[Any, Any], kept: set[Any]) -> None:
    for key in table.keys() - kept:
        table.pop(key, None)
