"""Expectations of a function or a capture: assertions that explain themselves when they fail."""

from __future__ import annotations

import difflib
import importlib.util
from collections.abc import Iterable
from typing import Any

from ..errors import UsageError, needs_torch
from ..results.capture import Capture
from ..results.expectations import Expectations


def expect(capture_or_fn: Any, *args: Any, **options: Any) -> Expectations:
    """Return expectations for tests of what ``torch.compile`` generates: ``expect(f, x).launches(at_most=1)``.

    Args:
        capture_or_fn: a capture (a loaded one needs no torch), or a callable to capture.
        args, options: for a callable, its arguments and options of ``capture`` (``kwargs``, ``target``, …). With
            ``target="h100"`` code for a GPU is tested on a machine without one.

    Returns:
        ``Expectations``, whose methods can be chained; each returns it, or raises ``ExpectationError`` (an
        ``AssertionError``) with the finding, its reason and a suggestion.

    Raises:
        UsageError: arguments after a capture, neither a capture nor a callable, or an invalid argument of ``capture``.
        CaptureError: as ``capture``.

    Example::

        compile_lens.expect(f, x, target="h100").compiled().launches(1).bytes(at_most=1_000_000).fused("gelu", "add")
    """
    __tracebackhide__ = True
    if isinstance(capture_or_fn, Capture):
        if args or options:
            raise UsageError(
                "expect was given a capture and arguments as well: give only a capture, expect(capture), or a "
                "function with its arguments, expect(f, x)"
            )
        return Expectations(capture_or_fn)
    if not callable(capture_or_fn):
        raise UsageError(
            f"expect needs a capture or a callable first, got {type(capture_or_fn).__name__}: expect(capture), "
            "expect(f, x), or expect(compile_lens.load(path))"
        )
    try:
        from ..engine.call import check_callable, check_fit, separate
        from ..engine.entry import own_options
        from .capture import capture
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise needs_torch("expect of a function") from None

    options = separate("expect", own_options(capture), capture_or_fn, args, options)
    if "calls" in options:
        check_callable(capture_or_fn, "expect")
    else:
        check_fit(capture_or_fn, args, options.get("kwargs"), "expect")
    # Keep the inputs, since ``agrees`` repeats the call.
    return Expectations(capture(capture_or_fn, *args, **{"keep_inputs": "calls" not in options, **options}))


def types(names: Iterable[Any]) -> set[str]:
    """Return dtypes by their names in records (``float`` is ``float32``). Raises ``UsageError`` for one that torch
    lacks.

    Without torch the names are returned unchecked.
    """
    wanted = {str(name).removeprefix("torch."): name for name in names}
    try:
        import torch
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        return set(wanted)

    known = {
        name: str(t).removeprefix("torch.") for name, t in vars(torch).items() if isinstance(t, torch.dtype)
    }
    for name, given in wanted.items():
        if name not in known:
            close = difflib.get_close_matches(name, known, 2)
            meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
            every = ", ".join(sorted(set(known.values())))
            raise UsageError(f"dtype({given!r}): torch has no type of that name; {meant}it has {every}")
    return {known[name] for name in wanted}


def absence(op: Any) -> str:
    """Return why an operator cannot be in a graph that Inductor receives; ``""`` if it can.

    Raises ``UsageError`` for an operator that torch does not know. Without torch it returns ``""``.
    """
    if not isinstance(op, str) or not op:
        raise UsageError(f"no({op!r}): give an operator by name, such as 'aten.sort'")
    if importlib.util.find_spec("torch") is None:
        return ""
    from .._torch.operators import support as tables
    from ..measures.operators import plain_name

    if tables.is_higher_order(plain_name(op)) or tables.is_of_library(plain_name(op)):
        return ""
    overloads = tables.overloads(op.strip().removeprefix("extern_kernels."))
    functional = {tables.functional_name(overload.name) for overload in overloads}
    if "" not in functional:
        name = min(functional)
        stays = any(overload.inductor != "decomposition" for overload in tables.overloads(name))
        where = f"{name} there" if stays else "in none"
        return f"torch makes graphs functional before Inductor gets them, and {op} is {where}"
    if any(overload.inductor != "decomposition" for overload in overloads):
        return ""
    return f"torch decomposes {op} into other operators before Inductor gets the graph"
