"""Differences between the supported versions of torch. A missing hook costs one stage, never the call.

Found by running the suite (see ``tests/_torch``); everything not listed is the same on 2.11, 2.13 and 2.15:

=========  =======================================================================================
torch      what differs
=========  =======================================================================================
2.11       no ``isolate_recompiles``, and 2.13 has one region for all threads, so it is not used there: while a
2.13       capture runs, its entries on the code of an *inner* function (one that Dynamo compiles on its own
           after a graph break) stand in one list with the user's own
2.11       Metal kernels are generated as ``compile_mps_shader(…)``; later as ``async_compile.metal(…)``
2.11       ``ConvertFrameReturn`` has no ``skip_reason``: the reason for a skipped frame is that of ``SkipFrame``,
           and a frame that is skipped because of a dispatch mode leaves no trace
2.11       a changed default argument (``f.__defaults__``) is not noticed: the entry for the old one runs on
2.11       the stacks of nodes and of graph breaks have lines and no columns
2.11       Inductor rewrites ``rrelu`` under ``fallback_random`` too, and draws other numbers for it than eager
2.11       configs belong to the process, later to a thread: captures of several threads take turns
2.11       torch keeps a few stack summaries of every compile's guards alive (about twenty small objects)
=========  =======================================================================================
"""

from __future__ import annotations

import importlib

LOSES = {
    "torch._inductor.compile_fx:_recursive_pre_grad_passes": "pre_grad",
    "torch._inductor.compile_fx:partition_fn": "joint",
    "torch._inductor.graph:GraphLowering.run": "post_grad",
    "torch._inductor.config:_pre_fusion_custom_pass": "loops",
    "torch._inductor.scheduler:Scheduler.codegen": "groups",
    "torch._inductor.graph:GraphLowering._compile_to_module_lines": "code",
}
"""The stage that is missing on a torch without the hook. Other hooks lose a detail (an origin, a reason)."""


RENAMED: dict[str, str] = {}
"""New path of a hook that a later torch renamed; looked at only if the old path is gone."""


def find(path: str) -> tuple[object, str] | None:
    """Return the owner and the attribute name of ``"module:Class.attribute"``; None if this torch lacks it."""
    place = _find(path)
    return _find(RENAMED[path]) if place is None and path in RENAMED else place


def _find(path: str) -> tuple[object, str] | None:
    module_name, _, attributes = path.partition(":")
    try:
        owner: object = importlib.import_module(module_name)
    except ImportError:
        return None
    *parents, name = attributes.split(".")
    for parent in parents:
        if not hasattr(owner, parent):
            return None
        owner = getattr(owner, parent)
    return (owner, name) if hasattr(owner, name) else None


def lacks(path: str) -> str:
    """Return the reason for a stage whose hook is missing."""
    import torch

    return f"torch {torch.__version__} lacks the hook {path.replace(':', '.')}"


def lost(stage: str) -> str:
    """Return why a stage cannot be observed on the running torch; ``""`` if its hook exists."""
    return next((lacks(path) for path, loses in LOSES.items() if loses == stage and find(path) is None), "")
