"""Keeps back what torch logs of an error that it raises as well: a capture has the error, with its stage."""

from __future__ import annotations

import functools
import logging
import threading

from .undo import Undo

TWICE = {
    "torch._subclasses.fake_tensor": "failed while attempting to run meta for %s",
    "torch._inductor.scheduler": "Error in codegen for %s",
    "torch._inductor.utils": "on error, temporary cache dir kept at %s",
}
"""By logger, torch's words."""


def say_once(undo: Undo) -> None:
    """Until ``undo``, those of this thread are not logged."""
    for name, words in TWICE.items():
        logger = logging.getLogger(name)
        heard = functools.partial(_heard, words, threading.get_ident())
        undo.add(logger.removeFilter, heard)
        logger.addFilter(heard)


def _heard(words: str, thread: int, record: logging.LogRecord) -> bool:
    return record.msg != words or record.thread != thread
