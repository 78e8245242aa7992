"""Namespaces of operators: which operators are torch's own."""

from __future__ import annotations

FILLED = frozenset(
    "aten prim prims quantized quantized_decomposed inductor rngprims mkldnn c10d _c10d_functional mkl onednn profiler "
    "symm_mem fsdp higher_order".split()
)
"""Those that torch fills itself."""

NAMED = frozenset("aten prims inductor _inductor_test prim mkldnn quantized".split())
"""Those whose operators are known by their bare names: one of another namespace may have the same name."""
