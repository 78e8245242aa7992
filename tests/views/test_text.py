"""The text page and Markdown: their content, their width, and user strings that do not break out."""

from __future__ import annotations

import dataclasses
import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import samples
import samples_findings
import samples_machine
from hypothesis import given
from hypothesis import strategies as st

from compile_lens.measures.ledger import MEASURED, MODELLED, Figure
from compile_lens.record.breaks import Ending
from compile_lens.record.capture import Failure, Timing
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Code
from compile_lens.results.capture import Capture
from compile_lens.views.render import html, markdown, text
from compile_lens.views.render.markdown import fenced
from compile_lens.views.render.text import LEAST_WIDTH
from compile_lens.views.subjects.capture import document, line
from compile_lens.views.words import characters, labels, outcome, quantities

ROOT = Path(__file__).parents[2]
VARIANTS = (
    samples.sample,
    samples.missing,
    samples.graph_break,
    samples.skipped,
    samples.failed,
    samples.failed_early,
    samples.nothing,
    samples_findings.told,
    samples_machine.h100,
)
HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("make", VARIANTS, ids=lambda f: f.__name__)
def test_page_is_as_it_was(make: Callable[[], Capture], golden: Callable[[str, str], None]) -> None:
    golden(f"{make.__name__}.txt", text.page(document(make()), width=100, ascii=False))


@pytest.mark.parametrize(
    "make",
    (
        samples.sample,
        samples.skipped,
        samples.graph_break,
        samples.failed,
        samples_findings.told,
        samples_machine.h100,
    ),
    ids=lambda f: f.__name__,
)
def test_markdown_is_as_it_was(make: Callable[[], Capture], golden: Callable[[str, str], None]) -> None:
    golden(f"{make.__name__}.md", markdown.page(document(make())))


@pytest.mark.parametrize("width", (40, 57, 80, 100, 200))
@pytest.mark.parametrize("make", VARIANTS, ids=lambda f: f.__name__)
def test_page_fits_the_width(make: Callable[[], Capture], width: int) -> None:
    page = text.page(document(make()), width=width, ascii=False)
    assert max(map(characters.cells, page.split("\n"))) <= width
    assert page.endswith("\n") and not page.endswith("\n\n")


@pytest.mark.parametrize("ascii", (False, True))
@pytest.mark.parametrize("string", samples.HOSTILE, ids=lambda s: repr(s[:12]))
def test_hostile_strings_stay_in_their_line(string: str, ascii: bool) -> None:
    for make in (samples, samples_findings, samples_machine):
        capture = make.hostile(string)
        page = text.page(document(capture), width=80, ascii=ascii)
        assert max(map(characters.cells, page.split("\n"))) <= 80
        assert not HIDDEN.search(page)
        assert len(page) < 60_000
        if ascii:
            assert page.isascii()
    start = characters.flat(string)[:20]
    page = text.page(document(samples.hostile(string)), width=80, ascii=ascii)
    assert (characters.printable(start, "ascii") if ascii else start) in page


def test_width_is_the_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    widths = {max(map(len, text.page(document(samples.sample()), ascii=True).split("\n")))}
    monkeypatch.setenv("COLUMNS", "3")
    widths.add(max(map(len, text.page(document(samples.sample()), ascii=True).split("\n"))))
    assert widths == {64, LEAST_WIDTH}


def test_str_of_a_capture_is_its_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    assert samples.sample().text("full") == text.page(document(samples.sample()), width=90, ascii=False)
    assert str(samples.sample()) == samples.sample().text()


@pytest.mark.parametrize("encoding", ("ascii", "latin-1", "cp1252", "cp437", "utf-8"))
def test_print_never_raises(encoding: str) -> None:
    env = {
        **os.environ,
        "PYTHONIOENCODING": encoding,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests/helpers'}",
        "PYTHONUTF8": "0",
    }
    code = "import samples; print(samples.hostile(samples.HOSTILE[5])); print(samples.sample())"
    run = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr.decode()
    output = run.stdout.decode(encoding)
    assert ("→" in output) == (encoding == "utf-8")
    assert "cpp_fused_add_cos_pow_sin_0" in output


def test_the_page_says_what_was_measured_and_what_was_not() -> None:
    page = text.page(document(samples.missing()), width=100, ascii=False)
    assert "~ is modelled" in page and "— is not known" in page
    assert "missing: cache hit" in page and "missing: torch 2.99 lacks this hook" in page
    assert "the graph holds a custom operator" in page


def test_a_failure_and_nothing_are_not_empty_pages() -> None:
    failed = text.page(document(samples.failed()), width=100, ascii=False)
    assert "failed in stage forward.loops: LoweringException" in failed
    assert "no lowering for mylib.twist.default" in failed and "5 calls" in failed
    nothing = text.page(document(samples.nothing()), width=100, ascii=False)
    assert "nothing was compiled: the function does no tensor work" in nothing
    assert "ledger" not in nothing and "kernels" not in nothing


def test_every_long_form_of_a_failure_has_the_line_of_the_program_before_the_words_of_torch() -> None:
    lines = ["a and b do not match", *(f"debug {n}" for n in range(30)), "set TORCHDYNAMO_VERBOSE=1"]
    caller = Frame("train.py", 3, "main", "m(x)")
    own = Frame("model.py", 7, "Net.forward", "return x @ y", call="x @ y")
    failure = Failure("dynamo", "TorchRuntimeError", "\n".join(lines), frames=(caller, own))
    capture = dataclasses.replace(samples.failed(), failure=failure)
    for page in (
        text.page(document(capture), width=100, ascii=False),
        markdown.page(document(capture)),
        html.static(document(capture)),
    ):
        at, call, callers, words, end = map(
            page.index,
            (
                "at model.py:7 in Net.forward",
                "return x @ y\n",
                "called from train.py:3 in main: m(x)",
                "a and b",
                "set TORCHD",
            ),
        )
        assert at < call < callers < words < end
        line = page.rindex("\n", 0, call) + 1
        below = page[call:].split("\n")[1]
        assert below.strip() == "^^^^^" and below.index("^") == call - line + len("return ")


def test_a_stage_time_is_given_to_no_wrong_compilation() -> None:
    capture = samples.graph_break()
    bare = dataclasses.replace(capture, timings=(Timing("dynamo", 1.5), Timing("1/0 dynamo", 0.25)))
    times = [labels.seconds(bare, c, "dynamo") for c in bare.compilations]
    assert times == [None, 0.25, None]
    assert labels.unplaced(bare) == (("dynamo", 1.5),)


@pytest.mark.parametrize(("stamp", "named"), [("generated only", labels.RUN_EAGERLY), ("ran", "run")])
def test_code_that_was_only_generated_has_no_time_of_a_run(stamp: str, named: str) -> None:
    capture = samples.sample()
    (one,) = capture.compilations
    stages = tuple(dataclasses.replace(s, stamp=stamp) if isinstance(s, Code) else s for s in one.stages)
    one = dataclasses.replace(one, stages=stages)
    whole = dataclasses.replace(capture, compilations=(one,), timings=(Timing("run", 0.193),))
    assert f"{named} 193 ms" in " ".join(text.page(document(whole), width=100, ascii=False).split())
    assert labels.unplaced(whole) == ((named, 0.193),)


def test_one_line() -> None:
    assert line(samples.nothing()).startswith("<Capture of greet: nothing was compiled")


@pytest.mark.parametrize(
    "size, said",
    ((0, "0 B"), (9_999, "9,999 B"), (10_000, "10 kB"), (46_137_344, "46.1 MB"), (999_499, "999 kB"),
     (999_600, "1 MB"), (5 * 10**15, "5,000 TB")),
)  # fmt: skip
def test_amounts(size: int, said: str) -> None:
    assert quantities.amount(Figure(size, MEASURED)) == said
    assert quantities.amount(Figure(size, MODELLED)) == f"~{said}"


def test_a_break_in_dynamos_words_is_taken_apart() -> None:
    words = (
        "Failed to trace builtin operator\n"
        "  Explanation: Dynamo cannot trace `print`.\n    It has a side effect.\n"
        "  Hint: Avoid `print`.\n\n  Developer debug context: builtin print\n"
    )
    reason = outcome.reason(Ending("graph break", words, (), "Avoid `print`."))
    assert reason.what == "Failed to trace builtin operator"
    assert reason.why == "Dynamo cannot trace `print`.\nIt has a side effect."
    assert reason.hint == "Avoid `print`." and reason.whole == words.strip()
    bare = outcome.reason(Ending("graph break"))
    assert bare.what == "no reason was recorded" and bare.whole == ""


def test_places_share_a_file_name() -> None:
    frames = [Frame("/x/a.py", 3, "f"), Frame("/x/a.py", 9, "f"), Frame("C:\\y\\b.py", 1, "g")]
    assert labels.places(frames) == "a.py:3, 9, b.py:1"
    assert labels.places(frames, limit=1) == "a.py:3, and 2 more"


@pytest.mark.full
@given(st.text(), st.integers(1, 60))
def test_wrap_and_fit_keep_to_the_width(string: str, width: int) -> None:
    shown = characters.clean(string)
    assert characters.cells(characters.fit(characters.flat(string), width)) <= width
    lines = characters.wrap(shown, max(width, 10))
    assert all(characters.cells(line) <= max(width, 10) for line in lines)
    kept = "".join("".join(lines).split())
    assert kept == "".join(shown.split())


@given(
    st.text(alphabet=st.characters(codec=None)),
    st.sampled_from(["ascii", "latin-1", "utf-8", "no-such-codec", None]),
)
def test_printable_can_be_encoded(string: str, encoding: str | None) -> None:
    known = encoding if encoding and encoding != "no-such-codec" else "ascii"
    shown = characters.printable(characters.flat(string), encoding)
    assert characters.encodes(shown, known)
    assert "\n" not in shown


@given(st.text())
def test_markdown_fences_hold(string: str) -> None:
    block = fenced(string).split("\n")
    fence = block[0]
    assert set(fence) == {"`"} and block[-1] == fence
    assert not any(line.lstrip().startswith(fence) for line in block[1:-1])
    span = markdown.code(string)
    ticks = len(span) - len(span.lstrip("`"))
    inner = span[ticks:-ticks]
    assert "`" * ticks not in inner and not inner.startswith("`") and not inner.endswith("`")


@pytest.mark.parametrize("string", samples.HOSTILE, ids=lambda s: repr(s[:12]))
def test_markdown_escapes(string: str) -> None:
    page = markdown.page(document(samples.hostile(string)))
    assert not HIDDEN.search(page.replace("\t", ""))
    outside = re.sub(r"^(`{3,})[^`\n]*\n.*?\n\1$", "", page, flags=re.S | re.M)
    outside = re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", outside)
    assert "<" not in outside
    assert not re.search(r"(?<!\\)\[link", outside)


def test_same_capture_same_bytes() -> None:
    for make in VARIANTS:
        assert text.page(document(make()), width=80, ascii=False) == text.page(
            document(make()), width=80, ascii=False
        )
        assert markdown.page(document(make())) == markdown.page(document(Capture.from_json(make().to_json())))
