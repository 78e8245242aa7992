"""Every entry of the zoo is captured once and checked in every respect."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from faults import report
from soundness import NO_PROGRAM, accounted, counted, lowering_faults, silent
from torch._inductor.runtime.runtime_utils import cache_dir
from zoo import Entry
from zoo_outcomes import ENTRIES, observe, outcome

from compile_lens.record.compilation import LOWERED_STAGES
from compile_lens.record.figures import AtLeast
from compile_lens.record.graph import Graph, Node
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.missing import AbsentStage
from compile_lens.results.capture import Capture

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("warm")]

BUILT = (
    "sin2_cos2",
    "layer_norm",
    "embedding_cross_entropy",
    "mm_relu",
    "sort",
    "int4_unpack",
    "batch_norm_train",
    "encoder_eval",
    "print_break",
    "dicts",
    "mutates_view",
    "dynamic",
    "custom_op",
    "autocast_inside",
)


def compiled(capture: Capture) -> list[Any]:
    """Return the compilations in which Dynamo produced a graph."""
    return [c for c in capture.compilations if "dynamo" in c.graphs]


IN_THE_QUICK_TIER = (
    *(
        "sin2_cos2",
        "sin2_cos2_inference",
        "int4_unpack",
        "zero_size",
        "layer_norm",
        "sort",
        "naive_attention",
    ),
    *(
        "dropout",
        "mlp_train",
        "tied",
        "adam_step",
        "graph_break",
        "disabled",
        "no_tensor_work",
        "mutates_view",
    ),
    *("dynamic", "cond", "checkpoint", "custom_op", "custom_op_without_fake"),
)

Check = Callable[[Entry], None]
CHECKS: list[tuple[str, Check, bool]] = []
"""Checks of each program: a name, a function of the program, and whether it must have been compiled."""


def each(check: Check) -> Check:
    CHECKS.append((check.__name__, check, False))
    return check


def working(check: Check) -> Check:
    CHECKS.append((check.__name__, check, True))
    return check


def test_the_zoo_is_large_enough() -> None:
    assert len(ENTRIES) >= 70
    assert set(IN_THE_QUICK_TIER) <= {entry.name for entry in ENTRIES}


@pytest.mark.cases(quick=len(IN_THE_QUICK_TIER), full=40)
@pytest.mark.parametrize(
    "entry",
    [
        pytest.param(e, id=e.name, marks=() if e.name in IN_THE_QUICK_TIER else pytest.mark.full)
        for e in ENTRIES
    ],
)
def test_program(entry: Entry) -> None:
    """Run all checks of this file; each fault is reported."""
    checks = [(name, check) for name, check, compiles in CHECKS if not (compiles and entry.fails)]
    report((name, functools.partial(check, entry)) for name, check in checks)


@each
def ends_as_it_should(entry: Entry) -> None:
    seen = outcome(entry.name)
    if entry.fails:
        assert seen.error is not None, "the compiler rejects this function, and the capture did not"
        assert seen.capture.failure is not None
        assert seen.capture.failure.stage == entry.fails
        assert seen.capture.failure.message
        assert seen.error.__cause__ is not None
    else:
        assert seen.error is None, str(seen.error)
        assert seen.capture.failure is None


@working
def result_and_side_effects_equal_eager(entry: Entry) -> None:
    assert outcome(entry.name).differences == []


@each
def state_is_as_before(entry: Entry) -> None:
    assert outcome(entry.name).state == []
    assert outcome(entry.name).inputs == []


@each
def record_round_trips(entry: Entry) -> None:
    capture = outcome(entry.name).capture
    text = capture.to_json()
    again = Capture.from_json(text)
    assert again == capture
    assert again.unknown_fields == ()
    assert again.to_json() == text


@working
def graphs_and_breaks(entry: Entry) -> None:
    capture = outcome(entry.name).capture
    if entry.nothing:
        assert compiled(capture) == []
        assert entry.nothing in capture.nothing_compiled
        assert capture.kernels == ()
        return
    assert capture.nothing_compiled == ""
    assert len(compiled(capture)) == entry.graphs if entry.graphs is not None else len(compiled(capture)) >= 1
    if entry.breaks is not None:
        assert len(capture.breaks) == entry.breaks
        assert all(e.reason for e in capture.breaks)
    ids = [c.id for c in capture.compilations]
    assert len(set(ids)) == len(ids)


@working
def backward_is_captured_where_expected(entry: Entry) -> None:
    phases = {p for c in outcome(entry.name).capture.compilations for p in c.phases}
    assert ("backward" in phases) == entry.backward


@each
def each_stage_is_there_or_says_why_not(entry: Entry) -> None:
    capture = outcome(entry.name).capture
    for c in compiled(capture):
        keys = {s.key for s in c.stages}
        assert len(keys) == len(c.stages), "a stage stands twice"
        wanted = {"dynamo", "pre_grad"}
        phases = ("inference",) if "inference" in c.graphs else ("forward", "backward")
        if phases != ("inference",):
            wanted.add("joint")
        wanted |= {p for p in phases} | {f"{p}.{s}" for p in phases for s in LOWERED_STAGES}
        if entry.fails:
            continue  # the failure names the stage at which the capture ended
        assert wanted <= keys, f"neither seen nor missing: {sorted(wanted - keys)}"
        for stage in c.stages:
            if isinstance(stage, AbsentStage):
                assert len(stage.reason) > 8, f"{stage.stage} is not there, and no reason is given"
            elif isinstance(stage, Code):
                assert stage.text.strip()
                assert stage.stamp == "generated only"
            else:
                assert stage.nodes, f"{stage.key} is empty"
                assert stage.text.strip() or not stage.calls


@working
def expected_stages_are_seen(entry: Entry) -> None:
    """Missing is for unobservable stages. On the CPU of a supported torch nothing of the zoo is like that."""
    assert outcome(entry.name).capture.missing == ()


@each
def origins_lead_to_the_stage_before(entry: Entry) -> None:
    capture = outcome(entry.name).capture
    chain = capture.chain
    for c in capture.compilations:
        for key, graph in c.graphs.items():
            assert (graph.before == "") == (key == "dynamo")
            for path, node in _walk(graph):
                if node.op in ("placeholder", "get_attr", "output"):
                    continue
                if graph.before and not node.origins:
                    assert node.no_origin, f"{key}: {node.name} has neither an origin nor a reason"
                if graph.before in c.graphs:
                    reached = chain.up((c.id, key, path + node.name))
                    wanted = set(node.origins)
                    if key == "forward" and "backward" in c.graphs:
                        # A value that the backward computes itself is its node there, and not this one too.
                        theirs = {o for _, n in _walk(c.graphs["backward"]) for o in n.origins}
                        wanted -= theirs - {node.name}
                        assert reached or not node.origins
                    assert len(reached) >= len(wanted), (
                        f"{key}: {node.name} names {wanted}, linked to {reached}"
                    )


@each
def kernels_reach_python(entry: Entry) -> None:
    capture = outcome(entry.name).capture
    for c in capture.compilations:
        for code in c.code.values():
            post_grad = {node.name for _, node in _walk(c.graphs[f"{code.phase}.post_grad"])}
            for kernel in code.kernels:
                assert kernel.launches >= 1
                assert _explained(capture, c.id, kernel), (
                    f"{kernel.name} reaches no Python line and says not why"
                )
                for line in kernel.lines:
                    assert line.origins or line.no_origin
                    assert {o.replace(":", "/").rpartition("/")[2] for o in line.origins} <= post_grad


def _explained(capture: Capture, cid: str, kernel: Kernel) -> bool:
    """Return True if the chain reaches Python, or something on the way explains why it ends there."""
    if capture.chain.lines(kernel) or kernel.no_origin:
        return True
    graphs = {c.id: c.graphs for c in capture.compilations}[cid]
    above = [a for a in capture.chain.ancestors((cid, f"{kernel.phase}.code", kernel.name)) if a[1] in graphs]
    named = {(key, path + node.name): node for key in graphs for path, node in _walk(graphs[key])}
    return any(named[a[1:]].no_origin for a in above)


SHARES = pytest.mark.parametrize(
    "entries",
    [
        pytest.param([e for e in ENTRIES if e.name in IN_THE_QUICK_TIER], marks=pytest.mark.full, id="some"),
        pytest.param(ENTRIES, marks=pytest.mark.exhaustive, id="all"),
    ],
)
"""Programs over which a share is computed: those that the quick tier captures anyway, or the whole zoo."""


@SHARES
def test_most_kernels_reach_python(entries: list[Entry]) -> None:
    """The share over many programs bounds how often a reason may replace the link."""
    working = [entry for entry in entries if not entry.fails]
    reached = [
        bool(outcome(e.name).capture.chain.lines(k)) for e in working for k in outcome(e.name).capture.kernels
    ]
    assert len(reached) > (150 if entries is ENTRIES else 30)
    # The rest are seeds of random numbers and functions of torch's own, captured alone; each has a reason.
    assert sum(reached) / len(reached) >= 0.96


@working
def lowering_agrees_with_the_loops(entry: Entry) -> None:
    assert list(lowering_faults(outcome(entry.name).capture)) == []


@SHARES
def test_nearly_every_line_reaches_python(entries: list[Entry]) -> None:
    lines = reached = 0
    for entry in entries:
        if entry.fails:
            continue
        one = outcome(entry.name).capture
        cover = accounted(one)
        if any(NO_PROGRAM in why for why, _ in cover.unexplained):
            continue
        assert cover.total.kernels == cover.total.kernels_reached or NO_PROGRAM in one.to_json(), entry.name
        assert all("template" in k or "own" in k for k in cover.uncovered), (entry.name, cover.uncovered)
        lines, reached = lines + cover.total.lines, reached + cover.total.reached
    assert lines > (3000 if entries is ENTRIES else 500)
    assert reached / lines >= 0.95


@each
def no_node_vanishes_in_silence(entry: Entry) -> None:
    capture = outcome(entry.name).capture
    assert silent(capture) == []
    assert capture.coverage().unexplained_nodes == 0


@SHARES
def test_many_nodes_were_looked_at(entries: list[Entry]) -> None:
    graphs = [
        c.graphs["joint"] for e in entries for c in compiled(outcome(e.name).capture) if "joint" in c.graphs
    ]
    assert sum(len(list(counted(graph))) for graph in graphs) > (600 if entries is ENTRIES else 100)


@each
def ledger_is_computed(entry: Entry) -> None:
    ledger = outcome(entry.name).capture.ledger
    json.dumps(ledger.to_dict())
    if entry.nothing:
        assert ledger.rows == ()
        return
    for row in ledger.rows:
        for figure in row.figures:
            assert figure is None or (figure.least if isinstance(figure, AtLeast) else figure) >= 0
        bounds = [f for f in row.figures if isinstance(f, AtLeast) and f.known < f.graphs]
        assert (None in row.figures or bool(bounds) or row.as_captured) == bool(row.notes)
        if row.groups:
            launches = row.launches.least if isinstance(row.launches, AtLeast) else row.launches
            assert launches is not None and launches >= 1


@working
def eager_operators_are_counted(entry: Entry) -> None:
    for c in compiled(outcome(entry.name).capture):
        assert c.eager is not None or c.eager_note


@each
def sources_hold_the_users_text(entry: Entry) -> None:
    capture = outcome(entry.name).capture
    for c in compiled(capture):
        if not c.file:  # a builtin of torch's: it has no text
            continue
        assert any(c.file == s.file for s in capture.sources), f"no source of {c.function} in {c.file}"


@pytest.mark.full
@pytest.mark.parametrize(
    "name", [BUILT[0], *(pytest.param(name, marks=pytest.mark.slow) for name in BUILT[1:])]
)
@pytest.mark.cases(full=2)
def test_built_code_equals_eager(name: str) -> None:
    entry = next(e for e in ENTRIES if e.name == name)
    assert not entry.random
    cache_dir()  # torch writes its path into the environment at the first build of a process
    seen = observe(entry, "dtype", build=True)
    assert seen.differences == []
    assert seen.state == []
    # The owner of the result may run its backward; the capture has only built it.
    ran = {"forward": "ran", "inference": "ran", "backward": "built"}
    assert all(code.stamp == ran[code.phase] for c in seen.capture.compilations for code in c.code.values())


def _walk(graph: Graph, path: str = "") -> Iterator[tuple[str, Node]]:
    """Yield every node with the path of its subgraph, as the chain addresses it."""
    for node in graph.nodes:
        yield path, node
    for name, body in graph.subgraphs:
        yield from _walk(body, f"{path}{name}/")
