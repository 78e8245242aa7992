"""Sphinx extension of the site: docstrings, links in signatures, the language of a page, and pages for lecturers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from pygments.lexers.c_cpp import CppLexer
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import make_refnode

from compile_lens.course.exercise import Exercise
from compile_lens.course.lessons import EXERCISES

ATTRIBUTES = ("attribute", "data", "property")
GUIDE_LINK = re.compile(r"\[([^\]\n]+)\]\((?:[\w./-]*/)?INSTRUCTORS\.md\)")
GUIDE_ENTRY = re.compile(r"^/tutorials/INSTRUCTORS\n", re.M)

_attribute_texts: dict[str, list[str]] = {}


def keep_text(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Note the text of an attribute, before napoleon takes the words in front of a colon for its type."""
    if what in ATTRIBUTES:
        _attribute_texts[name] = list(lines)


def restore_text(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Put the text of an attribute back: the type is in its annotation, and a colon is one of prose."""
    if what in ATTRIBUTES:
        lines[:] = _attribute_texts.pop(name)


def resolve_class(
    app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Element
) -> nodes.Element | None:
    """Return a link to the class that a signature names without its module; None if it is not described."""
    if node.get("refdomain") != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    objects = env.domains.python_domain.objects
    names = sorted(name for name in objects if name.rpartition(".")[2] == last and not objects[name].aliased)
    names = [name for name in names if name.rpartition(".")[0] == node.get("py:module")] or names
    if len(names) != 1:
        return None
    place = objects[names[0]]
    return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, content, names[0])


def set_language(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """Set the language of a Chinese page, for screen readers and fonts."""
    if "/zh/" in page or page.endswith("zh-CN"):
        context["language"] = "zh-CN"


def hide_guide(app: Sphinx, page: str, content: list[str]) -> None:
    """Without the tag ``solutions``, make links to the lecturers' guide plain words and drop it from the side bar."""
    if not app.tags.has("solutions"):
        content[0] = GUIDE_ENTRY.sub("", GUIDE_LINK.sub(r"\1", content[0]))


class Solutions(SphinxDirective):
    """``{solutions}``: all exercises in the order of the lessons, each with its solution folded below."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(line for exercise in EXERCISES.values() for line in exercise_lines(exercise))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def exercise_lines(exercise: Exercise) -> Iterator[str]:
    """Yield the Markdown of an exercise and its solution, from the data that ``course.check`` works with."""
    label = f"exercise-{exercise.key.replace('.', '-')}"
    yield f"```{{exercise}} {exercise.key}\n:label: {label}\n:nonumber:\n\n{exercise.task}\n```\n"
    yield f"````{{solution}} {label}\n:class: dropdown\n\n```python\n{exercise.solution}\n```\n````\n"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_lexer("metal", CppLexer)  # Pygments has none of its own; this one finds no error in it
    app.add_directive("solutions", Solutions)
    app.connect("autodoc-process-docstring", keep_text, priority=400)
    app.connect("autodoc-process-docstring", restore_text, priority=600)
    app.connect("missing-reference", resolve_class)
    app.connect("html-page-context", set_language)
    app.connect("source-read", hide_guide)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
