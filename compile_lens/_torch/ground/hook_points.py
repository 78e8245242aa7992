"""Differences between the supported versions of torch. If torch lacks a hook, the claims that rest on it are unknown;
the call still works.

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
2.11       with ``cpp_wrapper`` a graph for a GPU runs before its wrapper in C++ is generated: no code without a build
2.11       Inductor rewrites ``rrelu`` under ``fallback_random`` too, and draws other numbers for it than eager
2.11       configs belong to the process, later to a thread: captures of several threads take turns
2.11       torch keeps a few stack summaries of every compile's guards alive (about twenty small objects)
=========  =======================================================================================
"""

from __future__ import annotations

import importlib

RESTS: dict[str, tuple[str, ...]] = {}
"""The claims (``record.claims``) that rest on each path in torch; without a path that has none, only speed is lost."""


def declare(path: str, *claims: str) -> str:
    """Record that ``claims`` rest on ``path``; return ``path``."""
    RESTS[path] = tuple(dict.fromkeys((*RESTS.get(path, ()), *claims)))
    return path


RENAMED: dict[str, str] = {}
"""New path of a hook that a later torch renamed; it is tried first, since the old one may still exist unused."""


def find(path: str) -> tuple[object, str] | None:
    """Return the owner and the attribute name of ``"module:Class.attribute"``; None if this torch lacks it."""
    return (_find(RENAMED[path]) if path in RENAMED else None) or _find(path)


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


def absent_paths() -> list[str]:
    """Return the declared paths that the running torch does not have."""
    return [path for path in RESTS if find(path) is None]


def lost_claims() -> dict[str, str]:
    """Return the claims that rest on paths which the running torch lacks, each with the reason."""
    lost: dict[str, str] = {}
    for path in absent_paths():
        for claim in RESTS[path]:
            lost.setdefault(claim, lacks(path))
    return lost


def note(path: str, reason: str) -> str:
    """Return the user's note on a path that is absent or whose observer failed."""
    claims = RESTS.get(path, ())
    return f"{reason}: not known, or only in part: {', '.join(claims)}" if claims else reason
