"""Capture every stage that ``torch.compile`` takes a function through.

``capture`` compiles a function for given inputs, calls it once, and returns the record. ``show`` also displays
it. The named backend (``torch.compile(f, backend="compile_lens")``) records whole programs; ``last`` has its
captures.
"""

from __future__ import annotations

import dataclasses
import datetime
import inspect
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ._torch.outside import outside_dynamo
from ._torch.unseen import unseen
from .device_model import DeviceModel, Target
from .elsewhere import machine_code
from .environment import environment, target_of
from .errors import CaptureError, UsageError
from .inputs import Live, describe_all, name_of, short, tensors
from .record import Capture, Options
from .sources import run_early, with_inlined

if TYPE_CHECKING:
    from ._torch.session import Outcome, Request

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""Names that ``mode`` takes, as in ``torch.compile``."""

AWAITED = (
    "{names}: an async function, whose body Dynamo ran where it is called. What awaits it got its result in place of a "
    "coroutine: torch.compile does that, Python does not. Mark the function that awaits it with "
    "torch.compiler.disable, and compile what it calls."
)
"""What stands beside an error where that happened."""


@outside_dynamo
def capture(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    build: bool = False,
    target: str | Path | DeviceModel | None = None,
) -> Capture:
    """What ``torch.compile`` makes of ``fn(*args, **kwargs)``, stage by stage.

    The function runs once, as a plain call would: what it changes in place is changed once, its result is
    dropped. Random states, grad mode, configs, hooks and caches are afterwards as before.

    Args:
        fn: any callable: a function, an ``nn.Module``, a bound method, a partial, an already compiled function.
        kwargs: keyword arguments for ``fn``.
        backward: ``"auto"`` captures the backward where an output needs a gradient; ``True`` insists on it;
            ``False`` skips it. No ``.grad`` is touched.
        dynamic, mode, options, fullgraph: as in ``torch.compile``.
        build: also build and run the generated code. By default the code is only generated: no compiler is
            needed, and the result comes from the graph that Dynamo captured.
        target: the device to generate code for, which need not be in the machine: a name (``"h100"``, ``"mps"``,
            ``"cuda:sm_80"``, ``"cpu:avx2"``), a ``DeviceModel`` or the path of its file. The capture runs in a child
            process, where the function is called on the CPU; this process is left as it is. With ``build`` the kernels
            are also compiled to the device's machine code (Triton, from ``compile_lens[triton]``).

    Raises:
        UsageError: an argument is not usable.
        CaptureError: the function raised, or a stage of the compiler rejected it; ``error.capture`` holds
            every stage before the failure, ``error.__cause__`` the original exception.
    """
    asked = Asked(backward, dynamic, mode, options, fullgraph, build, target)
    return _captured(fn, args, kwargs, asked)


@outside_dynamo
def run(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    build: bool = False,
) -> tuple[Capture, Any]:
    """As ``capture``, and what the one call of ``fn`` returned.

    The backward is compiled but not launched, so that the caller can start it from the result.
    """
    asked = Asked(backward, dynamic, mode, options, fullgraph, build)
    made, outcome = perform(fn, args, kwargs, asked)
    return made, outcome.result


@outside_dynamo
def show(
    fn: Any,
    *args: Any,
    kwargs: dict[str, Any] | None = None,
    backward: bool | str = "auto",
    dynamic: bool | None = None,
    mode: str | None = None,
    options: dict[str, Any] | None = None,
    fullgraph: bool = False,
    build: bool = False,
    target: str | Path | DeviceModel | None = None,
) -> Capture:
    """``capture``, displayed: as a page in a notebook, as text in a terminal. Returns the capture.

    Where the function or the compiler fails, what was seen until then is displayed before the error is raised.

    Args:
        fn, kwargs, backward, dynamic, mode, options, fullgraph, build, target: as in ``capture``.

    Raises:
        UsageError, CaptureError: as ``capture`` does.
    """
    from .views.notebook import display

    try:
        asked = Asked(backward, dynamic, mode, options, fullgraph, build, target)
        made = _captured(fn, args, kwargs, asked)
    except CaptureError as error:
        display(error.capture)
        raise
    display(made)
    return made


def device() -> torch.device:
    """The device to teach on: cuda where there is one, else mps, else cpu."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    if torch.backends.mps.is_available():
        return torch.device("mps")
    return torch.device("cpu")


@dataclasses.dataclass(frozen=True)
class Asked:
    """The options of ``capture``, as they were given."""

    backward: bool | str = "auto"
    dynamic: bool | None = None
    mode: str | None = None
    options: dict[str, Any] | None = None
    fullgraph: bool = False
    build: bool = False
    target: str | Path | DeviceModel | None = None

    def __post_init__(self) -> None:
        choices = {
            "backward": ("auto", True, False),
            "dynamic": (None, True, False),
            "fullgraph": (True, False),
            "build": (True, False),
        }
        for name, valid in choices.items():
            value = getattr(self, name)
            if not any(type(value) is type(one) and value == one for one in valid):  # 1 is equal to True
                raise UsageError(f"{name}={short(value)} is not one of {', '.join(map(repr, valid))}")

    def recorded(self) -> Options:
        """Their plain form."""
        said = {True: "yes", False: "no"}.get(self.backward) if isinstance(self.backward, bool) else "auto"
        return Options(
            backward=said or "auto",
            dynamic=self.dynamic,
            mode=self.mode,
            options=tuple(sorted((k, repr(v)) for k, v in (self.options or {}).items())),
            fullgraph=self.fullgraph,
            build=self.build,
            target=self.target.name if isinstance(self.target, DeviceModel) else str(self.target or ""),
        )

    def request(self, **more: Any) -> Request:
        """What they ask of a session. Raises ``UsageError`` for a mode or an option that torch does not know."""
        from ._torch.session import Request

        return Request(
            build=self.build and more.get("model") is None,
            backward=self.backward is not False,
            patches=_patches(self.mode, self.options, self.dynamic),
            dynamic=self.dynamic,
            fullgraph=self.fullgraph,
            **more,
        )


def _captured(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, asked: Asked) -> Capture:
    """In this process, or elsewhere if it is for a device that is not the one of the inputs."""
    from . import elsewhere

    keywords = _check(fn, args, kwargs)
    model = elsewhere.needed(asked.target, target_of(args, keywords, fn))
    if model is not None:
        if asked.mode is not None or asked.options:  # what is wrong with them is said before anything crosses
            _patches(asked.mode, asked.options, asked.dynamic)
        return elsewhere.capture(fn, args, keywords, asked, model)
    return perform(fn, args, keywords, asked, launch_backward=asked.backward is not False)[0]


def perform(
    fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None, asked: Asked, **more: Any
) -> tuple[Capture, Outcome]:
    """One session, its record, and what else it left. ``more`` are fields of the session's ``Request``."""
    from ._torch import session

    keywords = _check(fn, args, kwargs)
    outcome = session.run(fn, args, keywords, asked.request(**more))
    made = _record(fn, args, keywords, asked.recorded(), outcome, more.get("model"))
    if asked.build and more.get("model") is not None:
        made = machine_code(made)
    object.__setattr__(made, "_live", Live(fn, args, keywords))
    if outcome.error is not None:
        assert outcome.failure is not None
        raise CaptureError(_say(made), made) from outcome.error
    if asked.backward is True and not any("backward" in c.graphs for c in made.compilations):
        raise UsageError(
            f"backward=True, but nothing in {made.function} is differentiable: no output depends on a tensor "
            'with requires_grad=True. Pass such an input, or backward="auto" to skip it'
        )
    return made, outcome


@unseen
def _check(fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> dict[str, Any]:
    if not callable(fn):
        raise UsageError(
            f"capture needs a callable first, got {short(fn)} of type {type(fn).__name__}: "
            "pass the function and then its arguments, capture(f, x), not capture(f(x))"
        )
    if kwargs is not None and not (isinstance(kwargs, dict) and all(isinstance(k, str) for k in kwargs)):
        raise UsageError(
            f"kwargs={short(kwargs)} is not a dict of keyword arguments: capture(f, x, kwargs={{'y': y}})"
        )
    keywords = dict(kwargs or {})
    for where, tensor in tensors(args, keywords):
        if tensor.device.type == "meta":
            raise UsageError(
                f"{where} is on device 'meta', which holds no data: pass a tensor on {device()} "
                f"(for example torch.rand(…, device={str(device())!r}))"
            )
    try:
        signature = inspect.signature(fn.forward if isinstance(fn, torch.nn.Module) else fn)
    except (TypeError, ValueError):  # a builtin without a signature: the call itself will tell
        return keywords
    try:
        signature.bind(*args, **keywords)
    except TypeError as error:
        raise UsageError(
            f"{name_of(fn)}{signature} cannot be called with {len(args)} positional argument(s)"
            + (f" and {', '.join(keywords)}" if keywords else "")
            + f": {error}. Pass its inputs after it: capture({name_of(fn)}, …)"
        ) from None
    return keywords


def _patches(mode: str | None, options: dict[str, Any] | None, dynamic: bool | None) -> dict[str, Any]:
    from ._torch import session

    if mode is not None and options:
        raise UsageError(
            "mode and options cannot both be given, as in torch.compile: put the mode's settings in options"
        )
    if mode is not None and mode not in MODES:
        raise UsageError(f"mode={mode!r} is not one of {', '.join(map(repr, MODES))}")
    try:
        return session.inductor_patches(mode, options, dynamic)
    except (RuntimeError, AttributeError, TypeError) as error:
        raise UsageError(f"options={short(options)}: {str(error).splitlines()[0][:400]}") from None


def _record(
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asked: Options,
    outcome: Any,
    model: DeviceModel | None,
) -> Capture:
    from ._torch import versions

    recorder = outcome.recorder
    recorder.note(versions.note())
    compilations, timings = recorder.finish()
    sources = with_inlined(recorder.sources.values(), compilations)
    failure = outcome.failure
    if failure is not None and failure.stage == "run" and (early := run_early(sources, compilations)):
        failure = dataclasses.replace(failure, hint=AWAITED.format(names=", ".join(early)))
    return Capture(
        function=name_of(fn),
        environment=environment(target_of(args, kwargs, fn), recorder.isa, model),
        options=asked,
        inputs=tuple(describe_all(fn, args, kwargs)),
        sources=sources,
        compilations=compilations,
        timings=timings,
        nothing=outcome.nothing,
        failure=failure,
        notes=tuple(recorder.notes),
        created=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        skipped=recorder.left_to_python(),
        target=None
        if model is None
        else Target(asked.target, model, "", recorder.may_differ, recorder.questions),
    )


def _say(made: Capture) -> str:
    from ._torch import dynamo, versions

    failure = made.failure
    assert failure is not None
    next_step = ""
    if made.target is not None and re.search(r"ModuleNotFoundError: .*\btriton\b", failure.message):
        next_step = (
            f"\nInductor writes it from a template and needs Triton for that: {versions.triton_command()}"
        )
    seen = [key for c in made.compilations for key in c.graphs]
    where = "while it ran" if failure.stage == "run" else f"in stage {failure.stage}"
    lines = [f"  at {f.file}:{f.line} in {f.function}: {f.text}".rstrip(": ") for f in failure.frames[-1:]]
    lines += [f"  hint: {hint}" for hint in failure.hint.splitlines()]
    lines += [f"  more: {failure.link}"] if failure.link else []
    return "\n".join(
        (
            f"{made.function} failed {where}: {failure.type}: {dynamo.gist(failure.message)}{next_step}",
            *lines,
            f"(error.capture holds what was seen until then: {', '.join(dict.fromkeys(seen)) or 'no stage'})",
        )
    )


# The named backend -----------------------------------------------------------------------------------------

_lock = threading.Lock()
_UNSEEN = (
    "guards, recompiles and what Dynamo skipped are not seen by the named backend: use capture() for them"
)
_programs: list[tuple[Any, str]] = []
"""Recorder and function name of the program that the named backend saw last."""


def backend(gm: torch.fx.GraphModule, example_inputs: list[Any], **given: Any) -> Any:
    """The inspect backend by name: ``torch.compile(f, backend="compile_lens")``.

    Results are eager's; ``compile_lens.last()`` has the captures. Dynamo calls it with a graph and its inputs.

    Args:
        given: what ``torch.compile`` was given beside the backend: ``mode``, one of ``MODES`` (Inductor's), and
            ``options``, a dict: ``"build": True`` builds and runs the generated code; the others are Inductor's.

    Raises:
        UsageError: a mode or an option is not known.
    """
    from ._torch import named

    options = dict(given.get("options") or {})
    build = Asked(build=options.pop("build", False)).build
    patches = _patches(given.get("mode"), options or None, None)
    recorder, compiled, function = named.compile(
        gm, example_inputs, patches, build, _programs[-1][0] if _programs else None
    )
    with _lock:
        _programs[:] = [(recorder, function)]
    return compiled


def last() -> Capture | None:
    """The capture of the program that ``backend="compile_lens"`` compiled last; None before the first.

    A function with graph breaks is one program: its parts are the capture's compilations.
    """
    with _lock:
        if not _programs:
            return None
        recorder, function = _programs[-1]
    compilations, timings = recorder.finish()
    return Capture(
        function=function,
        environment=environment(recorder.target, recorder.isa),
        options=Options(build=recorder.build),
        sources=with_inlined(recorder.sources.values(), compilations),
        compilations=compilations,
        timings=timings,
        inputs=tuple(recorder.inputs),
        notes=(*recorder.notes, _UNSEEN),
        unseen=_UNSEEN,
        created=datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
