"""Registers a CPU kernel for an operator of torch's that has none, on import."""

import torch
from torch._decomp.decompositions import _fused_rms_norm

library = torch.library.Library("aten", "IMPL")
library.impl("_fused_rms_norm", _fused_rms_norm, "CPU")


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2
