"""Which tests one process runs: those of files that look at what is made once in a process, at some cost."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

GROUPS = {
    "_torch/code/test_assembly": "assembly",
    "_torch/code/test_memory": "memory",
    "_torch/frames/test_interrupted": "interrupted",
    "_torch/inductor/test_cuda_graphs": "CUDA graphs",
    "_torch/targets/test_told_to_torch": "told to torch",
    "api/test_join": "join",
    "api/test_logs": "logs",
    "api/test_watch_ranges": "ranges",
    "api/test_watch.py": "watch",
    "browser/test_jupyterlab": "notebooks",
    "browser/test_nbclassic": "notebooks",
    "browser/test_nbconvert": "notebooks",
    "browser/test_site": "site",
    "browser/": "pages",
    "measures/test_difference.py": "difference",
    "project/test_assets": "assets",
    "project/test_lesson_": "tutorials",
    "project/test_tutorials": "tutorials",
    "trials/test_benchmark": "benchmark",
    "whole/test_facts": "facts",
    "whole/test_story_of_programs": "zoo",
    "whole/test_zoo": "zoo",
}
"""The group of the tests whose id begins so: the first that fits."""


class Together(LoadScopeScheduling):
    """Hands out the tests of a group together, the largest groups first, then the others one by one.

    xdist has groups of its own, named by a mark, which this pytest does not heed: it keeps a test's id elsewhere.
    """

    def _split_scope(self, nodeid: str) -> str:
        place = nodeid.removeprefix("tests/")
        return next((group for start, group in GROUPS.items() if place.startswith(start)), nodeid)
