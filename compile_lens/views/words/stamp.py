"""Text about the status of generated code: whether it was built or ran, and for which device."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.record.capture import Record
from compile_lens.record.device import DeviceQuery, Target
from compile_lens.record.kernel import Code

from .labels import STAMPS, place
from .quantities import plural

_MODELLED = {"generated only": "generated only", "built": "built, not run", "ran": "built and run"}

NOT_THERE = "the device was absent"

MAY_DIFFER = "may differ on the real device"
"""The title of ``Code.may_differ``."""


def of_code(code: Code) -> str:
    """Return the status of one module: ``generated only, for h100: the device model, not the device``."""
    if not code.model:
        return STAMPS.get(code.stamp, code.stamp)
    return f"{_MODELLED.get(code.stamp, code.stamp)}, for {code.model}: the device model, not the device"


def of_capture(capture: Record) -> str:
    """Return the status of all code of a capture; ``""`` if there is none.

    For a capture with a device model: ``for NVIDIA H100 SXM (h100), sm_90: generated only, the device was absent``.
    """
    codes = [code for c in capture.compilations for code in c.code.values()]
    stamps = dict.fromkeys(code.stamp for code in codes)
    if capture.target is None:
        return "; ".join(STAMPS.get(stamp, stamp) for stamp in stamps)
    head = f"for {device(capture)}"
    if not codes:
        return head
    if not any(code.model for code in codes):
        return f"{head}: {'; '.join(STAMPS.get(stamp, stamp) for stamp in stamps)}"
    return f"{head}: {'; '.join(_MODELLED.get(s, s) for s in stamps)}, {NOT_THERE}"


def short(capture: Record) -> str:
    """Return the status in a few words, for display beside the name of the device."""
    codes = [code for c in capture.compilations for code in c.code.values()]
    stamps = dict.fromkeys(code.stamp for code in codes)
    if capture.target is not None and not codes:
        return "nothing generated"
    if any(code.model for code in codes):
        return f"device absent, {'; '.join(_MODELLED.get(stamp, stamp) for stamp in stamps)}"
    return "code only, not run" if [*stamps] == ["generated only"] else of_capture(capture)


def device(capture: Record) -> str:
    """Return the device of the code: ``NVIDIA H100 SXM (h100), sm_90``, or only its type."""
    if capture.target is None:
        return capture.environment.target or capture.environment.device
    model = capture.target.model
    name = model.title if model.name in ("", model.title) else f"{model.title} ({model.name})"
    return f"{name}, {model.arch}" if model.arch and model.arch != model.name else name


def how(target: Target) -> str:
    """Describe how a capture was traced and in which process; ``""`` if unknown."""
    traced = f"traced {target.tracing}" if target.tracing else ""
    captured = f"captured {target.transfer}" if target.transfer else ""
    return "; ".join(filter(None, (traced, captured)))


def of_target(target: Target) -> tuple[str, ...]:
    """Return the expected differences on the real device for a whole capture: general ones, then those of a line."""
    return (*target.may_differ, *map(question, answered_otherwise(target)))


def answered_otherwise(target: Target) -> tuple[DeviceQuery, ...]:
    """Return the device queries that the real device may answer differently. A Mac has no CUDA either."""
    same = "cuda" if target.model.device == "mps" else None
    return tuple(one for one in target.queries if same is None or same not in one.query)


def question(one: DeviceQuery) -> str:
    """Return ``model.py:7 asked Tensor.is_cuda and was answered False: if x.is_cuda:``."""
    times = f", {one.count:,} times" if one.count > 1 else ""
    line = f": {one.frame.text.strip()}" if one.frame.text.strip() else ""
    if one.kind == "zeros":
        return (
            f"{place(one.frame)} ran {one.query}, which cannot run here ({one.answer}): it gave zeros of the right "
            f"shape, or left its outputs unchanged, and a branch on such a value may go another way{times}{line}"
        )
    if one.kind == "not run":
        return (
            f"{place(one.frame)} launched {one.query}, a Triton kernel that cannot run here ({one.answer}): its "
            f"outputs are unchanged, and a branch on such a value may go another way{times}{line}"
        )
    if one.kind in ("entered", "called"):
        return f"{place(one.frame)} {one.kind} {one.query}, {one.answer}{times}{line}"
    if one.kind == "not transferred":
        return f"{place(one.frame)} reaches {one.query}, {one.answer}{times}{line}"
    if one.kind == "chosen":
        return f"{place(one.frame)} called {one.query}, which here becomes {one.answer}{times}{line}"
    return f"{place(one.frame)} queried {one.query} and got {one.answer}{times}{line}"


def may_differ(code: Code) -> str:
    """Return the title and the length of the list of possible differences; ``""`` if there are none."""
    return f"{MAY_DIFFER}: {plural(len(code.may_differ), 'thing')}" if code.may_differ else ""


def differences(code: Code, limit: int) -> Sequence[str]:
    """Return the first ``limit`` expected differences and the number of others."""
    more = len(code.may_differ) - limit
    return [*code.may_differ[:limit], *([f"and {more} more: Code.may_differ"] if more > 0 else [])]
