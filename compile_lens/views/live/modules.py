"""Which ``nn.Module`` an item belongs to, where its own stage no longer says."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.chain import walk
from compile_lens.record.graph import Graph

from .items import Items

Path = tuple[str, str]
"""A module's path, and its class where that is known."""

NOWHERE: Path = ("", "")


def modules(items: Items) -> list[Path]:
    """The module of each item: its own, else the path that the nearest items above it share.

    A loop that joins work of ``blocks.0.norm`` and ``blocks.0.up`` belongs to ``blocks.0``. What came from
    outside of modules has no say.
    """
    found: list[Path | None] = [None] * len(items.above)
    classes: dict[str, str] = {}
    for seen in items.stages:
        if isinstance(seen.stage, Graph):
            for path, node in walk(seen.stage):
                if node.module:
                    item = seen.item(path + node.name)
                    found[item] = found[item] or (node.module, node.module_type)
                    if node.module_type:
                        classes.setdefault(node.module, node.module_type)
    for start in range(len(found)):
        if found[start] is not None:
            continue
        # Depth first without recursion: what is above comes first. A loop in a strange record ends here,
        # because an item on the way counts as known.
        way = [start]
        found[start] = NOWHERE
        pending = [iter(items.above[start])]
        while way:
            above = next(pending[-1], None)
            if above is None:
                pending.pop()
                item = way.pop()
                found[item] = _shared([found[up] or NOWHERE for up in items.above[item]], classes)
            elif found[above] is None:
                found[above] = NOWHERE
                way.append(above)
                pending.append(iter(items.above[above]))
    return [path or NOWHERE for path in found]


def _shared(paths: Sequence[Path], classes: dict[str, str]) -> Path:
    own = dict.fromkeys(path for path in paths if path[0])
    if len(own) == 1:
        return next(iter(own))
    if not own:
        return NOWHERE
    parts = [path.split(".") for path, _ in own]
    same = 0
    while all(len(p) > same and p[same] == parts[0][same] for p in parts):
        same += 1
    shared = ".".join(parts[0][:same])
    return shared, classes.get(shared, "")
