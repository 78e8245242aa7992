"""Compilation of the Triton kernels of a wrapper module for a device that may be absent."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
from collections.abc import Mapping

from ...errors import BuildError, UsageError
from ...record.device import DeviceModel
from ...record.kernel import Candidate, Code, Kernel, Machine


def needs() -> str:
    """Return why machine code needs Triton, and how to install it."""
    from ...versions import triton_command

    return f"it needs Triton: {triton_command()} (there are wheels for Linux)"


def build(code: Code, model: DeviceModel, chosen: Mapping[str, int] | None = None) -> Code:
    """Return the code with launch configurations and machine code of its Triton kernels.

    The text of each kernel is run, since its Inductor decorators create the launch configurations. A kernel that cannot
    be compiled has the reason in ``machine_note``. The code is stamped ``built`` if nothing is missing.

    Args:
        model: the device that the code was generated for.
        chosen: index of the launch configuration by kernel name (``"backward triton_poi_0"`` if two phases share a
            name); 0 for the others.

    Raises:
        UsageError: a kernel has no configuration of this index.
    """
    kernels = tuple(kernel_of(k, model, choice(k, chosen or {})) for k in code.kernels)
    return stamped(dataclasses.replace(code, kernels=kernels))


def choice(kernel: Kernel, chosen: Mapping[str, int]) -> int:
    """Return the index of the launch configuration to compile."""
    return chosen.get(f"{kernel.phase} {kernel.name}", chosen.get(kernel.name, 0))


def stamped(code: Code) -> Code:
    """Return the code, stamped ``built`` if all its Triton kernels have machine code."""
    triton = [k for k in code.kernels if k.language == "triton"]
    done = all(k.machine is not None and not k.machine.missing for k in triton)
    if code.stamp == "generated only" and triton and done:
        return dataclasses.replace(code, stamp="built")
    return code


def kernel_of(kernel: Kernel, model: DeviceModel, index: int = 0) -> Kernel:
    """Return one kernel with its launch configurations and machine code, as ``build`` does."""
    if kernel.language == "extern":
        return dataclasses.replace(
            kernel, machine_note="a library's function: its machine code is in the library"
        )
    if kernel.language != "triton":
        return kernel
    if importlib.util.find_spec("triton") is None:
        return dataclasses.replace(kernel, candidates=(), machine=None, machine_note=needs())
    candidates, machine, note = _built(kernel.source, kernel.name, model, index)
    if candidates and not 0 <= index < len(candidates):
        raise UsageError(
            f"{kernel.name} has no launch configuration {index}: it has {len(candidates)}, "
            + "; ".join(f"{i}: {_settings_text(c)}" for i, c in enumerate(candidates))
        )
    return dataclasses.replace(kernel, candidates=candidates, machine=machine, machine_note=note)


@functools.lru_cache(maxsize=256)
def _built(
    source: str, name: str, model: DeviceModel, index: int
) -> tuple[tuple[Candidate, ...], Machine | None, str]:
    """Return the launch configurations, the machine code and a note for a kernel's text."""
    from ..._torch.code import triton_configs
    from ..._triton import assembly, driver

    candidates: tuple[Candidate, ...] = ()
    try:
        with driver.model_driver(model), triton_configs.without_device():
            tuner = assembly.run_definition(source, name)
            configurations = triton_configs.configurations(tuner)
            candidates = tuple(Candidate(triton_configs.settings(c)) for c in configurations)
            if not 0 <= index < len(configurations):
                return candidates, None, ""
            recipe = triton_configs.recipe(tuner, configurations[index])
            if other := _other_device(recipe.backend, recipe.arch, model):
                return candidates, None, other
            machine = assembly.compile_machine(recipe, index)
    except BuildError as error:
        return candidates, None, str(error)
    except (Exception, SystemExit) as error:  # any error of the text, Inductor or Triton is the reason
        return candidates, None, f"its text could not be run: {assembly.error_text(error)}"
    return candidates, machine, _too_large(machine, model)


def _other_device(backend: str, arch: int | str, model: DeviceModel) -> str:
    if backend != "cuda":
        return f"its text is for {backend}: only code for NVIDIA's devices is compiled here"
    if f"sm_{arch}" != model.arch:
        return f"its text was generated for sm_{arch}, and {model.title} is {model.arch}"
    return ""


def _too_large(machine: Machine, model: DeviceModel) -> str:
    limit = model.figure("shared_memory_per_block_optin")
    if machine.shared is None or not isinstance(limit, int) or machine.shared <= limit:
        return ""
    return (
        f"a block needs {machine.shared:,} bytes of shared memory, more than the {limit:,} of {model.title}: "
        "there this launch configuration would be refused"
    )


def _settings_text(candidate: Candidate) -> str:
    return ", ".join(f"{name}={value}" for name, value in candidate.settings)
