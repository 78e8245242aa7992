"""Every "to try" advice is tried: a case that gets it, and a new capture with it applied that shows the effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import compile_lens
from compile_lens.measures import unfused_pairs
from compile_lens.measures.fusion_remedies import SAME_DIMENSIONS, SAME_ELEMENTS
from compile_lens.record.compilation import PHASES
from compile_lens.record.decision import CUSTOM_REMEDY, REASONS
from compile_lens.record.lowering import REALIZED
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

X = torch.linspace(-3, 3, 64 * 32).reshape(64, 32)
Y = X + 1
SQUARE = torch.linspace(-3, 3, 128 * 128).reshape(128, 128)
ONE = torch.tensor(2.0)


@torch.library.custom_op("lens_remedies::plus", mutates_args=())
def plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


plus.register_fake(lambda x, y: torch.empty_like(x))


def three(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return torch.sin(x), torch.cos(x), torch.exp(x)


def folded(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(1), x.view(32, 64).sum(1)


def alike(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(1), x.exp().sum(1)


def little(x: torch.Tensor, y: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x + s, y * s


def buffers(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sin() + y, x.cos() - y


# A reason, a case of it, and the case with its remedy applied: each has a function, its inputs, options, and a pair.
CASES: list[tuple[str, Any, Any]] = [
    ("different sizes", (lambda x: (x.sin(), x[:10].cos()), (X,), {}, ("sin", "cos")),
     (lambda x: (x.sin(), x.cos()), (X,), {}, ("sin", "cos"))),
    ("different loops", (folded, (X,), {}, ("sum_1", "sum_2")), (alike, (X,), {}, ("sum_1", "sum_2"))),
    ("reduction barrier", (lambda x: torch.softmax(x, 0), (SQUARE,), {}, ("amax", "sub")),
     (lambda x: torch.softmax(x, -1), (SQUARE,), {}, ("amax", "sub"))),
    ("little shared data", (little, (X, Y, ONE), {}, ("add", "mul")),
     (little, (X, Y, ONE), {"score_fusion_memory_threshold": 1}, ("add", "mul"))),
    ("different indices", (lambda x: (x.sin() + 1, x.t().contiguous().cos()), (X,), {}, ("add", "cos")),
     (lambda x: (x.sin() + 1, x.cos()), (X,), {}, ("add", "cos"))),
    ("different indices", (lambda x: (x.sum(0), x.exp().sum(1)), (SQUARE,), {}, ("sum_1", "sum_2")),
     (lambda x: (x.sum(1), x.exp().sum(1)), (SQUARE,), {}, ("sum_1", "sum_2"))),
    ("too large", (three, (X,), {"max_fusion_size": 1}, ("sin", "cos")),
     (three, (X,), {"max_fusion_size": 3}, ("sin", "cos"))),
    ("too large", (three, (X,), {"cpp.max_horizontal_fusion_size": 1}, ("sin", "cos")),
     (three, (X,), {"cpp.max_horizontal_fusion_size": 3}, ("sin", "cos"))),
    ("too large", (buffers, (X, Y), {"max_fusion_unique_io_buffers": 1}, ("add", "sub")),
     (buffers, (X, Y), {"max_fusion_unique_io_buffers": 8}, ("add", "sub"))),
    ("different indices", (lambda x: (x.sum(-1), x.flip(1).amax(1)), (SQUARE,), {}, ("sum_1", "amax")),
     (lambda x: (x.sum(-1), x.amax(1)), (SQUARE,), {}, ("sum_1", "amax"))),
]  # fmt: skip

PARTS = {4: SAME_ELEMENTS, 5: SAME_DIMENSIONS, 9: SAME_ELEMENTS}
"""The part of the reason's remedy that applies to a case, by its number."""

OWN_TESTS = {"split reduction"}


def test_every_remedy_has_a_test() -> None:
    assert {key for key, _, _ in CASES} | OWN_TESTS == {k for k, r in REASONS.items() if r.remedy}
    assert {k for k, r in REALIZED.items() if r.remedy} == {key for key, _, _, _ in LIMITS}


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{n} {c[0]}" for n, c in enumerate(CASES)])
def test_a_remedy_of_the_scheduler_fuses_the_two(number: int) -> None:
    reason, case, applied = CASES[number]
    found = [
        compile_lens.capture(function, *args, options=options or None).why(*pair)
        for function, args, options, pair in (case, applied)
    ]
    assert (found[0].verdict, found[0].reason) == ("not fused", reason)
    assert found[0].remedy == PARTS.get(number, REASONS[reason].remedy) and "to try: " in str(found[0])
    assert found[1].verdict == "fused" and not found[1].remedy


def chain(x: torch.Tensor, count: int) -> torch.Tensor:
    for number in range(count):
        x = x * 1.5 + number
    return x


def read_again(*xs: torch.Tensor) -> tuple[torch.Tensor, ...]:
    y = sum(xs[1:], xs[0])
    return y.sin(), y.cos(), y.exp()


def grows(*xs: torch.Tensor) -> torch.Tensor:
    return chain(sum(xs[1:], xs[0]), 8)


def reads(*xs: torch.Tensor) -> torch.Tensor:
    return sum(xs[1:], xs[0]).sin()


LIMITS: list[tuple[str, Callable[..., Any], int, tuple[str, int, int]]] = [
    ("many readers", read_again, 5, ("realize_reads_threshold", 4, 8)),
    ("many operations", grows, 3, ("realize_opcount_threshold", 10, 100)),
    ("many reads", reads, 20, ("realize_acc_reads_threshold", 3, 100)),
]


@pytest.mark.parametrize(("reason", "function", "count", "limit"), LIMITS, ids=[case[0] for case in LIMITS])
def test_a_remedy_of_lowering_inlines_the_value(reason: str, function: Any, count: int, limit: Any) -> None:
    name, low, high = limit
    inputs = [X + n for n in range(count)]
    kept = []
    for value in (low, high):
        (one,) = compile_lens.capture(function, *inputs, options={name: value}).compilations
        kept.append([entry for entry in one.lowered if entry.reason == reason])
    assert kept[0] and all(name in entry.evidence and "Raise the limit" in entry.remedy for entry in kept[0])
    assert kept[1] == []


def apart(capture: Capture) -> list[tuple[str, str]]:
    places = [(c.id, p) for c in capture.compilations for p in PHASES if f"{p}.groups" in c.graphs]
    pairs = [pair for cid, phase in places for pair in unfused_pairs.unfused_pairs(capture, cid, phase)]
    return [(pair.why.reason, pair.why.remedy) for pair in pairs]


def test_a_split_reduction_says_so_and_is_one_loop_without_the_split() -> None:
    square = torch.rand(1024, 1024)
    record = compile_lens.capture(lambda x: x.sum(), square, target="h100")
    assert apart(record) == [("split reduction", REASONS["split reduction"].remedy)]
    assert "split_reductions = False" in str(record.why("op0", "op1"))
    whole = compile_lens.capture(
        lambda x: x.sum(), square, target="h100", options={"split_reductions": False}
    )
    assert apart(whole) == [] and whole.ledger.total.groups == 1 < record.ledger.total.groups  # type: ignore[operator]


def test_a_reduction_over_the_last_dimension_is_not_told_to_be_one() -> None:
    """A sum over all elements must end before the division starts, whatever the dimension."""
    answer = compile_lens.capture(lambda x: x / x.sum(), X).why("sum_1", "div")
    assert (answer.verdict, answer.reason, answer.remedy) == ("not fused", "reduction barrier", "")


def test_a_custom_operator_that_is_written_out_is_fused() -> None:
    def custom(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cos(plus(torch.sin(x), y))

    def plain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cos(torch.sin(x) + y)

    record = compile_lens.capture(custom, X, Y)
    for pair in (("sin", "plus"), ("plus", "cos"), ("sin", "cos")):
        why = record.why(*pair)
        assert (why.reason, why.remedy) == ("extern", CUSTOM_REMEDY) and "matrix product" not in str(why)
    # plus is written, and read by cos only; sin is written, and read by plus only.
    assert record.why("plus", "cos").saved == record.why("sin", "plus").saved == 2 * X.nbytes
    assert compile_lens.capture(plain, X, Y).why("sin", "cos").verdict == "inlined"


@pytest.mark.parametrize("mode", [None, "max-autotune"])
@pytest.mark.parametrize("target", [None, "h100"])
def test_a_product_of_matrices_gets_no_advice_that_changes_nothing(
    mode: str | None, target: str | None
) -> None:
    record = compile_lens.capture(
        lambda a, b: torch.relu(a @ b), X, X.t().contiguous(), mode=mode, target=target
    )
    why = record.why("mm", "relu")
    assert (why.verdict, why.reason, why.remedy) == ("not fused", "extern", "") and "to try" not in str(why)


# Savings of a fusion ------------------------------------------------------------------------------------------


def total(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1).sin()


def both(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sin(), x.cos()


def centred(x: torch.Tensor) -> torch.Tensor:
    return x - x.sum(-1, keepdim=True)


def kept(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    s = x.sum(-1, keepdim=True)
    return s, x - s


def as_view(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    s = x.sum(-1, keepdim=True)
    return s.view(-1), x - s


@pytest.mark.parametrize("function", [total, both, centred, kept, as_view], ids=lambda f: f.__name__)
def test_what_fusing_saves_is_what_the_ablation_without_it_moves_more(function: Callable[..., Any]) -> None:
    from compile_lens.measures.steps import at_step
    from compile_lens.record.capture import ABLATIONS

    ablation = compile_lens.ablate(function, torch.rand(1000, 64))
    without = at_step(ablation, ABLATIONS[1])
    one, two = (
        node.name for node in without.compilations[0].graphs["inference.groups"].calls if node.compute
    )
    before, after = without.ledger.total.bytes_after, ablation.ledger.total.bytes_after
    assert ablation.ledger.total.groups == 1
    assert without.why(one, two).saved == before - after  # type: ignore[operator]


def test_a_product_and_what_follows_save_a_write_and_a_read() -> None:
    a, b = X, X.t().contiguous()
    size = 64 * 64 * 4
    record = compile_lens.capture(lambda a, b: torch.relu(a @ b), a, b)
    assert record.why("mm", "relu").saved == 2 * size

    def needed(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        m = a @ b
        return torch.relu(m), m.view(-1)

    assert compile_lens.capture(needed, a, b).why("mm", "relu").saved == size, (
        "m is a result: it is written anyway"
    )

    def read(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        m = a @ b
        return torch.relu(m), m @ m

    first = f"mm@{read.__code__.co_firstlineno + 1}"
    assert compile_lens.capture(read, a, b).why(first, "relu").saved == size, "another product reads m"


def moved(source: str) -> tuple[int, int]:
    """Bytes loaded and stored by a C++ kernel with one-dimensional float32 loops, counted in its text."""
    loads = stores = 0
    for part in source.split("for(int64_t x0=")[1:]:
        length = int(part.split("x0<static_cast<int64_t>(")[1].split("L)")[0])
        once = part.split("C10_UNLIKELY")[0]  # the tail loop does the same for the last few elements
        loads += 4 * length * once.count("::loadu(")
        stores += 4 * length * once.count(".store(")
    return loads, stores


@pytest.mark.parametrize("function", [
    lambda x, y: torch.cat([x, y]),
    lambda x, y: torch.cat([x, y]) * 2,
    lambda x, y: torch.cat([x.sin(), y.cos()]),
    lambda x, y: torch.cat([x.sin(), y, x.cos()]) + 1,
])  # fmt: skip
def test_a_concatenation_moves_what_the_loops_of_its_kernel_load_and_store(
    function: Callable[..., Any],
) -> None:
    """On a CPU the inputs are copied into place, and the next loop reads them again."""
    record = compile_lens.capture(function, torch.rand(1008), torch.rand(496))
    counted = [moved(kernel.source) for kernel in record.kernels]
    assert record.ledger.total.bytes_after == sum(loads + stores for loads, stores in counted) > 0


def test_a_concatenation_on_a_gpu_is_one_loop_that_moves_half_of_it() -> None:
    args = torch.rand(1000), torch.rand(500)
    here, there = (
        compile_lens.capture(
            lambda x, y: torch.cat([x, y]) * 2, *args, target=target
        ).ledger.total.bytes_after
        for target in (None, "h100")
    )
    assert (here, there) == (24_000, 12_000)


# Names --------------------------------------------------------------------------------------------------------


def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    hidden = F.linear(x, w)
    out = F.gelu(hidden)
    return F.layer_norm(out, (out.shape[-1],)).sum(0)


@pytest.mark.parametrize("name", ["gelu", "F.gelu", "torch.nn.functional.gelu", "aten.gelu.default", "out"])
def test_why_takes_the_names_that_users_wrote(name: str) -> None:
    record = compile_lens.capture(layer, X, X)
    names = [n.target for n in record.compilations[0].graphs["inference.post_grad"].nodes]
    assert not any("gelu" in target for target in names), "it is decomposed"
    assert record.why(name, "layer_norm").verdict in ("fused", "inlined")
    assert record.why("linear", name).reason == "extern"


def test_a_name_that_is_called_twice_is_not_guessed() -> None:
    record = compile_lens.capture(lambda x: F.gelu(F.gelu(x).sum(0)), X)
    for name in ("F.gelu", "gelu"):  # torch's own name of the first call
        with pytest.raises(
            compile_lens.UsageError, match=f"'{name}' is a name of several nodes: give one of.*gelu_1@"
        ):
            record.why(name, "sum_1")
    assert record.why("gelu_1", "sum_1").verdict == "fused"
    with pytest.raises(compile_lens.UsageError, match="no function that it calls"):
        record.why("silu", "sum_1")


def test_a_reduction_of_columns_beside_pointwise_work_has_no_remedy() -> None:
    """Inductor does not fuse them over the last dimension, either."""
    found = [
        compile_lens.capture(lambda x, d=d: (x.sum(d), x.exp()), SQUARE).why("sum_1", "exp") for d in (0, 1)
    ]
    assert (found[0].verdict, found[0].reason, found[0].remedy) == ("not fused", "different indices", "")
    assert found[1].verdict == "not fused"


def scores(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-1, -2) / 8
    return (scores + 0.1 * scores.tanh()).softmax(-1)


def likelihoods(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT * 2).tanh().log_softmax(-1)


@pytest.mark.parametrize("function", [scores, likelihoods], ids=lambda f: f.__name__)
def test_a_transpose_of_an_operand_is_not_told_to_be_between(function: Callable[..., Any]) -> None:
    """The text of a product includes its operands: ``q @ k.transpose(-1, -2)`` does not transpose its own result."""
    x = torch.linspace(-1, 1, 16 * 32 * 32).reshape(16, 32, 32)
    capture = compile_lens.capture(function, x, x + 1, backward=False)
    pairs = unfused_pairs.all_unfused_pairs(capture)
    assert pairs and not any("transpose" in pair.remedy for pair in pairs)


def after_triton(x: torch.Tensor) -> torch.Tensor:
    import triton_kernels

    return triton_kernels.launched(x.sin(), x).cos()


def after_custom(x: torch.Tensor) -> torch.Tensor:
    return plus(x.sin(), x).cos()


def after_library(x: torch.Tensor) -> torch.Tensor:
    return (x.sin() @ SQUARE).cos()


@pytest.mark.parametrize(
    ("program", "target", "called"),
    [
        (after_triton, "h100", "a Triton kernel of the program"),
        (after_custom, None, "a custom operator"),
        (after_library, None, "a library"),
    ],
)
def test_the_answer_names_what_is_called(
    program: Callable[[torch.Tensor], torch.Tensor], target: str | None, called: str
) -> None:
    """A kernel of the program itself is not called a library call."""
    capture = compile_lens.capture(program, SQUARE, target=target)
    around = capture.why("sin", "cos")
    assert around.answer.partition(": ")[0].endswith(f"stands between them, a call of {called}")
    assert f"stands between them: a call of {called}" in " ".join(around.facts)
    groups = capture.compilations[0].graphs["inference.groups"]
    (call,) = (group.name for group in groups.calls if group.kind == "extern")
    direct = capture.why(call, "cos")
    assert f" is a call of {called}: Inductor did not generate its loop" in direct.answer
    others = {"a library", "a custom operator", "a Triton kernel of the program"} - {called}
    for why in (around, direct):
        assert not any(f"call of {other}" in str(why) for other in others)


def test_no_line_of_torchs_own_gets_advice_to_rewrite_it() -> None:
    """The parameters of a model cannot all have one shape for the sake of an optimizer step."""
    parameters = [torch.nn.Parameter(torch.ones(8, 16)), torch.nn.Parameter(torch.ones(16))]
    for parameter in parameters:
        parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.AdamW(parameters, lr=0.1, fused=False, foreach=False)

    def step() -> None:
        optimizer.step()

    capture = compile_lens.capture(step)
    pairs = unfused_pairs.all_unfused_pairs(capture)
    assert REASONS["different sizes"].remedy in {pair.why.remedy for pair in pairs}
    assert not any(pair.remedy for pair in pairs) and "Give both the same shape" not in capture.text()
