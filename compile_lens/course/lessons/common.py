"""Requirements and inputs that exercises of several lessons share."""

from __future__ import annotations

from ..exercise import AT_LEAST, EXACTLY, Input, Need, Slip

UNBROKEN = (Need("breaks", EXACTLY, 0), Need("skipped", EXACTLY, 0))
"""All of it is compiled, in one piece."""

OWN = (Need("library_calls", EXACTLY, 0), *UNBROKEN)
"""All of it is the compiler's own code."""

MATRIX = (Input((64, 64)),)
"""One square matrix."""

TRAINED = (Input((64, 64), grad=True),)
"""One square matrix that a gradient is wanted of."""

REPEATED = Slip(
    (Need("backward_ops", EXACTLY, 0), Need("repeated", AT_LEAST, 1)),
    "Its backward computes nothing: the gradient of one number is passed on to many, and only repeated for them.",
)
"""The backward of a sum, and no more."""
