"""Size of a capture's page, its loading time, and its response times, in a real browser.

    python benchmarks/viewer.py [--only NAME ...] [--rounds N] [--record PATH] [--json]

Sizes are bytes of the written page, times milliseconds of one Chromium without a window; the best of several
rounds is shown, since other load can only slow a page down. No figure here causes a
failure. The browser is the one of the tests: ``COMPILE_LENS_CHROMIUM`` names it, else it is found on PATH.
``--record`` measures the page of a saved record (.json) instead of the pages below.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from made import with_modules, without_modules  # noqa: E402

from compile_lens import Capture, load  # noqa: E402
from compile_lens.views.live.page import fragment  # noqa: E402
from compile_lens.views.live.page import page as whole_page  # noqa: E402

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

CLICKS = 20
PANES = 3
REST = 400
"""Milliseconds between two clicks, for the page's work after the highlight is painted."""

_WATCH = """
(() => {
  window.measured = { tasks: [], clicks: [], alive: 0, done: 0 };
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.measured.tasks.push([entry.startTime, entry.duration]);
  }).observe({ type: "longtask", buffered: true });
  new MutationObserver((_, observer) => {
    if (!document.querySelector(".compile-lens[data-alive]")) return;
    window.measured.alive = performance.now();
    observer.disconnect();
  }).observe(document, { subtree: true, attributeFilter: ["data-alive"] });
  // A frame is painted after its animation frames; a message is the first task behind it.
  window.addEventListener("click", (event) => {
    requestAnimationFrame(() => {
      const channel = new MessageChannel();
      channel.port1.onmessage = () => window.measured.clicks.push(performance.now() - event.timeStamp);
      channel.port2.postMessage(null);
    });
  }, true);
})();
"""

_TARGETS = """
count => {
  const shadow = document.querySelector(".cl-app").shadowRoot;
  const panes = [...shadow.querySelectorAll(".panes-row > *")].filter((pane) => pane.querySelector("[data-item]"));
  const found = panes.map((pane) => {
    const frame = pane.getBoundingClientRect();
    return [...pane.querySelectorAll(".listing-line.linked, .node:not(.open) > .graph-stop")].flatMap((element) => {
      const box = element.getBoundingClientRect();
      const x = box.left + Math.min(box.width / 2, 60), y = box.top + box.height / 2;
      const inside = x > frame.left && x < frame.right && y > frame.top && y < Math.min(frame.bottom, innerHeight);
      return inside && element.contains(shadow.elementFromPoint(x, y)) ? [[x, y]] : [];
    });
  });
  const chosen = [];
  const each = Math.ceil(count / Math.max(1, found.length));
  for (const places of found) {
    for (let i = 0; i < each; i++) if (places.length) chosen.push(places[Math.floor((i * places.length) / each)]);
  }
  return chosen.slice(0, count);
}
"""


@dataclass(frozen=True)
class Figure:
    """One line of the output. ``bar`` is the project's limit, ``""`` if it has none."""

    page: str
    name: str
    value: float
    unit: str
    bar: str = ""

    def __str__(self) -> str:
        beside = f"   (bar: {self.bar})" if self.bar else ""
        return f"{self.page:<16} {self.name:<52} {self.value:>12,.1f} {self.unit}{beside}"


def small() -> Capture:
    """Return sin² + cos², forward and backward."""
    import torch

    from compile_lens import capture

    def f(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) ** 2 + torch.cos(x) ** 2

    return capture(f, torch.rand(1000, requires_grad=True))


def gpt2() -> Capture:
    """Return a model of GPT-2's shape, 12 layers, forward and backward."""
    from gpt2 import Size, example

    from compile_lens import capture

    model, inputs = example(Size())
    return capture(model, *inputs)


CAPTURES = {"small": small, "gpt2": gpt2, "large": with_modules, "large_flat": without_modules}

_SIZES = {"small": "< 180 as a cell", "gpt2": "< 3,000"}
_OPENING = {"gpt2": "< 1,500", "large": "< 3,000", "large_flat": "< 3,000"}
_TASK = {"large": "< 100", "large_flat": "< 100"}


def figures(browser: Browser, name: str, found: Capture, rounds: int) -> Iterator[Figure]:
    """Return all figures of one capture's page."""
    start, started = time.perf_counter(), time.process_time()
    page = whole_page(found)
    yield Figure(name, "writing the page", time.perf_counter() - start, "s")
    yield Figure(name, "writing the page, this process alone", time.process_time() - started, "s CPU")
    yield Figure(name, "size of the page", len(page.encode()) / 1e3, "kB", _SIZES.get(name, ""))
    if name == "small":
        yield Figure(name, "size of the cell", len(fragment(found).encode()) / 1e3, "kB", "< 180")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(page, encoding="utf-8")
        runs = [_run(browser, file.as_uri()) for _ in range(rounds)]
    for what in runs[0]:
        best = min(run[what] for run in runs if what in run)
        yield Figure(name, what, best, "ms", _bar(name, what))


def _bar(name: str, what: str) -> str:
    if what == "first paint":
        return "< 1,500"
    if what == "alive":
        return _OPENING.get(name, "")
    if what.startswith("click"):
        return "< 50"
    return _TASK.get(name, "") if "longest task" in what else ""


def _run(browser: Browser, address: str) -> dict[str, float]:
    """Load a page once, in a browser without a cache."""
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    try:
        page = context.new_page()
        page.add_init_script(_WATCH)
        page.goto(address)
        page.wait_for_function("() => window.measured.alive > 0", timeout=60_000)
        _settle(page)
        times: dict[str, float] = {
            "first paint": page.evaluate(
                "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()"
            ),
            "alive": page.evaluate("window.measured.alive"),
            "settled: every pane drawn": page.evaluate("window.measured.done"),
            "longest task while it opens": _longest(page),
        }
        times |= _clicks(page)
        times["longest task while all is opened, level by level"] = _opened(page)
        times["longest task while searching"] = _searched(page)
        times["longest task while panes change"] = _changed(page)
        return times
    finally:
        context.close()


def _settle(page: Page, quiet: int = 300) -> None:
    """Wait until the page has changed nothing for a while."""
    page.evaluate(
        """quiet => new Promise((done) => {
          let last = performance.now();
          const app = document.querySelector(".cl-app").shadowRoot;
          const observer = new MutationObserver(() => (last = performance.now()));
          observer.observe(app, { subtree: true, childList: true, attributes: true });
          const look = () => {
            if (performance.now() - last < quiet) return setTimeout(look, 20);
            observer.disconnect();
            window.measured.done = last;
            done(null);
          };
          look();
        })""",
        quiet,
    )


def _longest(page: Page) -> float:
    """Return the longest task since the last call; 0 if none took 50 ms, the browser's threshold."""
    page.wait_for_timeout(60)
    return float(
        page.evaluate("Math.max(0, ...window.measured.tasks.splice(0).map(([, duration]) => duration))")
    )


def _clicks(page: Page) -> dict[str, float]:
    targets: list[list[float]] = page.evaluate(_TARGETS, CLICKS)
    for x, y in targets:
        page.mouse.move(x, y)
        page.wait_for_timeout(REST)
        page.mouse.down()
        page.mouse.up()
        page.wait_for_timeout(REST)
    clicks: list[float] = page.evaluate("window.measured.clicks")
    times = {"longest task while clicking": _longest(page)}
    if clicks:
        times["click to painted highlight, median"] = statistics.median(clicks)
        times["click to painted highlight, worst"] = max(clicks)
    return times


def _opened(page: Page) -> float:
    """Open every box of every graph pane, one level after the other, until there is none or too much."""
    page.keyboard.press("Escape")
    for button in page.locator(".cl-app .graph-tools button", has_text="open level").all():
        for _ in range(6):
            if not button.is_visible() or button.is_disabled():
                break
            button.click()
            _settle(page, 100)
    return _longest(page)


def _searched(page: Page) -> float:
    boxes: list[Locator] = page.locator(".cl-app input[type=search]:visible").all()
    for box in boxes:
        box.click()
        for letter in "add":
            page.keyboard.type(letter)
            page.wait_for_timeout(30)
        _settle(page, 100)
        page.keyboard.press("Enter")
        _settle(page, 100)
    return _longest(page)


def _changed(page: Page) -> float:
    """Open each stage of the strip, one after the other."""
    for card in page.locator(".cl-app .strip button.card").all():
        if card.get_attribute("aria-pressed") == "false":
            card.dispatch_event("click")  # the list of all stages is closed
            _settle(page, 150)
    return _longest(page)


def chromium() -> str:
    """Return the browser's program."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("COMPILE_LENS_CHROMIUM") or next(filter(None, map(shutil.which, names)), "")
    if not path:
        raise SystemExit("no Chromium is on PATH: install chromium, or name one in COMPILE_LENS_CHROMIUM")
    return path


def main(argv: list[str] | None = None) -> int:
    """Measure the chosen pages and print a line for each figure as soon as it is measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=sorted(CAPTURES), help="these pages and no others")
    parser.add_argument("--rounds", type=int, default=3, help="times that each page is opened (default 3)")
    parser.add_argument("--record", type=Path, help="a saved record (.json) instead of the pages above")
    parser.add_argument("--json", action="store_true", help="print one JSON array instead of lines")
    asked = parser.parse_args(argv)
    from playwright.sync_api import sync_playwright

    results: list[Figure] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        pages: dict[str, Any] = {name: CAPTURES[name] for name in asked.only or CAPTURES}
        if asked.record:
            pages = {asked.record.stem: lambda: load(asked.record)}
        for name, capture in pages.items():
            for figure in figures(browser, name, capture(), asked.rounds):
                results.append(figure)
                if not asked.json:
                    print(figure, flush=True)
        browser.close()
    if asked.json:
        print(json.dumps([asdict(f) for f in results], ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
