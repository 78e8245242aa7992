"""Findings: one plain representation of the record's facts, shown by every view. On records built by hand."""

from __future__ import annotations

import dataclasses
import gc
import importlib
import weakref
import xml.etree.ElementTree as ET
from collections.abc import Iterator

import pytest
import samples
import samples_findings
from samples_machine import h100

from compile_lens.measures.chain import Address
from compile_lens.measures.unfused_pairs import MAX_PAIRED, unfused_pairs
from compile_lens.record.capture import ABLATIONS
from compile_lens.record.device import DeviceProperty
from compile_lens.results.capture import Capture
from compile_lens.views.document import LIVE, NOTE, Block, Changes, Columns, Finding, Picture, Prose, Table
from compile_lens.views.drawing import lanes
from compile_lens.views.findings import findings, unknown
from compile_lens.views.live import page as html
from compile_lens.views.live.items import Items
from compile_lens.views.live.page import parts
from compile_lens.views.render import markdown, text
from compile_lens.views.render.html import listing
from compile_lens.views.subjects.capture import document
from compile_lens.views.words import labels
from compile_lens.views.words.quantities import cells, printed


def by_key(capture: Capture) -> dict[str, Finding]:
    return {finding.key: finding for finding in findings(capture)}


def tables(finding: Finding) -> dict[str, Table]:
    return {s.title: s for s in finding.sections if isinstance(s, Table)}


def addresses(finding: Finding) -> Iterator[Address]:
    for section in finding.sections:
        if isinstance(section, Table):
            for row in section.rows:
                yield from row.addresses
        elif isinstance(section, Changes):
            for step in section.changes:
                yield from step.addresses


def test_every_finding_is_whole() -> None:
    every = findings(samples_findings.told())
    assert [f.key for f in every] == [
        "fusion", "lowering", "rewrites", "memory", "cost", "traffic", "contests", "cuda_graphs", "ablations",
        "benchmark", "profile",
    ]  # fmt: skip
    for finding in every:
        assert finding.title and finding.intro.endswith(".") and finding.fact and finding.where
        assert finding.sections and finding.brief and not finding.missing
        for section in finding.sections:
            if isinstance(section, Table):
                assert len(section.head) == len(section.kinds)
                assert all(len(row.cells) == len(section.head) for row in section.rows)


def test_rows_lead_to_what_the_record_has() -> None:
    capture = samples_findings.told()
    chain = capture.chain
    for finding in findings(capture):
        places = list(addresses(finding))
        assert all(address in chain for address in places), finding.key
        assert bool(places) == (finding.key not in ("ablations", "benchmark"))


@pytest.mark.full
def test_made_once_and_gone_with_the_capture() -> None:
    capture = samples_findings.told()
    assert findings(capture) is findings(capture)
    assert findings(samples_findings.told()) == findings(capture)
    gone = weakref.ref(capture)
    del capture
    gc.collect()
    assert gone() is None


def test_what_is_missing_says_why() -> None:
    by_name = by_key(samples.sample())
    assert by_name["lowering"].missing == by_name["memory"].missing == "not in the record"
    assert "compile_lens.ablate" in by_name["ablations"].missing
    assert "compile_lens.benchmark" in by_name["benchmark"].missing
    reasons = dict(unknown(by_name.values()))
    assert reasons["not in the record"] == ("Lowering", "Rewrites", "Memory")
    shown = text.page(document(samples.sample()), width=100, ascii=False)
    assert "Lowering, Rewrites, Memory: not in the record" in shown
    assert findings(samples.nothing()) == ()
    assert "── why" not in text.page(document(samples.nothing()), width=100, ascii=False)


def test_decisions_that_were_not_overheard_are_said_to_be_missing() -> None:
    fusion = by_key(samples.sample())["fusion"]
    said = [words for s in fusion.sections if isinstance(s, Prose) for words in s.paragraphs]
    assert "The record holds no decisions of the scheduler for forward, backward." in said
    finding = by_key(samples_findings.told())["fusion"]
    assert not any(
        "holds no decisions" in w for s in finding.sections if isinstance(s, Prose) for w in s.paragraphs
    )


# Fusion


def test_pairs_that_stayed_apart_are_those_of_the_final_groups() -> None:
    capture = samples_findings.told()
    pairs = unfused_pairs(capture, "0/0", "forward")
    assert [(p.first, p.second, p.follows, p.why.reason) for p in pairs] == [
        ("op0", "op1", True, "too large"),
        ("op1", "op2", True, "never proposed"),
    ]
    assert not unfused_pairs(capture, "0/0", "backward")  # one group
    for pair in pairs:
        assert pair.why == capture.why(pair.first, pair.second, "forward")


def test_of_many_readers_only_neighbours_are_paired() -> None:
    capture = samples_findings.told()
    first = capture.compilations[0]
    graphs = {key: first.graphs[f"forward.{key}"] for key in ("loops", "groups")}
    many = MAX_PAIRED + 3
    changed = {}
    for key, graph in graphs.items():
        x, like = graph.nodes[0], graph.nodes[1]
        nodes = [
            dataclasses.replace(like, name=f"op{i}", members=(f"op{i}",) if key == "groups" else ())
            for i in range(many)
        ]
        changed[graph.key] = dataclasses.replace(graph, nodes=(x, *nodes))
    stages = tuple(changed.get(s.key, s) for s in first.stages)
    capture = dataclasses.replace(capture, compilations=(dataclasses.replace(first, stages=stages),))
    pairs = unfused_pairs(capture, "0/0", "forward")
    assert [(p.first, p.second) for p in pairs] == [(f"op{i}", f"op{i + 1}") for i in range(many - 1)]
    assert not any(p.follows for p in pairs)


def test_fusion_is_told_by_reason_and_in_full() -> None:
    fusion = by_key(samples_findings.told())["fusion"]
    assert fusion.fact == "2 pairs not fused"
    pages = tables(fusion)
    large = pages["forward: too large, 1 pair"]
    assert "too large" in large.words[0] and large.words[1].startswith("To try: Raise the limit")
    (row,) = large.rows
    assert cells(row)[:3] == (
        "a part of torch.sin(x) ** 2 + torch.cos(x) ** 2 (example.py:5) · op0",
        "a part of torch.sin(x) ** 2 + torch.cos(x) ** 2 (example.py:5) · op1",
        "~8,000 B",
    )
    assert "3 > 2 nodes" in cells(row)[3] and large.kinds[3] == NOTE
    every = pages["forward: every decision"]
    assert every.room == LIVE and len(every.rows) == 2
    assert [cells(row)[2] for row in every.rows] == ["1", "2"]
    assert "everything is in one group" in " ".join(fusion.brief).lower()


def test_a_crowd_of_rows_is_cut_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("compile_lens.views.findings.fusion")
    monkeypatch.setattr(module, "DECISIONS", 1)
    finding = module.fusion(samples_findings.told())
    assert finding is not None
    every = tables(finding)["forward: every decision"]
    assert len(every.rows) == 1 and every.left == 1 and every.where == "capture.decisions"


# The other findings


def test_lowering_tells_inlined_from_kept() -> None:
    lowering = by_key(samples_findings.told())["lowering"]
    assert lowering.fact == "2 inlined, 3 not"
    kept, inlined = tables(lowering).values()
    assert [cells(row)[0] for row in kept.rows] == ["pow_1", "pow_2", "add"]
    assert cells(kept.rows[0])[2] == "many readers" and "5 reads, limit 4" in cells(kept.rows[0])[4]
    assert [cells(row) for row in inlined.rows] == [("sin", "op0", "once"), ("cos", "op0 + op1", "2 times")]


def test_rewrites_are_steps_with_both_sides() -> None:
    rewrites = by_key(samples_findings.told())["rewrites"]
    (steps,) = (s for s in rewrites.sections if isinstance(s, Changes))
    assert [(s.before, s.after) for s in steps.changes] == [
        ("mul = aten.mul(x, 1)", ""),
        ("pow_1 = aten.pow(sin, 2)", "pow_1 = aten.mul(sin, sin)"),
    ]
    assert ("0/0", "joint", "sin") in steps.changes[0].addresses
    assert ("0/0", "forward", "pow_1") in steps.changes[1].addresses
    assert any("tanh" in w for s in rewrites.sections if isinstance(s, Prose) for w in s.paragraphs)
    (table,) = tables(rewrites).values()
    assert [cells(row)[1] for row in table.rows] == ["joint_graph_passes"] and "1 pass more" in table.words[0]


def test_memory_tells_peak_and_what_is_kept() -> None:
    memory = by_key(samples_findings.told())["memory"]
    assert memory.fact == "peak ~11.7 KiB"
    buffers, kept = tables(memory).values()
    assert [cells(row)[3] for row in buffers.rows] == ["entry–end", "8–11", "9–11", "10–end", "10–end"]
    assert cells(buffers.rows[0])[4] == "donated: may be taken over" and cells(buffers.rows[4])[2] == "—"
    assert [cells(row)[3:] for row in kept.rows] == [("yes", "yes"), ("no", "yes"), ("no", "yes")]
    assert "2 nodes computed again" in kept.words[0]


def test_the_timeline_is_a_drawing_of_its_own() -> None:
    memory = samples_findings.MEMORY
    svg = lanes.timeline(memory, 20)
    root = ET.fromstring(svg)
    bars = [e for e in root.iter() if e.tag.endswith("rect")]
    assert len(bars) == 4  # one has no size
    assert "id=" not in svg and "href" not in svg
    (picture,) = (s for s in by_key(samples_findings.told())["memory"].sections if isinstance(s, Picture))
    assert ET.fromstring(picture.svg).tag.endswith("svg") and "4 buffers" not in picture.svg
    widths = {b.findtext("{http://www.w3.org/2000/svg}title"): float(b.get("width", "0")) for b in bars}
    assert widths["primals_1, input, 4,000 bytes"] > widths["buf2, output, 4,000 bytes"]
    assert lanes.timeline(dataclasses.replace(memory, buffers=()), 20) == ""


def test_traffic_has_a_roof_where_there_is_one() -> None:
    traffic = by_key(samples_findings.told())["traffic"]
    assert "memory-bound" in traffic.fact
    assert any(isinstance(s, Picture) for s in traffic.sections)
    without = dataclasses.replace(samples_findings.told(), benchmark=None)
    bare = by_key(without)["traffic"]
    assert not any(isinstance(s, Picture) for s in bare.sections) and "bound" not in bare.fact


def test_ablations_stand_side_by_side_with_their_code() -> None:
    capture = samples_findings.told()
    (columns,) = by_key(capture)["ablations"].sections
    assert isinstance(columns, Columns)
    assert [c.title for c in columns.columns] == list(ABLATIONS)
    first, _, last = columns.columns
    figures = dict(first.figures)
    assert figures["launches"] == "2" and printed(figures["moved"]) == "~20 kB"
    assert "max_fusion_size = 1" in first.words and "a note" in first.words
    assert dict(last.figures)["launches"] == "3"  # that of the capture
    sources = {k.source for k in capture.kernels if k.source}
    assert {block.text for block in last.blocks} == sources


def test_the_benchmark_is_medians_and_ratios() -> None:
    benchmark = by_key(samples_findings.told())["benchmark"]
    assert benchmark.fact == "2.00× eager's speed"
    (table,) = tables(benchmark).values()
    assert [cells(row)[0] for row in table.rows] == ["eager", "compiled"]
    assert cells(table.rows[1])[3] == "2.00×" and cells(table.rows[0])[3] == ""


# In the views


def test_parts_that_are_recorded_and_what_keeps_the_others_from_it() -> None:
    finding = by_key(samples_findings.told())["cuda_graphs"]
    assert finding.brief == ("forward: 2 parts are recorded, 1 not",)
    (table,) = tables(finding).values()
    assert [cells(row)[:4] for row in table.rows] == [
        ("1", "1", "yes", "op0"),
        ("2", "1", "no", "op1"),
        ("3", "1", "yes", "op2"),
        ("", "", "yes", "primals_1"),
    ]
    assert cells(table.rows[1])[4:] == ("it runs on the CPU (cpu ops)", "example.py:5")
    assert any(
        "Unknown until it runs" in p for s in finding.sections if isinstance(s, Prose) for p in s.paragraphs
    )


def test_measured_times_stand_beside_what_they_are_of() -> None:
    finding = by_key(samples_findings.told())["profile"]
    assert finding.fact == "1 kernel measured" and finding.brief == (
        "3/0 forward (in the record 0/0): 30 µs in kernels, 2 calls of 50 µs",
    )
    joined, other, lacking = tables(finding).values()
    assert cells(joined.rows[0]) == ("k0", "2", "30 µs", "100%", "15 µs", "10 µs", "20 µs", "sin, cos", "a.b")
    assert cells(joined.rows[1])[:3] == ("aten::empty", "2", "1 µs") and "not joined" in cells(joined.rows[1])
    assert other.rows == () and [cells(row) for row in lacking.rows] == [
        ("3/0 forward (in the record 0/0): k1", "the trace does not hold it"),
        ("4/0 inference: kernels", "it is not in this record"),
    ]


def test_contests_have_a_row_for_each_contender_and_no_winner() -> None:
    finding = by_key(samples_findings.told())["contests"]
    assert finding.fact == "1 contest, 3 contenders" and "none of them has won" in finding.intro.lower()
    (table,) = tables(finding).values()
    assert table.words == (
        "for pow_1, pow_2",
        "the code has extern_kernels.mm, since nothing was timed",
    )
    library, template, graph = (cells(row) for row in table.rows)
    assert library == ("extern_kernels.mm", *("—",) * 7, "")
    assert template[:4] == ("triton_mm", "BLOCK_K=16, BLOCK_M=64", "4", "3")
    assert template[4:8] == ("40 a thread", "24,576 B a block", "0 B a thread", "820")
    assert graph[0] == "decompose_k_mm (graph)"
    assert finding.brief == (
        "mm of float32[64, 32] and float32[32, 16]: 2 ways, 1 template, none of them timed",
    )
    texts = [s.text for s in finding.sections if isinstance(s, Block)]
    assert texts == ["acc += tl.dot(a, b)", "bmm = aten.bmm(x, y)"]


@pytest.mark.parametrize(
    ("limit", "built", "words"),
    [
        (24_576, True, ""),
        (
            24_575,
            True,
            "1 of 1 template needs more than the 24,575 bytes of shared memory that a block has there, and",
        ),
        (
            24_575,
            False,
            "which templates need more than the 24,575 bytes of shared memory that a block has there, and fall out, is "
            "known once all are built (build=True)",
        ),
    ],
)
def test_templates_that_the_device_refuses_are_no_contenders_there(
    limit: int, built: bool, words: str
) -> None:
    """The sample's template requires 24,576 bytes a block."""
    sample, there = samples_findings.told(), h100().target
    assert there is not None
    model = dataclasses.replace(
        there.model, properties=(DeviceProperty("shared_memory_per_block_optin", limit, "by hand"),)
    )
    (compilation, *others) = sample.compilations
    (one,) = compilation.autotuning
    contenders = tuple(k if built else dataclasses.replace(k, machine=None) for k in one.choices)
    compilation = dataclasses.replace(compilation, autotuning=(dataclasses.replace(one, choices=contenders),))
    sample = dataclasses.replace(
        sample,
        compilations=(compilation, *others),
        target=dataclasses.replace(there, model=model),
    )
    finding = by_key(sample)["contests"]
    (table,) = tables(finding).values()
    (brief,) = finding.brief
    assert words in brief and (words in table.words[-1] if words else len(table.words) == 2)
    assert "shared memory" in brief or not words


def test_the_pages_say_them_in_brief() -> None:
    capture = samples_findings.told()
    page = text.page(document(capture), width=400, ascii=False)
    marked = markdown.page(document(capture))
    for finding in findings(capture):
        assert f"{finding.title}: {finding.fact}" in page and finding.where in page
        assert f"### {markdown.escape(finding.title)}" in marked
    section = page[page.index("── why") : page.index("── also")]
    assert section.count("\n") <= 6 * len(findings(capture)) + 3


def test_what_is_computed_again_is_said_at_the_kernel_and_at_the_line() -> None:
    capture = samples_findings.told()
    origins = labels.Origins(capture)
    one, two = capture.kernels[:2]
    assert origins.of(one).again == (("cos", ("k1",)),) and origins.of(two).again == (("cos", ("k0",)),)
    assert "computed more than once: cos (also in k1)" in text.page(document(capture), width=100, ascii=False)
    assert listing.kernel_origins(one, {"cos"})[10] == "← cos (again)"
    assert "computed more than once: cos (also in k1)" in html.static(capture)
    kernel = next(k for k in parts(capture)["g8"]["kernels"] if k["name"] == "k0")  # type: ignore[index]
    assert kernel["again"] == [["cos", "k1"]]


def test_a_reduction_in_two_kernels_is_in_parts_and_not_computed_twice() -> None:
    capture = samples_findings.told()
    first = capture.compilations[0]
    graph = first.graphs["forward.post_grad"]
    nodes = tuple(dataclasses.replace(n, kind="reduction") if n.name == "cos" else n for n in graph.nodes)
    stages = tuple(dataclasses.replace(graph, nodes=nodes) if s.key == graph.key else s for s in first.stages)
    split = dataclasses.replace(capture, compilations=(dataclasses.replace(first, stages=stages),))
    one = labels.Origins(split).of(split.kernels[0])
    assert one.again == () and one.parts == (("cos", ("k1",)),)
    for page in (
        text.page(document(split), width=100, ascii=False),
        html.static(split),
        markdown.page(document(split)),
    ):
        assert "computed in parts: cos (also in k1)" in page and "more than once: cos" not in page
    kernel = next(k for k in parts(split)["g8"]["kernels"] if k["name"] == "k0")  # type: ignore[index]
    assert kernel["again"] == []
    assert {"title": "computed in parts: cos (also in k1)", "lines": []} in kernel["remarks"]


def test_what_no_line_computes_is_not_computed_again() -> None:
    """In the second half of a split reduction Inductor names everything that precedes it."""
    capture = samples_findings.told()
    first = capture.compilations[0]
    code = first.code["forward"]
    one, two = code.kernels
    one = dataclasses.replace(one, lines=tuple(line for line in one.lines if "cos" not in line.origins))
    assert "cos" in one.origins and any(line.origins for line in one.lines)
    code = dataclasses.replace(code, kernels=(one, two))
    stages = tuple(code if s.key == code.key else s for s in first.stages)
    split = dataclasses.replace(capture, compilations=(dataclasses.replace(first, stages=stages),))
    origins = labels.Origins(split)
    assert origins.of(one).again == origins.of(two).again == ()


def test_the_viewer_gets_items_and_reasons() -> None:
    capture = samples_findings.told()
    data = parts(capture)
    items = Items(capture)
    table = next(s for s in data["why-fusion"]["sections"] if s["kind"] == "table")  # type: ignore[index]
    wanted = [items.item(("0/0", "forward.groups", name)) for name in ("op0", "op1")]
    assert table["rows"][0]["items"] == wanted
    seen = items.seen(0, "forward.groups")
    assert seen is not None
    groups = data[f"g{seen.number}"]
    (first, _) = groups["notFused"]  # type: ignore[index]
    strings = groups["strings"]  # type: ignore[index]
    assert (seen.names[first["first"]], seen.names[first["second"]]) == ("op0", "op1")
    assert strings[first["reason"]] == "too large" and strings[first["saved"]] == "~8,000 B"
    heads = {f["key"]: f for f in data["core"]["findings"]}  # type: ignore[index]
    assert heads["fusion"]["part"] == "why-fusion"
    bare = parts(samples.sample())
    assert {f["key"] for f in bare["core"]["findings"] if not f["part"]} >= {"lowering", "memory"}  # type: ignore[index]
