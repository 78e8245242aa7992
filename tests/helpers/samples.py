"""Captures built by hand: complete and realistic, to test views without torch."""

from __future__ import annotations

import dataclasses

from compile_lens.record.breaks import Ending, Skip
from compile_lens.record.capture import Environment, Failure, Options, Timing
from compile_lens.record.compilation import Compilation, DynamicDim, EagerOp, Guard
from compile_lens.record.graph import Frame, Graph, Node, Ref, Source, Tensor
from compile_lens.record.kernel import Code, Kernel, LineOrigin
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture

FILE = "/home/ada/example.py"
LINE = "    return torch.sin(x) ** 2 + torch.cos(x) ** 2"
N = 1000
BYTES = 4 * N

_FLOAT = Tensor("float32", (N,), (1,), "cpu", BYTES)
_WHERE = (Frame(FILE, 5, "f", LINE.strip(), 11, 48),)

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"quoted\" & 'single' `tick` ```fence```",
    "abc\u202eevil\u202c \u2066isolate\u2069",
    "nul\x00 bell\x07 escape\x1b[31m del\x7f",
    "emoji 👩‍🔬 and 漢字 and é",
    "line\nbreak\r\nand\ttab",
    "lone \ud800 surrogate",
    "long " + "x" * 10_000,
    "]]> --> <!-- {{ }} ${x} %s \\",
    "| pipe * star _ under # hash [link](javascript:alert(1))",
)


def sample() -> Capture:
    """Return sin(x)**2 + cos(x)**2, forward and backward: every stage, one C++ kernel in each module."""
    stages = (
        _graph("dynamo", "", _dynamo_nodes(), _DYNAMO),
        _graph("pre_grad", "dynamo", _dynamo_nodes(from_before=True), _DYNAMO),
        _graph("joint", "pre_grad", _joint_nodes(), _JOINT),
        Graph("forward", "", "joint", _forward_nodes(), _FORWARD, saved=("primals_1",)),
        _graph("post_grad", "forward", _forward_nodes(), _FORWARD, "forward"),
        _graph("loops", "forward.post_grad", _loops("forward"), _LOOP_FORWARD, "forward"),
        _graph("groups", "forward.loops", _groups("forward"), _LOOP_FORWARD, "forward"),
        _code("forward"),
        _graph("backward", "joint", _backward_nodes(), _BACKWARD),
        _graph("post_grad", "backward", _backward_nodes(), _BACKWARD, "backward"),
        _graph("loops", "backward.post_grad", _loops("backward"), _LOOP_BACKWARD, "backward"),
        _graph("groups", "backward.loops", _groups("backward"), _LOOP_BACKWARD, "backward"),
        _code("backward"),
    )
    eager = tuple(
        EagerOp(phase, f"aten.{name}", count, nbytes)
        for phase, name, count, nbytes in (
            ("forward", "sin.default", 1, 2 * BYTES),
            ("forward", "pow.Tensor_Scalar", 2, 4 * BYTES),
            ("forward", "cos.default", 1, 2 * BYTES),
            ("forward", "add.Tensor", 1, 3 * BYTES),
            ("backward", "pow.Tensor_Scalar", 2, 4 * BYTES),
            ("backward", "mul.Scalar", 2, 4 * BYTES),
            ("backward", "mul.Tensor", 4, 12 * BYTES),
            ("backward", "sin.default", 1, 2 * BYTES),
            ("backward", "cos.default", 1, 2 * BYTES),
            ("backward", "neg.default", 1, 2 * BYTES),
            ("backward", "add.Tensor", 1, 3 * BYTES),
        )
    )
    compilation = Compilation(
        "0/0",
        "f",
        FILE,
        4,
        stages,
        guards=(
            Guard(
                "tensor 'x' size=[1000], stride=[1], dtype=float32, device=cpu, requires_grad=True",
                "L['x']",
                "TENSOR_MATCH",
            ),
            Guard("G['torch'] is the module torch", "G['torch']", "MODULE_MATCH"),
            Guard("grad mode is on", "", "GRAD_MODE"),
        ),
        ending=Ending("return"),
        eager=eager,
    )
    return Capture(
        function="f",
        environment=Environment("0.1.0", "2.13.0+cpu", "", "3.11.9", "Linux x86_64", "cpu", "cpu", "AVX-512"),
        inputs=("x: float32[1000] cpu requires_grad",),
        sources=(Source(FILE, 4, "f", f"def f(x):\n{LINE}\n"),),
        compilations=(compilation,),
        timings=(
            Timing("dynamo", 0.0213),
            Timing("pre_grad", 0.0004),
            Timing("joint", 0.0182),
            Timing("forward.loops", 0.0041),
            Timing("forward.groups", 0.0013),
            Timing("forward.code", 0.0127),
            Timing("backward.loops", 0.0063),
            Timing("backward.groups", 0.0017),
            Timing("backward.code", 0.0151),
            Timing("eager count", 0.0079),
        ),
        created="2026-01-05T09:30:00+00:00",
    )


def missing() -> Capture:
    """Return the sample without its backward's code and groups, and the reason."""
    capture = sample()
    compilation = capture.compilations[0]
    why = {"backward.groups": "torch 2.99 lacks this hook", "backward.code": "cache hit"}
    stages = tuple(Missing(s.key, why[s.key]) if s.key in why else s for s in compilation.stages)
    changed = dataclasses.replace(
        compilation, stages=stages, eager=None, eager_note="the graph holds a custom operator"
    )
    return dataclasses.replace(capture, compilations=(changed,))


def graph_break() -> Capture:
    """Return a function with a ``print`` in the middle: two graphs, the second recompiled for another size."""
    capture = sample()
    first = capture.compilations[0]
    frames = (
        Frame("/home/ada/train.py", 40, "main", "loss = f(batch)"),
        Frame(FILE, 6, "f", "print(y.sum())"),
    )
    ending = Ending(
        "graph break",
        "Failed to trace builtin operator: Dynamo does not know how to trace `print` of a tensor",
        frames,
        "Move the print out of the compiled function, or keep the value and print it after the call.",
    )
    broken = dataclasses.replace(first, ending=ending)
    second = dataclasses.replace(first, id="1/0", function="torch_dynamo_resume_in_f_at_6", line=6)
    again = dataclasses.replace(
        first,
        id="1/1",
        function="torch_dynamo_resume_in_f_at_6",
        line=6,
        recompile_reasons=("tensor 'y' size mismatch at index 0: expected 1000, actual 1024",),
        dynamic=(DynamicDim("L['y'].size()[0]", "s0", 1024),),
    )
    timings = tuple(
        Timing(f"{c.id} {t.stage}", t.seconds) for c in (broken, second, again) for t in capture.timings[:-1]
    )
    return dataclasses.replace(capture, compilations=(broken, second, again), timings=timings)


def skipped() -> Capture:
    """Return a training step whose loop ran eagerly, with a helper that reached its limit: one graph is left."""
    capture = sample()
    loop = (Frame(FILE, 9, "step", "loss.backward()", 8, 23),)
    broken = Ending(
        "graph break",
        "Unsupported Tensor.backward() call\n  Explanation: Dynamo does not trace `Tensor.backward()`.\n"
        "  Hint: Set torch._dynamo.trace_autograd_ops=True",
        loop,
        "Set torch._dynamo.trace_autograd_ops=True",
        "https://example.org/gb/gb0123.html",
    )
    limit = Ending(
        "recompile limit",
        "Dynamo recompile limit exceeded",
        (Frame(FILE, 20, "scaled", "def scaled(x, n):"),),
        "Consider increasing torch._dynamo.config.recompile_limit.",
    )
    return dataclasses.replace(
        capture,
        skipped=(
            Skip(
                "function", "step", FILE, 7, broken, ((8, 12),), "graph break in loop. The frame is skipped."
            ),
            Skip("recompile limit", "scaled", FILE, 20, limit, ((21, 21),), count=2),
        ),
    )


def failed() -> Capture:
    """Return a capture that failed in lowering, with every stage before it."""
    capture = sample()
    first = capture.compilations[0]
    cut = tuple(
        s for s in first.stages if s.key in ("dynamo", "pre_grad", "joint", "forward", "forward.post_grad")
    )
    failure = Failure(
        "forward.loops",
        "LoweringException",
        "NotImplementedError: no lowering for mylib.twist.default\n"
        "  target: mylib.twist.default\n  args[0]: TensorBox(float32[1000])",
        "Traceback (most recent call last):\n"
        '  File "/home/ada/example.py", line 5, in f\nNotImplementedError: no lowering',
    )
    stages = (*cut, Missing("forward.loops", "the compiler failed here: LoweringException"))
    timings = tuple(t for t in capture.timings if t.stage in ("dynamo", "pre_grad", "joint"))
    changed = dataclasses.replace(first, stages=stages)
    return dataclasses.replace(capture, compilations=(changed,), timings=timings, failure=failure)


def failed_early() -> Capture:
    """Return a capture of a function that raised before anything was compiled."""
    capture = nothing()
    failure = Failure(
        "dynamo", "ZeroDivisionError", "division by zero", "Traceback …\nZeroDivisionError: division by zero"
    )
    return dataclasses.replace(capture, nothing_compiled="", failure=failure)


def nothing() -> Capture:
    """Return a capture of a function without tensor work: nothing reached the compiler."""
    capture = sample()
    return dataclasses.replace(
        capture,
        function="greet",
        inputs=("name: str 'Ada'",),
        sources=(Source(FILE, 9, "greet", "def greet(name):\n    return f'hello {name}'\n"),),
        compilations=(),
        timings=(),
        nothing_compiled="the function does no tensor work, so Dynamo made no graph",
    )


def hostile(text: str) -> Capture:
    """Return the sample with ``text`` wherever a user's program can put a string."""
    capture = graph_break()
    frame = Frame(text, 3, text, text)
    first = capture.compilations[0]
    graph = first.graphs["dynamo"]
    node = dataclasses.replace(
        graph.nodes[1], name=text, target=text, module=text, frames=(frame,), detail=text
    )
    nodes = (graph.nodes[0], node, *graph.nodes[2:])
    code = first.code["forward"]
    kernel = dataclasses.replace(
        code.kernels[0], name=text, kind=text, source=text, origins=(), no_origin=text, groups=(),
        lines=(LineOrigin(1, (text,)),),
    )  # fmt: skip
    swapped = {
        "dynamo": dataclasses.replace(graph, nodes=nodes, text=text),
        "joint": Missing("joint", text),
        "forward.code": dataclasses.replace(code, text=text, stamp=text, device=text, kernels=(kernel,)),
    }
    changed = dataclasses.replace(
        first,
        function=text,
        file=text,
        stages=tuple(swapped.get(s.key, s) for s in first.stages),
        guards=(Guard(text, text, text),),
        ending=Ending("graph break", text, (frame,), text),
        recompile_reasons=(text,),
        dynamic=(DynamicDim(text, text, 3),),
        eager=None,
        eager_note=text,
    )
    return dataclasses.replace(
        capture,
        function=text,
        environment=dataclasses.replace(
            capture.environment, platform=text, target=text, torch=text, isa=text
        ),
        options=Options(mode=text, options=((text, text),)),
        inputs=(text,),
        sources=(Source(text, 1, text, text),),
        compilations=(changed, *capture.compilations[1:]),
        timings=(Timing(text, 1.0),),
        failure=Failure(text, text, text, text),
        notes=(text,),
        skipped=(
            Skip(text, text, text, 3, Ending(text, text, (frame,), text, text), ((1, 2),), text, first.id),
        ),
        created=text,
        unknown_fields=(text,),
    )


def layers(count: int, code_lines: int = 100) -> Capture:
    """Return a large capture: ``count`` chains of 60 nodes in modules, and ``code_lines`` lines of code for each."""
    capture = sample()
    compilation = capture.compilations[0]
    stages = []
    for stage in compilation.stages:
        if isinstance(stage, Graph):
            nodes = _chain_nodes(count, lowered=stage.stage in ("loops", "groups"), before=stage.before)
            text = "\n".join(f"    {n.name} = {n.target}({', '.join(n.inputs)})  # {n.module}" for n in nodes)
            stages.append(dataclasses.replace(stage, nodes=nodes, text=text))
        elif isinstance(stage, Code):
            kernels = tuple(
                dataclasses.replace(
                    stage.kernels[0],
                    name=f"{stage.kernels[0].name}_{i}",
                    source="\n".join(
                        f"    auto tmp{j} = tmp{j - 1} * static_cast<float>({j}.0);"
                        for j in range(1, code_lines)
                    ),
                    groups=(),
                    origins=(f"n{i}_1",),
                    lines=(),
                )
                for i in range(count)
            )
            text = "\n\n".join(k.source for k in kernels)
            stages.append(dataclasses.replace(stage, text=text, kernels=kernels))
    return dataclasses.replace(
        capture, compilations=(dataclasses.replace(compilation, stages=tuple(stages)),)
    )


def _chain_nodes(count: int, lowered: bool, before: str) -> tuple[Node, ...]:
    nodes = [Node("x", "placeholder", "x", "input", outputs=(_FLOAT,))]
    last = "x"
    for i in range(count):
        for j in range(60):
            name = f"n{i}_{j}"
            nodes.append(
                Node(
                    name,
                    "loop" if lowered else "call_function",
                    "aten.mul.Tensor" if j % 3 else "aten.sin.default",
                    "pointwise",
                    compute=True,
                    args=(Ref(last),),
                    outputs=(_FLOAT,),
                    module=f"layers.{i}.block{j // 20}",
                    module_type="Block",
                    frames=_WHERE,
                    origins=(name,) if before else (),
                    reads=BYTES,
                    writes=BYTES,
                )
            )
            last = name
    nodes.append(Node("output", "output", "output", "output", args=((Ref(last),),)))
    return tuple(nodes)


def _graph(stage: str, before: str, nodes: tuple[Node, ...], text: str, phase: str = "") -> Graph:
    return Graph(stage, phase, before, nodes, text)


def _input(name: str, before: str = "", grad: bool = False) -> Node:
    origins = (before,) if before else ()
    outputs = (dataclasses.replace(_FLOAT, requires_grad=grad),)
    return Node(
        name,
        "placeholder",
        name,
        "input",
        outputs=outputs,
        origins=origins,
        no_origin="" if origins else "an input",
    )


def _call(name: str, target: str, *args: object, before: str = "") -> Node:
    values = tuple(Ref(a) if isinstance(a, str) else a for a in args)
    reads = BYTES * sum(isinstance(a, str) for a in args)
    return Node(
        name, "call_function", target, "pointwise", True, values, outputs=(_FLOAT,), frames=_WHERE,  # type: ignore[arg-type]
        origins=(before,) if before else (), reads=reads, writes=BYTES,
    )  # fmt: skip


def _output(*names: str) -> Node:
    return Node(
        "output", "output", "output", "output", args=(tuple(Ref(n) for n in names),), no_origin="the output"
    )


def _dynamo_nodes(from_before: bool = False) -> tuple[Node, ...]:
    rows = (
        ("sin", "torch.sin", "l_x_"),
        ("pow_1", "operator.pow", "sin", 2),
        ("cos", "torch.cos", "l_x_"),
        ("pow_2", "operator.pow", "cos", 2),
        ("add", "operator.add", "pow_1", "pow_2"),
    )
    calls = (_call(n, t, *a, before=n if from_before else "") for n, t, *a in rows)
    return (_input("l_x_", "l_x_" if from_before else "", grad=True), *calls, _output("add"))


_FORWARD_ROWS = (
    ("sin", "aten.sin.default", "primals_1"),
    ("pow_1", "aten.pow.Tensor_Scalar", "sin", 2),
    ("cos", "aten.cos.default", "primals_1"),
    ("pow_2", "aten.pow.Tensor_Scalar", "cos", 2),
    ("add", "aten.add.Tensor", "pow_1", "pow_2"),
)

_GRADIENT_ROWS = (
    ("pow_3", "aten.pow.Tensor_Scalar", "cos", 1.0),
    ("mul", "aten.mul.Scalar", "pow_3", 2.0),
    ("mul_1", "aten.mul.Tensor", "tangents_1", "mul"),
    ("sin_1", "aten.sin.default", "primals_1"),
    ("neg", "aten.neg.default", "sin_1"),
    ("mul_2", "aten.mul.Tensor", "mul_1", "neg"),
    ("pow_4", "aten.pow.Tensor_Scalar", "sin", 1.0),
    ("mul_3", "aten.mul.Scalar", "pow_4", 2.0),
    ("mul_4", "aten.mul.Tensor", "tangents_1", "mul_3"),
    ("cos_1", "aten.cos.default", "primals_1"),
    ("mul_5", "aten.mul.Tensor", "mul_4", "cos_1"),
    ("add_1", "aten.add.Tensor", "mul_2", "mul_5"),
)

_BACKWARD_ROWS = (  # the partitioner saved only x, and common subexpressions are one node
    _FORWARD_ROWS[2],
    _FORWARD_ROWS[0],
    *(
        (n, t, *({"sin_1": "sin", "cos_1": "cos"}.get(v, v) for v in a))
        for n, t, *a in _GRADIENT_ROWS
        if n not in ("sin_1", "cos_1")
    ),
)

_GRADIENT_OF = {
    "pow_3": "pow_2", "mul": "pow_2", "mul_1": "pow_2", "sin_1": "cos", "neg": "cos", "mul_2": "cos",
    "pow_4": "pow_1", "mul_3": "pow_1", "mul_4": "pow_1", "cos_1": "sin", "mul_5": "sin", "add_1": "sin",
}  # fmt: skip


def _joint_nodes() -> tuple[Node, ...]:
    forward = (_call(n, t, *a, before=n) for n, t, *a in _FORWARD_ROWS)
    backward = (_call(n, t, *a, before=_GRADIENT_OF[n]) for n, t, *a in _GRADIENT_ROWS)
    return (
        _input("primals_1", "l_x_", True),
        _input("tangents_1"),
        *forward,
        *backward,
        _output("add", "add_1"),
    )


def _forward_nodes() -> tuple[Node, ...]:
    calls = (_call(n, t, *a, before=n) for n, t, *a in _FORWARD_ROWS)
    return (_input("primals_1", "primals_1", True), *calls, _output("add", "primals_1"))


def _backward_nodes() -> tuple[Node, ...]:
    calls = (_call(n, t, *a, before=n) for n, t, *a in _BACKWARD_ROWS)
    return (_input("primals_1", "primals_1"), _input("tangents_1", "tangents_1"), *calls, _output("add_1"))


def _names(phase: str) -> tuple[str, ...]:
    if phase == "forward":
        return tuple(row[0] for row in _FORWARD_ROWS)
    return tuple(row[0] for row in _BACKWARD_ROWS)


def _loops(phase: str) -> tuple[Node, ...]:
    arguments = ("primals_1",) if phase == "forward" else ("tangents_1", "primals_1")
    loop = Node(
        "buf0", "loop", "pointwise over [1000]", "pointwise", True, tuple(Ref(a) for a in arguments),
        outputs=(_FLOAT,), origins=_names(phase), reads=BYTES * len(arguments), writes=BYTES, frames=_WHERE,
        detail="ops.store(buf0)",
    )  # fmt: skip
    return (loop,)


def _groups(phase: str) -> tuple[Node, ...]:
    (loop,) = _loops(phase)
    group = dataclasses.replace(
        loop, name="op0", op="group", target="1 loop", origins=("buf0",), members=("buf0",)
    )
    return (group,)


def _code(phase: str) -> Code:
    name, arguments, source, marks = _KERNELS[phase]
    head = f"# AOT ID: ['0_{phase}']\n{_HEAD}"
    before = f"{head}\n\n{name} = async_compile.cpp_pybinding([{arguments}], r'''\n"
    call = _CALL[phase].format(name=name)
    text = f"{before}{source}''')\n\n\nasync_compile.wait(globals())\ndel async_compile\n\n{call}"
    first = before.count("\n") + 1
    launch = next(i for i, line in enumerate(text.splitlines(), 1) if line.strip().startswith(f"{name}("))
    lines = []
    for number, line in enumerate(source.splitlines(), 1):
        origins = tuple(op for mark, *ops in marks if f"auto {mark} =" in line for op in ops)
        no_origin = "" if origins else "scaffolding of the kernel"
        lines.append(LineOrigin(number, origins, no_origin))
    kernel = Kernel(
        name, phase, "cpp", "pointwise", source, first, first + source.count("\n") - 1, (launch,),
        groups=("op0",), origins=_names(phase), reads=BYTES * (1 if phase == "forward" else 2), writes=BYTES,
        lines=tuple(lines),
    )  # fmt: skip
    return Code(phase, text, "generated only", "cpu", (kernel,))


_SOURCE_FORWARD = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(1000L); x0+=static_cast<int64_t>(8L))
    {
        auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), 8);
        auto tmp1 = tmp0.sin();
        auto tmp2 = tmp1 * tmp1;
        auto tmp3 = tmp0.cos();
        auto tmp4 = tmp3 * tmp3;
        auto tmp5 = tmp2 + tmp4;
        tmp5.store(out_ptr0 + static_cast<int64_t>(x0));
    }
}
"""

_SOURCE_BACKWARD = """\
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       const float* in_ptr1,
                       float* out_ptr0)
{
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(1000L); x0+=static_cast<int64_t>(8L))
    {
        auto tmp0 = at::vec::Vectorized<float>::loadu(in_ptr0 + static_cast<int64_t>(x0), 8);
        auto tmp1 = at::vec::Vectorized<float>::loadu(in_ptr1 + static_cast<int64_t>(x0), 8);
        auto tmp2 = tmp1.cos();
        auto tmp3 = static_cast<float>(2.0);
        auto tmp4 = at::vec::Vectorized<float>(tmp3);
        auto tmp5 = tmp2 * tmp4;
        auto tmp6 = tmp0 * tmp5;
        auto tmp7 = tmp1.sin();
        auto tmp8 = tmp7.neg();
        auto tmp9 = tmp6 * tmp8;
        auto tmp10 = tmp7 * tmp4;
        auto tmp11 = tmp0 * tmp10;
        auto tmp12 = tmp11 * tmp2;
        auto tmp13 = tmp9 + tmp12;
        tmp13.store(out_ptr0 + static_cast<int64_t>(x0));
    }
}
"""

_KERNELS = {
    "forward": (
        "cpp_fused_add_cos_pow_sin_0",
        "'const float*', 'float*'",
        _SOURCE_FORWARD,
        (("tmp1", "sin"), ("tmp2", "pow_1"), ("tmp3", "cos"), ("tmp4", "pow_2"), ("tmp5", "add")),
    ),
    "backward": (
        "cpp_fused_add_cos_mul_neg_pow_sin_0",
        "'const float*', 'const float*', 'float*'",
        _SOURCE_BACKWARD,
        (
            ("tmp2", "cos", "pow_3"), ("tmp3", "mul", "mul_3"), ("tmp4", "mul", "mul_3"), ("tmp5", "mul"),
            ("tmp6", "mul_1"), ("tmp7", "sin", "pow_4"), ("tmp8", "neg"), ("tmp9", "mul_2"),
            ("tmp10", "mul_3"),
            ("tmp11", "mul_4"), ("tmp12", "mul_5"), ("tmp13", "add_1"),
        ),
    ),
}  # fmt: skip

_HEAD = """\
import torch
from torch._inductor.async_compile import AsyncCompile

assert_size_stride = torch._C._dynamo.guards.assert_size_stride
empty_strided_cpu = torch._C._dynamo.guards._empty_strided_cpu
async_compile = AsyncCompile()
"""

_CALL = {
    "forward": """\
def call(args):
    primals_1, = args
    args.clear()
    assert_size_stride(primals_1, (1000, ), (1, ), 'input')
    buf0 = empty_strided_cpu((1000, ), (1, ), torch.float32)
    {name}(primals_1, buf0)
    return (buf0, primals_1, )
""",
    "backward": """\
def call(args):
    primals_1, tangents_1 = args
    args.clear()
    assert_size_stride(primals_1, (1000, ), (1, ), 'input')
    assert_size_stride(tangents_1, (1000, ), (1, ), 'input')
    buf0 = empty_strided_cpu((1000, ), (1, ), torch.float32)
    {name}(tangents_1, primals_1, buf0)
    del primals_1
    del tangents_1
    return (buf0, )
""",
}

_DYNAMO = f"""\
class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[1000][1]cpu"):
        l_x_ = L_x_

        # File: {FILE}:5 in f, code: {LINE.strip()}
        sin: "f32[1000][1]cpu" = torch.sin(l_x_)
        pow_1: "f32[1000][1]cpu" = sin ** 2;  sin = None
        cos: "f32[1000][1]cpu" = torch.cos(l_x_);  l_x_ = None
        pow_2: "f32[1000][1]cpu" = cos ** 2;  cos = None
        add: "f32[1000][1]cpu" = pow_1 + pow_2;  pow_1 = pow_2 = None
        return (add,)
"""


def _fx(head: str, rows: tuple[tuple[object, ...], ...], result: str) -> str:
    lines = [head, f"    # File: {FILE}:5 in f, code: {LINE.strip()}"]
    lines += [f'    {n}: "f32[1000][1]cpu" = torch.ops.{t}({", ".join(map(str, a))})' for n, t, *a in rows]
    return "\n".join([*lines, f"    return {result}", ""])


_JOINT = _fx("def forward(self, primals, tangents):", (*_FORWARD_ROWS, *_GRADIENT_ROWS), "[add, add_1]")
_FORWARD = _fx('def forward(self, primals_1: "f32[1000][1]cpu"):', _FORWARD_ROWS, "(add, primals_1)")
_BACKWARD = _fx(
    'def forward(self, primals_1: "f32[1000][1]cpu", tangents_1: "f32[1000][1]cpu"):',
    _BACKWARD_ROWS,
    "(add_1,)",
)

_LOOP_FORWARD = """\
op0: SchedulerNode(ComputedBuffer)
op0.writes = [MemoryDep('buf0', c0, {c0: 1000})]
op0.met_dependencies = [MemoryDep('primals_1', c0, {c0: 1000})]
class op0_loop_body:
    var_ranges = {p0: 1000}
    index0 = p0
    def body(self, ops):
        get_index = self.get_index('index0')
        load = ops.load('primals_1', get_index)
        sin = ops.sin(load)
        mul = ops.mul(sin, sin)
        cos = ops.cos(load)
        mul_1 = ops.mul(cos, cos)
        add = ops.add(mul, mul_1)
        store = ops.store('buf0', get_index, add, None)
        return store
"""

_LOOP_BACKWARD = """\
op0: SchedulerNode(ComputedBuffer)
op0.writes = [MemoryDep('buf0', c0, {c0: 1000})]
op0.met_dependencies = [MemoryDep('primals_1', c0, {c0: 1000}), MemoryDep('tangents_1', c0, {c0: 1000})]
class op0_loop_body:
    var_ranges = {p0: 1000}
    index0 = p0
    def body(self, ops):
        get_index = self.get_index('index0')
        load = ops.load('tangents_1', get_index)
        load_1 = ops.load('primals_1', get_index)
        cos = ops.cos(load_1)
        constant = ops.constant(2.0, torch.float32)
        mul = ops.mul(load, ops.mul(cos, constant))
        sin = ops.sin(load_1)
        mul_1 = ops.mul(mul, ops.neg(sin))
        mul_2 = ops.mul(ops.mul(load, ops.mul(sin, constant)), cos)
        add = ops.add(mul_1, mul_2)
        store = ops.store('buf0', get_index, add, None)
        return store
"""
