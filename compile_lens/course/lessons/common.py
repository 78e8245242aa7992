"""What exercises of several lessons ask for, and are called with."""

from __future__ import annotations

from ..exercise import EXACTLY, Input, Need

UNBROKEN = (Need("breaks", EXACTLY, 0), Need("skipped", EXACTLY, 0))
"""All of it is compiled, in one piece."""

OWN = (Need("library_calls", EXACTLY, 0), *UNBROKEN)
"""All of it is the compiler's own code."""

MATRIX = (Input((64, 64)),)
"""One square matrix."""

TRAINED = (Input((64, 64), grad=True),)
"""One square matrix that a gradient is wanted of."""
