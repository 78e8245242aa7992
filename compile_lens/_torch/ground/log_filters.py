"""Filters of torch's loggers: its trace, and messages that a capture reports itself.

Torch's logger for TORCH_TRACE never propagates: its records, whose texts are empty, are for its own file and
for handlers that were installed for it. pytest puts its handlers on the root logger and on every logger that
does not propagate, and would print a hundred empty lines for each capture below a failing test.
"""

from __future__ import annotations

import functools
import logging
import threading

from .undo import Undo

TRACE_LOGGER = "torch.__trace"


def bypass_root_handlers(undo: Undo) -> None:
    """Until ``undo``, records of this thread reach no handler that is also on the root logger."""
    trace, thread = logging.getLogger(TRACE_LOGGER), threading.get_ident()

    def heard(record: logging.LogRecord) -> bool:
        if threading.get_ident() != thread:
            return True
        everything = logging.getLogger().handlers
        for handler in list(trace.handlers):
            if handler not in everything and record.levelno >= handler.level:
                handler.handle(record)
        return False

    undo.add(trace.removeFilter, heard)
    trace.addFilter(heard)


def is_traced() -> bool:
    """Return True if somebody asked for torch's trace: its logger has a handler that is not on the root logger."""
    everything = logging.getLogger().handlers
    return any(handler not in everything for handler in logging.getLogger(TRACE_LOGGER).handlers)


DUPLICATES = {
    "torch._subclasses.fake_tensor": "failed while attempting to run meta for %s",
    "torch._inductor.scheduler": "Error in codegen for %s",
    "torch._inductor.utils": "on error, temporary cache dir kept at %s",
}
"""Format strings of torch's messages, by logger. A capture has the error with its stage, so they are dropped."""


def drop_duplicates(undo: Undo) -> None:
    """Until ``undo``, drop these messages on this thread."""
    for name, words in DUPLICATES.items():
        logger = logging.getLogger(name)
        heard = functools.partial(_is_no_duplicate, words, threading.get_ident())
        undo.add(logger.removeFilter, heard)
        logger.addFilter(heard)


def _is_no_duplicate(words: str, thread: int, record: logging.LogRecord) -> bool:
    return record.msg != words or record.thread != thread
