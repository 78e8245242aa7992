"""Lifetimes of buffers and saved tensors, against hand counts, the generated code, torch and the allocator."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._inductor.codegen import wrapper

from compile_lens import capture, versions
from compile_lens._torch.code import buffer_lifetimes, wrapper_buffers
from compile_lens.record.memory import Buffer, Memory, saved_bytes
from compile_lens.results.capture import Capture

N = 1000


def waves(x: Any) -> Any:
    return torch.sin(x) ** 2 + torch.cos(x) ** 2


def attention(q: Any, k: Any, v: Any) -> Any:
    return torch.softmax(torch.tanh(q @ k.transpose(-1, -2)), -1) @ v


def perceptron() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 32), torch.nn.LayerNorm(32)
    )


def heads(number: int = 3) -> list[Any]:
    return [torch.randn(1, 4, 64, 32, requires_grad=True) for _ in range(number)]


def grad(*shape: int) -> Any:
    return torch.randn(*shape, requires_grad=True)


def halves(z: Any) -> Any:
    a, b = (z * 2).chunk(2)
    return (a * b).view(-1)


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "waves": (waves, (grad(N),)),
    "perceptron": (perceptron(), (torch.randn(16, 64),)),
    "attention": (attention, tuple(heads())),
    "norm": (torch.nn.Sequential(torch.nn.LayerNorm(64), torch.nn.GELU()), (grad(128, 64),)),
    "cat": (lambda a, b: torch.cat([a.sin(), b.cos()]) @ a, (torch.randn(32, 32), torch.randn(32, 32))),
    "sort": (lambda x: torch.cos(torch.sort(torch.sin(x)).values), (torch.randn(N),)),
    "embedding": (lambda w, i: F.embedding(i, w).sin(), (grad(100, 16), torch.arange(50))),
    "views by a library": (halves, (torch.randn(4, 6, dtype=torch.cfloat),)),
}


@pytest.fixture(scope="module")
def captured() -> dict[str, Capture]:
    return {name: capture(f, *args) for name, (f, args) in CASES.items()}


def memories(seen: Capture) -> dict[str, Memory]:
    return {m.phase: m for m in seen.compilations[0].memory}


def buffer(found: Memory, name: str) -> Buffer:
    return next(b for b in found.buffers if b.name == name)


@pytest.mark.full
def test_the_waves_by_hand(captured: dict[str, Capture]) -> None:
    forward, backward = memories(captured["waves"]).values()
    assert [(b.name, b.kind, b.nbytes, b.free_line) for b in forward.buffers] == [
        ("primals_1", "input", 4 * N, 0),
        ("buf0", "output", 4 * N, 0),
    ]
    assert forward.peak == 8 * N and backward.peak == 12 * N
    assert forward.peak_line == buffer(forward, "buf0").alloc_line > 0
    assert buffer(forward, "buf0").origins == ("add",)
    assert not forward.reused and not forward.freed and not backward.donated


@pytest.mark.full
def test_the_waves_keep_x_and_the_default_would_keep_three(captured: dict[str, Capture]) -> None:
    partition = captured["waves"].compilations[0].partition
    assert partition is not None and partition.default is not None and partition.note == ""
    assert [k.node for k in partition.saved] == ["primals_1"]
    assert [k.node for k in partition.default] == ["primals_1", "sin", "cos"]
    assert saved_bytes(partition.saved) == 0 and saved_bytes(partition.default) == 8 * N
    assert set(partition.recomputed) == {"sin", "cos"}
    joint = {n.name for n in captured["waves"].compilations[0].graphs["joint"].nodes}
    assert {o for k in (*partition.saved, *partition.default) for o in k.origins} <= joint


@pytest.mark.full
def test_memory_is_reused_donated_and_freed(captured: dict[str, Capture]) -> None:
    backward = memories(captured["attention"])["backward"]
    assert {b.name for b in backward.donated} == {"bmm", "div"}, "the rest are views of the caller's inputs"
    taken = [b for b in backward.reused if b.reuses == "div"]
    assert len(taken) == 1 and buffer(backward, "div").free_line == taken[0].alloc_line
    assert "bmm" in {b.name for b in backward.freed} and "div" not in {b.name for b in backward.freed}
    assert all(b.free_line == 0 for b in backward.buffers if b.kind == "input" and not b.donated)


@pytest.mark.full
def test_the_forward_says_which_results_are_kept(captured: dict[str, Capture]) -> None:
    kinds = {b.origins: b.kind for b in memories(captured["attention"])["forward"].buffers if b.origins}
    assert kinds["bmm",] == "saved" and kinds["bmm_1",] == "output"
    partition = captured["attention"].compilations[0].partition
    assert partition is not None and "tanh" in partition.recomputed
    shared = [k.alias_of for k in partition.saved if k.node.startswith("permute")]
    assert sorted(shared) == ["primals_1", "primals_2", "primals_3"]
    assert saved_bytes(partition.saved) == 2 * 4 * 64 * 64 * 4, "the scores, and the weights"


def test_parts_of_a_buffer_are_within_it(captured: dict[str, Capture]) -> None:
    found = memories(captured["cat"])["inference"]
    whole = next(b for b in found.buffers if b.origins == ("cat",))
    parts = [b for b in found.buffers if b.base == whole.name]
    assert len(parts) == 2 and sum(b.nbytes or 0 for b in parts) == whole.nbytes
    assert found.peak == 2 * 4096 + 2 * 8192, "two inputs, the joined one, the product: parts take nothing"


def test_results_of_a_call_that_nobody_wants_are_held_too(captured: dict[str, Capture]) -> None:
    found = memories(captured["sort"])["inference"]
    (indices,) = [b for b in found.buffers if b.name.endswith("[1]")]
    values = next(b for b in found.buffers if b.origins == ("getitem",))
    assert indices.nbytes == 8 * N and indices.alloc_line == values.alloc_line and 0 < indices.free_line
    assert found.peak == 4 * N + 4 * N + 4 * N + 8 * N
    assert found.peak_line == values.alloc_line


@pytest.mark.parametrize("name", CASES)
def test_the_lines_name_the_buffers(captured: dict[str, Capture], name: str) -> None:
    seen = captured[name].compilations[0]
    checked = 0
    for found in seen.memory:
        lines = seen.code[found.phase].text.splitlines()
        assert not found.note and found.buffers
        for b in found.buffers:
            for number in filter(None, (b.alloc_line, b.free_line)):
                line = lines[number - 1]
                call = re.match(r"\s*(\w+) = torch\.ops\.", line)
                said = re.escape(b.name.partition("[")[0])
                named = re.search(rf"\b{said}\b", line)
                # A result of a library call exists at the call, and is freed with the tuple that contained it.
                assert named or call or re.match(r"\s*del \w+$", line), (b, line)
                checked += 1
            if b.reuses:
                assert re.search(rf"\b{b.name} = .*\b{b.reuses}\b.*del {b.reuses}", lines[b.alloc_line - 1])
    assert checked


@pytest.mark.skipif(versions.torch_version() < (2, 13), reason="the estimate of 2.11 leaves out the results")
@pytest.mark.parametrize(
    ("name", "same"),
    [("waves", True), ("cat", True), ("embedding", True), ("perceptron", False), ("norm", False)],
)
def test_the_peak_agrees_with_torchs_own_estimate(
    name: str, same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's estimate leaves out the inputs, and ignores memory reuse and buffers fused away inside kernels."""
    estimates: list[int] = []
    real = wrapper.EfficientPeakEstimate.__init__

    def init(self: Any) -> None:
        real(self)
        estimates.append(self.overall_peak_memory)

    monkeypatch.setattr(wrapper.EfficientPeakEstimate, "__init__", init)
    f, args = CASES[name]
    first, *_ = capture(f, *args).compilations[0].memory
    mine = (first.peak or 0) - sum(b.nbytes or 0 for b in first.buffers if b.kind == "input")
    reused = sum(b.nbytes or 0 for b in first.reused)
    assert mine == estimates[0] if same else 0 < estimates[0] - mine <= reused


def test_dynamic_sizes_are_those_that_were_seen() -> None:
    seen = capture(lambda a: (a @ a.T).relu().sum(0), grad(32, 8), dynamic=True)
    forward = memories(seen)["forward"]
    assert buffer(forward, "buf0").nbytes == 32 * 32 * 4 and isinstance(forward.peak, int)
    partition = seen.compilations[0].partition
    assert partition is not None and any(k.nbytes == 0 for k in partition.saved), "symbols are kept as well"


def test_a_size_that_depends_on_data_is_unknown() -> None:
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        seen = capture(lambda a: a.nonzero().float().sin(), torch.randn(32, 8))
    (found,) = seen.compilations[0].memory
    assert found.peak is None and "depend on data" in found.note
    assert any(b.nbytes is None for b in found.buffers) and any(b.nbytes == 1024 for b in found.buffers)


def test_a_branch_is_not_followed_and_says_so() -> None:
    def choose(x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos() @ x, (x,))

    (found,) = capture(choose, torch.randn(8, 8)).compilations[0].memory
    assert found.peak is None and "branch" in found.note and found.buffers


def test_a_mutated_input_is_its_callers() -> None:
    def bump(x: Any, y: Any) -> Any:
        x.add_(1)
        return x * y

    (found,) = capture(bump, torch.randn(N), torch.randn(N)).compilations[0].memory
    assert [b.kind for b in found.buffers] == ["input", "input", "output"] and found.peak == 12 * N


def test_a_torch_that_differs_loses_the_buffers_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise AttributeError("no name_to_buffer here")

    monkeypatch.setattr(buffer_lifetimes, "CallMemory", broken)
    seen = capture(waves, grad(N))
    assert all("no name_to_buffer here" in m.note and not m.buffers for m in seen.compilations[0].memory)
    assert seen.kernels and seen.compilations[0].partition is not None


def step(x: Any, w: Any) -> Any:
    """A view that is a result, a number that depends on sizes, enough pointwise operators for a checkpoint."""
    kept = x.view(-1).sin()
    return kept.view(x.shape) @ w, kept * x.size(0), torch.nn.functional.dropout(x, 0.5).exp().sum()


CHOICES: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    **{n: (*CASES[n], {}) for n in ("waves", "perceptron", "attention", "norm", "cat", "sort", "embedding")},
    "step": (step, (grad(32, 32), grad(32, 8)), {}),
    "batch norm": (torch.nn.Sequential(torch.nn.BatchNorm1d(16), torch.nn.GELU()), (grad(8, 16),), {}),
    "convolution": (torch.nn.Conv2d(3, 4, 3), (grad(2, 3, 8, 8),), {}),
    "recurrent": (torch.nn.GRUCell(8, 8), (grad(4, 8),), {}),
}
"""Functions with a backward, their arguments and the options of their captures."""


@pytest.mark.full
@pytest.mark.parametrize("cse", [True, False], ids=["merged", "not merged"])
@pytest.mark.parametrize("name", [n for n, (f, a, _) in CHOICES.items() if n not in ("cat", "sort")])
@pytest.mark.cases(full=6)
def test_the_default_choice_is_what_the_default_partitioner_makes(
    name: str, cse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oracle is the pair of graphs that the default partitioner builds; the capture builds neither."""
    from torch._functorch import config, partitioners
    from torch._inductor import compile_fx

    made: list[list[str]] = []
    real = compile_fx.min_cut_rematerialization_partition

    def both(gm: Any, inputs: Any, **kwargs: Any) -> Any:
        graph = torch.fx.Graph()
        output = graph.graph_copy(gm.graph, {}, return_output_node=True)
        graph.output(output[0] if isinstance(output, tuple) else output)
        wanted = {k: v for k, v in kwargs.items() if k != "compiler"}
        _, backward = partitioners.default_partition(torch.fx.GraphModule(gm, graph), inputs, **wanted)
        names = [n.name for n in backward.graph.nodes if n.op == "placeholder"]
        made.append([n for n in names if not n.startswith("tangents")])
        return real(gm, inputs, **kwargs)

    monkeypatch.setattr(compile_fx, "min_cut_rematerialization_partition", both)
    f, args, options = CHOICES[name]
    with config.patch(cse=cse):
        partition = capture(f, *args, **options).compilations[0].partition
    assert partition is not None and partition.default is not None, partition
    assert [sorted(k.node for k in partition.default)] == [sorted(m) for m in made]


@pytest.mark.full
def test_asking_leaves_the_choice_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from compile_lens._torch.graphs import partitioner

    def texts() -> dict[str, str]:
        code = capture(perceptron(), torch.ones(16, 64)).code
        return {
            phase: text.partition("\n")[2] for phase, text in code.items()
        }  # without the number of the compile

    asked = texts()
    monkeypatch.setattr(partitioner, "_default_choice", lambda *_: (None, "not queried"))
    assert texts() == asked and asked


def test_checkpoints_are_partitioned_too() -> None:
    from torch.utils.checkpoint import checkpoint

    def f(x: Any) -> Any:
        return checkpoint(lambda y: torch.sin(torch.exp(y)).sum(), x, use_reentrant=False)

    partition = capture(f, grad(N)).compilations[0].partition
    assert partition is not None and [k.alias_of for k in partition.saved] == ["primals_1"]
    assert partition.default is not None or partition.note


def test_the_record_holds_it(captured: dict[str, Capture]) -> None:
    for seen in captured.values():
        again = Capture.from_json(seen.to_json())
        assert [c.memory for c in again.compilations] == [c.memory for c in seen.compilations]
        assert [c.partition for c in again.compilations] == [c.partition for c in seen.compilations]
        assert not again.unknown_fields


def test_text_without_a_call_says_so() -> None:
    found = wrapper_buffers.CallMemory("cpp_wrapper_src = '''…'''", lambda name: None).memory("forward")
    assert found.peak is None and "no call()" in found.note


def test_pools_and_partitions_of_the_text() -> None:
    facts = {"buf0": wrapper_buffers.BufferFacts(64), "buf1": wrapper_buffers.BufferFacts(64)}
    text = "\n".join(
        [
            "def call(args):",
            "    pool0 = empty_strided_cuda((32, ), (1, ), torch.float32)",
            "    buf0 = alloc_from_pool(pool0, 0, torch.float32, (16, ), (1, ))",
            "    kernel(buf0)",
            "    del buf0",
            "    buf1 = alloc_from_pool(pool0, 64, torch.float32, (16, ), (1, ))",
            "    return (buf1, )",
        ]
    )
    found = wrapper_buffers.CallMemory(text, facts.get).memory("inference")
    assert [(b.name, b.nbytes, b.base, b.alloc_line, b.free_line) for b in found.buffers] == [
        ("pool0", 128, "", 2, 0),
        ("buf0", 64, "pool0", 3, 5),
        ("buf1", 64, "pool0", 6, 0),
    ]
    assert found.peak == 128 and buffer(found, "buf1").kind == "output"
    split = "def call(self, args):\n    out = self.partitions[0](args)\n    return out"
    assert "partitions" in wrapper_buffers.CallMemory(split, facts.get).memory("inference").note


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="builds C++")
@pytest.mark.parametrize("name", ["perceptron", "attention", "cat", "norm", "views by a library"])
@pytest.mark.cases(full=2)
def test_the_peak_is_what_the_allocator_sees(captured: dict[str, Capture], name: str, tmp_path: Path) -> None:
    """The built module runs, and the allocator's allocations and frees are summed."""
    seen = captured[name].compilations[0]
    for found in seen.memory:
        file = tmp_path / f"{found.phase}.py"
        file.write_text(seen.code[found.phase].text)
        spec = importlib.util.spec_from_file_location(f"held_{name}_{found.phase}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        inputs = [n for n in seen.graphs[found.phase].nodes if n.op == "placeholder"]
        kept = [n.name not in {b.name for b in found.donated} for n in inputs]
        assert highest(module.call, [n.outputs[0] for n in inputs], kept) == found.peak, found.phase


def highest(call: Any, tensors: list[Any], kept: list[bool]) -> int:
    """The peak of allocated bytes while ``call`` runs; its caller keeps the inputs marked in ``kept``."""

    def make() -> list[Any]:
        return [
            torch.zeros(t.shape, dtype=getattr(torch, t.dtype)).as_strided(t.shape, t.stride) for t in tensors
        ]

    call(make())  # one-time setup
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as run:
        args = make()
        owned = [a for a, keep in zip(args, kept, strict=True) if keep]
        results = call(args)
    assert owned and results
    now = most = 0
    for event in run.profiler.kineto_results.events():
        if event.name() == "[memory]":
            now += event.nbytes()
            most = max(most, now)
    return most


def test_an_input_that_may_be_misaligned_is_held_once() -> None:
    """GPU code binds some inputs to their own names, and copies only those that are misaligned."""
    x = torch.rand(1000, requires_grad=True)
    record = capture(lambda x: torch.sin(x) ** 2 + torch.cos(x) ** 2, x, target="h100")
    # torch 2.11 leaves the alignment to the caller of the module.
    assert "copy_if_misaligned(" in record.code["backward"] or torch.__version__.startswith("2.11.")
    # By hand: the input and the result; the input, the gradient of the result, and the gradient of the input.
    peaks = {m.phase: m.peak for m in record.compilations[0].memory}
    assert peaks == {"forward": 2 * 4000, "backward": 3 * 4000}
    kinds = {b.name: b.kind for m in record.compilations[0].memory for b in m.buffers}
    assert kinds["tangents_1"] == "input"


@pytest.mark.parametrize("uses", [1, 2])
def test_the_operand_of_a_custom_operator_is_the_value_of_its_line(uses: int) -> None:
    """Inductor copies the operand into a new buffer, and does not name the value that the copy has."""
    with torch.library._scoped_library("lifetimes", "FRAGMENT") as library:
        library.define("halved(Tensor x) -> Tensor")
        library.impl("halved", lambda x: x / 2, "CPU")
        library.impl("halved", torch.empty_like, "Meta")

        def f(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
            hot = torch.tanh(a)
            return (torch.ops.lifetimes.halved(hot).amax(0), hot.sum(1))[:uses]

        (memory,) = capture(f, torch.rand(24, 8)).compilations[0].memory
    tanh = [b for b in memory.buffers if b.origins == ("tanh",)]
    assert [b.nbytes for b in tanh] == [24 * 8 * 4] and all(b.origins for b in memory.buffers)


def test_the_part_of_a_reduction_in_two_steps_is_no_value_of_the_program() -> None:
    memory = memories(capture(lambda x: x.sum(), torch.rand(2_000_000), target="h100"))["inference"]
    parts = [b for b in memory.buffers if b.kind != "input" and b.nbytes != 4]
    assert parts and not any(b.origins for b in parts)
