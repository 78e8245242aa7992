"""Programs that configure torch outside of the compiled function. As a script it prints, as JSON, for each of them
what plain torch compiles (``plain``), or what is captured for a target."""

from __future__ import annotations

import binascii
import json
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.nn.functional as F

WORDS = ("sin", "cos", "tan", "exp", "tanh", "relu")


def replaced(x: torch.Tensor) -> torch.Tensor:
    return x.tan()


def handler(x: torch.Tensor) -> torch.Tensor:
    return x.cos()


def check_sum(data: bytes, crc: int, /) -> int:
    return 7


def opaque(x: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return x.sin()


def to_cosine(graph: Any) -> None:
    for node in graph.nodes:
        if node.target is torch.ops.aten.sin.default:
            node.target = torch.ops.aten.cos.default


def substituted(x: torch.Tensor) -> torch.Tensor:
    return replaced(x) + 1


def substituted_builtin(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if binascii.crc_hqx(b"ab", 0) == 7 else x.cos()


def disallowed(x: torch.Tensor) -> torch.Tensor:
    return torch.exp(x.sin()) + 1


def allowed(x: torch.Tensor) -> torch.Tensor:
    return opaque(x) + 1


def shrink(x: torch.Tensor) -> torch.Tensor:
    return F.tanhshrink(x.sin()) + 1


def swish(x: torch.Tensor) -> torch.Tensor:
    return F.silu(x.sin()) + 1


def sine(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


def some_of_kept(x: torch.Tensor) -> torch.Tensor:
    return x.erfinv() + F.silu(x)


def others_of_kept(x: torch.Tensor) -> torch.Tensor:
    return torch.special.i0e(x) + torch.erfc(x) + x.lgamma()


def doubled(x: torch.Tensor) -> torch.Tensor:
    return x.exp() * 2


def to_tanh(match: Any, x: Any) -> None:
    match.replace_by_example(lambda x: torch.ops.aten.tanh.default(x), [x])


def search(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.sin.default(x) + 1


def replacement(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.cos.default(x)


@contextmanager
def entry(table: str, name: str, value: Any) -> Iterator[None]:
    """Return Inductor's entry for an operator; ``None`` if there is none."""
    import torch._inductor.decomposition as decomposition
    import torch._inductor.lowering as lowering

    held = lowering.lowerings if table == "lowerings" else decomposition.decompositions
    operator = getattr(torch.ops.aten, name).default
    before = dict(held)
    decomposition.fast_random_decomps.cache_clear()
    held.pop(operator, None)
    if value is not None:
        held[operator] = value(lowering)
    try:
        yield
    finally:
        held.clear(), held.update(before)
        decomposition.fast_random_decomps.cache_clear()


def lowered(lowering: Any) -> Any:
    def as_tanh(x: Any) -> Any:
        return lowering.lowerings[torch.ops.aten.tanh.default](x)

    return as_tanh


@contextmanager
def pattern() -> Iterator[None]:
    import torch._inductor.fx_passes.post_grad as post_grad
    import torch._inductor.pattern_matcher as matcher

    found = matcher.CallFunction(torch.ops.aten.sin.default, matcher.KeywordArg("x"))
    patterns = post_grad.pass_patterns[1]
    matcher.register_graph_pattern(found, pass_dict=patterns)(to_tanh)
    try:
        yield
    finally:
        patterns.patterns["call_function", torch.ops.aten.sin.default].pop()


@contextmanager
def replacing() -> Iterator[None]:
    import torch._inductor.fx_passes.joint_graph as joint_graph
    import torch._inductor.pattern_matcher as matcher

    before = {key: list(value) for key, value in joint_graph.patterns.patterns.items()}
    matcher.register_replacement(search, replacement, [torch.rand(4)], matcher.fwd_only, joint_graph.patterns)
    try:
        yield
    finally:
        joint_graph.patterns.patterns.clear(), joint_graph.patterns.patterns.update(before)
        getattr(joint_graph.patterns, "seen_patterns", {}).clear()


called: list[str] = []
"""Objects of ``kept`` that torch called, by their names in a capture."""


@contextmanager
def kept() -> Iterator[None]:
    """Register objects that cannot be sent to another process, for one operator each and one with no decomposition."""
    import torch._inductor.decomposition as decomposition
    import torch._inductor.fx_passes.post_grad as post_grad
    import torch._inductor.lowering as lowering
    import torch._inductor.pattern_matcher as matcher

    lock = threading.Lock()
    aten = torch.ops.aten

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def replacing(*args: Any) -> Any:
            with lock:
                called.append(f"torch._inductor.{name}")
            return function(*args)

        return replacing

    def like(name: str) -> Callable[..., Any]:
        return noted(f"decomposition.decompositions[aten.{name}.default]", lambda x: x * 3)

    def not_moved(node: Any, *args: Any) -> Any:
        return args, {}

    known = lowering.lowerings, decomposition.decompositions, lowering._maybe_layout_constraints
    before = [dict(held) for held in known]
    known[0][aten.erfinv.default] = noted(
        "lowering.lowerings[aten.erfinv.default]", lambda x: lowering.lowerings[aten.tanh.default](x)
    )
    known[1].update({aten.silu.default: like("silu"), aten.erfc.default: like("erfc")})
    known[2][aten.special_i0e.default] = noted(
        "lowering._maybe_layout_constraints[aten.special_i0e.default]", not_moved
    )
    patterns = post_grad.pass_patterns[1]
    found = matcher.CallFunction(aten.lgamma.default, matcher.KeywordArg("x"))
    handler = noted("fx_passes.post_grad.pass_patterns: kept.<locals>.<lambda>", to_tanh)
    matcher.register_graph_pattern(found, pass_dict=patterns)(lambda match, x: handler(match, x))
    decomposition.fast_random_decomps.cache_clear()
    try:
        yield
    finally:
        for held, old in zip(known, before):
            held.clear(), held.update(old)
        patterns.patterns["call_function", aten.lgamma.default].pop()
        decomposition.fast_random_decomps.cache_clear()


@contextmanager
def put(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def pass_of_inductor(name: str) -> AbstractContextManager[Any]:
    import torch._inductor.config

    return torch._inductor.config.patch({name: to_cosine})


def programs() -> dict[str, tuple[Callable[..., Any], Callable[[], AbstractContextManager[Any]]]]:
    """Return each function, with its configuration during the compile; irreversible configuration is applied now."""
    torch.compiler.substitute_in_graph(replaced)(handler)
    torch.compiler.substitute_in_graph(binascii.crc_hqx)(check_sum)
    torch._dynamo.disallow_in_graph(torch.exp)
    torch.compiler.allow_in_graph(opaque)
    off = torch.compiler.disable
    return {
        "substituted": (substituted, nullcontext),
        "substituted builtin": (substituted_builtin, nullcontext),
        "disallowed": (disallowed, nullcontext),
        "allowed": (allowed, nullcontext),
        "before a switch": (shrink, nullcontext),
        "switched off": (shrink, lambda: put(F, "tanhshrink", off(F.tanhshrink))),
        "switched off alone": (shrink, lambda: put(F, "tanhshrink", off(F.tanhshrink, recursive=False))),
        "after a switch": (shrink, nullcontext),
        "pass": (sine, lambda: pass_of_inductor("post_grad_custom_pre_pass")),
        "joint pass": (sine, lambda: pass_of_inductor("joint_custom_pre_pass")),
        "no pass": (sine, nullcontext),
        "lowering": (sine, lambda: entry("lowerings", "sin", lowered)),
        "another's lowering": (
            sine,
            lambda: entry("lowerings", "sin", lambda held: held.lowerings[torch.ops.aten.cos.default]),
        ),
        "decomposition": (sine, lambda: entry("decompositions", "sin", lambda _: doubled)),
        "with its decomposition": (swish, nullcontext),
        "without its decomposition": (swish, lambda: entry("decompositions", "silu", None)),
        "pattern": (sine, pattern),
        "replacement": (sine, replacing),
        "kept, not met": (sine, kept),
        "some of kept": (some_of_kept, kept),
        "others of kept": (others_of_kept, kept),
        "nothing": (sine, nullcontext),
    }


def compiled(fn: Callable[..., Any]) -> list[list[str]]:
    """Return the functions in each graph's C++, by plain torch."""
    import torch._inductor.config
    from torch._inductor.utils import run_and_get_code

    torch._dynamo.reset()
    with torch._inductor.config.patch(
        force_disable_caches=True
    ):  # torch's workers know nothing of these registrations
        _, codes = run_and_get_code(torch.compile(fn), torch.rand(64))
    if called:
        met = [f"said {one}" for one in sorted(set(called))]
        called.clear()
        return [met]
    found = [sorted({word for word in WORDS if re.search(rf"\b{word}\(\)", code)}) for code in codes]
    return sorted(filter(None, found))


def captured(fn: Callable[..., Any], target: str) -> list[list[str]]:
    """Return the same for a capture, read from the text of its kernels."""
    from compile_lens import capture

    made = capture(fn, torch.rand(64), target=target)
    assert made.target is not None
    if said := [f"said {one.query}" for one in made.target.queries if one.kind == "not transferred"]:
        return [sorted(one.replace("told_programs.", "") for one in said)]
    written = r"\b{}\(\)" if target.startswith("cpu") else r"(?:math|device)\.{}\("
    found = []
    for compilation in made.compilations:
        text = "".join(kernel.source or "" for code in compilation.code.values() for kernel in code.kernels)
        found.append(sorted({word for word in WORDS if re.search(written.format(word), text)}))
    return sorted(filter(None, found))


def main(targets: list[str], every: int = 1) -> None:
    """Print a line for each target, for every ``every``-th program."""
    known = dict(list(programs().items())[::every])
    for target in targets:
        found = {}
        for name, (fn, told) in known.items():
            with told():
                found[name] = compiled(fn) if target == "plain" else captured(fn, target)
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
