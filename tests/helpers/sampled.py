"""Of which tests a run of the whole suite takes only some cases, so that it ends in time on a slow machine.

Each is a dear test with many cases of one kind. A run of a few files takes all of them, and so does ``--exhaustive``.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TypeVar

T = TypeVar("T")

FEW_FILES = 50
"""A run of at most so many files is not that of the whole suite."""

EVERY = {
    "_torch/graphs/test_accesses.py::test_one_operator_alone_moves_the_same_before_and_after": 3,
    "_torch/graphs/test_line_programs.py::test_what_changes_with_a_line_leads_to_it": 3,
    "_torch/graphs/test_merged.py::test_no_node_of_the_suite_vanishes_in_silence": 2,
    "_torch/ground/test_hooks.py::test_a_lost_detail_loses_no_stage": 3,
    "_torch/ground/test_interrupts.py::test_interrupts": 3,
    "_torch/ground/test_tallies.py::test_no_module_of_torch_is_left_changed": 4,
    "_torch/inductor/test_decisions.py::test_fusion_and_code_are_the_same_without_listening": 3,
    "_torch/inductor/test_line_origins.py::test_the_lines_of_an_operator_are_those_that_change_with_it": 2,
    "_torch/targets/test_as_the_device.py::test_the_branch_is_the_devices": 2,
    "_torch/targets/test_attention.py::test_its_own_operators_are_those_of_plain_pytorch": 2,
    "_torch/targets/test_kernels_of_the_device.py"
    "::test_the_graph_and_eagers_operators_are_those_of_a_build_with_the_kernels": 2,
    "_torch/targets/test_targets.py::test_the_suite": 5,
    "api/test_watch_unvisited.py::test_a_module_of_torch_s_in_ddp": 2,
    "api/test_watch_unvisited.py::test_calls_under_a_stance": 2,
    "api/test_what_if.py::test_the_planted_switch_is_found": 3,
    "browser/test_accessible.py::test_axe_finds_nothing": 3,
    "browser/test_derivatives.py::test_in_functions_by_dice_the_chip_counts_the_lit_lines": 2,
    "browser/test_linking.py::test_a_pinned_chain_is_lit_in_every_stage": 2,
    "child/test_reached.py::test_what_was_changed_after_the_import_is_so_in_the_child": 2,
    "cli/test_run.py::test_a_program_that_was_interrupted_ends_by_the_signal": 5,
    "cli/test_run.py::test_a_script_is_as_under_python": 2,
    "cli/test_what_if_command.py::test_bad_usage_is_one_clear_line": 3,
    "engine/test_assemble.py::TestWithTriton::test_every_kernel_of_the_suite_reaches_sass": 4,
    "engine/test_cost.py::test_a_capture_costs_little_beside_torch": 3,
    "project/test_assignments.py::test_a_solved_cell_gives_its_point": 2,
    "trials/test_interpreted.py::test_the_others_agree": 3,
    "whole/test_opinfo.py::test_value_and_launches_are_torchs": 3,
}
"""Every how manyth case runs. Where cases are pairs, a number that has no factor in common with the size of either."""


def left_out(cases: list[tuple[str, T]]) -> list[T]:
    """Those that a run of the whole suite leaves out, of all its cases: the id of each, and the case."""
    if len({name.partition("::")[0] for name, _ in cases}) <= FEW_FILES:
        return []
    seen: defaultdict[str, int] = defaultdict(int)
    found = []
    for name, case in cases:
        test = name.partition("[")[0].removeprefix("tests/")
        every = EVERY.get(test)
        if every is not None:
            if seen[test] % every:
                found.append(case)
            seen[test] += 1
    return found
