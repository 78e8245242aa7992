"""Notebook servers as child processes, each with its own home directory without user settings."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = 120.0
"""Seconds within which a server must answer."""


@dataclass(frozen=True)
class Homes:
    """The folders of one server: its notebooks, and replacements for the user's home directory."""

    top: Path

    @property
    def notebooks(self) -> Path:
        return self.top / "notebooks"

    @property
    def data(self) -> Path:
        return self.top / "data"

    @property
    def config(self) -> Path:
        return self.top / "config"

    @property
    def settings(self) -> Path:
        """Return the settings of JupyterLab's user, a file for each plugin."""
        return self.config / "lab" / "user-settings"

    def environment(self) -> dict[str, str]:
        """Return the environment of a process that must see these folders and no other settings."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "IPYTHON", "JPY_"))}
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        return {
            **kept,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            "HOME": str(self.top / "home"),
            "IPYTHONDIR": str(self.top / "ipython"),
            "JUPYTER_NO_CONFIG": "1",
            "JUPYTER_CONFIG_DIR": str(self.config),
            "JUPYTER_DATA_DIR": str(self.data),
            "JUPYTER_RUNTIME_DIR": str(self.top / "runtime"),
            "JUPYTERLAB_SETTINGS_DIR": str(self.settings),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.top / "workspaces"),
        }


@dataclass(frozen=True)
class Server:
    """A running server. ``url`` ends in ``/``."""

    app: str
    url: str
    token: str
    homes: Homes

    @property
    def places(self) -> tuple[str, str]:
        """Return the addresses that its pages may request: its own, and those of its sockets."""
        return self.url, self.url.replace("http:", "ws:")

    def page(self, notebook: Path) -> str:
        """Return the address of an opened notebook of its folder."""
        path = notebook.relative_to(self.homes.notebooks).as_posix()
        below = "lab/tree" if self.app == "jupyterlab" else "notebooks"
        return f"{self.url}{below}/{path}?token={self.token}" + ("&reset" if below.startswith("lab") else "")


def homes(top: Path) -> Homes:
    """Return folders for a server, with a kernel that is the running interpreter."""
    home = Homes(top)
    kernel = home.data / "kernels" / "python3"
    config = home.config / "labconfig"
    for folder in (home.notebooks, kernel, config, home.settings, top / "home"):
        folder.mkdir(parents=True)
    spec = {
        "argv": [
            sys.executable,
            "-Xfrozen_modules=off",
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
        ],
        "display_name": "Python 3",
        "language": "python",
    }
    (kernel / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    # Otherwise it would ask the user for permission to fetch news, and look for updates.
    off = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    (config / "page_config.json").write_text(json.dumps(off), encoding="utf-8")
    return home


@contextlib.contextmanager
def started(app: str, homes: Homes) -> Iterator[Server]:
    """Run a server; it and its kernels end with the block. Raises ``RuntimeError`` if it does not start."""
    port, token = _free_port(), secrets.token_hex(16)
    options = [
        "--no-browser",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={homes.notebooks}",
        "--ServerApp.terminals_enabled=False",
        "--ServerApp.allow_root=True",
    ]
    if app == "jupyterlab":
        options += ["--ServerApp.jpserver_extensions={'jupyter_lsp': True}"]  # its pages request it
        options += ["--LabApp.news_url=", "--LabApp.extension_manager=readonly"]
        options += ["--LabApp.check_for_updates_class=jupyterlab.handlers.announcements.NeverCheckForUpdate"]
    log = homes.top / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", app, *options],
            cwd=homes.notebooks,
            env=homes.environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # its kernels end with it, even if it does not end them
        )
        server = Server(app, f"http://127.0.0.1:{port}/", token, homes)
        try:
            _wait(server, process, log)
            yield server
        finally:
            _end(process)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
    return port


def _wait(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + START
    while time.monotonic() < until and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{server.url}api/status?token={server.token}", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    tail = log.read_text(encoding="utf-8", errors="replace")[-3000:]
    raise RuntimeError(f"{server.app} did not start:\n{tail}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(timeout=20)
    except subprocess.TimeoutExpired:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=20)
