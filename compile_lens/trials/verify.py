"""Comparison of the generated code with eager PyTorch: results, in-place changes, shared memory, gradients."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from ..engine.call import Call, separate
from ..engine.entry import outside_dynamo
from ..engine.local import perform
from ..engine.options import CaptureOptions, short
from ..engine.remote import dispatch
from ..errors import UsageError
from ..record.verification import Verification
from ..results.capture import Capture
from .copies import copied
from .trial import Trial, draws, left_to_python, shows_unwritten


def verify(
    capture: Capture,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target: Any = None,
    named: Mapping[str, Any] = MappingProxyType({}),
) -> Verification:
    """Build and run the code, and compare it with eager on copies of the call, with the same random state.

    Compares results in any containers, in-place changes (inputs, modules, closures, globals, attributes of classes that
    the function names), memory shared by results, gradients along fixed directions for every leaf, and the type, shape
    and strides of each tensor. Changed state is restored.

    Raises:
        UsageError: the capture's function or an input no longer exists and none was passed; the function raises without
            a compiler too; or the capture requires a backward and this call has none.
    """
    from .._torch.frames import code_copies

    options = {"kwargs": kwargs} if target is None else {"kwargs": kwargs, "target": target}
    fn, args, keywords = call_of(capture, fn, args, {**options, **named}, "verify")
    if target is not None:
        capture = _for_target(capture, fn, args, keywords, target)
    if capture.target is not None and capture.target.model.device != "cpu":
        from . import verify_interpreted

        return verify_interpreted.verify(capture, fn, args, keywords)
    if capture.failure is not None:
        raise UsageError(
            f"{capture.function} failed in stage {capture.failure.stage}: there is no code to verify"
        )
    fn, _ = code_copies.uncompiled_function(fn)  # eager must not run code that is already compiled
    trial = Trial(
        fn, args, keywords, capture.options.backward != "no", draws(capture), shows_unwritten(capture)
    )
    built: list[Capture] = []

    def compiled(fn: Any, args: Any, kwargs: Any) -> Any:
        captured, result = _run(capture, fn, args, kwargs)
        built[:] = [captured]
        return result

    verification = trial.against(compiled)
    if not built:  # it raised, with the reason
        return verification
    if built[0].nothing_compiled:  # eager was compared with eager
        return Verification((), None, not_run=((capture.function, built[0].nothing_compiled),))
    same = same_code(capture, built[0])
    if trial.random:  # the built code differs, to draw eager's numbers
        same = same_code(capture, _again(capture, fn, args, keywords)) if capture.code else None
    return dataclasses.replace(
        verification, same_code=same, not_run=(*verification.not_run, *left_to_python(built[0]))
    )


def call_of(
    capture: Capture, fn: Any, args: tuple[Any, ...], keywords: dict[str, Any], method: str
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the call to make for ``capture.<method>(fn, *args, **keywords)``; the capture's own if ``fn`` is None.

    Raises:
        UsageError: ``fn`` is not callable, the capture is of several calls, or its function or an input no longer
            exists.
    """
    if fn is not None:
        if not callable(fn):
            raise UsageError(f"{method} needs a callable first, got {short(fn)}: capture.{method}(f, x)")
        own = ("kwargs", "target") if method == "verify" else ("kwargs",)
        return fn, args, dict(separate(f"capture.{method}", own, fn, args, keywords)["kwargs"])
    if more := [name for name, value in keywords.items() if name != "target" and value is not None]:
        raise UsageError(
            f"capture.{method}() repeats the capture's own call and takes no {', '.join(more)}: pass the function, "
            "too, "
            f"capture.{method}(f, x, {more[-1]}=…)"
        )
    if capture.calls:
        raise UsageError(
            f"this capture is of {len(capture.calls)} calls: make a capture of each, capture(f, x).{method}()"
        )
    live = getattr(capture, "_live", None)
    references = live.call() if live is not None else None
    if references is None:
        why = "a saved record holds neither function nor inputs"
        if live is not None:
            why = "the function or an input of this capture is gone (it keeps none alive)"
        raise UsageError(
            f"{why}: pass them, capture.{method}({capture.function}, …), or capture with keep_inputs=True"
        )
    call: tuple[Any, tuple[Any, ...], dict[str, Any]] = references
    return call


@outside_dynamo
def _for_target(capture: Capture, fn: Any, args: Any, kwargs: Any, target: Any) -> Capture:
    options = CaptureOptions.from_record(capture.options, target=target)
    return dispatch(Call.read(fn, args, kwargs, options))


@outside_dynamo
def _run(capture: Capture, fn: Any, args: Any, kwargs: Any) -> tuple[Capture, Any]:
    options = CaptureOptions.from_record(capture.options, build=True)
    built, outcome = perform(Call.read(fn, args, kwargs, options))
    return built, outcome.result


@outside_dynamo
def _again(capture: Capture, fn: Any, args: Any, kwargs: Any) -> Capture:
    """Capture a copy of the call again, without building it."""
    return dispatch(Call.read(*copied(fn, args, kwargs), CaptureOptions.from_record(capture.options)))


def same_code(capture: Capture, built: Capture) -> bool | None:
    """Return True if two captures have the same kernels; None if the first has no code."""
    # The wrapper's graph numbers count over the whole process, so only kernels are compared.
    mine, new = ([(k.name, k.source) for k in c.kernels] for c in (capture, built))
    return mine == new if capture.code else None
