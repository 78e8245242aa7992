"""Almost valid records, each a real one with a change chosen by a seed, and everything that opens them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import samples
import samples_findings
import samples_machine
from full_text import full

from compile_lens import diff
from compile_lens.errors import LensError
from compile_lens.results.capture import Capture

RECORDS: dict[str, Callable[[], Capture]] = {
    "sample": samples.sample,
    "missing": samples.missing,
    "graph break": samples.graph_break,
    "skipped": samples.skipped,
    "failed": samples.failed,
    "nothing": samples.nothing,
    "findings": samples_findings.told,
    "h100": samples_machine.h100,
    "cpu": samples_machine.cpu,
    "template": samples_machine.template,
}

ODD: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**63,
    -(10**40),
    10**4000,
    0.5,
    -0.0,
    1e308,
    "",
    " ",
    "s0",
    "s0*s1 + -3",
    "\u202eevil\u2066",
    "\ud800",
    "\x00\x1b[31m\r\n",
    "<script>alert(1)</script>",
    "]]>&amp;\"'",
    "x" * 5000,
    "../../etc/passwd",
    "forward",
    "0/0",
    "buf0",
    [],
    [[]],
    {},
    [None],
    ["a", "a"],
    {"is": "Ref", "name": "nowhere"},
    {"is": "Literal", "text": "\u202e"},
    {"is": "Graph"},
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Return every container of a JSON value with each of its keys."""
    pending = [value]
    while pending:
        at = pending.pop()
        items = at.items() if isinstance(at, dict) else enumerate(at) if isinstance(at, list) else ()
        for key, item in items:
            yield at, key
            pending.append(item)


def mutated(raw: dict[str, Any], seed: int) -> str:
    """Return the JSON text of a record with one to four changes."""
    luck = random.Random(seed)
    copy = json.loads(json.dumps(raw))
    for _ in range(luck.choice((1, 1, 1, 2, 4))):
        _change(copy, luck)
    return json.dumps(copy)


def _change(raw: dict[str, Any], luck: random.Random) -> None:
    spots = list(places(raw))
    at, key = luck.choice(spots)
    how = luck.randrange(9)
    if how == 0:
        del at[key]
    elif how <= 2:
        at[key] = luck.choice(ODD)
    elif how == 3:  # a value from another place, of the same type if there is one
        same = [a[k] for a, k in spots if type(a[k]) is type(at[key])]
        at[key] = json.loads(json.dumps(luck.choice(same)))
    elif how == 4 and isinstance(at[key], list):
        luck.shuffle(at[key])
    elif how == 5 and isinstance(at[key], list):
        at[key] = at[key] * luck.choice((2, 3))
    elif how == 6 and isinstance(at[key], int) and not isinstance(at[key], bool):
        at[key] = luck.choice((-at[key], at[key] + 1, at[key] * 10**30, 0, 10**4000))
    elif how == 7 and isinstance(at[key], str):
        at[key] = luck.choice((at[key][::-1], at[key] + luck.choice("\u202e\ud800\x00\u2028"), at[key][:1]))
    elif isinstance(at[key], list) and at[key]:
        at[key] = at[key][: luck.randrange(len(at[key]))]
    elif isinstance(at[key], str):
        names = [a[k] for a, k in spots if isinstance(a[k], str)]
        at[key] = luck.choice(names)


def views(capture: Capture, drawn: bool = True) -> dict[str, Callable[[], Any]]:
    """Return every view and measure of a record; without ``drawn``, no drawings: placing their boxes takes longest."""
    from compile_lens.views.live import page as html
    from compile_lens.views.render import markdown, text
    from compile_lens.views.subjects.capture import document

    makers: dict[str, Callable[[], Any]] = {
        "line": lambda: repr(capture),
        "text": lambda: text.page(document(capture)),
        "narrow text": lambda: text.page(document(capture), width=40, ascii=True),
        "markdown": lambda: markdown.page(document(capture)),
        "html": lambda: html.page(capture),
        "notebook": lambda: capture._repr_mimebundle_(),
        "json": lambda: Capture.from_json(capture.to_json()),
        "ledger": lambda: (capture.ledger.total, str(capture.ledger)),
        "chain": lambda: _walked(capture),
        "coverage": lambda: str(capture.coverage()),
        "cost": lambda: [str(capture.cost(by)) for by in ("line", "kernel", "module")],
        "memory": lambda: [str(capture.memory(by)) for by in ("line", "name")],
        "traffic": lambda: str(capture.traffic()),
        "roofline": lambda: str(capture.roofline()),
        "missing": lambda: (
            capture.missing,
            capture.breaks,
            capture.guards,
            capture.recompiles,
            capture.code,
        ),
        "why": lambda: [_why(capture, d) for d in capture.decisions[:5]],
        "comparison": lambda: _compared(capture),
        "difference": lambda: _differs(capture),
    }
    for compilation in capture.compilations:
        for key, graph in compilation.graphs.items():
            at = f"{compilation.id} {key}"
            makers[f"svg of {at}"] = graph.to_svg
            makers[f"dot of {at}"] = lambda g=graph: g.to_dot().source
            makers[f"pydot of {at}"] = lambda g=graph: g.to_pydot().to_string()
            makers[f"text of {at}"] = graph.readable
    hold = () if drawn else ("svg", "html", "notebook", "comparison", "pydot")
    return {name: view for name, view in makers.items() if not name.startswith(hold)}


def _differs(capture: Capture) -> None:
    """Compare the capture with an intact one, in both orders and in every format."""
    for one, two in ((capture, samples.sample()), (samples.sample(), capture)):
        result = diff(one, two)
        full(result), result.to_markdown(), result.to_json(), result._repr_mimebundle_()


def _walked(capture: Capture) -> None:
    chain = capture.chain
    for kernel in capture.kernels:
        chain.lines(kernel)
    for address in chain.addresses()[:40]:
        chain.ancestors(address), chain.descendants(address), chain.why_not(address), chain.end(address)
        chain.lines(address), chain.derivatives(address)
    for source in capture.sources:
        chain.kernels(source.file, source.first_line)


def _why(capture: Capture, decision: Any) -> str:
    one, two = (names[0] if names else "" for names in (decision.a, decision.b))
    return str(capture.why(one, two))


def _compared(capture: Capture) -> Any:

    from compile_lens.results.comparison import Comparison
    from compile_lens.views.live.compare import page
    from compile_lens.views.render import markdown
    from compile_lens.views.subjects.compare import document

    result = Comparison.of(capture, samples.sample())
    return str(result), markdown.page(document(result)), page(result), result.to_json()


def asked_once(
    run: Callable[[Sequence[str], float], list[Any]],
) -> Callable[[Sequence[str], float], list[Any]]:
    """Return ``engine.run`` that calls Graphviz once per distinct graph: a changed record leaves most graphs as is."""
    answers: dict[str, Any] = {}

    def asked(dots: Sequence[str], timeout: float) -> list[Any]:
        new = list(dict.fromkeys(dot for dot in dots if dot not in answers))
        if new:
            answers.update(zip(new, run(new, timeout), strict=True))
        return [answers[dot] for dot in dots]

    return asked


def bare(text: str, drawn: bool = True) -> dict[str, Exception]:
    """Return the views of a record that end in an error which is not ours; empty if it is refused or shown.

    ``drawn`` is as ``views`` takes it; with it, ``asked_once`` makes many records fast.
    """
    errors: dict[str, Exception] = {}
    try:
        makers = views(Capture.from_json(text), drawn)
    except LensError:
        return errors
    for name, view in makers.items():
        try:
            view()
        except LensError:
            pass
        except Exception as error:  # the error that a test looks for
            errors[name] = error
    return errors
