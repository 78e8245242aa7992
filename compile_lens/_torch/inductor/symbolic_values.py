"""Origins of values that Inductor keeps symbolic: constants and index expressions. Such a value is traced only where an
operation uses it, possibly another node's (``line_origins`` has the rest)."""

from __future__ import annotations

from typing import Any

from ..ground.hooks import slot_hook
from .line_origins import ANNOUNCED, KEY, TRACKER, Tracker

PROPAGATE = "torch._inductor.index_propagation:IndexPropagation.propagate_sympy"
MATERIALIZE = "torch._inductor.index_propagation:IndexPropagation.fallback"
INDEX = "torch._inductor.index_propagation:IndexPropagation.indirect_indexing"


@slot_hook(PROPAGATE, TRACKER, *ANNOUNCED)
def tag_symbolic_value(tracker: Tracker, real: Any, handler: Any, name: Any, args: Any, kwargs: Any) -> Any:
    """Tag a constant or index expression with its nodes and those of its operands."""
    result = real(handler, name, args, kwargs)
    if getattr(result, "is_symbolic", False):
        operands = (name for value in (*args, *kwargs.values()) for name in _symbolic_names(value))
        setattr(result, KEY, tuple(dict.fromkeys((*operands, *tracker.tracing()))))
    return result


@slot_hook(MATERIALIZE, TRACKER, *ANNOUNCED)
def trace_symbolic_values(
    tracker: Tracker, real: Any, handler: Any, name: Any, args: Any, kwargs: Any
) -> Any:
    """Trace the symbolic operands of an operation with the names of the nodes that compute them."""

    def traced(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return tuple(traced(one) for one in value)
        names = _symbolic_names(value)
        if not names:
            return value
        tracker.symbolic.update(dict.fromkeys(names))
        tracker.announced.append(names)
        try:
            return type(value)(handler.unwrap(value))
        finally:
            tracker.announced.pop()

    return real(handler, name, traced(args), {key: traced(value) for key, value in kwargs.items()})


@slot_hook(INDEX, TRACKER, *ANNOUNCED)
def keep_index(tracker: Tracker, real: Any, handler: Any, index: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the nodes of a symbolic value that becomes an index, which no operation of the body computes."""
    result = real(handler, index, *args, **kwargs)
    tracker.indices.update(dict.fromkeys(_symbolic_names(index)))
    return result


def _symbolic_names(value: Any) -> tuple[str, ...]:
    # A proxy of FX has every attribute.
    names: tuple[str, ...] = getattr(value, "__dict__", {}).get(KEY, ())
    return names
