"""Capture every stage that ``torch.compile`` takes a function through.

``capture`` compiles a function for given inputs, calls it once, and returns the record. ``show`` also displays
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.entry import outside_dynamo, separates_keywords

# The rest is loaded when a function is called: where it is for a target, the child process has begun by then.
if TYPE_CHECKING:
    from ..record.device import DeviceModel
    from ..results.capture import Capture


@outside_dynamo
@separates_keywords()
def capture(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    calls: Sequence[Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    build: bool = False,
    target: str | Path | DeviceModel | None = None,
    keep_inputs: bool = False,
    **named: Any,
) -> Capture:
    """Capture every stage that ``torch.compile`` takes ``fn(*args, **kwargs)`` through.

    The function runs once for each call, as a plain call would: what it changes in place is changed once, its result is
    dropped. Random states, grad mode, configs, hooks and caches are afterwards as before.

    Args:
        fn: any callable: a function, an ``nn.Module``, a bound method, a partial, an already compiled function.
        kwargs: keyword arguments for ``fn``: those that have the name of an option. All others can stand beside the
            options, as in a plain call: ``capture(model, input_ids=ids)``.
        calls: arguments of several calls, made one after another, in place of ``args``: a tuple of each, or a dict by
            name (``calls=[(x3,), (x4,)]``); ``kwargs`` are given to each. ``.calls`` says what was compiled in each and
            what it ran, ``.recompiles`` which guard failed.
        backward: ``"auto"`` captures the backward where an output needs a gradient; ``True`` insists on it;
            ``False`` skips it. No ``.grad`` is touched.
        dynamic, mode, options, fullgraph: as in ``torch.compile``.
        build: also build and run the generated code. By default the code is only generated: no compiler is
            needed, and the result comes from the graph that Dynamo captured.
        target: the device to generate code for, which need not be in the machine: a name (``"h100"``, ``"mps"``,
            ``"cuda:sm_80"``, ``"cpu:avx2"``), a ``DeviceModel`` or the path of its file. The capture runs in a child
            process, where the function is called on the CPU; this process is left as it is. With ``build`` the kernels
            are also compiled to the device's machine code (Triton, from ``compile_lens[triton]``).
        keep_inputs: keep the function and its arguments alive with the capture, for ``capture.verify()``. By default
            the capture keeps neither, and ``verify`` needs the caller to hold them.

    Raises:
        UsageError: an argument is not usable.
        CaptureError: the function raised, or a stage of the compiler rejected it; ``error.capture`` holds
            every stage before the failure, ``error.__cause__`` the original exception.
    """
    from ..engine.call import Call
    from ..engine.options import CaptureOptions
    from ..engine.remote import dispatch

    checked = CaptureOptions(backward, dynamic, mode, options, fullgraph, build, target, keep_inputs)
    return dispatch(Call.read(fn, args, kwargs, checked, calls=calls))


@outside_dynamo
@separates_keywords()
def show(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    calls: Sequence[Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    build: bool = False,
    target: str | Path | DeviceModel | None = None,
    keep_inputs: bool = False,
    memory_curve: bool = False,
    lang: str | None = None,
    **named: Any,
) -> Capture:
    """``capture``, displayed: as a page in a notebook, as text in a terminal. Returns the capture.

    Where the function or the compiler fails, what was seen until then is displayed before the error is raised.

    Args:
        fn, args, kwargs, named, calls, backward, dynamic, mode, options, fullgraph, build, target, keep_inputs: as in
            ``capture``.
        memory_curve: also capture the call once for each ``activation_memory_budget``, as ``capture.memory_curve()``
            does, and show what each saves and computes again.
        lang: the language of the page, ``"en"`` or ``"zh"``; that of ``course.language`` if not given. Code, names and
            the words of torch stay as they are, and so does the text in a terminal.

    Raises:
        UsageError: there is no page in ``lang``.
        UsageError, CaptureError: as ``capture`` and ``capture.memory_curve`` do.
    """
    from ..engine.call import Call
    from ..engine.options import CaptureOptions
    from ..engine.remote import dispatch
    from ..errors import UsageError
    from ..results.capture import CaptureError
    from ..views.language import chosen
    from ..views.notebook import display

    if memory_curve and calls is not None:
        raise UsageError("memory_curve=True is for one call, and calls= are several: show each")
    language = chosen(lang)
    checked = CaptureOptions(backward, dynamic, mode, options, fullgraph, build, target, keep_inputs)
    call = Call.read(fn, args, kwargs, checked, calls=calls)
    try:
        captured = dispatch(call)
    except CaptureError as error:
        display(error.capture, language)
        raise
    if memory_curve:
        captured.memory_curve(fn, *args, kwargs=kwargs)
    display(captured, language)
    return captured
