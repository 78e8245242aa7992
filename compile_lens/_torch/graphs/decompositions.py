"""A limit on the decompositions of operators while a graph is traced."""

from __future__ import annotations

from typing import Any

import torch.fx.traceback

from ...record import claims
from ...record.divergence import DECOMPOSITION
from ..ground.hooks import current, slot_hook
from ..ground.limit import Limit
from ..ground.transformations import LIMIT, described


@slot_hook("torch.fx.experimental.proxy_tensor:maybe_handle_decomp", LIMIT, claims.TRANSFORMATIONS)
def decompose(limit: Limit, real: Any, mode: Any, operator: Any, *args: Any) -> Any:
    """Decompose an operator unless that is past the limit on decompositions."""
    if operator in _table(mode):
        trace = torch.fx.traceback.get_current_meta().get("stack_trace")
        name = str(operator)
        if not limit.allows(
            DECOMPOSITION, lambda: described(DECOMPOSITION, name, [trace], (), [name], current())
        ):
            return NotImplemented
    return real(mode, operator, *args)


def _table(mode: Any) -> Any:
    """Return the decompositions in force, which before torch 2.13 are a variable of the module."""
    from torch.fx.experimental import proxy_tensor

    table = getattr(mode, "decomposition_table", None)
    return proxy_tensor.CURRENT_DECOMPOSITION_TABLE if table is None else table
