"""Checks that every capture must pass: lowering against loops, lines against their kernel, a result for each node."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from compile_lens.measures.coverage import Coverage
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import UNSAID
from compile_lens.record.lowering import REALIZED
from compile_lens.results.capture import Capture


def loops(compilation: Compilation, phase: str) -> dict[str, Any]:
    return {n.name: n for n in compilation.graphs[f"{phase}.loops"].nodes if n.op != "placeholder"}


CALLS = {"sin", "cos", "exp", "tanh", "erf", "rsqrt", "log"}
PURE = CALLS | {"add", "sub", "mul", "div", "neg", "sum", "amax", "full", "where", "var_mean", "mean"}
"""Operators whose lowering contains only the call that they are named after."""


def operator(target: str) -> str:
    """Return ``sin`` for ``aten.sin.default``."""
    return target.split(".")[1] if "." in target else target


def blocks(graph: Graph) -> dict[str, str]:
    """Return the text of each loop by its name."""
    parts = re.split(r"(?m)^(?=\S+: )", graph.text)
    return {part.partition(":")[0]: part for part in parts if part.strip()}


def lowering_faults(found: Capture) -> Iterator[str]:
    """Return the contradictions between a capture's lowering and the bodies of its loops."""
    for c in found.compilations:
        for phase in c.phases:
            if f"{phase}.loops" not in c.graphs or c.graphs[f"{phase}.post_grad"].subgraphs:
                continue
            mine = [e for e in c.lowered if e.phase == phase]
            have = loops(c, phase)
            claimed = Counter(b for e in mine for b in (e.buffer, *e.parts) if b)
            yield from (f"{phase}: {b} is claimed {n} times" for b, n in claimed.items() if n > 1)
            yield from (
                f"{phase}: {n.name} belongs to no node"
                for n in have.values()
                if n.op in ("loop", "extern", "template") and n.name not in claimed and n.origins
            )
            nodes = {n.name: n for n in c.graphs[f"{phase}.post_grad"].nodes}
            for e in mine:
                if not nodes[e.node].compute or not set(e.loops) <= set(have) or not e.loops:
                    yield f"{phase}: {e} of {nodes[e.node].kind} is in {e.loops}"
                if e.reason not in ("", *REALIZED) or e.reason == "other":
                    yield f"{phase}: {e}"
                if bool(e.reason) != bool(e.buffer or e.parts) or not {e.buffer, *e.parts} <= {"", *e.loops}:
                    yield f"{phase}: {e}: {e.loops}"
            for name, text in blocks(c.graphs[f"{phase}.loops"]).items():
                done = set(re.findall(r"= (\w+)\(", text)) & CALLS
                named = {operator(nodes[e.node].target) for e in mine if name in e.loops} & CALLS
                if not named <= done and have[name].op == "loop":
                    yield f"{phase}: {name} is said to hold {named - done}"
                composite = any(operator(nodes[e.node].target) not in PURE for e in mine if name in e.loops)
                if done - named and not composite:
                    yield f"{phase}: {name} holds {done - named}, of which no entry knows"


NO_PROGRAM = "no line of the program"
"""Reason why no work of torch's own callables reaches a Python line: Dynamo hides their frames."""


def accounted(found: Capture) -> Coverage:
    """Return the coverage of a capture, and check that its lines name only nodes of their kernel."""
    for kernel in found.kernels:
        names = {o for line in kernel.lines for o in line.origins}
        assert names <= set(kernel.origins)
        assert not [line for line in kernel.lines if line.no_origin == UNSAID]
        texts = kernel.source.splitlines()
        for line in kernel.lines:
            computing = re.search(
                r"\btmp\w* = |\.store\(|(in|out)_ptr\d+\[.*\] [-+]?= ", texts[line.line - 1]
            )
            assert line.origins or not computing or line.no_origin == "loop header"
    return found.coverage()


def whole_coverage(found: Capture) -> None:
    """Assert that every kernel of a capture with a backward reaches Python, and that nearly all kernel lines do."""
    cover = accounted(found)
    assert {c.name for c in cover.phases} == {"forward", "backward"}
    for row in cover.phases:
        assert row.kernel_share == 1
        assert row.line_share is not None and row.line_share >= 0.95
    assert cover.uncovered == ()


def counted(graph: Graph) -> Iterator[str]:
    """Yield the names of a graph's compute nodes, which leaves out inputs, the output and views by torch's schemas."""
    for node in graph.nodes:
        if node.op != "call_function" or not node.target.startswith(("aten.", "prims.")):
            continue
        packet, _, overload = node.target.rpartition(".")
        space, name = packet.split(".")
        op = getattr(getattr(getattr(torch.ops, space), name), overload)
        returns = op._schema.returns
        if not (returns and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)):
            yield node.name


def silent(found: Capture) -> list[tuple[str, str, str]]:
    """Return the nodes that lead to no kernel and for which the capture gives no reason."""
    chain = found.chain
    return [
        (c.id, key, name)
        for c in found.compilations
        for key in ("joint", "forward", "backward", "inference")
        if key in c.graphs
        for name in counted(c.graphs[key])
        if not chain.down((c.id, key, name))
        and "does not say" in (chain.why_not((c.id, key, name)) or "does not say")
    ]
