"""Inputs, operators and guards of a graph, parsed from the texts that torch prints."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from ..compilation import DynamicDim
from ..graph import Frame
from ..messages import plain_sizes, with_place, without_addresses
from ..program import GuardOrigin

_SIGNATURE = re.compile(r"^\s*def forward\(self(?P<inputs>.*)\):\s*$", re.MULTILINE)
_INPUT = re.compile(
    r"(?P<name>\w+): \"(?:Parameter )?(?P<dtype>\w+)\[(?P<shape>[^\]\"]*)\](?:\[[^\]\"]*\])?(?P<device>[\w:]*)\""
)
_MODULE_STATE = ("._parameters[", "._buffers[", "._modules[")

_DTYPES = {
    "bf16": "bfloat16", "f64": "float64", "f32": "float32", "f16": "float16", "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2", "f8e4m3fnuz": "float8_e4m3fnuz", "f8e5m2fnuz": "float8_e5m2fnuz", "c32": "complex32",
    "c64": "complex64", "c128": "complex128", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "b8": "bool", "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
}  # fmt: skip
"""Dtype names by torch's abbreviations (``torch.utils._dtype_abbrs``)."""


def mangled(source: str) -> str:
    """Return Dynamo's name for the graph input of a source."""
    return re.sub(r"[^a-zA-Z0-9]+", "_", source)


def inputs(graph: str, sources: Iterable[str]) -> tuple[str, ...]:
    """Return the input tensors of a printed graph by the function's names, without parameters and buffers."""
    match = _SIGNATURE.search(graph)
    if match is None:
        return ()
    known: dict[str, set[str]] = {}
    for source in sources:
        known.setdefault(mangled(source), set()).add(source)
    descriptions = []
    for one in _INPUT.finditer(match["inputs"]):
        names = known.get(one["name"], set())
        name = next(iter(names)) if len(names) == 1 else one["name"]
        if any(part in name for part in _MODULE_STATE):
            continue
        name = re.sub(r"^L\['(\w+)'\]", r"\1", name)
        dtype = _DTYPES.get(one["dtype"], one["dtype"])
        descriptions.append(f"{name}: {dtype}[{one['shape']}] {one['device']}".rstrip())
    return tuple(descriptions)


def operators(graph: str) -> int:
    """Return the number of statements in a printed graph's ``forward`` that contain a call."""
    match = _SIGNATURE.search(graph)
    body = graph[match.end() :].partition("\n    def ")[0].partition("class ")[0] if match else ""
    return sum(bool(re.match(r'\s+\w+(?:: "[^"]*")? = .*\(', line)) for line in body.splitlines())


_LEAF = re.compile(r"(?P<depth>(?:\| )*)\+- (?P<kind>[A-Z_0-9]+): (?P<text>.*)")
_MANAGER_TYPE = re.compile(
    r"(?:\| )*\+- (?:\w+: )?\w*Manager: source=(?P<source>.*?), (?:accessed_by=.*, )?type=(?P<type><class '.+'>), "
)
_MANAGER = re.compile(
    r"(?P<depth>(?:\| )*)\+- (?:\w+: )?\w*Manager: source=(?P<source>.*?), (?:accessed_by|type)="
)


MARKINGS = ("DIMENSION_DYNAMIC_MARKING_GUARD", "DYNAMIC_INDICES")
"""Kinds of guards that come with a tensor's guard, and that a watch does not count."""


def guards(tree: str, files: Iterable[str], of_torch: str) -> tuple[GuardOrigin, ...]:
    """Return the guards of a printed guard tree, each with the line that made it.

    Torch shortens file names there: the line is given if exactly one file of the log ends with the short name and
    it is not torch's own.
    """
    known = tuple(files)
    full: dict[str, str] = {}

    def line_of(at: Frame | None) -> Frame | None:
        frame = with_full_path(at, known, full)
        return None if frame is None or (of_torch and frame.file.startswith(of_torch)) else frame

    origins = []
    for source, kind, leaf in leaves(tree):
        if kind in MARKINGS:
            continue
        text, at = with_place(leaf)
        origins.append(
            GuardOrigin(without_addresses(text.strip()), without_addresses(source), kind, line_of(at))
        )
    return tuple(origins)


def leaves(tree: str) -> Iterator[tuple[str, str, str]]:
    """Yield the source, kind and text of each guard of a printed guard tree."""
    owners: dict[int, str] = {}
    for line in tree.splitlines():
        manager = _MANAGER.match(line)
        if manager:
            owners[len(manager["depth"])] = manager["source"]
            continue
        leaf = _LEAF.match(line)
        if leaf is not None:
            yield owners.get(len(leaf["depth"]) - 2, ""), leaf["kind"], leaf["text"]


def types(tree: str) -> dict[str, str]:
    """Return the class of each source in a printed guard tree."""
    matches = (_MANAGER_TYPE.match(line) for line in tree.splitlines())
    return {one["source"]: one["type"] for one in matches if one is not None}


def with_full_path(at: Frame | None, known: Iterable[str], full: dict[str, str]) -> Frame | None:
    """Return ``at`` with the full name of its shortened file; ``None`` unless exactly one of ``known`` matches."""
    if at is None:
        return None
    if at.file not in full:
        ends = {name for name in known if name.endswith(at.file)}
        full[at.file] = ends.pop() if len(ends) == 1 else ""
    name = full[at.file]
    return Frame(name, at.line, at.function, at.text) if name else None


def dynamic_dims(made: Iterable[Mapping[str, object]], fixed: set[str]) -> tuple[DynamicDim, ...]:
    """Return the symbols that torch created with their observed values, without those ``fixed`` to one value and
    those of a tensor's ``_base``, which no program names."""
    dims = []
    for one in made:
        symbol, source, value = (str(one.get(key, "")) for key in ("symbol", "source", "val"))
        if not symbol or not source or symbol in fixed or "._base." in source:
            continue
        whole = re.fullmatch(r"-?\d{1,18}", value)
        number = "" if whole or not re.fullmatch(r"-?(?:[\d.]+(?:e[+-]?\d+)?|inf|nan)", value) else value
        dims.append(DynamicDim(plain_sizes(source), symbol, int(value) if whole else None, number))
    return tuple(dims)
