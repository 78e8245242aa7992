"""Names in signatures lead to where they are told, and a page in Chinese says that it is."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode


def told(app: Sphinx, env: BuildEnvironment, node: Any, content: nodes.Element) -> nodes.Element | None:
    """The place of a class of ours that a signature names without its module; none if it is not told."""
    if node.get("refdomain") != "py":
        return None
    last = node["reftarget"].rpartition(".")[2]
    objects = env.domains.python_domain.objects
    found = sorted(name for name in objects if name.rpartition(".")[2] == last and not objects[name].aliased)
    same = [name for name in found if name.rpartition(".")[0] == node.get("py:module")]
    found = same or found
    if len(found) != 1:
        return None
    place = objects[found[0]]
    return make_refnode(app.builder, node["refdoc"], place.docname, place.node_id, content, found[0])


def language(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: Any) -> None:
    """The language of a page, for readers aloud and for fonts."""
    if "/zh/" in page or page.endswith("zh-CN"):
        context["language"] = "zh-CN"


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("missing-reference", told)
    app.connect("html-page-context", language)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
