"""Places in torch's own source: whether a file is one of torch's, and how a reader finds a line of it."""

from __future__ import annotations

import functools
import os
import types

import torch

TORCH = os.path.join(os.path.dirname(torch.__file__), "")
"""The folder of torch's own files."""


def of_torch(file: str) -> bool:
    """Whether a file is one of torch's own."""
    return file.startswith(TORCH)


def internal(file: str) -> bool:
    """Whether a file is ours, or torch's wrapper around a captured callable: no line of the program."""
    return "/compile_lens/_torch/" in file.replace("\\", "/") or file.endswith(
        "/torch/_dynamo/external_utils.py"
    )


def place(code: types.CodeType, line: int) -> str:
    """A place in torch as a reader finds it in any installation; elsewhere just the name of the file."""
    return _place(code.co_filename, line, code.co_name)


@functools.lru_cache(maxsize=1024)
def _place(filename: str, line: int, function: str) -> str:
    root = os.path.dirname(os.path.dirname(os.path.abspath(torch.__file__)))
    file = os.path.abspath(filename)
    inside = file.startswith(root + os.sep + "torch" + os.sep)
    name = file[len(root) + 1 :].replace(os.sep, "/") if inside else os.path.basename(file)
    return f"{name}:{line} in {function}"
