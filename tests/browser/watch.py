"""Messages and requests of pages while a test runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Dialog, Page, Request, WebSocket

INSIDE = ("data:", "blob:", "about:")
"""Schemes that make no request."""


class Watch:
    """Console errors, uncaught errors, dialogs and requests of the pages that it follows.

    Attributes:
        errors: texts of console errors, and of errors that nothing caught.
        dialogs: texts of dialogs that opened; each is dismissed.
        requests: every requested address, in order; data: addresses are not requests.
    """

    def __init__(self) -> None:
        self.errors: list[str] = []
        self.dialogs: list[str] = []
        self.requests: list[str] = []
        self._places: list[str] = []
        self._known: list[str] = []

    def follow(self, page: Page) -> None:
        """Start recording the events of a page."""
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(f"uncaught: {error}"))
        page.on("dialog", self._asked)
        page.on("request", self._requested)
        page.on("websocket", self._connected)

    def allow(self, place: str) -> None:
        """Allow pages to request a file, or everything below an address that ends in ``/``."""
        self._places.append(place)

    def expect(self, error: str) -> None:
        """Ignore errors that contain this text: those of a host that this project does not cause."""
        self._known.append(error)

    def settle(self, page: Page) -> None:
        """Wait until all earlier messages of the page have arrived."""
        if not page.is_closed():
            # A page that is not drawn never gets a frame.
            page.evaluate(
                "() => new Promise(done => { requestAnimationFrame(done); setTimeout(done, 1000); })"
            )

    def problems(self) -> list[str]:
        """Return the errors."""
        errors = [e for e in self.errors if not any(known in e for known in self._known)]
        return errors + [f"a dialog opened: {text}" for text in self.dialogs]

    def outside(self) -> list[str]:
        """Return requests to places that were not allowed."""
        return [url for url in self.requests if not url.startswith(INSIDE) and not self._is_allowed(url)]

    def _is_allowed(self, url: str) -> bool:
        plain = url.partition("#")[0]
        return any(plain == p or (p.endswith("/") and plain.startswith(p)) for p in self._places)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "assert"):
            where = message.location.get("url", "")
            self.errors.append(f"console: {message.text} ({where})")

    def _asked(self, dialog: Dialog) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)

    def _connected(self, socket: WebSocket) -> None:
        self.requests.append(socket.url)
