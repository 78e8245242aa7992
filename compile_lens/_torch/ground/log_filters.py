"""Keeps what torch says of a capture's compiles, for its trace, from handlers that hear everything.

Torch's logger for TORCH_TRACE never propagates: its records, whose texts are empty, are for its own file and for who
asked for them there. pytest puts its handlers on the root logger and on every logger that does not propagate, and
prints what they heard below a failing test: a hundred empty lines for each capture.
"""

from __future__ import annotations

import functools
import logging
import threading

from .undo import Undo

TRACE_LOGGER = "torch.__trace"


def bypass_root_handlers(undo: Undo) -> None:
    """Until ``undo``, records of this thread reach no handler that stands on the root logger as well."""
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
    """Whether somebody asked for torch's trace: a handler stands there that does not hear everything."""
    everything = logging.getLogger().handlers
    return any(handler not in everything for handler in logging.getLogger(TRACE_LOGGER).handlers)


DUPLICATES = {
    "torch._subclasses.fake_tensor": "failed while attempting to run meta for %s",
    "torch._inductor.scheduler": "Error in codegen for %s",
    "torch._inductor.utils": "on error, temporary cache dir kept at %s",
}
"""By logger, torch's words."""


def drop_duplicates(undo: Undo) -> None:
    """Until ``undo``, those of this thread are not logged."""
    for name, words in DUPLICATES.items():
        logger = logging.getLogger(name)
        heard = functools.partial(_is_no_duplicate, words, threading.get_ident())
        undo.add(logger.removeFilter, heard)
        logger.addFilter(heard)


def _is_no_duplicate(words: str, thread: int, record: logging.LogRecord) -> bool:
    return record.msg != words or record.thread != thread
