"""Bodies of FlexAttention, which tracing runs as functions: what is traced of one is noted operator by operator.

Of the bodies of ``cond`` and its like torch notes that by itself; here all of a body bears the call's mark.
"""

from __future__ import annotations

from typing import Any

import torch.fx
from torch.fx.experimental.proxy_tensor import get_proxy_mode

from ..ground.hooks import hook
from ..ground.recorder import Draft

KEY = "compile_lens_body"
"""Key in ``node.meta`` under which what was traced of a body keeps the operator: the ``id`` of its graph, its name."""


class Noting(torch.fx.Interpreter):  # type: ignore[misc]
    """A body as a function that notes, while it is traced, what each of its operators becomes. Nothing of torch's own
    notes is changed."""

    def __call__(self, *args: Any) -> Any:
        return self.run(*args)

    def run_node(self, n: torch.fx.Node) -> Any:
        traced: torch.fx.Graph | None = getattr(getattr(get_proxy_mode(), "tracer", None), "graph", None)
        last = None if traced is None else traced._root._prev
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        result = getattr(self, n.op)(n.target, args, kwargs)
        while traced is not None and last is not None and last._next is not traced._root:
            last = last._next
            last.meta[KEY] = id(n.graph), n.name
        return result


def _called(draft: Draft, real: Any, *args: Any, **kwargs: Any) -> Any:
    """The operator is called, by whatever runs or traces the graph that has it."""
    return real(*map(_noting, args), **{name: _noting(value) for name, value in kwargs.items()})


def _noting(value: Any) -> Any:
    if isinstance(value, tuple):  # a mask, with its body at the end
        return (
            tuple(map(_noting, value)) if any(isinstance(v, torch.fx.GraphModule) for v in value) else value
        )
    return Noting(value) if isinstance(value, torch.fx.GraphModule) else value


hook("torch._higher_order_ops.flex_attention:FlexAttentionHOP.__call__")(_called)
