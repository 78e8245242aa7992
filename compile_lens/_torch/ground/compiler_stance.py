"""The compiler stance in force, and the effect of each stance other than the default."""

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
    """Return the name of the stance in force."""
    return str(getattr(getattr(torch._dynamo.eval_frame, "_stance", None), "stance", DEFAULT))
