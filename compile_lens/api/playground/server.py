"""The server of the playground: one page and one WebSocket, on a random port of 127.0.0.1, for one reader."""

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
from .settings import BESIDE, DTYPES, LARGEST, TARGETS, Program
from .snippets import Snippet
from .torch_versions import TorchVersions

LOOPBACK = "127.0.0.1"
"""The only address that the server listens on."""

LONGEST = 1 << 20
"""Bytes of a message that it takes."""

ELSEWHERE = 4001
"""Code with which a page is told that another one has taken its place."""


@dataclass(frozen=True)
class Opening:
    """Content that the page begins with: a program, the name of its file, and the menu."""

    program: Program
    file: str
    menu: tuple[Snippet, ...]


class Server:
    """The server, bound to its port.

    Args:
        captures: captures the programs.
        folder: where modules of the programs are looked for; ``""`` for none.
        versions: those of torch that a page may name.
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
        """The address of the page. The token stands in its fragment, which no browser sends."""
        return f"http://{self.address}/#t={self._token}"

    def application(self) -> Any:
        """Return the ASGI application, behind its guard."""
        from starlette.responses import HTMLResponse
        from starlette.routing import Route, Router, WebSocketRoute

        async def entry_page(request: Any) -> Any:
            return HTMLResponse(pages.entry_page())

        routes = [Route("/", entry_page, methods=["GET"]), WebSocketRoute("/socket", self._talk)]
        router = Router(routes, redirect_slashes=False)
        return Guard(router, self.address, self._token, pages.policy(self.address))

    def uvicorn(self) -> Any:
        """Return what serves the application on ``socket``: it logs no address, and trusts no header of a proxy."""
        import uvicorn

        config = uvicorn.Config(
            self.application(),
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws_max_size=LONGEST,
            ws_per_message_deflate=False,
            limit_concurrency=32,
            timeout_graceful_shutdown=1,
        )
        return uvicorn.Server(config)

    def run(self, begun: Callable[[], None]) -> None:
        """Serve until an interrupt; ``begun`` is called once it listens."""
        self.socket.listen()
        begun()
        self.uvicorn().run(sockets=[self.socket])

    async def _talk(self, reader: Any) -> None:
        """Answer one page. An older one is told that it has been replaced."""
        from starlette.websockets import WebSocketDisconnect

        await reader.accept(subprotocol=PROTOCOL)
        if self._reader is not None:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await self._reader.close(ELSEWHERE)
        self._reader = reader
        file = self._opening.file

        async def send(answer: dict[str, Any]) -> None:
            await reader.send_text(json.dumps(answer))  # in ASCII: a program's texts may be no valid UTF-8

        session = Session(self._captures, f"{self._folder}/{file}" if self._folder else file, send)
        work = asyncio.create_task(session.run())
        try:
            await reader.send_json({"hello": self._hello()})
            while await self._hear(session, reader, (await reader.receive()).get("text")):
                pass
        except WebSocketDisconnect:
            pass
        finally:
            work.cancel()
            session.leave()
            if self._reader is reader:
                self._reader = None

    async def _hear(self, session: Session, reader: Any, text: str | None) -> bool:
        """Take a message of the page, None for one without text. Return False if it ended the talk."""
        message = {}
        try:
            message = json.loads(text or "")
            number, page, early = message["edit"], message.get("page") is True, message.get("early") is True
            if type(number) is not int:
                raise TypeError("an edit has a number")
            program = Program.read(message["program"])
            self._versions.check(program.settings.torch)
        except UsageError as error:
            answer = {"error": {"type": "", "message": str(error), "line": 0}}
            await reader.send_text(json.dumps({"of": message["edit"], **answer}))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            with contextlib.suppress(RuntimeError):  # it has left, or another page took its place
                await reader.close(1003)  # no page of ours wrote this
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
            "largest": LARGEST,
            "seconds": self._captures.seconds,
            **pages.bundle(),
        }
