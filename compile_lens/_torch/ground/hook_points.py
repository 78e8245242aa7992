"""What each supported torch has. A hook that is missing loses one stage, never the call.

Differences seen by running the suite (see ``tests/_torch``); everything not listed is the same on 2.11, 2.13
and 2.15:

=========  =======================================================================================
torch      what differs
=========  =======================================================================================
2.11       no ``isolate_recompiles``, and 2.13 has one region for all threads, so it is not used there: while a
2.13       capture runs, its entries on the code of an *inner* function (one that Dynamo compiles on its own
           after a graph break) stand in one list with the user's own
2.11       Metal kernels are written as ``compile_mps_shader(…)``; later as ``async_compile.metal(…)``
2.11       ``ConvertFrameReturn`` has no ``skip_reason``: why a frame was skipped is what ``SkipFrame`` says,
           and a frame that is left alone for a dispatch mode leaves no trace
2.11       a default argument that is changed (``f.__defaults__``) is not noticed: the form for the old one runs on
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
"""Where a later torch has what stood at a path. Looked at only where the path is gone."""


def find(path: str) -> tuple[object, str] | None:
    """The owner and the attribute name of ``"module:Class.attribute"``, or None if this torch lacks it."""
    found = _find(path)
    return _find(RENAMED[path]) if found is None and path in RENAMED else found


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
    """The reason for a stage whose hook is not there."""
    import torch

    return f"torch {torch.__version__} lacks the hook {path.replace(':', '.')}"


def lost(stage: str) -> str:
    """Why a stage cannot be seen on the running torch, ``""`` if its hook is there."""
    return next((lacks(path) for path, loses in LOSES.items() if loses == stage and find(path) is None), "")
