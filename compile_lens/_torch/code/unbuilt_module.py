"""The module that replaces the built one in a code-only capture, where nothing is built."""

from __future__ import annotations

from typing import Any, NoReturn


def call(args: Any) -> NoReturn:
    """Raise AssertionError: a code-only capture runs the graph that Dynamo captured instead."""
    raise AssertionError(
        "compile_lens: this code was generated only, not built; capture with build=True to run it"
    )


def call_before_cpp(args: Any) -> NoReturn:
    """Raise AssertionError: this torch runs a Python wrapper before it generates a C++ one for a GPU."""
    raise AssertionError(
        "compile_lens: this torch runs a graph before it generates the wrapper in C++ for a GPU, and nothing was "
        "built; leave out cpp_wrapper, or use torch 2.13 or later, or capture with build=True if the GPU is present"
    )
