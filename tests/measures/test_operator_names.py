"""Names that match an operator: its own, and shorter ones without its namespace or overload."""

from __future__ import annotations

import pytest

from compile_lens.measures.operators import matches_operator


@pytest.mark.parametrize("name", ["", "sort", "sort.stable", "aten.sort", "aten.sort.stable"])
def test_a_name_matches_from_the_namespace_or_after_it(name: str) -> None:
    assert matches_operator("aten.sort.stable", name)


@pytest.mark.parametrize(
    "name", ["stable", "so", "sort.dim", "prims.sort", "aten", "aten.sor", "aten.sort.stable.x"]
)
def test_no_other_part_of_a_name_matches(name: str) -> None:
    assert matches_operator("aten.sort.stable", name) is (name == "aten")
