"""What is said of a device that is not there, beside that device: on a machine with an NVIDIA GPU.

    python benchmarks/real_device.py [--only NAME …] [--model NAME] [--output TABLE.md]

For each function of the tests' suite, training and inference: whether the code that is generated for the device's model
is the device's own, launches of the ledger and of torch.profiler, modelled bytes with the bandwidth that they would
mean, and the predicted peak with the allocator's. Prints a Markdown table. Without an NVIDIA GPU it says so and exits
with 3; with a GPU that no device model is of, with 4.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NO_DEVICE, NO_MODEL = 3, 4


@dataclass(frozen=True)
class Row:
    """One function. ``None`` is what was not measured: ``notes`` say why.

    ``seconds`` is the median time of a forward call, ``nbytes`` what it moves by the model, peaks are in bytes.
    """

    name: str
    same_code: bool | None = None
    launches: int | None = None
    profiled: int | None = None
    nbytes: int | None = None
    seconds: float | None = None
    predicted: int | None = None
    allocated: int | None = None
    notes: tuple[str, ...] = field(default=())


def table(rows: Sequence[Row], bandwidth: float) -> str:
    """The rows as Markdown. ``bandwidth`` is the published one of the device, in bytes a second."""
    head = [
        "function",
        "code",
        "launches",
        "profiler",
        "MB moved",
        "GB/s",
        "of published",
        "peak MiB",
        "allocator",
    ]
    lines = [head, ["---", "---", *["---:"] * 7]]
    for row in rows:
        rate = row.nbytes / row.seconds if row.nbytes is not None and row.seconds else None
        lines.append(
            [
                _cell(row.name),
                {True: "the same", False: "**differs**", None: "–"}[row.same_code],
                _number(row.launches),
                _apart(row.profiled, row.launches),
                _number(row.nbytes, 1e6, 2),
                _number(rate, 1e9, 1),
                "–" if rate is None or not bandwidth else f"{rate / bandwidth:.0%}",
                _number(row.predicted, 2**20, 2),
                _number(row.allocated, 2**20, 2),
            ]
        )
    said = [f"- {row.name}: {note}" for row in rows for note in row.notes]
    return (
        "\n".join(["| " + " | ".join(line) + " |" for line in lines] + (["", *said] if said else [])) + "\n"
    )


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _number(value: float | None, unit: float = 1, digits: int = 0) -> str:
    return "–" if value is None else f"{value / unit:,.{digits}f}"


def _apart(value: int | None, other: int | None) -> str:
    text = _number(value)
    return f"**{text}**" if value is not None and other is not None and value != other else text


def same(one: Iterable[Any], other: Iterable[Any]) -> bool:
    """Whether the kernels of two captures are the same, but for what is of an installation."""
    import re

    def told(kernels: Iterable[Any]) -> list[tuple[str, str, str]]:
        of_here = r"'(backend_hash|kernel_name)': '\w*',? ?"
        return [(k.phase, k.name, re.sub(of_here, "", k.source)) for k in kernels]

    return told(one) == told(other)


def peak_of(capture: Any) -> int | None:
    """The highest of the predicted peaks of a capture's graphs, in bytes; ``None`` if one is not known."""
    peaks = [m.peak for c in capture.compilations for m in c.memory]
    return None if not peaks or any(p is None for p in peaks) else max(peaks)


def measured(name: str, make: Callable[[], tuple[Any, Any]], grad: bool, model: str) -> Row:
    """One function of the suite on the first GPU. What fails is said in the row, and the next one goes on."""
    import torch

    import compile_lens
    from compile_lens.measures import timing
    from compile_lens.record.benchmark import FORWARD

    kind = "training" if grad else "inference"
    found: dict[str, Any] = {}
    notes: list[str] = []
    try:
        fn, args = make()
        there = fn.cuda() if isinstance(fn, torch.nn.Module) else fn
        moved = [a.detach().cuda().requires_grad_(a.requires_grad and grad) for a in args]
        with torch.set_grad_enabled(grad):
            generated = compile_lens.capture(fn, *args, target=model)
            real = compile_lens.capture(there, *moved)
            found["same_code"] = same(generated.kernels, real.kernels)
            found["predicted"] = peak_of(generated)
            timed = compile_lens.benchmark(there, *moved, ablations=False, seconds=0.5).benchmark
            series = None if timed is None else timing.find(timed, "compiled", FORWARD)
            if series is not None:
                found |= {"launches": series.launches, "profiled": series.profiled, "nbytes": series.nbytes}
                found["seconds"] = timing.spread(series.seconds).median
            found["allocated"] = allocated(there, moved, grad)
    except Exception as error:  # a table with this line in it says more than none
        lines = str(error).splitlines()
        notes.append(f"{type(error).__name__}: {lines[0] if lines else ''}")
    return Row(f"{name}, {kind}", notes=tuple(notes), **found)


def allocated(fn: Any, args: Sequence[Any], grad: bool) -> int:
    """The most bytes that the allocator held in one compiled call, backward included, on the first GPU."""
    import torch

    compiled = torch.compile(fn)

    def step() -> None:
        results = compiled(*args)
        if grad:
            leaves = [
                r for r in torch.utils._pytree.tree_leaves(results) if getattr(r, "requires_grad", False)
            ]
            torch.autograd.backward(leaves, [torch.ones_like(r) for r in leaves])
            for one in args:
                one.grad = None

    step()  # compiles, and makes what is made once
    torch.cuda.synchronize(0)
    torch.cuda.reset_peak_memory_stats(0)
    step()
    torch.cuda.synchronize(0)
    return int(torch.cuda.max_memory_allocated(0))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="functions of the suite (default: all)")
    parser.add_argument("--model", help="device model (default: the one of this GPU)")
    parser.add_argument("--output", type=Path, help="also write the table to this file")
    asked = parser.parse_args(arguments)

    import torch

    sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]
    from suite import SUITE

    from compile_lens.devices import models

    unknown = [name for name in asked.only or () if name not in SUITE]
    if unknown:
        parser.error(
            f"no function {', '.join(map(repr, unknown))} in the suite; it has {', '.join(map(repr, SUITE))}"
        )
    if not torch.cuda.is_available():
        print("no NVIDIA GPU in this machine: nothing was compared", file=sys.stderr)
        return NO_DEVICE
    device = torch.cuda.get_device_name(0)
    model = models.resolve(asked.model) if asked.model else models.find(device)
    if model is None:
        print(f"no device model is of {device}: pass one with --model (a name or a file)", file=sys.stderr)
        return NO_MODEL
    names = asked.only or list(SUITE)
    rows = [measured(name, SUITE[name], grad, model.name) for name in names for grad in (True, False)]
    text = f"{device}, model {model.name}, torch {torch.__version__}\n\n{table(rows, model.bandwidth)}"
    print(text)
    if asked.output:
        part = asked.output.with_name(f"{asked.output.name}.part")
        part.write_text(text, encoding="utf-8")
        part.replace(asked.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
