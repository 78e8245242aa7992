"""Machine code, launch configurations and device models in every view, on records built by hand."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest
import samples
import samples_machine as made
from test_html import ATTRIBUTES, TAGS, Page

from compile_lens.measures.chain import Chain, kernel_lines
from compile_lens.record.kernel import Candidate, Code, Machine
from compile_lens.results.capture import Capture
from compile_lens.views.document import Table
from compile_lens.views.findings import findings
from compile_lens.views.live import code as code_parts
from compile_lens.views.live import encoded
from compile_lens.views.live import page as html
from compile_lens.views.live.items import Items
from compile_lens.views.live.page import parts
from compile_lens.views.render import markdown, text
from compile_lens.views.render.html import listing as machine_html
from compile_lens.views.subjects.capture import document
from compile_lens.views.words import labels, machine, stamp
from compile_lens.views.words.characters import clean, flat

BESIDE = "built, not run, for h100: the device model, not the device"
HEADER = "for NVIDIA H100 SXM (h100), sm_90: built; generated only, the device was absent"


def wide(capture: Capture) -> str:
    return text.page(document(capture), width=400, ascii=False)


def plain(capture: Capture) -> str:
    return markdown.page(document(capture)).replace("\\", "")


def static(capture: Capture) -> str:
    return Page(html.static(capture)).text


def viewer(capture: Capture) -> str:
    return str(parts(capture))


EVERY = pytest.mark.parametrize("view", (wide, plain, static, viewer), ids=lambda f: f.__name__)


@EVERY
def test_every_view_says_what_the_code_is_for(view: Callable[[Capture], str]) -> None:
    page = view(made.h100())
    assert HEADER.replace("built", "built, not run") in page
    assert BESIDE in page and "generated only, for h100: the device model, not the device" in page
    for words in (*made.MAY_DIFFER, *made.WHOLE, made.CROSSING, made.NOTE):
        assert words in page, words
    for words in made.ASKED:
        assert words in page or words.replace("'", r"\'") in page, words
    for figure in made.MODEL.properties:
        assert figure.name in page and figure.source in page
    assert "3.35 TB/s" in page and "the datasheet" in page
    assert "target='h100', build=True" in page or r"target=\'h100\', build=True" in page


@EVERY
def test_every_view_says_what_the_machine_code_needs(view: Callable[[Capture], str]) -> None:
    page = view(made.h100())
    for words in ("22 a", "sm_90a", "triton 3.7.1, ptxas 12.8", "no LLVM IR: the compiler kept none"):
        assert words in page.replace("22 registers a", "22 a"), words
    assert "2 launch configurations: a device that runs it times them; here the first was taken" in page
    assert "XBLOCK=256, num_warps=4 (taken)" in page and "XBLOCK=128, num_warps=2" in page
    widest = view(made.cpu())
    assert "512" in widest and "avx512" in widest and "g++ 13.2" in widest
    assert "launch configuration" not in widest and "device model" not in widest.lower()


@EVERY
def test_a_capture_of_the_device_itself_says_nothing_of_it(view: Callable[[Capture], str]) -> None:
    page = view(samples.sample()).lower()
    for words in ("device model", "may differ", "not there", "machine code", "launch configuration"):
        assert words not in page, words


def test_stamps() -> None:
    code = samples.sample().compilations[0].code["forward"]
    assert stamp.of_code(code) == "generated only: no kernel was built or run"
    for value, words in (("generated only", "generated only"), ("built", "built, not run"), ("odd", "odd")):
        changed = dataclasses.replace(code, stamp=value, model="a100")
        assert stamp.of_code(changed) == f"{words}, for a100: the device model, not the device"
    assert stamp.of_capture(samples.nothing()) == ""
    target = made.h100().target
    assert stamp.of_capture(dataclasses.replace(samples.nothing(), target=target)) == (
        "for NVIDIA H100 SXM (h100), sm_90"
    )
    own = dataclasses.replace(samples.sample(), target=target)
    assert stamp.of_capture(own).endswith("sm_90: generated only: no kernel was built or run")
    many = dataclasses.replace(code, may_differ=tuple(f"thing {i}" for i in range(9)))
    assert stamp.differences(many, 5)[5:] == ["and 4 more: Code.may_differ"]
    assert stamp.may_differ(many) == "may differ on the real device: 9 things"


def test_a_device_model_is_no_place_where_anything_was_done() -> None:
    for capture, wanted in ((made.h100(), "triton 3.7.1"), (made.cpu(), "cpu (AVX-512)")):
        assert labels.environment(capture)[:2] == ("torch 2.13.0+cpu", wanted)
    own = dataclasses.replace(made.h100(), environment=samples.sample().environment)
    assert labels.environment(own)[1] == "cpu (AVX-512)"


def test_configurations() -> None:
    (kernel,) = made.h100().compilations[0].code["forward"].kernels
    assert machine.taken(kernel) is kernel.candidates[0]

    def said(**changes: object) -> machine.Remark | None:
        return machine.configurations(dataclasses.replace(kernel, **changes))  # type: ignore[arg-type]

    second = said(machine=dataclasses.replace(made.MACHINE, candidate=1))
    assert second is not None and second.title.endswith("; here number 2 was taken")
    assert second.lines == ("XBLOCK=256, num_warps=4", "XBLOCK=128, num_warps=2 (taken)")
    for lone in (None, dataclasses.replace(made.MACHINE, candidate=-1), Machine("", "", 7)):
        none = said(machine=lone)
        assert none is not None and "taken" not in none.title + "".join(none.lines)
    one = said(candidates=kernel.candidates[:1])
    assert one == machine.Remark("the one launch configuration: XBLOCK=256, num_warps=4")
    assert said(candidates=()) is None
    many = said(candidates=tuple(Candidate((("XBLOCK", i),)) for i in range(50)))
    assert many is not None and many.lines[-1] == "and 10 more: kernel.candidates"


def test_facts_say_none_and_nothing_apart() -> None:
    (kernel,) = made.h100().compilations[0].code["forward"].kernels
    assert machine.facts(kernel) == (
        "sm_90a", "22 registers a thread", "no shared memory", "no spills", "9 instructions",
    )  # fmt: skip
    heavy = dataclasses.replace(made.MACHINE, registers=1, shared=4096, spills=16, instructions=1)
    assert machine.facts(dataclasses.replace(kernel, machine=heavy)) == (
        "sm_90a", "1 register a thread", "4,096 B shared memory", "16 B spilled", "1 instruction",
    )  # fmt: skip
    bare = dataclasses.replace(kernel, machine=Machine("gfx942", "x"))
    assert machine.facts(bare) == ("gfx942",)
    assert machine.figures(bare) == ("gfx942", "", "", "", "", "", "x")


def test_the_finding_leads_to_its_kernels() -> None:
    capture = made.h100()
    by_name = {f.key: f for f in findings(capture)}
    table = by_name["machine"].sections[0]
    assert isinstance(table, Table)
    assert [row.cells[0] for row in table.rows] == [
        f"forward: {made.NAME}", "backward: cpp_fused_add_cos_mul_neg_pow_sin_0",
    ]  # fmt: skip
    assert all(len(row.cells) == len(table.head) == len(table.kinds) for row in table.rows)
    assert all(address in capture.chain for row in table.rows for address in row.addresses)
    assert (
        by_name["machine"].brief[0] == "1 kernel for sm_90a, 22 registers a thread, no spills, 9 instructions"
    )
    assert by_name["machine"].fact == "1 of 2 kernels"
    figures = by_name["target"].sections[0]
    assert isinstance(figures, Table) and [row.cells for row in figures.rows][2:] == [
        ("memory bandwidth", "3.35 TB/s", "the datasheet"),
        ("float32 operations", "67 T/s", "the datasheet"),
    ]
    assert not {"machine", "target"} & {f.key for f in findings(samples.sample())}


def test_the_text_page_repeats_no_list_and_holds_no_code() -> None:
    capture = made.h100()
    assert "kernel.ttir, kernel.ptx, kernel.sass" in wide(capture) and "MUFU" not in wide(capture)
    first, second = (capture.compilations[0].code[p] for p in ("forward", "backward"))
    alike = made._with(capture, first, dataclasses.replace(second, may_differ=made.MAY_DIFFER))
    part = wide(alike).partition("── device model")[0].partition("── kernels")[2]
    assert part.count(made.MAY_DIFFER[1]) == 1 and "the same as of forward" in part
    assert max(map(len, text.page(document(capture), width=60, ascii=True).splitlines())) <= 60


def test_the_static_page_holds_the_last_form_where_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page(html.static(made.h100()))
    lines = made.SASS.rstrip().split("\n")
    # Other lines than instructions are folded, and nothing is lost.
    (at,) = [i for i, shown in enumerate(page.listings) if shown.lstrip().startswith("/*0000*/")]
    assert [one.rstrip("\n") for one in page.listings[at - 1 : at + 1]] == [
        "\n".join(lines[:2]),
        "\n".join(lines[2:]),
    ]
    assert "2 lines: directives, labels" in page.text
    first = made.h100().compilations[0].code["forward"].kernels[0].first_line
    assert f"← line {first + 11}, {first + 12}" in page.text and "sin.approx" not in page.text
    monkeypatch.setattr(machine_html, "ROOM", len(made.SASS) - 1)
    page = Page(html.static(made.h100()))
    assert "MUFU" not in page.text
    assert "left out to keep the page small: kernel.ttir, kernel.ptx, kernel.sass" in page.text
    head, code = made.ASSEMBLY.split("kernel:\n")
    shown = [one.rstrip("\n") for one in Page(html.static(made.cpu())).listings]
    assert shown.count(code.rstrip("\n")) == 1 and shown.count(head + "kernel:") == 1


@pytest.mark.parametrize("string", samples.HOSTILE, ids=lambda s: repr(s[:12]))
def test_hostile_strings_are_text(string: str) -> None:
    capture = made.hostile(string)
    source = html.static(capture)
    page = Page(source)
    assert page.tags <= TAGS and page.attributes <= ATTRIBUTES
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", source)
    assert page.text.count(flat(string)[:100]) > 20
    for shown in (text.page(document(capture), width=80, ascii=True), markdown.page(document(capture))):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    for name, part in parts(capture).items():
        if name.startswith("m"):
            assert part["forms"][0]["text"] == clean(string)  # type: ignore[index]
    assert max(map(len, text.page(document(capture), width=80, ascii=True).splitlines())) <= 80


def test_machine_code_travels_by_itself() -> None:
    packed = encoded(made.h100())
    assert "m0" in packed and "m1" not in packed
    assert not [name for name in encoded(samples.sample()) if name.startswith("m")]
    data = parts(made.h100())["m0"]
    kernel = made.h100().compilations[0].code["forward"].kernels[0]
    assert [f["text"] for f in data["forms"]] == [f.text for f in made.MACHINE.forms]  # type: ignore[index]
    items = Items(made.h100())
    seen = items.seen(0, "forward.code")
    assert seen is not None
    for shown, form in zip(data["forms"], made.MACHINE.forms, strict=True):  # type: ignore[index]
        known = {mark.line for mark in kernel.lines}
        wanted = [[line, seen.item(f"{made.NAME}:{of}")] for line, of in form.links if of in known]
        assert shown["items"] == wanted and wanted


def test_forms_that_do_not_fit_say_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_parts, "ROOM", len(made.SASS) + len(made.PTX))
    data = parts(made.h100())
    assert [f["text"] for f in data["m0"]["forms"]] == [made.PTX, made.SASS]  # type: ignore[index]
    stages = [part for name, part in data.items() if name.startswith("g") and "kernels" in part]  # type: ignore[operator]
    kernel = stages[0]["kernels"][0]  # type: ignore[index]
    assert kernel["forms"] == ["PTX", "SASS"] and kernel["part"] == "m0"
    assert {"title": "left out to keep the page small: kernel.ttir", "lines": []} in kernel["remarks"]
    monkeypatch.setattr(code_parts, "ROOM", 0)
    assert not [name for name in parts(made.h100()) if name.startswith("m")]


def test_lines_of_a_template_hang_on_their_kernel() -> None:
    capture = made.template()
    code = capture.compilations[0].code["forward"]
    (kernel,) = code.kernels
    assert [mark.line for mark in kernel_lines(kernel)] == [3, 6, 8, 9, 10, 11, 12, 13]
    chain = Chain(capture)
    line, whole = (("0/0", code.key, name) for name in (f"{made.NAME}:9", made.NAME))
    assert chain.up(line) == (whole,) and chain.why_not(line) == ""
    assert [frame.line for frame in chain.lines(line)] == [5]
    assert chain.lines(kernel) == Chain(made.h100()).lines(made.h100().kernels[0])
    data = parts(capture)
    assert len(data["m0"]["forms"][2]["items"]) == len(made.MACHINE.forms[2].links)  # type: ignore[index]


def test_a_kernel_without_machine_code_has_no_lines_of_its_own() -> None:
    for capture in (made.template(), samples.sample()):
        for code in (s for s in capture.compilations[0].stages if isinstance(s, Code)):
            for kernel in code.kernels:
                bare = dataclasses.replace(kernel, machine=None)
                assert kernel_lines(bare) == kernel.lines


@pytest.mark.parametrize("found", ["generated only", "built"])
def test_the_short_stamp_says_what_was_built_for_a_device_that_is_not_there(found: str) -> None:
    capture = made.h100()
    compilations = tuple(
        dataclasses.replace(
            c,
            stages=tuple(dataclasses.replace(s, stamp=found) if isinstance(s, Code) else s for s in c.stages),
        )
        for c in capture.compilations
    )
    words = {"generated only": "generated only", "built": "built, not run"}[found]
    assert stamp.short(dataclasses.replace(capture, compilations=compilations)) == f"device absent, {words}"
    assert stamp.short(samples.sample()) == "code only, not run"
    # Beside the short device name, with which the long one begins.
    assert stamp.short(dataclasses.replace(capture, compilations=())) == "nothing generated"
