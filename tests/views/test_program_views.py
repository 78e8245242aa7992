"""A program in text, Markdown and HTML has the same facts, counted by hand, and no markup from the program."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from samples_program import FILE, program

from compile_lens import Program
from compile_lens.measures.causes import NOT_EVALUATED, Cause, causes
from compile_lens.measures.compile_time import PARTS, Cache, caches, compile_time
from compile_lens.measures.program import compile_seconds, counts, lines
from compile_lens.record.breaks import STANCE, Ending
from compile_lens.record.graph import Frame
from compile_lens.record.program import Break, CompileEvent, FrameEvaluation, ProgramFrame, ProgramRecord
from compile_lens.views.document import Listings, Picture, Prose, Table
from compile_lens.views.drawing.icicle import icicle
from compile_lens.views.findings.compile_time import compile_time as compile_time_finding
from compile_lens.views.render import html, markdown, text
from compile_lens.views.render.html.markup import linked
from compile_lens.views.subjects.program import document
from compile_lens.views.words import program as words

HOSTILE = "</pre><script>alert(1)</script>\x1b[31m|`*_‮é"


def test_counts_by_hand() -> None:
    figures = counts(program())
    assert (figures.graphs, figures.compilations, figures.without_graph) == (3, 4, 1)
    assert (figures.breaks, figures.break_sites, figures.recompiles) == (3, 3, 1)
    assert (figures.skipped, figures.partly_compiled, figures.at_limit, figures.raised) == (1, 1, 1, 0)
    assert compile_seconds(program()) == 0.875


def test_lines_by_hand() -> None:
    assert [(line.line, line.states) for line in lines(program())[FILE]] == [
        (2, ("eager", "compiled")),  # the calls at the limit run eagerly
        (3, ("broke", "eager", "compiled")),
        (4, ("eager", "compiled")),
        (5, ("eager", "compiled")),
        (6, ("broke", "eager")),
        (9, ("broke", "eager")),
        (10, ("eager",)),
    ]


def test_causes_are_ranked() -> None:
    ranked = [(c.kind, None if c.place is None else c.place.line) for c in causes(program())]
    assert ranked == [
        ("recompile limit", 1),
        ("runs eagerly", 9),
        ("rest runs eagerly", 6),
        ("graph break", 3),
        ("cache bypassed", None),
    ]
    limit = causes(program())[0]
    assert [(one.kind, one.count, one.seconds) for one in limit.effects] == [
        ("recompile limit", 1, 0.0),
        ("recompile", 1, 0.25),
    ], "one size: compiled again, and then at the limit"


def _flat(page: str) -> str:
    return " ".join(page.split())


def test_every_view_says_the_same() -> None:
    plain = _flat(text.page(document(program()), width=400, ascii=False))
    marked = _flat(re.sub(r"\\(.)", r"\1", markdown.page(document(program()))))
    page = _flat(re.sub(r"</?a\b[^>]*>", "", html.page(document(program()))))
    for finding in document(program()).findings:
        for section in finding.sections:
            if isinstance(section, (Picture, Listings)):  # the tables beside it have the same figures
                continue
            if isinstance(section, Prose):
                rows: list[tuple[str, ...]] = [section.paragraphs]
            else:
                assert isinstance(section, Table)
                rows = [(section.title, *section.words), *(row.cells for row in section.rows)]
            for cells in rows:
                for cell in cells:
                    for line in cell.splitlines():
                        for view in (plain, marked):
                            assert _flat(line) in view, (finding.key, line)
                        assert _flat(line).replace("'", "&#x27;") in page, (finding.key, line)
    for view in (plain, marked, page):
        assert "3 graphs in 4 compilations, 1 without a graph, 3 graph breaks at 3 places" in view
        assert "x.size(0) was 3, now 4" in view


def _timed() -> ProgramRecord:
    """Return 10 s, of which 6 in the backend, of which 4 in Inductor; 3 s of building in another thread beside it."""
    second = 1e6
    events = (
        CompileEvent("dynamo", 0.0, 10 * second, 0, "0/0", depth=0),
        CompileEvent("backend_compile", 3 * second, 6 * second, 0, "0/0", depth=1),
        CompileEvent("inductor_compile", 4 * second, 4 * second, 0, "0/0", depth=2),
        CompileEvent("code_gen", 5 * second, 1 * second, 0, "0/0", depth=3),
        CompileEvent("compile_file", 6 * second, 3 * second, 1, "0/0", depth=0),
        CompileEvent("dynamo", 100 * second, 2 * second, 0, "9/9", depth=0),
    )
    return dataclasses.replace(program(), events=events)


def test_rows_of_threads_that_add_up_to_more_than_passed_say_so() -> None:
    # By hand: 10 s and, from second 6 on, 3 s in another thread; 2 s at second 100. 15 s are in rows, 12 s elapsed.
    timed = _timed()
    functions, parts = _tables(timed)
    (words,) = functions.words
    assert "at the same time" in words and "15.0 s" in words and "12.0 s passed" in words
    assert "overlap" in parts.words[0]
    events = tuple(event for event in timed.events if event.thread == 0)
    assert _tables(dataclasses.replace(timed, events=events))[0].words == ()


def _tables(timed: ProgramRecord) -> list[Table]:
    finding = compile_time_finding(timed)
    assert finding is not None
    return [one for one in finding.sections if isinstance(one, Table)]


def test_compile_time_by_hand() -> None:
    first, other = compile_time(_timed())
    assert first.frame == program().frames[0]
    assert (first.ids, other.ids, other.frame) == (("0/0",), ("9/9",), None)
    assert [first.seconds[part] for part in PARTS] == [4.0, 0.0, 4.0, 3.0, 2.0] and other.total == 2.0
    assert compile_seconds(_timed()) == 12.0


def test_threads_that_build_for_a_compile_are_no_compile_of_their_own() -> None:
    beside = CompileEvent("triton_compile", 6e6, 3e6, 1, "", depth=0)
    one = dataclasses.replace(program(), events=(_timed().events[0], beside))
    assert "threads that build, for which a compile waits" in text.page(document(one), 200, False)
    assert "of no frame evaluation" not in text.page(
        document(one), 200, False
    ) and "of no frame evaluation" in text.page(document(_timed()), 200, False)


def test_the_icicle_is_as_wide_as_the_times() -> None:
    boxes = re.findall(
        r'<rect class="(\w+)" x="([\d.]+)" y="(\d+)" width="([\d.]+)"[^>]*><title>([^<]*)', icicle(_timed())
    )
    places = {label: (kind, float(x), int(y), float(width)) for kind, x, y, width, label in boxes}
    unit = 1176 / 12  # the 88 seconds in which nothing was compiled are left out
    for label, start, took in (
        ("0/0 dynamo, Dynamo, 10.0 s", 0, 10),
        ("0/0 backend_compile, the backend itself, 6.0 s", 3, 6),
        ("0/0 inductor_compile, Inductor, 4.0 s", 4, 4),
        ("0/0 code_gen, Inductor, 1.0 s", 5, 1),
        ("0/0 compile_file, building kernels, 3.0 s", 6, 3),
        ("9/9 dynamo, Dynamo, 2.0 s", 10, 2),
    ):
        _, x, _, width = places.pop(label)
        assert abs(x - 2 - start * unit) < 0.2 and abs(width - took * unit) < 0.2, label
    assert not places and icicle(dataclasses.replace(_timed(), events=())) == ""
    hostile = dataclasses.replace(_timed().events[0], name=HOSTILE)
    assert "<script" not in icicle(dataclasses.replace(_timed(), events=(hostile,)))


def test_a_break_in_a_library_is_told_with_the_line_that_came_there() -> None:
    there = Frame("/x/site-packages/torch/optim/optimizer.py", 79, "step", "graph_break()", of_torch=True)
    mine = Frame("train.py", 9, "train", "opt.step()")
    ending = Ending(
        "graph break", "User-inserted", (mine, there), "Remove the `torch._dynamo.graph_break()` call."
    )
    visit = FrameEvaluation("compiled", "0/0", breaks=(Break(ending),))
    record = ProgramRecord(
        "p", program().environment, frames=(ProgramFrame("step", there.file, 70, evaluations=(visit,)),)
    )
    (cause,) = causes(record)
    assert cause.caller == mine
    assert "train.py:9 (opt.step())" in words.advice(cause) and "Remove" not in words.advice(cause)


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/home/me/.pyenv/versions/3.11.7/lib/python3.11/asyncio/tasks.py", True),
        ("/usr/lib64/python3.13t/json/encoder.py", True),
        ("C:\\Users\\me\\Python312\\Lib\\contextlib.py", True),
        ("<frozen importlib._bootstrap>", True),
        ("/home/me/lib/python3.11/training.py", False),
        ("/home/me/asyncio/tasks.py", False),
        ("C:\\me\\lib\\training.py", False),
    ],
)
def test_files_of_python_s_own_library(file: str, library: bool) -> None:
    mine = Frame("train.py", 9, "train", "g(x)")
    visit = FrameEvaluation(
        "compiled", "0/0", breaks=(Break(Ending("graph break", "a break", (mine, Frame(file, 7, "g")))),)
    )
    frames = (ProgramFrame("train", "train.py", 1, evaluations=(visit,)),)
    (cause,) = causes(ProgramRecord("p", program().environment, frames=frames))
    assert cause.caller == (mine if library else None)


def test_the_number_of_a_cause_is_apart_from_what_it_says() -> None:
    (last,) = (n for n, cause in enumerate(causes(program()), 1) if cause.kind == "graph break")
    seen = _flat(re.sub(r"<[^>]*>", "", html.page(document(program()))))
    assert f"{last} · train.py:3" in seen and f"{last} train.py:3" not in seen


def test_caches_by_hand() -> None:
    assert caches(program()) == (
        Cache("Inductor's FX graphs", 1, 1, 0, ("full miss",)),
        Cache("AOTAutograd", 0, 0, 1, ("an op",)),
    )


def test_a_trace_for_perfetto(tmp_path: Path) -> None:
    raw = json.loads(Program(lambda: program(HOSTILE)).save_trace(tmp_path / "t.json").read_text("utf-8"))
    slices = [e for e in raw["traceEvents"] if e["ph"] == "X"]
    assert next((e["name"], e["ts"], e["dur"], e["args"]) for e in slices) == (
        "dynamo",
        0.0,
        875_000.0,
        {"compile id": "0/0"},
    )
    assert len(slices) == 2 and {e["name"] for e in raw["traceEvents"] if e["ph"] == "i"} == {
        "fx_graph_cache_hit",
        "fx_graph_cache_miss",
        "autograd_cache_bypass",
    }
    assert all({"name", "ph", "pid", "tid"} <= set(e) for e in raw["traceEvents"])


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


def _tags(page: str) -> list[str]:
    parser = _Tags()
    parser.feed(page)
    return parser.tags


def test_nothing_of_the_program_is_markup() -> None:
    page = html.page(document(program(HOSTILE)))
    assert "script" not in _tags(page) and "<script" not in page and "\x1b" not in page
    plain_page = html.page(document(program()))
    assert len(_tags(page)) - page.count("<span") == len(_tags(plain_page)) - plain_page.count("<span"), (
        "but for the inks of the source, the same elements"
    )
    marked = markdown.page(document(program(HOSTILE)))
    assert "<script" not in marked and "\x1b" not in marked
    plain = text.page(document(program(HOSTILE)), width=80, ascii=True)
    assert "\x1b" not in plain and plain.isascii()


def test_a_page_of_a_program_has_a_first_heading_and_a_cell_has_none() -> None:
    assert _tags(html.page(document(program()))).count("h1") == 1
    assert "h1" not in _tags(html.fragment(document(program())))


def test_addresses_of_the_web_are_links_and_nothing_else_is() -> None:
    assert linked("more: https://pytorch.org/a?b=1&c#d.") == (
        'more: <a style="color:#05c" href="https://pytorch.org/a?b=1&amp;c#d" target="_blank" '
        'rel="noopener noreferrer">https://pytorch.org/a?b=1&amp;c#d</a>.'
    )
    for plain in (
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "<https >",
        "//pytorch.org",
    ):
        assert "<a" not in linked(plain), plain
    quoted = linked("https://a.b/'onclick=alert(1)\"<script>")
    assert quoted.count("href=") == 1 and 'href="https://a.b/"' in quoted and "<script" not in quoted


def test_figures_of_rows_that_fit_no_table_have_names() -> None:
    plain = _flat(text.page(document(program()), width=60, ascii=False))
    assert "old · new · call · what changed · guard made at:" in plain
    assert "id · where · function · outcome · backend · operators · time:" in plain


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_text_fits(width: int) -> None:
    assert (
        max(len(line) for line in text.page(document(program()), width=width, ascii=True).splitlines())
        <= width
    )


def test_a_program_in_a_cell_and_in_json() -> None:
    result = Program(program)
    bundle = result._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"} and "Causes: " in bundle["text/plain"]
    assert Program.from_json(result.to_json()).record == program()
    hostile = program(HOSTILE)
    assert Program.from_json(Program(lambda: hostile).to_json()).record == hostile


def test_calls_under_a_stance_are_not_counted_as_eager_runs() -> None:
    """``eager_on_recompile`` runs the cache entry of each call that matches one: of three calls one may be eager."""
    at = Frame("t.py", 3, "f")
    perhaps = Cause(NOT_EVALUATED, at, "f", 3, certain=False, eager_kind=STANCE)
    head = words.head(perhaps)
    assert head == (
        "t.py:3 in f was called 3 times where nothing may be compiled: those calls that fitted no compiled variant ran "
        "eagerly"
    )
    sure = dataclasses.replace(perhaps, certain=True)
    assert words.head(sure).endswith("was run eagerly without a compile attempt, 3 times")


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            CompileEvent("compile_fx_inner", 0.0, 5e6),
            "no call compiled anything while it was watched, and Induct",
        ),
        (CompileEvent("bytecode_tracing", 0.0, 5e6), "nothing was compiled while it was watched"),
        (CompileEvent("compile_fx_inner", 0.0, 5e6, id="0/0"), "nothing was compiled while it was watched"),
    ],
    ids=["AOTInductor", "export", "a backward of before"],
)
def test_what_inductor_compiles_without_a_call_is_not_nothing(event: CompileEvent, said: str) -> None:
    one = ProgramRecord("p", program().environment, events=(event,), seconds=6.0)
    assert words.verdict(one).startswith(said)
