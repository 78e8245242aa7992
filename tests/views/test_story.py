"""The story of a capture: each sentence on records built by hand, and no claim that the record lacks."""

from __future__ import annotations

import dataclasses
import re
import string

import pytest
import samples
import samples_findings
import samples_machine
import samples_targets

from compile_lens.errors import UsageError
from compile_lens.measures.fusion_answer import LIBRARY_CALL_BETWEEN, NOT_PROPOSED
from compile_lens.record import claims
from compile_lens.record.breaks import LIMIT, Ending, Skip
from compile_lens.record.capture import Failure
from compile_lens.record.decision import REASONS
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Flow
from compile_lens.record.lowering import MERGING, REALIZED, Lowered, Pass, Rewrite
from compile_lens.record.memory import Partition
from compile_lens.record.missing import Missing, NotApplicable
from compile_lens.results.capture import Capture
from compile_lens.views.live.page import fragment
from compile_lens.views.render.markdown import page as markdown_of
from compile_lens.views.render.text import page as text_of
from compile_lens.views.story import Story
from compile_lens.views.story.english import ENGLISH
from compile_lens.views.subjects.capture import document

SAMPLE = """\
The story of f

The whole call was compiled, into 1 graph.

Dynamo
  Dynamo read the bytecode of f (example.py:4) and recorded 5 calls. They come from 1 line:
  example.py:5. This code is used again only while 3 conditions hold: the guards.

AOTAutograd
  AOTAutograd traced the forward and its backward as one graph, in smaller operators: 17 calls.
  The graph was cut in two: 5 calls for the forward, 12 calls for the backward. The forward
  saves 1 value for the backward: primals_1.

Forward
  Inductor was handed 5 ATen operators that compute. Without a compiler, PyTorch would dispatch
  5 operators here. Lowering made 1 loop of it. One loop alone cannot be fused with anything: it
  is the only group. The generated code has 1 kernel in C++: cpp_fused_add_cos_pow_sin_0.
  Launches in one call: 1. Each ATen operator by itself would move ~44 kB; what is left after
  fusion moves ~8,000 B.

Backward
  Inductor was handed 12 ATen operators that compute. Without a compiler, PyTorch would dispatch
  12 operators here. Lowering made 1 loop of it. One loop alone cannot be fused with anything:
  it is the only group. The generated code has 1 kernel in C++:
  cpp_fused_add_cos_mul_neg_pow_sin_0. Launches in one call: 1. Each ATen operator by itself
  would move ~116 kB; what is left after fusion moves ~12 kB.

In all
  17 operators of eager PyTorch stand against 2 launches, each graph called once. Bytes of the
  ATen operators, each by itself: ~160 kB; after fusion: ~20 kB. Bytes are modelled from sizes,
  not measured. The code was only generated: nothing of it was built or run.
"""


def said(capture: Capture, *keys: str) -> list[str]:
    """Return the sentences with these keys."""
    return [s.text for s in capture.story().sentences if s.key in keys]


def one(capture: Capture, key: str) -> str:
    (text,) = said(capture, key)
    return text


def first(capture: Capture, **changes: object) -> Capture:
    """Return the capture with its first compilation changed."""
    changed = dataclasses.replace(capture.compilations[0], **changes)  # type: ignore[arg-type]
    return dataclasses.replace(capture, compilations=(changed, *capture.compilations[1:]))


def test_the_sample_is_told_stage_by_stage() -> None:
    story = samples.sample().story()
    assert str(story) == SAMPLE
    assert (
        isinstance(story, Story) and story.lang == "en" and repr(story).startswith("<Story in 25 sentences")
    )
    assert [name for name, _ in story.chapters] == [
        "", "Dynamo", "AOTAutograd", "Forward", "Backward", "In all",
    ]  # fmt: skip


def test_a_sentence_says_what_it_is_about() -> None:
    capture = samples.sample()
    by_key = {s.key: s for s in reversed(capture.story().sentences)}
    lines = by_key["lines"]
    assert (lines.compilation, lines.stage, lines.about) == (
        "0/0", "dynamo", (("", "python", f"{samples.FILE}:5"),),
    )  # fmt: skip
    assert by_key["saved"].about == (("0/0", "forward", "primals_1"),)
    assert by_key["kernels"].about == (("0/0", "forward.code", "cpp_fused_add_cos_pow_sin_0"),)
    assert dict(by_key["cut"].counts) == {"forward": 5, "backward": 12}
    known = set(capture.chain.addresses())
    assert all(address in known for s in by_key.values() for address in s.about)
    with pytest.raises(dataclasses.FrozenInstanceError):
        lines.text = ""  # type: ignore[misc]


def test_all_that_findings_know_is_told() -> None:
    capture = samples_findings.told()
    texts = [s.text for s in capture.story().sentences]
    for sentence in (
        "What it saves lies in inputs and results, and takes no memory of its own.",
        "AOTAutograd's default partitioner would save 3 values: primals_1, sin, cos.",
        "Both halves compute sin, cos: the backward works 2 operators out again.",
        "On the way to stage forward the passes of Inductor made 2 changes.",
        "1 pattern matched: mul(x, 1) → x.",
        "One pattern came close: sfdp_pattern_3: there is a tanh between the two products.",
        "Lowering made 3 loops of it.",
        "2 operators were inlined, computed where their values are read, with no buffer: sin, cos.",
        "1 value got a buffer (pow_1): read more than once, and too large to be computed again for each reader.",
        "1 value got a buffer (add): results of the graph have to be in memory.",
        "Fusion joined none of them: 3 groups remain.",
        "op0 and op1 were not fused. The kernel would become too large: more loops or buffers than Inductor's limit "
        "allows.",
        "op1 and op2 were not fused. Inductor did not propose the pair.",
        "The generated code has 2 kernels in C++: k0, k1.",
        "cos is computed more than once: by k0, k1.",
        "At most ~11.7 KiB are live at once.",
        "1 buffer takes over the memory of another.",
    ):
        assert sentence in texts, sentence


def test_breaks_recompiles_and_dynamic_sizes() -> None:
    capture = samples.graph_break()
    assert said(capture, "whole", "partly") == ["Not all of the call was compiled. What was became 3 graphs."]
    assert one(capture, "breaks") == "There is 1 graph break: a place that Dynamo could not trace."
    assert one(capture, "recompiles") == "There was 1 recompile."
    assert one(capture, "break") == (
        "At example.py:6 the graph breaks, and Python takes over: Failed to trace builtin operator: Dynamo does not "
        "know how to trace `print` of a tensor."
    )
    assert one(capture, "avoided").startswith("To avoid it: Remove the call, or torch._dynamo.config.")
    assert one(capture, "avoided").endswith("keep the value and print it after the call.")
    assert said(capture, "again", "guard_failed") == [
        "It is a recompile.",
        "This guard of an older variant failed: tensor 'y' size mismatch at index 0: expected 1000, actual 1024.",
    ]
    assert one(capture, "dynamic_seen") == (
        "One dimension is a symbol: y.size(0), written s0, which was 1,024 here."
    )
    assert one(capture, "asked_unknown") == "What the guards require of it was not recorded."
    chapters = [name for name, _ in capture.story().chapters]
    assert "0/0 f: Dynamo" in chapters and "1/1 f, after line 6: Backward" in chapters
    chapters = [name for name, _ in capture.story("zh").chapters]
    assert "1/1 f 第 6 行之后: 反向" in chapters


def test_no_view_calls_the_rest_of_a_function_as_dynamo_does() -> None:
    """Headings, sentences and stacks call it the function after a line; data keep the name."""
    capture = samples.graph_break()
    rest = capture.compilations[1].function
    frame = Frame("/home/ada/example.py", 8, rest, "return y")
    ending = dataclasses.replace(capture.compilations[0].ending, frames=(frame,))
    skip = Skip(LIMIT, rest, "/home/ada/example.py", 8, ending)
    broken = dataclasses.replace(capture.compilations[0], ending=ending)
    capture = dataclasses.replace(capture, compilations=(broken, *capture.compilations[1:]), skipped=(skip,))
    html = fragment(capture).partition("<script")[0]
    views = (
        html,
        text_of(document(capture)),
        markdown_of(document(capture)).replace("\\", ""),
        str(capture.story()),
        str(capture.story("zh")),
    )
    for view in views:
        assert "torch_dynamo_resume_in_" not in view
    assert all(view.count("f, after line 6") >= 3 for view in views[:-1])
    assert rest in capture.to_json()


def test_what_was_left_to_python() -> None:
    capture = samples.skipped()
    assert one(capture, "left") == (
        "Dynamo skipped step, which runs eagerly (example.py:8-12): Unsupported Tensor.backward() call."
    )
    assert one(capture, "limit") == (
        "scaled reached its recompile limit (example.py:21): calls that fit none of its variants ran eagerly."
    )
    (skip, *_) = capture.skipped
    kinds = {
        "rest of a function": "The rest of step runs eagerly (example.py:8-12): Unsupported "
        "Tensor.backward() call.",
        "never ran": "step never ran, compiled or not (example.py:8-12): graph break in loop. The frame is skipped.",
        "a new kind": "Something was not compiled, by the record's word “a new kind”: step (example.py:8-12): "
        "Unsupported Tensor.backward() call.",
    }
    for kind, text in kinds.items():
        changed = dataclasses.replace(capture, skipped=(dataclasses.replace(skip, kind=kind),))
        assert said(changed, "rest", "never", "skip") == [text]
    often = dataclasses.replace(capture, skipped=(dataclasses.replace(skip, count=3, lines=()),))
    assert one(often, "left_often") == (
        "Dynamo skipped step, which runs eagerly (example.py:7), 3 times: Unsupported Tensor.backward() call."
    )


def test_a_failure_is_told_with_what_was_seen_before() -> None:
    capture = samples.failed()
    assert one(capture, "failed") == (
        "It ended in an error, in stage forward.loops: LoweringException: NotImplementedError: no lowering for "
        "mylib.twist.default."
    )
    assert one(capture, "before_it") == "What follows was seen before the error."
    assert said(capture, "whole", "partly", "nothing") == []
    assert one(capture, "missing") == (
        "Stage forward.loops was not seen: the compiler failed here: LoweringException."
    )
    assert not said(capture, "lowered", "fused", "launches", "kernels", "total", "generated only")
    assert one(samples.failed_early(), "failed").endswith("ZeroDivisionError: division by zero.")
    assert said(samples.failed_early(), "before_it") == []
    placed = dataclasses.replace(
        capture, failure=Failure("run", "E", "m", frames=(Frame("/a/b.py", 7, "f"),), hint="Do this.")
    )
    assert said(placed, "failed_at", "advised") == [
        "The program was at b.py:7 then.", "The compiler advises: Do this.",
    ]  # fmt: skip


def test_nothing_missing_and_unseen() -> None:
    assert [s.text for s in samples.nothing().story().sentences] == [
        "Nothing was compiled: the function does no tensor work, so Dynamo made no graph."
    ]
    bare = dataclasses.replace(samples.nothing(), nothing_compiled="")
    assert one(bare, "unsaid") == "The record has no compilation, and does not say why."
    gone = samples.missing()
    assert said(gone, "missing") == [
        "Stage backward.groups was not seen: torch 2.99 lacks this hook.",
        "Stage backward.code was not seen: cache hit.",
    ]
    backward = [s.key for s in gone.story().sentences if s.chapter == "Backward"]
    assert "launches" not in backward and "kernels" not in backward and "one_loop" not in backward
    assert one(gone, "some") == "Of 1 of 2 graphs what follows is known."
    assert said(gone, "total") == []
    gaps = tuple(Missing(claim, "it was handed graphs") for claim in (claims.BREAKS, claims.EVALUATIONS))
    unseen = dataclasses.replace(samples.graph_break(), not_observed=gaps)
    assert one(unseen, "program") == (
        "Of a program, 3 graphs reached this backend. What ran eagerly was not seen: it was handed graphs."
    )
    assert one(unseen, "breaks_seen").startswith("There is at least 1 graph break")
    none = first(samples.sample(), stages=())
    assert one(none, "empty") == "No stage of it was recorded."


def test_stages_that_there_are_not_are_told_together() -> None:
    capture = samples.sample()
    kept = tuple(s for s in capture.compilations[0].stages if not s.key.startswith("backward"))
    why = "backward=False"
    gone = tuple(NotApplicable(f"backward{end}", why) for end in ("", ".loops"))
    changed = first(capture, stages=(*kept, *gone, Missing("pre_grad", "cache hit")))
    assert one(changed, "none_many") == "There are no stages backward, backward.loops: backward=False."
    assert one(changed, "missing") == "Stage pre_grad was not seen: cache hit."
    assert said(changed, "cut") == []


def test_what_is_merged_is_no_change_of_inductors() -> None:
    """AOTAutograd's partitioner calls ``fx_graph_cse``: in sin² + cos² it merges both sines."""
    pairs = (Rewrite("", ("sin_1",), ("sin",)), Rewrite("", ("cos_1",), ("cos",)))
    merged = Pass("forward", MERGING, 22, 20, pairs)
    changed = first(samples.sample(), passes=(merged,))
    assert one(changed, "merged") == (
        "On the way to stage forward, 2 calls that computed what others do already became one with them: "
        "sin_1 → sin, cos_1 → cos."
    )
    assert said(changed, "rewritten") == []
    both = first(samples.sample(), passes=(merged, Pass("forward", "remove_noop_ops", 20, 19, pairs[:1])))
    assert one(both, "rewritten") == "On the way to stage forward the passes of Inductor made 1 change."


def test_lines_of_a_text_are_words_of_a_paragraph() -> None:
    """Torch's advice has several lines."""
    failure = Failure("dynamo", "ValueError", "no", hint="Leave it out.\n  Or write a loop.\n")
    text = one(dataclasses.replace(samples.sample(), failure=failure), "advised")
    assert text.endswith(": Leave it out. Or write a loop.")


def test_endings_and_other_kinds() -> None:
    ended = first(samples.sample(), ending=Ending("not traced", "it is a generator."))
    assert one(ended, "ended") == "It ended with “not traced”: it is a generator."
    nowhere = first(samples.sample(), ending=Ending("graph break", "who knows"))
    assert one(nowhere, "break_nowhere") == "The graph breaks, and Python takes over: who knows."
    homeless = first(samples.sample(), file="")
    assert one(homeless, "read_nowhere") == "Dynamo read the bytecode of f and recorded 5 calls."


def test_nothing_kept_and_memory_of_its_own() -> None:
    capture = samples_findings.told()
    cut = capture.compilations[0].partition
    assert cut is not None and cut.default is not None
    own = first(capture, partition=Partition(cut.default))
    assert one(own, "keeps") == "What it saves takes 8,000 B besides inputs and results."
    none = first(capture, partition=Partition())
    assert one(none, "saved_none") == "The forward saves nothing for the backward."
    assert said(none, "keeps", "keeps_free", "default", "recomputed") == []


def test_counts_that_are_no_numbers_keep_the_words_of_the_ledger() -> None:
    capture = samples.sample()
    code = capture.compilations[0].code["forward"]
    kernel = dataclasses.replace(code.kernels[0], launch_functions=("body",))
    turned = dataclasses.replace(code, kernels=(kernel,), flow=Flow(("",), (Flow(("body",)),)))
    stages = tuple(turned if s.key == "forward.code" else s for s in capture.compilations[0].stages)
    capture = first(capture, stages=stages)
    assert str(capture.ledger.forward.launches) == "1 per iteration"
    assert said(capture, "launches") == ["Launches in one call: 1 per iteration.", "Launches in one call: 1."]
    assert "stand against 1 + 1 per iteration launches" in one(capture, "total")
    partial = samples.missing()
    assert str(partial.ledger.total.launches) == "≥ 1 (1 of 2 graphs)"


def test_a_device_model_is_told() -> None:
    capture = samples_machine.h100()
    assert one(capture, "modelled_device") == (
        "The code is for NVIDIA H100 SXM (h100), sm_90. That device was absent: a device model stood for it."
    )
    assert any("in Triton" in text for text in said(capture, "kernels"))


def test_a_reduction_that_is_split() -> None:
    capture = samples_findings.told()
    lowered = (Lowered("forward", "sin", ("buf0", "buf1"), "buf1", ("buf0",), "reduction"),)
    assert one(first(capture, lowered=lowered), "parted") == (
        "sin is computed in 2 loops, a part of it or the result in each: buf0, buf1."
    )
    record = samples_targets.reduction("h100", split=True).capture()
    pair = [s for s in record.story().sentences if s.key in ("together", "apart")]
    assert pair, str(record.story())


@pytest.mark.parametrize("text", samples.HOSTILE, ids=range(len(samples.HOSTILE)))
def test_hostile_names_stay_on_their_line(text: str) -> None:
    for capture in (samples.hostile(text), samples_findings.hostile(text), samples_machine.hostile(text)):
        story = capture.story()
        str(story).encode("utf-8")
        for sentence in story.sentences:
            assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", sentence.text)
            assert len(sentence.text) < 10_000
            assert "{" not in ENGLISH.sentences[sentence.key] or sentence.text


def test_every_sentence_of_the_language_is_whole() -> None:
    for key, template in ENGLISH.sentences.items():
        forms = (template,) if isinstance(template, str) else template
        fields = [sorted({f for _, f, _, _ in string.Formatter().parse(form) if f}) for form in forms]
        assert all(field == fields[0] for field in fields), key
        if not isinstance(template, str):
            assert "n" in fields[0], f"{key} has a form for one, and no n to choose it by"
        assert key == "title" or all(form.endswith((".", "{clause}")) for form in forms), key


def test_every_reason_has_a_clause() -> None:
    assert {f"realised.{key}" for key in REALIZED} <= set(ENGLISH.words)
    assert {f"apart.{key}" for key in REASONS} <= set(ENGLISH.words)
    assert (
        ENGLISH.words["apart.wall"] == LIBRARY_CALL_BETWEEN
        and ENGLISH.words["apart.never proposed"] == NOT_PROPOSED
    )


def test_telling_is_pure() -> None:
    capture = samples.graph_break()
    before = capture.to_json()
    assert str(capture.story()) == str(Capture.from_json(before).story())
    assert capture.to_json() == before


def test_a_language_that_there_is_not() -> None:
    with pytest.raises(UsageError, match="no story in 'tlh'; there is one in en, zh"):
        samples.sample().story("tlh")
