"""Without the tag ``solutions`` a site is for students: nothing leads to the guide for lecturers."""

from __future__ import annotations

import re

from sphinx.application import Sphinx

LINK = re.compile(r"\[([^\]\n]+)\]\((?:[\w./-]*/)?INSTRUCTORS\.md\)")
ENTRY = re.compile(r"^/tutorials/INSTRUCTORS\n", re.M)


def leave_out(app: Sphinx, page: str, content: list[str]) -> None:
    """Make links to the guide plain words, and take it out of the side bar."""
    if not app.tags.has("solutions"):
        content[0] = ENTRY.sub("", LINK.sub(r"\1", content[0]))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", leave_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
