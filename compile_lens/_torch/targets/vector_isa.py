"""Cross-compilation of C++ for a vector ISA that the processor may lack."""

from __future__ import annotations

import contextlib
import platform
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...errors import UsageError
from .replacements import Replacements, marked

MARK = "isa"
"""Mark of threads whose vector ISA is overridden."""

X86 = ("avx2", "avx512")
ARM = ("neon", "sve256")
NAMES = (*X86, *ARM)
"""Our names of the vector ISAs for which Inductor generates C++."""

_ISA_LOCK = threading.RLock()


@contextlib.contextmanager
def stand_in_for(arch: str) -> Iterator[None]:
    """Make Inductor generate C++ for the vector ISA ``arch`` on this thread for the duration.

    The compiler is not probed, and no template of a matrix product is timed. Other threads see the real processor;
    those that need a stand-in too wait. Raises ``UsageError`` for an ``arch`` for which Inductor generates no code.
    """
    isas = instructions(arch)
    with _ISA_LOCK:
        with Replacements() as places, places:
            _place(places, arch, isas)
            with marked(MARK):
                yield


def _place(places: Replacements, arch: str, isas: list[Any]) -> None:
    import torch._inductor.cpu_vec_isa as cpu_vec_isa
    import torch._inductor.kernel.flex.flex_cpu as flex_cpu
    import torch._inductor.utils as utils

    real: Any = cpu_vec_isa.valid_vec_isa_list
    places.attribute(cpu_vec_isa, "valid_vec_isa_list", MARK, lambda: list(isas))
    placed: Any = cpu_vec_isa.valid_vec_isa_list
    for name in ("cache_info", "cache_clear"):  # torch clears the cache through this name
        if hasattr(real, name):
            setattr(placed, name, getattr(real, name))
    # It reads ATEN_CPU_CAPABILITY, which is for the processor of this machine.
    places.attribute(
        cpu_vec_isa, "get_isa_from_cpu_capability", MARK, lambda capability, isas, *rest: isas[0]
    )
    places.attribute(flex_cpu, "check_cpu_supported", MARK, lambda: arch in X86)
    places.attribute(utils, "_use_template_for_cpu", MARK, lambda *args, **kwargs: False)


def instructions(arch: str) -> list[Any]:
    """Return Inductor's descriptions of the ISAs of a processor with ``arch``, widest first.

    They do not probe the compiler. Raises ``UsageError`` for an unknown ``arch``.
    """
    import torch._inductor.cpu_vec_isa as cpu_vec_isa

    makers: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
        "avx512": (("VecAVX512", ()), ("VecAVX2", ())),
        "avx2": (("VecAVX2", ()),),
        "neon": (("VecNEON", ()),),
        "sve256": (("VecSVE", (256,)), ("VecSVE256", ())),  # the second is its name in torch 2.11
    }
    if arch not in makers:
        raise UsageError(
            f"Inductor generates no C++ for the vector instructions {arch!r} here: choose one of {', '.join(NAMES)}"
        )
    known = [(getattr(cpu_vec_isa, name, None), args) for name, args in makers[arch]]
    isas = [_always_available(kind)(*args) for kind, args in known if kind is not None]
    if not isas:
        raise UsageError(
            f"torch {torch.__version__} does not describe the vector instructions {arch!r} to Inductor: "
            f"choose another of {', '.join(NAMES)}, or a torch that this version of compile_lens was tested with"
        )
    return isas


def _always_available(kind: type[Any]) -> Callable[..., Any]:
    """Return a subclass of the description whose instances are always True, as if the compiler supported the ISA."""
    return type(kind.__name__, (kind,), {"__bool__": lambda self: True, "__module__": kind.__module__})


def name_of(vec_isa: Any) -> str:
    """Return our name of the vector ISA that Inductor picked; ``""`` for none, with which the code is scalar."""
    kinds = [kind.__name__ for kind in type(vec_isa).__mro__]
    width = vec_isa.bit_width()
    if not width:
        return ""
    if any(name.startswith("VecSVE") for name in kinds):
        return f"sve{width}"
    return "neon" if "VecNEON" in kinds else str(vec_isa).split()[0]


def picked_isa() -> str:
    """Return the vector ISA for which Inductor generates C++ on this thread, ``""`` if none."""
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    return name_of(pick_vec_isa())


def isa_caveats(arch: str) -> tuple[str, ...]:
    """Return possible differences on a real processor with ``arch``, one sentence each."""
    threads = torch.get_num_threads()
    sentences = [
        f"Which loops run in parallel, and with how many threads, was decided for the {threads} "
        f"thread{'s' * (threads != 1)} that PyTorch uses here.",
        "Layouts of convolutions, and whether convolutions and linear layers with constant weights become fused "
        "library calls, were decided by the oneDNN in this build of PyTorch, on this processor.",
    ]
    if arch == "avx512":
        sentences.append(
            "With max_autotune, C++ templates of matrix products are timed on the device, and VNNI and AMX have "
            "their own; here a matrix product is a library call."
        )
    else:
        sentences.append(
            "With max_autotune, C++ templates of matrix products are timed on the device; here a matrix product is a "
            "library call."
        )
    if arch in ARM and platform.machine().lower() not in ("aarch64", "arm64"):
        sentences.append(
            "PyTorch for ARM has no MKL and may have Arm's Compute Library, with which Inductor fuses fewer of the "
            "library calls."
        )
    if arch == "sve256":
        sentences.append(
            "Inductor takes these 256 bits, a narrower SVE or NEON by the length of the processor's SVE registers and "
            "by the types that it knows."
        )
    return tuple(sentences)
