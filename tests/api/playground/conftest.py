"""Playground servers in a thread: one whose captures run nothing, and one with a child."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compile_lens.api.playground.server import Opening, Server
from compile_lens.api.playground.settings import Program
from compile_lens.api.playground.snippets import Snippet
from compile_lens.api.playground.torch_versions import TorchVersions

SECRET = "import torch\n\n\ndef the_readers_own_program(x):\n    return x\n"


class NoCaptures:
    """Takes requests, and answers each with an empty capture."""

    seconds = 10.0

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []

    def ready(self, request: dict[str, Any]) -> bool:
        return True

    def ask(
        self, request: dict[str, Any], unwanted: threading.Event, early: Callable[[dict[str, Any]], None]
    ) -> dict[str, Any]:
        self.requests.append(request)
        return {"error": {"type": "", "message": "nothing was run", "line": 0}}

    def close(self) -> None:
        """Do nothing, since nothing is open."""


@pytest.fixture
def captures() -> NoCaptures:
    return NoCaptures()


@pytest.fixture
def server(captures: NoCaptures, tmp_path: Path) -> Iterator[Server]:
    """A listening server. Its program contains the word ``the_readers_own_program``."""
    pytest.importorskip("uvicorn")
    pytest.importorskip("websockets")
    opening = Opening(Program(SECRET), "own.py", (Snippet("a title", "own.py", SECRET),))
    versions = TorchVersions(tmp_path / "environments")
    server = Server(captures, opening, str(tmp_path), versions)  # type: ignore[arg-type]
    serving = server.uvicorn()
    server.socket.listen()
    thread = threading.Thread(target=serving.run, kwargs={"sockets": [server.socket]}, daemon=True)
    thread.start()
    while not serving.started:
        assert thread.is_alive()
        time.sleep(0.005)
    yield server
    serving.should_exit = True
    thread.join(20)
    assert not thread.is_alive()
