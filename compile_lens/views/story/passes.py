"""What was merged and what passes changed on the way to a stage."""

from __future__ import annotations

from compile_lens.record.rewrite import MERGING

from .language import Amount, Names
from .teller import Teller

SOME = 2
"""Patterns that came close, told one by one before the rest is left to the pages."""


def passes(here: Teller, stage: str) -> None:
    """How many changes were made on the way to ``stage``, which patterns matched, and which came close."""
    found = [p for p in here.compilation.passes if p.stage == stage] if here.compilation else []
    merged = [rewrite for p in found if p.name == MERGING for rewrite in p.rewrites]
    if merged:
        pairs = Names(tuple(f"{', '.join(r.before)} → {', '.join(r.after)}" for r in merged))
        here.say("merged", stage, stage_key=stage, n=Amount(len(merged), "call"), names=pairs)
    rewrites = [rewrite for p in found if p.name != MERGING for rewrite in p.rewrites]
    if rewrites:
        here.say("rewritten", stage, stage_key=stage, n=Amount(len(rewrites), "change"))
    patterns = tuple(dict.fromkeys(r.pattern for r in rewrites if r.pattern))
    if patterns:
        here.say("patterns", stage, n=Amount(len(patterns), "pattern"), names=Names(patterns))
    for miss in [miss for p in found for miss in p.near_misses][:SOME]:
        here.say("miss", stage, miss=miss)
