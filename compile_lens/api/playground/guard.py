"""Guard of the playground's server: only requests from this server's own page pass."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

PROTOCOL = "compile-lens"
"""Subprotocol of the WebSocket. The token is sent with it, so that it is in no address, log or referrer."""


class Guard:
    """Wrapper of the server's ASGI application.

    A request must have this server as its ``Host``, against DNS rebinding. An ``Origin``, if present, must be this
    server's; a WebSocket must have one, and the token. Every response forbids framing, caching, content sniffing and
    referrers, and no other origin may read it.

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
                await send({"type": "websocket.close", "code": 1008})  # before accepting: a 403
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
        """Return True if a request names this server and does not come from another origin."""
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
