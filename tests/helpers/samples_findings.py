"""Captures built by hand that contain everything that findings depend on."""

from __future__ import annotations

import dataclasses

from samples import BYTES, FILE, sample

from compile_lens.record.autotuning import Autotuning
from compile_lens.record.benchmark import (
    BY_NAME,
    Benchmark,
    DeviceSpeed,
    MeasuredEvents,
    MeasuredGraph,
    MeasuredKernel,
    Profile,
    Series,
)
from compile_lens.record.capture import ABLATIONS, Ablation
from compile_lens.record.compilation import Compilation
from compile_lens.record.cuda_graphs import CudaGraphs, GraphPartition, MutatedInput
from compile_lens.record.decision import Decision
from compile_lens.record.graph import Frame, Graph, Node, Ref
from compile_lens.record.kernel import Candidate, Code, Kernel, Machine
from compile_lens.record.lowering import Lowered, Pass, Rewrite
from compile_lens.record.memory import Buffer, Memory, Partition, SavedTensor
from compile_lens.record.memory_curve import MemoryCurveRecord, MemoryPoint
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture

_MISS = "sfdp_pattern_3: there is a tanh between the two products"


def told() -> Capture:
    """Return the sample with its forward in three groups that were not fused, and every optional fact of a record.

    op0 (sin, pow_1, cos) → op1 (pow_2) → op2 (add); op0 and op1 are too large together, op1 and op2 were
    never proposed. Kernel ``k0`` runs op0, ``k1`` op1 and op2; both compute ``cos``.
    """
    capture = sample()
    first = capture.compilations[0]
    changed = {"forward.loops": _loops(first), "forward.groups": _groups(first), "forward.code": _code(first)}
    compilation = dataclasses.replace(
        first,
        stages=tuple(changed.get(s.key, s) for s in first.stages),
        decisions=(("forward", DECISIONS), ("backward", ())),
        lowered=LOWERED,
        passes=PASSES,
        memory=(MEMORY,),
        partition=Partition(
            (SavedTensor("primals_1", BYTES, ("primals_1",), "primals_1"),),
            ("sin", "cos"),
            (
                SavedTensor("primals_1", BYTES, ("primals_1",), "primals_1"),
                SavedTensor("sin", BYTES, ("sin",)),
                SavedTensor("cos", BYTES, ("cos",)),
            ),
        ),
        autotuning=(CONTEST,),
        cuda_graphs=(CUDA_GRAPHS,),
    )
    return dataclasses.replace(
        capture,
        compilations=(compilation,),
        ablations=(
            Ablation(ABLATIONS[0], (("max_fusion_size", "1"),), (first,), ("a note",)),
            Ablation(ABLATIONS[1], (("max_fusion_size", "1"),), (first,)),
            Ablation(ABLATIONS[2]),
        ),
        benchmark=BENCHMARK,
        profile=PROFILE,
    )


def hostile(text: str) -> Capture:
    """Return the sample with ``text`` wherever torch or a program can put a string that findings show."""
    capture = told()
    first = capture.compilations[0]
    rewrite = Rewrite(text, (text,), (text,), text, text, (text,), text)
    changed = dataclasses.replace(
        first,
        decisions=(
            ("forward", (Decision("forward", ("op0",), ("op1",), False, 1, text, text, text, text),)),
        ),
        lowered=(Lowered("forward", text, (text,), text, (), text, text, text),),
        passes=(Pass("forward", text, 1, 2, (rewrite,), (text,), 0, text),),
        memory=(
            Memory("forward", (Buffer(text, text, 4, 1, 2, text, text, False, (text,)),), None, 0, text),
        ),
        partition=Partition((SavedTensor(text, 4, (text,), text),), (text,), None, text),
        autotuning=(
            Autotuning(
                "forward", text, (text,), (text,),
                (Kernel(text, "forward", text, "template", text, machine_note=text),),
            ),
        ),
    )  # fmt: skip
    changed = dataclasses.replace(
        changed,
        cuda_graphs=(
            CudaGraphs("forward", False, False, (GraphPartition(False, (text,), ((text, text),)),), "", "",
                       (MutatedInput(text, text),)),
            CudaGraphs("backward", True, True, (), text, text, (), text),
        ),
    )  # fmt: skip
    measured = dataclasses.replace(
        PROFILE.graphs[0].kernels[0], kernel=text, name=text, nodes=(text,), modules=(text,)
    )
    graph = MeasuredGraph(
        text, text, text, 1, 1.0, (measured,), (MeasuredEvents(text, 1, 1.0),), (Missing(text, text),)
    )
    series = tuple(dataclasses.replace(s, name=text) for s in BENCHMARK.series)
    speed = dataclasses.replace(BENCHMARK.speed, device=text, source=text) if BENCHMARK.speed else None
    return dataclasses.replace(
        capture,
        compilations=(changed,),
        ablations=(Ablation(text, ((text, text),), (), (text,)),),
        benchmark=dataclasses.replace(
            BENCHMARK, series=series, device=text, clock=text, notes=(text,), speed=speed
        ),
        profile=Profile(text, text, (graph,), (Missing(text, text),)),
        budget_curve=MemoryCurveRecord(
            text,
            text,
            (*CURVE.points, MemoryPoint(0.25, 1, 2, 3, 4, 5, 6, (Frame(text, 3, text, text),), text)),
        ),
    )


MIB = 2**20
CURVE = MemoryCurveRecord(
    "f",
    "",
    (
        MemoryPoint(1, 6 * MIB, 8 * MIB, 7 * MIB, 1000, 4, 0),
        MemoryPoint(0.75, failure="out of memory"),
        MemoryPoint(
            0.5,
            2 * MIB,
            3 * MIB,
            4 * MIB,
            1500,
            5,
            3,
            (Frame(FILE, 5, "f", "torch.cos(x)", call="torch.cos(x)"),),
        ),
        MemoryPoint(0, 0, 2 * MIB, 6 * MIB, 2000, 6, 5),
    ),
)
"""Memory by budget: half of the peak at 0.5, more again at 0; one budget was not captured."""


DECISIONS = (
    Decision("forward", ("op0",), ("op1",), False, 1, "too large", "exceeds max fusion", "3 > 2 nodes",
             "torch/_inductor/choices.py:7 in can_fuse", BYTES, (0, 1, BYTES, -1)),
    Decision("forward", ("op0",), ("op2",), False, 2, "between"),
)  # fmt: skip

LOWERED = (
    Lowered("forward", "sin", ("op0",)),
    Lowered("forward", "cos", ("op0", "op1")),
    Lowered("forward", "pow_1", ("op0",), "op0", reason="many readers", evidence="5 reads, limit 4",
            where="torch/_inductor/ir.py:9 in realize"),
    Lowered("forward", "pow_2", ("op1",), "op1", reason="hint"),
    Lowered("forward", "add", ("op2",), "op2", reason="output"),
)  # fmt: skip

PASSES = (
    Pass("pre_grad", "normalization_pass", 7, 7),
    Pass(
        "forward",
        "joint_graph_passes",
        20,
        18,
        (
            Rewrite("mul(x, 1) → x", ("mul",), (), "mul = aten.mul(x, 1)", "", ("sin",), "torch/a.py:3"),
            Rewrite("", ("pow_1",), ("pow_1",), "pow_1 = aten.pow(sin, 2)", "pow_1 = aten.mul(sin, sin)"),
        ),
        (_MISS,),
    ),
)

MEMORY = Memory(
    "forward",
    (
        Buffer("primals_1", "input", BYTES, donated=True),
        Buffer("buf0", "intermediate", BYTES, 8, 11, origins=("pow_1",)),
        Buffer("buf1", "intermediate", BYTES, 9, 11, origins=("pow_2",)),
        Buffer("buf2", "output", BYTES, 10, 0, reuses="buf1", origins=("add",)),
        Buffer("buf3", "saved", None, 10),
    ),
    3 * BYTES,
    10,
)

CONTEST = Autotuning(
    "forward",
    "mm",
    ("pow_1", "pow_2"),
    ("float32[64, 32]", "float32[32, 16]"),
    (
        Kernel("extern_kernels.mm", "forward", "extern", "extern", ""),
        Kernel(
            "triton_mm", "forward", "triton", "template", "acc += tl.dot(a, b)",
            candidates=(Candidate((("BLOCK_K", 16), ("BLOCK_M", 64), ("num_stages", 3), ("num_warps", 4))),),
            machine=Machine("sm_90a", "Triton", 0, registers=40, shared=24576, spills=0, instructions=820),
        ),
        Kernel("decompose_k_mm", "forward", "graph", "", "bmm = aten.bmm(x, y)"),
    ),
)  # fmt: skip

CUDA_GRAPHS = CudaGraphs(
    "forward",
    False,
    True,
    (
        GraphPartition(True, ("op0",)),
        GraphPartition(False, ("op1",), (("op1", "cpu ops"),)),
        GraphPartition(True, ("op2",)),
    ),
    mutated_inputs=(MutatedInput("primals_1", "add", True),),
)

PROFILE = Profile(
    "trace.json",
    "cpu",
    (
        MeasuredGraph(
            "3/0", "forward", "0/0", 2, 5e-5,
            (
                MeasuredKernel("k0", BY_NAME, "k0", 2, 3e-5, 1e-5, 1.5e-5, 2e-5, None, (), ("sin", "cos"), ("a.b",)),
            ),
            (MeasuredEvents("aten::empty", 2, 1e-6),),
            (Missing("k1", "the trace does not hold it"),),
        ),
        MeasuredGraph("4/0", "inference", "", 1, 1e-5, missing=(Missing("kernels", "it is not in this record"),)),
    ),
)  # fmt: skip

BENCHMARK = Benchmark(
    (
        Series("eager", "forward", (2e-5, 2.2e-5, 2.1e-5), 11 * BYTES, None),
        Series("compiled", "forward", (1e-5, 1.1e-5, 1.05e-5), 2 * BYTES, 1),
    ),
    "cpu",
    "monotonic clock",
    3,
    (("dynamo", 0.2), ("inductor", 0.8)),
    DeviceSpeed("cpu", 2e10, 5e11, "float32", True),
)


def _loop(name: str, origins: tuple[str, ...], *args: str) -> Node:
    refs = tuple(Ref(a) for a in args)
    like = sample().compilations[0].graphs["forward.loops"].nodes[0]
    return dataclasses.replace(like, name=name, args=refs, origins=origins)


def _loops(first: Compilation) -> Graph:
    nodes = (
        Node("primals_1", "placeholder", "x", "input", outputs=first.graphs["forward"].nodes[0].outputs),
        _loop("op0", ("sin", "pow_1", "cos"), "primals_1"),
        _loop("op1", ("pow_2", "cos"), "op0"),
        _loop("op2", ("add",), "op1"),
    )
    return dataclasses.replace(first.graphs["forward.loops"], nodes=nodes)


def _groups(first: Compilation) -> Graph:
    loops = _loops(first).nodes
    nodes = tuple(
        n
        if n.op == "placeholder"
        else dataclasses.replace(n, op="group", origins=(n.name,), members=(n.name,))
        for n in loops
    )
    return dataclasses.replace(first.graphs["forward.groups"], nodes=nodes)


def _code(first: Compilation) -> Code:
    code = first.code["forward"]
    kernel = code.kernels[0]
    one = dataclasses.replace(kernel, name="k0", groups=("op0",), origins=("sin", "pow_1", "cos"))
    two = Kernel("k1", "forward", "cpp", "pointwise", "", launch_lines=(40,), groups=("op1", "op2"),
                 origins=("cos", "pow_2", "add"))  # fmt: skip
    return dataclasses.replace(code, text=code.text.replace(kernel.name, "k0"), kernels=(one, two))
