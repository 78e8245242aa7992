"""``Program.what_if``: call a function again in child processes, once with each remedy that is a setting."""

from __future__ import annotations

import dataclasses
import functools
import os
import pickle
import tempfile
import time
from typing import Any

from ..engine.call import check_fit
from ..engine.entry import outside_dynamo, separates_keywords
from ..errors import ChildError, UsageError
from ..measures.remedies import remedies
from ..record.codec import from_json
from ..record.program import ProgramRecord
from ..record.remedies import ProgramRemedies, Remedy
from ..results.program import Program
from ..trials.progress import bar, watched
from ..trials.remedies import LIMIT_FACTOR, Attempt, tried

RESULT = "returned value"
_FIRST = ("compile_lens._torch.preload", "compile_lens.api.remedies")


@outside_dynamo
@separates_keywords()
def what_if(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    time_limit: float | None = None,
    program: Program | None = None,
) -> ProgramRemedies:
    """Try the remedies of ``program`` and return the runs: see ``Program.what_if``."""
    assert program is not None
    check_fit(fn, args, kwargs, "what_if")
    if time_limit is not None and not (isinstance(time_limit, (int, float)) and time_limit > 0):
        raise UsageError(f"time_limit={time_limit!r} is not a number of seconds above 0")
    record = program.record
    if not remedies(record):
        return ProgramRemedies(result=RESULT)
    with (
        tempfile.TemporaryDirectory(prefix="compile-lens-") as folder,
        bar("what if", quiet=not watched()) as tell,
    ):
        launch = functools.partial(_launch, folder, fn, args, kwargs or {})
        tell("as it is", 1, len(remedies(record)) + 2)
        base = launch((), max(MIN_BASE_LIMIT_SECONDS, LIMIT_FACTOR * record.seconds, time_limit or 0.0))
        return tried(record, base, launch, _compare, RESULT, time_limit, tell)


MIN_BASE_LIMIT_SECONDS = 600.0
"""Lower bound of the time limit of the call without a remedy, in seconds."""


def _launch(
    folder: str, fn: Any, args: Any, kwargs: Any, settings: tuple[Remedy, ...], seconds: float
) -> Attempt:
    """Call the function in a separate process."""
    from ..child import pickling, process
    from ..child.child import TooLong

    path = os.path.join(folder, f"{len(os.listdir(folder))}.pickle")
    start = time.monotonic()
    try:
        reply, _ = process.call(
            "compile_lens.api.remedies:serve", fn, args, kwargs, settings, path, first=_FIRST, seconds=seconds
        )
    except pickling.CannotCross as error:
        how = "" if error.has_advice else ": make what it uses picklable, or pass it as an argument"
        reason = " ".join(str(error).split())
        raise UsageError(
            f"the function cannot be sent to a child process ({reason}), where it runs again{how}"
        ) from None
    except TooLong:
        return Attempt(None, seconds, failure=f"it ran past its time limit of {seconds:.0f} s and was ended")
    except ChildError as error:
        first = str(error).partition("\n")[0]
        return Attempt(None, time.monotonic() - start, failure=first)
    seen = from_json(reply["record"], ProgramRecord)
    return Attempt(
        seen, reply["seconds"], (path if reply["stored"] else "", reply["error"], reply["unstored"])
    )


def serve(fn: Any, args: Any, kwargs: Any, settings: tuple[Remedy, ...], path: str) -> dict[str, Any]:
    """Call the function with settings and store its result. Runs in the child."""
    from .._torch.watch.remedy_settings import RemedySettings
    from .watch import WatchContext

    applied = RemedySettings(settings)
    applied.apply()
    error, unstored, value = "", "", None
    start = time.monotonic()
    with WatchContext("what_if") as program:
        try:
            value = fn(*args, **kwargs)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    seconds = time.monotonic() - start
    record = program.record
    record = dataclasses.replace(record, missing=(*record.missing, *applied.missing()))
    if not error:
        try:
            with open(path, "wb") as file:
                pickle.dump(_plain(value), file)
        except Exception as raised:
            unstored = f"{type(raised).__name__}: {raised}".partition("\n")[0]
    stored = not error and not unstored
    return {
        "record": Program(lambda: record).to_json(),
        "seconds": seconds,
        "error": error,
        "stored": stored,
        "unstored": unstored,
    }


def _plain(value: Any) -> dict[str, Any]:
    """Return the parts of a value by name, detached from autograd graphs, which cannot be pickled."""
    import torch

    from .._torch.ground import values

    def leaf(part: Any) -> Any:
        tensor = values.as_tensor(part)
        return part if tensor is None else tensor.detach() if isinstance(tensor, torch.Tensor) else tensor

    return {name: leaf(part) for name, part in values.parts([("result", value)])}


def _compare(base: Attempt, one: Attempt, again: Attempt | None) -> tuple[bool | None, str]:
    """Compare what two calls returned or raised."""
    agrees, words = _compared(base, one)
    if agrees is False and again is not None:
        same, _ = _compared(base, again) if again.record is not None else (False, "")
        if not same:
            return None, f"not compared: two calls without a change differ as well ({words})"
    return agrees, words


def _compared(base: Attempt, one: Attempt) -> tuple[bool | None, str]:
    (path, error, unstored), (its_path, its_error, its_unstored) = base.outcome, one.outcome
    if error or its_error:
        if error.partition("\n")[0] == its_error.partition("\n")[0]:
            return True, f"both raise {error.partition(chr(10))[0][:160]}"
        if its_error:
            return False, f"it raises {its_error.partition(chr(10))[0][:160]}"
        return False, f"it returns; without a change it raises {error.partition(chr(10))[0][:160]}"
    if unstored or its_unstored:
        return None, f"not compared: what it returns cannot be stored ({unstored or its_unstored})"
    return _values_agree(path, its_path)


def _values_agree(path: str, other: str) -> tuple[bool | None, str]:
    from .._torch.ground import values
    from ..trials import agreement
    from ..trials.observation import Observation
    from ..trials.snapshot import Snapshot

    def observation(at: str) -> Observation:
        with open(at, "rb") as file:
            parts: dict[str, Any] = pickle.load(file)
        seen = Observation()
        for name, value in parts.items():
            tensor = values.as_tensor(value)
            seen.results[name] = value if tensor is None else Snapshot.of(tensor)
        return seen

    compared = agreement.compared(observation(path), observation(other))
    wrong = [check for check in compared.checks if not check.ok]
    if wrong:
        return False, f"the value differs: {' '.join(str(wrong[0]).split())}"
    skipped = [name for name, _ in (*compared.not_compared, *compared.not_run) if name != "gradients"]
    if not compared.checks:
        return None, "not compared: nothing that it returns says whether it is equal"
    worst = max((check.max_abs for check in compared.checks if check.has_numbers), default=0.0)
    words = "the same value" if worst == 0 else f"the same value within {worst:.1g}"
    return True, f"{words}; {len(skipped)} parts not compared" if skipped else words
