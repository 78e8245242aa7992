"""Groups of tests that one process runs together: tests of one file, or of files that share results."""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "browser/test_jupyterlab": "notebooks",
    "browser/test_nbclassic": "notebooks",
    "browser/test_nbconvert": "notebooks",
    "browser/test_site": "site",
    "browser/": "pages",
    "project/test_lesson_": "tutorials",
    "project/test_tutorials": "tutorials",
    "whole/test_story_of_programs": "zoo",
    "whole/test_zoo": "zoo",
}
"""Group of the tests by the beginning of their id; the first match counts."""


class Together(LoadScopeScheduling):
    """Scheduler that distributes a group's tests together, in the order in which the workers list them.

    pytest ignores xdist's own groups, which are named by a mark: it stores a test's id elsewhere.
    """

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.removeprefix("tests/").partition("::")[0]
        return next((group for start, group in GROUPS.items() if file.startswith(start)), file)
