"""Marks by which torch knows again what it was told of a function."""

from __future__ import annotations

import types


def disabled_alone(code: types.CodeType) -> bool:
    """Whether it is the code of what ``torch.compiler.disable(recursive=False)`` makes: all of these share one code
    object of torch's, by which Dynamo knows them and on which it stores nothing."""
    # Not above: who only asks what a module is made of does not load the compiler.
    from torch._dynamo import decorators

    return code is getattr(decorators, "_nonrecursive_disable_wrapper_code", None)
