"""Inductor settings that may affect values: how to turn each off, and which kind of transformation it controls."""

from __future__ import annotations

from typing import Any

from ..record.divergence import FUSION, PASS

OFF_VALUES: dict[str, Any] = {
    "pattern_matcher": False,
    "joint_graph_constant_folding": False,
    "use_pre_grad_passes": False,
    "use_joint_graph_passes": False,
    "use_post_grad_passes": False,
    "max_fusion_size": 1,
    "epilogue_fusion": False,
    "prologue_fusion": False,
    "inplace_buffers": False,
    "allow_buffer_reuse": False,
    "split_reductions": False,
    "online_softmax": False,
    "reorder_for_locality": False,
    "layout_optimization": False,
    "comprehensive_padding": False,
    "shape_padding": False,
    "loop_ordering_after_fusion": False,
    "reorder_for_peak_memory": False,
    "optimize_scatter_upon_const_tensor": False,
    "constant_and_index_propagation": False,
    "emulate_precision_casts": True,
    "emulate_division_rounding": True,
    "eager_numerics.division_rounding": True,
    "cpp.simdlen": 1,
    "cpp.enable_floating_point_contract_flag": "off",
    "cpp.enable_unsafe_math_opt_flag": False,
    "cpp.enable_loop_tail_vec": False,
    "cpp.use_decompose_tanh": False,
    "cpp.weight_prepack": False,
    "cpp.max_horizontal_fusion_size": 1,
}
"""Value that turns each setting off; this torch may lack some of them."""

KIND_OF_SETTING = {
    "pattern_matcher": PASS,
    "joint_graph_constant_folding": PASS,
    "use_pre_grad_passes": PASS,
    "use_joint_graph_passes": PASS,
    "use_post_grad_passes": PASS,
    "max_fusion_size": FUSION,
    "epilogue_fusion": FUSION,
    "prologue_fusion": FUSION,
}
"""Kind of transformation that each setting turns off."""

MEMORY_REUSE = ("inplace_buffers", "allow_buffer_reuse", "reinplace_inplaceable_ops")
"""Settings that let a value reuse another's memory, and the pass that does so."""
