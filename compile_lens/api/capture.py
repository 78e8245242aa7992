"""``capture`` and ``show``: record every stage of ``torch.compile`` for one function and given inputs; ``show`` also
displays it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.entry import outside_dynamo, separates_keywords

# Other imports are in the functions, so that for a target the child process starts before them.
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

    The function runs once for each call, as in a plain call: in-place changes happen once, the result is dropped.
    Random states, grad mode, configs, hooks and caches are restored.

    Args:
        fn: any callable: a function, an ``nn.Module``, a bound method, a partial, an already compiled function.
        kwargs: keyword arguments for ``fn`` whose names are also options. All others can be passed directly, as in a
            plain call: ``capture(model, input_ids=ids)``.
        calls: arguments of several successive calls, in place of ``args``: a tuple for each, or a dict by name
            (``calls=[(x3,), (x4,)]``); ``kwargs`` are passed to each. ``.calls`` has what each compiled and ran,
            ``.recompiles`` which guard failed.
        backward: ``"auto"`` captures the backward if an output requires grad, ``True`` requires it, ``False`` skips it.
            No ``.grad`` is changed.
        dynamic, mode, options, fullgraph: as in ``torch.compile``.
        build: also build and run the generated code. By default code is only generated, which needs no compiler; the
            call runs the graph that Dynamo captured.
        target: the device to generate code for, which may be absent: a name (``"h100"``, ``"mps"``, ``"cuda:sm_80"``,
            ``"cpu:avx2"``), a ``DeviceModel`` or the path of its file. The capture runs in a child process, which calls
            the function on the CPU; this process is not changed. With ``build`` the kernels are also compiled to the
            device's machine code (Triton, from ``compile_lens[triton]``).
        keep_inputs: keep the function and its arguments alive with the capture, for ``capture.verify()``. By default
            ``verify`` works only while the caller keeps them alive.

    Raises:
        UsageError: an argument is invalid.
        CaptureError: the function raised, or a stage of the compiler rejected it; ``error.capture`` has every stage
            before the failure, ``error.__cause__`` the original exception.
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
    """Capture a function, display the capture as a page in a notebook or as text in a terminal, and return it.

    If the function or the compiler fails, the stages so far are displayed before the error is raised.

    Args:
        fn, args, kwargs, named, calls, backward, dynamic, mode, options, fullgraph, build, target, keep_inputs: as in
            ``capture``.
        memory_curve: also capture the call with each ``activation_memory_budget``, as ``capture.memory_curve()`` does,
            and show what each saves and recomputes.
        lang: the language of the page, ``"en"`` or ``"zh"``; default: that of ``course.language``. Code, names, torch's
            terms and the text in a terminal are not translated.

    Raises:
        UsageError: there is no page in ``lang``.
        UsageError, CaptureError: as ``capture`` and ``capture.memory_curve``.
    """
    from ..engine.call import Call
    from ..engine.options import CaptureOptions
    from ..engine.remote import dispatch
    from ..errors import UsageError
    from ..results.capture import CaptureError
    from ..views.language import chosen
    from ..views.notebook import display

    if memory_curve and calls is not None:
        raise UsageError("memory_curve=True takes one call, and calls= has several: show each call by itself")
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
