"""Fake environments for ``upgrade``, which use the running Python and install nothing."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from compile_lens.trials import environments
from compile_lens.trials.environments import MARK, Environment


def environment(folder: Path, version: str, torch: str, script: str = "") -> Environment:
    """Create an environment whose marker file names ``torch``; ``script`` replaces its Python."""
    one = environments.find(version, folder)
    one.python.parent.mkdir(parents=True, exist_ok=True)
    one.python.write_text(f'#!/bin/sh\n{script or f"exec {shlex.quote(sys.executable)}"} "$@"\n')
    one.python.chmod(0o755)
    (one.folder / MARK).write_text(json.dumps({"torch": torch, "with": []}))
    new = environments.find(version, folder)
    assert new.whole
    return new
