"""What every view of a program shows, in this order: made once, as plain sections."""

from __future__ import annotations

import os
from dataclasses import dataclass

from compile_lens.measures import program as measures
from compile_lens.measures.caches import caches
from compile_lens.measures.compile_time import BUILDING, PARTS, Spent, compile_time
from compile_lens.measures.program import BROKE, EAGER, NEVER, TRACED
from compile_lens.measures.slower import slower
from compile_lens.record.messages import plain_source
from compile_lens.record.program import UNKNOWN, Break, ProgramFrame, ProgramRecord
from compile_lens.views.drawing.icicle import icicle
from compile_lens.views.findings.cuda_graphs import of_program as cuda_graphs
from compile_lens.views.findings.model import NAME, NOTE, NUMBER, TEXT, Finding, Picture, Row, Section, Table
from compile_lens.views.findings.places import size
from compile_lens.views.findings.profile import finding as profile
from compile_lens.views.words import program as words
from compile_lens.views.words.made_at import FIRST_USED, MadeAt
from compile_lens.views.words.made_at import NOTE as OF_TENSORS
from compile_lens.views.words.outcome import reason
from compile_lens.views.words.outline import duration, plural

WHY = "Why is it not faster"


def heading(program: ProgramRecord) -> str:
    """Its name with its arguments."""
    return " ".join((program.name, *program.arguments))


def facts(program: ProgramRecord) -> tuple[str, ...]:
    """Where it ran and how long it was watched."""
    env = program.environment
    watched = (
        f"watched for {duration(program.seconds)}, {duration(program.hooks)} of it taken by the watching"
    )
    told = (
        f"torch {env.torch}" if env.torch else "",
        f"Python {env.python}" if env.python else "",
        env.platform,
        "" if program.rank is None else f"rank {program.rank}",
        f"read from a log ({program.log})" if program.log else watched,
    )
    return tuple(fact for fact in told if fact)


@dataclass(frozen=True)
class Sheet:
    """What a page says: heading, facts, state and verdict, sections, and what a reader should know besides."""

    heading: str
    created: str
    facts: tuple[str, ...]
    ended: str
    state: str
    verdict: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def sheet(program: ProgramRecord) -> Sheet:
    """What the page of a program says."""
    return Sheet(
        heading(program),
        program.created,
        facts(program),
        program.ended,
        words.state(program),
        words.verdict(program),
        outline(program),
        notes(program),
    )


def outline(program: ProgramRecord) -> tuple[Finding, ...]:
    """The sections of a program, without those that have nothing to say."""
    found = (
        _why(program),
        _lines(program),
        _breaks(program),
        _again(program),
        _specialized(program),
        _guards(program),
        _compilations(program),
        cuda_graphs(program),
        _time(program),
        _profile(program),
        _caches(program),
        _elsewhere(program),
    )
    return tuple(one for one in found if one is not None)


def _why(program: ProgramRecord) -> Finding | None:
    causes = slower(program)
    if not causes:
        return None
    rows = []
    known: dict[str, int] = {}  # a loop of breaks says the same hundreds of times
    for number, cause in enumerate(causes, 1):
        advice, link = words.advice(cause), cause.ending.link if cause.ending is not None else ""
        hinted = "torch says" if words.of_torch(cause) else "try"
        said = tuple(
            f"{title}: {text}"
            for title, text in (("because", words.because(cause)), (hinted, advice), ("more", link))
            if text
        )
        text = "\n".join(said)
        first = known.setdefault(text, number)
        again = f"as {first}" if text and first < number else text
        rows.append(Row((str(number), words.head(cause, program), again)))
    table = Table("", ("", "what", "why, and what to try"), (NUMBER, TEXT, NOTE), tuple(rows))
    intro = (
        "What runs without compiled code first; of one kind, what took most compile time or was seen most often. How "
        "long the eager parts take is not measured."
    )
    return Finding("slower", WHY, intro, plural(len(rows), "cause"), (), "program.slower", (table,))


STATE_WORDS = {
    TRACED: "compiled: it is in a graph",
    EAGER: "eager: it was left to Python, which may never have come to it",
    BROKE: "broke: a graph broke on it",
    NEVER: "never: neither traced nor left to Python",
}


_OF_TORCH = ("<eval_with_key>", "<frozen")
"""How the files of code begin that torch, or Python, made."""


def _lines(program: ProgramRecord) -> Finding | None:
    own = {s.file for s in program.sources}
    unfiled = {
        f.file for f in program.frames if f.file.startswith("<") and not f.file.startswith(_OF_TORCH)
    } - own
    rows = []
    for file, found in measures.lines(program).items():
        if file not in own | unfiled:
            continue
        figures = [
            str(sum(state in line.states for line in found)) for state in (TRACED, EAGER, BROKE, NEVER)
        ]
        rows.append(Row((f"{file}, in no file" if file in unfiled else os.path.basename(file), *figures)))
    if not rows:
        return None
    head = ("file", "compiled", "eager", "broke", "never")
    table = Table("", head, (NAME, NUMBER, NUMBER, NUMBER, NUMBER), tuple(rows))
    intro = (
        "Lines of the functions that Dynamo was asked about or traced; one can be both compiled and eager. "
        "Eager are those left to Python, also those that it may never have come to: of a function that is left whole "
        "torch does not say which ran."
    )
    if unfiled:
        intro += (
            " What exec or eval made stands in no file, and has no text here: texts of one name are counted together, "
            "by the number of the line."
        )
    return Finding("lines", "Lines", intro, plural(len(rows), "file"), (), "program.lines", (table,))


def _breaks(program: ProgramRecord) -> Finding | None:
    after = measures.after(program)
    met = {id(b): v.number for v in program.visits for b in v.breaks}
    rows = []
    for found in measures.places(program.breaks).values():
        first = found[0]
        at = measures.at_line(first)
        note = [f"    {at.text.strip()}"] if at is not None and at.text.strip() else []
        note += [first.consequence] if first.consequence else []
        what = f"{first.identity} {reason(first.ending).what}".strip()
        cells = (
            _columns(first),
            str(len(found)),
            what,
            _then(found),
            *_graphs(program, [(b, after.get(met[id(b)], ())) for b in found]),
            "\n".join(note),
        )
        rows.append(Row(cells))
    if not rows:
        return None
    head = ("where", "frames", "what", "then", "graphs", "bytes", "line")
    table = Table("", head, (NAME, NUMBER, TEXT, TEXT, NAME, NAME, NOTE), tuple(rows))
    intro = (
        "Each place in the source once, in how many frames Dynamo met it, the graphs around it, and the bytes of "
        "the tensors that the one returns and the other is given, for the sizes that were seen: each pair of several."
    )
    least = measures.places_at_least(program)
    if least:
        intro += " Without columns, breaks of one line and reason are one place: there may be more."
    fact = f"{len(program.breaks)} in frames, {'at least ' if least else ''}{len(rows)} in the source"
    return Finding("breaks", "Graph breaks", intro, fact, (), "program.breaks", (table,))


def _columns(found: Break) -> str:
    at = measures.at_line(found)
    where = words.place(at)
    if at is None or at.column is None:
        return where
    return f"{where}:{at.column}" + (f"-{at.end_column}" if at.end_column is not None else "")


def _then(found: list[Break]) -> str:
    return " / ".join(dict.fromkeys(b.then for b in found))


def _graphs(program: ProgramRecord, found: list[tuple[Break, tuple[int, ...] | None]]) -> tuple[str, str]:
    """The graphs on both sides of each of several breaks, and the bytes that cross, each different pair once."""
    numbers, crossing = [], []
    for one, after in found:
        given = "none" if one.before is None else size(program.graphs[one.before].gives)
        taken = size(program.graphs[after[0]].takes) if after else "none" if after is not None else size(None)
        before = "none" if one.before is None else str(one.before)
        told = "one of before" if after is None else ", ".join(map(str, after)) or "none"
        numbers.append(f"{before} → {told}")
        crossing.append(f"{given} → {taken}")
    return _each(numbers), _each(crossing)


def _each(found: list[str]) -> str:
    different = list(dict.fromkeys(found))
    more = f"; and {len(different) - 3} more" if len(different) > 3 else ""
    return "; ".join(different[:3]) + more


def _again(program: ProgramRecord) -> Finding | None:
    rows = []
    again = {visit.number for visit in program.recompiles}
    frames = {visit.number: frame for frame in program.frames for visit in frame.visits}
    made_at: dict[int, MadeAt] = {}
    for visit in (v for v in program.visits if v.recompilation is not None):
        found = visit.recompilation
        assert found is not None
        nearest = found.changed
        of = frames[visit.number]
        if (at := made_at.get(id(of))) is None:
            at = made_at[id(of)] = MadeAt(of)
        line = at.of(nearest, visit) if nearest is not None else ""
        tried = words.to_try(found, of.through, of.resumes is not None)
        made = visit.id if visit.number in again else f"none: {visit.limit or visit.outcome}"
        cells = (
            nearest.id if nearest is not None and found.nearest != UNKNOWN else "",
            made,
            words.place(visit.caller) if visit.caller is not None else "",
            words.again(found, visit.number in again),
            line,
            "\n".join(filter(None, (words.also(found), f"try: {tried}" if tried else ""))),
        )
        rows.append(Row(cells))
    if not rows:
        return None
    head = ("old", "new", "call", "what changed", "guard made at", "what to try")
    table = Table("", head, (NAME, NAME, NAME, TEXT, NAME, NOTE), tuple(rows))
    intro = (
        "Each call that fitted none of the forms of a code: the form that it came nearest to, the guard of it that "
        "failed, and the form made; also, why the others did not fit."
    )
    if any(row.cells[4].startswith(FIRST_USED) for row in rows):
        intro += OF_TENSORS
    if program.log:
        intro += (
            " Where nothing was compiled, a log does not hold what the call was given: no form is named then."
        )
    return Finding(
        "recompiles",
        "Recompiles",
        intro,
        plural(len(program.recompiles), "recompile"),
        (),
        "program.recompiles",
        (table,),
    )


def _specialized(program: ProgramRecord) -> Finding | None:
    rows = []
    for visit in program.visits:
        for one in visit.specialized:
            where = words.place(one.line) if one.line is not None else "torch's own"
            text = one.line.text.strip() if one.line is not None else ""
            rows.append(Row((visit.id, one.source, one.symbol, one.value, where, text)))
    if not rows:
        return None
    head = ("id", "what", "symbol", "became", "at", "line")
    table = Table("", head, (NAME, NAME, NAME, NUMBER, NAME, NAME), tuple(rows))
    intro = "Sizes and numbers that were to stay symbols, and the line that made each one value."
    fact = plural(len(rows), "symbol")
    return Finding("specialized", "Made a number", intro, fact, (), "visit.specialized", (table,))


def _guards(program: ProgramRecord) -> Finding | None:
    """The guards that a line of the program made; what torch always checks is counted alone."""
    found: dict[tuple[str, str, str], list[str]] = {}
    others = every = 0
    for frame in program.frames:
        for visit in frame.visits:
            every += len(visit.guards)
            for guard in visit.guards:
                if guard.line is None:
                    others += 1
                    continue
                key = (plain_source(guard.text), words.place(guard.line), guard.line.text.strip())
                found.setdefault(key, []).append(visit.id)
    if not every:
        return None
    rows = tuple(
        Row((where, text, ", ".join(dict.fromkeys(ids)), line)) for (text, where, line), ids in found.items()
    )
    head = ("made at", "checked", "of", "line")
    table = Table("", head, (NAME, TEXT, NAME, NOTE), rows)
    intro = (
        "What is checked before a compilation is used again, by the line of the program that made it. "
        f"{plural(others, 'guard')} more {'is' if others == 1 else 'are'} of no line: torch makes them always."
    )
    fact = f"{every} in all, {plural(len(rows), 'different one')} of a line"
    return Finding("guards", "Guards", intro, fact, (), "visit.guards", (table,))


_BEFORE = {
    (True, False): "compiled",
    (False, True): "left to Python",
    (True, True): "compiled, and then left to Python whole,",
}
"""What became of a code before the watch, by whether it has forms and whether it was left."""


def _compilations(program: ProgramRecord) -> Finding | None:
    rows = []
    for frame in (*program.frames, *program.before):
        name = _place(frame)
        function = f"{frame.function}, from line {frame.resumes}" if frame.resumes else frame.function
        if frame.before or frame.left:
            unseen = "" if frame.resumes or not frame.left else "; its calls by uncompiled code are not seen"
            what = f"{_BEFORE[bool(frame.before), bool(frame.left)]} before the watch{unseen}"
            rows.append(Row((", ".join(frame.before), name, function, what, "", "", "")))
        for visit in frame.visits:
            graphs = [program.graphs[n] for n in visit.graphs]
            operators = "+".join(str(g.operators) for g in graphs)
            often = f", {visit.times} times" if visit.times > 1 else ""
            shown = (visit.id, name, function, words.outcome(visit) + often, visit.backend, operators)
            rows.append(Row((*shown, duration(visit.seconds))))
    if not rows:
        return None
    head = ("id", "where", "function", "outcome", "backend", "operators", "time")
    table = Table("", head, (NAME, NAME, NAME, TEXT, NAME, NUMBER, NUMBER), tuple(rows))
    intro = "Each time that Dynamo was asked about a code, by function, and the time that it took, measured."
    return Finding(
        "compilations",
        "Compilations",
        intro,
        plural(len(program.visits), "visit"),
        (),
        "program.visits",
        (table,),
    )


def _place(frame: ProgramFrame) -> str:
    at = frame.resumes or frame.line
    return f"{os.path.basename(frame.file)}:{at}" if frame.file else ""


def _time(program: ProgramRecord) -> Finding | None:
    totals: dict[str, list[float]] = {}
    for event in program.events:
        if event.duration:
            totals.setdefault(event.name, []).append(event.duration / 1e6)
    if not totals:
        return None
    ranked = sorted(totals.items(), key=lambda one: -sum(one[1]))
    rows = [
        Row((name, str(len(times)), duration(sum(times)), duration(max(times)))) for name, times in ranked
    ]
    parts = Table("", ("part", "times", "sum", "longest"), (NAME, NUMBER, NUMBER, NUMBER), tuple(rows))
    head = ("function", "ids", "in all", "Dynamo", "AOT", "Inductor", "builds", "backend")
    by_function = []
    for spent in compile_time(program):
        times = (duration(spent.seconds[part]) if spent.seconds[part] else "" for part in PARTS)
        name = _whose(spent)
        by_function.append(Row((name, str(len(spent.ids)), duration(spent.total), *times)))
    functions = Table("", head, (NAME, *[NUMBER] * (2 + len(PARTS))), tuple(by_function))
    sections: list[Section] = [functions, parts]
    if svg := icicle(program):
        alt = "the parts of compiling that stand in each other, as wide as each took; the tables say the same"
        sections.insert(0, Picture("", svg, alt))
    intro = (
        "By torch's own events, measured. By function each part of the compiler has its own time (builds: of kernels; "
        "backend: what it does itself); in the second table parts stand in each other, so that the sums overlap."
    )
    fact = f"{duration(measures.compile_seconds(program))} in all"
    return Finding("time", "Compile time", intro, fact, (), "program.events", tuple(sections))


def _whose(spent: Spent) -> str:
    if spent.frame is not None:
        return f"{spent.frame.function} {_place(spent.frame)}"
    beside = not spent.ids and all(part == BUILDING for part, seconds in spent.seconds.items() if seconds)
    return "threads that build, for which a compile waits" if beside else "of no visit"


def _profile(program: ProgramRecord) -> Finding | None:
    return None if program.profile is None else profile(program.profile, "program.record.profile")


def _caches(program: ProgramRecord) -> Finding | None:
    rows = []
    for cache in caches(program):
        figures = (str(cache.hits), str(cache.misses), str(cache.bypassed))
        off = (f"switched off for {plural(cache.disabled, 'graph')}",) if cache.disabled else ()
        rows.append(Row((cache.name, *figures, "; ".join((*off, *cache.why)))))
    if not rows:
        return None
    head = ("cache", "hits", "misses", "passed by", "torch says")
    table = Table("", head, (NAME, NUMBER, NUMBER, NUMBER, TEXT), tuple(rows))
    intro = (
        "How often each of the compiler's caches was asked for a graph: what it had was not compiled again."
    )
    fact = f"{sum(cache.hits for cache in caches(program))} hits, {sum(c.misses for c in caches(program))} misses"
    return Finding("caches", "Caches", intro, fact, (), "program.caches", (table,))


def _elsewhere(program: ProgramRecord) -> Finding | None:
    rows = tuple(Row((found.why, str(found.count))) for found in program.elsewhere)
    if not rows:
        return None
    table = Table("", ("why", "times"), (TEXT, NUMBER), rows)
    intro = (
        "Functions of torch, the standard library and packages without torch that Dynamo was asked about and left to "
        "Python: no defect."
    )
    total = sum(found.count for found in program.elsewhere)
    return Finding("elsewhere", "Elsewhere", intro, plural(total, "time"), (), "program.elsewhere", (table,))


def notes(program: ProgramRecord) -> tuple[str, ...]:
    """What a reader should know, and what could not be seen."""
    lacking = (f"{missing.stage} not seen: {missing.reason}" for missing in program.missing)
    unknown = (f"fields of the record that this version does not know: {f}" for f in program.unknown_fields)
    return (*program.notes, *lacking, *unknown)
