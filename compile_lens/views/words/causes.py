"""Words for the causes that slow a program down: the effect, the reason, and what to try."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compile_lens.measures.causes import (
    CACHE_BYPASSED,
    COMPILE_FAILED,
    COMPILE_RAISED,
    EAGER_REST,
    GRAPH_BREAK,
    NOT_EVALUATED,
    NOTHING_AT_FIRST,
    RECOMPILE_LIMIT,
    RECOMPILED,
    RUNS_EAGERLY,
    Cause,
)
from compile_lens.measures.program import is_library, program_line
from compile_lens.record.breaks import SKIPPED_BEFORE, STANCE
from compile_lens.record.compilation import DynamicDim
from compile_lens.record.failed_guards import MODES, STATE
from compile_lens.record.messages import first_names, in_program_words, plain_name, plain_source
from compile_lens.record.program import (
    ERROR_ON_RECOMPILE,
    FAIL_ON_RECOMPILE,
    UNKNOWN,
    FailedGuard,
    Recompilation,
)

from .accepted_values import takes
from .break_advice import is_on_purpose
from .characters import capitalized
from .outcome import reason
from .quantities import duration, plural
from .remedies import (
    MARK,
    MAX_ITEMS,
    SYMBOL_AT_FIRST,
    for_each,
    of_dimensions,
    of_library,
    place,
    to_try,
    two_types,
)

LEFT_BEFORE = "skipped before the watch"
UNTRIED = "run eagerly without a compile attempt"
AS_FAR = ", as far as is known"


def changed(failed: FailedGuard) -> str:
    """Return the value that a guard was compiled for and the one that failed it, in a few words."""
    return in_program_words(_changed(failed), failed.free_variables)


def _changed(failed: FailedGuard) -> str:
    if failed.source and failed.new:
        if failed.old:
            if types := two_types(failed):
                return f"{failed.source} was the {types[0]} {failed.old}, now the {types[1]} {failed.new}"
            several = failed.source == MODES or (failed.text.startswith(STATE) and " and " in failed.source)
            verb = "were" if several else "was"
            return f"{failed.source} {verb} {failed.old}, now {failed.new}"
        verb = "are" if ", " in failed.source else "is"
        return f"{failed.source} {verb} {failed.new}, compiled for {plain_source(failed.text)}"
    if failed.source and failed.old:
        return f"{failed.source} was {failed.old}"
    return failed.text


def _is_constant(dim: DynamicDim) -> bool:
    """Return True for a symbol that the function's code specialized to a number again."""
    return dim.symbol.replace(".", "").isdecimal()


def again(recompilation: Recompilation, made: bool = True) -> str:
    """Return the reason for a recompile, the number of recompiles, and the sizes that became symbols."""
    newest = changed(recompilation.change) if recompilation.change is not None else _none(recompilation)
    names = () if recompilation.change is None else recompilation.change.free_variables
    dims = [
        in_program_words(f"{plain_source(d.source)} became a symbol (torch's {d.symbol}), {takes(d)}", names)
        for d in recompilation.dynamic
        if not _is_constant(d)
    ]
    if not made and (recompilation.cache_entries < recompilation.limit or not recompilation.limit):
        return "; ".join((newest, *dims, f"none of {plural(recompilation.cache_entries, 'variant')} fits"))
    if not recompilation.limit:  # not in the log
        return "; ".join((newest, *dims, f"cache entry {recompilation.cache_entries + 1}"))
    most = f"cache entry {recompilation.cache_entries + 1} of at most {recompilation.limit}"
    if recompilation.cache_entries >= recompilation.limit:
        most = f"it has {recompilation.cache_entries} cache entries, and may have {recompilation.limit}"
    return "; ".join((newest, *dims, most))


def _none(recompilation: Recompilation) -> str:
    if not recompilation.failed_guards:
        unread = recompilation.nearest_entry == UNKNOWN
        return "what failed is not known" if unread else "torch found no guard that failed"
    return (
        f"which of {plural(len(recompilation.failed_guards), 'variant')} it came nearest to is not in the log"
    )


def also(recompilation: Recompilation) -> str:
    """Return why the call did not fit the other variants; ``""`` if nothing else changed."""
    forms: dict[str, list[FailedGuard]] = {}
    for one in recompilation.other_guards:
        forms.setdefault(one.source or one.text, []).append(one)
    if recompilation.change is not None:
        forms.pop(recompilation.change.source or recompilation.change.text, None)
    parts = [f"{first_names((one.id for one in of), MAX_ITEMS)}: {changed(of[0])}" for of in forms.values()]
    more = f"; and {plural(len(parts) - MAX_ITEMS, 'reason')} more" if len(parts) > MAX_ITEMS else ""
    return f"also {'; '.join(parts[:MAX_ITEMS])}{more}" if parts else ""


HEADS = {
    COMPILE_FAILED: "could not be compiled: the compiler or the backend raised",
    COMPILE_RAISED: "could not be compiled: the call raised",
    RECOMPILE_LIMIT: "reached its limit of recompiles: each call that fits no variant runs eagerly",
    RUNS_EAGERLY: "runs eagerly as a whole",
    NOTHING_AT_FIRST: "had nothing to compile in a call: each call after it runs eagerly",
    NOT_EVALUATED: f"was {UNTRIED}",
    EAGER_REST: "was compiled up to an earlier line, and runs eagerly from there",
    GRAPH_BREAK: "broke the graph",
    RECOMPILED: "was compiled again",
    CACHE_BYPASSED: "is compiled again at each start of the program",
}
"""Predicates of the causes, by kind."""


def head(cause: Cause) -> str:
    """Return the effects of a cause, with their places and counts."""
    by_kind: dict[str, list[Cause]] = {}
    for one in cause.effects or (cause,):
        by_kind.setdefault(one.kind, []).append(one)
    spent = f", {duration(cause.seconds)} of compiling" if cause.seconds else ""
    subject = _subject((cause.effects or (cause,))[0])
    each = (_did(effects) for effects in by_kind.values())
    return (
        "; ".join(text.replace(f"{subject} ", "it ", 1) if n else text for n, text in enumerate(each)) + spent
    )


def _did(effects: list[Cause]) -> str:
    """Return the effects of one kind, at each place."""
    first = effects[0]
    count = sum(one.count for one in effects)
    times = f", {count} times" if count > 1 else ""
    did = HEADS[first.kind]
    subjects = list(map(_subject, effects))
    if first.kind == GRAPH_BREAK:
        broke = [_broken_graph(one) for one in effects]
        if len(set(subjects)) == 1 or len(set(broke)) == 1:
            of = dict.fromkeys(filter(None, broke))
            did = f"{did} of {first_names(of, MAX_ITEMS)}" if of else did
        else:
            subjects = [f"{at} (the graph of {of})" if of else at for at, of in zip(subjects, broke)]
    if not first.certain:
        did = f"{_unasked(first)}{AS_FAR}"
        if first.eager_kind == STANCE:  # the count is of calls, not of eager runs
            did, times = f"was called{times.replace(',', '')} {_PERHAPS}", ""
    elif first.eager_kind:
        did = _unasked(first)
    what, *others = dict.fromkeys(subjects)
    return f"{what} {did}{f', also {first_names(others, MAX_ITEMS)}' if others else ''}{times}"


def _broken_graph(cause: Cause) -> str:
    """Return the function whose graph broke; ``""`` if it is the one that the line of the break is in."""
    return "" if plain_name(cause.place.function if cause.place else "") == cause.function else cause.function


def _subject(cause: Cause) -> str:
    """Return the subject of a cause: a function with its place, or a line."""
    if cause.kind == CACHE_BYPASSED and cause.place is None:
        return "a graph of an unknown function"
    function = cause.function
    if cause.kind == GRAPH_BREAK and cause.place is not None:
        function = plain_name(cause.place.function)
    what = f"{place(cause.place)} in {function}" if function else place(cause.place)
    return f"what follows {what}" if cause.after_break else what


def _unasked(cause: Cause) -> str:
    return f"was {LEFT_BEFORE if cause.eager_kind == SKIPPED_BEFORE else UNTRIED}"


_PERHAPS = "where nothing may be compiled: those calls that fitted no compiled variant ran eagerly"


def because(cause: Cause) -> str:
    """Return the reason, in torch's words or by the failed guard, with the reasons of other effects; ``""`` if there is
    none."""
    first, *others = cause.effects or (cause,)
    parts = {_about(one) or text: text for one in others if (text := _short_because(one))}
    known = _because(first)
    more = [text for about, text in parts.items() if text not in known and about != _about(first)]
    return f"{known}; also {'; '.join(more[:MAX_ITEMS])}{_and_more(more)}" if more and known else known


def _and_more(parts: list[str]) -> str:
    return f"; and {len(parts) - MAX_ITEMS} more" if len(parts) > MAX_ITEMS else ""


def _short_because(cause: Cause) -> str:
    """Return the reason of one of several effects in a few words."""
    if cause.recompilation is not None and _of_forms(cause):
        return "" if cause.recompilation.change is None else changed(cause.recompilation.change)
    return "" if cause.ending is None else reason(cause.ending).what


def _because(cause: Cause) -> str:
    if cause.kind == NOTHING_AT_FIRST:
        return (
            "Dynamo met no tensor operation, and does not look at the function again: torch runs no variant of it any "
            "more, also none that it compiled before"
        )
    if cause.kind == CACHE_BYPASSED and cause.ending is not None:
        if _AUTOCAST in cause.ending.reason:
            return f"the graph enters autocast itself, and the cache of {cause.cache} takes no such graph"
        return f"the cache of {cause.cache} does not take its graph: {' '.join(cause.ending.reason.split())}"
    if cause.recompilation is not None and _of_forms(cause):
        if cause.limit == FAIL_ON_RECOMPILE and cause.ending is not None:
            return f"{reason(cause.ending).what}: {again(cause.recompilation, made=False)}"
        if cause.limit == ERROR_ON_RECOMPILE:
            setting = f"torch._dynamo.config.{ERROR_ON_RECOMPILE}"
            words = again(cause.recompilation, made=False)
            return f"{setting} is set, so that a call which fits no variant raises: {words}"
        if cause.kind == COMPILE_RAISED:
            reached = f"{cause.limit} was reached, and fullgraph=True lets no call run eagerly"
            return f"{reached}: {_at_limit(cause, cause.recompilation)}"
        if cause.kind == RECOMPILE_LIMIT:
            return _at_limit(cause, cause.recompilation)
        return f"{again(cause.recompilation)}{_shared(cause)}"
    if cause.ending is None:
        return ""
    reason_of = reason(cause.ending)
    met = (
        f"{place(cause.origin_line)} in {plain_name(cause.origin_line.function)}"
        if cause.origin_line is not None
        else ""
    )
    return ": ".join(x for x in (met, reason_of.what, reason_of.why) if x)


def _at_limit(cause: Cause, recompilation: Recompilation) -> str:
    """Return why a call reached the limit, and the values that the variants were compiled for."""
    reason_of = again(recompilation, made=False)
    if recompilation.cache_entries < recompilation.limit:  # a limit other than that of entries per code
        reason_of = f"{reason_of}, and {cause.limit} lets it have no more"
    reason_of += _shared(cause)
    others = _others(cause)
    if not others:
        return reason_of
    return f"{reason_of}; variants were made for {'; '.join(others[:MAX_ITEMS])}{_and_more(others)}"


def _shared(cause: Cause) -> str:
    """Return a clause on compiled functions that share a code's entries; ``""`` if there is only one, or it is
    unknown."""
    if cause.sharing < 2:
        return ""
    return f"; at least {cause.sharing} compiled functions share this code, and so its cache entries and their limit"


def _others(cause: Cause) -> list[str]:
    """Return the changes at the other recompiles."""
    return [changed(other.change) for other in cause.other_recompilations if other.change is not None]


def _for_each(cause: Cause, torch: str) -> str:
    """Return the remedy for each value that caused variants, since fixing one alone leaves the others at the limit."""
    by_remedy: dict[str, list[Recompilation]] = {}
    for recompilation in filter(None, (cause.recompilation, *cause.other_recompilations)):
        if recompilation.change is not None and (remedy := _to_try(cause, recompilation, torch)):
            by_remedy.setdefault(remedy, []).append(recompilation)
    tried = {of_dimensions(remedy, of): of for remedy, of in by_remedy.items()}
    if len(tried) < 2:
        return next(iter(tried), "")
    each = [
        f"for {first_names([one.change.source or one.change.text for one in of if one.change], MAX_ITEMS)}: {remedy}"
        for remedy, of in tried.items()
    ]
    more = f"; and for {plural(len(each) - MAX_ITEMS, 'thing')} more" if len(each) > MAX_ITEMS else ""
    return f"{'; '.join(each[:MAX_ITEMS])}{more}"


def _to_try(cause: Cause, recompilation: Recompilation, torch: str) -> str:
    library = cause.place is not None and is_library(cause.place)
    own = for_each(torch, cause.sharing)
    return to_try(recompilation, cause.torch_caller, cause.after_break, own, library)


def _of_forms(cause: Cause) -> bool:
    """Return True for a cause that is a recompile itself, not something met during one."""
    return cause.kind in (RECOMPILE_LIMIT, RECOMPILED) or (cause.kind == COMPILE_RAISED and bool(cause.limit))


def advice(cause: Cause, torch: str = "") -> str:
    """Return the remedy: torch's own hint, or one for the change. ``torch`` is the version that compiled. For several
    effects each different remedy is given with its value; a value from a line needs only the remedy for the line."""
    if not cause.effects:
        return of_dimensions(_advice(cause, torch), _recompilations([cause]))
    effects = [one for one in cause.effects if _of_forms(one) is _of_forms(cause)]
    by_remedy: dict[str, list[Cause]] = {}
    for one in effects:
        if remedy := _advice(one, torch):
            by_remedy.setdefault(remedy, []).append(one)
    if SYMBOL_AT_FIRST in by_remedy:  # helps where the mark does
        by_remedy.pop(MARK, None)
    remedies = {
        of_dimensions(remedy, _recompilations(of)): list(map(_about, of)) for remedy, of in by_remedy.items()
    }
    if len(remedies) < 2:
        return next(iter(remedies), "")
    if not _of_forms(cause):  # two breaks of a line may have the same advice
        return "\n".join(
            dict.fromkeys(capitalized(line) for remedy in remedies for line in remedy.split("\n"))
        )
    each = (f"for {first_names(dict.fromkeys(of), MAX_ITEMS)}: {remedy}" for remedy, of in remedies.items())
    return "; ".join(each)


def _recompilations(of: Iterable[Cause]) -> Iterator[Recompilation]:
    for cause in of:
        yield from filter(None, (cause.recompilation, *cause.other_recompilations))


def _about(cause: Cause) -> str:
    """Return the value that a remedy is for."""
    change = cause.recompilation.change if cause.recompilation is not None and _of_forms(cause) else None
    return "" if change is None else in_program_words(change.source or change.text, change.free_variables)


def _advice(cause: Cause, torch: str = "") -> str:
    if cause.kind == CACHE_BYPASSED:
        autocast = cause.ending is not None and _AUTOCAST in cause.ending.reason
        return (
            "enter autocast around the call of the compiled function, not in it: the graph is then traced under "
            "autocast, and can be cached"
            if autocast
            else ""
        )
    if cause.kind == NOTHING_AT_FIRST:
        what = "the rest" if cause.after_break else cause.function
        first = "fix the break first: without it nothing follows. Otherwise, " if cause.after_break else ""
        if first and cause.ending is not None and is_on_purpose(cause.ending):
            first = "there is nothing to change at the break; "
        return (
            f"{first}if {what} computes in other calls, compile that part as a function of its own, and decide outside "
            "of it whether to call it"
        )
    if cause.recompilation is not None and _of_forms(cause):
        at_limit = bool(cause.limit) and cause.limit not in (FAIL_ON_RECOMPILE, ERROR_ON_RECOMPILE)
        tried = _for_each(cause, torch) if at_limit else _to_try(cause, cause.recompilation, torch)
        if tried:
            return tried
    if cause.caller is not None and cause.place is not None:
        alone = cause.ending is not None and program_line(cause.ending.frames) is None
        return of_library(cause.place, cause.caller, alone)
    return reason(cause.ending).hint if cause.ending is not None else ""


_AUTOCAST = "_enter_autocast"
"""Name of torch's graph operator that enters autocast."""


def of_torch(cause: Cause) -> bool:
    """Return True if each remedy is torch's own hint, which is generic for a kind of reason."""
    if cause.effects:
        return all(of_torch(one) for one in cause.effects if advice(one))
    remedy = advice(cause)
    if cause.ending is not None and cause.ending.frames and is_library(cause.ending.frames[-1]):
        return False
    if cause.kind == NOT_EVALUATED or cause.limit == FAIL_ON_RECOMPILE or not remedy:
        return False
    hints = [cause.recompilation.change.hint] if cause.recompilation and cause.recompilation.change else []
    return remedy in (*hints, reason(cause.ending).hint if cause.ending is not None else "")
