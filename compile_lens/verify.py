"""Compares what the generated code computes with eager PyTorch, forward and gradients."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import torch

from .errors import UsageError
from .record import Capture


@dataclass(frozen=True)
class Comparison:
    """One tensor of the result (or one gradient), compiled against eager.

    ``max_abs`` and ``max_rel`` are the largest absolute and relative differences between compiled and eager;
    ``eager_abs`` and ``compiled_abs`` those of each against a float64 run of the same function (``None`` where
    the function does not run in float64). All are measured.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_abs: float
    max_rel: float
    eager_abs: float | None
    compiled_abs: float | None
    ok: bool


@dataclass(frozen=True)
class Verification:
    """The comparisons of one ``verify``. ``ok``: every tensor agrees within the tolerance of its dtype.

    ``same_code`` says whether the code that was built now is the code in the record (``None`` if the record
    has none). ``not_run`` are parts that could not be run, each with its reason, and ``how`` says what ran the code
    (``""``: this machine did).
    """

    comparisons: tuple[Comparison, ...]
    same_code: bool | None
    note: str = ""
    not_run: tuple[tuple[str, str], ...] = ()
    how: str = ""

    @property
    def ok(self) -> bool:
        """Whether compiled and eager agree everywhere. Where nothing ran, nothing agrees."""
        return bool(self.comparisons or not self.not_run) and all(c.ok for c in self.comparisons)

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        verdict = "agrees" if self.ok else "DISAGREES" if self.comparisons else "was not compared"
        lines = [f"compiled {verdict} with eager ({len(self.comparisons)} tensors, measured)"]
        if self.how:
            lines.append(f"  {self.how}")
        lines += [f"  not run: {part}: {reason}" for part, reason in self.not_run]
        for c in self.comparisons:
            reference = (
                ""
                if c.eager_abs is None
                else f"; off float64: eager {c.eager_abs:.2e}, compiled {c.compiled_abs:.2e}"
            )
            mark = "ok" if c.ok else "DIFFERS"
            lines.append(
                f"  {mark:7} {c.name}: {c.dtype}{list(c.shape)} "
                f"max abs {c.max_abs:.2e}, max rel {c.max_rel:.2e}{reference}"
            )
        if self.same_code is False:
            lines.append("  the code that was built now differs from the code in the record")
        if self.note:
            lines.append(f"  {self.note}")
        return "\n".join(lines)


TOLERANCES = {torch.float16: (1e-3, 1e-3), torch.bfloat16: (1.6e-2, 1e-2), torch.float64: (1e-7, 1e-9)}
"""Relative and absolute tolerance by dtype (those of ``torch.testing``, a little wider in absolute terms)."""

AS_GOOD = 3.0
"""How many times eager's own distance from a float64 run the compiled result may be off it, and still agrees."""


def verify(
    capture: Capture,
    fn: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target: Any = None,
) -> Verification:
    """Build and run the code, and compare with eager on copies of the inputs, with the same random state.

    Raises:
        UsageError: the function or an input of the capture is gone and none was passed.
        CaptureError: the code could not be built or run.
    """
    fn, args, keywords = _call(capture, fn, args, kwargs)
    if target is not None:
        from .capture import capture as captured

        options = capture.options
        capture = captured(
            fn,
            *args,
            kwargs=keywords,
            backward=options.backward != "no" and "auto",
            dynamic=options.dynamic,
            mode=options.mode,
            options=given(capture),
            fullgraph=options.fullgraph,
            target=target,
        )
    if capture.target is not None and capture.target.model.device != "cpu":
        from . import interpreted

        return interpreted.verify(capture, fn, args, keywords)
    backward = capture.options.backward != "no"
    if capture.failure is not None:
        raise UsageError(
            f"{capture.function} failed in stage {capture.failure.stage}: there is no code to verify"
        )
    from ._torch.isolation import random_state

    with random_state():
        eager = eagerly(fn, args, keywords, backward)
    built, compiled = _built(capture, fn, args, keywords, backward)
    comparisons, note = compared(fn, args, keywords, backward, eager, compiled)
    return Verification(
        comparisons, same_code(capture, built), "; ".join(filter(None, (note, random(capture))))
    )


def eagerly(fn: Any, args: Any, kwargs: Any, backward: bool) -> dict[str, torch.Tensor]:
    """Results and gradients of a plain call, by name, on copies of the inputs."""
    twin, args, kwargs = copies(fn, args, kwargs)
    return results(twin(*args, **kwargs), args, kwargs, twin, backward)


def compared(
    fn: Any,
    args: Any,
    kwargs: Any,
    backward: bool,
    eager: dict[str, torch.Tensor],
    compiled: dict[str, torch.Tensor],
) -> tuple[tuple[Comparison, ...], str]:
    """What both sides have, and a note of what only one has."""
    reference = _reference(fn, args, kwargs, backward) or {}
    found = tuple(
        _compare(name, got, eager[name], reference.get(name))
        for name, got in compiled.items()
        if name in eager
    )
    lost = sorted(set(eager) ^ set(compiled))
    return found, f"not compared, since only one side has them: {', '.join(lost)}" if lost else ""


def _call(
    capture: Capture, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    if fn is not None:
        return fn, args, dict(kwargs or {})
    live = getattr(capture, "_live", None)
    found = live.call() if live is not None else None
    if found is None:
        raise UsageError(
            f"the function or an input of this capture is gone (a capture keeps none alive): pass them, "
            f"capture.verify({capture.function}, …)"
        )
    made: tuple[Any, tuple[Any, ...], dict[str, Any]] = found
    return made


def copies(fn: Any, args: Any, kwargs: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The call with tensors and parameters of its own."""
    from ._torch import tree

    def fresh(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().clone(memory_format=torch.preserve_format).requires_grad_(x.requires_grad)

    module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    if isinstance(module, torch.nn.Module):
        twin = copy.deepcopy(module)
        fn = twin if fn is module else getattr(twin, fn.__name__)
    args, kwargs = tree.map_leaves(fresh, (args, kwargs))
    return fn, args, kwargs


def results(result: Any, args: Any, kwargs: Any, fn: Any, backward: bool) -> dict[str, torch.Tensor]:
    """Result tensors and gradients by name."""
    from ._torch import tree
    from ._torch.session import differentiable

    leaves = tree.tensors(result)
    found = {("result" if len(leaves) == 1 else f"result {i}"): x.detach() for i, x in enumerate(leaves)}
    roots = differentiable(result) if backward else []
    inputs = _inputs(args, kwargs, fn)
    if roots and inputs:
        grads = torch.autograd.grad(
            roots, list(inputs.values()), [torch.ones_like(r) for r in roots], allow_unused=True
        )
        found |= {f"gradient of {n}": g for n, g in zip(inputs, grads) if g is not None}
    return found


def _inputs(args: Any, kwargs: Any, fn: Any) -> dict[str, torch.Tensor]:
    from ._torch import tree

    leaves = tree.leaves((args, kwargs))
    found = {f"input {i}": x for i, x in enumerate(leaves) if isinstance(x, torch.Tensor) and x.requires_grad}
    module = fn if isinstance(fn, torch.nn.Module) else getattr(fn, "__self__", None)
    if isinstance(module, torch.nn.Module):
        found |= {n: p for n, p in module.named_parameters() if p.requires_grad}
    return found


def _built(
    capture: Capture, fn: Any, args: Any, kwargs: Any, backward: bool
) -> tuple[Capture, dict[str, torch.Tensor]]:
    from .capture import run

    twin, args, kwargs = copies(fn, args, kwargs)
    built, result = run(
        twin,
        *args,
        kwargs=kwargs,
        backward="auto" if backward else False,
        dynamic=capture.options.dynamic,
        mode=capture.options.mode,
        options=given(capture),
        fullgraph=capture.options.fullgraph,
        build=True,
    )
    return built, results(result, args, kwargs, twin, backward)


def given(capture: Capture) -> dict[str, Any] | None:
    """Inductor's options that the capture was made with. Raises ``UsageError`` for one that is no plain value."""
    return {k: _parse(v) for k, v in capture.options.options} or None


def _parse(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        raise UsageError(
            f"the capture's option {text} is not a plain value: capture again with build=True"
        ) from None


def _reference(fn: Any, args: Any, kwargs: Any, backward: bool) -> dict[str, torch.Tensor] | None:
    """The function in float64, or None where it does not run there."""
    from ._torch import tree
    from ._torch.isolation import random_state

    def wide(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.is_floating_point():
            return x.detach().double().requires_grad_(x.requires_grad)
        return x

    twin, args, kwargs = copies(fn, args, kwargs)
    module = twin if isinstance(twin, torch.nn.Module) else getattr(twin, "__self__", None)
    args, kwargs = tree.map_leaves(wide, (args, kwargs))
    try:
        with random_state():
            if isinstance(module, torch.nn.Module):
                module.double()
            return results(twin(*args, **kwargs), args, kwargs, twin, backward)
    except Exception:  # the function insists on its own dtype, in whatever way: there is no reference then
        return None


def _compare(name: str, got: torch.Tensor, want: torch.Tensor, reference: torch.Tensor | None) -> Comparison:
    rtol, atol = TOLERANCES.get(want.dtype, (1.3e-5, 1e-5))
    same = got.shape == want.shape and got.dtype == want.dtype
    exact = not (want.is_floating_point() or want.is_complex())
    ok = same and bool(
        torch.equal(got, want) if exact else torch.allclose(got, want, rtol=rtol, atol=atol, equal_nan=True)
    )
    difference = _max_abs(got, want) if same else float("inf")
    scale = _max(want)
    if same and not ok and not exact and reference is not None and reference.shape == want.shape:
        # Long sums differ by their order: no worse than eager's own distance from the truth is no error.
        own = _max_abs(want, reference)
        ok = bool(want.isfinite().all()) and 0 < own and _max_abs(got, reference) <= AS_GOOD * own
    return Comparison(
        name=name,
        dtype=str(want.dtype).removeprefix("torch."),
        shape=tuple(want.shape),
        max_abs=difference,
        max_rel=difference / scale if scale else difference,
        eager_abs=_max_abs(want, reference)
        if reference is not None and reference.shape == want.shape
        else None,
        compiled_abs=_max_abs(got, reference)
        if reference is not None and reference.shape == got.shape
        else None,
        ok=ok,
    )


def _wide(x: torch.Tensor) -> torch.Tensor:
    return x.detach().to(torch.complex128 if x.is_complex() else torch.float64)


def _max_abs(a: torch.Tensor, b: torch.Tensor) -> float:
    return _max(_wide(a) - _wide(b)) if a.numel() else 0.0


def _max(x: torch.Tensor) -> float:
    return float(_wide(x).abs().nan_to_num(0.0).max()) if x.numel() else 0.0


def same_code(capture: Capture, built: Capture) -> bool | None:
    """Whether two captures have the same kernels, ``None`` if the first has no code."""
    # The wrapper numbers graphs over the whole process; the kernels say what is computed.
    mine, new = ([(k.name, k.source) for k in c.kernels] for c in (capture, built))
    return mine == new if capture.code else None


def random(capture: Capture) -> str:
    """A sentence for functions that draw random numbers, ``""`` for others."""
    draws = any(n.kind == "random" for c in capture.compilations for g in c.graphs.values() for n in g.nodes)
    return "the function draws random numbers, and compiled code draws others than eager" if draws else ""
