"""Records what only a device can show: ``python tutorials/record_device.py OUT.json``, where there is an NVIDIA
GPU.

Lesson 11 shows what this writes, on machines that have no GPU. Each scene is run once under ``torch.profiler``: what
Python asked for and where it waited, what the device's streams did, in one time. Beside that each scene is run many
times without a profiler, with a clock alone, since a profiler makes Python slower.

In the file times are in seconds where a clock read them, and in microseconds, from the scene's start, in ``events``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

FORMAT = 1
NO_DEVICE = 3
"""The exit status where there is nothing to record."""

SCENE = "scene"
"""What is annotated with this name, the last time, is the scene."""

ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
CALLS = ("cuda_runtime", "cuda_driver")
TOLD_CALLS = re.compile("Launch|Synchronize|Memcpy|Memset|EventRecord|StreamWaitEvent")
"""The calls of Python that a scene tells: what puts work into a stream, and what waits."""

LONGEST_NAME = 48
ROUNDS = 30
TURNS = 6

Run = Callable[[], dict[str, float]]


def reduced(trace: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The events of a Chrome trace that a scene is told with, in order, their times from the scene's start."""
    whole = [event for event in trace if event.get("ph") == "X"]
    scenes = [e for e in whole if e.get("cat") == "user_annotation" and e["name"] == SCENE]
    if not scenes:
        raise ValueError(f"no annotation {SCENE!r} in the trace")
    scene = max(scenes, key=lambda event: event["ts"])
    start, end = scene["ts"], scene["ts"] + scene["dur"]
    kept = [e for e in whole if start <= e["ts"] <= end and e is not scene and _told(e)]
    events = [_told_event(event, start) for event in sorted(kept, key=lambda event: event["ts"])]
    # Which call asked for which work: small numbers in place of the profiler's.
    numbers: dict[int, int] = {}
    for event in events:
        if "correlation" in event:
            event["correlation"] = numbers.setdefault(event["correlation"], len(numbers) + 1)
    return events


def _told(event: dict[str, Any]) -> bool:
    category, name = event.get("cat"), event.get("name", "")
    if category in CALLS:
        return TOLD_CALLS.search(name) is not None
    return category == "user_annotation" or category in ON_DEVICE


def _told_event(event: dict[str, Any], start: float) -> dict[str, Any]:
    args = event.get("args", {})
    told = {"cat": event["cat"], "name": short(event["name"])}
    told["ts"], told["dur"] = round(event["ts"] - start, 2), round(event["dur"], 2)
    return told | {
        key: args[key] for key in ("stream", "correlation", "bytes") if isinstance(args.get(key), int)
    }


def short(name: str) -> str:
    """A kernel's name without what all of them have in common, and no longer than a line."""
    for part in ("void ", "(anonymous namespace)::", "at::native::", "at::"):
        name = name.replace(part, "")
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def scenes() -> dict[str, Run]:
    """What is run, by name: each gives what a clock read, in seconds, and leaves the device with nothing to do."""
    return {**_blame(), **_items(), **_loading(), **_launches()}


def _blame() -> dict[str, Run]:
    """Two parts, with and without waiting for the device before each look at the clock."""
    import torch
    from torch.profiler import record_function

    big = torch.rand(4096, 4096, device="cuda")

    def parts(finish: Callable[[], None]) -> Run:
        def run() -> dict[str, float]:
            finish()
            start = time.perf_counter()
            with record_function("product"):
                asked = torch.mm(big, big)
            finish()
            between = time.perf_counter()
            with record_function("sum"):
                asked.sum().item()
            finish()
            end = time.perf_counter()
            return {"product": between - start, "sum": end - between}

        return run

    def events() -> dict[str, float]:
        """The same, as the device times it: three events in its queue, two stretches between them."""
        first, second, third = (torch.cuda.Event(enable_timing=True) for _ in range(3))
        first.record()
        with record_function("product"):
            asked = torch.mm(big, big)
        second.record()
        with record_function("sum"):
            asked.sum()
        third.record()
        torch.cuda.synchronize()
        return {"product": first.elapsed_time(second) / 1e3, "sum": second.elapsed_time(third) / 1e3}

    return {
        "clock alone": parts(lambda: None),
        "after waiting": parts(torch.cuda.synchronize),
        "three events": events,
    }


def _items() -> dict[str, Run]:
    """Loops with ``.item()`` in each iteration, or once at the end; with little work, and with more."""
    import torch
    from torch.profiler import record_function

    def turns(size: int, ask: bool) -> Run:
        w = torch.randn(size, size, device="cuda") / size**0.5
        begin = torch.rand(size, size, device="cuda")

        def run() -> dict[str, float]:
            x, total = begin, 0.0
            start = time.perf_counter()
            for turn in range(TURNS):
                with record_function(f"turn {turn + 1}"):
                    x = torch.tanh(x @ w + x)
                    total = total + (x.sum().item() if ask else x.sum())
            with record_function("end"):
                float(total)
            return {"loop": time.perf_counter() - start}

        return run

    return {
        "item in every turn": turns(2048, True),
        "item at the end": turns(2048, False),
        "item in every small turn": turns(256, True),
        "item at the end of small turns": turns(256, False),
    }


def _loading() -> dict[str, Run]:
    """Four batches, each copied to the device and used there: in one stream, and the copies in a second one."""
    import torch
    from torch.profiler import record_function

    big = torch.rand(4096, 4096, device="cuda")
    batches = [torch.rand(2048, 4096).pin_memory() for _ in range(4)]
    side = torch.cuda.Stream()

    def use(batch: torch.Tensor) -> None:
        with record_function("use"):
            torch.mm(torch.mm(batch, big), big)

    def load(batch: torch.Tensor) -> torch.Tensor:
        with record_function("load"):
            return batch.to("cuda", non_blocking=True)

    def one() -> dict[str, float]:
        start = time.perf_counter()
        for batch in batches:
            use(load(batch))
        torch.cuda.synchronize()
        return {"loop": time.perf_counter() - start}

    def ahead(batch: torch.Tensor) -> torch.Tensor:
        with torch.cuda.stream(side):
            return load(batch)

    def two() -> dict[str, float]:
        start = time.perf_counter()
        coming = ahead(batches[0])
        for following in (*batches[1:], None):
            torch.cuda.current_stream().wait_stream(side)
            here = coming
            here.record_stream(torch.cuda.current_stream())
            if following is not None:
                coming = ahead(following)
            use(here)
        torch.cuda.synchronize()
        return {"loop": time.perf_counter() - start}

    return {"one stream": one, "two streams": two}


def _launches() -> dict[str, Run]:
    """What compiling changes on the device; and many small kernels, launched one by one or as one CUDA graph."""
    import torch
    from torch.profiler import record_function

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    def chain(x: torch.Tensor) -> torch.Tensor:
        for _ in range(16):
            x = torch.mm(x, x).sin()
        return x

    def call(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Run:
        def run() -> dict[str, float]:
            start = time.perf_counter()
            with record_function("call"):
                function(x)
            torch.cuda.synchronize()
            return {"call": time.perf_counter() - start}

        return run

    many, few = torch.rand(2**24, device="cuda"), torch.rand(64, 64, device="cuda")
    return {
        "eager": call(f, many),
        "compiled": call(torch.compile(f), many),
        "launched one by one": call(torch.compile(chain), few),
        "one CUDA graph": call(torch.compile(chain, mode="reduce-overhead"), few),
    }


def traced(run: Run) -> dict[str, Any]:
    """One run under the profiler. The first one in it pays for what the profiler sets up, so the second is kept."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for _ in range(2):
            torch.cuda.synchronize()
            with record_function(SCENE):
                readings = run()
                torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        profiler.export_chrome_trace(str(file))
        trace = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    return {"readings": _rounded(readings), "events": reduced(trace)}


def untraced(runs: dict[str, Run]) -> dict[str, dict[str, list[float]]]:
    """What a clock reads without a profiler, in seconds. The scenes take turns, so that one disturbance meets all."""
    import torch

    read: dict[str, dict[str, list[float]]] = {name: {} for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            torch.cuda.synchronize()
            for part, seconds in _rounded(run()).items():
                read[name].setdefault(part, []).append(seconds)
    return read


def _rounded(readings: dict[str, float]) -> dict[str, float]:
    return {part: round(seconds, 7) for part, seconds in readings.items()}


def recording() -> dict[str, Any]:
    """All scenes, and of what they are the recording."""
    import torch

    torch.manual_seed(0)
    runs = scenes()
    for run in runs.values():  # compiling, and the warm-up
        for _ in range(4):
            run()
    seen = {name: traced(run) for name, run in runs.items()}
    return {
        "format": FORMAT,
        "made": {
            "device": torch.cuda.get_device_name(0),
            "torch": torch.__version__,
            "cuda": torch.version.cuda,
            "driver": _driver(),
            "python": platform.python_version(),
            "system": platform.system(),
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            "command": "python tutorials/record_device.py OUT.json",
        },
        "scenes": seen,
        "readings": untraced(runs),
    }


def _driver() -> str | None:
    """The version of NVIDIA's driver, where its own tool tells it."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    asked = [tool, "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=20, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
    return said if re.fullmatch(r"\d+(\.\d+)+", said) else None


def written(value: Any, indent: str = "") -> str:
    """JSON with a line for each event and each series, so that two recordings can be compared by line."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not any(isinstance(part, (dict, list)) for part in inner):
        return json.dumps(value, ensure_ascii=False)
    deeper = indent + " "
    if isinstance(value, dict):
        parts = [f"{json.dumps(key)}: {written(part, deeper)}" for key, part in value.items()]
    else:
        parts = [written(part, deeper) for part in value]
    left, right = "{}" if isinstance(value, dict) else "[]"
    return f"{left}\n" + ",\n".join(deeper + part for part in parts) + f"\n{indent}{right}"


def main(arguments: list[str] | None = None) -> int:
    """Records, and writes; the exit status."""
    parser = argparse.ArgumentParser(description="Records what only a device can show, for lesson 11.")
    parser.add_argument("out", type=Path, help="the file that is written")
    out: Path = parser.parse_args(arguments).out
    import torch

    if torch.version.cuda is None or not torch.cuda.is_available():
        print("nothing is recorded: this needs an NVIDIA GPU, and torch sees none here", file=sys.stderr)
        return NO_DEVICE
    made = recording()
    unfinished = out.with_name(f"{out.name}.{os.getpid()}.part")
    try:
        unfinished.write_text(written(made) + "\n", encoding="utf-8")
        os.replace(unfinished, out)
    finally:
        unfinished.unlink(missing_ok=True)
    for name, parts in made["readings"].items():
        told = ", ".join(f"{p} {1e3 * sorted(t)[len(t) // 2]:.3f} ms" for p, t in parts.items())
        print(f"{name:30} {told}; {len(made['scenes'].get(name, {}).get('events', ()))} events")
    print(f"{out}: {out.stat().st_size:,} bytes, recorded on {made['made']['device']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
