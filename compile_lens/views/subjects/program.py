"""The Document of a watched program: its findings in order."""

from __future__ import annotations

import os

from compile_lens.measures import program as measures
from compile_lens.measures.causes import causes, sharing
from compile_lens.measures.program import BROKE, EAGER, NEVER, TRACED
from compile_lens.record import claims
from compile_lens.record.graph import Frame, Source
from compile_lens.record.messages import in_program_words, plain_source
from compile_lens.record.missing import by_reason
from compile_lens.record.program import PROFILER, UNKNOWN, Break, LibrarySkips, ProgramRecord

from ..document import (
    NAME,
    NOTE,
    NUMBER,
    TEXT,
    Document,
    Finding,
    Listing,
    Listings,
    Row,
    Table,
    table_finding,
)
from ..findings.benchmark import finding as profile
from ..findings.compile_time import caches, compile_time, place_of
from ..findings.cuda_graphs import of_program as cuda_graphs
from ..findings.logged_code import ahead, modules
from ..findings.places import size
from ..findings.remedies import finding as remedies
from ..findings.remedies import runs_by_cause
from ..findings.vllm import vllm
from ..words import program as words
from ..words.outcome import reason
from ..words.quantities import NOT_KNOWN, duration, observed, plural
from ..words.remedies import FIRST_USED, GuardLines, for_each
from ..words.remedies import NOTE as OF_TENSORS
from ..words.sentences import all_notes

WHY = "Why is it not faster"
CAUSES_REST_ON = (
    claims.EVALUATIONS,
    claims.BREAKS,
    claims.RECOMPILES,
    claims.SKIP_REASONS,
    claims.LIMITS,
    claims.RESTS,
    claims.GRAPHS,
    claims.STANCES,
    claims.CHECKPOINTS,
    claims.TIMES,
)
"""Claims without which causes may be missing."""


def heading(program: ProgramRecord) -> str:
    """Return the program's name with its arguments."""
    return " ".join((program.name, *program.arguments))


def facts(program: ProgramRecord) -> tuple[str, ...]:
    """Return versions, platform and the duration of the watch."""
    env = program.environment
    overhead = duration(program.overhead_seconds)
    watched = f"watched for {duration(program.seconds)}, {overhead} of it taken by the watching"
    kind = "trace" if program.log == PROFILER else "log"
    every = (
        f"torch {env.torch}" if env.torch else "",
        f"Python {env.python}" if env.python else "",
        env.platform,
        "" if program.rank is None else f"rank {program.rank}",
        f"read from a {kind} ({program.log})" if program.log else watched,
    )
    return tuple(fact for fact in every if fact)


def document(program: ProgramRecord) -> Document:
    """Return the Document of a program."""
    return Document(
        "program",
        heading(program),
        words.state(program),
        words.verdict(program),
        program.created,
        facts(program),
        (("ended", program.ended),) if program.ended else (),
        findings=findings(program),
        notes=notes(program),
        notes_where="program.notes, program.missing",
    )


def findings(program: ProgramRecord) -> tuple[Finding, ...]:
    """Return the non-empty findings about a program."""
    every = (
        _why(program),
        remedies(program),
        _lines(program),
        _breaks(program),
        _again(program),
        _specialized(program),
        _guards(program),
        _compilations(program),
        ahead(program),
        vllm(program),
        modules(program),
        cuda_graphs(program),
        compile_time(program),
        None if program.profile is None else profile(program.profile, "program.record.profile"),
        caches(program),
        _elsewhere(program),
    )
    return tuple(one for one in every if one is not None)


def _why(program: ProgramRecord) -> Finding | None:
    rows = []
    ran = runs_by_cause(program)
    known: dict[str, int] = {}  # a break in a loop repeats hundreds of times
    for number, cause in enumerate(causes(program), 1):
        unknown = cause.recompilation is not None and program.lacks(claims.SIZES)
        advice, link = (
            "" if unknown else words.advice(cause, program.environment.torch),
            cause.ending.link if cause.ending is not None else "",
        )
        hinted = "torch says" if words.of_torch(cause) else "try"
        lines = tuple(
            f"{title}: {text}"
            for title, text in (
                ("because", words.because(cause)),
                (hinted, advice),
                *(("ran", text) for text in ran.get(number, ())),
                ("more", link),
            )
            if text
        )
        text = "\n".join(lines)
        first = known.setdefault(text, number)
        again = f"as {first}" if text and first < number else text
        rows.append((str(number), words.head(cause), again))
    columns = {"": NUMBER, "what": TEXT, "why, and what to try": NOTE}
    intro = (
        "What one change removes is one cause. First what runs without compiled code, then what is near its limit of "
        "recompiles, then what took most compile time. How long the eager parts take is not measured."
    )
    least = program.lacks(*CAUSES_REST_ON)
    if not rows:
        if program.log == PROFILER:
            return None
        return Finding("slower", WHY, "", where="program.causes", missing=least) if least else None
    fact = f"{'at least ' if least else ''}{plural(len(rows), 'cause')}"
    return table_finding("slower", WHY, intro, fact, "program.causes", columns, rows, beside=True)


LEGEND = (
    (TRACED, "it is in a graph"),
    (EAGER, "it runs eagerly, but may not have been reached"),
    (BROKE, "a graph broke on it"),
    (NEVER, "neither traced nor run eagerly"),
)
"""States of a line, with their meanings."""


_OF_TORCH = ("<eval_with_key>", "<frozen")
"""Prefixes of file names of code generated by torch or Python."""


def _lines(program: ProgramRecord) -> Finding | None:
    own = {s.file for s in program.sources}
    unfiled = {
        f.file for f in program.frames if f.file.startswith("<") and not f.file.startswith(_OF_TORCH)
    } - own
    rows = []
    for file, lines_of in measures.lines(program).items():
        if file not in own | unfiled:
            continue
        figures = [
            str(sum(state in line.states for line in lines_of)) for state in (TRACED, EAGER, BROKE, NEVER)
        ]
        rows.append((f"{file}, in no file" if file in unfiled else os.path.basename(file), *figures))
    columns = {"file": NAME, "compiled": NUMBER, "eager": NUMBER, "broke": NUMBER, "never": NUMBER}
    intro = (
        "Lines of the functions that Dynamo evaluated or traced; one can be both compiled and eager. "
        "Eager lines may not have been reached: for a function that runs eagerly as a whole, torch does not report "
        "which lines ran."
    )
    if unfiled:
        intro += (
            " Code from exec or eval is in no file, and its text is not shown: texts of one name are counted together, "
            "by line number."
        )
    fact, above = plural(len(rows), "file"), (_sources(program),)
    return table_finding("lines", "Lines", intro, fact, "program.lines", columns, rows, above, beside=True)


def _sources(program: ProgramRecord) -> Listings:
    """Return the functions with the state of each line."""
    states = {(file, line.line): line for file, each in measures.lines(program).items() for line in each}

    def marks(source: Source) -> dict[int, tuple[str, str]]:
        known = ((number, states.get((source.file, number))) for number in source.numbers)
        return {number: (", ".join(line.states), line.state) for number, line in known if line is not None}

    listings = tuple(Listing(source, (), marks(source)) for source in program.sources)
    return Listings(listings, LEGEND, "program.record.sources")


def _breaks(program: ProgramRecord) -> Finding | None:
    after = measures.resume_graphs(program)
    met = {id(b): v.number for v in program.evaluations for b in v.breaks}
    rows = []
    for breaks_there in measures.break_sites(program.breaks).values():
        first = breaks_there[0]
        at = measures.break_line(first)
        note = [f"    {at.text.strip()}"] if at is not None and at.text.strip() else []
        note += [first.consequence] if first.consequence else []
        what = f"{first.gb_id} {reason(first.ending).what}".strip()
        then = " / ".join(dict.fromkeys(b.outcome for b in breaks_there))
        graphs = _graphs(program, [(b, after.get(met[id(b)], ())) for b in breaks_there])
        rows.append((_columns(first), str(len(breaks_there)), what, then, *graphs, "\n".join(note)))
    columns = {"where": NAME, "frames": NUMBER, "what": TEXT, "then": TEXT}
    columns |= {"graphs": NAME, "bytes": NAME, "line": NOTE}
    intro = (
        "Each place in the source once, in how many frames Dynamo met it, the graphs around it, and the bytes of "
        "the tensors that the one returns and the other is given, for the sizes that were seen: each pair of several."
    )
    least = measures.sites_are_lower_bound(program)
    if least:
        intro += " Without columns, breaks of one line and reason are one place: there may be more."
    lost = "at least " if program.lacks(claims.BREAKS) else ""
    fact = f"{lost}{len(program.breaks)} in frames, {'at least ' if least or lost else ''}{len(rows)} in the source"
    if elsewhere := measures.library_breaks(program):
        fact += f", {len(elsewhere)} elsewhere"
    return table_finding("breaks", "Graph breaks", intro, fact, "program.breaks", columns, rows)


def _columns(one: Break) -> str:
    at = measures.break_line(one)
    where = words.place(at)
    if at is None or at.column is None:
        return where
    return f"{where}:{at.column}" + (f"-{at.end_column}" if at.end_column is not None else "")


def _graphs(program: ProgramRecord, pairs: list[tuple[Break, tuple[int, ...] | None]]) -> tuple[str, str]:
    """Return the graphs before and after each break, and the bytes passed between them, without duplicates."""
    numbers, crossing = [], []
    for one, after in pairs:
        before = given = numbers_after = taken = "none"
        if one.graph is not None:
            before, given = str(one.graph), size(program.graphs[one.graph].output_bytes)
        if after is None:
            numbers_after, taken = "one of before", size(None)
        elif after:
            numbers_after, taken = ", ".join(map(str, after)), size(program.graphs[after[0]].input_bytes)
        numbers.append(f"{before} → {numbers_after}")
        crossing.append(f"{given} → {taken}")
    return _each(numbers), _each(crossing)


def _each(texts: list[str]) -> str:
    different = list(dict.fromkeys(texts))
    more = f"; and {len(different) - 3} more" if len(different) > 3 else ""
    return "; ".join(different[:3]) + more


def _again(program: ProgramRecord) -> Finding | None:
    rows = []
    compiled = {evaluation.number for evaluation in program.recompiles}
    sizes_lost = program.lacks(claims.SIZES)
    every = [
        (one, frame, lines)
        for frame in program.frames
        for lines in (GuardLines(frame),)
        for one in frame.evaluations
    ]
    for evaluation, frame, lines in sorted(every, key=lambda each: each[0].number):
        recompilation = evaluation.recompilation
        if recompilation is None:
            continue
        nearest = recompilation.change
        tried = ""
        if not sizes_lost:
            each = for_each(program.environment.torch, sharing(frame))
            library = measures.is_library(Frame(frame.file, frame.line, frame.function))
            resumed = frame.resume_line is not None
            tried = words.of_dimensions(
                words.to_try(recompilation, frame.torch_caller, resumed, each, library), [recompilation]
            )
        new = evaluation.number in compiled
        cells = (
            nearest.id if nearest is not None and recompilation.nearest_entry != UNKNOWN else "",
            evaluation.id if new else f"none: {evaluation.limit or evaluation.outcome}",
            words.place(evaluation.caller) if evaluation.caller is not None else "",
            words.again(recompilation, new),
            lines.of(nearest, evaluation) if nearest is not None else "",
            "\n".join(filter(None, (words.also(recompilation), f"try: {tried}" if tried else ""))),
        )
        rows.append(cells)
    columns = {"old": NAME, "new": NAME, "call": NAME}
    columns |= {"what changed": TEXT, "guard made at": NAME, "what to try": NOTE}
    intro = (
        "Each call that fitted none of the variants of a code: the nearest variant, its guard that failed, and the new "
        "variant; also, why the others did not fit."
    )
    if any(line.startswith(FIRST_USED) for *_, line, _ in rows):
        intro += OF_TENSORS
    if program.log:
        intro += " Where nothing was compiled, a log does not hold what the call was given: no variant is named then."
    lost = program.lacks(claims.RECOMPILES)
    fact = observed(len(program.recompiles), "recompile", lost) or "no recompile"
    return table_finding("recompiles", "Recompiles", intro, fact, "program.recompiles", columns, rows)


def _specialized(program: ProgramRecord) -> Finding | None:
    rows = []
    for evaluation in program.evaluations:
        for one in evaluation.specializations:
            where = words.place(one.line) if one.line is not None else "torch's own"
            text = one.line.text.strip() if one.line is not None else ""
            rows.append((evaluation.id, in_program_words(one.source), one.symbol, one.value, where, text))
    columns = {"id": NAME, "what": NAME, "symbol": NAME, "became": NUMBER, "at": NAME, "line": NAME}
    intro = "Sizes and numbers that were to stay symbols, and the line that made each one value."
    fact, where = plural(len(rows), "symbol"), "evaluation.specializations"
    return table_finding("specialized", "Made a number", intro, fact, where, columns, rows)


def _guards(program: ProgramRecord) -> Finding | None:
    """Return the finding of the guards that lines of the program created; torch's other guards are only counted."""
    by_line: dict[tuple[str, str, str], list[str]] = {}
    others = every = 0
    for frame in program.frames:
        for evaluation in frame.evaluations:
            own = len(evaluation.guards) if evaluation.guard_count is None else evaluation.guard_count
            every += own
            others += own - sum(guard.line is not None for guard in evaluation.guards)
            for guard in evaluation.guards:
                if guard.line is None:
                    continue
                key = (
                    in_program_words(plain_source(guard.text)),
                    words.place(guard.line),
                    guard.line.text.strip(),
                )
                by_line.setdefault(key, []).append(evaluation.id)
    if not every:
        return None
    rows = tuple(
        Row((where, text, ", ".join(dict.fromkeys(ids)), line))
        for (text, where, line), ids in by_line.items()
    )
    table = Table("", ("made at", "checked", "of", "line"), (NAME, TEXT, NAME, NOTE), rows)
    intro = (
        "What is checked before a compilation is used again, by the line of the program that made it. "
        f"{plural(others, 'guard')} more {'is' if others == 1 else 'are'} of no line: torch makes them always."
    )
    fact = f"{every} in all, {plural(len(rows), 'different one')} of a line"
    return Finding("guards", "Guards", intro, fact, (), "evaluation.guards", (table,), few=8)


_BEFORE = {
    (True, False): "compiled",
    (False, True): "skipped",
    (True, True): "compiled, and then skipped as a whole,",
}
"""State of a code object before the watch, by (has variants, was skipped)."""


def _compilations(program: ProgramRecord) -> Finding | None:
    rows = []
    for frame in (*program.frames, *program.prior_frames):
        name = place_of(frame)
        function = f"{frame.function}, from line {frame.resume_line}" if frame.resume_line else frame.function
        if frame.prior_ids or frame.eager_lines:
            unseen = (
                ""
                if frame.resume_line or not frame.eager_lines
                else "; its calls by uncompiled code are not seen"
            )
            what = f"{_BEFORE[bool(frame.prior_ids), bool(frame.eager_lines)]} before the watch{unseen}"
            rows.append((", ".join(frame.prior_ids), name, function, what, "", "", ""))
        for evaluation in frame.evaluations:
            graphs = [program.graphs[n] for n in evaluation.graphs]
            operators = "+".join(NOT_KNOWN if g.operators is None else str(g.operators) for g in graphs)
            often = f", {evaluation.count} times" if evaluation.count > 1 else ""
            what, time = words.outcome(evaluation) + often, duration(evaluation.seconds) or NOT_KNOWN
            rows.append((evaluation.id, name, function, what, evaluation.backend, operators, time))
    columns = {"id": NAME, "where": NAME, "function": NAME, "outcome": TEXT, "backend": NAME}
    columns |= {"operators": NUMBER, "time": NUMBER}
    intro = "Each frame evaluation by Dynamo, by function, and the time that it took, measured."
    fact, where = plural(len(program.evaluations), "frame evaluation"), "program.evaluations"
    return table_finding("compilations", "Compilations", intro, fact, where, columns, rows, few=24)


def _elsewhere(program: ProgramRecord) -> Finding | None:
    rows = [
        (skip.reason, str(skip.count), "\n".join(_elsewhere_breaks(skip))) for skip in program.library_skips
    ]
    intro = (
        "Functions of torch, the standard library and packages without torch that Dynamo evaluated and skipped: no "
        "defect. Their graph breaks are in the number of the headline."
    )
    total, where = plural(sum(skip.count for skip in program.library_skips), "time"), "program.library_skips"
    return table_finding(
        "elsewhere",
        "Elsewhere",
        intro,
        total,
        where,
        {"why": TEXT, "times": NUMBER, "graph breaks": NOTE},
        rows,
        few=4,
    )


def _elsewhere_breaks(skip: LibrarySkips) -> list[str]:
    """Return the graph breaks of one kind of skips, each place and reason once."""
    return [
        f"{_columns(there[0])}: {there[0].gb_id} {reason(there[0].ending).what}, {plural(len(there), 'time')}"
        for there in measures.break_sites(skip.breaks).values()
    ]


def notes(program: ProgramRecord) -> tuple[str, ...]:
    """Return the notes of a program, including those on what was not observed."""
    lacking = (
        f"{', '.join(stages)} not seen: {reason}" for reason, stages in by_reason(program.missing).items()
    )
    return all_notes((*program.notes, *lacking), program.unknown_fields)
