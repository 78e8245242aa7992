"""The story of a capture: its outcome, each compilation stage by stage, and the totals."""

from __future__ import annotations

from compile_lens.errors import UsageError
from compile_lens.measures.ledger import ledger as ledger_of
from compile_lens.measures.memo import memoized
from compile_lens.measures.quantities import graphs as count_graphs
from compile_lens.record import claims
from compile_lens.record.capture import Record
from compile_lens.record.figures import summed

from ..words import outcome, stamp
from ..words.labels import STAMPS, phase_of, place
from .chinese import CHINESE
from .english import ENGLISH
from .frames import dynamo, left_to_python
from .inductor import autograd, inductor
from .model import BYTES, Amount, Sentence, Story, Teller, text

LANGUAGES = {language.name: language for language in (ENGLISH, CHINESE)}
"""The languages of stories, by code."""


@memoized
def story(capture: Record, lang: str = "en") -> Story:
    """Return the story of a capture, stage by stage. Raises ``UsageError`` for an unknown language."""
    language = LANGUAGES.get(lang)
    if language is None:
        raise UsageError(f"there is no story in {lang!r}; there is one in {', '.join(LANGUAGES)}")
    teller = Teller(capture, language)
    _outcome(teller)
    left_to_python(teller)
    for compilation in capture.compilations:
        dynamo(teller, compilation)
        autograd(teller, compilation)
        inductor(teller, compilation)
    _total(Teller(capture, language, None, language.word("total"), teller.told))
    title = language.say("title", {"function": capture.function})
    return Story(title, lang, tuple(teller.told), language.between)


def _outcome(teller: Teller) -> None:
    capture = teller.capture
    graphs = Amount(count_graphs(capture), "graph")
    state = outcome.state(capture)
    if capture.failure is not None:
        _failure(teller)
    elif state == outcome.NOTHING:
        teller.say("nothing", reason=capture.nothing_compiled) if capture.nothing_compiled else teller.say(
            "unsaid"
        )
    elif why := outcome.eager_parts_unknown(capture):
        named = capture.lacks(claims.EVALUATIONS)
        teller.say("program" if named else "as_far", graphs=graphs, reason=why)
    else:
        teller.say("whole" if state == outcome.COMPILED else "partly", graphs=graphs)
    if capture.breaks:
        key = "breaks_seen" if capture.lacks(claims.BREAKS) else "breaks"
        breaks, places = len(capture.breaks), len(outcome.broken(capture))
        if breaks == places:
            teller.say(key, n=Amount(breaks, "break"))
        else:
            teller.say(f"{key}_at", n=Amount(breaks, "broken"), places=Amount(places, "place"))
    if capture.recompiles:
        teller.say("recompiles", n=Amount(len(capture.recompiles), "recompile"))
    if capture.target is not None:
        modelled = any(code.model for c in capture.compilations for code in c.code.values())
        teller.say("modelled_device" if modelled else "target", device=stamp.device(capture))


def _failure(teller: Teller) -> None:
    failure = teller.capture.failure
    assert failure is not None
    message = failure.message.strip().partition("\n")[0]
    teller.say("failed", failure.stage, stage_key=failure.stage, type=failure.type, message=message)
    if failure.frames:
        teller.say("failed_at", failure.stage, place=place(failure.frames[-1]))
    if failure.hint:
        teller.say("advised", failure.stage, hint=failure.hint)
    if teller.capture.compilations:
        teller.say("before_it")


def _total(teller: Teller) -> None:
    """Add the totals over graphs with known figures before and after."""
    ledger = ledger_of(teller.capture)
    every = ledger.single
    for first, last in (("eager_ops", "launches"), ("bytes_before", "bytes_after")):
        known = [r for r in every if None not in (getattr(r, first), getattr(r, last))]
        before, after = (summed(getattr(r, column) for r in known) for column in (first, last))
        if not known or before is None or after is None:
            continue
        if len(known) < len(every):
            teller.say("some", known=Amount(len(known), ""), graphs=Amount(len(every), "graph"))
        if first == "eager_ops":
            teller.say("total", n=Amount(before, "operator"), launches=Amount(after, "launch"))
        else:
            eager = outcome.bytes_of_eager(known)
            of_eager = eager is not None and eager != before
            teller.say(
                "total_bytes_eager" if of_eager else "total_bytes",
                before=Amount(eager if eager is not None else before, BYTES),
                after=Amount(after, BYTES),
            )
            teller.say("modelled")
    codes = [code for c in teller.capture.compilations for code in c.code.values()]
    for stamp_of in dict.fromkeys(code.stamp for code in codes):
        if stamp_of in STAMPS:
            teller.say(stamp_of)
        else:
            teller.say("note", note=text(stamp_of))
    for note in teller.capture.notes:
        teller.say("note", note=note)


TITLE = "In between"

_KEYS = ("inlined", "fused", "one_loop", "counts", "traffic", "traffic_eager")
_MAX_SENTENCES = 4
_MAX_CHARACTERS = 170
"""Maximum characters of a selected sentence; longer sentences are only in the story."""


def between(capture: Record) -> dict[tuple[str, str], list[Sentence]]:
    """Return selected sentences for each phase of each compilation, by compile id and phase."""
    by_phase: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in story(capture).sentences:
        phase = phase_of(sentence.stage)
        if not phase or sentence.key not in _KEYS or len(sentence.text) > _MAX_CHARACTERS:
            continue
        few = by_phase.setdefault((sentence.compilation, phase), [])
        if len(few) < _MAX_SENTENCES:
            few.append(sentence)
    return by_phase
