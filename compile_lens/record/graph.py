"""Graphs of the record: nodes, their tensors and source frames, as frozen plain data. No torch needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

from .delegates import delegate

if TYPE_CHECKING:
    import graphviz
    import pydot


UNSAID_ORIGIN = "made by a compiler pass that did not report its purpose"
"""``Node.no_origin`` of a node that may have come from any earlier node."""

UNSAID_DERIVATIVE = "made in the backward, by autograd or a hook, and the purpose was not recorded"
"""``Node.no_origin`` of a node for a derivative, or for the program's own use of a gradient."""


@dataclass(frozen=True)
class Ref:
    """An argument that is the value of another node of the same graph."""

    name: str


@dataclass(frozen=True)
class Literal:
    """An argument that is neither a node nor a plain Python value, as Python text (``torch.float32``)."""

    text: str


Value = Union[None, bool, int, float, str, Ref, Literal, "tuple[Value, ...]"]
"""An argument of a node. Lists, tuples and dict items are tuples; floats are finite (else ``Literal``)."""


@dataclass(frozen=True)
class Frame:
    """One frame of the user's stack. Lines count from 1, columns from 0; ``None`` if Python gave none.

    ``of_torch``: it is in a file of torch, which the user called (``F.pad``). ``call`` is the text between the columns
    (``"torch.sin(x)"``), as far as it is on that line.
    """

    file: str
    line: int
    function: str
    text: str = ""
    column: int | None = None
    end_column: int | None = None
    of_torch: bool = False
    call: str = ""

    @property
    def whole_line(self) -> Frame:
        """The frame of the whole line, without columns and call."""
        return Frame(self.file, self.line, self.function, self.text, of_torch=self.of_torch)

    @property
    def address(self) -> str:
        """The frame's address for ``capture.chain`` and ``capture.why``, without the folder: ``"model.py:7:11-23"``."""
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2] or self.file}:{self.within}"

    @property
    def within(self) -> str:
        """The place in its file, ``"7:11-23"``; ``"7"`` if columns are not known, or the call ends on another line."""
        if self.column is None or self.end_column is None or self.end_column <= self.column:
            return str(self.line)
        return f"{self.line}:{self.column}-{self.end_column}"

    @property
    def expression(self) -> str:
        """The call, or its line if the call is not known; ``"F.pad(x,…"`` if it continues on the next line."""
        text = (self.call or self.text).strip()
        code = _STRING_OR_COMMENT.sub("", text)
        left_open = sum(map(code.count, "([{")) > sum(map(code.count, ")]}"))
        return f"{text}…" if left_open else text

    def __str__(self) -> str:
        """Return ``"model.py:7:11-23 in f: torch.sin(x)"``."""
        text = self.expression
        return f"{self.address} in {self.function}" + (f": {text}" if text else "")


_STRING_OR_COMMENT = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|#.*""")
"""Parts of a line in which a bracket is text."""


@dataclass(frozen=True)
class Source:
    """Text of one user function that was compiled or inlined; the ``name`` of a method includes its class."""

    file: str
    first_line: int
    name: str
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines of the text as Python counts them: a form feed, or another break that Unicode has, ends none."""
        return self.text.removesuffix("\n").split("\n")

    @property
    def numbers(self) -> range:
        """The numbers of its lines in the file."""
        return range(self.first_line, self.first_line + len(self.lines))


@dataclass(frozen=True)
class Tensor:
    """Tensor as known at compile time. Sizes are ints, or a symbol's text (``"s0"``) if dynamic.

    ``nbytes`` counts the distinct elements (an expanded dimension once), with hints for symbols; ``None`` if a hint is
    unknown.
    """

    dtype: str
    shape: tuple[int | str, ...]
    stride: tuple[int | str, ...] | None
    device: str
    nbytes: int | None
    requires_grad: bool = False


@dataclass(frozen=True)
class Node:
    """One operation of a stage.

    Attributes:
        name: unique in its graph.
        op: ``placeholder``, ``get_attr``, ``call_function``, ``call_method``, ``call_module``, ``output``;
            in later stages ``loop``, ``extern``, ``template``, ``nop`` (a loop node) or ``group``.
        target: the callee (``aten.sin.default``, ``torch.sin``), or the description of a loop or group.
        kind: coarse class for colours and counts: ``input``, ``output``, ``constant``, ``pointwise``,
            ``reduction``, ``scan``, ``matmul``, ``view``, ``allocation``, ``random``, ``mutation``, ``control``,
            ``symbol``, ``extern``, ``custom`` (of a namespace outside ATen), ``nop`` or ``other``.
        compute: whether the node counts as work in the ledger (views, metadata and allocation do not).
        outputs: one entry for each result tensor.
        module: path of the ``nn.Module`` that it came from, ``""`` outside modules; ``module_type`` is its class.
        frames: the user's stack, outermost first.
        origins: names of nodes in the stage ``graph.before``.
        no_origin: why ``origins`` is empty, if it is.
        derivative: joint graph only: whether autograd made it, for the derivative of its ``origins``.
        reads, writes: modelled bytes of external memory traffic; ``None`` if unknown.
        members: names of the loops in a group, in execution order.
        detail: longer text for a reader (the loop body).
    """

    name: str
    op: str
    target: str
    kind: str = "other"
    compute: bool = False
    args: tuple[Value, ...] = ()
    kwargs: tuple[tuple[str, Value], ...] = ()
    outputs: tuple[Tensor, ...] = ()
    module: str = ""
    module_type: str = ""
    frames: tuple[Frame, ...] = ()
    origins: tuple[str, ...] = ()
    no_origin: str = ""
    derivative: bool = False
    reads: int | None = None
    writes: int | None = None
    members: tuple[str, ...] = ()
    detail: str = ""

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the nodes whose values this one reads, in order of first use."""
        return tuple(dict.fromkeys(_refs((self.args, tuple(v for _, v in self.kwargs)))))

    @property
    def innermost(self) -> tuple[Frame, ...]:
        """The innermost user frame in a tuple; a frame of torch if there is no other; empty without frames."""
        return next(((f,) for f in reversed(self.frames) if not f.of_torch), self.frames[-1:])

    @property
    def dtype(self) -> str | None:
        """Type of the first output, such as ``float32``."""
        return self.outputs[0].dtype if self.outputs else None

    @property
    def shape(self) -> tuple[int | str, ...] | None:
        """Shape of the first output."""
        return self.outputs[0].shape if self.outputs else None

    @property
    def stride(self) -> tuple[int | str, ...] | None:
        """Stride of the first output, in elements."""
        return self.outputs[0].stride if self.outputs else None

    @property
    def device(self) -> str | None:
        """Device of the first output."""
        return self.outputs[0].device if self.outputs else None


def _refs(value: Any) -> Iterator[str]:
    if isinstance(value, Ref):
        yield value.name
    elif isinstance(value, tuple):
        for item in value:
            yield from _refs(item)


@dataclass(frozen=True)
class Graph:
    """One stage of one compilation as a graph.

    Attributes:
        stage: ``dynamo``, ``pre_grad``, ``joint``, ``forward``, ``backward``, ``inference``, ``post_grad``,
            ``loops`` or ``groups``.
        phase: for the last three, the graph they belong to; else ``""``.
        before: key of the stage whose nodes ``origins`` name; ``""`` for the first.
        text: the stage as text (FX code, or Inductor's description of its nodes).
        saved: forward only: nodes saved for backward, in order.
        subgraphs: bodies of higher-order operators (``cond``, ``flex_attention``), by attribute name.
    """

    stage: str
    phase: str
    before: str
    nodes: tuple[Node, ...]
    text: str = ""
    saved: tuple[str, ...] = ()
    subgraphs: tuple[tuple[str, Graph], ...] = ()

    @property
    def key(self) -> str:
        """The key of the stage in ``compilation.graphs``: ``"joint"``, ``"forward.loops"``."""
        return f"{self.phase}.{self.stage}" if self.phase else self.stage

    @property
    def calls(self) -> tuple[Node, ...]:
        """The nodes that are operations: not inputs, constants or the output."""
        return tuple(n for n in self.nodes if n.op not in ("placeholder", "get_attr", "output"))

    def __getitem__(self, name: str) -> Node:
        for node in self.nodes:
            if node.name == name:
                return node
        raise KeyError(
            f"no node {name!r} in stage {self.key!r}; it has {', '.join(n.name for n in self.nodes)}"
        )

    def readable(self) -> str:
        """Return the stage as text."""
        return self.text

    def to_dot(self) -> graphviz.Source:
        """Return the graph as a ``graphviz.Source`` (text only: rendering it needs Graphviz's ``dot``)."""
        source: graphviz.Source = delegate("Graph.to_dot")(self)
        return source

    def to_pydot(self) -> pydot.Dot:
        """Return the graph as a ``pydot.Dot``."""
        dot: pydot.Dot = delegate("Graph.to_pydot")(self)
        return dot

    def to_svg(self, title: str = "") -> str:
        """Return the graph as a self-contained SVG document; raise ``LayoutError`` if the layout fails."""
        svg: str = delegate("Graph.to_svg")(self, title=title)
        return svg

    def _repr_svg_(self) -> str:
        """Return the SVG of ``to_svg``, scaled down to the width of a notebook cell if it is wider."""
        svg: str = delegate("Graph._repr_svg_")(self)
        return svg

    def _repr_html_(self) -> str:
        """Return the SVG of ``_repr_svg_`` as an image with alternative text, which a bare SVG in a notebook lacks."""
        html: str = delegate("Graph._repr_html_")(self)
        return html
