"""The gallery: the results of nine programs, as Markdown pages with drawings, by ``python assets/make.py``.

Each program of ``gallery/programs`` defines its captures in ``CASES`` (a function, inputs, a target: ``""`` for the
machine), and in ``DRAWN`` the drawn stages. One that needs setting up has a ``setup``, a
``teardown``, and instead of ``CASES`` a function ``cases``. The figures on a page are those of the capture. If the
target is the machine, a page has no code: that depends on the machine.
"""

from __future__ import annotations

import ast
import dataclasses
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from screens import independent

import compile_lens
from compile_lens import Capture
from compile_lens.record.graph import Graph
from compile_lens.record.kernel import Kernel
from compile_lens.views.words import labels
from compile_lens.views.words.quantities import figure, plural

GALLERY = Path(__file__).resolve().parent / "gallery"
PROGRAMS = GALLERY / "programs"
NAMES = (
    "sin2_cos2", "square_square", "softmax", "layer_norm", "attention", "mlp_step", "custom_op", "determinants",
    "ddp_buckets",
)  # fmt: skip
COLUMNS = {
    "eager ops": "eager_ops", "ATen ops": "aten_ops", "loops": "loops", "groups": "groups", "launches": "launches",
    "bytes before": "moved_before", "bytes after": "bytes_after",
}  # fmt: skip
LANGUAGES = {"cpp": "cpp", "triton": "python", "metal": "metal"}
LONG = 40
"""Lines of a kernel that are visible without a click."""


@dataclasses.dataclass(frozen=True)
class Exhibit:
    """One program: its captures by case, which stages of which case are drawn, and whether the first kernels of its
    cases are shown side by side."""

    name: str
    title: str
    text: str
    source: str
    cases: dict[str, Capture]
    targets: dict[str, str]
    drawn: dict[str, tuple[str, ...]]
    beside: bool

    def files(self) -> dict[str, str]:
        """Return the page and its drawings, by their names in the gallery."""
        drawings = {file: graph.to_svg() for file, _, graph in self._drawings()}
        return {f"{self.name}.md": self._page(), **drawings}

    def _drawings(self) -> Iterator[tuple[str, str, Graph]]:
        for case, stages in self.drawn.items():
            for stage in stages:
                graphs = [g for g in self.cases[case].compilations[0].stages if isinstance(g, Graph)]
                for number, graph in enumerate(g for g in graphs if g.stage == stage):
                    words = [self.name, *_words(case), stage, *([str(number + 1)] if number else [])]
                    count = f"{plural(len(graph.nodes), 'node')}, {plural(len(graph.calls), 'call')}"
                    yield "-".join(words) + ".svg", f"{case}, {labels.title(stage)}: {count}", graph

    def _page(self) -> str:
        parts = [f"# {self.title}", self.text, f"```python\n{self.source}\n```", self._table()]
        parts += [f"![{text}]({file})" for file, text, _ in self._drawings()]
        parts += _beside(self.cases) if self.beside else []
        for case, capture in self.cases.items():
            if self.targets[case]:
                parts += _kernels(case, capture)
        parts.append("[All of the gallery](README.md)")
        return "\n\n".join(parts) + "\n"

    def _table(self) -> str:
        head = ["", "graphs", *COLUMNS]
        rows = [
            [
                case,
                str(_graphs(c)),
                *(figure(getattr(c.ledger.total, column)) for column in COLUMNS.values()),
            ]
            for case, c in self.cases.items()
        ]
        lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def exhibit(name: str) -> Exhibit:
    """Capture every case of a program."""
    path = PROGRAMS / f"{name}.py"
    names = runpy.run_path(str(path))
    title, _, text = str(names["__doc__"]).partition("\n")
    names.get("setup", _nothing)()
    try:
        given = names["cases"]() if "cases" in names else names["CASES"]
        cases = {case: _captured(*one) for case, one in given.items()}
    finally:
        names.get("teardown", _nothing)()
    targets = {case: target for case, (_, _, target) in given.items()}
    beside = names.get("BESIDE", False)
    return Exhibit(name, title, text.strip(), _code(path), cases, targets, names["DRAWN"], beside)


def index(shown: list[Exhibit]) -> str:
    """Return the page that links to the others."""
    rows = [f"- **[{e.title}]({e.name}.md)** {' '.join(e.text.split())}" for e in shown]
    intro = (
        "What `torch.compile` made of nine programs: counts, graphs, and the code it wrote, for a CPU with AVX2, an\n"
        "H100 and an Apple GPU, none of which had to be there. `~` marks what is modelled from sizes; the rest is\n"
        "counted.\n"
        "`python assets/make.py` makes these pages from the programs in `programs/`."
    )
    return "\n\n".join(["# Gallery", intro, "\n".join(rows)]) + "\n"


def _captured(fn: Any, inputs: list[Any], target: str) -> Capture:
    capture = compile_lens.capture(fn, *inputs, target=target or None)
    return independent(capture.to_json(), PROGRAMS)


def _nothing() -> None:
    pass


def _graphs(capture: Capture) -> int:
    """Return graphs with work: those that a graph compiler received."""
    return sum(bool(c.code) for c in capture.compilations)


def _words(case: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in case.replace("-1", "last")).split()


def _code(path: Path) -> str:
    """Return the functions of a program, without the settings of its display."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    settings = {"setup", "teardown", "cases"}
    kept = [
        "\n".join(lines[min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1 : node.end_lineno])
        for node in ast.parse(text).body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name not in settings
    ]
    return "\n\n\n".join(kept)


def _beside(cases: dict[str, Capture]) -> list[str]:
    heads, cells = "", ""
    for case, capture in cases.items():
        kernel = next(k for c in capture.compilations for code in c.code.values() for k in code.kernels)
        heads += f"<th>{case}</th>"
        cells += f"<td>\n\n{_block(kernel)}\n\n</td>"
    return ["## One line in three languages", f"<table>\n<tr>{heads}</tr>\n<tr>{cells}</tr>\n</table>"]


def _kernels(case: str, capture: Capture) -> Iterator[str]:
    yield f"## {case}"
    for compilation in capture.compilations:
        for phase, code in compilation.code.items():
            for kernel in code.kernels:
                where = f"**{kernel.name}** ({phase}, {kernel.kind})"
                if kernel.language not in LANGUAGES:
                    yield where
                    continue
                block = _block(kernel)
                if len(block.splitlines()) - 2 <= LONG:
                    yield f"{where}\n\n{block}"
                else:
                    yield f"<details><summary>{kernel.name}: {phase}, {kernel.kind}</summary>\n\n{block}\n\n</details>"


def _block(kernel: Kernel) -> str:
    """Return a kernel's code, fenced."""
    return f"```{LANGUAGES[kernel.language]}\n{_body(kernel.source, kernel.language)}\n```"


def _body(source: str, language: str) -> str:
    """Return a kernel without its launcher metadata, which names the machine that generated it."""
    lines = source.strip("\n").splitlines()
    first = 0
    if language == "triton":
        first = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(line.rstrip() for line in lines[first:])
