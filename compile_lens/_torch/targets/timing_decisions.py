"""Inductor's decisions by timing on the device or by its number of multiprocessors, for the code of one phase, found by
calling torch's own functions again with their arguments."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..ground import hook_points
from .device_interfaces import PHASE
from .replacements import Replacements, marked_only

SPLITS = "torch._inductor.ir:Reduction.num_splits"

MIXED_REDUCTION = "torch._inductor.codegen.simd:SIMDScheduling._codegen_mix_order_reduction"
"""Path of the method that splits one of two reductions in one kernel by the number of multiprocessors."""


@dataclasses.dataclass(frozen=True)
class TimedSetting:
    """An Inductor setting under which it decides by timing on the device.

    ``caveat`` is the difference here, where the setting is off. It only matters if the setting ``beside`` is on too.
    """

    name: str
    caveat: str
    beside: str = ""


TIMED = (
    TimedSetting(
        "benchmark_fusion",
        "benchmark_fusion times fusions on the device, and leaves out those that do not pay: nothing was timed here, "
        "and each that is possible was made",
    ),
    TimedSetting(
        "benchmark_combo_kernel",
        "benchmark_combo_kernel times kernels with one launch on the device, and leaves out those that do not pay: "
        "nothing was timed here, and each that is possible was made",
        beside="combo_kernels",
    ),
    TimedSetting(
        "aten_distributed_optimizations.enable_overlap_scheduling",
        "overlap scheduling orders and merges collectives by times on the device: left out here",
    ),
    TimedSetting(
        "runtime_estimations_mms_benchmark",
        "collectives are ordered by times of matrix products on the device: nothing was timed here",
        beside="reorder_for_compute_comm_overlap",
    ),
)
"""Settings that are off for a stand-in."""

MEMORY_BUDGET = "activation_memory_budget_runtime_estimator"
"""The partitioner's setting for estimating the cost of recomputation."""

PROFILED = "profile"
"""The setting's value for timing on the device; the default counts floating-point operations."""

_PRODUCTS = tuple(getattr(torch.ops.aten, name).default for name in ("mm", "bmm", "addmm"))


class TimingDecisions:
    """The decisions so far in the code being generated."""

    def __init__(self) -> None:
        self.padding = False  # True if matrices of a product may be padded
        self.splits = False  # True if the number of multiprocessors decides how a reduction is split
        self.may_pad = True  # the program's setting
        self._observes_splits = False

    def place(self, places: Replacements) -> None:
        """Observe the decisions on marked threads."""
        target = hook_points.find(SPLITS)
        if target is not None:
            self._observes_splits = True
            owner, name = target
            places.add(setattr, owner, name, vars(owner)[name])
            real = getattr(owner, name)
            setattr(owner, name, staticmethod(marked_only(PHASE, self._splitting(real), real)))
        target = hook_points.find(MIXED_REDUCTION)
        if target is not None:
            owner, name = target
            places.attribute(owner, name, PHASE, self._mixing(getattr(owner, name)))
        from torch._inductor.fx_passes import pad_mm

        places.attribute(pad_mm, "has_triton", PHASE, lambda: True)  # as with the device

    def take(self) -> tuple[bool, bool]:
        """Return two flags for the code just generated, and reset them: matrices may be padded; reductions may be split
        differently."""
        decisions = self.padding, self.splits or not self._observes_splits
        self.padding = self.splits = False
        return decisions

    def product(self, node: Any) -> None:
        """Record for a generated library call, Inductor's ``node``, if its matrices may be padded."""
        for origin in getattr(node, "origins", ()):
            if origin.target in _PRODUCTS and self.may_pad and not self.padding:
                matrices = [one.meta.get("val") for one in origin.args]
                self.padding = _is_timed(*matrices, op=origin.target)

    def _splitting(self, real: Callable[..., Any]) -> Callable[..., Any]:
        bound = inspect.signature(real)

        def num_splits(*args: Any, **kwargs: Any) -> Any:
            splits = real(*args, **kwargs)
            if not self.splits:
                arguments = bound.bind(*args, **kwargs).arguments
                self.splits = _depends_on_count(arguments, splits, lambda: real(*args, **kwargs))
            return splits

        return num_splits

    def _mixing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        import torch._inductor.config as config

        names = (
            "max_autotune",
            "coordinate_descent_tuning",
            "triton.mix_order_reduction_autotune_split_size",
        )
        known = config.get_config_copy()
        untimed = {name: False for name in names if name in known}

        def mixing(*args: Any, **kwargs: Any) -> Any:
            self.splits = True
            with config.patch(untimed):  # with them, the split is timed on the device
                return real(*args, **kwargs)

        return mixing


def profiles_memory_budget() -> bool:
    """Return True if the program makes the partitioner time recomputation on the device."""
    import torch._functorch.config as config

    return getattr(config, MEMORY_BUDGET, "") == PROFILED


def _is_timed(*matrices: Any, op: Any) -> bool:
    """Return True if Inductor may time the product with padded matrices (``pad_mm.should_pad``).

    With clock rates from the driver it excludes memory-bound products; without, it times all, and an H100 padded one of
    2 × 32 by 32 × 32.
    """
    import torch._inductor.config as config
    from torch._inductor.fx_passes import pad_mm

    *bias, left, right = matrices
    can_pad = getattr(pad_mm, "can_pad", None)
    if can_pad is None or not all(isinstance(one, torch.Tensor) for one in matrices):
        return True
    with config.patch(shape_padding=True):
        return bool(not config.force_shape_pad and can_pad(left, right, op.overloadpacket, *bias))


def _depends_on_count(arguments: dict[str, Any], splits: Any, again: Callable[[], Any]) -> bool:
    """Return True if a reduction is split differently, or not at all, with half or twice the multiprocessors.

    ``again`` calls torch once more. With more multiprocessors, torch may read the layout of the reduction's input,
    which freezes it, so that is only done if torch read it before.
    """
    from torch._inductor.runtime.hints import DeviceProperties
    from torch._inductor.virtualized import V

    count = DeviceProperties.create(arguments["device"]).multi_processor_count
    with _multiprocessors(arguments["device"], count // 2):
        if again() != splits:
            return True
    sizes = V.graph.sizevars
    hint = getattr(sizes, "optimization_hint", None) or sizes.size_hint
    outer, inner = (
        hint(torch._inductor.utils.sympy_product(arguments[name])) for name in ("ranges", "reduction_ranges")
    )
    with _multiprocessors(arguments["device"], count * 2):
        if outer < count * 64:
            return bool(again() != splits)
        near = inner > 32 and outer < 2 * count * 64
        factor: int = (
            V.choices.reduction_split_factor(arguments["device"], inner, outer, False) if near else 1
        )
        return factor > 1


@contextlib.contextmanager
def _multiprocessors(device: torch.device, count: int) -> Iterator[None]:
    """Make Inductor find ``count`` multiprocessors for the duration."""
    from torch._inductor.runtime.hints import DeviceProperties

    properties: Any = DeviceProperties
    before, there = vars(properties)["create"], properties.create(device)
    properties.create = staticmethod(lambda asked: there._replace(multi_processor_count=count))
    try:
        yield
    finally:
        properties.create = before
