"""Text about the machine code of kernels: figures, launch configurations and names of its forms."""

from __future__ import annotations

from dataclasses import dataclass

from compile_lens.record.kernel import Candidate, Form, Kernel

from .quantities import plural

TITLES = {
    "ttir": "TTIR",
    "ttgir": "TTGIR",
    "llir": "LLVM IR",
    "ptx": "PTX",
    "sass": "SASS",
    "amdgcn": "AMDGCN",
    "assembly": "assembly",
}
"""Display names of the forms."""

MAX_CONFIGURATIONS = 40
"""Maximum launch configurations listed; the rest is only counted."""


@dataclass(frozen=True)
class Remark:
    """A short text about a kernel or a module, with lines that can be unfolded below it."""

    title: str
    lines: tuple[str, ...] = ()


def facts(kernel: Kernel) -> tuple[str, ...]:
    """Return short figures of the machine code: ``sm_90a``, ``32 registers a thread``, ``no spills``."""
    machine = kernel.machine
    if machine is None:
        return ()
    parts = [machine.arch] if machine.arch else []
    if machine.registers is not None:
        parts.append(f"{plural(machine.registers, 'register')} a thread")
    if machine.shared is not None:
        parts.append(f"{machine.shared:,} B shared memory" if machine.shared else "no shared memory")
    if machine.spills is not None:
        parts.append(f"{machine.spills:,} B spilled" if machine.spills else "no spills")
    if machine.vector_bits is not None:
        parts.append(f"{machine.vector_bits}-bit vectors" if machine.vector_bits else "no vectors")
    if machine.instructions is not None:
        parts.append(plural(machine.instructions, "instruction"))
    return tuple(parts)


HEAD = (
    "compiled for", "registers", "shared memory", "spilled", "widest vector", "instructions", "compiler",
)  # fmt: skip
"""The names of ``figures``, in the same order."""


def figures(kernel: Kernel) -> tuple[str, ...]:
    """Return the figures of the machine code with units; ``""`` for unknown or meaningless ones."""
    machine = kernel.machine
    if machine is None:
        return ("",) * len(HEAD)
    return (
        machine.arch,
        "" if machine.registers is None else f"{machine.registers:,} a thread",
        "" if machine.shared is None else f"{machine.shared:,} B a block",
        "" if machine.spills is None else f"{machine.spills:,} B a thread",
        "" if machine.vector_bits is None else f"{machine.vector_bits:,} bits",
        "" if machine.instructions is None else f"{machine.instructions:,}",
        machine.compiler,
    )


def settings(candidate: Candidate) -> str:
    """Return a launch configuration as text: ``XBLOCK=256, num_warps=4``."""
    return ", ".join(f"{name}={value}" for name, value in candidate.settings)


def taken(kernel: Kernel) -> Candidate | None:
    """Return the launch configuration of the machine code."""
    machine = kernel.machine
    if machine is None or not 0 <= machine.candidate < len(kernel.candidates):
        return None
    return kernel.candidates[machine.candidate]


def configurations(kernel: Kernel) -> Remark | None:
    """Describe the launch configurations: the used one and the others; ``None`` if there are none."""
    if not kernel.candidates:
        return None
    used = taken(kernel)
    count = len(kernel.candidates)
    if count == 1:
        return Remark(f"the one launch configuration: {settings(kernel.candidates[0])}")
    title = f"{count:,} launch configurations: a device that runs it times them"
    if used is not None:
        number = kernel.candidates.index(used) + 1
        title += f"; here {'the first' if number == 1 else f'number {number}'} was taken"
    lines = [
        settings(one) + (" (taken)" if one is used else "") for one in kernel.candidates[:MAX_CONFIGURATIONS]
    ]
    if count > MAX_CONFIGURATIONS:
        lines.append(f"and {count - MAX_CONFIGURATIONS:,} more: kernel.candidates")
    return Remark(title, tuple(lines))


def missing(kernel: Kernel) -> tuple[str, ...]:
    """Return the reasons why machine code or a form of it is missing, a line each."""
    if kernel.machine is None:
        return (f"no machine code: {kernel.machine_note}",) if kernel.machine_note else ()
    return tuple(f"no {title(kind)}: {reason}" for kind, reason in kernel.machine.missing)


def remarks(kernel: Kernel) -> tuple[Remark, ...]:
    """Return the remarks below the figures: launch configurations and missing forms."""
    remark = configurations(kernel)
    return (*([remark] if remark else []), *(Remark(words) for words in missing(kernel)))


def title(kind: str) -> str:
    """Return the display name of a form."""
    return TITLES.get(kind, kind)


def names(kernel: Kernel) -> str:
    """Return the Python attributes of the forms: ``kernel.ptx, kernel.sass``; ``""`` if there are none."""
    forms = kernel.machine.forms if kernel.machine is not None else ()
    return ", ".join(f"kernel.{form.kind}" for form in forms if form.kind in TITLES)


def last(kernel: Kernel) -> Form | None:
    """Return the lowest-level form; ``None`` if there is none."""
    forms = kernel.machine.forms if kernel.machine is not None else ()
    return forms[-1] if forms else None
