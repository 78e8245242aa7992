"""A small program built by hand, whose figures are easy to count, and a copy with hostile strings."""

from __future__ import annotations

from compile_lens.record.breaks import BREAK, LIMIT, Ending
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import DynamicDim
from compile_lens.record.cuda_graphs import CudaGraphs, GraphPartition, MutatedInput, ProgramCudaGraphs
from compile_lens.record.graph import Frame, Source
from compile_lens.record.program import (
    COMPILED,
    FUNCTION_RUNS_EAGERLY,
    NO_GRAPH,
    REST_RUNS_EAGERLY,
    SKIPPED,
    Break,
    CompileEvent,
    FailedGuard,
    FrameEvaluation,
    GuardOrigin,
    LibrarySkips,
    ProgramFrame,
    ProgramGraph,
    ProgramRecord,
    Recompilation,
    TracedFunction,
)
from compile_lens.record.program import (
    LIMIT as AT_LIMIT,
)

FILE = "train.py"


def program(hostile: str = "") -> ProgramRecord:
    """Return two functions: ``step`` (lines 1 to 6), with a graph break on line 3, recompiled, at its limit; and
    ``left`` (lines 8 to 10), which was skipped."""
    name, file = f"step{hostile}", f"{FILE}{hostile}"
    at = Frame(file, 3, name, f"print('x'){hostile}", 4, 14)
    ending = Ending(
        BREAK,
        f"a print{hostile}\n  Explanation: it prints{hostile}",
        (at,),
        f"do not{hostile}",
        "https://x.test/gb1",
    )
    size = FailedGuard("0/0", f"size{hostile}", f"x.size(0){hostile}", "3", "4", at)
    dim = DynamicDim(f"L['x'].size(0){hostile}", "s0", 4)
    traced = (TracedFunction(file, name, 1, ((1, 3),), ((2, 6),)),)
    call = Frame(file, 20, "<module>")
    whole = ProgramFrame(
        name,
        file,
        1,
        None,
        ((2, 6),),
        (
            FrameEvaluation(
                COMPILED,
                "0/0",
                caller=call,
                backend="inductor",
                graphs=(0,),
                traced_functions=traced,
                seconds=0.5,
                number=0,
                breaks=(Break(ending, "a print", "GB0001", graph=0),),
                guards=(GuardOrigin(f"g{hostile}", line=at),),
            ),
            FrameEvaluation(
                COMPILED,
                "0/1",
                caller=call,
                backend="inductor",
                graphs=(2,),
                traced_functions=traced,
                seconds=0.25,
                number=2,
                recompilation=Recompilation((size,), 1, 2, (dim,)),
                dynamic=(dim,),
            ),
            FrameEvaluation(
                AT_LIMIT,
                "0/2",
                Ending(LIMIT, "too often", (at,)),
                call,
                backend="inductor",
                limit="recompile_limit",
                eager_lines=((2, 6),),
                number=4,
                recompilation=Recompilation((size,), 2, 2),
            ),
        ),
    )
    rest = ProgramFrame(
        name,
        file,
        1,
        3,
        ((3, 6),),
        (
            FrameEvaluation(
                COMPILED,
                "1/0",
                caller=at,
                backend="inductor",
                graphs=(1,),
                number=1,
                seconds=0.125,
                eager_lines=((6, 6),),
                traced_functions=(TracedFunction(file, name, 1, ((3, 5),), ((2, 6),)),),
                breaks=(
                    Break(
                        Ending(BREAK, "a try", (Frame(file, 6, name),)), outcome=REST_RUNS_EAGERLY, graph=1
                    ),
                ),
            ),
        ),
    )
    left = ProgramFrame(
        "left",
        file,
        8,
        None,
        ((9, 10),),
        (
            FrameEvaluation(
                SKIPPED,
                "2/0",
                Ending(BREAK, "a loop", (Frame(file, 9, "left"),)),
                call,
                eager_lines=((9, 10),),
                number=3,
                breaks=(
                    Break(Ending(BREAK, "a loop", (Frame(file, 9, "left"),)), outcome=FUNCTION_RUNS_EAGERLY),
                ),
            ),
            FrameEvaluation(NO_GRAPH, "2/1", number=5),
        ),
    )
    graphs = tuple(
        ProgramGraph(n, i, 4, (f"x: float32[3] cpu{hostile}",)) for n, i in enumerate(("0/0", "1/0", "0/1"))
    )
    return ProgramRecord(
        f"train.py{hostile}", Environment("0", "2.13.0", "", "3.12.0", "Linux x86_64", "", ""),
        ("--epochs", f"2{hostile}"),
        f"the program ended{hostile}", (whole, rest, left), (), graphs,
        (CompileEvent("dynamo", 0.0, 875_000.0, id="0/0"), CompileEvent("fx_graph_cache_hit", 2.0),
         CompileEvent("fx_graph_cache_miss", 3.0, detail=(("cache_status_detailed", "full_miss"),)),
         CompileEvent("autograd_cache_bypass", 4.0, detail=(("cache_bypass_reason", f"an op{hostile}"),)),
         CompileEvent(f"inside{hostile}", 1.0, 500_000.0, depth=1)),
        (LibrarySkips(f"a skipfile{hostile}", 7),),
        (Source(file, 1, name, "def step(x):\n    y = x\n    print('x')\n    if y:\n        y\n    return y" + hostile),
         Source(file, 8, "left", "def left(x):\n    for _ in x:\n        pass")),
        cuda_graphs=(
            ProgramCudaGraphs(0, "0/0", f"h100{hostile}", CudaGraphs(
                "inference", False, True,
                (GraphPartition(True, ("op0",)), GraphPartition(False, ("op1",), (("op1", f"cpu ops{hostile}"),))),
                mutated_inputs=(MutatedInput(f"arg0_1{hostile}", "copy_"),)),
                (f"may differ{hostile}",), (("op1", (at,)),)),
            ProgramCudaGraphs(1, "1/0", "h100", CudaGraphs("", False, False, unknown_reason=f"it failed{hostile}")),
        ),
        notes=(f"a note{hostile}",), seconds=3.5, overhead_seconds=0.01, created="2026-01-01",
    )  # fmt: skip
