"""``{solutions}``: every exercise of the course with its solution folded below, for the lecturers' page."""

from __future__ import annotations

from collections.abc import Iterator

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from compile_lens.course.exercise import Exercise
from compile_lens.course.lessons import EXERCISES


class Solutions(SphinxDirective):
    """All exercises, in the order of the lessons, from the data that ``course.check`` works with."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(line for one in EXERCISES.values() for line in _told(one))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _told(one: Exercise) -> Iterator[str]:
    label = f"exercise-{one.key.replace('.', '-')}"
    yield f"```{{exercise}} {one.key}\n:label: {label}\n:nonumber:\n\n{one.task}\n```\n"
    yield f"````{{solution}} {label}\n:class: dropdown\n\n```python\n{one.solution}\n```\n````\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("solutions", Solutions)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
