"""Lifetime of a playground: folder, child processes, server, and opening the browser."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import sys
import tempfile
import webbrowser
from pathlib import Path

from ...trials import environments
from . import snippets
from .capture_process import Limits
from .captures import Captures
from .server import Opening, Server
from .settings import MARK, Program, from_link
from .torch_versions import TorchVersions

NEEDED = ("starlette", "uvicorn", "websockets")
"""Packages of the extra ``play``."""

NAME = "f.py"
"""Name of a program that has no file."""


def opening(given: str) -> tuple[Opening, str]:
    """Return the initial content of a playground, and the folder of its modules, ``""`` for none.

    Args:
        given: a file, a folder of programs, a link from a playground, or ``""``.
    """
    menu = snippets.own()
    if MARK in given:
        return Opening(from_link(given), NAME, tuple(menu)), ""
    path = Path(given).absolute()
    if not given or os.path.isdir(path):
        menu = snippets.of_folder(path) if given else menu
        first = menu[0]
        return Opening(Program(first.source), first.file if given else NAME, tuple(menu)), str(
            path
        ) if given else ""
    chosen = snippets.of_file(path)
    return Opening(Program(chosen.source), chosen.file, (chosen, *menu)), str(path.parent)


def check() -> None:
    """Raise ``ModuleNotFoundError`` if a package of the extra is not installed."""
    for name in NEEDED:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            words = f"the playground needs {name}, which is not installed: pip install {' '.join(NEEDED)}"
            raise ModuleNotFoundError(words, name=name) from None


def serve(given: str, limits: Limits, browser: bool) -> None:
    """Serve a playground until an interrupt. It writes only to a private temporary folder, which is removed at the
    end."""
    check()
    first, modules = opening(given)
    signal.signal(signal.SIGTERM, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix="compile-lens-play-"))
    versions = TorchVersions(environments.home())
    captures = Captures(folder, limits, versions)
    try:
        captures.start()
        server = Server(captures, first, modules, versions)

        def begun() -> None:
            print(f"playground: {server.url}\nCtrl-C ends it.", file=sys.stderr, flush=True)
            if browser:
                webbrowser.open(_entry_file(folder, server.url).as_uri())

        server.run(begun)
    except KeyboardInterrupt:
        pass  # the normal way to end
    finally:
        captures.close()
        shutil.rmtree(folder, ignore_errors=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _entry_file(folder: Path, url: str) -> Path:
    """Write a page that redirects to the playground: a browser's command line is visible to every user of the machine,
    and the address has the token."""
    page = folder / "open.html"
    page.touch(0o600)
    page.write_text(
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={url}"><title>compile_lens</title>',
        encoding="utf-8",
    )
    return page
