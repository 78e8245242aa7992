"""A capture of 20,000-node graphs, built by hand: a stress test for the viewer, without hours of compiling."""

from __future__ import annotations

from compile_lens.record.capture import Environment, Timing
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node, Ref, Source, Tensor
from compile_lens.results.capture import Capture

NODES = 20_000
FILE = "/home/ada/model.py"
LINES = 400
"""Lines of the model's source, each of which creates many nodes."""

_KINDS = (
    ("mm", "matmul"),
    ("view", "view"),
    ("add", "pointwise"),
    ("mul", "pointwise"),
    ("mean", "reduction"),
    ("rsqrt", "pointwise"),
    ("gelu", "pointwise"),
    ("transpose", "view"),
)
_STAGES = (("dynamo", ""), ("joint", "dynamo"), ("inference", "joint"), ("post_grad", "inference"))
_OUT = Tensor("float32", (8, 128, 512), (65536, 512, 1), "cpu", 2_097_152)


def with_modules(nodes: int = NODES) -> Capture:
    """Return four stages of ``nodes`` nodes each, in modules five levels deep."""
    return _capture(nodes, modules=True)


def without_modules(nodes: int = NODES) -> Capture:
    """Return the same, outside of any module."""
    return _capture(nodes, modules=False)


def _capture(nodes: int, modules: bool) -> Capture:
    source = "\n".join(["def forward(x):", *(f"    x = step_{i}(x)" for i in range(1, LINES)), ""])
    stages = []
    for stage, before in _STAGES:
        phase = "inference" if stage == "post_grad" else ""
        stages.append(_graph(stage, phase, before, nodes, modules))
    return Capture(
        function="Large" if modules else "large",
        environment=Environment("0", "2.13", "", "3.13", "Linux", "cpu", "cpu"),
        inputs=("x: float32[8, 128, 512] cpu",),
        sources=(Source(FILE, 1, "forward", source),),
        compilations=(Compilation("0/0", "forward", FILE, 1, tuple(stages)),),
        timings=tuple(Timing(stage.key, 0.5) for stage in stages),
        created="2026-01-01T00:00:00+00:00",
    )


def _graph(stage: str, phase: str, before: str, count: int, modules: bool) -> Graph:
    nodes = [Node("x", "placeholder", "x", kind="input", outputs=(_OUT,))]
    text = [f"class {stage}(torch.nn.Module):", "    def forward(self, x):"]
    for i in range(count - 2):
        target, kind = _KINDS[i % len(_KINDS)]
        inputs = [nodes[-1].name]
        if i % 8 == 7 and i > 40:
            inputs.append(nodes[-40].name)  # a residual
        if i % 1000 == 999:
            inputs.append(nodes[5].name)  # a value with uses all along the graph
        name = f"{target}_{i}"
        nodes.append(
            Node(
                name,
                "call_function",
                f"aten.{target}.default",
                kind=kind,
                compute=kind != "view",
                args=tuple(Ref(n) for n in inputs),
                outputs=(_OUT,),
                module=_module(i) if modules else "",
                module_type="Part" if modules else "",
                frames=(Frame(FILE, 1 + i * LINES // count, "forward", f"x = step_{i * LINES // count}(x)"),),
                origins=(name,) if before else (),
            )
        )
        text.append(f"        {name} = torch.ops.aten.{target}.default({', '.join(inputs)})")
    nodes.append(Node("output", "output", "output", kind="output", args=((Ref(nodes[-1].name),),)))
    text.append(f"        return ({nodes[-2].name},)")
    return Graph(stage, phase, before, tuple(nodes), "\n".join(text) + "\n")


def _module(i: int) -> str:
    """Return a module path of five levels: ``stages.3.blocks.2.parts.0.layers.1.mlp``."""
    part = "attention" if i % 25 < 12 else "mlp"
    return f"stages.{i // 2500}.blocks.{i // 500 % 5}.parts.{i // 100 % 5}.layers.{i // 25 % 4}.{part}"
