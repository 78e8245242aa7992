"""Write the JSON Schema of what ``--json`` prints: ``python docs/make_schema.py``.

Records are described by their classes: fields by their types, texts by their docstrings. What the commands compose for
themselves is described here. A test holds the file to this program, and what the commands print to the file.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from typing_extensions import NotRequired, TypedDict, is_typeddict

from compile_lens.measures.program import Counts
from compile_lens.record.benchmark import Profile
from compile_lens.record.breaks import Recompile, Skip
from compile_lens.record.capture import Environment
from compile_lens.record.collectives import IssuedCollectives
from compile_lens.record.comparison import Row, TargetDifference
from compile_lens.record.device import DeviceQuery
from compile_lens.record.difference import Change
from compile_lens.record.divergence import Attempt, Transformation
from compile_lens.record.kernel_values import GraphValues, KernelValue
from compile_lens.record.missing import Missing, NotApplicable
from compile_lens.record.ranks import RankDifference
from compile_lens.record.remedies import ProgramRemedies
from compile_lens.record.support import Support, Unsupported
from compile_lens.trials.checks import Checked
from compile_lens.trials.doctor import Check
from compile_lens.versions import OUTPUT_SCHEMA

FILE = Path(__file__).parent / "static" / "output.schema.json"

Version = Annotated[int, ("const", OUTPUT_SCHEMA)]
Count = Annotated[int, ("minimum", 0)]
Columns = ("eager_ops", "aten_ops", "loops", "groups", "launches", "bytes_before", "bytes_after")


class Turn(TypedDict):
    """A count that depends on iterations and branches: what is fixed, what each iteration adds, one of two branches."""

    fixed: int
    per_iteration: list[Turn]
    branches: list[list[Turn]]


class Bound(Turn):
    """Bounds of a count that is not one number."""

    text: str
    least: int
    most: int | None
    known_graphs: int
    graphs: int


LedgerRow = TypedDict(
    "LedgerRow",
    {
        "name": str,
        **dict.fromkeys(Columns, int | None),
        "basis": dict[str, Literal["measured", "modelled", "recorded"]],
        "at_least": NotRequired[dict[str, Bound]],
        "notes": list[str],
    },
)
LedgerRow.__doc__ = "A line of the ledger; a figure that is not known, or not one number, is null."


class Ledger(TypedDict):
    """A row for each phase, null where there is none, and their total; ``graphs`` has a ledger for each compilation."""

    forward: LedgerRow | None
    backward: LedgerRow | None
    inference: LedgerRow | None
    total: LedgerRow
    graphs: NotRequired[dict[str, Ledger]]


class KernelFigures(TypedDict):
    """A kernel; ``launches`` per call, null where they depend on iterations or branches, and ``launched`` in words."""

    compilation: str
    phase: str
    name: str
    language: str
    kind: str
    launches: Count | None
    launched: str


class GraphBreak(TypedDict):
    """A graph break in torch's words, the line, and the stack of the program that led there."""

    what: str
    why: str
    hint: str
    link: str
    file: str | None
    line: int | None
    function: str | None
    frames: list[str]


class FailureFigures(TypedDict):
    """Error of the function or the compiler, and the line of the program."""

    stage: str
    type: str
    message: str
    hint: str
    link: str
    file: str | None
    line: int | None
    function: str | None


class CodeDifferences(TypedDict):
    """Differences that are possible on the device in the code of one graph."""

    compilation: str
    phase: str
    may_differ: list[str]


class TargetFigures(TypedDict):
    """The device that the code is for, and what may differ on it."""

    requested: str
    model: str
    tracing: str
    transfer: str
    may_differ: list[str]
    queries: list[DeviceQuery]
    code: list[CodeDifferences]


class CaptureFigures(TypedDict):
    """Figures of a capture; ``--out record.json`` writes all of it."""

    function: str
    environment: Environment
    state: str
    verdict: str
    headline: list[str]
    graphs: Count
    compilations: list[str]
    nothing: str
    ledger: Ledger
    kernels: list[KernelFigures]
    breaks: list[GraphBreak]
    skipped: list[Skip]
    recompiles: list[Recompile]
    missing: list[Missing]
    not_applicable: list[NotApplicable]
    failure: FailureFigures | None
    target: TargetFigures | None
    profile: Profile | None
    notes: list[str]
    unknown_fields: list[str]


class Sentence(TypedDict):
    """A sentence of the story, with the stage and compilation that it is about."""

    text: str
    chapter: str
    compilation: str
    stage: str
    about: list[Any]


class Error(TypedDict):
    """An error: its class and its message."""

    type: str
    message: str


class Capture(CaptureFigures):
    """A capture: of ``show``, ``demo``, ``open`` and ``import --into``."""

    schema: Version
    command: Literal["show", "demo", "open", "import"]
    story: NotRequired[list[Sentence]]
    error: NotRequired[Error]
    written: list[str]


class Place(TypedDict):
    """A line of a file."""

    file: str
    line: int


Cause = TypedDict("Cause", {"kind": str, "head": str, "because": str, "try": str, "place": Place | None})
Cause.__doc__ = "Why the program is not faster, torch's reason, and what to try."


class States(TypedDict):
    """Lines of a file: those that broke the graph, ran eagerly, were compiled, or none of these."""

    broke: list[int]
    eager: list[int]
    compiled: list[int]
    never: list[int]


class Program(TypedDict):
    """A program: of ``run``, ``import`` and ``open``; ``--out record.json`` writes all of it."""

    schema: Version
    command: Literal["run", "import", "open"]
    name: str
    arguments: list[str]
    environment: Environment
    ended: str
    state: str
    verdict: str
    counts: Counts
    causes: list[Cause]
    lines: dict[str, States]
    profile: Profile | None
    remedies: ProgramRemedies | None
    missing: list[Missing]
    notes: list[str]
    unknown_fields: list[str]
    error: NotRequired[Error]
    written: list[str]


class Entry(TypedDict):
    """A fact or a piece of evidence, and the name by which others point to it."""

    id: Annotated[str, ("pattern", "^[FE][1-9][0-9]*$")]
    text: str


class Question(TypedDict):
    """A question that may come next, with the call that answers it."""

    text: str
    call: str


class NotShown(TypedDict):
    """Entries of each field that the budget of tokens left no room for."""

    facts: Count
    evidence: Count
    not_to_conclude: Count
    ask_next: Count
    left_out: Count


class Brief(TypedDict):
    """An answer for a coding agent: facts, the most important first, what they rest on, what does not follow, what to
    ask next, and what the record has beside it."""

    schema: Version
    title: str
    facts: Annotated[list[Entry], ("minItems", 1)]
    evidence: list[Entry]
    not_to_conclude: list[str]
    ask_next: list[Question]
    left_out: list[str]
    not_shown: NotShown


class BriefAnswer(TypedDict):
    """The answer of ``brief``."""

    schema: Version
    command: Literal["brief"]
    brief: Brief


class CostRow(TypedDict):
    """Cost of a line or kernel; ``share`` of the total. ``launches`` per call, null where they depend on iterations or
    branches, and ``launched`` in words; ``varies``: the amount, where it depends on them, in bytes or femtoseconds."""

    name: str
    address: str
    expression: str
    amount: float
    share: float
    at_least: bool
    varies: Bound | None
    bytes: float
    launches: Count | None
    launched: str
    kernels: list[str]
    lines: list[str]
    modules: list[str]
    phases: list[str]
    bound: str | None
    note: str


class CostOfModules(TypedDict):
    """Cost of modules of one type together; ``launches`` of each."""

    pattern: str
    type: str
    paths: list[str]
    amount: float
    share: float
    at_least: bool
    varies: Bound | None
    launches: list[Count | None]
    launched: list[str]


class Cost(TypedDict):
    """The answer of ``cost``, the most expensive first."""

    schema: Version
    command: Literal["cost"]
    by: Literal["line", "kernel", "module"]
    unit: str
    basis: str
    origin: str
    total: float
    at_least: bool
    varies: Bound | None
    rows: list[CostRow]
    modules: list[CostOfModules]
    missing: list[str]
    error: NotRequired[Error]


class MemoryRow(TypedDict):
    """Bytes of a line or a name at the peak, and those kept for the backward."""

    name: str
    kind: str
    expression: str
    peak: int | None
    share: float | None
    saved: int | None
    tensors: int | None
    saved_tensors: int | None
    live_tensors: int
    names: list[str]
    modules: list[str]
    line: str | None
    tensor: str


class Memory(TypedDict):
    """The answer of ``memory``: bytes that are live at once in one call."""

    schema: Version
    command: Literal["memory"]
    by: Literal["line", "name"]
    peak: int | None
    place: str
    saved: int | None
    allocated: int | None
    rows: list[MemoryRow]
    missing: list[str]
    error: NotRequired[Error]


class CurvePoint(TypedDict):
    """A capture with one ``activation_memory_budget``; bytes."""

    budget: float
    saved: int | None
    peak: int | None
    forward: int | None
    backward: int | None
    moved: int | None
    launches: int | None
    recomputed: int | None
    lines: list[str]
    failure: str


class MemoryCurve(TypedDict):
    """The answer of ``memory --curve``."""

    schema: Version
    command: Literal["memory"]
    function: str
    target: str
    points: list[CurvePoint]
    written: list[str]


class Comparison(TypedDict):
    """The answer of ``compare``: one function for several targets."""

    schema: Version
    command: Literal["compare"]
    function: str
    targets: dict[str, CaptureFigures]
    failures: dict[str, str]
    rows: list[Row]
    differences: list[TargetDifference]
    written: list[str]


class DifferenceFigures(TypedDict):
    """Differences between two records: their causes, all of them by level, and what is not known."""

    a: str
    b: str
    differs: bool
    causes: list[Change]
    changes: dict[str, list[Change]]
    unknown: list[str]


class Difference(DifferenceFigures):
    """The answer of ``diff``; ``failed_on`` are the names of ``--fail-on`` that fail."""

    schema: Version
    command: Literal["diff"]
    failed_on: list[str]
    written: list[str]


class Upgrade(TypedDict):
    """The answer of ``upgrade``: a difference for each two neighbours of the versions."""

    schema: Version
    command: Literal["upgrade"]
    torch: list[str]
    differences: list[DifferenceFigures]
    failed_on: list[str]
    written: list[str]


KeptEnvironment = TypedDict(
    "KeptEnvironment",
    {"asked": str, "torch": str, "whole": bool, "with": list[str], "bytes": Count, "folder": str},
)
KeptEnvironment.__doc__ = "An environment with a version of torch."


class Environments(TypedDict):
    """The answer of ``upgrade --list``, and of ``upgrade --torch`` without a function."""

    schema: Version
    command: Literal["upgrade"]
    folder: str
    environments: list[KeptEnvironment]


class Removed(TypedDict):
    """The answer of ``upgrade --remove``."""

    schema: Version
    command: Literal["upgrade"]
    removed: list[str]


class SwitchTrial(TypedDict):
    """A capture with one switch turned: figures before and after, and how to turn it."""

    name: str
    settings: list[Any]
    description: str
    figures: dict[str, list[Any]]
    code_changed: bool | None
    failure: str
    to_apply: str


class WhatIf(TypedDict):
    """The answer of ``what-if``."""

    schema: Version
    command: Literal["what-if"]
    function: str
    trials: list[SwitchTrial]
    helpful: list[str]
    not_tried: list[list[str]]
    interrupted: bool
    written: list[str]


class RootCauseFigures(TypedDict):
    """The cause of a difference, in a sentence, with what it rests on."""

    kind: str
    sentence: str
    transformation: Transformation | None
    kernels: list[str]
    before: str
    after: str
    where: str


class Divergence(TypedDict):
    """The answer of ``divergence``: whether values agree with eager PyTorch, and the first that do not."""

    schema: Version
    command: Literal["divergence"]
    function: str
    agrees: bool | None
    verdict: str
    difference: float | None
    compared: str
    remarks: list[str]
    cause: RootCauseFigures | None
    switch: Attempt | None
    attempts: list[Attempt]
    first_value: KernelValue | None
    doubt: str
    graphs: list[GraphValues]
    written: list[str]


class OperatorSupport(TypedDict):
    """The answer of ``support``."""

    schema: Version
    command: Literal["support"]
    operators: list[Support]
    lacking: Unsupported | None


class Doctor(TypedDict):
    """The answer of ``doctor``."""

    schema: Version
    command: Literal["doctor"]
    ok: bool
    checks: list[Check]


class Checks(TypedDict):
    """The answer of ``check``."""

    schema: Version
    command: Literal["check"]
    verdict: str
    checks: list[Checked]
    written: list[str]


class Ranks(TypedDict):
    """The answer of ``merge``: what differs between ranks, and the collectives that each issues."""

    schema: Version
    command: Literal["merge"]
    ranks: list[int]
    verdict: str
    same: bool
    not_compared: list[str]
    differences: list[RankDifference]
    collectives: dict[str, IssuedCollectives | None]
    buckets: dict[str, list[dict[str, Any]]]
    notes: list[str]
    written: list[str]


class Problem(TypedDict):
    """Instead of an answer: bad usage, a file that cannot be read, a function that cannot be imported."""

    schema: Version
    error: Error


DOCUMENTS = (
    *(
        Capture,
        Program,
        BriefAnswer,
        Cost,
        Memory,
        MemoryCurve,
        Comparison,
        Difference,
        Upgrade,
        Environments,
    ),
    *(Removed, WhatIf, Divergence, OperatorSupport, Doctor, Checks, Ranks, Problem),
)


class Definitions:
    """Definitions of the schema, by the names of the classes that they describe."""

    def __init__(self) -> None:
        self.all: dict[str, Any] = {
            "Number": {
                "description": "a number; text where JSON has none for it",
                "anyOf": [{"type": "number"}, {"enum": ["inf", "-inf", "nan"]}],
            }
        }

    def of(self, hint: Any) -> dict[str, Any]:
        """Return the schema of a type hint; classes become definitions."""
        origin, args = typing.get_origin(hint), typing.get_args(hint)
        if hint is Any:
            return {}
        if origin is NotRequired:
            return self.of(args[0])
        if origin is Annotated:
            return {**self.of(args[0]), **dict(args[1:])}
        if origin is Literal:
            return {"enum": list(args)}
        if origin in (typing.Union, types.UnionType):
            return {"anyOf": [self.of(arg) for arg in args]}
        if is_typeddict(hint) or dataclasses.is_dataclass(hint):
            return self._class(hint)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(args[1])}
        if origin is tuple and args[-1] is not Ellipsis:
            places = [self.of(arg) for arg in args]
            return {"type": "array", "prefixItems": places, "minItems": len(args), "maxItems": len(args)}
        if isinstance(origin, type) and issubclass(origin, Sequence):
            return {"type": "array", "items": self.of(args[0])}
        if hint is float:
            return {"$ref": "#/$defs/Number"}
        names = {str: "string", bool: "boolean", int: "integer", type(None): "null"}
        return {"type": next(name for cls, name in names.items() if issubclass(hint, cls))}

    def _class(self, cls: Any) -> dict[str, Any]:
        name = cls.__name__
        if name not in self.all:
            self.all[name] = {}  # a class may contain itself
            hints = typing.get_type_hints(cls, include_extras=True)
            texts = attributes(cls)
            if dataclasses.is_dataclass(cls):
                fields = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
                required = list(fields)
            else:
                fields, required = (
                    hints,
                    [key for key, hint in hints.items() if typing.get_origin(hint) is not NotRequired],
                )
            self.all[name] = {
                "description": summary(cls),
                "type": "object",
                "properties": {
                    key: {**self.of(hint), **({"description": texts[key]} if key in texts else {})}
                    for key, hint in fields.items()
                },
                "required": required,
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{name}"}


def summary(cls: type) -> str:
    """Return the first paragraph of a docstring in one line."""
    return " ".join((inspect.getdoc(cls) or "").partition("\n\n")[0].split())


def attributes(cls: type) -> dict[str, str]:
    """Return what a docstring says of each attribute."""
    section = (inspect.getdoc(cls) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    entries = re.split(r"^    (?=\w)", section, flags=re.MULTILINE)
    pairs = (entry.partition(":") for entry in entries if ":" in entry)
    return {name.strip(): " ".join(text.split()) for names, _, text in pairs for name in names.split(",")}


def schema() -> dict[str, Any]:
    """Return the schema."""
    definitions = Definitions()
    documents = [definitions.of(document) for document in DOCUMENTS]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Output",
        "description": "One document of compile-lens --json. Its version rises when a field changes meaning or goes.",
        "anyOf": documents,
        "$defs": dict(sorted(definitions.all.items())),
    }


def main() -> None:
    """Write the schema."""
    FILE.write_text(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
