"""Server of the playground: one page and one WebSocket, on a random port of 127.0.0.1, for one browser page at a
time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from ...errors import UsageError
from ...views.live import playground as pages
from .captures import Captures
from .guard import PROTOCOL, Guard
from .session import Session
from .settings import BESIDE, DTYPES, MAX_SIZE, TARGETS, Program
from .snippets import Snippet
from .torch_versions import TorchVersions

LOOPBACK = "127.0.0.1"
"""The only address that the server listens on."""

MAX_MESSAGE_BYTES = 1 << 20
"""Maximum size of a received message, in bytes."""

REPLACED = 4001
"""WebSocket close code for a page that another one has replaced."""


@dataclass(frozen=True)
class Opening:
    """Initial content of the page: a program, the name of its file, and the menu."""

    program: Program
    file: str
    menu: tuple[Snippet, ...]


class Server:
    """The server, bound to its port.

    Args:
        captures: the child processes that capture programs.
        folder: where modules of the programs are searched; ``""`` for none.
        versions: torch versions that a page may select.
    """

    def __init__(self, captures: Captures, opening: Opening, folder: str, versions: TorchVersions) -> None:
        self._captures, self._opening, self._folder = captures, opening, folder
        self._versions = versions
        self._token = secrets.token_urlsafe(32)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.bind((LOOPBACK, 0))
        self.address = f"{LOOPBACK}:{self.socket.getsockname()[1]}"
        self._reader: Any = None

    @property
    def url(self) -> str:
        """The address of the page, with the token in its fragment, which browsers do not send."""
        return f"http://{self.address}/#t={self._token}"

    def application(self) -> Any:
        """Return the ASGI application, behind its guard."""
        from starlette.responses import HTMLResponse
        from starlette.routing import Route, Router, WebSocketRoute

        async def entry_page(request: Any) -> Any:
            return HTMLResponse(pages.entry_page())

        routes = [Route("/", entry_page, methods=["GET"]), WebSocketRoute("/socket", self._serve_page)]
        router = Router(routes, redirect_slashes=False)
        return Guard(router, self.address, self._token, pages.policy(self.address))

    def uvicorn(self) -> Any:
        """Return the uvicorn server of the application, which logs no addresses and trusts no proxy headers."""
        import uvicorn

        config = uvicorn.Config(
            self.application(),
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws_max_size=MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False,
            limit_concurrency=32,
            timeout_graceful_shutdown=1,
        )
        return uvicorn.Server(config)

    def run(self, begun: Callable[[], None]) -> None:
        """Serve until an interrupt; ``begun`` is called once the port is open."""
        self.socket.listen()
        begun()
        self.uvicorn().run(sockets=[self.socket])

    async def _serve_page(self, reader: Any) -> None:
        """Serve one page, and close the connection of an older one."""
        from starlette.websockets import WebSocketDisconnect

        await reader.accept(subprotocol=PROTOCOL)
        if self._reader is not None:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await self._reader.close(REPLACED)
        self._reader = reader
        file = self._opening.file

        async def send(answer: dict[str, Any]) -> None:
            await reader.send_text(json.dumps(answer))  # ASCII, since a program's text may not be valid UTF-8

        session = Session(self._captures, f"{self._folder}/{file}" if self._folder else file, send)
        work = asyncio.create_task(session.run())
        try:
            await reader.send_json({"hello": self._hello()})
            while await self._receive(session, reader, (await reader.receive()).get("text")):
                pass
        except WebSocketDisconnect:
            pass
        finally:
            work.cancel()
            session.leave()
            if self._reader is reader:
                self._reader = None

    async def _receive(self, session: Session, reader: Any, text: str | None) -> bool:
        """Handle a message of the page; ``text`` is None if it has no text. Return False if the connection was
        closed."""
        message = {}
        try:
            message = json.loads(text or "")
            number, page, early = message["edit"], message.get("page") is True, message.get("early") is True
            if type(number) is not int:
                raise TypeError("an edit must have a number")
            program = Program.read(message["program"])
            self._versions.check(program.settings.torch)
        except UsageError as error:
            answer = {"error": {"type": "", "message": str(error), "line": 0}}
            await reader.send_text(json.dumps({"of": message["edit"], **answer}))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            with contextlib.suppress(RuntimeError):  # the page left or was replaced
                await reader.close(1003)  # not sent by our page
            return False
        else:
            session.want({"edit": number, "program": asdict(program), "page": page, "early": early})
        return True

    def _hello(self) -> dict[str, Any]:
        opening = self._opening
        return {
            "file": opening.file,
            "program": asdict(opening.program),
            "menu": [asdict(one) for one in opening.menu],
            "targets": TARGETS,
            "beside": BESIDE,
            "dtypes": DTYPES,
            "torches": self._versions.offered(),
            "sizes": [("rows", "rows"), ("columns", "columns")],
            "largest": MAX_SIZE,
            "seconds": self._captures.seconds,
            **pages.bundle(),
        }
