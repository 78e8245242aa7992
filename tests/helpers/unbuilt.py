"""Plain torch that compiles and builds nothing, for what does not depend on values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def unbuilt() -> Iterator[None]:
    """Generated C++ is not built: its kernels do nothing."""
    import torch._inductor.config as config
    from torch._inductor.async_compile import AsyncCompile

    real = AsyncCompile.cpp_pybinding
    AsyncCompile.cpp_pybinding = lambda *args, **kwargs: lambda *inputs: None
    try:
        with config.patch({"cpp.vec_isa_ok": True}):
            yield
    finally:
        AsyncCompile.cpp_pybinding = real
