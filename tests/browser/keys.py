"""The path of the Tab key through a page: its stops, their names, and whether their focus outline is visible."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import CDPSession, ElementHandle, Page

_ACTIVE = """
(() => {
  let at = document.activeElement;
  while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
  return at;
})()
"""

# The element that marks the focus, and how many sides of its mark are not clipped by any ancestor.
_MARK = """
element => {
  const style = getComputedStyle(element);
  const width = style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth);
  const shapes = [...element.querySelectorAll("rect, path, circle")].map((shape) => getComputedStyle(shape));
  const box = element.getBoundingClientRect();
  const out = parseFloat(style.outlineOffset) + width;
  const edges = { left: box.left - out, top: box.top - out, right: box.right + out, bottom: box.bottom + out };
  const room = { left: -1, top: -1, right: innerWidth + 1, bottom: innerHeight + 1 };
  const parent = (node) => node.parentElement ?? node.getRootNode().host ?? null;
  for (let at = parent(element); at; at = parent(at)) {
    if (at instanceof SVGElement || getComputedStyle(at).overflow === "visible") continue;
    const cut = at.getBoundingClientRect();
    room.left = Math.max(room.left, cut.left);
    room.top = Math.max(room.top, cut.top);
    room.right = Math.min(room.right, cut.right);
    room.bottom = Math.min(room.bottom, cut.bottom);
  }
  const seen = ["left", "top"].filter((side) => edges[side] >= room[side] - 1.5).length
    + ["right", "bottom"].filter((side) => edges[side] <= room[side] + 1.5).length;
  return {
    look: [width && `${style.outlineColor} ${width}`, style.boxShadow, ...shapes.map((s) => `${s.stroke} ${s.strokeWidth}`)].join(),
    outlined: width >= 1,
    within: seen,
  };
}
"""  # noqa: E501

REACHABLE = """
app => {
  const all = app.shadowRoot.querySelectorAll("button, input, select, summary, [tabindex]");
  return [...all].filter((e) => e.tabIndex >= 0 && !e.disabled && e.checkVisibility({ visibilityProperty: true }));
}
"""
"""Elements of an app that the Tab key should stop at."""


@dataclass
class Stop:
    """One stop of the Tab key.

    ``name`` and ``role`` are those that the browser reports to a screen reader. ``sides`` of its outline are
    visible; ``look`` is its outline, shadow and strokes.
    """

    element: ElementHandle
    classes: str
    name: str
    role: str
    inside: bool
    outlined: bool
    sides: int
    look: str


class Keys:
    """The keyboard on a page, and the focused element."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._session: CDPSession = page.context.new_cdp_session(page)

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def focused(self) -> ElementHandle:
        """Return the focused element, also inside shadow roots."""
        element = self.page.evaluate_handle(_ACTIVE).as_element()
        if element is None:
            raise LookupError("nothing has the focus")
        return element

    def attribute(self, name: str) -> str | None:
        """Return an attribute of the focused element."""
        return self.focused().get_attribute(name)

    def stop(self) -> Stop:
        """Return the stop that has the focus now."""
        element = self.focused()
        mark = element.evaluate(_MARK)
        role, name = self._said()
        return Stop(
            element,
            element.get_attribute("class") or element.evaluate("e => e.localName"),
            name,
            role,
            element.evaluate("e => e.getRootNode() instanceof ShadowRoot"),
            mark["outlined"],
            mark["within"],
            mark["look"],
        )

    def look(self, element: ElementHandle) -> str:
        """Return the current look of an element, as in a ``Stop``."""
        return str(element.evaluate(_MARK)["look"])

    def to(self, selector: str, key: str = "Tab", most: int = 150) -> ElementHandle:
        """Press Tab until the focused element matches a selector."""
        for _ in range(most):
            self.press(key)
            if self.focused().evaluate("(e, selector) => e.matches(selector)", selector):
                return self.focused()
        raise LookupError(f"{key} does not lead to {selector}")

    def _said(self) -> tuple[str, str]:
        send = self._session.send
        object_id = send("Runtime.evaluate", {"expression": _ACTIVE})["result"]["objectId"]
        tree = send("Accessibility.getPartialAXTree", {"objectId": object_id, "fetchRelatives": False})
        node: dict[str, Any] = tree["nodes"][0]
        return str(node.get("role", {}).get("value", "")), str(node.get("name", {}).get("value", ""))
