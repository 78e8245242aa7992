"""What happened between the operators and the kernels, in few of a story's sentences."""

from __future__ import annotations

from compile_lens.record.capture import Record

from ..words.outline import phase_of
from .model import Sentence
from .whole import story

TITLE = "In between"

_KEYS = ("inlined", "fused", "one_loop", "counts", "traffic")
_MOST = 4
_SHORT = 170
"""Characters of a sentence that is among the few; longer ones are in the story."""


def between(capture: Record) -> dict[tuple[str, str], list[Sentence]]:
    """The few sentences of each phase of each compilation, by compile id and phase."""
    found: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in story(capture).sentences:
        phase = phase_of(sentence.stage)
        if not phase or sentence.key not in _KEYS or len(sentence.text) > _SHORT:
            continue
        few = found.setdefault((sentence.compilation, phase), [])
        if len(few) < _MOST:
            few.append(sentence)
    return found
