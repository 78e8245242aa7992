"""Runs of the bodies of ``autograd.Function``, ``checkpoint`` and ``nested_compile_region`` as in eager PyTorch.

Dynamo passes each to the compiler as a higher-order operator with its bodies. The operators' own implementations are
for tracing (a checkpoint does not stop early, saved values are not counted), so they are not called here.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.fx
from torch.autograd.function import FunctionCtx

from ... import versions

Run = Callable[[torch.fx.GraphModule, Sequence[Any]], Any]
"""A function that runs a body with inputs."""

FUNCTION, CHECKPOINT, REGION = "autograd_function_apply", "tag_activation_checkpoint", "invoke_subgraph"


class UnknownOperators(Exception):
    """Raised if the operators that eager PyTorch dispatches are unknown. ``reason`` is the text without torch's
    additions to the message."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def not_countable(gm: torch.fx.GraphModule) -> str:
    """Return why the eager operators of a graph cannot be counted without data, by the first such node in it or its
    bodies; ``""`` if they can."""
    for module in gm.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            value = node.meta.get("example_value")
            if isinstance(value, torch.Tensor) and value.is_nested:
                return (
                    "it computes with nested tensors, whose rows have sizes that only the data tells: what eager "
                    "PyTorch dispatches for them is not counted"
                )
            higher = isinstance(node.target, torch._ops.HigherOrderOperator)
            if higher and node.target.name() not in (FUNCTION, CHECKPOINT, REGION):
                return (
                    f"{node.name} is a higher-order operator: what eager PyTorch dispatches for it is decided while it "
                    "runs"
                )
    return ""


@dataclasses.dataclass
class Bodies:
    """Calls of the operators.

    With ``gives_zeros`` a missing gradient is passed to a backward as zeros, the default; None if unknown.
    """

    run: Run
    backward: bool
    gives_zeros: bool | None

    def call(self, target: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run a call of one of the operators."""
        if target.name() == CHECKPOINT:
            return self._checkpoint(*args, **kwargs)
        if (
            target.name() == REGION
        ):  # eager PyTorch calls the function, of which the second argument is the name
            return self.run(args[0], args[2:])
        return self._function(*args, **kwargs)

    def _checkpoint(self, body: torch.fx.GraphModule, *args: Any, **options: Any) -> Any:
        from torch.utils.checkpoint import checkpoint

        needed = any(isinstance(x, torch.Tensor) and x.requires_grad for x in args)
        if not (self.backward and needed and torch.is_grad_enabled()):
            return self.run(body, args)  # nothing is recomputed
        if "_checkpoint_context_fn" in body.meta:
            raise UnknownOperators(
                "the program's own code decides what a selective checkpoint recomputes, and that code is not "
                "run here"
            )
        if options.pop("use_reentrant", None) is not False:
            raise UnknownOperators(
                "a checkpoint with use_reentrant=True runs its own backward inside the backward: the graph does "
                "not show which tensors that reaches"
            )
        options |= {"debug": False, "preserve_rng_state": False}  # fake tensors draw no random numbers
        return checkpoint(lambda *given: self.run(body, given), *args, use_reentrant=False, **options)

    def _function(
        self,
        forward: torch.fx.GraphModule,
        backward: torch.fx.GraphModule,
        *args: Any,
        non_differentiable_idx: Sequence[int] = (),
        saved_for_backward_idx: Sequence[int] = (),
        dirty_idx: Sequence[int] = (),
    ) -> Any:
        run, gives_zeros, added = self.run, self.gives_zeros, _added_results(backward)
        kept: list[Any] = []
        results: list[torch.Tensor] = []

        class Applied(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
            @staticmethod
            def forward(*given: Any) -> Any:
                outputs, kept[:] = run(forward, given)
                results[:] = outputs if added else ()
                return outputs

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.set_materialize_grads(gives_zeros is True and not added)
                outputs = output if isinstance(output, (tuple, list)) else (output,)
                ctx.mark_dirty(*(outputs[i] for i in dirty_idx))
                ctx.mark_non_differentiable(*(outputs[i] for i in non_differentiable_idx))
                # An outer checkpoint's hooks see these, but not other values on ``ctx``.
                ctx.save_for_backward(*(kept[i] for i in saved_for_backward_idx))

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                if gives_zeros and added:  # as autograd does, for the program's own results
                    grads = tuple(
                        torch.zeros(result.shape, dtype=result.dtype, device=result.device)
                        if grad is None and at < len(grads) - added
                        else grad
                        for at, (grad, result) in enumerate(zip(grads, results))
                    )
                elif not gives_zeros and any(grad is None for grad in grads[: len(grads) - added]):
                    raise UnknownOperators(
                        "a result of an autograd.Function has no gradient: the graph does not show whether the "
                        "backward is given zeros for it (set_materialize_grads decides)"
                    )
                values = [*kept]
                for i, saved in zip(saved_for_backward_idx, ctx.saved_tensors):
                    values[i] = saved
                return run(backward, (*grads, *values))

        return Applied.apply(*args)


def _added_results(backward: torch.fx.GraphModule) -> int:
    """Return the number of results that Dynamo before torch 2.13 appends to the program's for saved values."""
    if versions.torch_version() >= (2, 13):
        return 0
    names = [str(node.target) for node in backward.graph.find_nodes(op="placeholder")]
    return sum(re.fullmatch(r"unused_\d+", name) is not None for name in names)


def gives_zeros() -> bool | None:
    """Return True if no ``autograd.Function`` in the compile in progress calls ``set_materialize_grads``; None if
    unknown."""
    context = torch._guards.TracingContext.try_get()
    traced = getattr(context, "traced_code", None)
    if traced is None:
        return None
    return None if FunctionCtx.set_materialize_grads.__code__ in traced else True
