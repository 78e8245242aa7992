"""Waits until a page has finished all pending work, however long it takes: for a state, not for a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Frame, Page

SCRIPT = """
(() => {
  // What waits for its turn: frames, short timers, and yields to the browser.
  const pending = new Map();
  const frame = window.requestAnimationFrame.bind(window);
  const timer = window.setTimeout.bind(window);
  const track = (kind, start, stop, isShort) => {
    const begin = window[start].bind(window), end = window[stop].bind(window);
    window[start] = (callback, ...rest) => {
      if (typeof callback !== "function") return begin(callback, ...rest);
      const id = begin((...values) => {
        pending.delete(kind + id);
        return callback(...values);
      }, ...rest);
      if (isShort(rest[0])) pending.set(kind + id, String(callback).slice(0, 200));
      return id;
    };
    window[stop] = (id) => {
      pending.delete(kind + id);
      return end(id);
    };
  };
  // A longer timer is one that a reader waits for: a button that says "copied".
  track("timer", "setTimeout", "clearTimeout", (delay) => !(delay > 1000));
  track("frame", "requestAnimationFrame", "cancelAnimationFrame", () => true);
  const pause = window.scheduler?.yield?.bind(window.scheduler);
  let yields = 0;
  if (pause)
    window.scheduler.yield = (...rest) => {
      const id = `yield${yields++}`;
      pending.set(id, id);
      return pause(...rest).finally(() => pending.delete(id));
    };

  const unsettled = () => {
    const roots = [document, ...[...document.querySelectorAll("*")].map((e) => e.shadowRoot).filter(Boolean)];
    const moving = roots
      .flatMap((root) => root.getAnimations())
      .filter((one) => one instanceof CSSTransition && one.playState === "running");
    const waiting = roots.flatMap((root) => [...root.querySelectorAll(".frame-wait")]);
    return [...pending.values(), ...moving.map(() => "a transition"), ...waiting.map(() => "a pane is built")];
  };
  // Observers of sizes and of what comes into view are told after a frame, so it must be quiet for a few.
  window.__settled = async (most) => {
    const until = performance.now() + most;
    for (let quiet = 0; quiet < 3; ) {
      await new Promise((done) => frame(() => timer(done)));
      const left = unsettled();
      quiet = left.length ? 0 : quiet + 1;
      if (performance.now() > until) throw new Error(`the page is still at work: ${left.join("; ")}`);
    }
  };
})();
"""
"""Runs in each page before its own scripts."""


def settle(page: Page | Frame, most: int = 20_000) -> None:
    """Wait until nothing is pending on a page; after so many milliseconds, fail and list the pending work."""
    page.evaluate("(most) => window.__settled(most)", most)
