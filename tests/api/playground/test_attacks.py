"""Attacks on the playground's server: from another page of the reader's browser, or by another user of the machine."""

from __future__ import annotations

import contextlib
import json
import socket
from typing import Any

import pytest

from compile_lens.api.playground import play
from compile_lens.api.playground.server import LOOPBACK, REPLACED, Server

from .conftest import SECRET, NoCaptures

connecting = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")

PROTOCOL = "compile-lens"


def asked(server: Server, head: str, method: str = "GET", path: str = "/") -> tuple[int, dict[str, str], str]:
    """Return status, headers and body of the response to a request with exactly these headers."""
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        request = f"{method} {path} HTTP/1.1\r\n{head}Connection: close\r\n\r\n"
        connection.sendall(request.encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
    top, _, body = answer.decode().partition("\r\n\r\n")
    status, *lines = top.split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return int(status.split()[1]), headers, body


def token(server: Server) -> str:
    return server.url.partition("#t=")[2]


def connected(server: Server, **changes: Any) -> Any:
    """Open a WebSocket like the page, with ``changes``. Raises ``InvalidStatus`` if the server refuses it."""
    given: dict[str, Any] = {
        "origin": f"http://{server.address}",
        "subprotocols": [PROTOCOL, token(server)],
        "compression": None,
        "open_timeout": 10,
        "max_size": None,
        "proxy": None,
    }
    address = changes.pop("address", f"ws://{server.address}/socket")
    return connecting.connect(address, **{**given, **changes})


def test_the_reader_gets_the_program(server: Server) -> None:
    with connected(server) as reader:
        hello = json.loads(reader.recv(10))["hello"]
        assert reader.subprotocol == PROTOCOL
    assert hello["program"]["source"] == SECRET and hello["menu"][0]["title"] == "a title"


# From the network -------------------------------------------------------------------------------------------


def test_listens_on_loopback_alone(server: Server) -> None:
    assert server.socket.getsockname()[0] == LOOPBACK == "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # sends nothing: it only finds the address that would be used
        own = probe.getsockname()[0]
    if own.startswith("127.") or own == "0.0.0.0":
        pytest.skip("this machine has no address but loopback")
    with pytest.raises(OSError):
        socket.create_connection((own, server.socket.getsockname()[1]), timeout=2).close()


def test_no_option_of_the_command_leads_beyond_loopback() -> None:
    from compile_lens.cli.arguments import parser

    (commands,) = (one for one in parser()._actions if isinstance(one.choices, dict))
    assert commands.choices is not None
    options = {option for one in commands.choices["play"]._actions for option in one.option_strings}
    assert options == {
        *("-h", "--help", "--seconds", "--memory", "--no-browser"),
        *("--json", "--quiet", "--traceback"),
    }


# From another page ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "localhost:{port}",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.0.0.1:{port}.evil.example",
        "[::1]:{port}",
    ],
)
def test_a_name_that_was_rebound_to_this_machine_gets_nothing(server: Server, host: str) -> None:
    host = host.format(port=server.address.split(":")[1])
    status, _, body = asked(server, f"Host: {host}\r\n")
    assert (status, body) == (403, "")


def test_two_names_are_no_name(server: Server) -> None:
    status, _, body = asked(server, f"Host: {server.address}\r\nHost: evil.example\r\n")
    assert status in (400, 403) and "script" not in body


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://{address}"])
def test_a_page_of_another_origin_gets_nothing(server: Server, origin: str) -> None:
    head = f"Host: {server.address}\r\nOrigin: {origin.format(address=server.address)}\r\n"
    assert asked(server, head)[::2] == (403, "")
    assert asked(server, head, "OPTIONS")[0] == 403


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "PUT"])
@pytest.mark.parametrize("path", ["/", "/socket", "/nothing"])
def test_no_answer_lets_another_origin_read_it(server: Server, method: str, path: str) -> None:
    own = f"Host: {server.address}\r\nOrigin: http://{server.address}\r\n"
    for head in (own, "Host: evil.example\r\nOrigin: http://evil.example\r\n"):
        _, headers, _ = asked(server, head, method, path)
        assert not [name for name in headers if name.startswith("access-control-")]
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "set-cookie" not in headers and "server" not in headers


BAD = {
    "a cross-site page": {"origin": "http://evil.example"},
    "a page of another port": {"origin": "http://127.0.0.1:1"},
    "a sandboxed frame": {"origin": "null"},
    "no browser": {"origin": None},
    "no token": {"subprotocols": [PROTOCOL]},
    "no protocol": {"subprotocols": None},
    "a wrong token": {"subprotocols": [PROTOCOL, "A" * 43]},
    "an empty token": {"subprotocols": [PROTOCOL, "_"]},
}


@pytest.mark.parametrize("name", BAD)
def test_a_websocket_of_another_gets_nothing(server: Server, captures: NoCaptures, name: str) -> None:
    with pytest.raises(exceptions.InvalidStatus) as refused, connected(server, **BAD[name]):
        pass
    assert refused.value.response.status_code == 403
    assert captures.requests == []


def test_a_token_elsewhere_than_in_the_handshake_does_not_count(server: Server) -> None:
    address = f"ws://{server.address}/socket?t={token(server)}"
    cookie = {"Cookie": f"compile-lens={token(server)}"}
    with (
        pytest.raises(exceptions.InvalidStatus) as refused,
        connected(server, address=address, subprotocols=[PROTOCOL], additional_headers=cookie),
    ):
        pass
    assert refused.value.response.status_code == 403


def test_a_websocket_of_a_rebound_name_gets_nothing(server: Server) -> None:
    """The browser was led to take ``evil.example`` for this machine; even the right token does not help."""
    host, port = server.address.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        head = (
            f"GET /socket HTTP/1.1\r\nHost: evil.example:{port}\r\nOrigin: http://evil.example:{port}\r\n"
            "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            f"Sec-WebSocket-Protocol: {PROTOCOL}, {token(server)}\r\n\r\n"
        )
        raw.sendall(head.encode())
        assert b" 403 " in raw.recv(65536).split(b"\r\n")[0]


# From another user of the machine ---------------------------------------------------------------------------


def test_the_entry_page_holds_nothing_of_the_reader(server: Server) -> None:
    status, headers, body = asked(server, f"Host: {server.address}\r\n")
    assert status == 200 and "<script>" in body
    for secret in (token(server), "the_readers_own_program", "own.py", "a title"):
        assert secret not in body + str(headers)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc/passwd",
        "//etc/passwd",
        "/own.py",
        "/built/viewer.min.js",
        "/entry.min.js",
        "/?file=/etc/passwd",
        "/socket",
        "/socket/",
    ],
)
def test_no_path_leads_to_a_file(server: Server, path: str) -> None:
    status, _, body = asked(server, f"Host: {server.address}\r\n", path=path)
    assert "root:" not in body and "the_readers" not in body
    assert status == (200 if path.startswith("/?") else 404)


def test_tokens_are_random_and_long(captures: NoCaptures, server: Server, tmp_path: Any) -> None:
    other = Server(captures, server._opening, "", server._versions)  # type: ignore[arg-type]
    other.socket.close()
    assert token(other) != token(server) and len(token(server)) == 43  # 256 bits


def test_the_browsers_command_line_holds_no_token(tmp_path: Any) -> None:
    """Every user of the machine can read the command line of a process."""
    page = play._entry_file(tmp_path, "http://127.0.0.1:1/#t=secret")
    assert "secret" not in page.as_uri() and "secret" in page.read_text("utf-8")
    assert page.stat().st_mode & 0o777 == 0o600


# With the token ---------------------------------------------------------------------------------------------


STRANGE = {
    "no JSON": "no JSON",
    "a list": "[]",
    "no edit": "{}",
    "no program": '{"edit": 1}',
    "a number": "3",
    "nested": "[" * 100_000,
    "an edit without end": '{"edit": 1e999, "program": {"source": "x = 1"}}',
    "no number": '{"edit": NaN, "program": {"source": "x = 1"}}',
    "an object as edit": '{"edit": {}, "program": {"source": "x = 1"}}',
    "digits": '{"edit": ' + "9" * 100_000 + ', "program": {"source": "x = 1"}}',
    "bytes": b'{"edit": 1, "program": {"source": "x = 1"}}',
    "bytes that are no text": b"\xff\x00",
    "nothing": "",
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_message_that_no_page_writes_ends_the_talk(
    server: Server, captures: NoCaptures, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(server) as reader:
        reader.recv(10)
        reader.send(STRANGE[name])
        with pytest.raises(exceptions.ConnectionClosed) as closed:
            reader.recv(10)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1003
    with connected(server) as reader:
        assert "hello" in json.loads(reader.recv(10)), "the next page gets its answers"
    assert captures.requests == []
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]


def test_a_flood_of_messages_is_one_request(server: Server, captures: NoCaptures) -> None:
    """Each message replaces the previous one, so the queue does not grow."""
    with connected(server) as reader:
        reader.recv(10)
        for number in range(300):
            reader.send(json.dumps({"edit": number, "program": {"source": "x" * 100_000}}))
        while json.loads(reader.recv(10))["of"] != 299:
            pass
    assert len(captures.requests) <= 300


def test_what_is_no_valid_text_is_answered(
    server: Server, captures: NoCaptures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error message of a program may contain half of a UTF-16 surrogate pair."""
    answer = {"error": {"type": "ValueError", "message": "\ud800", "line": 1}}
    monkeypatch.setattr(captures, "ask", lambda *given: answer)
    with connected(server) as reader:
        reader.recv(10)
        for number in (1, 2):
            reader.send(json.dumps({"edit": number, "program": {"source": "x = 1"}}))
            assert json.loads(reader.recv(10)) == {"of": number, **answer}


def test_idle_connections_keep_no_page_from_its_answers(server: Server) -> None:
    """Another user may keep connections open; an open page still gets its answers."""
    host, port = server.address.split(":")
    with contextlib.ExitStack() as held, connected(server) as reader:
        reader.recv(10)
        for _ in range(100):
            connection = held.enter_context(socket.create_connection((host, int(port)), timeout=10))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        reader.send(json.dumps({"edit": 1, "program": {"source": "x = 1"}}))
        assert json.loads(reader.recv(10))["of"] == 1


def test_a_message_of_a_million_signs_ends_the_talk(server: Server, captures: NoCaptures) -> None:
    with connected(server) as reader:
        reader.recv(10)
        with pytest.raises(exceptions.ConnectionClosed):
            reader.send(json.dumps({"edit": 1, "program": {"source": "x" * 2_000_000}}))
            reader.recv(10)
    assert captures.requests == []


@pytest.mark.parametrize(
    "settings",
    [
        {"target": "/etc/passwd.json"},
        {"target": "../own.json"},
        {"rows": 10**9},
        {"rows": True},
        {"dtype": "os"},
        {"torch": "/usr/bin/python3"},
        {"torch": "2.12"},
        {"torch": "../torch-2.12"},
        {"torch": ["2.12"]},
        {"switches": "combo_kernels"},
        {"dynamic": "yes"},
        [],
    ],
)
def test_settings_that_no_page_has_are_refused(server: Server, captures: NoCaptures, settings: Any) -> None:
    with connected(server) as reader:
        reader.recv(10)
        reader.send(json.dumps({"edit": 5, "program": {"source": "", "settings": settings}}))
        answer = json.loads(reader.recv(10))
    assert answer["of"] == 5 and answer["error"]["message"]
    assert captures.requests == []


def test_a_page_names_no_file(server: Server, captures: NoCaptures, tmp_path: Any) -> None:
    with connected(server) as reader:
        reader.recv(10)
        request = {"edit": 1, "program": {"source": "x = 1"}, "file": "/etc/passwd", "folder": "/etc"}
        reader.send(json.dumps(request))
        reader.recv(10)
    (asked_for,) = captures.requests
    assert asked_for["file"] == f"{tmp_path}/own.py" and "folder" not in asked_for


def test_a_second_page_takes_the_place_of_the_first(server: Server) -> None:
    with connected(server) as first:
        first.recv(10)
        with connected(server) as second:
            second.recv(10)
            with pytest.raises(exceptions.ConnectionClosed) as closed:
                first.recv(10)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == REPLACED
