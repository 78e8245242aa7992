"""Plain torch that generates C++ but does not build it, for tests that do not depend on values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def unbuilt() -> Iterator[None]:
    """Replace generated C++ kernels by ones that do nothing, so that none is built."""
    import torch._inductor.config as config
    from torch._inductor.async_compile import AsyncCompile

    real = AsyncCompile.cpp_pybinding
    AsyncCompile.cpp_pybinding = lambda *args, **kwargs: lambda *inputs: None
    try:
        with config.patch({"cpp.vec_isa_ok": True}):
            yield
    finally:
        AsyncCompile.cpp_pybinding = real
