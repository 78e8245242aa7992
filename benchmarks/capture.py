"""Cost of a capture: ratios against built code, plain ``torch.compile`` and torch's own lowering.

    python benchmarks/capture.py [--quick] [--only NAME ...] [--rounds N] [--json]

Every figure is a ratio of two alternating times in one process, so that a slow or busy machine affects
both; no figure causes a failure. ``--quick`` uses a model of 2 layers and fewer rounds. Times are wall
seconds, sizes bytes, peak memory is that of a child process that does only the one thing.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

import torch  # noqa: E402
from gpt2 import Size, example  # noqa: E402
from reasons import stages_only  # noqa: E402
from torch._functorch import config as functorch_config  # noqa: E402
from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor.graph import GraphLowering  # noqa: E402

from compile_lens import capture  # noqa: E402
from compile_lens._torch.ground.python_runtime import with_stack_room  # noqa: E402


@dataclass(frozen=True)
class Figure:
    """One line of the output. ``target`` is the project's goal, ``""`` if it has none."""

    benchmark: str
    name: str
    value: float
    unit: str
    target: str = ""

    def __str__(self) -> str:
        goal = f"   (aim: {self.target})" if self.target else ""
        return f"{self.benchmark:<10} {self.name:<58} {self.value:>12,.2f} {self.unit}{goal}"


def wave(x: torch.Tensor) -> torch.Tensor:
    """Return sin² + cos²."""
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def leaf() -> torch.Tensor:
    """Return the input of ``wave``."""
    return torch.linspace(-3, 3, 1000, requires_grad=True)


def seconds(work: Callable[[], Any]) -> float:
    """Return the wall time of one call, without garbage collection of earlier calls."""
    gc.collect()
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def ratios(a: Callable[[], Any], b: Callable[[], Any], rounds: int) -> tuple[float, float, float]:
    """Return the median of a/b over alternating rounds (each starts every other round), and the median time of each."""
    times: list[tuple[float, float]] = []
    for i in range(rounds):
        if i % 2 == 0:
            first = seconds(a)
            times.append((first, seconds(b)))
        else:
            second = seconds(b)
            times.append((seconds(a), second))
    return (
        statistics.median(x / y for x, y in times),
        statistics.median(x for x, _ in times),
        statistics.median(y for _, y in times),
    )


@contextlib.contextmanager
def not_built() -> Iterator[None]:
    """Make torch generate code without building it. Nothing is recorded."""
    real = GraphLowering._compile_to_module_lines

    def written(self: GraphLowering, wrapper_code: Any) -> Any:
        self.cache_key, self.cache_path, self.cache_linemap = "benchmark", __file__, []
        return types.SimpleNamespace(call=None, __file__=__file__, runner=None)

    GraphLowering._compile_to_module_lines = written  # type: ignore[method-assign]
    try:
        yield
    finally:
        GraphLowering._compile_to_module_lines = real  # type: ignore[method-assign]


def fresh(fn: Any) -> Any:
    """Return the same callable on a new code object, which Dynamo has not seen.

    Not ``torch._dynamo.reset()``: that also empties caches of fake tensors, and would slow down later captures.
    """
    function = fn if isinstance(fn, types.FunctionType) else type(fn).forward
    copied = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return copied if fn is function else types.MethodType(copied, fn)


def torchs_own(fn: Any, *args: Any) -> None:
    """Run Dynamo, AOTAutograd and Inductor up to the generated code, forward and backward, with torch alone.

    The function is called once, on the graph that Dynamo captured, as a code-only capture does.
    """
    from torch._inductor.compile_fx import compile_fx

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        runnable = copy.copy(graph)
        with not_built():
            compile_fx(graph, inputs)
        return runnable.forward

    lowered = {"force_disable_caches": True, "cpp.vec_isa_ok": True, "compile_threads": 1}
    with inductor_config.patch(lowered), functorch_config.patch(force_non_lazy_backward_lowering=True):
        torch.compile(fresh(fn), backend=backend)(*args)


def plain(fn: Any, *args: Any) -> None:
    """Run ``torch.compile`` with every cache off: compiled, built and run, forward and backward."""
    with inductor_config.patch(force_disable_caches=True):
        out = torch.compile(fresh(fn))(*args)
        torch.autograd.grad(out.sum(), [a for a in args if a.requires_grad])


def code_only(rounds: int, quick: bool) -> Iterator[Figure]:
    """Compare code only with built, second call in a process."""
    capture(wave, leaf(), build=True)  # the first build of a process probes the compiler
    capture(wave, leaf())
    ratio, built, only = ratios(
        lambda: capture(wave, leaf(), build=True), lambda: capture(wave, leaf()), max(rounds, 3)
    )
    yield Figure("code_only", "built capture of sin²+cos² with backward", built, "s")
    yield Figure("code_only", "code-only capture of it", only, "s")
    yield Figure("code_only", "how many times faster", ratio, "×", ">= 8")


def overhead(rounds: int, quick: bool) -> Iterator[Figure]:
    """Compare a built capture with plain torch.compile, both with caches off."""
    plain(wave, leaf())
    capture(wave, leaf(), build=True)
    ratio, ours, theirs = ratios(
        lambda: capture(wave, leaf(), build=True), lambda: plain(wave, leaf()), max(rounds, 5)
    )
    yield Figure("overhead", "plain torch.compile, caches off", theirs, "s")
    yield Figure("overhead", "built capture", ours, "s")
    yield Figure("overhead", "built capture / plain torch.compile", ratio, "×", "<= 1.05")


with_room = with_stack_room(torchs_own)
"""Torch alone, with the same room on Python's stack as a capture: without it, chance decides how many of its loops
ask the system for memory at every call (see ``compile_lens/_torch/ground/python_runtime.py``)."""


def against_torch(fn: Any, args: tuple[Any, ...], rounds: int) -> tuple[float, float, float, float]:
    """Return median seconds of torch alone with room, and medians of a capture by it, by it with the garbage collector
    off for both, and by torch alone as it is. All alternate."""
    works = [lambda: capture(fn, *args), lambda: with_room(fn, *args), lambda: torchs_own(fn, *args)]
    times: list[list[float]] = []
    for i in range(rounds):
        medians = [0.0] * 5
        order = [*enumerate(works), (3, works[0]), (4, works[1])]
        for place, work in order if i % 2 == 0 else order[::-1]:
            enabled = gc.isenabled()
            if place >= 3:
                gc.disable()
            try:
                medians[place] = seconds(work)
            finally:
                if enabled:
                    gc.enable()
        times.append(medians)
    return (
        statistics.median(room for _, room, *_ in times),
        statistics.median(ours / room for ours, room, *_ in times),
        statistics.median(ours / room for *_, ours, room in times),
        statistics.median(ours / bare for ours, _, bare, *_ in times),
    )


def figures_against_torch(name: str, fn: Any, args: tuple[Any, ...], rounds: int) -> Iterator[Figure]:
    """Return both ratios for one program; the first is the one that counts."""
    theirs, ratio, uncollected, bare = against_torch(fn, args, rounds)
    yield Figure("gpt2", f"{name}: torch's own Dynamo and lowering", theirs, "s")
    yield Figure("gpt2", f"{name}: capture / torch's own, same room on the stack", ratio, "×", "< 1.10")
    yield Figure("gpt2", f"{name}: the same, garbage collector off for both", uncollected, "×")
    yield Figure("gpt2", f"{name}: capture / torch's own without that room", bare, "×")


def gpt2(rounds: int, quick: bool) -> Iterator[Figure]:
    """Measure a GPT-2-shaped model, forward and backward, against torch's own Dynamo and lowering of it."""
    # Each runs once before: imports, templates and symbolic simplifications are created on first use.
    capture(wave, leaf())
    torchs_own(wave, leaf())
    for layers in (2,) if quick else (2, 4, 8, 12):
        model, inputs = example(Size(layers=layers))
        yield from figures_against_torch(
            f"GPT-2 shape, {layers} layers", model, inputs, rounds if layers < 8 else max(2, rounds // 2)
        )


def chain(count: int) -> tuple[Any, tuple[Any, ...]]:
    """Return ``count`` products, one after the other."""

    def fn(x: torch.Tensor) -> torch.Tensor:
        for _ in range(count):
            x = x * 1.01
        return x

    return fn, (torch.rand(16, requires_grad=True),)


def fan_out(count: int) -> tuple[Any, tuple[Any, ...]]:
    """Return one tensor that is read ``count`` times."""

    def fn(x: torch.Tensor) -> list[torch.Tensor]:
        return [x * float(i) for i in range(1, count + 1)]

    return fn, (torch.rand(16, 16, requires_grad=True),)


def broken(count: int) -> tuple[Any, tuple[Any, ...]]:
    """Return a function with ``count`` graph breaks, outside of a loop, since Dynamo skips a loop with a break."""
    step = "    x = x.sin() + 1\n    torch._dynamo.graph_break()\n"
    made: dict[str, Any] = {"torch": torch}
    exec(f"def fn(x):\n{step * count}    return x.cos()\n", made)
    return made["fn"], (torch.rand(16, requires_grad=True),)


def layers(count: int) -> tuple[Any, tuple[Any, ...]]:
    """Return the GPT-2 shape with this many layers, narrow: the compiled code is the same."""
    return example(Size(count, heads=2, width=32, tokens=16, vocabulary=64))


def growth(rounds: int, quick: bool) -> Iterator[Figure]:
    """Measure how a capture grows with the program, beside torch: if both are linear, the ratio is constant."""
    capture(wave, leaf())
    torchs_own(wave, leaf())
    programs: tuple[tuple[str, Callable[[int], Any], tuple[int, ...]], ...] = (
        ("layers", layers, (2, 4) if quick else (2, 6, 12, 24)),
        ("products in a row", chain, (100,) if quick else (100, 300, 1000, 3000)),
        ("readers of one tensor", fan_out, (100,) if quick else (100, 300)),
        ("graph breaks", broken, (16,) if quick else (16, 64)),
    )
    for name, make, counts in programs:
        for count in counts:
            fn, args = make(count)
            ratio, _, theirs = ratios(
                partial(capture, fn, *args),
                partial(with_room, fn, *args),
                1 if count >= 1000 else min(rounds, 3),
            )
            yield Figure("growth", f"{count} {name}: torch's own", theirs, "s")
            yield Figure("growth", f"{count} {name}: capture / torch's own, same room", ratio, "×")


def reasons(rounds: int, quick: bool) -> Iterator[Figure]:
    """Measure the cost of the reasons: origins of lines, fusion decisions, lowering, passes, memory."""
    size = Size(layers=2 if quick else 6)
    model, inputs = example(size)

    def less(fn: Any, *args: Any) -> None:
        with stages_only():
            capture(fn, *args)

    capture(wave, leaf())
    for name, fn, args, count in (
        ("sin²+cos²", wave, (leaf(),), 5 * rounds),
        (f"GPT-2 shape, {size.layers} layers", model, inputs, rounds),
    ):
        ratio, whole, part = ratios(partial(capture, fn, *args), partial(less, fn, *args), count)
        yield Figure("reasons", f"{name}: stages only", part, "s")
        yield Figure("reasons", f"{name}: with every reason", whole, "s")
        yield Figure("reasons", f"{name}: with / without reasons", ratio, "×", "<= 1.10")


def views(rounds: int, quick: bool) -> Iterator[Figure]:
    """Measure the views of a large capture: time and size."""
    size = Size(layers=2 if quick else 12)
    model, inputs = example(size)
    found = capture(model, *inputs)
    name = f"GPT-2 shape, {size.layers} layers"
    text = seconds(lambda: found.text("full"))
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        svg = seconds(lambda: found.save(place / "graph.svg"))
        html = seconds(lambda: found.save(place / "report.html"))
        record = seconds(lambda: found.save(place / "record.json"))
        yield Figure("views", f"{name}: text and SVG", text + svg, "s", "< 5")
        yield Figure("views", f"{name}: HTML report", html, "s")
        yield Figure("views", f"{name}: JSON record", record, "s")
        for file, goal in (("report.html", "< 15"), ("graph.svg", ""), ("record.json", "")):
            yield Figure("views", f"{name}: size of {file}", (place / file).stat().st_size / 1e6, "MB", goal)


_PEAK = """
import sys
sys.path[:0] = {path!r}
import capture as benchmark
from gpt2 import Size, example
work = sys.argv[1]
if work == "import":
    pass
else:
    compile = benchmark.capture if work.endswith("capture") else benchmark.torchs_own
    if work.startswith("wave"):
        compile(benchmark.wave, benchmark.leaf())
    else:
        model, inputs = example(Size(layers=int(sys.argv[2])))
        compile(model, *inputs)
try:
    # The kernel's ru_maxrss of a child starts at its parent's; this one starts at exec.
    lines = open("/proc/self/status").read().splitlines()
    peak = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
except FileNotFoundError:
    import resource
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(peak)
"""


def memory(rounds: int, quick: bool) -> Iterator[Figure]:
    """Return the peak resident memory of a process that does one thing."""
    layers = 2 if quick else 12
    path = [str(Path(__file__).parent), str(ROOT), str(ROOT / "tests" / "helpers")]
    peaks = {}
    for work, name in (
        ("import", "torch and compile_lens imported"),
        ("wave torch", "sin²+cos², torch's own lowering"),
        ("wave capture", "sin²+cos², capture"),
        ("gpt2 torch", f"GPT-2 shape, {layers} layers, torch's own lowering"),
        ("gpt2 capture", f"GPT-2 shape, {layers} layers, capture"),
    ):
        program = [sys.executable, "-c", _PEAK.format(path=path), work, str(layers)]
        done = subprocess.run(program, capture_output=True, text=True, check=True)
        peaks[work] = int(done.stdout.split()[-1]) / 1e6
        yield Figure("memory", f"peak: {name}", peaks[work], "MB")
    yield Figure(
        "memory", "GPT-2 shape: capture / torch's own", peaks["gpt2 capture"] / peaks["gpt2 torch"], "×"
    )


BENCHMARKS = {f.__name__: f for f in (code_only, overhead, gpt2, growth, reasons, views, memory)}


def main(argv: list[str] | None = None) -> int:
    """Run the chosen benchmarks and print a line for each figure as soon as it is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="2 layers instead of 12, fewer rounds")
    parser.add_argument("--rounds", type=int, default=0, help="rounds of each ratio (default 7, quick 3)")
    parser.add_argument("--only", nargs="+", choices=sorted(BENCHMARKS), help="run these and no others")
    parser.add_argument("--json", action="store_true", help="print one JSON array instead of lines")
    arguments = parser.parse_args(argv)
    rounds = arguments.rounds or (3 if arguments.quick else 7)
    figures = []
    # Torch warns once for each compile that switched-off caches are switched off.
    warnings.filterwarnings("ignore", message="dynamo_pgo force disabled")
    if not arguments.json:
        print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, median of {rounds} rounds")
    for name in arguments.only or BENCHMARKS:
        for figure in BENCHMARKS[name](rounds, arguments.quick):
            figures.append(figure)
            if not arguments.json:
                print(figure, flush=True)
    if arguments.json:
        print(json.dumps([asdict(f) for f in figures], ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
