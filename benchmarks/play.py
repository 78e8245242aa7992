"""Time from a key to the playground's updated page, and resources after a long session.

    python benchmarks/play.py [--edits 50] [--session 0] [--torch VERSION] [--chromium PATH]

In Chromium, with a real child: for each of four programs the median time from a key to its painted graph and to the
painted page, as the page itself measures them, warm, and the CPU time of an edit: of the server with its child, and of
the browser. On a busy machine only the CPU times can be compared. ``--session 1000`` adds this many random edits, half
of which do not parse: no page is called up to date unless it is of the newest text, the resident memory of server and
child after them is printed beside that after a fifth of them, and ended processes that nobody waited for are counted.
``--torch 2.11`` captures in the environment that ``compile-lens upgrade --torch 2.11`` created; the random edits then
sometimes switch between it and the torch of this process.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
HEAD = "import torch\nfrom torch.nn.functional import gelu, layer_norm, mse_loss\n\n\n"
PROGRAMS = {
    "sin² + cos²": "def f(x):\n    return torch.sin(x) ** 2 + torch.cos(x) ** 2\n",
    "softmax": "def f(x):\n    return torch.softmax(x, -1)\n",
    "layer norm": "def f(x):\n    return layer_norm(x, (128,))\n",
    "MLP step": (
        "def f(x, y, first, second):\n    return mse_loss(gelu(x @ first) @ second, y)\n\n\n"
        "grad = dict(requires_grad=True)\ninputs = [torch.rand(64, 32), torch.rand(64, 8), "
        "torch.rand(32, 128, **grad), torch.rand(128, 8, **grad)]\n"
    ),
}
STATE = "main .play"


@contextmanager
def playground() -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command, and yield the address that it prints."""
    command = [sys.executable, "-m", "compile_lens", "play", "--no-browser"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    try:
        yield process, process.stderr.readline().partition(": ")[2].strip()
    finally:
        process.terminate()
        process.wait(30)


def answered(page: Page) -> str:
    """Return the status text once no capture is running. The editor reads keys before the next frame."""
    page.evaluate("new Promise(requestAnimationFrame)")
    page.wait_for_selector(f"{STATE}:not([data-state=waits], [data-state=lowering])", timeout=60_000)
    return str(page.text_content(".state"))


def typed(page: Page, text: str) -> None:
    """Put a whole program into the editor, as one edit."""
    page.click(".cm-content")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(text)


def seconds(words: str) -> float:
    match = re.search(r"up to date · ([\d.]+) s", words)
    if match is None:
        raise SystemExit(f"no page came: {words}")
    return float(match[1])


@dataclass(frozen=True)
class Edit:
    """Seconds of one edit: to its graph, to its page, and of CPU in the server with its child and in the browser."""

    graph: float
    page: float
    server: float
    browser: float


def latency(page: Page, server: int, text: str, edits: int) -> list[Edit]:
    """Type this many keys at the end of the program; five before are not counted."""
    typed(page, f"{HEAD}{text}# ")
    answered(page)
    done = []
    for number in range(edits + 5):
        before = cpu_seconds(server)
        page.keyboard.type(str(number % 10))
        whole = seconds(answered(page))
        early = re.search(r"([\d.]+) s", page.get_attribute(".state", "title") or "")
        own, all_of_them = (after - was for after, was in zip(cpu_seconds(server), before, strict=True))
        done.append(Edit(float(early[1]) if early else whole, whole, own, all_of_them - own))
    return done[5:]


def cpu_seconds(server: int) -> tuple[float, float]:
    """Return CPU seconds of the server with its child, and of all children of this process (Linux), without itself."""

    def used(pid: int) -> float:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            return 0.0
        # Its own, and that of ended processes that it started.
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    return sum(map(used, family(server))), sum(map(used, family(os.getpid())[1:]))


def family(root: int) -> list[int]:
    """Return a process and all its descendants (Linux)."""
    known = [root]
    for pid in known:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            with suppress(OSError):  # the thread ended
                known += [int(child) for child in children.read_text().split()]
    return known


def resident(process: subprocess.Popen[str]) -> float:
    """Return the MiB of private and shared memory of them all."""
    pages = 0
    for pid in family(process.pid):
        pages += int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def zombies(process: subprocess.Popen[str]) -> int:
    known = family(process.pid)
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in known]
    return states.count("Z")


def choose(page: Page, name: str, value: str) -> None:
    """Choose from a menu of the settings, which captures once more if the value changes."""
    page.locator(".settings label").filter(has_text=name).locator("select").select_option(value)
    answered(page)


def long_session(page: Page, process: subprocess.Popen[str], edits: int, torch: str) -> None:
    """Make random edits, half of which do not parse; one of twenty follows a switch of torch, if there is another."""
    chance = random.Random(7)
    texts = list(PROGRAMS.values())[:3]
    early = 0.0
    for number in range(edits):
        broken = chance.random() < 0.5
        if torch and chance.random() < 0.05:
            choose(page, "torch", chance.choice(["", torch]))
        typed(
            page,
            f"{HEAD}{chance.choice(texts)}# {number}{'((' if not broken else ''}\n{'(' if broken else ''}",
        )
        if chance.random() < 0.2:
            time.sleep(chance.random() / 5)
            continue  # the next one comes during the capture of this one
        words = answered(page)
        if broken != words.startswith("line"):
            raise SystemExit(
                f"edit {number}: the page says {words!r} of a program that does{' not' * broken} parse"
            )
        if number == edits // 5:
            early = resident(process)
    late = resident(process)
    print(
        f"{edits} edits: {early:.0f} MiB after a fifth, {late:.0f} MiB at the end ({late / early - 1:+.1%})"
    )
    print(f"processes that ended and were not waited for: {zombies(process)}")


def figures(done: list[Edit]) -> str:
    """Return medians of some edits."""

    def middle(name: str) -> float:
        return statistics.median(getattr(edit, name) for edit in done)

    slowest = max(edit.page for edit in done)
    return (
        f"graph {middle('graph'):.2f} s, page {middle('page'):.2f} s (slowest {slowest:.2f} s); CPU: "
        f"server {middle('server'):.2f} s, browser {middle('browser'):.2f} s; load {os.getloadavg()[0]:.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--edits", type=int, default=50)
    parser.add_argument("--session", type=int, default=0, metavar="EDITS")
    parser.add_argument("--torch", default="", metavar="VERSION")
    parser.add_argument("--chromium", default=shutil.which("chromium") or "")
    args = parser.parse_args()
    with playground() as (process, url), sync_playwright() as playwright:
        browser: Any = playwright.chromium.launch(executable_path=args.chromium or None)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(url)
        answered(page)
        if args.torch:  # the menu is hidden if there is no other
            choose(page, "torch", args.torch)
        for target in ("", "h100"):
            choose(page, "target", target)
            for name, text in PROGRAMS.items():
                done = latency(page, process.pid, text, args.edits)
                print(f"{name:12} {target or 'cpu':5} {figures(done)}", flush=True)
        choose(page, "target", "")
        if args.session:
            long_session(page, process, args.session, args.torch)
        browser.close()


if __name__ == "__main__":
    main()
