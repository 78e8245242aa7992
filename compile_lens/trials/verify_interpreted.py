"""Compares code that was generated for a GPU which is not there with eager PyTorch: its kernels run in Triton's
interpreter, on the CPU, in a child process."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch

from ..engine import remote
from ..engine.inputs import name_of
from ..engine.perform import perform
from ..engine.request import Asked
from ..errors import UsageError
from ..record.device import DeviceModel
from ..record.verification import ValueCheck, Verification
from ..results.capture import Capture, CaptureError
from ..views.words import stamp
from .copies import copied
from .observation import observed
from .repeatable import Reached
from .trial import Trial, draws, left_to_python, shows_unwritten

LIMIT = 8 << 20
"""Bytes that kernels may move, by the model, to be interpreted at their full size: some ten seconds."""

HOW = "its kernels ran in Triton's interpreter on the CPU, its library calls in PyTorch for the CPU"

OWN = "kernels that the program wrote in Triton ran in the interpreter on both sides: compared is what is around them"

AS_THERE = (
    "compared with the graph that was captured as on the device, run by eager PyTorch in the device's types: without a "
    "compiler the function gives something else on the CPU"
)


def verify(capture: Capture, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Verification:
    """As ``Capture.verify``, for a capture whose target is not there.

    Where the kernels move more than ``LIMIT``, leading sizes of the arguments are cut, and ``how`` says so: code is
    generated for the sizes it sees, so that it is then of the same kind, and not the same.

    Raises:
        UsageError: for code that no interpreter here runs (Metal), or without Triton.
    """
    from .._torch.targets import carried_settings
    from .._triton import interpreter
    from ..versions import triton_command

    assert capture.target is not None
    model = capture.target.model
    if model.device != "cuda":
        raise UsageError(
            f"code for {model.title} runs on macOS alone: nothing here interprets Metal. Verify on a Mac, "
            'or for a CUDA target: capture(…, target="h100").verify()'
        )
    if not interpreter.installed():
        raise UsageError(
            f"Triton's interpreter is not here: {triton_command()} (there are wheels for Linux), then verify again"
        )
    own = OWN if _launches_its_own(capture) else ""
    asked = Asked.again(capture.options)
    moved = sum(k.nbytes or 0 for k in capture.traffic().kernels)
    settings, functions = carried_settings.taken()
    reply, kept, _ = remote.in_child(
        "compile_lens.trials.verify_interpreted:serve",
        model,
        functions,
        fn,
        args,
        kwargs,
        asked,
        model,
        settings,
        moved / LIMIT,
        draws(capture),
        shows_unwritten(capture),
    )
    mine = [[k.name, k.source] for k in capture.kernels]
    same = (mine == reply["kernels"]) if capture.code and reply["kernels"] and not reply["cut"] else None
    return Verification(
        comparisons=tuple(ValueCheck(**{**c, "shape": tuple(c["shape"])}) for c in reply["comparisons"]),
        same_code=same,
        note=reply["note"],
        not_run=tuple((part, reason) for part, reason in reply["not run"]),
        random=reply["random"],
        unwritten=reply["unwritten"],
        how="; ".join(filter(None, (HOW, own, reply["cut"], reply["other"], *map(stamp.question, kept)))),
    )


def _launches_its_own(capture: Capture) -> bool:
    """Whether the program launches kernels that it wrote in Triton."""
    return any(
        node.target.startswith("triton_kernel_wrapper")
        for compilation in capture.compilations
        for graph in compilation.graphs.values()
        for node in graph.nodes
    )


def serve(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Asked,
    model: DeviceModel,
    settings: dict[str, Any],
    excess: float,
    random: bool = False,
    unwritten: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """What the child does: the comparison as plain data, and what of the places that are watched there it met."""
    from .._torch.operators import watched
    from .._torch.targets import carried_settings, on_cpu
    from .._triton.launch import NotLaunched

    watched.met()  # also of a request that was not answered
    with carried_settings.placed(settings), on_cpu.folder() as place:
        cut = ""
        if excess > 1:
            args, kwargs, cut = smaller(fn, args, kwargs, excess)
        made: list[Capture] = []

        def compiled(fn: Any, args: Any, kwargs: Any) -> Any:
            def module(text: str, lowering: Any) -> Any:
                return on_cpu.module(text, place, lowering)

            captured, outcome = perform(fn, args, kwargs, asked, model=model, interpret=module)
            made[:] = [captured]
            return outcome.result

        def as_there(fn: Any, args: Any, kwargs: Any) -> Any:
            return perform(fn, args, kwargs, asked, model=model)[1].result

        other = ""
        drew = random
        try:
            trial = Trial(fn, args, kwargs, asked.backward is not False, random, unwritten)
            drew = trial.random
            found = trial.against(compiled)
            if not all(c.ok for c in found.comparisons):
                again = Trial(fn, args, kwargs, asked.backward is not False, random, unwritten, as_there)
                other, found = AS_THERE, again.against(compiled)
        except CaptureError as error:
            failure = error.capture.failure
            if failure is None or failure.type not in ("BuildError", NotLaunched.__name__):
                raise
            found = Verification((), None, not_run=((error.capture.function, failure.message),))
        except UsageError as error:
            if not isinstance(error.__cause__, NotLaunched):
                raise
            found = Verification((), None, not_run=((name_of(fn), str(error.__cause__)),))
        if made and made[0].nothing:  # eager was compared with eager
            found = Verification((), None, not_run=((made[0].function, made[0].nothing),))
        elif drew and made:  # other code was made, so that it draws eager's numbers
            made[:] = [perform(*copied(fn, args, kwargs), asked, model=model)[0]]
        found = dataclasses.replace(
            found, not_run=(*found.not_run, *(skip for c in made for skip in left_to_python(c)))
        )
    reply = {
        "comparisons": [dataclasses.asdict(c) for c in found.comparisons],
        "kernels": [[k.name, k.source] for c in made for k in c.kernels],
        "note": found.note,
        "random": found.random,
        "unwritten": found.unwritten,
        "cut": cut,
        "other": other,
        "not run": found.not_run,
    }
    return reply, watched.met()


def smaller(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], excess: float
) -> tuple[tuple[Any, ...], dict[str, Any], str]:
    """The call with one size of its arguments cut by about ``excess``, and what was cut. Unchanged if it does not run.

    A size is cut wherever an argument has it, the largest first; parameters of a module keep theirs.
    """
    from .._torch.ground import containers

    leaves = [x for x in containers.leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    held = Reached(fn, args, kwargs, state=True)
    for size in sorted({s for x in leaves for s in x.shape if s > 4}, reverse=True):
        left = max(2, int(size / excess))

        memo: dict[int, torch.Tensor] = {}

        def cut(x: Any, size: int = size, left: int = left, memo: dict[int, torch.Tensor] = memo) -> Any:
            if not isinstance(x, torch.Tensor):
                return x
            if id(x) in memo:
                return memo[id(x)]
            kept = x.detach()[tuple(slice(left) if s == size else slice(None) for s in x.shape)]
            memo[id(x)] = kept.clone().requires_grad_(x.requires_grad)
            return memo[id(x)]

        fewer, keywords = containers.map_leaves(cut, (args, kwargs))
        try:
            observed(fn, fewer, keywords, False, held)
        except Exception:  # it insists on this size, in whatever way: try the next
            continue
        return fewer, keywords, f"sizes of {size:,} in the arguments were cut to {left:,}, to be done in time"
    return args, kwargs, ""
