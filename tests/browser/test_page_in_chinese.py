"""The live page in Chinese: only code, names and torch's own messages are in English."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compile_lens import Capture

from . import captures
from .pages import APP, alive

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]

SHOWN = """
(app) => {
  const shown = [];
  const attributes = ["title", "aria-label", "aria-valuetext", "data-means", "placeholder", "alt"];
  const walk = (node, skip) => {
    if (node.nodeType === Node.TEXT_NODE) return void shown.push(node.nodeValue.trim());
    if (node instanceof Element) {
      const notes = ".listing-note, .listing-fold";
      if (node.matches(skip)) return node.querySelectorAll(notes).forEach((note) => walk(note, skip));
      for (const name of attributes) if (node.hasAttribute(name)) shown.push(node.getAttribute(name));
    }
    node.childNodes.forEach((child) => walk(child, skip));
  };
  walk(app.shadowRoot, SKIP);
  return shown;
}
"""

AS_IT_IS = (
    # Code, and names that it contains.
    "style, pre, code, bdi, .name, .target, .listing-code, .flow-names, .kernel-names, .chain-line",
    # A graph item shows the node's name in its tooltip.
    ".node title, .node .graph-stop",
    # The inspector shows the text of the Python line.
    ".inspector-hover, .facts-value",
    # Torch's own text: guards, messages and advice of graph breaks, the program's stack.
    ".guards, .outcome, .below-body .finding-words, .frames",
)
"""Elements whose English stays, and the reason."""

ENGLISH = re.compile(r"(?<![\w.'])[a-z]{2,} [a-z]{2,}(?![\w.(\[])")
"""Two English words side by side."""

GLOSS = re.compile(r"（[^（）]*）|“[^”]*”|\S+:\d+ in \w+: .*")
"""English in brackets beside a Chinese term, a quotation, and a line of a stack with its code."""


def of_torch(capture: Capture) -> str:
    """Return torch's own texts in a capture."""
    endings = [*capture.breaks, *(skip.cause for skip in capture.skipped)]
    words = [capture.nothing_compiled]
    words += [f"{ending.reason}\n{ending.hint}" for ending in endings]
    words += [reason for one in capture.compilations for reason in one.recompile_reasons]
    words += [source.text for source in capture.sources]
    if capture.failure is not None:
        words += [capture.failure.message, capture.failure.traceback, capture.failure.hint]
    return "\n".join(words)


def left(page: Page, capture: Capture) -> list[str]:
    """Return texts of the app with English in them that is only partially torch's."""
    script = SHOWN.replace("SKIP", repr(", ".join(AS_IT_IS)))
    shown: list[str] = page.locator(APP).evaluate(script)
    torchs = " ".join(of_torch(capture).split())
    texts = (" ".join(GLOSS.sub("", text).split()) for text in dict.fromkeys(shown))
    return [t for t in texts if ENGLISH.search(t) and not all(m in torchs for m in ENGLISH.findall(t))]


@pytest.mark.parametrize(
    "made",
    (
        captures.sin_cos,
        captures.mlp,
        captures.graph_break,
        captures.recompiled,
        captures.failing,
        captures.nothing,
        captures.on_h100,
        captures.gpt2,
    ),
)
@pytest.mark.cases(full=3)
def test_nothing_is_left_in_english(
    made: Callable[[], Capture], standalone: Callable[[Path], Page], tmp_path: Path
) -> None:
    capture = made()
    page = standalone(capture.save(tmp_path / "page.html", lang="zh"))
    app = alive(page)
    assert left(page, capture) == []
    seen = set[str]()
    for selector in ("button.card", ".frame-tab", ".frame-more", "[aria-haspopup=true]", "summary"):
        controls = app.locator(selector)
        for number in range(min(controls.count(), 24)):
            control = controls.nth(number)
            if control.is_visible():
                control.evaluate("control => control.click()")
                page.wait_for_timeout(60)
                seen.update(left(page, capture))
    assert sorted(seen) == []
