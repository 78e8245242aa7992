"""Logs of kinds that the tests' torch does not write, made by hand; the expected values are counted in the text."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from full_text import full
from log_entries import (
    AOT_GRAPH,
    GRAPH,
    GUARDS,
    HEAD,
    ahead,
    artifact,
    compiled,
    entry,
    metrics,
    names,
    start,
)

from compile_lens import Program
from compile_lens.measures.causes import causes
from compile_lens.measures.program import counts
from compile_lens.record import claims
from compile_lens.record.program import FAILED, OUTCOME_NOT_KNOWN, RAISED, UNKNOWN, ProgramRecord
from compile_lens.record.torch_trace.program import program_from_log
from compile_lens.views.render import text
from compile_lens.views.subjects.program import document
from compile_lens.views.words import program as words

BROKEN = (
    "Graph Break Reason: Call to `torch._dynamo.graph_break()`\n\nUser code traceback:\n"
    '  File "model.py", line 4, in f\n    torch._dynamo.graph_break()\n'
)


def read(text: str) -> ProgramRecord:
    """The program of a log, read as from a file."""
    return program_from_log(io.StringIO(text, newline="\n"), "log")


LOG = (
    names()
    + compiled("0/0")
    + compiled("0/1", reasons=["0/0: tensor 'x' size mismatch at index 0. expected 4, actual 5"])
    + start("1/0", "g", 9)
    + artifact("dynamo_graph_break_reason", BROKEN, "1/0")
    + entry("dynamo_output_graph", None, GRAPH, "1/0")
    + metrics("1/0")
)


@pytest.mark.parametrize(
    "text",
    [LOG + start("2/0", "h", 20), re.sub(r'"frame_id": (\d+)', r'"frame_id": "\1"', LOG)],
    ids=["the last compile does not end", "ids of another type"],
)
def test_counts_are_at_least_where_a_compile_cannot_be_read(text: str) -> None:
    assert "graphs" not in counts(read(LOG)).at_least
    assert {"graphs", "breaks", "recompiles"} <= set(counts(read(text)).at_least)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_log_with_other_ends_of_lines_is_the_same(ending: str) -> None:
    record = read(LOG.replace("\n", ending))
    own = counts(record)
    assert (own.graphs, own.compilations, own.recompiles, own.breaks) == (3, 3, 1, 1)
    assert [g.inputs for g in record.graphs][:2] == [("x: float32[4] cpu",)] * 2
    assert record == read(LOG)
    assert words.verdict(record).startswith("3 graphs, 1 graph break at at least 1 place")


def test_a_text_with_a_carriage_return_of_its_own_is_read() -> None:
    text = GRAPH.replace("torch.sin(l_x_)", "torch.sin(l_x_)\r", 1)
    log = (
        names()
        + start("0/0")
        + entry("dynamo_output_graph", None, text, "0/0")
        + metrics("0/0", graph_op_count=None)
    )
    for ending in ("\n", "\r\n"):
        (graph,) = read(log.replace("\n", ending)).graphs
        assert graph.operators == 2


def test_an_entry_whose_text_cannot_be_read_counts() -> None:
    """One letter of every text is changed: its existence is known, its content is not."""
    damaged = "\n".join(
        line[:3] + "~" + line[4:] if line.startswith("\t") and len(line) > 5 else line
        for line in LOG.split("\n")
    )
    record = read(damaged)
    own = counts(record)
    assert (own.graphs, own.compilations, own.recompiles, own.breaks) == (3, 3, 1, 1)
    assert [g.inputs for g in record.graphs] == [()] * 3
    (broken,) = record.breaks
    assert broken.outcome == OUTCOME_NOT_KNOWN and "cannot be read" in broken.ending.reason
    again = record.recompiles[0].recompilation
    assert again is not None and again.nearest_entry == UNKNOWN and not again.failed_guards
    assert words.again(again).startswith("what failed is not known")
    assert record.lacks(claims.GUARDS) and not record.lacks(claims.GRAPHS)
    assert "texts of entries" in next(m.stage for m in record.missing if "texts" in m.stage)
    assert words.state(record) == "partial"


def test_the_operators_of_an_unreadable_graph_are_not_known() -> None:
    graph = entry("dynamo_output_graph", None, GRAPH, "0/0").replace("cos", "tan")
    (graph_of_metrics,) = read(names() + start("0/0") + graph + metrics("0/0")).graphs
    (graph_without,) = read(names() + start("0/0") + graph + metrics("0/0", graph_op_count=None)).graphs
    assert (graph_of_metrics.operators, graph_without.operators) == (2, None)


def test_a_lost_entry_makes_counts_lower_bounds() -> None:
    """The first line of the graph's entry is cut, so the number of graphs is unknown."""
    head = entry("dynamo_output_graph", None, GRAPH, "1/0").partition("\n")[0]
    record = read(LOG.replace(head, head[:-9]))
    assert record.lacks(claims.GRAPHS) and record.lacks(claims.BREAKS)
    assert words.verdict(record).startswith("at least 2 graphs")
    stray = read(LOG + "a line that a program printed\n")
    assert not stray.lacks(claims.GRAPHS) and counts(stray) == counts(read(LOG))


def test_a_metric_that_is_not_there_is_no_zero() -> None:
    record = read(names() + compiled("0/0", entire_frame_compile_time_s=None) + compiled("1/0", "g"))
    assert [v.seconds for v in record.evaluations] == [None, 0.25]
    rows = [
        row for row in full(Program(lambda: record)).splitlines() if "model.py:3" in row and "compiled" in row
    ]
    assert [row.split()[-1] for row in rows] == ["—", "ms"] and "250 ms" in rows[1]


@pytest.mark.parametrize(
    ("facts", "outcome", "head"),
    [
        (
            {"config_suppress_errors": True},
            FAILED,
            "could not be compiled: the compiler or the backend raised",
        ),
        ({}, RAISED, "could not be compiled: the call raised"),
    ],
)
def test_a_backend_that_raised_failed(facts: dict[str, Any], outcome: str, head: str) -> None:
    failure = {"fail_type": "BackendCompilerFailed", "fail_reason": "backend='b' raised:\nRuntimeError: no"}
    record = read(
        names()
        + start("0/0")
        + entry("dynamo_output_graph", None, GRAPH, "0/0")
        + artifact("dynamo_error", "Traceback", "0/0")
        + metrics("0/0", guard_count=None, **failure, **facts)
    )
    assert [v.outcome for v in record.evaluations] == [outcome] and not record.graphs
    assert words.verdict(record) == "nothing was compiled: 1 compile that raised"
    (cause,) = causes(record)
    assert head in words.head(cause)


def test_an_older_torch_says_no_breaks() -> None:
    """Three code objects of one function, each started again: the two that another one resumes have a break. An older
    torch's stack ends at the caller, and its metrics name the code."""
    codes = [("f", 3), ("torch_dynamo_resume_in_f_at_5", 5), ("torch_dynamo_resume_in_f_at_7", 7)]
    log = names()
    called_by = [("main", 30), ("f", 5), ("torch_dynamo_resume_in_f_at_5", 7)]
    for number, (name, line) in enumerate(codes):
        id = f"{number}/0"
        again = ["'skip function graph_break in file decorators.py'"] if number < 2 else []
        place = {"co_name": name, "co_filename": "model.py", "co_firstlineno": line}
        log += start(id, *called_by[number]) + entry("dynamo_output_graph", None, GRAPH, id)
        log += entry("dynamo_guards", None, "[]", id) + metrics(
            id, older=True, restart_reasons=again, **place
        )
    record = read(log)
    assert [(f.function, f.resume_line) for f in record.frames] == [("f", None), ("f", 5), ("f", 7)]
    assert [(b.outcome, b.graph, b.ending.frames[-1].line) for b in record.breaks] == [
        ("resumed", 0, 5),
        ("resumed", 1, 7),
    ]
    assert words.verdict(record).startswith("3 graphs, at least 2 graph breaks at at least 2 places")
    assert [v.caller and (v.caller.function, v.caller.line) for v in record.evaluations] == [
        ("main", 30),
        ("f", 5),
        ("f", 7),
    ]


def test_what_began_again_and_was_not_resumed_has_no_break() -> None:
    again = {"restart_reasons": ["a size became a symbol"]}
    resumes = start("2/0", "torch_dynamo_resume_in_f_at_5", 5) + metrics("2/0", **again)
    for log in (
        compiled("0/0", **again) + compiled("1/0", "g", 9),
        compiled("0/0", **again) + compiled("0/1") + resumes,
    ):
        record = read(names() + log)
        assert not record.breaks and not record.lacks(claims.BREAKS)


def test_guards_are_counted_as_torch_does() -> None:
    """The printed tree has an additional check for each way to mark a dimension, and none for some settings."""
    record = read(names() + compiled("0/0", guard_count=9, shape_env_guard_count=2))
    (visit,) = record.evaluations
    assert visit.guard_count == 10 and len(visit.guards) == 1
    assert "10 in all" in full(Program(lambda: record))


def test_what_aot_inductor_compiled_is_there() -> None:
    """There are two models, one with provenance and one without, and a compile of a call in between."""
    kernels = {"cpp_fused_sin_0:1": ["sin"], "extern_kernels.mm:2": ["mm"]}
    record = read(names() + ahead(kernels) + compiled("0/0") + ahead())
    assert [(one.kind, one.operators, one.inputs, one.modules) for one in record.ahead] == [
        ("AOTInductor", 1, ("L_x_: float32[4] cpu",), (0,)),
        ("AOTInductor", 1, ("L_x_: float32[4] cpu",), (2,)),
    ]
    named = [(m.id, [(k.name, k.nodes) for k in m.kernels], m.code_lines) for m in record.modules]
    assert named == [
        ("", [("cpp_fused_sin_0:1", ("sin",)), ("extern_kernels.mm:2", ("mm",))], 5),
        ("0/0", [], 2),
        ("", [("cpp_fused_sin_0", ())], 5),
    ]
    by_inductor = "2 graphs compiled by AOTInductor without a call, 2 generated modules, 3 kernels"
    assert words.verdict(record) == f"1 graph; {by_inductor}"
    own = counts(record)
    assert (own.graphs, own.ahead, own.modules) == (1, 2, 3)
    page = full(Program(lambda: record))
    assert "compiled without a call" in page and "cpp_fused_sin_0:1" in page
    assert Program.from_json(Program(lambda: record).to_json()).record == record


def test_a_log_of_compiles_without_a_call_is_no_watch() -> None:
    record = read(names() + ahead())
    assert words.state(record) == "compiled"
    assert (
        words.verdict(record)
        == "1 graph compiled by AOTInductor without a call, 1 generated module, 1 kernel"
    )
    empty = read(names())
    assert (words.state(empty), words.verdict(empty)) == ("nothing", "the log holds no compile")
    for page in (full(Program(lambda: record)), full(Program(lambda: empty))):
        assert "watched" not in page


def test_an_exported_program_has_its_conditions() -> None:
    line = {"line": 7, "name": "forward", "filename": 0, "loc": "return z[:a]"}
    torchs = {"line": 9, "name": "wrapper", "filename": 1}
    assumed = {"expr": "Eq(u0, 0)", "result": "False", "user_stack": [line, torchs]}
    record = read(
        names()
        + entry("guard_added", {"expr": "u0 >= 0", "stack": []})
        + entry("propagate_real_tensors_provenance", assumed)
        + entry("missing_fake_kernel", {"op": "mine::f", "reason": "no fake impl"})
        + entry("exported_program", None, "ExportedProgram:\n" + AOT_GRAPH)
        + entry("exported_program", None, "ExportedProgram:\n" + AOT_GRAPH)
    )
    first, second = record.ahead
    assert (first.kind, first.operators, second.conditions) == ("torch.export", 1, ())
    assert [(c.text, c.line and (c.line.line, c.line.text)) for c in first.conditions] == [
        ("u0 >= 0", None),
        ("Eq(u0, 0) was taken to be False, as it is for the given values", (7, "return z[:a]")),
        ("missing fake kernel of mine::f: no fake impl", None),
    ]
    assert words.verdict(record) == "2 exported programs"


def exported(id: str = "0/0") -> str:
    """A strict export: no compile starts the id of its graph, and its metrics have no id."""
    return (
        entry("dynamo_output_graph", {"sizes": {}}, GRAPH, id)
        + entry("dynamo_cpp_guards_str", None, GUARDS, id)
        + entry("compilation_metrics", {"compile_id": None, "fail_type": None})
    )


def test_a_strict_export_is_an_exported_program_and_no_compile() -> None:
    """There are as many exports and compiles as were written, though torch may give both the same id."""
    record = read(
        names() + exported() + exported() + compiled("0/0") + exported("1/0") + compiled("1/0", "g", 9)
    )
    assert [(one.kind, one.operators) for one in record.ahead] == [("torch.export", 2)] * 3
    assert [graph.id for graph in record.graphs] == ["0/0", "1/0"] and not record.notes
    assert words.verdict(read(names() + exported())) == "1 exported program"


@pytest.mark.parametrize("after", [False, True])
def test_an_export_whose_program_is_logged_too_is_one(after: bool) -> None:
    program = entry("exported_program", None, "ExportedProgram:\n" + AOT_GRAPH)
    graph, _, end = exported().partition(HEAD + '{"compilation_metrics"')
    end = HEAD + '{"compilation_metrics"' + end
    record = read(names() + graph + (end + program if after else program + end) + exported())
    assert [one.operators for one in record.ahead] == [1, 2]


def test_the_lines_of_kernels_are_those_of_the_program() -> None:
    first, second = (
        f'  File "model.py", line {n}, in f{end}    x.sin()' for n, end in ((4, "\\n"), (5, "\n"))
    )
    stacks = json.dumps({"triton_poi_fused_0": [first, second]})
    log = (
        names()
        + compiled("0/0")
        + artifact("inductor_provenance_tracking_kernel_stack_traces", stacks, "0/0")
    )
    record = read(log)
    ((kernel,),) = [m.kernels for m in record.modules]
    assert [(at.file, at.line, at.function) for at in kernel.lines] == [
        ("model.py", 4, "f"),
        ("model.py", 5, "f"),
    ]


def test_blank_lines_between_and_inside_of_texts_are_no_damage() -> None:
    """An editor that strips trailing white space leaves a log like this."""
    text = GRAPH.replace("        cos", "\n        cos")
    log = names() + start("0/0") + entry("dynamo_output_graph", None, text, "0/0") + "\n"
    log += metrics("0/0", graph_op_count=None)
    edited = "\n".join("" if line == "\t" else line for line in log.split("\n"))
    assert edited != log
    (graph,) = read(edited).graphs
    assert graph.operators == 2


SPLIT = """class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[s0, 64]"):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0)
        submod_2 = self.submod_2(submod_1)
        return submod_2
        """


def piece(name: str, first: int, last: int, index: int = 0) -> str:
    """The entry with which vLLM starts to compile a piece."""
    facts: dict[str, Any] = {"piecewise_index": index, "submod_name": name, "total_piecewise_compiles": 2}
    facts |= {"compile_range_start": first, "compile_range_end": last, "is_single_size": first == last}
    return artifact(
        "vllm_piecewise_compile_start",
        json.dumps(facts | {"is_cudagraph_capture_size": first == last}),
        "0/0",
    )


def test_what_vllm_compiled_is_there() -> None:
    """Two pieces, each for a range and for one size; the attention between them is not compiled."""
    config = {
        "model": "llama",
        "mode": "VLLM_COMPILE",
        "compile_sizes": "8",
        "use_inductor_graph_partition": False,
    }
    after = AOT_GRAPH.replace(
        "        return", "        cos = torch.ops.aten.cos.default(sin)\n        return"
    )
    passes = artifact("before_post_grad_graph", AOT_GRAPH, "0/0")
    passes += entry("graph_dump", {"name": "vllm_post_grad.0.NoOpEliminationPass"}, AOT_GRAPH, "0/0")
    passes += entry("graph_dump", {"name": "vllm_post_grad.1.FusionPass"}, after, "0/0")
    log = names() + start("0/0") + entry("dynamo_output_graph", None, GRAPH, "0/0")
    log += artifact("vllm_compile_event", '{"type": "fresh_compile"}', "0/0")
    log += artifact("vllm_compilation_config", json.dumps(config), "0/0")
    log += entry("graph_dump", {"name": "vllm_piecewise_split_graph"}, SPLIT, "0/0")
    for index, name in enumerate(("submod_0", "submod_2")):
        for first, last in ((1, 8192), (8, 8)):
            log += piece(name, first, last, index)
            if first == 1:
                log += entry("graph_dump", {"name": f"vllm_{name}"}, GRAPH, "0/0")
            log += passes if (index, first) == (0, 1) else ""
            log += entry(
                "inductor_output_code", {"filename": "/tmp/c.py"}, "k_0 = async_compile.cpp('''", "0/0"
            )
    record = read(log + entry("dynamo_cpp_guards_str", None, "", "0/0") + metrics("0/0"))
    (model,) = record.vllm
    assert (model.event, dict(model.settings)["compile_sizes"], model.submodules) == (
        "fresh_compile",
        "8",
        ("submod_0", "submod_1", "submod_2"),
    )
    assert [
        (p.submodule, p.compile_range, p.cudagraph_size, p.operators, p.modules) for p in model.pieces
    ] == [
        ("submod_0", (1, 8192), False, 2, (0,)),
        ("submod_0", (8, 8), True, 2, (1,)),
        ("submod_2", (1, 8192), False, 2, (2,)),
        ("submod_2", (8, 8), True, 2, (3,)),
    ]
    assert [(p.name, p.operators, p.changed_lines) for p in model.pieces[0].passes] == [
        ("0.NoOpEliminationPass", 1, 0),
        ("1.FusionPass", 2, 1),
    ]
    assert words.verdict(record) == "1 graph; vLLM compiled 4 pieces for 2 ranges of sizes"
    page = full(Program(lambda: record))
    assert all(
        word in page for word in ("1.FusionPass", "VLLM_COMPILE", "submod_0, submod_1, submod_2", "1 to 8192")
    )
    assert Program.from_json(Program(lambda: record).to_json()).record == record


def test_what_is_compiled_again_comes_before_graph_breaks_near_its_limit_or_not() -> None:
    """Six of eight cache entries, and a break: the function is close to running eagerly for good."""
    limit = {"dynamo_config": '{"recompile_limit": 8}'}
    broken = start("1/0", "g", 9) + artifact("dynamo_graph_break_reason", BROKEN, "1/0")
    broken += entry("dynamo_output_graph", None, GRAPH, "1/0") + metrics("1/0")
    for entries, first in ((2, "recompile"), (6, "recompile")):
        log = names() + compiled("0/0", **limit) + broken
        for number in range(1, entries):
            log += compiled(
                f"0/{number}", reasons=[f"0/{number - 1}: self.calls == {number}"], cache_size=number, **limit
            )
        kinds = [cause.kind for cause in causes(read(log))]
        assert kinds[0] == first and set(kinds) == {"graph break", "recompile"}


def test_passes_of_vllm_without_a_piece_in_the_log_are_there() -> None:
    """By hand: the first pass rewrites one line, the second adds one; no entry starts a piece."""
    before, first = "def forward(self, x):\n    a = x.sin()\n", "def forward(self, x):\n    a = fused(x)\n"
    log = names() + entry("graph_dump", {"name": "vllm_patterns.FusionPass"}, "def pattern_0(): ...", "0/0")
    log += artifact("before_post_grad_graph", before, "0/0")
    log += entry("graph_dump", {"name": "vllm_post_grad.0.FusionPass"}, first, "0/0")
    log += entry(
        "graph_dump", {"name": "vllm_post_grad.1.ReshapePass"}, first + "    b = a.view(-1)\n", "0/0"
    )
    record = read(log)
    (model,) = record.vllm
    assert [(one.name, one.changed_lines) for one in model.passes] == [
        ("0.FusionPass", 1),
        ("1.ReshapePass", 1),
    ]
    page = " ".join(text.page(document(record), 200, False).split())
    assert "vLLM ran 2 passes over graphs of which the log does not say the piece" in page
    assert "1.ReshapePass" in page and "vLLM compiled no piece" not in page


def test_entries_of_another_rank_are_left_out() -> None:
    zero, one = (_of_rank(compiled("0/0") + compiled("1/0", "g", 9), rank) for rank in (0, 1))
    record = program_from_log((names() + zero + one).splitlines(), "log")
    assert (record.rank, len(record.graphs), len(record.evaluations)) == (0, 2, 2)
    assert any("other ranks" in note for note in record.notes)


def _of_rank(lines: str, rank: int) -> str:
    return re.sub(r"(?m)^(V.*\] \{)", rf'\1"rank": {rank}, ', lines)


def test_a_log_without_its_beginning_is_not_whole() -> None:
    """The log is cut between two entries, so that each remaining entry can be read."""
    whole = names() + compiled("0/0") + compiled("1/0", "g", 9)
    assert not read(whole).lacks(claims.GRAPHS)
    rest = entry("str", ["/a/other.py", 7]) + compiled("1/0", "g", 9)
    assert "beginning" in read(rest).lacks(claims.GRAPHS)
    assert "at least 1 graph" in text.page(document(read(rest)), 200, False)


@pytest.mark.parametrize("cut", ["1/0", "0/1"])
def test_a_log_without_its_middle_is_not_whole(cut: str) -> None:
    """Torch numbers frames, and the compiles of each, from 0."""

    def event(id: str) -> str:
        value = {"name": "dynamo", "ts": 1.0, "ph": "B", "args": {"compile_id": id}, "tid": 0, "pid": 0}
        return entry("chromium_event", {}, json.dumps(value), id)

    parts = {id: event(id) + compiled(id) for id in ("0/0", "1/0", "0/1", "0/2", "2/0")}
    assert not read(names() + "".join(parts.values())).lacks(claims.GRAPHS)
    record = read(names() + "".join(lines for id, lines in parts.items() if id != cut))
    assert "within the log" in record.lacks(claims.GRAPHS)
    assert "at least 4 graphs" in text.page(document(record), 200, False)
