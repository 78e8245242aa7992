"""Comparison of code for an absent GPU with eager PyTorch: its kernels run in Triton's interpreter on the CPU, in a
child process."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import torch

from ..engine import remote
from ..engine.call import Call
from ..engine.local import perform
from ..engine.options import CaptureOptions
from ..errors import UsageError
from ..record.kernel_values import GraphValues
from ..record.verification import DISAGREES, GRADIENT, NOT_RUN, ValueCheck, Verification
from ..results.capture import Capture, CaptureError
from ..views.words import stamp
from .copies import copied
from .kernel_values import KernelValues
from .observation import observed
from .restoration import SavedState
from .trial import NOT_RUNNABLE, Trial, draws, left_to_python, shows_unwritten

MAX_MODELLED_BYTES = 8 << 20
"""Modelled bytes up to which kernels are interpreted at full size, which takes some ten seconds."""

RUNNER = "its kernels ran in Triton's interpreter on the CPU, its library calls in PyTorch for the CPU"

CPP_NOTE = "those in C++ were built, and ran"

OWN_KERNELS_NOTE = (
    "kernels that the program wrote in Triton ran in the interpreter on both sides: only the code around them is "
    "compared"
)

ATTENTION_NOTE = "its fused attention by products and a softmax in float32, on both sides"

GRAPH_REFERENCE = (
    "compared with the graph that was captured as on the device, run by eager PyTorch in the device's types on the "
    "CPU"
)

FUNCTION_DIFFERS = f"{GRAPH_REFERENCE}: without a compiler the function gives something else there"

FUNCTION_RAISES = f"{GRAPH_REFERENCE}: without a compiler the function does not run there ({{0}})"

BOTH_AGREE = (
    "the function without a compiler, and the graph that was captured as on the device, run by eager PyTorch, give the "
    "same on the CPU: it is the code that gives something else"
)


def verify(capture: Capture, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Verification:
    """Return the verification of a capture for an absent target, as ``Capture.verify`` does."""
    return compared(capture, fn, args, kwargs)[0]


def compared(
    capture: Capture, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any], values: bool = False
) -> tuple[Verification, tuple[GraphValues, ...]]:
    """Return the verification, and with ``values`` the values at the kernels of each graph.

    If the kernels move more than ``MAX_MODELLED_BYTES``, a size of the arguments is reduced and ``runner`` says so; the
    code is then generated for that size, similar to the capture's but not the same.

    Raises:
        UsageError: the code is Metal, which has no interpreter here, or Triton is not installed.
    """
    from .._torch.targets import torch_settings
    from .._triton import interpreter
    from ..versions import triton_command

    assert capture.target is not None
    model = capture.target.model
    if model.device != "cuda":
        raise UsageError(
            f"code for {model.title} runs only on macOS: nothing here interprets Metal. Verify on a Mac, "
            'or for a CUDA target: capture(…, target="h100").verify()'
        )
    if not interpreter.installed():
        raise UsageError(
            f"Triton's interpreter is not installed: {triton_command()} (there are wheels for Linux), then verify "
            "again"
        )
    own = OWN_KERNELS_NOTE if _launches_its_own(capture) else ""
    attention = (
        ATTENTION_NOTE if any("_scaled_dot_product_" in kernel.name for kernel in capture.kernels) else ""
    )
    call = Call.read(fn, args, kwargs, CaptureOptions.from_record(capture.options), model=model)
    moved = sum(k.nbytes or 0 for k in capture.traffic().kernels)
    settings, functions = torch_settings.snapshot()
    reply, kept, _ = remote.in_child(
        "compile_lens.trials.verify_interpreted:serve",
        model,
        functions,
        call,
        settings,
        moved / MAX_MODELLED_BYTES,
        draws(capture),
        shows_unwritten(capture),
        values,
    )
    mine = [[k.name, k.source] for k in capture.kernels]
    same = (mine == reply["kernels"]) if capture.code and reply["kernels"] and not reply["cut"] else None
    verification = Verification(
        comparisons=tuple(ValueCheck(**{**c, "shape": tuple(c["shape"])}) for c in reply["comparisons"]),
        same_code=same,
        note=reply["note"],
        not_run=tuple((part, reason) for part, reason in reply["not run"]),
        not_compared=tuple((part, reason) for part, reason in reply["not compared"]),
        random=reply["random"],
        uninitialized=reply["unwritten"],
        runner="; ".join(
            filter(
                None,
                (
                    RUNNER,
                    attention,
                    reply["built"],
                    own,
                    reply["cut"],
                    reply["other"],
                    *map(stamp.question, kept),
                ),
            )
        ),
    )
    return verification, tuple(GraphValues.from_dict(one) for one in reply["graphs"])


def _launches_its_own(capture: Capture) -> bool:
    """Return True if the program launches its own Triton kernels."""
    return any(
        node.target.startswith("triton_kernel_wrapper")
        for compilation in capture.compilations
        for graph in compilation.graphs.values()
        for node in graph.nodes
    )


def serve(
    call: Call,
    settings: dict[str, Any],
    excess: float,
    random: bool = False,
    unwritten: bool = False,
    values: bool = False,
) -> tuple[dict[str, Any], list[str]]:
    """Return the comparison as plain data, and the watched places that this child used. Runs in the child."""
    from .._torch.graphs import cpu_execution
    from .._torch.operators import custom_operators, transfers
    from .._torch.targets import interpreted_wrapper, torch_settings
    from .._triton.launch import NotLaunched

    transfers.requested()  # clears those of an unanswered request
    with torch_settings.restored(settings), interpreted_wrapper.folder() as place:

        def run_graph(fn: Any, args: Any, kwargs: Any) -> Any:
            return perform(call.of(fn, args, kwargs))[1].result

        fn, args, kwargs = call.fn, call.args, call.kwargs
        cut = ""
        if excess > 1:
            args, kwargs, cut = smaller(fn, args, kwargs, excess, run_graph)
        captures: list[Capture] = []
        device = torch.device("cuda", 0)
        kernels: list[KernelValues] = []

        def compiled(fn: Any, args: Any, kwargs: Any) -> Any:
            def module(text: str, lowering: Any) -> Any:
                instead = cpu_execution.run_lowered(lowering, device)
                return interpreted_wrapper.module(text, place, lowering, instead)

            kernels[:] = [KernelValues(device)] if values else []
            probe = kernels[0].probe if values else None
            captured, outcome = perform(call.of(fn, args, kwargs), interpret=module, launch_probe=probe)
            captures[:] = [captured]
            return outcome.result

        def trial(eager: Callable[..., Any] | None = None) -> Trial:
            return Trial(fn, args, kwargs, call.options.backward is not False, random, unwritten, eager)

        other, drew = "", random
        try:
            verification, other, drew = _compare(trial, compiled, run_graph)
        except CaptureError as error:
            failure = error.capture.failure
            if failure is None or failure.type not in NOT_RUNNABLE:
                raise
            verification = Verification((), None, not_run=((error.capture.function, failure.message),))
        except UsageError as error:
            if not isinstance(error.__cause__, NotLaunched):
                raise
            verification = Verification((), None, not_run=((call.name, str(error.__cause__)),))
        if verification.verdict == NOT_RUN:
            other = ""
        if captures and captures[0].nothing_compiled:  # eager was compared with eager
            verification = Verification(
                (), None, not_run=((captures[0].function, captures[0].nothing_compiled),)
            )
        elif drew and captures:  # the built code differs, to draw eager's numbers
            captures[:] = [perform(call.of(*copied(fn, args, kwargs)))[0]]
        graphs = kernels[0].graphs(captures[0], place.graphs) if kernels and captures else ()
        not_run = [(name, why) for name, why in place.graphs.items() if why]
        if not_run and len(not_run) == len(place.graphs):  # eager was compared with eager
            verification = Verification((), None)
        verification = dataclasses.replace(
            verification,
            comparisons=_of_code(verification.comparisons, place.graphs),
            not_run=(*verification.not_run, *(skip for c in captures for skip in left_to_python(c))),
            not_compared=(*verification.not_compared, *not_run),
        )
    reply = {
        "graphs": [dataclasses.asdict(graph) for graph in graphs],
        "comparisons": [dataclasses.asdict(c) for c in verification.comparisons],
        "kernels": [[k.name, k.source] for c in captures for k in c.kernels],
        "note": verification.note,
        "random": verification.random,
        "unwritten": verification.uninitialized,
        "built": CPP_NOTE
        if any(k.language == "cpp" for c in captures for k in c.kernels) and verification.comparisons
        else "",
        "cut": cut,
        "other": other,
        "not run": verification.not_run,
        "not compared": verification.not_compared,
    }
    custom_operators.check_order()
    return reply, transfers.requested()


def _of_code(comparisons: tuple[ValueCheck, ...], graphs: dict[str, str]) -> tuple[ValueCheck, ...]:
    """Return the checks without passed ones that compare eager PyTorch with itself: gradients if no generated backward
    ran, others if no other graph ran. ``graphs`` maps each graph to the reason why it did not run, or ``""``."""
    backward = [bool(why) for name, why in graphs.items() if name.endswith("(backward)")]
    others = [bool(why) for name, why in graphs.items() if not name.endswith("(backward)")]
    eager = {True: bool(backward) and all(backward), False: bool(others) and all(others)}
    return tuple(one for one in comparisons if not (one.ok and eager[one.kind == GRADIENT]))


def _compare(
    trial: Callable[..., Trial], compiled: Callable[..., Any], run_graph: Callable[..., Any]
) -> tuple[Verification, str, bool]:
    """Compare the code with the function run eagerly or, if that fails or differs on the CPU, with the captured graph
    (``run_graph``). Return the verification, a note on the reference, and True if that drew random numbers."""
    from .._triton.launch import NotLaunched

    refused: UsageError | None = None
    try:
        plain = trial()
    except UsageError as error:
        if isinstance(error.__cause__, NotLaunched):
            raise
        refused = error
    if refused is not None:
        graph = _graph(trial, run_graph, refused)
        return graph.against(compiled), FUNCTION_RAISES.format(_raised(refused)), graph.random
    outcome = plain.against(compiled)
    if outcome.verdict != DISAGREES:
        return outcome, "", plain.random
    graph = trial(run_graph)
    same = plain.agrees_with(graph)
    by_graph = graph.against(compiled)
    if same and by_graph.verdict == DISAGREES:
        return outcome, BOTH_AGREE, plain.random
    return by_graph, FUNCTION_DIFFERS if same is False else GRAPH_REFERENCE, graph.random


def _graph(trial: Callable[..., Trial], run_graph: Callable[..., Any], refused: UsageError) -> Trial:
    """Return the trial of the graph; raise ``refused`` if these inputs give no graph on any device."""
    try:
        return trial(run_graph)
    except CaptureError:
        if re.search("cuda|nvidia", str(refused.__cause__), re.I):
            raise
    except UsageError:
        pass
    raise refused from refused.__cause__


def _raised(error: UsageError) -> str:
    """Return the function's exception in one line."""
    cause = error.__cause__
    message = (str(cause).strip().splitlines() or [""])[0].partition(". ")[0]
    return f"{type(cause).__name__}: {message[:200]}".rstrip(": .")


def smaller(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    excess: float,
    run_graph: Callable[..., Any] | None = None,
) -> tuple[tuple[Any, ...], dict[str, Any], str]:
    """Return the arguments with one size divided by about ``excess``, and a note on it; unchanged if no such call runs.

    A size is reduced in all arguments that have it, the largest size first; module parameters keep theirs. A function
    that fails on the CPU at any size is called by ``run_graph``.
    """
    from .._torch.ground import values

    leaves = [x for x in values.leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    saved_state = SavedState(fn, args, kwargs, state=True)
    sizes = sorted({s for x in leaves for s in x.shape if s > 4}, reverse=True)

    def runs(args: Any, kwargs: Any, call: Callable[..., Any] | None) -> bool:
        try:
            observed(fn, args, kwargs, False, saved_state, call)
        except Exception:  # it may require this size or the device
            return False
        return True

    for call in (None, run_graph):
        for size in sizes:
            left = max(2, int(size / excess))
            fewer, keywords = _cut(args, kwargs, size, left)
            if runs(fewer, keywords, call):
                return (
                    fewer,
                    keywords,
                    f"sizes of {size:,} in the arguments were cut to {left:,}, to be done in time",
                )
        if run_graph is None or runs(args, kwargs, None):
            break
    return args, kwargs, ""


def _cut(args: tuple[Any, ...], kwargs: dict[str, Any], size: int, left: int) -> Any:
    """Return the arguments with ``size`` reduced to ``left``."""
    from .._torch.ground import values

    memo: dict[int, torch.Tensor] = {}

    def cut(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        if id(x) not in memo:
            kept = x.detach()[tuple(slice(left) if s == size else slice(None) for s in x.shape)]
            memo[id(x)] = kept.clone().requires_grad_(x.requires_grad)
        return memo[id(x)]

    return values.map_leaves(cut, (args, kwargs))
