"""Reasons why two operators are in one kernel or not, on records made by hand with known answers."""

from __future__ import annotations

import dataclasses

import pytest
from full_text import full

from compile_lens import UsageError
from compile_lens.measures.fusion import why
from compile_lens.measures.fusion_answer import LIBRARY_CALL_BETWEEN, Why
from compile_lens.measures.unfused_pairs import UnfusedPair
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import Compilation
from compile_lens.record.decision import REASONS, Decision
from compile_lens.record.graph import Frame, Graph, Node, Ref, Tensor
from compile_lens.record.kernel import Code, Kernel
from compile_lens.results.capture import Capture

ENVIRONMENT = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpp")
FILE = "/home/ada/model.py"


def tensor(nbytes: int | None = 400) -> tuple[Tensor, ...]:
    return (Tensor("float32", (100,), (1,), "cpu", nbytes),)


def aten(name: str, line: int, *args: str) -> Node:
    frames = (Frame(FILE, line, "f", ""),)
    refs = tuple(Ref(a) for a in args)
    return Node(
        name, "call_function", f"aten.{name}", "pointwise", True, refs, outputs=tensor(), frames=frames
    )


def loop(
    name: str, origins: tuple[str, ...], *args: str, kind: str = "pointwise", nbytes: int | None = 400
) -> Node:
    op = "extern" if kind == "extern" else "loop"
    refs = tuple(Ref(a) for a in args)
    return Node(name, op, f"{kind} {name}", kind, True, refs, outputs=tensor(nbytes), origins=origins)


def group(name: str, members: tuple[str, ...], *args: str, kind: str = "pointwise") -> Node:
    refs = tuple(Ref(a) for a in args)
    return Node(name, "group", f"{kind} {name}", kind, True, refs, origins=members, members=members)


def phase(name: str, decisions: tuple[Decision, ...] | None = None, nbytes: int | None = 400) -> Compilation:
    """x → sin·2 (op0) → exp (op1, fused with op0) → cumsum (op2, a library) → cos (op3); and tan of x (op4)."""
    x = Node("x", "placeholder", "x", "input", outputs=tensor(nbytes))
    nodes = (
        x,
        aten("sin", 2, "x"),
        aten("mul", 2, "sin"),
        aten("exp", 3, "mul"),
        aten("cumsum", 4, "exp"),
        aten("cos", 5, "cumsum"),
        aten("tan", 6, "x"),
        dataclasses.replace(aten("view", 7, "tan"), kind="view", compute=False),
    )
    loops = (
        x,
        loop("op0", ("sin", "mul"), "x", nbytes=nbytes),
        loop("op1", ("exp",), "op0"),
        loop("op2", ("cumsum",), "op1", kind="extern"),
        loop("op3", ("cos",), "op2"),
        loop("op4", ("tan",), "x"),
    )
    groups = (
        x,
        group("op0_op1", ("op0", "op1"), "x"),
        group("op2", ("op2",), "op0_op1", kind="extern"),
        group("op3", ("op3",), "op2"),
        group("op4", ("op4",), "x"),
    )
    kernels = (
        Kernel(
            "k0",
            name,
            "cpp",
            "pointwise",
            "…",
            groups=("op0_op1", "op4"),
            origins=("sin", "mul", "exp", "tan"),
        ),
        Kernel("cumsum", name, "extern", "extern", "", groups=("op2",), origins=("cumsum",)),
        Kernel("k1", name, "cpp", "pointwise", "…", groups=("op3",), origins=("cos",)),
    )
    if decisions is None:
        decisions = (
            Decision(name, ("op0",), ("op1",), True, 1, shared_bytes=400, score=(1, 1, 400, 0, -1)),
            Decision(name, ("op0",), ("op4",), False, 1, "different sizes", "numel/rnumel mismatch"),
            Decision(
                name,
                ("op0", "op1"),
                ("op4",),
                False,
                2,
                "too large",
                "exceeds max fusion",
                where="torch/x.py:3",
            ),
        )
    stages = (
        Graph("post_grad", name, name, nodes),
        Graph("loops", name, f"{name}.post_grad", loops),
        Graph("groups", name, f"{name}.loops", groups),
        Code(name, "…", "generated only", "cpu", kernels),
    )
    return Compilation("0/0", "f", FILE, 1, stages, decisions=((name, decisions),))


def capture(*compilations: Compilation) -> Capture:
    return Capture("f", ENVIRONMENT, compilations=compilations or (phase("inference"),))


def test_fused() -> None:
    found = why(capture(), "sin", "exp")
    assert (found.verdict, found.reason, found.where) == ("fused", "", "0/0 inference")
    assert [d.b for d in found.decisions] == [("op1",)]
    assert "round 1 fused op0 with op1; they shared 400 bytes" in found.facts


def test_inlining_is_not_fusion() -> None:
    found = why(capture(), "sin", "mul")
    assert found.verdict == "inlined" and not found.decisions
    assert "lowering" in found.sentence and "op0" in found.facts[0]


def test_the_last_word_about_a_pair_is_the_reason() -> None:
    found = why(capture(), "sin", "tan")
    assert (found.verdict, found.reason) == ("not fused", "too large")
    assert [d.round for d in found.decisions] == [2, 1]
    assert found.sentence == REASONS["too large"].sentence and found.remedy == REASONS["too large"].remedy
    assert found.saved == 400  # x, which both read
    assert any("the kernel k0, each with a loop of its own" in fact for fact in found.facts)
    assert "torch/x.py:3" in full(found) and "exceeds max fusion" in full(found)


def test_a_library_call_between() -> None:
    found = why(capture(), "exp", "cos")
    assert (found.verdict, found.reason, found.saved) == ("not fused", "extern", 0)
    assert "model.py:4, extern op2, stands between them: a call of a library" in found.facts
    assert found.answer.startswith("model.py:4 stands between them, a call of a library")
    assert "stands between" in found.sentence
    assert any("touch no buffer in common" in fact for fact in found.facts)
    turned = why(capture(), "cos", "exp")
    assert (turned.reason, turned.facts) == (found.reason, found.facts)


def test_a_library_call_itself() -> None:
    found = why(capture(), "exp", "cumsum")
    # exp is written for cumsum only: neither the write nor the read would remain.
    assert (found.verdict, found.reason, found.saved) == ("not fused", "extern", 800)
    assert any("never proposed" in fact for fact in found.facts)


def test_nothing_in_common() -> None:
    found = why(capture(), "tan", "cos")
    assert (found.verdict, found.reason, found.saved) == ("not fused", "never proposed", 0)
    assert found.sentence == REASONS["no shared data"].sentence


def test_a_pair_that_was_not_proposed_though_it_shares() -> None:
    found = why(capture(phase("inference", decisions=())), "sin", "tan")
    assert found.reason == "never proposed" and found.saved == 400
    assert any("does not say why" in fact for fact in found.facts)


def test_an_old_record_holds_no_decisions() -> None:
    old = dataclasses.replace(phase("inference"), decisions=())
    found = why(capture(old), "sin", "tan")
    assert found.reason == "not seen"
    assert "the record holds no decisions of the scheduler for this graph" in full(found)


def test_bytes_that_are_not_known() -> None:
    found = why(capture(phase("inference", nbytes=None)), "sin", "tan")
    assert found.saved is None and "x" in found.saved_note
    assert "unknown" in full(found)


def test_a_call_without_a_buffer_has_no_recorded_size() -> None:
    """Inductor gives an in-place call no buffer of its own, though its size is known."""
    recorded = phase("inference")
    aten, loops, *others = recorded.stages
    nodes = tuple(dataclasses.replace(n, outputs=()) if n.name == "x" else n for n in loops.nodes)
    stages = (aten, dataclasses.replace(loops, nodes=nodes), *others)
    answer = why(capture(dataclasses.replace(recorded, stages=stages)), "sin", "tan")
    assert answer.saved is None and "is not recorded" in answer.saved_note
    assert "before it runs" not in full(answer)


def test_kernels_and_lines() -> None:
    one = capture()
    first, library, last = one.kernels
    assert one.why(first, last).reason == "extern"
    assert one.why("k0", "k1") == one.why(first, last)
    assert one.why(library, "k1").reason == "extern"
    assert one.why("model.py:2", "/home/ada/model.py:3").verdict == "fused"
    assert one.why(2, 5).reason == "extern"
    assert one.why(first, "sin").verdict == "same"
    assert one.why("op0", "op4").reason == "too large"
    assert one.why("sin", "sin").verdict == "same"


def test_what_became_no_loop() -> None:
    found = why(capture(), "view", "sin")
    assert found.verdict == "no loop" and "view: it became no loop" in found.facts[0]
    assert why(capture(), 7, 2).verdict == "no loop"


def test_graphs_of_their_own() -> None:
    second = dataclasses.replace(phase("inference"), id="1/0")
    record = capture(phase("forward"), second)
    apart = record.why(record.kernels[0], record.kernels[4])
    assert apart.verdict == "different graphs" and "0/0 forward" in apart.facts[0]
    both = record.why("sin", "exp")  # the same in both graphs: the first counts
    assert both.where == "0/0 forward" and f"in 1/0 inference: {both.verdict}" in both.facts
    assert record.why("sin", "exp", phase="forward").where == "0/0 forward"
    assert record.why("sin", "exp", phase="1/0 inference").where == "1/0 inference"
    assert record.why(record.kernels[0], "cos").where == "0/0 forward"
    with pytest.raises(UsageError, match="phase 'backward' is not in this capture, which has 0/0 forward"):
        record.why("sin", "exp", phase="backward")


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("sinus", "'sinus' is no kernel, node.*it has x, sin, mul"),
        ("model.py:99", "model.py:99 holds no tensor operation.*model.py:2"),
        (99, "line 99 holds no tensor operation"),
        (2.5, "2.5 is no kernel, name or line: give a Kernel"),
        (True, "True is no kernel"),
        (
            Kernel("k9", "inference", "cpp", "pointwise", ""),
            "kernel 'k9' is not one of this capture, which has k0",
        ),
    ],
)
def test_what_is_not_there(what: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        capture().why(what, "sin")  # type: ignore[arg-type]


def test_a_capture_of_nothing() -> None:
    with pytest.raises(UsageError, match="it has none"):
        Capture("f", ENVIRONMENT).why("sin", "cos")


def test_every_reason_has_a_sentence_and_fits_a_line() -> None:
    for name, reason in REASONS.items():
        assert reason.sentence.endswith(".") and len(reason.sentence) < 160, name
        assert Decision("forward", ("op0",), ("op1",), False, 1, name).sentence == reason.sentence
    assert Decision("forward", ("op0",), ("op1",), True, 1).sentence == "They were fused."
    assert Decision("forward", ("op0",), ("op1",), False, 1, "of a newer version").sentence


def test_decisions_survive_json() -> None:
    one = capture()
    again = Capture.from_json(one.to_json())
    assert again == one and again.decisions == one.decisions and len(one.decisions) == 3


def test_the_answer_is_readable() -> None:
    text = str(why(capture(), "sin", "tan"))
    assert text.splitlines()[0] == "sin and tan (0/0 inference): not fused, too large"
    assert "fusing would have saved at most 400 bytes (modelled)" in text
    assert isinstance(why(capture(), "sin", "tan"), Why)


@pytest.mark.parametrize(
    ("phase", "remedy", "applies"),
    [
        ("forward", "reduce over the last dimension", True),
        ("backward", "reduce over the last dimension", False),
        ("backward", "torch._inductor.config.split_reductions = False", True),
        ("forward", "", False),
    ],
)
def test_a_remedy_that_a_program_cannot_follow_is_none(phase: str, remedy: str, applies: bool) -> None:
    """Autograd creates the backward: a program can change a setting for it, but not the order of its reductions."""
    pair = UnfusedPair("0/0", phase, "op0", "op1", True, Why("op0", "op1", phase, "not fused", remedy=remedy))
    assert bool(pair.remedy) is applies


@pytest.mark.parametrize(
    ("reason", "words", "applies"),
    [
        ("different indices", ("`x.softmax(1)` (m:3)", "`x.softmax(1)` (m:3)"), False),
        ("different sizes", ("`pool(x)` (m:3) and 1 more", "`pool(x)` (m:3)"), False),
        ("different indices", ("`x.sin()` (m:3)", "`x.t().cos()` (m:3)"), True),
        ("different loops", ("a part of `f(x)` (m:3)", "a part of `f(x)` (m:3)"), True),
        ("reduction barrier", ("`x.softmax(0)` (m:3)", "`x.softmax(0)` (m:3)"), True),
    ],
)
def test_nobody_changes_what_stands_between_two_loops_of_one_call(
    reason: str, words: tuple[str, str], applies: bool
) -> None:
    answer = Why("op0", "op1", "forward", "not fused", reason, remedy=REASONS[reason].remedy, words=words)
    assert bool(UnfusedPair("0/0", "forward", "op0", "op1", True, answer).remedy) is applies


@pytest.mark.parametrize(
    ("words", "calls", "pair"),
    [
        (("`x.sin()` (m:3) and 1 more", "`x.sin()` (m:3) and 3 more"), 0, "two loops of `x.sin()` (m:3), a and b"),
        (("`x.sin()` (m:3)", "`x.sin()` (m:3)"), 0, "two loops of `x.sin()` (m:3), a and b"),
        (("`x @ w` (m:3) and 1 more", "`x @ w` (m:3)"), 1, "two parts of `x @ w` (m:3), a and b"),
        (("`x @ w` (m:3)", "`x @ w` (m:3)"), 2, "two calls of `x @ w` (m:3), a and b"),
        (("`x.sin()` (m:3)", "`x.cos()` (m:3) and 1 more"), 0, "`x.sin()` (m:3) and `x.cos()` (m:3) and 1 more"),
        (("", ""), 0, "a and b"),
    ],
)  # fmt: skip
def test_a_pair_of_one_expression_names_it_once(words: tuple[str, str], calls: int, pair: str) -> None:
    """Both are loops, or as many as given are calls of a library. A call between them is neither."""
    sentence = REASONS["extern"].sentence if calls else LIBRARY_CALL_BETWEEN
    library = ("`torch.mm(a, b)` (m:1)",) * (calls or 2)
    assert Why("a", "b", "", "not fused", sentence=sentence, words=words, library=library).pair == pair


@pytest.mark.parametrize(
    ("saved", "note", "words"),
    [
        (400, "", "fusing would have saved at most 400 bytes (modelled)"),
        (0, "", "fusing would have saved no bytes (modelled)"),
        (
            None,
            "a size depends on data",
            "bytes that fusing would have saved: unknown, a size depends on data",
        ),
    ],
)
def test_what_one_kernel_would_save_is_said(saved: int | None, note: str, words: str) -> None:
    answer = Why("a", "b", "0/0 forward", "not fused", "bound", "They differ.", saved=saved, saved_note=note)
    assert words in str(answer).splitlines()[-1]
