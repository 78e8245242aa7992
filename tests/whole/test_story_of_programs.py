"""The story of real programs: every number in it is recounted from the record's graphs and the code's text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import zoo
from zoo_outcomes import ENTRIES as ALL
from zoo_outcomes import outcome

import compile_lens
from compile_lens.record.compilation import Compilation
from compile_lens.record.figures import Figure
from compile_lens.record.graph import Graph, Node
from compile_lens.results.capture import Capture
from compile_lens.views.story import Sentence

# It uses the zoo's outcomes, which check leftover state: torch initializes itself in an earlier capture.
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

PROGRAMS = (
    *(
        "sin2_cos2",
        "sin2_cos2_inference",
        "gelu_tanh",
        "chain_40",
        "mse_loss",
        "int8_dequantise",
        "softmax_last",
    ),
    *(
        "softmax_first",
        "layer_norm",
        "var_mean",
        "cumsum",
        "sort",
        "topk",
        "max_pool",
        "print_break",
        "item_break",
    ),
    *(
        "data_dependent_if",
        "graph_break",
        "marked_dynamic",
        "cond",
        "while_loop",
        "checkpoint",
        "disabled",
        "adam_step",
    ),
)
"""Names in the zoo."""

ENTRIES = [entry for entry in ALL if entry.name in PROGRAMS]


def nodes(graph: Graph) -> Iterator[Node]:
    yield from graph.nodes
    for _, body in graph.subgraphs:
        yield from nodes(body)


def calls(graph: Graph, deep: bool = False) -> int:
    found = nodes(graph) if deep else graph.nodes
    return sum(1 for n in found if n.op.startswith("call_"))


def working(graph: Graph) -> list[Node]:
    idle = {"nop", "input", "output", "constant"}
    return [n for n in nodes(graph) if n.op in ("loop", "extern", "template", "group") and n.kind not in idle]


def body(text: str) -> str:
    """Return the body of ``call`` in a wrapper module."""
    return text[text.index("def call(") :].split("\n        return (")[0].split("\n    return (")[0]


LIBRARY = r"(?:extern_kernels\.|torch\.ops\.(?!inductor\.)|aten\.)[\w.]+"


def launched(text: str, what: str = rf"(?:cpp_fused_\w+|{LIBRARY})") -> int:
    """Return the number of lines of ``call`` that call a kernel or a library."""
    return len(re.findall(rf"^\s+(?:\w+ = )?{what}\(", body(text), re.M))


def moved(found: Any) -> int:
    return sum(n.reads + n.writes for n in found)


Again = Callable[[Capture, Compilation, str], Any]

COUNTS: dict[tuple[str, str], Again] = {
    ("whole", "graphs"): lambda c, *_: sum(1 for one in c.compilations if one.graphs),
    ("partly", "graphs"): lambda c, *_: sum(1 for one in c.compilations if one.graphs),
    ("read", "n"): lambda c, one, _: calls(one.graphs["dynamo"]),
    ("lines", "n"): lambda c, one, _: len(lines(one.graphs["dynamo"])),
    ("line", "n"): lambda c, one, _: 1,
    ("lineless", "n"): lambda c, one, _: sum(not n.frames for n in one.graphs["dynamo"].calls),
    **{
        (key, "n"): lambda c, one, _: calls(one.graphs["dynamo"], True) - calls(one.graphs["dynamo"])
        for key in ("bodies", "functions", "checkpoints")  # no program here has bodies of several kinds
    },
    ("guards", "n"): lambda c, one, _: len(one.guards),
    ("dynamic_seen", "n"): lambda c, one, _: {d.hint for d in one.dynamic},
    ("joint", "n"): lambda c, one, _: calls(one.graphs["joint"]),
    ("one_graph", "n"): lambda c, one, _: calls(one.graphs["inference"]),
    ("derivatives", "n"): lambda c, one, _: sum(n.derivative for n in one.graphs["joint"].calls),
    ("cut", "forward"): lambda c, one, _: calls(one.graphs["forward"]),
    ("cut", "backward"): lambda c, one, _: calls(one.graphs["backward"]),
    ("saved", "n"): lambda c, one, _: sum(
        1 for n in one.graphs["backward"].nodes if n.op == "placeholder" and not n.name.startswith("tangents")
    ),
    ("default", "n"): lambda c, one, _: len(one.partition.default or ()) if one.partition else None,
    ("keeps", "bytes"): lambda c, one, _: (
        sum(k.nbytes or 0 for k in one.partition.saved if not k.alias_of) if one.partition else None
    ),
    ("recomputed", "n"): lambda c, one, _: len(one.partition.recomputed) if one.partition else None,
    ("handed", "n"): lambda c, one, p: sum(n.compute for n in nodes(one.graphs[p])),
    ("eager", "n"): lambda c, one, p: sum(op.count for op in one.eager or () if op.phase == p),
    ("merged", "n"): lambda c, one, p: sum(
        len(made.rewrites) for made in one.passes if (made.stage, made.name) == (p, "fx_graph_cse")
    ),
    ("rewritten", "n"): lambda c, one, p: {
        sum(len(made.rewrites) for made in one.passes if made.stage == stage and made.name != "fx_graph_cse")
        for stage in (p, f"{p}.post_grad")
    },
    ("patterns", "n"): lambda c, one, p: {
        len({r.pattern for made in one.passes if made.stage == stage for r in made.rewrites} - {""})
        for stage in (p, f"{p}.post_grad")
    },
    ("lowered", "n"): lambda c, one, p: len(working(one.graphs[f"{p}.loops"])),
    ("externs", "n"): lambda c, one, p: sum(
        1 for k in one.code[p].kernels if k.language == "extern" for _ in k.launch_lines
    ),
    ("steered", "n"): lambda c, one, p: one.graphs[p].text.count(" = torch.ops.higher_order."),
    ("inlined", "n"): lambda c, one, p: sum(
        1 for w in one.lowered if w.phase == p and w.loops and not (w.buffer or w.parts)
    ),
    ("buffered", "n"): lambda c, one, p: {
        sum(1 for w in one.lowered if w.phase == p and w.buffer and w.reason == reason)
        for reason in {w.reason for w in one.lowered}
    },
    ("parted", "n"): lambda c, one, p: {
        len({*w.parts, w.buffer} - {""}) for w in one.lowered if w.phase == p and w.parts
    },
    ("fused", "n"): lambda c, one, p: sum(len(n.members) > 1 for n in working(one.graphs[f"{p}.groups"])),
    ("fused", "loops"): lambda c, one, p: len(working(one.graphs[f"{p}.loops"])) - sum(
        len(n.members) == 1 for n in working(one.graphs[f"{p}.groups"])
    ),
    ("groups", "n"): lambda c, one, p: len(working(one.graphs[f"{p}.groups"])),
    ("counts", "groups"): lambda c, one, p: len(working(one.graphs[f"{p}.groups"])),
    ("counts", "kernels"): lambda c, one, p: (
        one.code[p].text.count(" = async_compile.cpp") + launched(one.code[p].text, LIBRARY)
    ),
    ("unfused", "n"): lambda c, one, p: len(working(one.graphs[f"{p}.loops"])),
    ("kernels", "n"): lambda c, one, p: one.code[p].text.count(" = async_compile.cpp"),
    ("calls", "n"): lambda c, one, p: launched(one.code[p].text, LIBRARY),
    ("peak", "bytes"): lambda c, one, p: next(m.peak for m in one.memory if m.phase == p),
    ("reused", "n"): lambda c, one, p: one.code[p].text.count("  # reuse"),
    ("traffic", "before"): lambda c, one, p: moved(n for n in nodes(one.graphs[p]) if n.compute),
    ("traffic", "after"): lambda c, one, p: moved(working(one.graphs[f"{p}.groups"])),
    ("traffic_eager", "before"): lambda c, one, p: sum(op.nbytes or 0 for op in one.eager or () if op.phase == p),
    ("traffic_eager", "after"): lambda c, one, p: moved(working(one.graphs[f"{p}.groups"])),
    ("moved_eager", "bytes"): lambda c, one, p: sum(op.nbytes or 0 for op in one.eager or () if op.phase == p),
}  # fmt: skip
"""Recount of each number, by sentence and name, from a capture, a compilation, a phase. A set: one of these."""


def lines(graph: Graph) -> set[tuple[str, int]]:
    found = [[f for f in n.frames if not f.of_torch][-1:] or n.frames[-1:] for n in graph.calls]
    return {(f.file, f.line) for frames in found for f in frames}


def check(made: Capture, sentence: Sentence, name: str, value: Any) -> None:
    one = next((c for c in made.compilations if c.id == sentence.compilation), None)
    phase = sentence.stage.partition(".")[0]
    if sentence.key in ("traffic", "traffic_eager") and one is not None and one.graphs[phase].subgraphs:
        row = getattr(dict(made.ledger.graphs)[one.id], phase)  # only the ledger knows which bodies run
        before = row.eager_bytes if sentence.key == "traffic_eager" else row.bytes_before
        assert value == {"before": before, "after": row.bytes_after}[name]
        return
    if (sentence.key, name) in (("launches", "n"), ("counts", "launches")):
        assert one is not None
        if phase in one.code and not one.graphs[phase].subgraphs:
            assert value == launched(one.code[phase].text), sentence
        else:
            assert value == (getattr(dict(made.ledger.graphs)[one.id], phase).launches), sentence
        return
    if not isinstance(value, int):  # by the iteration or the branch: the ledger's own figure
        figures = [
            f for _, part in made.ledger.graphs for row in (*part.rows, part.total) for f in row.figures
        ]
        assert value in (*figures, *made.ledger.total.figures), sentence
        return
    again = COUNTS[sentence.key, name](made, one, phase)  # type: ignore[arg-type]
    assert value in again if isinstance(again, set) else value == again, sentence


def digits(sentence: Sentence) -> list[str]:
    """Return the numbers that a sentence has in digits, including those in names."""
    return sorted(re.findall(r"\d(?:[\d.,]*\d)?", sentence.text))


@pytest.mark.full
@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_the_same_numbers_are_said_in_chinese(entry: zoo.Entry) -> None:
    made = outcome(entry.name).capture
    for one, other in zip(made.story().sentences, made.story("zh").sentences, strict=True):
        assert one.key == other.key and digits(one) == digits(other), other.text


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry.name for entry in ENTRIES])
def test_every_number_is_counted_again(entry: zoo.Entry) -> None:
    made = outcome(entry.name).capture
    story = made.story()
    sums = {"eager_ops": 0, "launches": 0, "before": 0, "after": 0}
    for sentence in story.sentences:
        for name, value in sentence.counts:
            if isinstance(value, Figure) or not isinstance(value, int):
                shown = re.sub(r"[\s,]", "", sentence.text)
                if isinstance(value, int) and name == "n":
                    assert str(int(value)) in shown, sentence
            elif name != "bytes":
                assert f"{value:,}" in sentence.text, sentence
            if name == "places":
                assert value == len({(b.frames[-1].file, b.frames[-1].line) for b in made.breaks})
            elif sentence.key in ("breaks", "breaks_at"):
                assert entry.breaks in (None, value)
            elif sentence.key in ("total", "total_bytes", "total_bytes_eager", "apart_more", "some"):
                continue
            else:
                check(made, sentence, name, value)
        counts = dict(sentence.counts)
        for column, key, name in (
            ("eager_ops", "eager", "n"), ("launches", "launches", "n"),
            ("before", "traffic", "before"), ("after", "traffic", "after"),
        ):  # fmt: skip
            if sentence.key.removesuffix("_eager") == key and isinstance(counts[name], int):
                sums[column] += counts[name]  # type: ignore[operator]
    if entry.graphs is not None:
        assert dict(story.sentences[0].counts)["graphs"] == entry.graphs
    totals = {
        s.key.removesuffix("_eager"): dict(s.counts)
        for s in story.sentences
        if s.key in ("total", "total_bytes", "total_bytes_eager")
    }
    if "some" not in {s.key for s in story.sentences} and entry.name not in ("cond", "while_loop"):
        known_eager = all(row.eager_ops is not None for row in made.ledger.single)
        assert ("total" in totals) == known_eager
        assert not known_eager or totals["total"] == {"n": sums["eager_ops"], "launches": sums["launches"]}
        assert totals["total_bytes"] == {"before": sums["before"], "after": sums["after"]}
    known = set(made.chain.addresses())
    named = {a for s in story.sentences for a in s.about if "graph_" not in a[2]}
    assert not {a for a in named - known if a[1] not in ("joint", "python")}


def branching(x: torch.Tensor) -> torch.Tensor:
    return x.sin() if x.size(0) < 30 else x.cos()


def test_a_size_that_is_a_symbol_is_told_with_what_plain_torch_has_the_form_for() -> None:
    made = compile_lens.capture(branching, calls=[(torch.ones(3),), (torch.ones(5),)])
    (asked,) = [s.text for s in made.story().sentences if s.key == "asked"]
    assert [s.key for s in made.story("zh").sentences].count("asked") == 1
    found = re.fullmatch(r"The guards require of it: (.+)\.", asked)
    assert found
    conditions = found[1].replace("x.size(0)", "size").split(", ")
    for size in (0, 1, 2, 4, 29, 30, 31):
        torch._dynamo.reset()
        forms = 0

        def backend(gm: torch.fx.GraphModule, inputs: list[Any]) -> Any:
            nonlocal forms
            forms += 1
            return gm.forward

        call = torch.compile(branching, backend=backend)
        for given in (3, 5, size):
            call(torch.ones(given))
        assert all(eval(one, {"size": size}) for one in conditions) is (forms == 2), (size, asked)
