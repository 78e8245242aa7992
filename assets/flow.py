"""The picture of ``ARCHITECTURE.md``: the path of a call and of its observations through the package's rooms."""

from __future__ import annotations

from compile_lens.record.graph import Graph, Node, Ref
from compile_lens.views.drawing import svg

YOURS = {"your call": "capture(f, x)", "your cell": "a page, a text, a file"}
"""Items outside of the package."""

ROOMS = {
    "cli": "the same calls, typed in a terminal",
    "course": "questions, exercises, progress",
    "api": "the public functions",
    "trials": "runs the code: verify, benchmark",
    "engine": "one capture, here or in the child",
    "child": "another process of Python",
    "_torch": "watches torch's compiler",
    "_triton": "Triton's and NVIDIA's compilers",
    "record": "what was seen: frozen data, and JSON",
    "devices": "figures of devices",
    "measures": "pure functions of a record",
    "layout": "where the boxes of a graph stand",
    "views": "text, HTML, SVG, the live page",
    "results": "what users hold: data with methods",
}
"""Each room with its contents; files that every room may use (errors, versions) are not rooms."""

CALLS = (
    *(
        ("your call", "api"),
        ("cli", "api"),
        ("course", "api"),
        ("api", "trials"),
        ("api", "engine"),
        ("trials", "engine"),
    ),
    *(("engine", "child"), ("engine", "_torch"), ("engine", "_triton")),
)
"""Calls between rooms."""

BRINGS = (
    *(("_torch", "record"), ("_triton", "record"), ("record", "measures")),
    *(("devices", "measures"), ("record", "layout"), ("measures", "views"), ("layout", "views")),
    *(("views", "results"), ("results", "your cell")),
)
"""Data flow between rooms."""


def graph() -> Graph:
    """Return the rooms as a graph: a node for each, an argument for each arrow that leads to it."""
    arrows = CALLS + BRINGS
    texts = {**YOURS, **ROOMS}
    calls = {room for arrow in CALLS for room in arrow}
    order = ["your call", "cli", *[r for r in ROOMS if r in calls and r != "cli"]]
    order += [r for r in (*ROOMS, "your cell") if r not in order]
    return Graph(
        stage="rooms",
        phase="",
        before="",
        nodes=tuple(
            Node(
                name=name,
                op="room",
                target=texts[name],
                kind="input" if name in YOURS else "pointwise" if name in calls else "view",
                args=tuple(Ref(one) for one, other in arrows if other == name),
            )
            for name in order
        ),
        text="",
    )


def drawing() -> str:
    """Return the picture as SVG."""
    return svg.to_svgs([graph()], titles=["A call goes down, what it saw comes up"], plain=True)[0]
