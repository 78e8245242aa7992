"""Machine code for the Triton kernels of a capture, also a loaded one, without the device."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..devices import models
from ..errors import BuildError, UsageError
from ..record.device import DeviceModel
from ..record.kernel import Code, Kernel
from ..results.capture import Capture


def assemble(
    capture: Capture,
    candidates: Mapping[str, int] | None = None,
    kernels: Iterable[str | Kernel] | None = None,
    target: str | DeviceModel | Path | None = None,
) -> Capture:
    """Return a new record whose Triton kernels have PTX, SASS and intermediate forms. The given one is not changed.

    **This runs code from the record.** The text of each kernel is a Python module whose decorators create its launch
    configurations; it runs in a separate process. Use it only on records that you trust. Loading a record runs nothing.

    Args:
        candidates: launch configuration to compile, as an index into ``Kernel.candidates`` by kernel name; ``"backward
            triton_poi_0"`` selects the kernel of that phase. Default: the first.
        kernels: kernels to compile, or their names as above; default: all Triton kernels.
        target: the device that the code was generated for, as in ``capture(target=…)``. Needed only if the record's
            device has no model here.

    Returns:
        The record with ``Kernel.candidates`` and ``Kernel.machine``; for kernels that could not be compiled,
        ``Kernel.machine_note`` has the reason.

    Raises:
        UsageError: not a capture, a capture without Triton kernels, or an unknown kernel, target or launch
            configuration.
        BuildError: Triton is not installed, or the compiling process cannot start.

    Example::

        built = compile_lens.assemble(compile_lens.load("run.json"))
        print(built.kernels[0].sass)
    """
    if not isinstance(capture, Capture):
        raise UsageError(
            f"assemble needs a capture first, got {type(capture).__name__}: assemble(compile_lens.capture(f, x, "
            "target='h100')), or the one that compile_lens.load opens"
        )
    of_triton = [k for k in _kernels(capture) if k.language == "triton"]
    if not of_triton:
        languages = sorted({k.language for k in _kernels(capture)}) or ["none"]
        raise UsageError(
            f"this capture of {capture.function} has no Triton kernel (kernels: {', '.join(languages)}): "
            "capture with target='cuda' for code that Triton compiles"
        )
    chosen = dict(candidates or {})
    wanted = None if kernels is None else {k if isinstance(k, str) else _full(k) for k in kernels}
    for name in {*chosen, *(wanted or ())}:
        _known(name, of_triton)
    model = _model(capture, target)
    if importlib.util.find_spec("triton") is None:
        from ..versions import triton_command

        raise BuildError(f"Triton is not installed: {triton_command()} (there are wheels for Linux)")
    from ..engine.kernels import process
    from ..engine.kernels.compiled import choice

    selected = [k for k in of_triton if wanted is None or wanted & {k.name, _full(k)}]
    compiled = process.compiled([(k, choice(k, chosen)) for k in selected], model)
    by_place = dict(zip(map(id, selected), compiled))
    return _replaced(capture, by_place)


def _kernels(capture: Capture) -> Iterator[Kernel]:
    for compilation in capture.compilations:
        for stage in compilation.stages:
            if isinstance(stage, Code):
                yield from stage.kernels


def _full(kernel: Kernel) -> str:
    return f"{kernel.phase} {kernel.name}"


def _known(name: str, kernels: list[Kernel]) -> None:
    if not any(name in (k.name, _full(k)) for k in kernels):
        known = ", ".join(dict.fromkeys(k.name for k in kernels))
        raise UsageError(f"no Triton kernel is called {name!r}; there are {known}")


def _model(capture: Capture, target: str | DeviceModel | Path | None) -> DeviceModel:
    if target is not None:
        return models.resolve(target)
    if capture.target is not None:
        return capture.target.model
    device = capture.environment.device
    model = models.find(device)
    if model is None:
        raise UsageError(
            f"there is no model of the device {device!r} that the code was generated for: name one with the "
            "same architecture, such as target='a100'"
        )
    return model


def _replaced(capture: Capture, replacements: Mapping[int, Kernel]) -> Capture:
    from ..engine.kernels.compiled import stamped

    compilations = []
    for compilation in capture.compilations:
        stages = tuple(
            stamped(
                dataclasses.replace(stage, kernels=tuple(replacements.get(id(k), k) for k in stage.kernels))
            )
            if isinstance(stage, Code)
            else stage
            for stage in compilation.stages
        )
        compilations.append(dataclasses.replace(compilation, stages=stages))
    return dataclasses.replace(capture, compilations=tuple(compilations))
