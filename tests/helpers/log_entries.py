"""Log lines as torch writes them under ``TORCH_TRACE``, for tests that need no torch: written by hand, with the
checksums of their texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

HEAD = "V1123 19:15:20.875000 6788 torch/_logging/structured.py:22] "
FILES = ("model.py", "/site-packages/torch/_dynamo/convert_frame.py")


def entry(kind: str, facts: Any = None, text: str | None = None, id: str = "", **more: Any) -> str:
    """Return the lines of an entry; ``id`` is its compile id, ``text`` its payload."""
    head: dict[str, Any] = {kind: {} if facts is None else facts, **more}
    if id:
        frame, form = id.split("/")
        head |= {"frame_id": int(frame), "frame_compile_id": int(form), "attempt": more.get("attempt", 0)}
    if text is None:
        return HEAD + json.dumps(head) + "\n"
    head["has_payload"] = hashlib.md5(text.encode()).hexdigest()
    return HEAD + json.dumps(head) + "\n" + "".join(f"\t{line}\n" for line in text.split("\n"))


def artifact(name: str, text: str, id: str = "", **more: Any) -> str:
    """Return the lines of an artifact."""
    return entry("artifact", {"name": name, "encoding": "json"}, text, id, **more)


def names() -> str:
    """Return the entries that assign numbers to file names."""
    return "".join(entry("str", [name, number]) for number, name in enumerate(FILES))


def start(id: str, function: str = "f", line: int = 3, callers: Sequence[tuple[str, int]] = ()) -> str:
    """Return the entry with which a compile begins; ``callers`` are functions and lines of its stack."""
    stack = [{"line": at, "name": name, "filename": 0} for name, at in (*callers, (function, line))]
    return entry("dynamo_start", {"stack": stack}, id=id)


GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, L_x_: "f32[4][1]cpu"):
        l_x_ = L_x_
        sin: "f32[4][1]cpu" = torch.sin(l_x_);  l_x_ = None
        cos: "f32[4][1]cpu" = torch.cos(sin);  sin = None
        return (cos,)
        """

GUARDS = (
    "\nTREE_GUARD_MANAGER:\n+- RootGuardManager\n"
    "| +- GuardManager: source=L['x'], accessed_by=DictGetItemGuardAccessor('x'), "
    "type=<class 'torch.Tensor'>, tag_safe=(0)\n"
    "| | +- TENSOR_MATCH: check_tensor(L['x'], Tensor, DispatchKeySet(CPU), torch.float32, device=None, "
    "requires_grad=False, size=[4], stride=[1])\n"
)


def metrics(id: str, older: bool = False, **facts: Any) -> str:
    """Return the entry with which a compile ends; ``older`` as from a torch that logged no graph breaks."""
    known: dict[str, Any] = {"guard_count": 1, "graph_op_count": 2, "entire_frame_compile_time_s": 0.25}
    known |= {"fail_type": None} | ({} if older else {"dynamo_cumulative_compile_time_us": 1}) | facts
    return entry("compilation_metrics", known, id=id)


def compiled(id: str, function: str = "f", line: int = 3, reasons: Sequence[str] = (), **facts: Any) -> str:
    """Return the entries of a compile that succeeded, with one graph and one generated module."""
    again = artifact("recompile_reasons", json.dumps(list(reasons)), id) if reasons else ""
    return (
        start(id, function, line)
        + again
        + entry("dynamo_output_graph", {"sizes": {}}, GRAPH, id)
        + entry("inductor_output_code", {"filename": "/tmp/c.py"}, "def call(args):\n    pass", id)
        + entry("dynamo_cpp_guards_str", None, GUARDS, id)
        + metrics(id, **facts)
    )


AOT_GRAPH = """class <lambda>(torch.nn.Module):
    def forward(self, arg0_1: "f32[4][1]cpu"):
        sin: "f32[4][1]cpu" = torch.ops.aten.sin.default(arg0_1);  arg0_1 = None
        return (sin,)
        """

WRAPPER = """#include <torch/csrc/inductor/aoti_include/cpu.h>
extern "C"  void cpp_fused_sin_0(const float* in_ptr0,
                                 float* out_ptr0);
"""


def ahead(kernels: dict[str, list[str]] | None = None) -> str:
    """Return the entries of a model that AOTInductor compiles: none has a compile id."""
    provenance = {"preToPost": {}, "postToPre": {}, "cppCodeToPost": kernels, "postToCppCode": {}}
    mapping = (
        artifact("inductor_provenance_tracking_node_mappings", json.dumps(provenance)) if kernels else ""
    )
    wrapper = {"name": "inductor_aot_wrapper_code", "type": "cpp", "filename": "/tmp/model.wrapper.cpp"}
    return (
        artifact("before_pre_grad_graph", GRAPH)
        + entry("aot_inference_graph", None, AOT_GRAPH)
        + entry("graph_dump", wrapper, WRAPPER)
        + entry("graph_dump", {**wrapper, "name": "inductor_aot_kernel_code"}, "// the kernels")
        + mapping
        + entry("compilation_metrics", {"start_time_us": 1})
    )
