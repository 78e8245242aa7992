"""Firefox from the distribution, driven over WebDriver BiDi, which it supports itself.

Playwright's own protocol needs its own build of Firefox, which is not installed.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import websocket

START = 60
"""Seconds within which it must listen, and answer."""

ESCAPE = "\ue00c"
"""The protocol's name of that key."""

_PREFERENCES = {
    "app.update.disabledForTesting": True,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
}


class Firefox:
    """One browser with one page.

    Attributes:
        errors: errors in its console, and uncaught errors.
    """

    def __init__(self, address: str) -> None:
        # A page may not connect, so a sender with a web origin is refused.
        self._socket = websocket.create_connection(address, timeout=START, suppress_origin=True)
        self._ids = itertools.count(1)
        self.errors: list[str] = []
        self.send("session.new", capabilities={})
        self.send("session.subscribe", events=["log.entryAdded"])
        self._page = self.send("browsingContext.getTree")["contexts"][0]["context"]

    def send(self, method: str, **params: Any) -> Any:
        """Return the result of a command. Raises ``RuntimeError`` with the browser's message if it is refused."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("method") == "log.entryAdded" and message["params"]["level"] == "error":
                self.errors.append(message["params"]["text"])
            if message.get("id") == number:
                break
        if message["type"] == "error":
            raise RuntimeError(f"{method}: {message['error']}: {message['message']}")
        return message["result"]

    def open(self, file: Path, width: int, height: int) -> None:
        """Open a page in a window of a given size, and wait until it is interactive."""
        self.send(
            "browsingContext.setViewport", context=self._page, viewport={"width": width, "height": height}
        )
        self.send("browsingContext.navigate", context=self._page, url=file.as_uri(), wait="complete")
        self.wait("() => document.querySelector('.compile-lens[data-alive], .compile-lens .cl-not-alive')")

    def read(self, function: str, *arguments: object) -> Any:
        """Return the result of a function of the page, as plain data."""
        given = ", ".join(json.dumps(one) for one in arguments)
        result = self.send(
            "script.evaluate",
            expression=f"(async () => JSON.stringify((await ({function})({given})) ?? null))()",
            target={"context": self._page},
            awaitPromise=True,
        )
        if result["type"] == "exception":
            raise RuntimeError(result["exceptionDetails"]["text"])
        return json.loads(result["result"]["value"])

    def wait(self, function: str) -> None:
        """Wait until a function of the page returns something."""
        steps = START * 20
        looked = f"""async () => {{
          for (let i = 0; i < {steps}; i++) {{
            if (({function})()) return true;
            await new Promise((done) => setTimeout(done, 50));
          }}
          return false;
        }}"""
        assert self.read(looked), f"not in time: {function}"

    def frame(self) -> None:
        """Wait until the words have been updated for the highlighted items."""
        self.read(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => setTimeout(done))))"
        )

    def click(self, x: float, y: float) -> None:
        """Click at a position in the window, and move the pointer away."""
        moves = [{"type": "pointerMove", "x": round(x), "y": round(y)}]
        presses = [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self._act(
            type="pointer", id="mouse", actions=[*moves, *presses, {"type": "pointerMove", "x": 1, "y": 1}]
        )
        self.frame()

    def press(self, key: str) -> None:
        """Press and release a key."""
        self._act(
            type="key", id="keys", actions=[{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        )
        self.frame()

    def picture(self) -> bytes:
        """Return the window as PNG."""
        return base64.b64decode(self.send("browsingContext.captureScreenshot", context=self._page)["data"])

    def close(self) -> None:
        """Close the browser."""
        self.send("browser.close")
        self._socket.close()

    def _act(self, **source: Any) -> None:
        self.send("input.performActions", context=self._page, actions=[source])


@contextlib.contextmanager
def started(program: str, folder: Path, *, dark: bool = False) -> Iterator[Firefox]:
    """Run Firefox with a fresh profile in a folder; it ends with the block."""
    profile = folder / "profile"
    profile.mkdir(parents=True)
    preferences = {**_PREFERENCES, "layout.css.prefers-color-scheme.content-override": 0 if dark else 1}
    lines = (f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences.items())
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    log = folder / "log"
    with log.open("wb") as out:
        command = [
            program,
            "--headless",
            "--no-remote",
            "--remote-debugging-port",
            "0",
            "--profile",
            str(profile),
        ]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
    try:
        browser = Firefox(_address(process, log))
        yield browser
        browser.close()
        process.wait(START)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(START * 10):
        text = log.read_text(encoding="utf-8", errors="replace")
        match = re.search(r"WebDriver BiDi listening on (ws://\S+)", text)
        if match:
            return f"{match[1]}/session"
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
            break
    raise RuntimeError(
        f"Firefox did not listen:\n{log.read_text(encoding='utf-8', errors='replace')[-3000:]}"
    )
