"""Captures that were saved."""

from __future__ import annotations

import os

from ..results.capture import Capture
from ..views.render.files import read


def load(path: str | os.PathLike[str]) -> Capture:
    """The capture in a file that ``capture.save("….json")`` wrote. Runs no code of the record.

    Raises:
        UsageError: there is no such file, or it cannot be read.
        RecordError: it is not a record, is corrupt, or was written by a newer compile_lens.
    """
    return read(path, Capture.from_json)
