"""Lines that differ between two kernels, and corresponding objects of two captures."""

from __future__ import annotations

import dataclasses

import pytest
import samples

from compile_lens.measures.diff.kernels import hunks
from compile_lens.measures.diff.modules import counterparts


def own(one: str, two: str) -> tuple[list[str], list[str]]:
    """Lines of each text that the other lacks."""
    a, b = one.splitlines(), two.splitlines()
    found = hunks(a, b)
    return [a[n] for hunk in found for n in hunk[0]], [b[n] for hunk in found for n in hunk[1]]


TEXT = "auto tmp0 = in_ptr0[x0];\nauto tmp1 = exp(tmp0);\nauto tmp2 = tmp0 - tmp1;\nout_ptr0[x0] = tmp2;"


@pytest.mark.parametrize(
    ("two", "only_a", "only_b"),
    [
        (TEXT, [], []),
        # Every value has another name.
        (TEXT.replace("tmp2", "tmp7").replace("tmp1", "tmp6").replace("tmp0", "tmp5"), [], []),
        # The operands are swapped.
        (
            TEXT.replace("tmp0 - tmp1", "tmp1 - tmp0"),
            ["auto tmp2 = tmp0 - tmp1;"],
            ["auto tmp2 = tmp1 - tmp0;"],
        ),
        # Another value is stored.
        (TEXT.replace("= tmp2;", "= tmp1;"), ["out_ptr0[x0] = tmp2;"], ["out_ptr0[x0] = tmp1;"]),
        # A number in the program is not a name.
        (TEXT.replace("exp(tmp0)", "exp2(tmp0)"), ["auto tmp1 = exp(tmp0);"], ["auto tmp1 = exp2(tmp0);"]),
        # One more line, which shifts all later numbers.
        (
            "auto tmp0 = in_ptr0[x0];\nauto tmp1 = exp(tmp0);\nauto tmp2 = sin(tmp1);\nauto tmp3 = tmp0 - tmp1;\n"
            "out_ptr0[x0] = tmp3;",
            [],
            ["auto tmp2 = sin(tmp1);"],
        ),
    ],
)
def test_lines_that_differ(two: str, only_a: list[str], only_b: list[str]) -> None:
    assert own(TEXT, two) == (only_a, only_b)
    assert own(two, TEXT) == (only_b, only_a)


def test_a_name_that_is_used_again_is_another_value() -> None:
    """Each loop of a C++ kernel starts at tmp0."""
    one = "auto tmp0 = a(x0);\nf(tmp0);\nauto tmp0 = b(x1);\ng(tmp0);"
    two = "auto tmp0 = a(x0);\nf(tmp0);\nauto tmp1 = b(x1);\ng(tmp1);"
    assert own(one, two) == ([], [])


def test_a_record_stands_for_itself() -> None:
    capture = samples.sample()
    found = counterparts(capture, capture)
    assert found.nodes and all(one == two for one, two in found.nodes)
    places = [(c.id, phase) for c in capture.compilations for phase in c.code]
    assert {module.places for module in found.modules} == {(place, place) for place in places}
    assert all(module.own == ({}, {}) for module in found.modules)


def test_the_lines_of_a_kernel_that_was_changed_are_its_own() -> None:
    capture = samples.sample()
    first = capture.compilations[0]
    phase, code = next((phase, code) for phase, code in first.code.items() if code.kernels[0].source)
    kernel = code.kernels[0]
    text = kernel.source.splitlines()
    at = next(n for n, line in enumerate(text) if line.strip())
    changed = dataclasses.replace(
        kernel, source="\n".join([*text[:at], "what was never here", *text[at + 1 :]])
    )
    other = dataclasses.replace(code, kernels=(changed, *code.kernels[1:]))
    stages = tuple(other if stage is code else stage for stage in first.stages)
    two = dataclasses.replace(
        capture, compilations=(dataclasses.replace(first, stages=stages), *capture.compilations[1:])
    )
    found = counterparts(capture, two)
    (module,) = [m for m in found.modules if m.own != ({}, {})]
    assert module.places == ((first.id, phase), (first.id, phase))
    assert module.own[0] == {(kernel.name, at + 1): "what was never here"}
    assert module.own[1] == {(kernel.name, at + 1): text[at].strip()}
