"""Graphs built by hand as inputs of the drawing tests. No torch."""

from __future__ import annotations

from compile_lens.record.graph import Frame, Graph, Node, Ref, Tensor

F32 = Tensor("float32", (1000,), (1,), "cpu", 4000)

HOSTILE = [
    'say "hi"',
    "back\\slash\\",
    "two\nlines\r\nand\ta tab",
    "<b>&amp;</b>]]><script>alert(1)</script>",
    "שלום عربى",
    "\u202egnp.exe",
    "👩‍🔬🔥",
    "漢字" * 8,
    "x" * 10_000,
    "nul\x00 bell\x07 esc\x1b[31m",
    "lone \ud800 surrogate",
    "\\N \\G %s {0} $x",
    "\ufffe",
    "'--></svg>",
    " ",
]
"""Texts that could break some context of a drawing."""


def tensor(*shape: int | str, dtype: str = "float32") -> Tensor:
    """Return a contiguous CPU tensor without a stride for symbolic shapes."""
    strides: list[int | str] = []
    step = 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size if isinstance(size, int) else 1
    fixed = all(isinstance(size, int) for size in shape)
    return Tensor(dtype, shape, tuple(strides) if fixed else None, "cpu", 4 * step if fixed else None)


def call(
    name: str, target: str, *inputs: str, kind: str = "pointwise", out: Tensor = F32, module: str = ""
) -> Node:
    """Return a call node that takes the named nodes."""
    frames = (Frame("model.py", 12, "forward", f"y = {name}(x)"),)
    return Node(
        name,
        "call_function",
        target,
        kind=kind,
        compute=kind not in ("view", "allocation"),
        args=tuple(Ref(i) for i in inputs),
        outputs=(out,),
        module=module,
        module_type="Linear" if module else "",
        frames=frames,
    )


def given(name: str, out: Tensor = F32) -> Node:
    """Return a graph input."""
    return Node(name, "placeholder", name, kind="input", outputs=(out,))


def result(*names: str) -> Node:
    """Return the output node."""
    return Node("output", "output", "output", kind="output", args=(tuple(Ref(n) for n in names),))


def sin_cos() -> Graph:
    """Return sin(x)**2 + cos(x)**2 as passed to Inductor, with x saved for backward."""
    nodes = (
        given("primals_1"),
        call("sin", "aten.sin.default", "primals_1"),
        call("pow_1", "aten.pow.Tensor_Scalar", "sin"),
        call("cos", "aten.cos.default", "primals_1"),
        call("pow_2", "aten.pow.Tensor_Scalar", "cos"),
        call("add", "aten.add.Tensor", "pow_1", "pow_2"),
        result("add", "primals_1"),
    )
    return Graph("forward", "", "joint", nodes, saved=("primals_1",))


def chain(length: int, *, module: str = "") -> Graph:
    """Return x, ``length`` calls in a row, and an output that also takes x: one edge as long as the chain."""
    nodes = [given("x")]
    for i in range(length):
        nodes.append(call(f"mul_{i}", "aten.mul.Tensor", nodes[-1].name, module=module.format(i)))
    return Graph("forward", "", "joint", (*nodes, result(nodes[-1].name, "x")))


def encoder(layers: int, *, width: int = 66) -> Graph:
    """Return a graph like an encoder's forward: ``width`` calls a layer, weights, saved values that run to the output.

    It has about ``layers * (width + 6) + 2`` nodes.
    """
    nodes = [given("primals_0", tensor(4, 64, 256))]
    saved: list[str] = []
    last = "primals_0"
    for layer in range(layers):
        residual = last
        for i in range(width):
            part = ("attn", "norm1", "mlp", "norm2")[4 * i // width]
            module = f"encoder.layers.{layer}.{part}"
            name = f"l{layer}_n{i}"
            inputs = [last]
            if i % 11 == 0:
                weight = f"primals_{layer}_{i}"
                nodes.insert(len(nodes), given(weight, tensor(256, 256)))
                inputs.append(weight)
                saved.append(weight)
            if i % 8 == 7:
                inputs.append(residual)
                residual = name
            kind = ("matmul", "view", "pointwise", "pointwise", "reduction", "pointwise")[i % 6]
            node = call(
                name, f"aten.{kind}.default", *inputs, kind=kind, out=tensor(4, 64, 256), module=module
            )
            nodes.append(node)
            if i % 3 == 0:
                saved.append(name)
            last = name
    inputs_first = [n for n in nodes if n.op == "placeholder"] + [n for n in nodes if n.op != "placeholder"]
    return Graph("forward", "", "joint", (*inputs_first, result(last, *saved)), saved=tuple(saved))


def hostile() -> Graph:
    """Return a graph with every hostile text in every drawn field of a node."""
    nodes: list[Node] = []
    for i, text in enumerate(HOSTILE):
        name = f"{text}{i}"
        nodes.append(
            Node(
                name,
                "call_function",
                text,
                kind=text,
                args=(Ref(nodes[-1].name),) if nodes else (),
                outputs=(Tensor(text, (3, text), (1, text), text, None),),
                module=text,
                module_type=text,
                frames=(Frame(text, 1, text, text),),
                members=(text,),
                detail=text,
            )
        )
    return Graph(HOSTILE[3], HOSTILE[0], "", tuple(nodes), saved=(nodes[0].name,))
