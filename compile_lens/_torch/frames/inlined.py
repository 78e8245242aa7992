"""Compiled functions that the captured one calls: Dynamo traces what is inside them, as a part of the whole."""

from __future__ import annotations

import types
from typing import Any

from ..ground.hooks import free_hook
from ..ground.recorder import Recorder
from . import dynamo, own_code


@free_hook("torch._dynamo.variables.functions:WrapperUserFunctionVariable.call_function")
def call_function(real: Any, variable: Any, translator: Any, *args: Any, **kwargs: Any) -> Any:
    """Dynamo looks through a wrapper: keep it, if it is what ``torch.compile`` returned."""
    wrapper = getattr(variable, "wrapper_obj", None)
    if getattr(wrapper, "_torchdynamo_orig_callable", None) is not None:
        recorder = dynamo.recorder_of(getattr(getattr(translator, "output", None), "compiler_fn", None))
        if recorder is not None:
            recorder.frames.inlined[id(wrapper)] = wrapper
    return real(variable, translator, *args, **kwargs)


def names(recorder: Recorder, fn: Any) -> list[str]:
    """What those are called that were met, without the parts of the module ``fn``, of which more is known."""
    of_parts = {id(_function(part.forward)) for _, part in own_code.parts(fn)}
    found = [one for key, one in recorder.frames.inlined.items() if key not in of_parts]
    return list(dict.fromkeys(str(one.__qualname__).rpartition("<locals>.")[2] for one in found))


def _function(method: Any) -> Any:
    return method.__func__ if isinstance(method, types.MethodType) else method
