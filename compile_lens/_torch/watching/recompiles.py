"""Why a code is compiled again: the guard that failed in each older form, with what it was called with now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ...record import failed_guards
from ...record.program import ERROR
from . import scopes, settings
from .draft import Visiting
from .nearest import nearest
from .observers import noting, observe
from .reading import now


@observe("torch._dynamo.convert_frame:get_and_maybe_log_recompilation_reasons", "recompiles")
def recompilation_reasons(real: Any, entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
    """Torch asks why older forms of a code did not fit."""
    visiting = scopes.current()
    try:
        reasons = real(entries, frame, *args, **kwargs)
    except torch._dynamo.exc.RecompileError as error:  # the program asked for one (``error_on_recompile``)
        if visiting is not None:
            with noting(visiting.scopes, "why a function was compiled again"):
                note(visiting, entries, frame, failed_guards.listed(str(error)))
                visiting.limit = ERROR
        raise
    if visiting is not None:
        with noting(visiting.scopes, "why a function was compiled again"):
            note(visiting, entries, frame, [str(text) for text in reasons])
    return reasons


def note(visiting: Visiting, entries: Any, frame: Any, reasons: Sequence[str]) -> None:
    """Keep why no form fits a call: torch's sentence about each of them, read beside what the call was given."""
    found = entries if isinstance(entries, list) else _chain(entries)
    names, globals = frame.f_locals, frame.f_globals
    visiting.recompiled = len(found), int(torch._dynamo.config.recompile_limit)
    visiting.asked = frozenset(str(one.compile_id) for one in found)
    visiting.failed = [
        failed_guards.failed(text, lambda source: now(source, names, globals), settings.now)
        for text in reasons
    ]
    earlier = list(visiting.scopes[0].failed_of.get(visiting.code, {}).values()) if visiting.scopes else []
    visiting.nearest = nearest(found, visiting.failed, earlier, names, globals)


def _chain(entry: Any) -> list[Any]:
    """The forms of a code where torch gives the first of them (torch 2.11)."""
    found = []
    while entry is not None:
        found.append(entry)
        entry = getattr(entry, "next", None)
    return found
