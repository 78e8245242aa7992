"""Answers of the tools, each a ``Brief``: for a record, for a question about it, and for a job without a result."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from ...measures.cost import NO_SUBMODULE, Cost, CostRow
from ...measures.cost import cost as cost_of
from ...measures.fusion_answer import IN_FACTS
from ...measures.memory_use import COPY, GRADIENT, PART, UNKNOWN, MemoryRow, memory_use
from ...measures.unfused_pairs import UnfusedPair, all_unfused_pairs
from ...measures.user_words import MORE
from ...record import claims
from ...record.capture import Record
from ...record.figures import MEASURED, MODELLED, Figure
from ...record.messages import first_names
from ...results.comparison import Difference
from ...views.brief import Brief, Question, quoted
from ...views.findings.cost import price, row_name, share, whole
from ...views.summaries.capture_summary import COST_CALL, MEMORY_CALL, chosen
from ...views.summaries.short_text import brief
from ...views.summaries.summary import Summary, sentence
from ...views.words.characters import capitalized
from ...views.words.labels import place
from ...views.words.quantities import amount as moved
from ...views.words.quantities import launch_words, memory_in_short, plural
from .chain_answer import MAX_NAMES
from .chain_answer import chain as chain
from .job import OUTPUT, TIME, Limits, Outcome

MAX_ROWS = 20
"""Maximum rows of a ranked list in an answer."""

MAX_CALL = 400
"""Maximum characters of the arguments in a proposed call."""

MAX_DECISIONS = 12
"""Maximum scheduler decisions in an answer."""

NOT_TIMED = "That fewer launches or bytes are faster: no time was measured."
KEEP_COMPILING = "That compiling is to blame or should be disabled: nothing here says so."


def of_summary(summary: Summary, name: str, questions: Sequence[Question]) -> Brief:
    """Return the short text of a record as an answer, with tool calls in place of Python calls."""
    calls = {
        COST_CALL: f"cost(record={name!r}, by='line')",
        MEMORY_CALL: f"memory(record={name!r})",
    }
    whole = brief(summary, calls)
    return replace(whole, title=f"{name} · {whole.title}", ask_next=tuple(questions))


def of_failed_job(outcome: Outcome, what: str, limits: Limits, plain: str) -> Brief:
    """Return the answer for a job that ended without a result: how it ended, and its last output. ``plain`` is the
    command that makes the same call without compile_lens."""
    question = Question("does it also end like this without compile_lens?", plain)
    after = f"after {outcome.seconds:.0f} s"
    if outcome.limit == TIME:
        end = f"did not end within {limits.seconds:g} s, and was ended"
        question = Question("what now?", "smaller inputs, or a longer time: compile-lens mcp --seconds")
    elif outcome.limit == OUTPUT:
        end = f"printed more than {limits.output >> 20} MiB, and was ended"
        question = Question("what now?", "take out what prints in a loop")
    elif outcome.code is not None and outcome.code < 0:
        end = f"ended by signal {-outcome.code} {after}"
    else:
        end = f"ended with exit code {outcome.code} {after}"
    evidence = [
        f"last line of {stream}: {quoted(line, 400)}"
        for stream, text in (("standard error", outcome.stderr), ("standard output", outcome.stdout))
        for line in text.strip().splitlines()[-3:]
    ]
    return Brief(
        f"compile_lens · {what}: no result",
        (f"{what} {end}. There is no record of it.",),
        tuple(evidence),
        ("That the compiler is at fault: the process ended before it wrote a record.", KEEP_COMPILING),
        (question,),
    )


def plain_call(function: str, inputs: Sequence[str], kwargs: Mapping[str, str]) -> str:
    """Return the shell command that calls ``file.py:function`` or ``module:function`` without compile_lens."""
    path, of_file, expr = function.partition(".py:")
    file = PurePath(f"{path}.py")
    if of_file:
        load = f"sys.path.insert(0, {str(file.parent)!r}); globals().update(runpy.run_path({str(file)!r}))"
    else:
        module, _, expr = function.partition(":")
        load = f"globals().update(runpy.run_module({module!r}))"
    arguments = ", ".join((*inputs, *(f"{key}={text}" for key, text in kwargs.items())))
    return shlex.join(["python", "-c", f"import runpy, sys, torch; {load}; ({expr})({arguments})"])


def of_error(message: str, what: str) -> Brief:
    """Return the answer for an invalid call."""
    return Brief(f"compile_lens · {what}: the call cannot be answered", (message,))


def why(record: Any, name: str, a: Any, b: Any, phase: str) -> Brief:
    """Return the answer why two parts of a capture are, or are not, in one kernel."""
    answer = record.why(a, b, phase)
    reason = capitalized(answer.answer) if answer.answer.startswith("the ") else answer.answer
    facts = [f"{answer.a} and {answer.b}: {answer.verdict}. {reason}"]
    if answer.saved is not None:
        facts.append(f"Fusing would save at most {answer.saved:,} bytes (modelled).")
    elif answer.saved_note:
        facts.append(f"What fusing would save is unknown: {answer.saved_note}.")
    if answer.remedy:
        facts.append(f"To try: {sentence(answer.remedy)} It was not tried here.")
    evidence = [
        *answer.facts,
        *(f"Inductor: {one}" for one in map(str, answer.decisions[IN_FACTS:MAX_DECISIONS])),
    ]
    return Brief(
        f"compile_lens · {name} · {answer.a} and {answer.b}: {answer.verdict}",
        tuple(facts),
        tuple(evidence),
        (NOT_TIMED,),
        (Question("which lines?", f"chain(record={name!r}, address={str(a)!r})"),),
    )


def not_fused(record: Record, name: str, offset: int) -> Brief:
    """Return the pairs that Inductor did not fuse, from row ``offset`` on, most bytes saved first."""
    pairs = sorted(all_unfused_pairs(record), key=lambda pair: -(pair.why.saved or 0))
    alike: dict[tuple[object, ...], list[UnfusedPair]] = {}
    for pair in pairs:
        why = pair.why
        words = (MORE.sub("", side) for side in why.words)
        key = (pair.compilation, pair.phase, bool(pair.kernel), *words, why.answer, pair.remedy)
        alike.setdefault(key if all(why.words) else (pair,), []).append(pair)
    rows = [_pairs(of) for of in alike.values()]
    shown, left = _page(rows, offset, f"why(record={name!r}")
    facts = [f"Pairs of groups that share data and are not fused: {len(pairs):,}."]
    facts += _of_a_part(record)
    if len(rows) < len(pairs):
        facts.append(f"Pairs with the same words and reason are one entry: {len(rows):,}.")
    if within := sum(bool(pair.kernel) for pair in pairs):
        facts.append(
            f"Within one kernel, each with a loop of its own: {within:,}. Fusing these saves bytes and no launch."
        )
    if not any(f"{phase}.groups" in c.graphs for c in record.compilations for phase in c.phases):
        facts = ["Fused groups were not seen, so pairs are not known."]
    if lacking := record.lacks(claims.DECISIONS):
        facts.append(f"Why they were not fused was not seen: {lacking}.")
    return Brief(
        f"compile_lens · {name} · pairs that share data and are not fused",
        tuple(facts),
        shown,
        (NOT_TIMED,),
        (
            Question(
                "why these two?",
                f"why(record={name!r}, a={pairs[0].first!r}, b={pairs[0].second!r}, "
                f"phase='{pairs[0].compilation} {pairs[0].phase}')",
            ),
        )
        if pairs
        else (),
        left,
    )


def _pairs(pairs: Sequence[UnfusedPair]) -> str:
    """Return pairs of the same words and reason: the one that saves most, and the names of the groups of each."""
    first, why = pairs[0], pairs[0].why
    saved = "" if why.saved is None else f" Fusing would save at most {why.saved:,} bytes (modelled)"
    saved += " of the first." if saved and len(pairs) > 1 else "." if saved else ""
    remedy = f" To try: {sentence(first.remedy)}" if first.remedy else ""
    within = ", in one kernel" if first.kernel else ""
    words = f"{why.words[0] or first.first} and {why.words[1] or first.second}"
    if why.common:
        words = why.pair.rpartition(f", {why.a} and ")[0]
    names = "; ".join(f"{one.first} and {one.second}" for one in pairs[:MAX_NAMES])
    names += f"; and {len(pairs) - MAX_NAMES} more pairs" if len(pairs) > MAX_NAMES else ""
    return (
        f"{first.compilation} {first.phase}{within}: {names}\n{words}: {sentence(why.answer)}{saved}{remedy}"
    )


def cost(record: Record, name: str, by: str, offset: int) -> Brief:
    """Return the cost of one call by line, kernel or module, highest first."""
    ranked = cost_of(record, by)
    if not ranked.rows:
        reason = "; ".join(ranked.missing) or "no kernel was generated"
        return Brief(f"compile_lens · {name} · cost by {by}", (f"No cost is known: {sentence(reason)}",))
    total = whole(ranked)
    facts = [f"One call costs {total}: {ranked.origin}.", *_of_a_part(record)]
    facts += [f"not known: {reason}" for reason in ranked.missing]
    facts += [
        f"{len(one.paths)} × {one.pattern} ({one.type or 'class not known'}): {share(one)} together"
        for one in ranked.modules
    ]
    rows = [_cost_row(ranked, row) for row in ranked.rows]
    shown, left = _page(rows, offset, f"cost(record={name!r}, by={by!r}")
    return Brief(
        f"compile_lens · {name} · cost by {by}",
        tuple(facts),
        shown,
        () if ranked.evidence == MEASURED else (NOT_TIMED,),
        (
            *kernels_of_first_row(record, name, by, "which kernels is it?"),
            Question("why not fewer kernels?", f"why(record={name!r})"),
        ),
        left,
    )


def _of_a_part(record: Record, name: str = "") -> tuple[str, ...]:
    """Return the fact that the figures of a failed capture (of a ``name`` among several) are those of the graphs before
    the failure."""
    if record.failure is None:
        return ()
    failed = f"The capture {name!r}" if name else "The capture"
    stage = record.failure.stage
    return (f"{failed} failed in stage {stage}: its figures are of the graphs compiled before it alone.",)


def kernels_of_first_row(record: Record, name: str, by: str, text: str) -> tuple[Question, ...]:
    """Return the question for the kernels of the row that costs most; none if no row has an address."""
    address = next((str(row.address) for row in cost_of(record, by).rows if row.address), "")
    return (Question(text, f"chain(record={name!r}, address={address!r})"),) if address else ()


def _cost_row(ranked: Cost, row: CostRow) -> str:
    head = f"{share(row)}  {price(ranked, row)}  {row_name(ranked, row)}"
    code = f": {quoted(row.expression)}" if row.expression and ranked.by != "module" else ""
    kernels = f": {first_names(row.kernels, 3)}" if row.kernels != (row.name,) else ""
    note = f"; {row.note}" if row.note and row.note != NO_SUBMODULE else ""
    bound = f", {row.bound}-bound" if row.bound else ""
    launches = f"{launch_words(row.launches)}{chosen(row)} in {', '.join(row.phases)}"
    return f"{head}{code}\n{launches}{bound}{kernels}{note}"


def _page(rows: Sequence[str], offset: int, call: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the rows of an answer from ``offset`` on, and a note on the remaining rows with the call that returns
    them."""
    shown = tuple(rows[offset : offset + MAX_ROWS])
    end = offset + len(shown)
    return shown, (f"{len(rows) - end} of {len(rows)} rows: {call}, offset={end})",) if end < len(
        rows
    ) else ()


CALL = "function=…, inputs=…"
"""Arguments of a proposed call that are those of the record's own capture, which an answer does not know."""

LESS_MEMORY = f"what_if({CALL}, switches=['activation_memory_budget'])"


def with_call(brief: Brief, function: str, inputs: Sequence[str], kwargs: Mapping[str, str]) -> Brief:
    """Return an answer whose proposed calls have the arguments of the record's capture; very long ones are omitted."""
    words = f"function={function!r}, inputs={list(inputs)!r}"
    words += f", kwargs={dict(kwargs)!r}" if kwargs else ""
    if len(words) > MAX_CALL:
        return brief
    return replace(
        brief, ask_next=tuple(replace(q, call=q.call.replace(CALL, words)) for q in brief.ask_next)
    )


def memory(record: Record, name: str) -> Brief:
    """Return the peaks of memory of the generated code, and what is saved for the backward."""
    from ...views.findings.memory import memory as finding

    result = finding(record)
    if result is None or result.missing:
        missing = "no code was generated" if result is None else result.missing
        return Brief(f"compile_lens · {name} · memory", (f"Memory is not known: {missing}.",))
    use = memory_use(record, "name")
    rows = sorted(use.rows, key=lambda row: -max(row.peak or 0, row.saved or 0))
    modelled = "" if use.peak is None else ", modelled"
    allocated = []
    if use.allocated is not None:
        allocated.append(f"allocated in one call, without inputs: {memory_in_short(use.allocated)}, modelled")
    evidence = [_memory_row(row) for row in rows if row.peak or row.saved or row.saved is None]
    return Brief(
        f"compile_lens · {name} · memory",
        (f"{result.fact}{modelled}", *_of_a_part(record), *allocated, *result.brief),
        tuple(evidence),
        ("That the process needs no more: the allocator, libraries and other graphs are not counted.",),
        (Question("less memory?", LESS_MEMORY),) if use.saved else (),
    )


def _memory_row(row: MemoryRow) -> str:
    """Return the modelled memory of one program line or parameter: at the peak, and saved for the backward."""
    amounts = [f"{memory_in_short(row.peak)} at the peak"] if row.peak else []
    if row.saved is None:
        amounts.append("saved for the backward, size not known")
    elif row.saved:
        amounts.append(f"{memory_in_short(row.saved)} saved for the backward")
    line = f" ({place(row.line)})" if row.line is not None else ""
    line += f", {row.tensor}" if row.tensor and row.tensors == 1 else ""
    if row.tensors > 1:
        line += f", {row.tensors} × {row.tensor}" if row.tensor else f", {row.tensors} tensors"
    kind = _KINDS.get(row.kind, row.kind)
    if row.kind == GRADIENT:
        kind = "intermediate of the" if row.line is not None else "the"
    return f"{kind} {quoted(row.name, 200)}{line}: {', '.join(amounts)}"


_KINDS = {
    COPY: "copy of",
    PART: "intermediate of",
    UNKNOWN: "buffer of the generated code, for an operation that Inductor did not record:",
}
"""Words for a ``MemoryRow.kind`` before the name."""


def difference(diff: Difference, before: str, after: str) -> Brief:
    """Return the changes between two captures, the cause first."""
    from ...record.difference import LEVELS
    from ...views.subjects.diff import figure, sentence

    failed = [fact for name, one in zip((before, after), diff.captures) for fact in _of_a_part(one, name)]
    facts = [*failed, *diff.summary.splitlines()]
    evidence = [
        f"{LEVELS[change.level]}: {sentence(change)}" + "".join(f"\n{fact}" for fact in change.facts[:3])
        for change in diff.changes
        if change.level not in ("code", "guards", "figures")
    ]
    left = [f"not compared: {text}" for text in diff.unknown]
    figures = [figure(change) for change in diff.at("figures")]
    return Brief(
        f"compile_lens · what changed from {before} to {after}",
        (*facts, *(f"figure: {text}" for text in figures if not any(text in fact for fact in facts))),
        tuple(evidence),
        (NOT_TIMED, "That the results are the same: values were not compared."),
        (Question("same values?", f"divergence({CALL})"),),
        tuple(left),
    )


def divergence(data: dict[str, Any], name: str) -> Brief:
    """Return the comparison of compiled with eager values, from its plain data."""
    cause, switch = data["cause"], data["switch"]
    verdict = {
        True: "Both are equally good: compiled and eager values differ by rounding at most.",
        False: "The compiled values are not as good as eager's.",
        None: f"No verdict: {data['verdict']}.",
    }[data["agrees"]]
    remarks = (sentence(capitalized(one)) for one in data["remarks"])
    facts = [verdict, f"Compared: {data['compared'] or 'nothing'}.", *remarks]
    if data["difference"] is not None:
        facts.append(f"The largest difference from eager is {data['difference']}.")
    if cause is not None:
        facts.append(f"Cause: {cause['kind']}. {cause['sentence']}")
        one = cause["transformation"]
        if one is not None:
            operators = ", ".join(one["operators"]) or "not known"
            facts.append(f"{one['kind']} {one['name']}; operators: {operators}")
    facts += [sentence(capitalized(data["doubt"]))] if data["doubt"] else []
    if switch is not None:
        facts.append(f"With {switch['name']} it agrees: {quoted(switch['to_apply'] or switch['name'], 300)}")
    evidence = []
    if cause is not None and cause["transformation"] is not None:
        frames = cause["transformation"]["frames"]
        evidence += [
            f"{f['file']}:{f['line']} in {f['function']}: {quoted(f['call'] or f['text'])}" for f in frames
        ]
        evidence += [f"{key}:\n{cause[key]}" for key in ("before", "after", "where") if cause[key]]
        evidence += [f"kernel {kernel}" for kernel in cause["kernels"]]
    evidence += [
        f"tried {one['name']}: {one['verdict']}, largest difference {one['difference']}"
        for one in data["attempts"]
    ]
    notes = (
        () if data["agrees"] is not True else ("That compiling makes the numbers wrong: both are as good.",)
    )
    return Brief(f"compile_lens · {name} · compiled against eager", tuple(facts), tuple(evidence), notes)


def what_if(data: dict[str, Any], name: str) -> Brief:
    """Return the effect of each setting that was tried, from its plain data."""
    helpful = [trial for trial in data["trials"] if trial["name"] in data["helpful"]]
    lower = "lowers" if len(helpful) == 1 else "lower"
    facts = [f"{plural(len(data['trials']), 'setting')} tried; {len(helpful)} {lower} a figure."]
    facts += [f"{_trial(trial)}; to apply: {quoted(trial['to_apply'], 300)}" for trial in helpful]
    others = [trial for trial in data["trials"] if trial not in helpful]
    evidence = [_trial(trial) for trial in others if trial["figures"] or trial["failure"]]
    if idle := [trial["name"] for trial in others if not (trial["figures"] or trial["failure"])]:
        evidence.append(f"no figure changes with {', '.join(idle)}")
    reasons: dict[str, list[str]] = {}
    for setting, reason in data["not_tried"]:
        reasons.setdefault(reason, []).append(setting)
    left = [f"{plural(len(data['not_tried']), 'setting')} not tried, each with its reason:"]
    left += [f"{', '.join(of)}: {reason}" for reason, of in reasons.items()]
    return Brief(
        f"compile_lens · {name} · settings tried, each in a compile of its own",
        tuple(facts),
        tuple(evidence),
        (NOT_TIMED, "That a setting which was not tried would help or not."),
        (),
        ("\n".join(left),) if reasons else (),
    )


def _trial(trial: dict[str, Any]) -> str:
    if trial["failure"]:
        return f"{trial['name']}: failed: {trial['failure']}"
    figures = []
    for key, pair in trial["figures"].items():
        before, after = (_figure(key, one) for one in pair)
        if before == after:  # a change below their last digit
            before, after = (f"{one:,}" for one in pair)
        figures.append(f"{key} {before} → {after}")
    return f"{trial['name']}: {', '.join(figures) or 'no figure changes'}"


def _figure(name: str, value: float | None) -> str:
    """Return a figure of ``record.what_if.FIGURES`` with its unit."""
    if value is None:
        return "not known"
    if name in ("peak", "saved"):
        return f"~{memory_in_short(int(value))}"
    if name == "bytes":
        return moved(Figure(int(value), MODELLED))
    return f"{value:.3g}" if isinstance(value, float) else f"{value:,}"
