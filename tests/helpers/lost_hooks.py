"""Disables one hook into torch, or makes it fail, and compares every claim with those of the complete capture.

A claim may become unknown. It may never become a different claim.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

import compile_lens
from compile_lens._torch import backend, session  # noqa: F401  # registers every hook
from compile_lens._torch.ground import hook_points, hooks
from compile_lens._torch.inductor import pipeline
from compile_lens._torch.targets import stand_in  # noqa: F401
from compile_lens._torch.watch import observers, program_watch  # noqa: F401
from compile_lens.child import process

LOST, FAILS, FAILS_AFTER = "lost", "fails", "fails after torch's own"
WAYS = (LOST, FAILS, FAILS_AFTER)
"""Ways in which a hook does nothing: torch lacks it; it raises before it calls torch's function; or after that."""

CHILD = "lost_hooks:set_hook"

_find = hook_points.find
_registries = (hooks._registry, hooks._free, observers._registry, observers._late_registry)
_registered = [dict(registry) for registry in _registries]
_factories = set(hooks._factories)


class Ours(Exception):
    """An error of our own inside a hook."""


def set_hook(path: str, way: str) -> None:
    """Disable the hook ``path`` of this process, or make it fail; ``""`` restores all hooks."""
    hook_points.find = _find
    for registry, whole in zip(_registries, _registered, strict=True):
        registry.update(whole)
    if way == LOST:
        hook_points.find = lambda other: None if other == path else _find(other)
    for registry in _registries if way in (FAILS, FAILS_AFTER) else ():
        if path in registry:
            registry[path] = _failing(registry[path], way)


def _failing(wrap: Any, way: str) -> Any:
    def fails(*args: Any, **kwargs: Any) -> Any:
        if way == FAILS_AFTER:
            wrap(*args, **kwargs)
        raise Ours("an attribute is missing")

    # Frames of hooks are in our own files, which contain no lines of the program.
    fails.__code__ = fails.__code__.replace(co_filename=hooks.__file__)
    return observers.hidden_from_dynamo(fails)


@contextlib.contextmanager
def without(path: str, way: str = LOST, child: bool = False) -> Iterator[None]:
    """Make the hook ``path`` do nothing for the duration, here and in the child process."""
    set_hook(path, way)
    try:
        if child:
            process.call(CHILD, path, way)
        yield
    finally:
        set_hook("", "")
        if child:
            process.call(CHILD, "", "")


class Model(torch.nn.Module):
    """Reductions, a product, a random mask and one value that two sums read."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.up, self.down, self.norm = (
                torch.nn.Linear(16, 32),
                torch.nn.Linear(32, 16),
                torch.nn.LayerNorm(16),
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(self.down(F.gelu(self.up(self.norm(x)))), -1)
        z = F.dropout(y, 0.1).sum(0) + x.sin().sum(0)
        return z.cos() * y.sum()


class Layer(torch.nn.Module):
    """Attention and a perceptron, as in a transformer."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            self.qkv, self.out = torch.nn.Linear(64, 192), torch.nn.Linear(64, 64)
            self.norm = torch.nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 4, 16).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + F.gelu(self.out(y.transpose(1, 2).reshape(b, t, c)))


def helper(y: torch.Tensor) -> torch.Tensor:
    torch._dynamo.graph_break()
    return (y * 2).sum()


def breaks(x: torch.Tensor, n: int = 3) -> torch.Tensor:
    """Run four graph breaks: a print, an explicit one, one in a called function, a data-dependent branch."""
    y = x.sin() + 1
    print("hi")
    z = helper(y)
    if z.item() > 0:
        y = y.cos() * n
    return y.exp().sum()


def _numbers(n: int = 64) -> torch.Tensor:
    return torch.linspace(0.1, 1, n, requires_grad=True)


def _quiet(work: Callable[[], Any]) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        return work()


def _watched() -> Any:
    torch._dynamo.reset()
    softmax = torch.compile(lambda x: torch.softmax(x, -1).sin() + 1)
    broken = torch.compile(breaks, backend="aot_eager")
    with compile_lens.watch() as program:
        broken(_numbers())
        broken(_numbers(32))
        broken(_numbers(), 4)
        softmax(torch.ones(4, 8)).sum()
    return program


_MODEL, _LAYER = Model(), Layer()
PROGRAMS: dict[str, Callable[[], Any]] = {
    "forward and backward": lambda: compile_lens.capture(
        _MODEL, torch.linspace(-1, 1, 128).reshape(8, 16).requires_grad_()
    ),
    "breaks": lambda: _quiet(lambda: compile_lens.capture(breaks, _numbers())),
    "watch": lambda: _quiet(_watched),
    "target": lambda: compile_lens.capture(
        _LAYER, torch.linspace(-1, 1, 2048).reshape(2, 16, 64).requires_grad_(), target="h100"
    ),
}


def paths(program: str) -> list[str]:
    """Return every hook point that some fact about a program may depend on."""
    every = observers._claims if program == "watch" else hook_points.RESTS
    return [path for path in every if _find(path) is not None]


def can_fail(path: str) -> bool:
    """Return True if code of ours runs there that can fail. Elsewhere a hook only reads from torch.

    Where a compile ends before its code is built, all of our code guards itself.
    """
    return path != pipeline.MODULE and any(path in registry for registry in _registered)


# Claims of a record.

_VOLATILE = re.compile(
    r"'backend_hash': '[^']*'|# kernel path: \S+|"
    r"\d{4}-\d\d-\d\dT[\d:.+Z]+|\b\d+(\.\d+)?(e-?\d+)? ?(ms|s|µs|us|seconds|%)(?=\W|$)|0x[0-9a-f]+|/tmp/[^\s\"',)]*"
    r"|c[a-z0-9]{40,}|\b[0-9a-f]{16,}\b|__builtins_dict__\w*|AOT ID: \['\d+|___stack\w*"
)
_IGNORED = re.compile(
    r"second|^time|began|^evaluation$|compiled_function|start$|duration|created|share|^notes$|not_observed|^missing$|^numbers?$|^depth$|^detail$|thread"
)


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", _VOLATILE.sub("#", text))


def _data(value: Any) -> Any:
    if isinstance(value, dict):
        plain = {k: _data(v) for k, v in value.items() if not _IGNORED.search(k)}
        return {k: sorted(v) if k == "origins" else v for k, v in plain.items()}  # their order means nothing
    if isinstance(value, list):
        return [_data(v) for v in value]
    return _plain(value) if isinstance(value, str) else value


def _attempt(work: Callable[[], Any]) -> str:
    try:
        return _plain(str(work()))
    except Exception as error:
        return f"{type(error).__name__}: {_plain(str(error))}"


_TOLD = ("note", "notes", "rest")


def _lines(record: Any) -> list[str]:
    """Return the lines of a record's page, without its notes and times."""
    from compile_lens.views.render import text
    from compile_lens.views.subjects import capture as of_capture
    from compile_lens.views.subjects import program as of_program

    subject = of_capture if isinstance(record, compile_lens.Capture) else of_program
    page = dataclasses.replace(subject.document(getattr(record, "record", record)), notes=())
    lines = (_VOLATILE.sub("#", line) for line in text.page(page, width=10_000, ascii=False).splitlines())
    return [line for line in lines if not _TIMED.match(line)]


_TIMED = re.compile(r"\s*time:|\s+\w+\s+\d+\s+#\s+#\s*$")
"""Lines whose presence and position depend on timings."""


class Claims:
    """The claims of one record: its data, its texts, its answers to questions, and the limits that it must respect."""

    def __init__(self, record: Any) -> None:
        self.data = _data(json.loads(record.to_json()))
        plain = getattr(record, "record", record)
        self.admits = bool(getattr(plain, "not_observed", ()) or plain.missing)
        self.texts = _lines(record)
        self.answers: dict[str, str] = {}
        self.holds: dict[str, bool] = {}
        if isinstance(record, compile_lens.Capture):
            self._of_capture(record)

    def _of_capture(self, capture: Any) -> None:
        from compile_lens.views.findings import findings

        self.texts += [_plain(one.text) for one in capture.story().sentences if one.key not in _TOLD]
        self.texts += [_plain(line) for line in str(capture.ledger).splitlines()]
        for one in findings(capture):
            self.texts += [
                _plain(f"{one.key}: {part}") for part in (one.fact, one.missing, *one.brief) if part
            ]
        for compilation in capture.compilations:
            for key, graph in compilation.graphs.items():
                if key.endswith("groups"):
                    names = [node.name for node in graph.calls]
                    for at, name in enumerate(names):
                        for other in names[at + 1 : at + 5]:
                            phase = f"{compilation.id} {key.partition('.')[0]}"
                            self.answers[f"why {phase} {name} {other}"] = _attempt(
                                lambda: capture.why(name, other, phase=phase)  # noqa: B023
                            )
        for name in (
            "graph_breaks",
            "recompiles",
            "launches",
            "groups",
            "extern",
            "bytes",
            "peak",
            "saved",
            "graphs",
        ):
            for number in (0, 1, 2, 3, 10, 10**6):
                for form in ("at_most", "at_least"):
                    self.holds[f"{name}({form}={number})"] = _holds(capture, name, form, number)


def _holds(capture: Any, name: str, form: str, number: int) -> bool:
    try:
        getattr(compile_lens.expect(capture), name)(**{form: number})
    except compile_lens.ExpectationError:
        return False
    return True


_UNKNOWN = re.compile(
    r"not seen|not known|unknown|at least|≥|lacks the hook|as far as|observer|not in the record|missing|nobody knows"
    r"|without a verdict|No verdict|<unknown>|published peaks|—, —"
)
"""Words of a sentence that admits missing knowledge, or concerns the device alone."""

_CLAUSES = re.compile(r"→|←|for the derivative of|·|;|,|\. |: |\(|\)|\+| and |\s{2,}|another time|─+|│")


def other_claims(whole: Claims, lost: Claims) -> list[str]:
    """Return the claims that became different claims instead of unknown."""
    changed = list(_data_changes(whole.data, lost.data, ""))
    changed += [f"holds: {what}" for what, holds in lost.holds.items() if holds and not whole.holds.get(what)]
    known = {clause for line in whole.texts for clause in _clauses(line)}
    known.update(_names(whole.data))  # a truncated list shows different ones
    for line in lost.texts:
        if not _UNKNOWN.search(line):
            changed += [f"text: {line[:160]}" for clause in _clauses(line) if clause not in known][:1]
    for question, answer in lost.answers.items():
        before = whole.answers.get(question)
        if before is not None and not _is_weaker(before, answer) and not _UNKNOWN.search(answer):
            changed += [f"{question}: {before[:160]} => {answer[:160]}"]
    if not lost.admits and (lost.data != whole.data):
        changed.append("nothing is admitted to be unknown")
    return changed


def _is_weaker(before: str, answer: str) -> bool:
    """Return True for an answer that claims no more, with the same limits or higher ones: the bytes of some operands
    are then unknown. A plain name may replace an expression, and a line may replace an expression in it."""
    if "a part of " in answer:  # the suggestion is then looked up in the whole line
        answer = _REMEDY.sub("", answer)
    before, answer = (_EXPRESSION.sub("", _TOUCHED.sub("", text)) for text in (before, answer))
    if set(_MORE.findall(answer)) <= set(
        _MORE.findall(before)
    ):  # no different count; a count of lines is another quantity
        before, answer = (_ANY_MORE.sub("", text) for text in (before, answer))
    known_heads = {head[1] for head in _HEAD.finditer(answer)}
    before = _HEAD.sub(lambda head: head[0] if head[1] in known_heads else "", before)
    before, answer = (_CALLS.sub("", text) for text in (before, answer))
    limits = [[int(n.replace(",", "")) for n in _AT_MOST.findall(text)] for text in (before, answer)]
    parts, known = ({*_PARTS.split(_AT_MOST.sub("", text))} for text in (answer, before))
    shown = all(any(_without_names(part).fullmatch(one) for one in known) for part in parts)
    return shown and all(b <= a for b, a in zip(*limits, strict=False))


_EXPRESSION = re.compile(r"(\d+ calls for (?!the))?(a part of |\d+ parts of )?`[^`]*` (?=\()")
"""Text of a place: an expression, or if that is not known, the line with it."""

_REMEDY = re.compile(r" to try: .*?(?= - |$)")
_CALLS = re.compile(
    r"((, | and | )(\d+ calls for )?(the (backward|recomputation) of )?(\(\S+:\d+\)|op\w+))+"
    r"(?= (are calls|is a call|stands?) )"
)
"""The library calls that an answer is about, by lines or by their own names."""

_TOUCHED = re.compile(r"(?<=both touch ).*?(?=\. |\.?$| - )")
_MORE = re.compile(r"(?<=\)) and \d+ more(?! lines?\b)")
_ANY_MORE = re.compile(r"(?<=\)) and (at least )?\d+ more( lines?\b)?")
_HEAD = re.compile(r" (op\w+): (the (?:backward|recomputation) of )?\([^)]*\)")
"""The place of a group, if known."""

_OWN_NAME = re.compile(r"\bop\d+(_op\d+| \+ op\d+)*\b(: )?( \([\w.]+\))?")
"""The name of a loop or a group, used if no line is known."""


def _without_names(part: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, _OWN_NAME.split(part)[:: _OWN_NAME.groups + 1])))


_AT_MOST = re.compile(r"(?<=at most )[\d,]*\d")

_PARTS = re.compile(r" - | (?=fusing would)| (?=to try: )")
"""Separator between the parts of an answer."""


def _clauses(line: str) -> list[str]:
    parts = (_RANK.sub("", part.strip(" .-│─—")) for part in _CLAUSES.split(line))
    return [part for part in parts if part and not _CUT.fullmatch(part)]


_RANK = re.compile(r"^\d+  ")
"""The number of a cause, whose rank depends on seconds too."""

_CUT = re.compile(r"\d+ (note )?more.*|capture\.ledger\.total\.notes")
"""The end of a truncated list."""


def _names(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(part)


def _by_id(values: list[Any]) -> dict[str, Any]:
    """Return compilations by their ids, without those of another list."""
    return {one["id"]: one for one in values if isinstance(one, dict) and "stages" in one}


def _data_changes(whole: Any, lost: Any, at: str) -> Iterator[str]:
    if lost == 0 and at.endswith(".line"):  # of a function whose code was not observed
        return
    if whole == lost or lost in (None, "", [], {}, "unknown"):
        return
    if isinstance(lost, dict) and (
        lost.get("is") in ("Missing",) or (lost.get("stage") and "reason" in lost)
    ):
        return
    if isinstance(whole, dict) and isinstance(lost, dict):
        moved = whole.get("before") != lost.get("before")  # the stage before it is missing
        for key, value in lost.items():
            if moved and key in ("before", "nodes"):
                continue
            if key in whole:
                yield from _data_changes(whole[key], value, f"{at}.{key}")
            elif not (isinstance(value, str) and (_UNKNOWN.search(value) or key in ("no_origin", "note"))):
                yield f"{at}.{key}: new {str(value)[:80]}"
        return
    if isinstance(whole, list) and isinstance(lost, list) and _by_id(whole) and _by_id(lost):
        for id, value in _by_id(lost).items():
            yield from _data_changes(_by_id(whole).get(id, {}), value, f"{at}.{id}")
        return
    if isinstance(whole, list) and isinstance(lost, list):
        if len(whole) == len(lost):
            for number, (one, two) in enumerate(zip(whole, lost, strict=True)):
                yield from _data_changes(one, two, f"{at}.{number}")
            return
        rest = Counter(json.dumps(one, sort_keys=True) for one in lost)
        rest.subtract(Counter(json.dumps(one, sort_keys=True) for one in whole))
        new = [one for one, count in rest.items() if count > 0]
        if new:
            yield f"{at}: {len(new)} of {len(lost)} are new, {new[0][:100]}"
        return
    if (whole, lost) == ("no graph", "compiled"):  # it was, with or without a graph
        return
    if isinstance(lost, str) and (_UNKNOWN.search(lost) or str(whole).endswith(lost)):
        return  # a path without its first folders, as torch writes it
    yield f"{at}: {str(whole)[:80]} => {str(lost)[:80]}"
