"""Checks that the generated code does what eager PyTorch does: results, in-place changes, shared memory, gradients."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Any

import torch

from .agreement import Comparison as Comparison
from .agreement import Verification as Verification
from .agreement import compared, without_values
from .copies import copied
from .errors import CaptureError, LensError, UsageError
from .inputs import name_of, short
from .observation import Observation, observed
from .record import Capture
from .repeatable import Reached

SAME_NUMBERS = (
    "random numbers: compared with code that draws eager's (Inductor's fallback_random), from the same state"
)
OTHER_NUMBERS = (
    "the function draws random numbers, and compiled code cannot be made to draw eager's ({reason}): compared is what "
    "does not depend on them, and the type, shape and strides of what does"
)


UNINITIALISED = (
    "some of its values are what happened to be in memory (torch.empty), in eager as in compiled code: compared is "
    "what does not depend on them, and the type, shape and strides of what does"
)


def verify(
    capture: Capture,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target: Any = None,
) -> Verification:
    """Build and run the code, and compare with eager on copies of the call, with the same random state.

    Compared are results in containers of any kind, what is changed in place (inputs, modules, closures, globals,
    attributes of classes that the function names), memory that results share, gradients along fixed directions for
    every leaf, and of each tensor type, shape and strides. What the calls change is put back.

    Raises:
        UsageError: the function or an input of the capture is gone and none was passed, or the function raises
            without a compiler, too.
        CaptureError: the code could not be built or run.
    """
    from ._torch import copies

    fn, args, keywords = _call(capture, fn, args, kwargs)
    if target is not None:
        capture = _for_target(capture, fn, args, keywords, target)
    if capture.target is not None and capture.target.model.device != "cpu":
        from . import interpreted

        return interpreted.verify(capture, fn, args, keywords)
    if capture.failure is not None:
        raise UsageError(
            f"{capture.function} failed in stage {capture.failure.stage}: there is no code to verify"
        )
    fn, _ = copies.original(fn)  # what was compiled already is no eager side
    trial = Trial(
        fn, args, keywords, capture.options.backward != "no", draws(capture), shows_unwritten(capture)
    )
    built: list[Capture] = []

    def compiled(fn: Any, args: Any, kwargs: Any) -> Any:
        made, result = _run(capture, fn, args, kwargs)
        built[:] = [made]
        return result

    found = trial.against(compiled)
    if built[0].nothing:  # eager was compared with eager
        return Verification((), None, not_run=((capture.function, built[0].nothing),))
    same = same_code(capture, built[0])
    if trial.random:  # other code was built, so that it draws eager's numbers
        same = same_code(capture, _again(capture, fn, args, keywords)) if capture.code else None
    return dataclasses.replace(found, same_code=same, not_run=(*found.not_run, *left_to_python(built[0])))


def left_to_python(built: Capture) -> tuple[tuple[str, str], ...]:
    """What of a program was run by Python on both sides, so that nothing is said of it."""
    return tuple(
        dict.fromkeys((s.function, f"{s.kind}, left to Python on both sides") for s in built.skipped)
    )


class Trial:
    """A call that is made in several ways, each on copies of the same, to see whether they do the same."""

    def __init__(
        self,
        fn: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        backward: bool,
        random: bool,
        unwritten: bool = False,
    ) -> None:
        self.call = (fn, args, kwargs)
        self.backward = backward
        self.held = Reached(fn, args, kwargs, state=True)
        try:
            self.eager = self._observed()
        except LensError:
            raise
        except Exception as error:  # whatever the function raises for these inputs
            raise UsageError(
                f"{name_of(fn)} raised {type(error).__name__} without a compiler, so that there is nothing to compare "
                f"with: {error}. Pass the inputs that it takes: capture.verify(f, x)"
            ) from error
        self.random = random or self.eager.drew
        self.unwritten = unwritten

    def against(self, compiled: Any) -> Verification:
        """The comparison with another way to make the call. Raises what that raises."""
        from ._torch.isolation import eagers_numbers

        if self.unwritten:
            names = self._apart(self._observed(fill=0), self._observed(fill=1))
            comparisons, left = self._without(names, self._observed(call=compiled), "unwritten memory")
            said = UNINITIALISED if names else ""
            return Verification(comparisons, None, self._note(), left, unwritten=said)
        if not self.random:
            comparisons, left = compared(self.eager, self._observed(call=compiled), self._reference())
            return Verification(comparisons, None, not_run=left, note=self._note())
        try:
            with eagers_numbers():
                comparisons, left = compared(self.eager, self._observed(call=compiled))
            return Verification(
                comparisons, None, "; ".join(filter(None, (SAME_NUMBERS, self._note()))), left
            )
        except CaptureError as error:  # torch cannot make it so: some operators have no code of that kind
            failure = error.capture.failure
            if failure is None or failure.type == "BuildError":
                raise
            reason = f"{failure.type}: {(failure.message.splitlines() or [''])[0][:200]}"
        comparisons, left = self._without_numbers(self._observed(call=compiled))
        return Verification(comparisons, None, self._note(), left, random=OTHER_NUMBERS.format(reason=reason))

    def _without_numbers(self, compiled: Observation) -> Any:
        """The comparisons with all values left out that depend on the numbers that are drawn."""
        return self._without(self._apart(self.eager, self._observed(seed=1)), compiled, "the numbers")

    @staticmethod
    def _apart(one: Observation, two: Observation) -> dict[str, Comparison]:
        return {c.name: c for c in compared(one, two)[0] if not c.ok}

    def _without(self, apart: dict[str, Comparison], compiled: Observation, what: str) -> Any:
        """The comparisons without the values of those that are ``apart``, which depend on ``what``."""
        comparisons, left = compared(self.eager, compiled)
        kept = []
        for c in comparisons:
            if c.name not in apart:
                kept.append(c)
            elif apart[c.name].problem:
                left = (*left, (c.name, f"it depends on {what}: {apart[c.name].problem} with others"))
            else:
                kept.append(without_values(c))
        return tuple(kept), left

    def _observed(self, seed: int | None = None, fill: int | None = None, **how: Any) -> Observation:
        from ._torch.isolation import random_state
        from ._torch.unwritten import Filled

        with random_state(), contextlib.nullcontext() if fill is None else Filled(fill):
            if seed is not None:
                torch.manual_seed(torch.initial_seed() + seed)
            return observed(*self.call, self.backward, self.held, **how)

    def _reference(self) -> Observation | None:
        """The call in float64, or None where it does not run there."""
        with contextlib.suppress(Exception):  # the function insists on its own dtype, in whatever way
            return self._observed(wide=True)
        return None

    def _note(self) -> str:
        count = self.eager.unchanged
        some = f"{count} tensor{'s' * (count != 1)} that the call is given or reaches"
        return f"left as they were: {some}" if count else ""


def _call(
    capture: Capture, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    if fn is not None:
        if not callable(fn):
            raise UsageError(f"verify needs a callable first, got {short(fn)}: capture.verify(f, x)")
        return fn, args, dict(kwargs or {})
    live = getattr(capture, "_live", None)
    found = live.call() if live is not None else None
    if found is None:
        raise UsageError(
            f"the function or an input of this capture is gone (a capture keeps none alive): pass them, "
            f"capture.verify({capture.function}, …)"
        )
    made: tuple[Any, tuple[Any, ...], dict[str, Any]] = found
    return made


def _options(capture: Capture) -> dict[str, Any]:
    options = capture.options
    return {
        "backward": options.backward != "no" and "auto",
        "dynamic": options.dynamic,
        "mode": options.mode,
        "options": given(capture),
        "fullgraph": options.fullgraph,
    }


def _for_target(capture: Capture, fn: Any, args: Any, kwargs: Any, target: Any) -> Capture:
    from .capture import capture as captured

    return captured(fn, *args, kwargs=kwargs, target=target, **_options(capture))


def _run(capture: Capture, fn: Any, args: Any, kwargs: Any) -> tuple[Capture, Any]:
    from .capture import run

    return run(fn, *args, kwargs=kwargs, build=True, **_options(capture))


def _again(capture: Capture, fn: Any, args: Any, kwargs: Any) -> Capture:
    """The capture made once more, of a copy of the call: code only."""
    from .capture import capture as captured

    fn, args, kwargs = copied(fn, args, kwargs)
    return captured(fn, *args, kwargs=kwargs, **_options(capture))


def given(capture: Capture) -> dict[str, Any] | None:
    """Inductor's options that the capture was made with. Raises ``UsageError`` for one that is no plain value."""
    return {k: _parse(v) for k, v in capture.options.options} or None


def _parse(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise UsageError(
            f"the capture's option {text} is not a plain value: capture again with build=True"
        ) from None


def same_code(capture: Capture, built: Capture) -> bool | None:
    """Whether two captures have the same kernels, ``None`` if the first has no code."""
    # The wrapper numbers graphs over the whole process; the kernels say what is computed.
    mine, new = ([(k.name, k.source) for k in c.kernels] for c in (capture, built))
    return mine == new if capture.code else None


def draws(capture: Capture) -> bool:
    """Whether the captured graphs draw random numbers."""
    return any(n.kind == "random" for c in capture.compilations for g in c.graphs.values() for n in g.nodes)


def shows_unwritten(capture: Capture) -> bool:
    """Whether a result depends on memory that nothing wrote: what ``torch.empty`` returns reaches a graph's end."""
    from ._torch.unwritten import MAKE

    for compilation in capture.compilations:
        for phase in compilation.phases:
            graph = compilation.graphs.get(phase)
            if graph is None:
                continue
            # The graph has no in-place operators left, and what overwrites a tensor takes none of it.
            reached = {
                n.name for n in graph.nodes if n.target.removeprefix("aten.").partition(".")[0] in MAKE
            }
            for node in graph.nodes:
                if reached.intersection(node.inputs):
                    if node.op == "output":
                        return True
                    reached.add(node.name)
    return False
