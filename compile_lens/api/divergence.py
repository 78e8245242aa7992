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
    """Compare compiled ``fn(*args, **kwargs)`` with eager PyTorch, and find the operation and the cause of a
    difference.

    The code is built, run and compared as by ``Capture.verify``: results, in-place changes and gradients, each side
    against a float64 run. If compiled code is worse than eager, further attempts follow, each one compile and one run
    of the same call: with torch's debug backends, with Inductor settings turned off (all, then by bisection), and with
    only the first n passes, fusions, lowerings or decompositions. Bisection finds the one that makes the values differ,
    in a logarithmic number of attempts. Every run starts from the given inputs, and changed state is restored.

    Args:
        fn, kwargs, calls: as for ``capture``. The results of all calls are compared; the calls share in-place changes.
        options: other options of ``capture``, except ``build`` and ``keep_inputs``. Code for an absent NVIDIA GPU
            (``target="h100"``) runs in Triton's interpreter: its kernels are compared, but no cause is searched.

    Returns:
        A ``Divergence``, true if the values agree: ``.cause``, ``.switch`` (the setting that makes them agree, with
        code to paste), ``.attempts``, ``.verification``, ``.first_value`` (the first differing value of a kernel);
        ``.save("divergence.html")``.

    Raises:
        UsageError: an argument is invalid, or the function also raises without a compiler.
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
        before.reset()  # the capture made the call too
    del before
    each = () if calls is None else Call.read(fn, args, kwargs, calls=calls).each
    return searched(record, fn, args, kwargs, calls=each)
