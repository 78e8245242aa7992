"""Displays captures in a notebook or an interactive session, each once.

``show`` displays the capture itself, so that it also works in the middle of a cell, and returns it. As the last
expression of a cell, the capture would be displayed twice. So displayed captures are remembered until the cell ends,
and are not displayed again as its result. An explicit ``display(capture)`` and later cells display it as usual.

IPython is imported only if it is already running.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

from compile_lens.record.capture import Record

from .language import chosen
from .live.page import fragment
from .summaries.capture_summary import summary
from .summaries.short_text import in_file, text
from .translated_summary import in_language
from .words.characters import encodes, printable

_displayed: list[weakref.ref[Record]] = []
"""Captures displayed in the current cell. They are compared by identity, since comparing records is slow."""


def display(capture: Record, lang: str | None = None) -> None:
    """Display a capture: as HTML in the language ``lang`` in a notebook, else as short text on standard output."""
    shell = _shell()
    if shell is not None:
        _pass_over(shell, capture)
    if shell is None or _is_terminal(shell):
        _print(text(in_language(summary(capture), chosen(lang))))
        return
    from IPython.display import display as publish

    plain = in_file(in_language(summary(capture), chosen(lang)))
    publish({"text/plain": plain, "text/html": fragment(capture, lang)}, raw=True)


def _shell() -> Any:
    """Return the running IPython shell, or ``None``."""
    ipython = sys.modules.get("IPython")
    if ipython is None or not hasattr(ipython, "get_ipython"):
        return None
    return ipython.get_ipython()


def _is_terminal(shell: Any) -> bool:
    return any(cls.__name__ == "TerminalInteractiveShell" for cls in type(shell).__mro__)


def _print(text: str) -> None:
    stream = sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(text if encodes(text, encoding) else printable(text, encoding))
    stream.flush()


def _pass_over(shell: Any, capture: Record) -> None:
    """Do not display the result of the running cell if it is this capture."""
    formatter = shell.display_formatter.ipython_display_formatter
    formatter.for_type(Record, _display_again)
    if not _displayed:
        shell.events.register("post_run_cell", _forget)
    _displayed.append(weakref.ref(capture))


def _display_again(capture: Record) -> None:
    # IPython calls this first for every displayed capture. Returning suppresses the display; NotImplementedError lets
    # IPython continue with the MIME bundle.
    if _is_result() and any(known() is capture for known in _displayed):
        return
    raise NotImplementedError


def _is_result() -> bool:
    """Return True if IPython displays the result of the cell, not an argument of ``display()``.

    A Jupyter kernel has the current message in ``displayhook.msg``; a terminal has ``is_active``. A shell with neither
    is assumed to display a result.
    """
    hook = getattr(_shell(), "displayhook", None)
    signs = [getattr(hook, name) for name in ("msg", "is_active") if hasattr(hook, name)]
    return not signs or any(sign is not None and sign is not False for sign in signs)


def _forget(*_: Any) -> None:
    _displayed.clear()
    shell = _shell()
    if shell is not None:
        shell.events.unregister("post_run_cell", _forget)
