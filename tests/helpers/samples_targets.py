"""Small captures of one function for several targets, built by hand: operators, loops, groups and kernels by line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from compile_lens.record.capture import Environment, Options
from compile_lens.record.compilation import Compilation
from compile_lens.record.decision import Decision
from compile_lens.record.device import DeviceModel, DeviceProperty, DeviceQuery, Target
from compile_lens.record.graph import Frame, Graph, Node, Ref, Tensor
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.lowering import Pass
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture

QUESTIONS = (DeviceQuery("Tensor.is_cuda", "False", Frame("/home/me/model.py", 1, "f", "if x.is_cuda:")),)
FILE = "/home/me/model.py"
_OUT = Tensor("float32", (64, 50), (50, 1), "cpu", 12_800)
LINES = {1: "h = layer(x)", 2: "return softmax(h)"}


@dataclass
class Made:
    """Parts of a capture. Nodes are ``name: (target, line, inputs)``; lowered ones may have ``origins``.

    Loops are ``name: (kind, target, origins, inputs)``, kernels ``(name, language, kind, groups)``.
    """

    target: str
    handed: dict[str, tuple[str, int, tuple[str, ...]]] = field(default_factory=dict)
    lowered: dict[str, tuple[str, int, tuple[str, ...]]] | None = None
    origins: dict[str, tuple[str, ...]] = field(default_factory=dict)
    loops: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = field(default_factory=dict)
    groups: tuple[tuple[str, ...], ...] = ()
    kernels: tuple[tuple[str, str, str, tuple[str, ...]], ...] = ()
    decisions: tuple[Decision, ...] = ()
    passes: tuple[Pass, ...] = ()
    cores: int = 0
    dtype: str = "float32"
    no_code: str = ""
    device: str = "cuda"

    def capture(self) -> Capture:
        lowered = self.lowered if self.lowered is not None else self.handed
        handed = [_node(n, *found, dtype=self.dtype) for n, found in self.handed.items()]
        post = [_node(n, *f, origins=self.origins.get(n, (n,)), dtype=self.dtype) for n, f in lowered.items()]
        x = Node("x", "placeholder", "x", "input", outputs=(_OUT,))
        loops = [_loop(n, *found) for n, found in self.loops.items()]
        groups = [_group(members, self.loops) for members in self.groups]
        kernels = tuple(self._kernel(*k) for k in self.kernels)
        code: Code | Missing = Code(
            "inference",
            "# the module",
            "generated only",
            self.device,
            kernels,
            self.target,
            ("the launches",),
        )
        if self.no_code:
            code = Missing("inference.code", self.no_code)
        stages = (
            Graph("inference", "", "", (x, *handed)),
            Graph("post_grad", "inference", "inference", (x, *post)),
            Graph("loops", "inference", "inference.post_grad", (x, *loops)),
            Graph("groups", "inference", "inference.loops", tuple(groups)),
            code,
        )
        compilation = Compilation(
            "0/0", "f", FILE, 1, stages, decisions=(("inference", self.decisions),), passes=self.passes
        )
        figures = (DeviceProperty("multi_processor_count", self.cores, "made up"),) if self.cores else ()
        model = DeviceModel(self.target, f"Device {self.target}", self.device, "", properties=figures)
        return Capture(
            "f",
            Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", self.device),
            Options(target=self.target),
            ("x: float32[64, 50] cpu",),
            compilations=(compilation,),
            target=Target(self.target, model, "in a child process", ("the whole capture",), QUESTIONS),
        )

    def _kernel(self, name: str, language: str, kind: str, groups: tuple[str, ...]) -> Kernel:
        members = [m for g in groups for group in self.groups if "_".join(group) == g for m in group]
        origins = tuple(dict.fromkeys(o for m in members for o in self.loops[m][2]))
        source = "" if language == "extern" else f"// {name}"
        return Kernel(name, "inference", language, kind, source, 1, 1, (1,), groups, origins)


def _node(
    name: str,
    target: str,
    line: int,
    inputs: tuple[str, ...],
    origins: tuple[str, ...] = (),
    dtype: str = "float32",
) -> Node:
    frames = (Frame(FILE, line, "f", LINES.get(line, "")),) if line else ()
    out = Tensor(dtype, (64, 50), (50, 1), "cpu", 12_800)
    args = tuple(Ref(i) for i in inputs)
    return Node(
        name, "call_function", target, "pointwise", True, args, outputs=(out,), frames=frames, origins=origins,
        reads=1, writes=1,
    )  # fmt: skip


def _loop(name: str, kind: str, target: str, origins: tuple[str, ...], inputs: Sequence[str]) -> Node:
    args = tuple(Ref(i) for i in inputs)
    op = "extern" if kind == "extern" else "loop"
    return Node(name, op, target, kind, True, args, outputs=(_OUT,), origins=origins, reads=1, writes=1)


def _group(
    members: tuple[str, ...], loops: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]]
) -> Node:
    kind = loops[members[0]][0]
    target = " + ".join(loops[m][1] for m in members)
    return Node(
        "_".join(members), "group", target, kind, True, outputs=(_OUT,), origins=members, members=members,
        reads=1, writes=1,
    )  # fmt: skip


def pair(target: str, fused: bool, language: str = "triton", decisions: tuple[Decision, ...] = ()) -> Made:
    """Return ``sin`` on line 1 and a sum of it on line 2: one kernel, or two."""
    groups: tuple[tuple[str, ...], ...] = (("op0", "op1"),) if fused else (("op0",), ("op1",))
    kernels = tuple((f"k_{'_'.join(g)}", language, "reduction", ("_".join(g),)) for g in groups)
    return Made(
        target,
        handed={"sin": ("aten.sin.default", 1, ("x",)), "sum": ("aten.sum.dim_IntList", 2, ("sin",))},
        loops={
            "op0": ("pointwise", "Pointwise 64 × 50", ("sin",), ("x",)),
            "op1": ("reduction", "Reduction sum over 50", ("sum",), ("op0",)),
        },
        groups=groups,
        kernels=kernels,
        decisions=decisions,
    )


def scan(target: str, library: bool) -> Made:
    """Return a cumulative sum: a library call, or a kernel."""
    name, language, kind = (
        ("torch.ops.aten.cumsum.default", "extern", "extern") if library else ("k_scan", "triton", "scan")
    )
    return Made(
        target,
        handed={"cumsum": ("aten.cumsum.default", 1, ("x",))},
        loops={"op0": (kind, "aten.cumsum.default" if library else "Scan 64", ("cumsum",), ("x",))},
        groups=(("op0",),),
        kernels=((name, language, kind, ("op0",)),),
    )


def reduction(target: str, split: bool, cores: int = 0) -> Made:
    """Return a reduction: a sum in one step or in two."""
    loops = {"op0": ("reduction", "Reduction sum over 50", ("sum",), ("x",))}
    groups: tuple[tuple[str, ...], ...] = (("op0",),)
    if split:
        loops["op0"] = ("reduction", "Reduction sum over 10, for 5", ("sum",), ("x",))
        loops["op1"] = ("reduction", "Reduction sum over 5", ("sum",), ("op0",))
        groups = (("op0",), ("op1",))
    return Made(
        target,
        handed={"sum": ("aten.sum.default", 1, ("x",))},
        loops=loops,
        groups=groups,
        kernels=tuple((f"k_{g[0]}", "triton", "reduction", g) for g in groups),
        cores=cores,
    )


def attention(target: str, name: str) -> Made:
    """Return one library call, named for the device."""
    target_name = f"aten.{name}.default"
    return Made(
        target,
        handed={name: (target_name, 1, ("x",))},
        loops={"op0": ("extern", target_name, (name,), ("x",))},
        groups=(("op0",),),
        kernels=((f"torch.ops.{target_name}", "extern", "extern", ("op0",)),),
    )
