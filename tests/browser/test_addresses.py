"""Python accepts the expressions that the page shows for its items."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from . import captures
from .viewer import Viewer

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = [pytest.mark.browser, pytest.mark.torch]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python tells columns from 3.11 on")
def test_the_address_of_a_call_is_pasted_into_python(standalone: Callable[..., Page]) -> None:
    shown = captures.sin_cos()
    page = Viewer(standalone(shown), shown)
    page.open("python", "forward", "forward.code")
    page.pane("python").get_by_role("button", name="call cos:").first.click()
    page.leave()
    address = ast.literal_eval(page.facts()["in Python"])
    line = shown.sources[0].text.split("\n")[1]
    start = line.index("torch.cos(x)")
    assert address == f"captures.py:{shown.sources[0].first_line + 1}:{start}-{start + len('torch.cos(x)')}"
    assert shown.chain.find(address) == (("0/0", "dynamo", "cos"),)
    page.page.wait_for_function("() => location.hash.includes('pin=')")
    hash = unquote(page.page.evaluate("location.hash"))
    assert f"pin=cos;python:source:={address}" in hash, "a permalink says the same"
    again = Viewer(standalone(shown, hash.lstrip("#")), shown)
    again.frame()
    assert again.pins() == ["cos"]


@pytest.mark.parametrize(
    ("key", "name"), [("forward", "sin"), ("joint", "mul_5"), ("backward.groups", "op0"), ("dynamo", "l_x_")]
)
def test_so_is_that_of_a_node_and_of_a_line(standalone: Callable[..., Page], key: str, name: str) -> None:
    shown = captures.sin_cos()
    page = Viewer(standalone(shown), shown)
    page.pin(("0/0", key, name))
    assert ast.literal_eval(page.facts()["in Python"]) == ("0/0", key, name)
    page.page.keyboard.press("Escape")
    page.pin(shown.chain.ancestors(("0/0", "forward", "sin"))[-1])
    assert shown.chain.find(ast.literal_eval(page.facts()["in Python"])) == (
        shown.chain.ancestors(("0/0", "forward", "sin"))[-1],
    )
