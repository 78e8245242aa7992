"""The server, called by a client of the SDK over standard input and output."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import odd_programs
import pytest

import compile_lens
from compile_lens.cli.agents.server import TOOLS, server
from compile_lens.cli.agents.tools import Tools

mcp = pytest.importorskip("mcp")
anyio = pytest.importorskip("anyio")

pytestmark = [pytest.mark.torch, pytest.mark.full]

ROOT = Path(compile_lens.__file__).parent.parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(odd_programs.__file__, tmp_path / "odd.py")
    return tmp_path


def session(folder: Path, ask: Callable[[Any], Any], *options: str) -> Any:
    """Return the result of ``ask``, called with a session of a server of the folder."""
    from mcp.client.stdio import stdio_client

    parameters = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "compile_lens", "mcp", str(folder), *options],
        env={"PYTHONPATH": str(ROOT), "HOME": os.environ.get("HOME", "/")},
    )

    async def talk() -> Any:
        async with stdio_client(parameters) as streams, mcp.ClientSession(*streams) as client:
            await client.initialize()
            return await ask(client)

    return anyio.run(talk)


def test_a_client_lists_the_tools_and_gets_answers_and_records(folder: Path) -> None:
    async def ask(client: Any) -> None:
        listed = (await client.list_tools()).tools
        assert tuple(tool.name for tool in listed) == TOOLS
        assert all(tool.description and "max_tokens" in tool.input_schema["properties"] for tool in listed)
        call = {"function": "odd.py:fine", "inputs": ["torch.rand(8)"]}
        answer = (await client.call_tool("capture", call)).content
        assert len(answer) == 1 and "1 graph" in answer[0].text
        record = (await client.read_resource("record://c1")).contents[0]
        assert record.mime_type == "application/json" and record.text.startswith("{")
        assert "<html" in (await client.read_resource("page://c1")).contents[0].text
        for uri in ("record://c2", "record://..", "page://%2e%2e%2fetc%2fpasswd"):
            with pytest.raises(Exception, match=r"."):
                await client.read_resource(uri)
        assert (await client.call_tool("why", {"record": "c1", "offset": "x"})).is_error

    session(folder, ask)


@pytest.mark.exhaustive
def test_the_server_outlives_what_it_runs(folder: Path) -> None:
    async def ask(client: Any) -> None:
        for name, words in (("hangs", "within 20 s"), ("exits", "exit code 7"), ("crashes", "signal 11")):
            call = {"function": f"odd.py:{name}", "inputs": ["torch.rand(8)"]}
            text = (await client.call_tool("capture", call)).content[0].text
            assert words in text and "There is no record" in text
        call = {"function": "odd.py:fine", "inputs": ["torch.rand(8)"]}
        assert "1 graph" in (await client.call_tool("capture", call)).content[0].text

    session(folder, ask, "--seconds", "20")


def test_a_server_without_the_sdk_says_what_to_install() -> None:
    code = "import sys; sys.modules['mcp'] = None; from compile_lens.cli import main; sys.exit(main(['mcp']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 3 and "mcp is not installed" in done.stderr and "doctor" in done.stderr, (
        done.stderr
    )


@pytest.mark.exhaustive
def test_a_call_that_is_cancelled_ends_its_job(folder: Path) -> None:
    """The client gives up, and the job's output stops: it writes a line ten times a second."""
    (folder / "ticks.py").write_text(
        "import pathlib, time\n"
        "def f(x):\n    return x + 1\n"
        "while True:\n"
        "    with pathlib.Path(__file__).with_suffix('.txt').open('a') as file:\n        file.write('.')\n"
        "    time.sleep(0.1)\n",
        encoding="utf-8",
    )
    ticks = folder / "ticks.txt"
    tools = Tools(folder)

    async def talk() -> None:
        own = server(tools)
        with anyio.move_on_after(120) as scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(own.call_tool, "capture", {"function": "ticks.py:f", "inputs": ["1"]})
                while not ticks.exists():
                    await anyio.sleep(0.1)
                tasks.cancel_scope.cancel()
        assert not scope.cancelled_caught
        for _ in range(100):
            before = ticks.stat().st_size
            await anyio.sleep(0.5)
            if ticks.stat().st_size == before:
                break
        else:
            pytest.fail("the job goes on")
        answer = await own.call_tool("capture", {"function": "odd.py:fine", "inputs": ["torch.rand(8)"]})
        assert "1 graph" in str(answer)

    try:
        anyio.run(talk)
    finally:
        tools.close()
