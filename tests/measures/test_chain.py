"""Links between stages in both directions, on a record made by hand."""

from __future__ import annotations

import dataclasses
import gc
import time
import weakref
from typing import Any

import pytest

from compile_lens.errors import UsageError
from compile_lens.measures.chain import PYTHON, Address, Chain, line_address
from compile_lens.measures.dead_ends import SILENT
from compile_lens.record.capture import Environment
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame, Graph, Node, Ref
from compile_lens.record.kernel import Code, Kernel, LineOrigin
from compile_lens.record.lowering import Pass, Rewrite
from compile_lens.record.missing import Missing
from compile_lens.results.capture import Capture

ENVIRONMENT = Environment("0.1.0", "2.13.0", "", "3.11", "linux", "cpu", "cpp")
OUTER = Frame("/u/f.py", 2, "f", "y = helper(x)")
SIN = Frame("/u/f.py", 7, "helper", "return x.sin()", 11, 18)
ADD = Frame("/u/f.py", 3, "f", "return y + y.cos()", 8, 20)
COS = Frame("/u/f.py", 3, "f", "return y + y.cos()", 12, 19)


def node(name: str, *origins: str, **more: Any) -> Node:
    return Node(name, "call_function", name, origins=origins, **more)


def kernel(name: str, groups: tuple[str, ...], origins: tuple[str, ...], **more: Any) -> Kernel:
    return Kernel(name, "forward", "cpp", "pointwise", "", groups=groups, origins=origins, **more)


STAGES = (
    Graph(
        "dynamo",
        "",
        "",
        (
            node("sin", frames=(OUTER, SIN)),
            node("cos", frames=(COS,)),
            node("add", frames=(ADD,)),
            node("silent", no_origin="an input"),
        ),
    ),
    # 1→n: add became mul and plus. Frames of later stages are not links if there are origins.
    Graph(
        "joint",
        "",
        "dynamo",
        (
            node("j_sin", "sin", frames=(Frame("/u/else.py", 99, "f"),)),
            node("j_cos", "cos"),
            node("j_mul", "add"),
            node("j_plus", "add"),
            node("j_own", frames=(COS,), no_origin="made by autograd"),
            node("j_none", no_origin="made by autograd"),
        ),
    ),
    Graph(
        "forward",
        "",
        "joint",
        (node("f_sin", "j_sin"), node("f_cos", "j_cos"), node("f_add", "j_mul", "j_plus")),
    ),
    Graph(
        "post_grad",
        "forward",
        "forward",
        (node("p_sin", "f_sin"), node("p_cos", "f_cos"), node("p_add", "f_add")),
    ),
    # sin was rematerialized: it is in both loops. n→1: buf1 has three origins.
    Graph(
        "loops",
        "forward",
        "forward.post_grad",
        (node("buf0", "p_sin"), node("buf1", "p_sin", "p_cos", "p_add"), node("buf2", "p_add"), node("nop")),
    ),
    Graph(
        "groups",
        "forward",
        "forward.loops",
        (node("g0", "buf0"), Node("g1", "group", "fused", members=("buf1", "buf2"))),
    ),
    Code(
        "forward",
        "",
        "generated only",
        "cpu",
        (
            kernel("k0", ("g0",), ("p_sin",)),
            kernel("k1", ("g1",), ("p_sin", "p_cos", "p_add")),
            kernel("k_extern", (), (), no_origin="a copy that Inductor added"),
        ),
    ),
)


def capture(*stages: Any, cid: str = "0/0") -> Capture:
    return Capture("f", ENVIRONMENT, compilations=(Compilation(cid, "f", "/u/f.py", 1, stages or STAGES),))


@pytest.fixture
def whole() -> Capture:
    return capture()


def at(stage: str, *names: str) -> tuple[Address, ...]:
    return tuple(("0/0", stage, name) for name in names)


def test_direct_links_go_one_stage(whole: Capture) -> None:
    chain = Chain(whole)
    assert chain.up(*at("joint", "j_sin")) == at("dynamo", "sin")
    assert chain.down(*at("dynamo", "add")) == at("joint", "j_mul", "j_plus")
    assert chain.up(*at("forward", "f_add")) == at("joint", "j_mul", "j_plus")
    assert chain.up(*at("forward.loops", "buf1")) == at("forward.post_grad", "p_sin", "p_cos", "p_add")
    assert chain.up(*at("forward.groups", "g1")) == at("forward.loops", "buf1", "buf2")
    assert chain.up(*at("forward.code", "k1")) == (
        *at("forward.groups", "g1"),
        *at("forward.post_grad", "p_sin", "p_cos", "p_add"),
    )


def test_a_rematerialised_node_stands_in_two_kernels(whole: Capture) -> None:
    chain = Chain(whole)
    assert [k.name for k in chain.kernels("/u/f.py", 7)] == ["k0", "k1"]
    below = chain.descendants(*at("forward", "f_sin"))
    assert set(at("forward.code", "k0", "k1")) <= set(below)
    assert set(at("forward.loops", "buf0", "buf1")) <= set(below)
    assert "buf2" not in [name for _, _, name in below]


def test_python_lines_and_kernels_find_each_other(whole: Capture) -> None:
    chain = Chain(whole)
    assert [k.name for k in chain.kernels("/u/f.py", 3)] == ["k1"]
    assert chain.kernels("/u/f.py", 4) == () and chain.kernels("/u/else.py", 99) == ()
    k0, k1, extern = whole.kernels
    assert chain.lines(k0) == (SIN,)
    assert chain.lines(k1) == (ADD, COS, SIN), "by line, then column"
    assert chain.lines(extern) == ()
    assert chain.lines(("0/0", "forward.code", "k1")) == chain.lines(k1)
    assert chain.lines(("0/0", "forward", "f_cos")) == (COS,)
    assert chain.lines(("0/0", "dynamo", "add")) == (ADD,)


def test_a_file_that_the_record_does_not_know_is_no_line_without_a_kernel() -> None:
    with pytest.raises(UsageError, match=r"has no file 'nofile\.py'; it has '/u/f\.py'"):
        Chain(capture(*STAGES)).kernels("nofile.py", 3)


@pytest.mark.parametrize("of", ["nok", 3, ("0/0", "joint"), None])
def test_what_is_no_address_is_named(of: Any) -> None:
    with pytest.raises(UsageError, match=r"is neither a kernel nor an address.*k0") as caught:
        Chain(capture(*STAGES)).lines(of)
    assert repr(of) in str(caught.value)


def test_a_line_that_calls_a_helper_became_the_kernels_of_the_helper(whole: Capture) -> None:
    chain = Chain(whole)
    assert [k.name for k in chain.kernels("/u/f.py", 2)] == ["k0", "k1"]
    assert OUTER not in chain.lines(whole.kernels[0]), "lines are the innermost ones"
    assert chain.up(*at("dynamo", "sin")) == (line_address("/u/f.py", 7), line_address("/u/f.py", 2))


def test_up_and_down_are_the_same_links(whole: Capture) -> None:
    chain = Chain(whole)
    up = {(a, b) for a in chain.addresses() for b in chain.up(a)}
    down = {(a, b) for b in chain.addresses() for a in chain.down(b)}
    assert up == down and len(up) > 20


def test_transitive_answers_are_nearest_first_without_the_start(whole: Capture) -> None:
    chain = Chain(whole)
    start = ("0/0", "forward.loops", "buf0")
    above = chain.ancestors(start)
    assert above == (
        *at("forward.post_grad", "p_sin"),
        *at("forward", "f_sin"),
        *at("joint", "j_sin"),
        *at("dynamo", "sin"),
        line_address("/u/f.py", 7),
        line_address("/u/f.py", 2),
    )
    assert start not in above
    for address in above:
        assert start in chain.descendants(address)
    assert Chain(capture()).descendants(line_address("/u/f.py", 3)) == chain.descendants(
        line_address("/u/f.py", 3)
    )


def test_a_node_whose_origins_end_still_knows_its_own_line(whole: Capture) -> None:
    chain = Chain(whole)
    assert chain.lines(("0/0", "joint", "j_own")) == (COS,)
    assert chain.up(("0/0", "joint", "j_own")) == (line_address("/u/f.py", 3),)


def test_why_not(whole: Capture) -> None:
    chain = Chain(whole)
    assert chain.why_not(("0/0", "joint", "j_none")) == "made by autograd"
    assert chain.why_not(("0/0", "forward.code", "k_extern")) == "a copy that Inductor added"
    assert chain.why_not(("0/0", "joint", "j_sin")) == "", "it goes on both ways"
    assert chain.why_not(("0/0", "forward.code", "k0")) == "", "it is generated code"
    assert "no origin" in chain.why_not(("0/0", "forward.loops", "nop"))
    assert "starts" in chain.why_not(line_address("/u/f.py", 3))


def ends(*nodes: Node, after: Any = None, passes: tuple[Pass, ...] = ()) -> dict[str, str]:
    """Reasons why nodes of a joint graph have no descendants; all of them came from ``sin``."""
    came = tuple(dataclasses.replace(n, origins=("sin",)) for n in nodes)
    stages = (STAGES[0], Graph("joint", "", "dynamo", came), *([] if after is None else [after]))
    chain = Chain(Capture("f", ENVIRONMENT, compilations=(
        Compilation("0/0", "f", "/u/f.py", 1, stages, passes=passes),)))  # fmt: skip
    return {n.name: chain.why_not(("0/0", "joint", n.name)) for n in nodes}


def test_why_nothing_came_of_a_node() -> None:
    work: dict[str, Any] = {"kind": "pointwise", "compute": True}
    nodes = (
        node("kept", **work),
        node("dead", **work),
        node("above", args=(Ref("kept"),), **work),
        node("below", args=(Ref("above"),), **work),
        node("lost", **work),
        node("reader", args=(Ref("lost"),), **work),
        node("noop", **work),
        node("look", kind="view"),
        node("writes", kind="mutation", compute=True),
        node("last", args=(Ref("noop"),), **work),
    )
    forward = Graph("forward", "", "joint", (node("f_kept", "kept"), node("f", "reader", "last")))
    done = Pass("forward", "tidy", 9, 8, (Rewrite("", ("noop",), ("kept",), origins=("noop",)),))
    assert ends(*nodes, after=forward, passes=(done,)) == {
        "kept": "",
        "reader": "",
        "last": "",
        "dead": "nothing reads what it computes",
        "above": "what reads it is gone too: below",
        "below": "nothing reads what it computes",
        "lost": SILENT,
        "noop": "taken away by the pass tidy: %kept stands in its place",
        "look": "a view: it moves no data",
        "writes": SILENT,
    }


def test_what_led_to_a_stage_that_was_not_seen_says_so() -> None:
    nodes = (node("one", compute=True), node("two", compute=True, derivative=True))
    assert ends(*nodes, after=Missing("forward", "it failed")) == {
        "one": "there is no stage after it: stage forward was not seen: it failed",
        "two": "nothing reads what it computes",
    }
    why = ends(*nodes, after=Missing("backward", "not asked for"))["two"]
    assert why.endswith("backward was not seen: not asked for")


def test_links_stop_at_a_missing_stage_and_say_so() -> None:
    stages = tuple(Missing("joint", "cache hit") if getattr(s, "stage", "") == "joint" else s for s in STAGES)
    broken = capture(*stages)
    chain = Chain(broken)
    address = ("0/0", "forward", "f_sin")
    assert chain.up(address) == ()
    assert chain.why_not(address).endswith("stage 'joint', which its origins name, was not seen: cache hit")
    assert chain.lines(broken.kernels[0]) == () and chain.kernels("/u/f.py", 7) == ()
    assert chain.ancestors(("0/0", "forward.code", "k0"))[-1] == address, "what is left still holds"
    with pytest.raises(UsageError, match="stage 'joint' of 0/0 was not seen: cache hit"):
        chain.up(("0/0", "joint", "j_sin"))


def test_an_origin_that_the_record_does_not_hold_is_not_invented() -> None:
    graph = Graph("joint", "", "dynamo", (node("a", "gone", "sin"), node("b", "gone")))
    chain = Chain(capture(STAGES[0], graph))
    assert chain.up(("0/0", "joint", "a")) == at("dynamo", "sin")
    assert chain.up(("0/0", "joint", "b")) == ()
    assert "'gone' is not in stage 'dynamo'" in chain.why_not(("0/0", "joint", "b"))


def test_unknown_addresses_are_refused_with_what_there_is(whole: Capture) -> None:
    chain = Chain(whole)
    for method in (chain.up, chain.down, chain.ancestors, chain.descendants, chain.lines, chain.why_not):
        with pytest.raises(UsageError, match=r"has no 'f_tan'; it has f_sin, f_cos, f_add"):
            method(("0/0", "forward", "f_tan"))  # type: ignore[operator]
    with pytest.raises(UsageError, match=r"no stage 'forwards' of '0/0'; it has 0/0 dynamo"):
        chain.up(("0/0", "forwards", "f_sin"))
    with pytest.raises(UsageError, match="'stranger' is not one of this capture, which has k0, k1"):
        chain.lines(kernel("stranger", (), ()))


def test_recompiles_do_not_mix() -> None:
    first, second = capture().compilations[0], capture(cid="0/1").compilations[0]
    both = dataclasses.replace(capture(), compilations=(first, second))
    chain = Chain(both)
    assert {a[0] for a in chain.ancestors(("0/1", "forward.code", "k1"))} == {"0/1", ""}
    assert len(chain.kernels("/u/f.py", 7)) == 4


def test_library_calls_of_one_name_keep_their_own_lines() -> None:
    code = Code("forward", "", "ran", "cpu", (kernel("mm", (), ("p_sin",)), kernel("mm", (), ("p_cos",))))
    two = capture(*STAGES[:4], code)
    chain = Chain(two)
    assert chain.lines(two.kernels[0]) == (SIN,) and chain.lines(two.kernels[1]) == (COS,)
    assert chain.kernels("/u/f.py", 7) == two.kernels[:1]
    assert chain.up(("0/0", "forward.code", "mm")) == at("forward.post_grad", "p_sin", "p_cos")


def test_nodes_of_subgraphs_have_addresses_of_their_own() -> None:
    def stage(name: str, before: str, **frames: Any) -> Graph:
        body = Graph(name, "", before, (node("sin", *(["sin"] if before else []), **frames),))
        top = (node("sin", *(["sin"] if before else [])), node("only", *(["deep"] if before else [])))
        deep = Graph(name, "", before, (*body.nodes, node("deep")))
        return Graph(name, "", before, top, subgraphs=(("body", deep),))

    chain = Chain(capture(stage("dynamo", "", frames=(SIN,)), stage("joint", "dynamo")))
    assert chain.up(("0/0", "joint", "sin")) == at("dynamo", "sin")
    assert chain.up(("0/0", "joint", "body/sin")) == at("dynamo", "body/sin")
    assert chain.lines(("0/0", "joint", "body/sin")) == (SIN,)
    assert chain.up(("0/0", "joint", "only")) == at("dynamo", "body/deep"), "the one node of that name"


def test_a_record_from_json_has_the_same_chain(whole: Capture) -> None:
    again = Capture.from_json(whole.to_json())
    assert Chain(again).addresses() == Chain(whole).addresses()
    assert Chain(again).lines(whole.kernels[1]) == (ADD, COS, SIN), "an equal kernel is found"


@pytest.mark.full
def test_links_are_built_once_and_go_with_the_capture() -> None:
    gc.collect()  # captures of other tests, which would be collected with this one
    one = capture()
    assert one.chain._links is one.chain._links
    links = weakref.ref(one.chain._links)
    del one
    gc.collect()
    assert links() is None


def test_twenty_thousand_nodes_link_in_seconds() -> None:
    def stage(key: str, before: str, count: int) -> Graph:
        name, _, last = key.partition(".")
        nodes = tuple(
            node(f"{key}{i}", *([f"{before}{i}"] if before else []), frames=() if before else (SIN,))
            for i in range(count)
        )
        return Graph(last or name, name if last else "", before, nodes)

    keys = ["dynamo", "joint", "forward", "forward.post_grad", "forward.loops"]
    big = capture(*(stage(key, before, 4000) for key, before in zip(keys, ["", *keys], strict=False)))
    begin = time.process_time()
    chain = Chain(big)
    assert len(chain.descendants(line_address(SIN.file, SIN.line))) == 20_000
    assert len(chain.ancestors(("0/0", "forward.loops", "forward.loops3999"))) == 5
    assert time.process_time() - begin < 40  # 1 s on an idle laptop; minutes if each node visited all others


def test_lines_of_kernels_go_up_to_the_nodes_they_compute() -> None:
    marked = (
        LineOrigin(1, (), "scaffolding of the kernel"),
        LineOrigin(2, ("p_sin", "p_cos")),
        LineOrigin(3, ("p_sin", "gone")),
        LineOrigin(4, ("gone",)),
    )
    kernels = (
        dataclasses.replace(kernel("k", (), ("p_sin",)), source="a\nb\nc\nd\n", lines=marked),
        dataclasses.replace(kernel("k:1", (), ("p_cos",)), source="a", lines=(LineOrigin(1, ("p_add",)),)),
        kernel("no_source", (), (), lines=(LineOrigin(1, ("p_sin",)),)),
    )
    whole = capture(*STAGES[:4], Code("forward", "", "ran", "cpu", kernels))
    chain = Chain(whole)
    code = [a for a in chain.addresses() if a[1] == "forward.code"]
    assert code == [*at("forward.code", "k", "k:1", "no_source", "k:2", "k:3", "k:4", "k:1:1")]
    assert chain.addresses()[-1][1] == PYTHON, "Python lines stay last"
    assert chain.up(*at("forward.code", "k:2")) == at("forward.post_grad", "p_sin", "p_cos")
    assert chain.up(*at("forward.code", "k:3")) == at("forward.post_grad", "p_sin")
    assert set(at("forward.code", "k", "k:2", "k:3")) == set(chain.down(*at("forward.post_grad", "p_sin")))
    assert chain.up(*at("forward.code", "k:1")) == at("forward.post_grad", "p_cos"), "a kernel, not a line"
    assert chain.lines(("0/0", "forward.code", "k:2")) == (COS, SIN)
    assert chain.why_not(("0/0", "forward.code", "k:2")) == ""
    assert "'gone' is not in stage 'forward.post_grad'" in chain.why_not(("0/0", "forward.code", "k:4"))
    assert chain.lines(whole.kernels[0]) == (SIN,), "what a kernel came from is said by the kernel"
    assert chain.kernels("/u/f.py", 7) == (whole.kernels[0],)
    with pytest.raises(UsageError, match="has no 'k:9'"):
        chain.up(("0/0", "forward.code", "k:9"))


def test_a_line_stands_in_the_loop_that_computes_its_node_where_there_is_one() -> None:
    """It leads to nothing else that the loop came from."""
    marked = tuple(LineOrigin(n, (name,)) for n, name in enumerate(("p_sin", "p_cos", "p_add"), 1))
    lines = {"source": "a\nb\nc\n", "lines": (*marked, LineOrigin(4, (), "loop header"))}
    kernels = (
        dataclasses.replace(kernel("k0", ("g0",), ("p_sin",)), **lines),
        dataclasses.replace(kernel("k1", ("g1",), ("p_sin", "p_cos", "p_add")), **lines),
        dataclasses.replace(kernel("k2", ("g0", "g1"), ("p_sin", "p_cos", "p_add")), **lines),
    )
    chain = Chain(capture(*STAGES[:-1], Code("forward", "", "ran", "cpu", kernels)))

    def stands(line: str) -> list[str]:
        name = ("0/0", "forward.code", line)
        found = chain.beside(name)
        assert set(found) <= set(chain.ancestors(name)) and not chain.descendants(name)
        own = {a for a in chain.ancestors(name) if a[1] == "forward.post_grad"}
        assert own == set(chain.up(name)), "other nodes of the loop are not above the line"
        return [name for _, _, name in found]

    assert stands("k0:1") == ["buf0", "g0", "k0"]
    assert stands("k0:2") == ["k0"], "no loop of the kernel has it"
    assert stands("k1:1") == ["buf1", "g1", "k1"]
    assert stands("k1:3") == ["g1", "k1"], (
        "two loops of the group compute it: of which the line is, is not said"
    )
    assert stands("k2:1") == ["k2"], "nor of which group"
    assert stands("k2:2") == ["buf1", "g1", "k2"]
    assert not chain.beside(("0/0", "forward.code", "k1:4"))
    below = chain.descendants(("0/0", "forward.loops", "buf1"))
    assert {name for _, _, name in below if ":" in name} == {"k1:1", "k1:2", "k2:2"}
    assert "k1:2" not in [name for _, _, name in chain.descendants(("0/0", "forward.post_grad", "p_sin"))]


def test_a_line_of_a_kernel_says_why_it_has_no_origin() -> None:
    source = dataclasses.replace(
        kernel("k", (), ()),
        source="{\n}",
        lines=(LineOrigin(1, (), "scaffolding of the kernel"), LineOrigin(2)),
    )
    chain = Chain(capture(*STAGES[:4], Code("forward", "", "ran", "cpu", (source,))))
    assert chain.why_not(("0/0", "forward.code", "k:1")) == "scaffolding of the kernel"
    assert "no origin" in chain.why_not(("0/0", "forward.code", "k:2"))
    gone = Chain(capture(Code("forward", "", "ran", "cpu", (dataclasses.replace(
        source, lines=(LineOrigin(1, ("p_sin",)),)),))))  # fmt: skip
    assert "stage 'forward.post_grad'" in gone.why_not(("0/0", "forward.code", "k:1"))


def test_the_table_of_links_is_what_the_methods_say(whole: Capture) -> None:
    chain = Chain(whole)
    table = [(address, tuple(above)) for address, above in chain.links()]
    assert [address for address, _ in table] == list(chain.addresses())
    assert all(above == chain.up(address) for address, above in table)
