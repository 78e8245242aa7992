"""The kernels of a capture for a device that is not there, compiled as far as a compiler is here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..record.autotuning import Autotuning
from ..record.kernel import Code, Kernel
from ..results.capture import Capture


def machine_code(capture: Capture) -> Capture:
    """The capture with its kernels compiled, as far as a compiler for them is here. No kernel is run."""
    target = capture.target
    assert target is not None
    if target.model.device == "cuda":
        from .kernels import compiled

        return _with_contests(
            _with_code(capture, lambda code: compiled.build(code, target.model)),
            lambda kernel: compiled.kernel_of(kernel, target.model),
        )
    if target.model.device == "cpu":
        from .._torch.code import cpu_assembly

        return _with_code(
            capture, lambda code: _built(code, cpu_assembly.compile_kernels(code.kernels, target.model.arch))
        )
    return _with_code(capture, lambda code: _built(code, _noted(code.kernels)))


def _noted(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    reason = "Metal's compiler comes with macOS: nothing here compiles it"
    return tuple(
        k if k.language == "extern" else dataclasses.replace(k, machine_note=reason) for k in kernels
    )


def _built(code: Code, kernels: tuple[Kernel, ...]) -> Code:
    own = [k for k in kernels if k.language != "extern"]
    done = bool(own) and all(k.machine is not None for k in own)
    return dataclasses.replace(code, kernels=kernels, stamp="built" if done else code.stamp)


KEPT = ("ptx", "sass")
"""Forms of a template that stay in the record: there are some twenty templates for one product."""


def _with_contests(capture: Capture, build: Callable[[Kernel], Kernel]) -> Capture:
    """The capture with the templates of its contests compiled."""

    def built(kernel: Kernel) -> Kernel:
        if kernel.kind != "template":
            return kernel
        compiled = build(kernel)
        machine = compiled.machine
        if machine is not None:
            forms = tuple(form for form in machine.forms if form.kind in KEPT)
            machine = dataclasses.replace(machine, forms=forms)
        return dataclasses.replace(kernel, machine=machine, machine_note=compiled.machine_note)

    def change(contest: Autotuning) -> Autotuning:
        return dataclasses.replace(contest, choices=tuple(map(built, contest.choices)))

    compilations = tuple(
        dataclasses.replace(c, autotuning=tuple(map(change, c.autotuning))) for c in capture.compilations
    )
    return dataclasses.replace(capture, compilations=compilations)


def _with_code(capture: Capture, change: Callable[[Code], Code]) -> Capture:
    compilations = tuple(
        dataclasses.replace(c, stages=tuple(change(s) if isinstance(s, Code) else s for s in c.stages))
        for c in capture.compilations
    )
    return dataclasses.replace(capture, compilations=compilations)
