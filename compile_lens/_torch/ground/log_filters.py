"""Filters for torch's loggers: for its trace, and for messages that a capture reports itself.

Torch's logger for TORCH_TRACE does not propagate: its records, whose texts are empty, are meant for its own file and
for handlers installed on it. pytest puts its handlers on the root logger and on every logger that does not propagate,
and would print a hundred empty lines per capture below a failing test.
"""

from __future__ import annotations

import functools
import logging
import threading

from .undo import Undo

TRACE_LOGGER = "torch.__trace"


def bypass_root_handlers(undo: Undo) -> None:
    """Keep trace records of this thread from handlers that are also on the root logger, until ``undo``."""
    trace, thread = logging.getLogger(TRACE_LOGGER), threading.get_ident()

    def accepts(record: logging.LogRecord) -> bool:
        if threading.get_ident() != thread:
            return True
        everything = logging.getLogger().handlers
        for handler in list(trace.handlers):
            if handler not in everything and record.levelno >= handler.level:
                handler.handle(record)
        return False

    undo.add(trace.removeFilter, accepts)
    trace.addFilter(accepts)


def is_traced() -> bool:
    """Return True if torch's trace is in use: its logger has a handler that is not on the root logger."""
    everything = logging.getLogger().handlers
    return any(handler not in everything for handler in logging.getLogger(TRACE_LOGGER).handlers)


DUPLICATES = {
    "torch._subclasses.fake_tensor": "failed while attempting to run meta for %s",
    "torch._inductor.scheduler": "Error in codegen for %s",
    "torch._inductor.utils": "on error, temporary cache dir kept at %s",
}
"""Format strings of torch's messages by logger. They are dropped, since a capture reports the error with its stage."""


def drop_duplicates(undo: Undo) -> None:
    """Drop the messages of ``DUPLICATES`` on this thread until ``undo``."""
    for name, words in DUPLICATES.items():
        logger = logging.getLogger(name)
        accepts = functools.partial(_is_no_duplicate, words, threading.get_ident())
        undo.add(logger.removeFilter, accepts)
        logger.addFilter(accepts)


def _is_no_duplicate(words: str, thread: int, record: logging.LogRecord) -> bool:
    return record.msg != words or record.thread != thread
