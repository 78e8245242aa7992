"""The module that Inductor believes to have built, in code only: nothing was built."""

from __future__ import annotations

from typing import Any, NoReturn


def call(args: Any) -> NoReturn:
    """Raise: a code-only capture runs the graph that Dynamo captured instead."""
    raise AssertionError(
        "compile_lens: this code was generated only, not built; capture with build=True to run it"
    )
