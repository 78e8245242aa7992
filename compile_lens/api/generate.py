"""Source of the single kernel that a function compiles to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..engine.call import check_callable, check_fit
from ..engine.entry import outside_dynamo, separates_keywords
from ..record.device import DeviceModel
from ..results.capture import NotOneKernelError
from .capture import capture


@outside_dynamo
@separates_keywords(capture)
def generate(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    target: str | Path | DeviceModel | None = None,
    **options: Any,
) -> str:
    """Return the source of the single kernel that ``torch.compile`` generates for ``fn(*args, **kwargs)``.

    A kernel with several launches counts as one. For the whole code see ``capture(…).code``.

    Args:
        fn, kwargs, target: as for ``capture``: C++ for a CPU, Triton for an NVIDIA GPU, Metal for an Apple GPU.
        options: other options of ``capture``, such as ``backward=False``.

    Raises:
        NotOneKernelError: there is not exactly one kernel, a part of the function was not compiled, or the kernel is a
            library call, which has no source. The message lists the kernels with their lines, why they are separate and
            what to try; ``error.capture`` has the capture.
        UsageError, CaptureError: as ``capture``.

    Example::

        print(compile_lens.generate(lambda x: torch.sin(x) * 2, torch.rand(1000), target="h100"))
    """
    from ..views.explanations.kernels import one

    if "calls" in options:
        check_callable(fn, "generate")
    else:
        check_fit(fn, args, kwargs, "generate")
    captured = capture(fn, *args, kwargs=kwargs, target=target, **options)
    kernel = one(captured)
    if isinstance(kernel, str):
        raise NotOneKernelError(kernel, captured)
    return kernel.source
