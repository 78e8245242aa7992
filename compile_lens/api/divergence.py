"""The cause of a difference between compiled code and eager PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..engine.call import Call, check_fit
from ..engine.entry import outside_dynamo, separates_keywords
from ..results.divergence import Divergence
from .capture import capture


@outside_dynamo
@separates_keywords(capture, without=("build", "keep_inputs"))
def divergence(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    calls: Sequence[Any] | None = None,
    **options: Any,
) -> Divergence:
    """Compare ``fn(*args, **kwargs)`` compiled with eager PyTorch; where they differ, find the operation and the cause.

    The code is built and run, and compared as ``Capture.verify`` does: results, in-place changes and gradients, each
    side against the same call in float64. Where compiled code is worse than eager, the same call is compiled again,
    once for each attempt: with torch's debug backends, with settings of Inductor turned off (all, then by halves), and
    with the first so many passes, fusions, lowerings or decompositions. Bisection finds the one with which the values
    come to differ; the number of attempts grows with the logarithm of theirs. Each attempt is one compile and one run.
    Every run begins with the inputs as they are given, and what the calls change is put back.

    Args:
        fn, kwargs, calls: as for ``capture``. Of several calls, which share what the function changes in place, all
            results are compared.
        options: every other option of ``capture`` but ``build``. Code for an absent NVIDIA GPU (``target="h100"``) runs
            in Triton's interpreter; its kernels are compared, and no cause is searched.

    Returns:
        A ``Divergence``, true if the values agree: ``.cause``, ``.switch`` (the setting that makes them agree, with the
        code to paste), ``.attempts``, ``.verification``, ``.first_value`` (the first value of a kernel that differs);
        ``.save("divergence.html")``.

    Raises:
        UsageError: an argument is not usable, or the function raises without a compiler, too.
        CaptureError: the function cannot be captured.
    """
    from ..trials.divergence import divergence as searched
    from ..trials.restoration import SavedState

    if calls is None:
        check_fit(fn, args, kwargs, "divergence")
    before = SavedState(fn, args, kwargs, calls, state=True)
    try:
        record = capture(fn, *args, kwargs=kwargs, calls=calls, **options)
    finally:
        before.reset()  # the capture makes the call, too
    del before
    each = () if calls is None else Call.read(fn, args, kwargs, calls=calls).each
    return searched(record, fn, args, kwargs, calls=each)
