"""The data of the interactive page: every part matches the contract and the record."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import re
import string
import zlib
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import contract
import pytest
import samples
import samples_findings
import samples_graph
import samples_machine
from hypothesis import given, settings
from hypothesis import strategies as st

from compile_lens.measures.chain import PYTHON, Chain
from compile_lens.record.compilation import Compilation, Guard
from compile_lens.record.graph import Frame, Graph, Node, Source
from compile_lens.record.kernel import Code, Kernel, LineOrigin
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture
from compile_lens.views import live
from compile_lens.views.live import texts
from compile_lens.views.live.index import modules
from compile_lens.views.live.items import MOST_COMPILATIONS, Items
from compile_lens.views.live.texts import defining_lines
from compile_lens.views.render.html import listing
from compile_lens.views.words import folds, highlight
from compile_lens.views.words.characters import clean, flat

Parts = dict[str, Any]

parts_module = importlib.import_module("compile_lens.views.live.page")  # a function has its name


def bodies() -> Capture:
    """Return a function with ``cond``: nodes of one name in the graph and in both of its bodies."""
    where = (Frame(samples.FILE, 5, "f", "return cond(p, a, b, (x,))"),)

    def graph(stage: str, before: str, phase: str = "") -> Graph:
        def node(name: str, op: str = "call_function") -> Node:
            origins = (name,) if before else ()
            return Node(name, op, name, frames=() if before else where, origins=origins)

        inner = (node("x", "placeholder"), node("sin"), node("output", "output"))
        true = Graph(stage, phase, before, inner)
        false = dataclasses.replace(true, nodes=(*inner[:2], node("cos"), inner[2]))
        top = (node("x", "placeholder"), node("true_0", "get_attr"), node("sin"), node("output", "output"))
        return Graph(stage, phase, before, top, _COND, subgraphs=(("true_0", true), ("false_0", false)))

    stages = (graph("dynamo", ""), graph("inference", "dynamo"))
    compilation = dataclasses.replace(samples.sample().compilations[0], stages=stages)
    return dataclasses.replace(samples.sample(), compilations=(compilation,))


_COND = """\
class GraphModule(torch.nn.Module):
    def forward(self, x: "f32[4][1]cpu"):
        # File: /home/ada/example.py:5 in f, code: sin = cond(p, a, b, (x,))
        true_0 = self.true_0
        sin: "f32[4][1]cpu" = torch.sin(x);  true_0 = None
        return (sin,)

    class true_0(torch.nn.Module):
        def forward(self, x: "f32[4][1]cpu"):
            sin = x.sin();  x = None
            return (sin,)

    class false_0(torch.nn.Module):
        def forward(self, x: "f32[4][1]cpu"):
            sin = x.sin();  x = None
            cos = sin.cos()
            return (cos,)
"""


def strange_graph() -> Capture:
    """Return a graph with every hostile text in every field of a node, in a stage and in the body of an operator."""
    graph = dataclasses.replace(samples_graph.hostile(), stage="dynamo", phase="", before="")
    graph = dataclasses.replace(graph, subgraphs=tuple((t, graph) for t in samples_graph.HOSTILE[:3]))
    compilation = dataclasses.replace(samples.sample().compilations[0], stages=(graph,))
    return dataclasses.replace(samples.sample(), compilations=(compilation,))


SAMPLES: dict[str, Callable[[], Capture]] = {
    "sample": samples.sample,
    "missing": samples.missing,
    "graph_break": samples.graph_break,
    "failed": samples.failed,
    "failed_early": samples.failed_early,
    "nothing": samples.nothing,
    "bodies": bodies,
    "layers": lambda: samples.layers(3, 10),
    "strange_graph": strange_graph,
    "told": samples_findings.told,
    "told_hostile": lambda: samples_findings.hostile(samples.HOSTILE[0]),
    "h100": samples_machine.h100,
    "template": samples_machine.template,
    "h100_hostile": lambda: samples_machine.hostile(samples.HOSTILE[0]),
    **{f"hostile{i}": functools.partial(samples.hostile, t) for i, t in enumerate(samples.HOSTILE)},
}

each = pytest.mark.parametrize("name", SAMPLES)


@functools.cache
def made(name: str) -> tuple[Capture, Parts]:
    """Return a sample and its parts, as the page reads them."""
    capture = SAMPLES[name]()
    data = {n: json.loads(_text(p)) for n, p in live.encoded(capture).items()}
    every = {**data.pop("small"), **data}
    return capture, {n: every[n] for n in sorted(every, key=lambda n: (n[0] == "g", len(n), n))}


def _text(part: str) -> bytes:
    return zlib.decompress(_bytes(part))


def _bytes(part: str) -> bytes:
    """Decode base 91 in the plainest way: a text of zeros and ones, whose last ones fill no byte."""
    signs = sorted({*string.ascii_letters, *string.digits, *string.punctuation} - {*'"<\\'})
    values = {sign: value for value, sign in enumerate(signs)}
    pairs = [part[at : at + 2] for at in range(0, len(part), 2)]
    bits = "".join(
        f"{values[p[0]] + 91 * values[p[1]]:013b}" if len(p) == 2 else f"{values[p]:06b}" for p in pairs
    )
    whole = len(bits) // 8
    return int(bits[: whole * 8] or "0", 2).to_bytes(whole, "big")


@pytest.mark.parametrize("length", range(60))
def test_bytes_come_back_from_their_signs(length: int) -> None:
    for data in (bytes(length), b"\xff" * length, bytes(at * 37 % 256 for at in range(length))):
        signs = parts_module.based(data)
        assert _bytes(signs) == data
        assert len(signs) <= -(-len(data) * 16 // 13)
        assert signs.isprintable() and not set(' "<\\') & set(signs)


def below(numbers: list[int], limit: int) -> None:
    assert all(type(n) is int and 0 <= n < limit for n in numbers)


@each
def test_parts_obey_the_contract(name: str) -> None:
    _, parts = made(name)
    contract.check(parts["core"], "Core")
    contract.check(parts["index"], "Index")
    contract.check(parts["story"], "StoryData")
    index = parts["index"]
    assert [s["part"] for s in index["stages"]] == ["", *(n for n in parts if n[0] == "g")]
    heads = [finding for finding in parts["core"]["findings"] if finding["part"]]
    kernels = [
        kernel for stage in index["stages"] if is_code(stage) for kernel in parts[stage["part"]]["kernels"]
    ]
    named = {thing["part"] for thing in (*heads, *index["stages"], *kernels)}
    assert named - {""} == set(parts) - {"core", "index", "story"}
    for kernel in kernels:
        assert bool(kernel["part"]) == bool(kernel["forms"])
        if kernel["part"]:
            contract.check(parts[kernel["part"]], "FormsData")
            assert len(parts[kernel["part"]]["forms"]) == len(kernel["forms"])
    for finding in heads:
        contract.check(parts[finding["part"]], "FindingData")
    for stage in index["stages"][1:]:
        contract.check(parts[stage["part"]], "CodeData" if is_code(stage) else "GraphData")


def is_code(stage: dict[str, Any]) -> bool:
    return bool(re.search(r"\.code$", stage["key"]))


@each
def test_items_are_numbered_stage_by_stage(name: str) -> None:
    _, parts = made(name)
    index = parts["index"]
    counts = [s["count"] for s in index["stages"]]
    total = sum(counts)
    assert [s["start"] for s in index["stages"]] == [0, *accumulate(counts)][:-1]
    assert len(index["names"]) == len(index["kindOf"]) == total == len(index["offsets"]) - 1
    assert index["offsets"][0] == 0 and index["offsets"][-1] == len(index["above"])
    assert all(a <= b for a, b in pairwise(index["offsets"]))
    below(index["above"], total)
    below(index["kindOf"], len(index["kinds"]))
    assert len(index["lineTexts"]) == counts[0]
    below([item for item, _ in index["noOrigin"]], total)
    bare = [i for i in range(counts[0], total) if index["offsets"][i] == index["offsets"][i + 1]]
    assert [item for item, _ in index["noOrigin"]] == bare and all(why for _, why in index["noOrigin"])
    for stage in index["stages"]:
        kinds = [index["kinds"][k] for k in index["kindOf"][stage["start"] : stage["start"] + stage["count"]]]
        if stage["key"] == PYTHON:
            assert set(kinds) <= {"python"}
        elif is_code(stage):
            lines = stage["count"] - stage["kernels"]
            assert kinds == ["kernel"] * stage["kernels"] + ["line"] * lines


@each
def test_links_are_those_of_the_chain(name: str) -> None:
    capture, parts = made(name)
    chain, items, index = Chain(capture), Items(capture), parts["index"]
    addresses = [*items.lines]
    for seen in items.stages:
        addresses += [(seen.id, seen.stage.key, n) for n in seen.names]
    assert sorted(addresses) == sorted(chain.addresses())
    number = {address: i for i, address in enumerate(addresses)}
    offsets, above = index["offsets"], index["above"]
    down: dict[int, list[int]] = {i: [] for i in range(len(addresses))}
    for item, address in enumerate(addresses):
        ups = above[offsets[item] : offsets[item + 1]]
        assert ups == [number[up] for up in chain.up(address)]
        assert index["names"][item] == flat(address[2])
        for up in ups:
            down[up].append(item)
    for item, address in enumerate(addresses):
        assert sorted(down[item]) == sorted(number[a] for a in chain.down(address))
    for item, why in index["noOrigin"]:
        assert why == flat(chain.why_not(addresses[item]))


@each
def test_steps_and_sources_point_at_items(name: str) -> None:
    capture, parts = made(name)
    core, index = parts["core"], parts["index"]
    steps = [
        (c, s) for c, comp in enumerate(core["compilations"]) for la in comp["lanes"] for s in la["steps"]
    ]
    for number, step in steps:
        if step["kind"] == "missing":
            assert step["stage"] == -1 and step["missing"]
        else:
            stage = index["stages"][step["stage"]]
            assert (stage["compilation"], stage["key"]) == (number, step["key"]) and not step["missing"]
            assert (step["kind"] == "code") == is_code(stage)
    shown = sorted(step["stage"] for _, step in steps if step["stage"] >= 0)
    assert shown == list(range(1, len(index["stages"])))
    for source, wanted in zip(core["sources"], capture.sources, strict=True):
        inked(source["code"], clean(wanted.text))
        known = {
            int(n.rpartition(":")[2]) for f, _, n in Items(capture).lines if n.startswith(wanted.file + ":")
        }
        last = wanted.first_line + wanted.text.count("\n")
        assert {n for n, _ in source["items"]} == {n for n in known if wanted.first_line <= n <= last}
        for number, item in source["items"]:
            assert index["names"][item] == flat(f"{wanted.file}:{number}")


def inked(text: dict[str, Any], wanted: str) -> None:
    """Assert that a text is as expected, and that its colours cover its beginning."""
    assert text["text"] == wanted
    assert sum(run // 16 for run in text["inks"]) <= len(wanted.encode("utf-16-le")) // 2
    assert all(run // 16 > 0 and run % 16 <= len(highlight.INKS) for run in text["inks"])
    assert all(a % 16 != b % 16 for a, b in pairwise(text["inks"]))


@each
def test_graphs_hold_their_nodes(name: str) -> None:
    capture, parts = made(name)
    items = Items(capture)
    for seen in items.stages:
        if not isinstance(seen.stage, Graph):
            continue
        data, count = parts[f"g{seen.number}"], len(seen.names)
        strings = data["strings"]
        for field in ("op", "target", "module", "moduleType", "frames", "outputs"):
            assert len(data[field]) == count
        for field in ("op", "target", "module", "moduleType"):
            below(data[field], len(strings))
        below([f for frames in data["frames"] for f in frames], len(strings))
        below([t for tensors in data["outputs"] for t in tensors], len(data["tensors"]))
        for field in ("traffic", "detail", "members"):
            below([row[0] for row in data[field]], count)
        assert len(set(strings)) == len(strings)
        assert [strings[t] for t in data["target"]][: len(seen.stage.nodes)] == [
            flat(n.target) for n in seen.stage.nodes
        ]
        assert [seen.names[i] for i in data["saved"]] == [n for n in seen.stage.saved if n in seen.names]
        inked(data["code"], clean(seen.stage.text))
        by_local = dict(data["members"])
        for node in seen.stage.nodes:
            if node.members and (loops := items.seen(seen.compilation, f"{seen.stage.phase}.loops")):
                wanted = [loops.item(m) for m in node.members if m in loops.locals]
                assert by_local[seen.locals[node.name]] == wanted


@each
def test_drawings_hang_together(name: str) -> None:
    capture, parts = made(name)
    for seen in Items(capture).stages:
        if not isinstance(seen.stage, Graph):
            continue
        data = parts[f"g{seen.number}"]
        paths = [path for path, _ in nested(seen.stage)]
        assert len(data["scenes"]) == len(paths)
        reached: list[int] = []
        for scene, path in zip(data["scenes"], paths, strict=True):
            own = {i for i, n in enumerate(seen.names) if n.rpartition("/")[0] == path.removesuffix("/")}
            for form in ("whole", "folded"):
                roots = [scene[form]] if scene[form] >= 0 else []
                for place, body in enumerate(roots):
                    boxes = data["bodies"][body]["boxes"]
                    members = [m for box in boxes for m in box["members"]]
                    assert len(members) == len(set(members))
                    if place == 0 and not name.startswith(("strange", "hostile")):  # their names may have "/"
                        assert set(members) == own
                    roots += [box["body"] for box in boxes if box["body"] >= 0]
                reached += roots
            assert scene["whole"] >= 0 or scene["note"]
        assert sorted(reached) == list(range(len(data["bodies"])))
        assert {b["layout"] for b in data["bodies"]} == set(range(len(data["layouts"])))
        for body in data["bodies"]:
            layout = data["layouts"][body["layout"]]
            assert len(layout["boxes"]) == len(body["boxes"])
            assert len(layout["edges"]) == len(body["labels"]) and len(layout["stubs"]) == len(body["stubs"])
            for box in body["boxes"]:
                below(box["members"], len(seen.names))
                if box["body"] >= 0:
                    inner = data["bodies"][box["body"]]["boxes"]
                    assert {m for b in inner for m in b["members"]} == set(box["members"])
        for layout in data["layouts"]:
            below([end for edge in layout["edges"] for end in edge["ends"]], len(layout["boxes"]))
            below([stub["box"] for stub in layout["stubs"]], len(layout["boxes"]))
            for curve in (*layout["edges"], *layout["stubs"]):
                assert len(curve["points"]) % 6 == 2
            numbers = re.findall(r"[-\d.e]+", json.dumps(layout))
            assert not [n for n in numbers if "." in n and len(n.partition(".")[2]) > 1]


def nested(graph: Graph, path: str = "") -> list[tuple[str, Graph]]:
    return [(path, graph), *(g for name, body in graph.subgraphs for g in nested(body, f"{path}{name}/"))]


def test_lines_of_a_graph_define_its_nodes() -> None:
    capture, parts = made("sample")
    for seen in Items(capture).stages:
        if isinstance(seen.stage, Graph):
            data = parts[f"g{seen.number}"]
            lines = data["code"]["text"].split("\n")
            assert data["lineOf"] == sorted(data["lineOf"], key=lambda pair: pair[0])
            locals = [local for _, local in data["lineOf"]]
            assert len(locals) == len(set(locals))
            for number, local in data["lineOf"]:
                name = re.escape(seen.names[local])
                op = data["strings"][data["op"][local]]
                forms = {"placeholder": rf"def forward\(.*\b{name}\b|^\s*{name} = ", "output": r"^\s*return "}
                assert re.search(forms.get(op, rf"^\s*{name}(: .*)? =|^{name}: "), lines[number - 1])
            found = {seen.names[local] for local in locals}
            if seen.stage.stage == "forward":
                assert found == set(seen.names)
            if seen.stage.stage == "groups":
                assert found == {"op0"}


def test_lines_of_bodies_are_those_of_their_own_class() -> None:
    graph = bodies().compilations[0].graphs["dynamo"]
    assert defining_lines(graph, _COND) == [
        (2, "x"), (4, "true_0"), (5, "sin"), (6, "output"),
        (9, "true_0/x"), (10, "true_0/sin"), (11, "true_0/output"),
        (14, "false_0/x"), (15, "false_0/sin"), (16, "false_0/cos"), (17, "false_0/output"),
    ]  # fmt: skip


def test_inputs_that_are_unpacked_have_the_line_of_their_declaration() -> None:
    nodes = tuple(Node(n, "placeholder", n) for n in ("primals_1", "tangents_1"))
    text = (
        "class inner_f(torch.nn.Module):\n"
        "    def forward(self, primals, tangents):\n"
        '        primals_1: "f32[4][1]cpu"; tangents_1: "f32[4, s0][1, 4]cpu"; \n'
        "        primals_1, tangents_1, = fx_pytree.tree_flatten_spec([primals, tangents], self._in_spec)\n"
    )
    graph = Graph("joint", "", "", nodes)
    assert defining_lines(graph, text) == [(3, "primals_1"), (3, "tangents_1")]
    undeclared = "\n".join(text.split("\n")[:2] + text.split("\n")[3:])
    assert defining_lines(graph, undeclared) == [(3, "primals_1"), (3, "tangents_1")]


@pytest.mark.parametrize(
    "line", ["sin == x", "sin_1 = x", "# sin = x", "x.sin = y", "y = sin = x", "(sin) = x", "sinus: int = 3"]
)
def test_a_line_that_only_looks_like_it_defines_nothing(line: str) -> None:
    graph = Graph("forward", "", "", (Node("sin", "call_function", "sin"),))
    assert defining_lines(graph, f"def forward(self):\n    {line}\n") == []


@each
def test_code_holds_its_kernels(name: str) -> None:
    capture, parts = made(name)
    chain, index = Chain(capture), parts["index"]
    for seen in Items(capture).stages:
        if not isinstance(seen.stage, Code):
            continue
        data, stage = parts[f"g{seen.number}"], index["stages"][seen.number]
        inked(data["module"], clean(seen.stage.text))
        module = data["module"]["text"].split("\n")
        folded(data["folds"], len(module))
        for shown, kernel in zip(data["kernels"], seen.stage.kernels, strict=True):
            assert index["names"][shown["item"]] == shown["name"] == flat(kernel.name)
            assert stage["start"] <= shown["item"] < stage["start"] + stage["kernels"]
            assert (shown["source"] is None) == (not kernel.source.strip())
            if shown["source"] is None:
                assert shown["first"] == 0 and not shown["items"]
                continue
            inked(shown["source"], clean(kernel.source))
            lines = shown["source"]["text"].split("\n")
            folded(shown["folds"], len(lines))
            if shown["first"]:
                inside = lines[: shown["last"] - shown["first"] + 1]
                assert inside[1:-1] == module[shown["first"] : shown["last"] - 1]
                assert inside[0] in module[shown["first"] - 1] and inside[-1] in module[shown["last"] - 1]
            for number, item in shown["items"]:
                assert 1 <= number <= len(lines)
                assert index["names"][item] == flat(f"{kernel.name}:{number}")
                assert stage["start"] + stage["kernels"] <= item < stage["start"] + stage["count"]
            whys = {
                n: chain.why_not((seen.id, seen.stage.key, f"{kernel.name}:{n}")) for n, _ in shown["items"]
            }
            assert shown["noOrigin"] == [[n, flat(why)] for n, why in whys.items() if why]


def folded(found: list[dict[str, Any]], count: int) -> None:
    assert all(1 <= f["first"] and f["last"] <= count and f["last"] > f["first"] for f in found)
    assert all(a["last"] < b["first"] for a, b in pairwise(found))


def test_the_sample_has_all_that_it_should() -> None:
    """The tests above depend on these facts."""
    _, parts = made("sample")
    data = parts["g8"]
    (kernel,) = data["kernels"]
    assert kernel["first"] > 0 and len(kernel["items"]) == 15 and len(kernel["noOrigin"]) == 10
    assert kernel["launches"] == 1 and kernel["operators"] == ["sin", "pow_1", "cos", "pow_2", "add"]
    assert kernel["lines"] == ["example.py:5"] and kernel["traffic"] == "~8,000 B"
    assert kernel["moved"] == "~8,000 B read and written, modelled" and kernel["sourceless"] == ""
    assert kernel["languageTitle"] == "C++"
    (launch,) = kernel["launchLines"]
    assert data["module"]["text"].split("\n")[launch - 1].strip().startswith(kernel["name"] + "(")
    index = parts["index"]
    by_name = {index["names"][item]: item for _, item in kernel["items"]}
    line = by_name["cpp_fused_add_cos_pow_sin_0:10"]  # auto tmp3 = tmp0.cos();
    ups = index["above"][index["offsets"][line] : index["offsets"][line + 1]]
    assert [index["names"][up] for up in ups] == ["cos"]
    assert parts["core"]["sources"][0]["items"] == [[5, 0]]
    assert index["lineTexts"] == [samples.LINE.strip()]
    steps = [s for lane in parts["core"]["compilations"][0]["lanes"] for s in lane["steps"]]
    assert {s["key"]: s["unchanged"] for s in steps if s["unchanged"]} == {
        "pre_grad": "Dynamo", "forward.post_grad": "forward", "backward.post_grad": "backward",
    }  # fmt: skip


def test_a_kernel_has_the_same_colours_in_its_module() -> None:
    _, parts = made("sample")
    data = parts["g8"]
    (kernel,) = data["kernels"]
    start = data["module"]["text"].index(kernel["source"]["text"])
    end = start + len(kernel["source"]["text"])
    own = spread(kernel["source"])
    assert spread(data["module"])[start:end] == own and any(own)
    assert any(spread(data["module"])[:start]) and any(spread(data["module"])[end:])


def spread(text: dict[str, Any]) -> list[int]:
    """Return the colour of each character."""
    inks = [run % 16 for run in text["inks"] for _ in range(run // 16)]
    return inks + [0] * (len(text["text"].encode("utf-16-le")) // 2 - len(inks))


@given(st.text(alphabet=st.sampled_from("ab1 =(){}'\"#\n\t/*&<é"), max_size=120), st.integers(0, 130))
@settings(max_examples=150, deadline=None)
def test_runs_are_the_colours_of_the_html(source: str, limit: int) -> None:
    for language in ("python", "cpp", "none"):
        runs = highlight.runs(source, language, limit)
        head = source[: sum(length for length, _ in runs)]
        assert all(length > 0 and 0 <= ink <= len(highlight.INKS) for length, ink in runs)
        assert len(head) <= limit and (head == source or not head or head.endswith("\n"))
        shown: list[tuple[str, int]] = []
        lines, _ = listing.coloured(source, language, limit)
        for line in lines:
            line = line.replace("<b>", '<span style="color:#b3202c">').replace("</b>", "</span>")
            for ink, inside, outside in re.findall(r'<span style="color:(#\w+)">(.*?)</span>|([^<]+)', line):
                text = re.sub(r"&(?:lt|amp|gt|quot|#x27);", "&", inside or outside)
                shown += [(c, highlight.INKS.index(ink) + 1 if ink else 0) for c in text]
        plain = (0, highlight.INKS.index("#0550ae") + 1)  # the two that HTML does not distinguish
        inks = [0 if ink in plain else ink for length, ink in runs for _ in range(length)]
        wanted = inks + [0] * (len(source) - len(head))
        flatly = [i for c, i in zip(source, wanted, strict=True) if not c.isspace()]
        assert [i for c, i in shown if not c.isspace()] == flatly


def test_texts_stay_within_what_a_page_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "TEXT_ONE", 300)
    monkeypatch.setattr(texts, "COLOURED", 500)
    capture = samples.sample()
    parts = live.parts(capture)
    module = parts["g8"]
    assert isinstance(module, dict)
    shown = module["module"]["text"].split("\n")
    whole = capture.code["forward"].split("\n")
    assert shown[:-1] == whole[: len(shown) - 1] and re.fullmatch(
        r"… \([\d,]+ characters left out .*\)", shown[-1]
    )
    assert module["kernels"][0]["first"] == 0, "its lines are not among those that are shown"
    every = [parts["core"]["sources"][0]["code"], module["module"]]  # type: ignore[index]
    for number in range(1, 14):
        part: Any = parts[f"g{number}"]
        every += [part["code"]] if "code" in part else [k["source"] for k in part["kernels"]]
    coloured = sum(run // 16 for text in every for run in text["inks"])
    assert 0 < coloured <= 500
    for number in (1, 4):
        part = parts[f"g{number}"]
        assert all(line <= part["code"]["text"].count("\n") for line, _ in part["lineOf"])  # type: ignore[index]


TRITON = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
triton_helpers.set_driver_to_gpu()

@triton_heuristics.pointwise(
    size_hints={'x': 1024},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32'}},
    inductor_meta={'autotune_hints': set()},
    min_elem_per_thread=0
)
@triton.jit
def triton_poi_fused_sin_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 1000
"""


def test_folds_of_kernels() -> None:
    assert folds.kernel_folds(TRITON, "triton") == [
        folds.Fold(2, 7, "imports"),
        folds.Fold(9, 16, "sizes and metadata for Triton's launcher"),
    ]
    metal = (
        "\n    #include <a.h>\n    #include <b.h>\n    #include <c.h>\n    kernel void generated_kernel(\n"
    )
    assert folds.kernel_folds(metal, "metal") == [folds.Fold(2, 4, "headers")]
    assert folds.kernel_folds(metal.replace("    #include <c.h>\n", ""), "metal") == [], "too short"
    assert folds.kernel_folds(metal[1:], "cpp") == [folds.Fold(1, 3, "headers")]
    for language in ("cpp", "metal", "triton", "none"):
        assert folds.kernel_folds("", language) == []


def test_folds_of_a_module() -> None:
    text = (
        "# AOT ID: ['0_forward']\nimport torch\nfrom math import (\n    inf,\n    nan,\n)\n\n"
        "aten = torch.ops.aten\nasync_compile = AsyncCompile()\nempty_strided_p2p = torch._C.p2p\n\n\n"
        "# kernel path: /tmp/x.py\ntriton_0 = async_compile.triton('triton_0', '''\n"
        f"{TRITON.strip()}\n''', device_str='cuda')\n\n\ndef call(args):\n    import torch\n    return ()\n\n\n"
        "def get_args():\n    return []\n\n\ndef benchmark_compiled_module(args):\n    pass\n\n\n"
        'if __name__ == "__main__":\n    get_args()\n\n'
    )
    lines = text.split("\n")
    head, tail = folds.module_folds(text)
    assert (head.first, lines[head.last - 1]) == (1, "empty_strided_p2p = torch._C.p2p")
    assert lines[tail.first - 1].startswith("def get_args") and lines[tail.last - 1] == "    get_args()"
    assert head.label == "imports and aliases" and tail.label == "benchmark of this module"
    assert folds.module_folds("def call(args):\n    pass\n") == [] == folds.module_folds("")


def test_folds_of_a_kernel_stand_in_its_module_too() -> None:
    capture = samples.sample()
    compilation = capture.compilations[0]
    text = f"import torch\n\nk = async_compile.triton('k', '''{TRITON}''', device_str='cuda')\n"
    kernel = Kernel("k", "forward", "triton", "pointwise", TRITON, 3, 3 + TRITON.count("\n"), (40,))
    code = Code("forward", text, "generated only", "cuda", (kernel,))
    changed = dataclasses.replace(
        compilation, stages=tuple(code if s.key == "forward.code" else s for s in compilation.stages)
    )
    data: Any = live.parts(dataclasses.replace(capture, compilations=(changed,)))["g8"]
    assert data["kernels"][0]["first"] == 3
    own, there = data["kernels"][0]["folds"], data["folds"]
    assert [(f["first"], f["last"]) for f in own] == [(2, 7), (9, 16)]
    assert [(f["first"], f["last"]) for f in there] == [(4, 9), (11, 18)]
    moved = dataclasses.replace(kernel, source=TRITON.replace("1000", "999"))
    elsewhere = dataclasses.replace(code, kernels=(moved,))
    changed = dataclasses.replace(compilation, stages=(elsewhere,))
    data = live.parts(dataclasses.replace(capture, compilations=(changed,)))["g1"]
    assert (data["kernels"][0]["first"], data["kernels"][0]["last"]) == (0, 0), "another text stands there"


def test_a_late_node_has_the_module_that_its_origins_share() -> None:
    def node(name: str, *origins: str, module: str = "") -> Node:
        return Node(
            name, "call_function", name, module=module, module_type="Linear" * bool(module), origins=origins
        )

    first = (node("a", module="m.0.up"), node("b", module="m.0.down"), node("c"), node("d", module="m.1"))
    dynamo = Graph("dynamo", "", "", (*first, node("e", module="m.0")))
    late = (
        node("same", "a"), node("both", "a", "b"), node("with_none", "a", "c"), node("apart", "a", "d"),
        node("none", "c"), node("own", "a", module="mine"),
    )  # fmt: skip
    forward = Graph("forward", "", "dynamo", late)
    loops = Graph(
        "loops", "forward", "forward", (node("loop", "same", "none"), node("deep", "both", "apart"))
    )
    compilation = Compilation("0/0", "f", "", 0, (dynamo, forward, loops))
    capture = dataclasses.replace(samples.sample(), compilations=(compilation,))
    items = Items(capture)
    names = modules(items)
    named = {n: names[s.item(n)] for s in items.stages[1:] for n in s.names}
    assert named == {
        "same": ("m.0.up", "Linear"), "both": ("m.0", "Linear"), "with_none": ("m.0.up", "Linear"),
        "apart": ("m", ""), "none": ("", ""), "own": ("mine", "Linear"),
        "loop": ("m.0.up", "Linear"), "deep": ("m", ""),
    }  # fmt: skip
    data: Any = live.parts(capture)["g2"]
    assert [data["strings"][m] for m in data["module"]] == [named[n][0] for n in items.stages[1].names]


def test_links_in_a_circle_end() -> None:
    graph = Graph(
        "joint", "", "joint", (Node("a", "x", "x", origins=("b",)), Node("b", "x", "x", origins=("a",)))
    )
    capture = dataclasses.replace(samples.sample(), compilations=(Compilation("0/0", "f", "", 0, (graph,)),))
    assert modules(Items(capture))[-2:] == [("", ""), ("", "")]
    contract.check(live.parts(capture)["index"], "Index")


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_names_come_through_as_text(text: str) -> None:
    _, parts = made(f"hostile{samples.HOSTILE.index(text)}")
    core = parts["core"]
    assert core["function"] == core["compilations"][0]["function"] == flat(text)
    assert core["compilations"][0]["guards"] == [[flat(text), flat(text)]]
    assert flat(text) in parts["index"]["names"] and flat(f"{text}:3") in parts["index"]["names"]
    assert parts["g1"]["code"]["text"] == clean(text)
    whole = json.dumps(parts, ensure_ascii=False)
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", whole)


@pytest.mark.full
@pytest.mark.parametrize(
    "name", ("sample", "missing", "nothing", "bodies", "layers", "strange_graph", "hostile7")
)
def test_the_same_capture_gives_the_same_bytes(name: str) -> None:
    capture = SAMPLES[name]()
    capture = dataclasses.replace(capture, unknown_fields=())  # they are not written again
    first = live.encoded(capture)
    assert first == live.encoded(capture) == live.encoded(Capture.from_json(capture.to_json()))
    for part in first.values():
        assert re.fullmatch(r"[^<\"\\\s]+", part)  # characters that JSON or a script element could misread
        data = json.loads(_text(part))
        assert json.dumps(data, separators=(",", ":"), ensure_ascii=False).encode() == _text(part)


@pytest.mark.full
def test_bodies_of_a_large_part_are_texts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page reads thousands of boxes when it draws them; their content is the same."""
    capture = samples.layers(3, 10)
    monkeypatch.setattr(parts_module, "MAX_PACKED_CHARACTERS", 0)
    plain = {n: json.loads(_text(p)) for n, p in live.encoded(capture).items()}
    monkeypatch.setattr(parts_module, "LARGE", 0)
    late = {n: json.loads(_text(p)) for n, p in live.encoded(capture).items()}
    seen = 0
    for name, part in late.items():
        if "bodies" in part:
            assert all(isinstance(body, str) for body in part["bodies"])
            part["bodies"] = [json.loads(body) for body in part["bodies"]]
            seen += len(part["bodies"])
        assert part == plain[name]
    assert seen > 3


def test_kernels_of_one_name_share_an_item() -> None:
    capture = samples.sample()
    compilation = capture.compilations[0]
    mm = Kernel("extern_kernels.mm", "forward", "extern", "extern", "", launch_lines=(1,), origins=("sin",))
    code = Code("forward", "x", "ran", "cpu", (mm, dataclasses.replace(mm, origins=("cos",))))
    stages = tuple(code if s.key == "forward.code" else s for s in compilation.stages)
    parts: Any = live.parts(
        dataclasses.replace(capture, compilations=(dataclasses.replace(compilation, stages=stages),))
    )
    one, two = parts["g8"]["kernels"]
    assert one["item"] == two["item"] and one["operators"] == ["sin"] and two["operators"] == ["cos"]
    assert parts["index"]["stages"][8]["count"] == 1


def test_many_of_everything_is_counted_not_carried() -> None:
    capture = samples.nothing()
    one = Compilation("0/0", "f", "", 0, (Missing("dynamo", "x"),), guards=(Guard("g"),) * 300)
    many = tuple(dataclasses.replace(one, id=f"{i}/0") for i in range(MOST_COMPILATIONS + 3))
    source = Source("a.py", 1, "f", "pass")
    core: Any = live.parts(
        dataclasses.replace(
            capture, compilations=many, inputs=("x",) * 100, sources=(source,) * 300, notes=("n",) * 100
        )
    )["core"]
    contract.check(core, "Core")
    assert (
        len(core["compilations"]) == MOST_COMPILATIONS
        and core["compilations"][0]["guardsLeft"] == "and 100 guards more: capture.guards"
    )
    assert core["inputs"][-1] == "and 60 inputs more: capture.inputs"
    text = "\n".join(core["notes"])
    assert "and 3 compilations more" in text and "100 functions more" in text and "and 60 notes more" in text


def test_a_line_beyond_the_source_is_no_line_of_it() -> None:
    capture = samples.sample()
    compilation = capture.compilations[0]
    code = compilation.code["forward"]
    kernel = dataclasses.replace(code.kernels[0], lines=(LineOrigin(2, ("sin",)), LineOrigin(999, ("cos",))))
    stages = tuple(
        dataclasses.replace(code, kernels=(kernel,)) if s.key == code.key else s for s in compilation.stages
    )
    parts: Any = live.parts(
        dataclasses.replace(capture, compilations=(dataclasses.replace(compilation, stages=stages),))
    )
    assert [n for n, _ in parts["g8"]["kernels"][0]["items"]] == [2]


def test_colours_are_counted_as_the_script_counts_characters() -> None:
    text = "# 😀😀\nx = 'a'\n"
    capture = dataclasses.replace(samples.sample(), sources=(Source("f.py", 1, "f", text),))
    code = live.parts(capture)["core"]["sources"][0]["code"]  # type: ignore[index]
    units = text.encode("utf-16-le")
    pieces, at = [], 0
    for run in code["inks"]:
        length, ink = divmod(run, 16)
        pieces.append((units[2 * at : 2 * (at + length)].decode("utf-16-le").strip(), ink))
        at += length
    assert ("# 😀😀", 1) in pieces and ("'a'", 7) in pieces
