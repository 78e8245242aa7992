"""Remedies for two groups that were not fused: the applicable part of a reason's remedy."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from compile_lens.record import syntax
from compile_lens.record.graph import Frame, Node

SAME_DIMENSIONS = "Reduce over the same dimensions in both."
SAME_ELEMENTS = (
    "Let both take the same elements in the same order: no slice, shift, gather, reshape or transpose between "
    "the two."
)
_RESHAPES = re.compile(
    r"\b(reshape|view|transpose|permute|flatten|unflatten|swapaxes|movedim|rearrange)\b|\.m?[tTH]\b"
)
_MOVES = re.compile(
    rf"{_RESHAPES.pattern}|\[[^\]]*:[^\]]*\]|\b(gather|roll|narrow|flip|slice|index_select|take|take_along_dim|select)\b"
)


class Remedies:
    """Remedies for groups of one phase; ``loops`` and ``aten`` are its loops and post-grad nodes by name."""

    def __init__(
        self, groups: Mapping[str, Node], loops: Mapping[str, Node], aten: Mapping[str, Node]
    ) -> None:
        self._groups, self._loops, self._aten = groups, loops, aten

    def applicable(self, reason: str, remedy: str, first_groups: list[str], second_groups: list[str]) -> str:
        """Return the remedy of a reason, or the part that the program does not follow yet; ``""`` if none applies."""
        first, second = self._reductions(first_groups), self._reductions(second_groups)
        if reason == "reduction barrier":
            return remedy if self._over_other_dimensions(first_groups, second_groups) else ""
        if reason == "different indices" and not self._aten:
            return ""  # the reductions are not known
        if (
            reason == "different indices"
            and first
            and second
            and not self._over_same_dimensions(first | second)
        ):
            return SAME_DIMENSIONS
        if reason == "different indices":
            return (
                SAME_ELEMENTS
                if not (first or second) or self._program_mentions(_MOVES, first_groups, second_groups)
                else ""
            )
        if reason == "different loops" and not self._program_mentions(_RESHAPES, first_groups, second_groups):
            return ""
        return remedy

    def steps_of_one(self, first_groups: list[str], second_groups: list[str]) -> bool:
        """Return True if both are parts of the same reduction, and of no other."""
        one, two = self._reductions(first_groups), self._reductions(second_groups)
        return bool(one) and one == two

    def _program_mentions(
        self, words: re.Pattern[str], first_groups: list[str], second_groups: list[str]
    ) -> bool:
        """Return True if the code of their operators, or of views that these read, matches a pattern."""
        members = [
            self._loops[m]
            for g in (*first_groups, *second_groups)
            for m in self._groups[g].members
            if m in self._loops
        ]
        pending = [name for loop in members for name in loop.origins if name in self._aten]
        texts = [_outermost(f) for name in pending for f in self._aten[name].frames]
        seen = set(pending)
        for name in pending:
            for source in self._aten[name].inputs:
                node = self._aten.get(source)
                if node is not None and node.kind == "view" and source not in seen:
                    seen.add(source)
                    pending.append(source)
                    texts += [_outermost(f) for f in node.frames]
        return any(words.search(text) for text in texts)

    def _reductions(self, groups: list[str]) -> set[str]:
        """Return the reduction operators among the origins of the groups' reduction loops."""
        members = [self._loops[m] for g in groups for m in self._groups[g].members if m in self._loops]
        names = {name for n in members if n.kind == "reduction" for name in n.origins}
        return {name for name in names if name in self._aten and self._aten[name].kind == "reduction"}

    def _over_other_dimensions(self, first_groups: list[str], second_groups: list[str]) -> bool:
        """Return True if one of them reduces without the last dimension; a reduction over that could be fused."""
        return any(
            not _over_last(self._aten[n], self._aten)
            for n in self._reductions([*first_groups, *second_groups])
        )

    def _over_same_dimensions(self, reductions: set[str]) -> bool:
        """Return True if all reductions certainly use the same dimensions, counted from the last."""
        dims = {_dimensions(self._aten[name], self._aten) for name in reductions}
        return len(dims) == 1 and None not in dims


def _outermost(frame: Frame) -> str:
    """Return the outermost operation of a call: ``.reshape`` of ``(q @ k.mT).reshape(4, -1)``, whose transpose is a
    call of its own; the whole line if the call is not known."""
    if not frame.call:
        return frame.text
    try:
        call = syntax.parse(frame.call.strip(), mode="eval").body
    except SyntaxError:
        return frame.call
    if isinstance(call, ast.Call):
        call = call.func
    if isinstance(call, ast.Attribute):
        return f".{call.attr}"
    if isinstance(call, ast.Subscript):
        return f"[{ast.unparse(call.slice)}]"
    return call.id if isinstance(call, ast.Name) else ""


def _over_last(node: Node, nodes: Mapping[str, Node]) -> bool:
    """Return True unless a reduction certainly leaves out the last dimension."""
    dims = _dimensions(node, nodes)
    return dims is None or not dims or -1 in dims


def _dimensions(node: Node, nodes: Mapping[str, Node]) -> frozenset[int] | None:
    """Return the dimensions over which an operator reduces, counted from the last, none for all; None if not known."""
    dims = node.args[1] if len(node.args) > 1 else ()
    dims = (dims,) if isinstance(dims, int) else dims
    source = nodes.get(node.inputs[0]) if node.inputs else None
    if not isinstance(dims, tuple) or source is None or source.shape is None:
        return None
    return frozenset(d if d < 0 else d - len(source.shape) for d in dims if isinstance(d, int))
