"""Compilation of the kernels of a capture for an absent device, as far as this machine has a compiler for them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from ..record.autotuning import Autotuning
from ..record.kernel import Code, Kernel
from ..results.capture import Capture


def machine_code(capture: Capture) -> Capture:
    """Return the capture with its kernels compiled, as far as this machine has a compiler for them. No kernel is
    run."""
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
    return _with_code(capture, lambda code: _built(code, _with_metal_note(code.kernels)))


def _with_metal_note(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    reason = "Metal's compiler comes with macOS: nothing here compiles it"
    return tuple(
        k if k.language == "extern" else dataclasses.replace(k, machine_note=reason) for k in kernels
    )


def _built(code: Code, kernels: tuple[Kernel, ...]) -> Code:
    own = [k for k in kernels if k.language != "extern"]
    done = bool(own) and all(k.machine is not None for k in own)
    return dataclasses.replace(code, kernels=kernels, stamp="built" if done else code.stamp)


KEPT_FORMS = ("ptx", "sass")
"""Forms of machine code that are recorded for templates, of which one matrix product has about twenty."""


def _with_contests(capture: Capture, build: Callable[[Kernel], Kernel]) -> Capture:
    """Return the capture with the templates of its autotuning choices compiled."""

    def built(kernel: Kernel) -> Kernel:
        if kernel.kind != "template":
            return kernel
        compiled = build(kernel)
        machine = compiled.machine
        if machine is not None:
            forms = tuple(form for form in machine.forms if form.kind in KEPT_FORMS)
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
