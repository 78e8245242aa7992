"""The stance of the compiler that is in force, and the effect of each that does not compile every call."""

from __future__ import annotations

import torch

from ...record.program import FAIL_ON_RECOMPILE

DEFAULT = "default"
FIRST = "eager_then_compile"
EFFECTS = {
    "force_eager": "every call of a compiled function runs eagerly",
    "eager_on_recompile": "nothing is compiled: calls that fit a compiled variant run it, the others run eagerly",
    FIRST: "the first call of each function runs eagerly, to see what varies",
    FAIL_ON_RECOMPILE: "nothing is compiled: calls that fit a compiled variant run it, the others raise",
}


def current() -> str:
    """Return the name of the stance."""
    return str(getattr(getattr(torch._dynamo.eval_frame, "_stance", None), "stance", DEFAULT))
