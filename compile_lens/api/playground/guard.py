"""The guard of the playground's server: it lets a request through only if a page of this server made it."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PROTOCOL = "compile-lens"
"""Subprotocol of the WebSocket. The token stands beside it, where no address, no log and no referrer has it."""


class Guard:
    """Wraps the server's application.

    A request must name this server as its ``Host``: a page whose name was rebound to 127.0.0.1 names its own. Where
    it has an ``Origin``, that must be this server's; a WebSocket must have one, and the token too. Every answer forbids
    to be framed, stored, guessed at, or named in a referrer, and none allows another origin to read it.

    Args:
        address: ``127.0.0.1:PORT``.
        policy: the Content-Security-Policy of the page.
    """

    def __init__(self, app: Any, address: str, token: str, policy: str) -> None:
        self._app, self._token = app, token.encode()
        self._host, self._origin = address.encode(), f"http://{address}".encode()
        self._headers = [
            (b"content-security-policy", policy.encode()),
            (b"referrer-policy", b"no-referrer"),
            (b"x-content-type-options", b"nosniff"),
            (b"x-frame-options", b"DENY"),
            (b"cross-origin-opener-policy", b"same-origin"),
            (b"cross-origin-resource-policy", b"same-origin"),
            (b"cache-control", b"no-store"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            if self._known(scope) and self._has_token(scope):
                await self._app(scope, receive, send)
            else:
                await send({"type": "websocket.close", "code": 1008})  # before it is accepted: 403
        elif scope["type"] == "http":
            answer = self._with_headers(send)
            if self._known(scope):
                await self._app(scope, receive, answer)
            else:
                await answer(
                    {"type": "http.response.start", "status": 403, "headers": [(b"content-length", b"0")]}
                )
                await answer({"type": "http.response.body", "body": b""})

    def _known(self, scope: Scope) -> bool:
        """Return True if a request names this server, and no page of another asks."""
        origins = _values(scope, b"origin")
        own = origins == [self._origin] or (not origins and scope["type"] == "http")
        return _values(scope, b"host") == [self._host] and own

    def _has_token(self, scope: Scope) -> bool:
        offered = scope.get("subprotocols", [])
        token = offered[1].encode() if len(offered) == 2 and offered[0] == PROTOCOL else b""
        return hmac.compare_digest(token, self._token)

    def _with_headers(self, send: Send) -> Send:
        async def answer(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *self._headers]}
            await send(message)

        return answer


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for key, value in scope["headers"] if key == name]
