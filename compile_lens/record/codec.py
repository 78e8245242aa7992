"""The JSON form of records. Plain data in, plain data out: opening a record runs no code.

Every dataclass is an object with its fields by name; fields with default values are left out. If a field allows several
classes, the object names its class under ``"is"``. Fields that this version does not know are counted and reported in
``Capture.unknown_fields``, never silently dropped.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import RecordError
from . import autotuning as _autotuning
from . import benchmark as _measurement
from . import breaks as _breaks
from . import capture as _record
from . import compilation as _compilation
from . import cuda_graphs as _cuda_graphs
from . import decision as _decision
from . import device as _device_model
from . import graph as _graph
from . import kernel as _kernel
from . import lowering as _lowered
from . import memory as _memory
from . import memory_curve as _memory_curve
from . import missing as _missing
from .capture import SCHEMA_VERSION, Record
from .json_stream import is_deeper

if TYPE_CHECKING:
    from .program import ProgramRecord

_R = TypeVar("_R", bound="Record | ProgramRecord")

FORMAT = "compile_lens capture"
PROGRAM = "compile_lens program"
"""Value of ``format`` in the JSON of a program's record."""

_NAMES = {
    name: found
    for module in (
        _graph,
        _missing,
        _breaks,
        _kernel,
        _autotuning,
        _cuda_graphs,
        _decision,
        _lowered,
        _memory,
        _memory_curve,
        _measurement,
        _device_model,
        _compilation,
        _record,
    )
    for name, found in vars(module).items()
}


def _classes(names: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: cls for name, cls in names.items() if isinstance(cls, type) and dataclasses.is_dataclass(cls)
    }


_CLASSES = _classes(_NAMES)


def _register_program_classes(cls: type) -> None:
    """Register the classes of a program's record if ``cls`` is one; a capture needs none of them."""
    if not issubclass(cls, Record) and "ProgramRecord" not in _CLASSES:
        from . import collectives, logged_code, program, remedies

        for module in (collectives, logged_code, program, remedies):
            _NAMES.update(vars(module))
            _CLASSES.update(_classes(vars(module)))


def to_json(record: Record | ProgramRecord) -> str:
    """Return the JSON text of a capture or a program. The same record gives the same text."""
    _register_program_classes(type(record))
    body = {"format": _format(type(record)), **_encode(record), "schema_version": record.schema_version}
    return json.dumps(body, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _format(cls: type) -> str:
    return FORMAT if issubclass(cls, Record) else PROGRAM


def from_json(text: str, cls: type[_R]) -> _R:
    """Return the record in a JSON text as a ``cls``; raise ``RecordError``, with the place, if it is invalid."""
    _register_program_classes(cls)
    format, what = _format(cls), _format(cls).rpartition(" ")[2]
    try:
        raw = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise RecordError(
            f"this is not a record: it is not JSON ({error}); save one with {what}.save('x.json')"
        ) from None
    if is_deeper(raw, MAX_DEPTH):
        raise RecordError(f"the record is nested too deeply to be one of ours: over {MAX_DEPTH} levels")
    if not isinstance(raw, dict) or raw.get("format") != format:
        raise RecordError(
            f"this JSON is not a record: it lacks \"format\": {format!r}; save one with {what}.save('x.json')"
        )
    version = raw.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RecordError(
            f"the record's schema_version is {version!r}; it must be a whole number, 1 to {SCHEMA_VERSION}"
        )
    if version > SCHEMA_VERSION:
        raise RecordError(
            f"the record has schema_version {version}, this compile_lens reads up to {SCHEMA_VERSION}: "
            "open it with a newer one"
        )
    if version < SCHEMA_VERSION:
        raise RecordError(
            f"the record has schema_version {version}, from before compile_lens 0.1.0, and this one reads "
            f"{SCHEMA_VERSION}: record it again"
        )
    unknown: Counter[str] = Counter()
    body = {k: v for k, v in raw.items() if k != "format"}
    try:
        record: _R = _object(cls, body, what, unknown)
    except RecursionError:  # the caller's own stack is too deep
        raise RecordError("the record is nested too deeply to be opened from here") from None
    unknown_fields = tuple(f"{path}: {count}" for path, count in sorted(unknown.items()))
    return dataclasses.replace(record, unknown_fields=unknown_fields)


MAX_DEPTH = 150
"""Most levels of lists and objects in a record; a nested subgraph takes three. Measures and views can recurse safely,
because nothing deeper is opened: Python's own limit is 1,000 calls."""


def _encode(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    cls: Any = type(value)
    if _is_ours(cls):
        out: dict[str, Any] = {"is": cls.__name__} if cls.__name__ in _TAGGED else {}
        for name, default in _fields(cls):
            item = getattr(value, name)
            if name != "unknown_fields" and (
                default is dataclasses.MISSING
                or name in _always_written(cls)
                or item != default
                or type(item) is not type(default)
                or (type(item) is float and repr(item) != repr(default))  # -0.0 equals 0.0
            ):
                out[name] = _encode(item)
        return out
    return value


_TAGGED = {"Ref", "Literal", "Graph", "Code", "Missing", "NotApplicable"}
"""Classes that share a field with others, so that their objects must name their class."""


@functools.cache
def _is_ours(cls: Any) -> bool:
    return any(base.__name__ in _CLASSES for base in cls.__mro__)


@functools.cache
def _fields(cls: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((f.name, f.default) for f in dataclasses.fields(cls))


_ALWAYS_WRITTEN = {
    "Record": ("inputs", "sources", "compilations", "skipped", "not_observed"),
    "Compilation": ("stages", "guards", "ending", "recompile_reasons", "decisions", "lowered", "memory"),
    "Code": ("kernels",),
    "ProgramRecord": ("frames", "prior_frames", "graphs", "library_skips", "missing", "eager_frames"),
    "ProgramFrame": ("evaluations",),
    "FrameEvaluation": ("graphs", "breaks"),
}
"""Fields that are written even if empty: emptiness is a claim, which a file without the field does not make."""


@functools.cache
def _always_written(cls: Any) -> tuple[str, ...]:
    return next(
        (_ALWAYS_WRITTEN[base.__name__] for base in cls.__mro__ if base.__name__ in _ALWAYS_WRITTEN), ()
    )


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls, _NAMES)


_Place = Any
"""Position of a value in the record: ``"capture"``, or a pair of a position and the next key or index; formatted only
when printed."""

_Reader = Callable[[Any, _Place, "Counter[str]"], Any]
"""Function that reads a field's value from JSON and counts unknown fields; it raises ``RecordError``."""


def _text(place: _Place) -> str:
    parts = []
    while isinstance(place, tuple):
        place, step = place
        parts.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return str(place) + "".join(reversed(parts))


@functools.cache
def _readers(cls: Any) -> dict[str, _Reader]:
    """Return the reader of each field of a class."""
    return {name: _reader(hint) for name, hint in _hints(cls).items() if name != "unknown_fields"}


@functools.cache
def _required(cls: Any) -> tuple[str, ...]:
    missing = dataclasses.MISSING
    required = (
        f.name for f in dataclasses.fields(cls) if f.default is missing and f.default_factory is missing
    )
    return (*required, *_always_written(cls))


def _object(cls: Any, raw: Any, place: _Place, unknown: Counter[str]) -> Any:
    if not isinstance(raw, dict):
        raise RecordError(f"{_text(place)} should be an object, it is {_shown(raw)}: the record is corrupt")
    readers = _readers(cls)
    known = {}
    for key, item in raw.items():
        if key == "is":
            continue
        reader = readers.get(key)
        if reader is None:
            unknown[f"{_text(place).rstrip('0123456789[]')}.{key}"] += 1
            continue
        known[key] = reader(item, (place, key), unknown)
    for name in _required(cls):
        if name not in known:
            raise RecordError(f"{_text(place)} lacks {name!r}: the record is corrupt")
    for name in _NOT_NEGATIVE.get(cls.__name__, ()):
        value = known.get(name)
        if any(type(n) is int and n < 0 for n in (value if isinstance(value, tuple) else (value,))):
            raise RecordError(
                f"{_text(place)}.{name} cannot be negative, it is {_shown(raw[name])}: the record is corrupt"
            )
    keys = (
        [stage.key for stage in known["stages"]]
        if cls.__name__ == "Compilation" and "stages" in known
        else []
    )
    if duplicate := next((key for i, key in enumerate(keys) if key in keys[:i]), None):
        raise RecordError(f"{_text(place)}.stages has {_shown(duplicate)} twice: the record is corrupt")
    return cls(**known)


_NOT_NEGATIVE = {
    "Tensor": ("shape", "nbytes"),
    "EagerOp": ("count", "nbytes", "copied"),
    "Kernel": ("launches",),
}
"""Sizes and counts that must not be negative, since measures sum them and views draw them to scale."""


def _reader(hint: Any) -> _Reader:
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union and _graph.Ref in args:
        # Identified by a member: ``Value`` is recursive, and typing resolves it to unequal forms.
        return _value
    if origin is tuple:
        return _list_reader(args[0]) if len(args) == 2 and args[1] is Ellipsis else _tuple_reader(args)
    if origin in (typing.Union, types.UnionType):
        return _union_reader(args)
    if dataclasses.is_dataclass(hint):
        return functools.partial(_object, hint)
    return functools.partial(_plain, hint)


def _plain(hint: Any, raw: Any, place: _Place, unknown: Counter[str]) -> Any:
    if hint is float and type(raw) is int and abs(raw) < 2**53:
        return float(raw)
    if type(raw) is hint:
        return _bounded(raw, place)
    raise RecordError(f"{_text(place)} should be {hint.__name__}, it is {_shown(raw)}: the record is corrupt")


def _is_list(raw: Any, place: _Place) -> list[Any]:
    if not isinstance(raw, list):
        raise RecordError(f"{_text(place)} should be a list, it is {_shown(raw)}: the record is corrupt")
    return raw


def _list_reader(hint: Any) -> _Reader:
    reader = _reader(hint)

    def read(raw: Any, place: _Place, unknown: Counter[str]) -> Any:
        return tuple([reader(item, (place, i), unknown) for i, item in enumerate(_is_list(raw, place))])

    return read


def _tuple_reader(args: tuple[Any, ...]) -> _Reader:
    readers = [_reader(hint) for hint in args]

    def read(raw: Any, place: _Place, unknown: Counter[str]) -> Any:
        if len(_is_list(raw, place)) != len(readers):
            raise RecordError(
                f"{_text(place)} should have {len(readers)} items, it has {len(raw)}: the record is corrupt"
            )
        return tuple(
            reader(item, (place, i), unknown)
            for i, (reader, item) in enumerate(zip(readers, raw, strict=True))
        )

    return read


def _union_reader(args: tuple[Any, ...]) -> _Reader:
    none = type(None) in args
    plain = {a for a in args if a in (int, str, bool, float)}
    options = [
        (getattr(a, "__name__", ""), _reader(a)) for a in args if a is not type(None) and a not in plain
    ]

    def read(raw: Any, place: _Place, unknown: Counter[str]) -> Any:
        if raw is None and none:
            return None
        if type(raw) in plain:
            return _bounded(raw, place)
        if isinstance(raw, (dict, list)):
            named = [raw["is"]] if isinstance(raw, dict) and "is" in raw else []
            for name, reader in options:
                if not named or name == named[0]:
                    return reader(raw, place, unknown)
        raise RecordError(f"{_text(place)} cannot hold {_shown(raw)}: the record is corrupt")

    return read


def _value(raw: Any, place: _Place, unknown: Counter[str]) -> Any:
    if isinstance(raw, list):
        return tuple([_value(item, place, unknown) for item in raw])
    if isinstance(raw, dict):
        cls = _CLASSES.get(str(raw.get("is")))
        if cls not in (_graph.Ref, _graph.Literal):
            raise RecordError(f"{_text(place)} cannot hold {_shown(raw)}: the record is corrupt")
        return _object(cls, raw, place, unknown)
    return raw


def _bounded(raw: Any, place: _Place) -> Any:
    """Return a plain value; raise ``RecordError`` for an integer of more than 64 bits, which no record needs."""
    if type(raw) is int and abs(raw) >= 2**64:
        raise RecordError(f"{_text(place)} cannot be as large as {_shown(raw)}: the record is corrupt")
    return raw


def _no_constant(text: str) -> None:
    raise ValueError(f"{text} is not JSON")


def _finite(text: str) -> float:
    """Return the float of a text; raise ``ValueError`` on overflow, since it could not be written again."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is beyond the range of a float")
    return number


def _shown(raw: Any) -> str:
    text = json.dumps(raw)
    return text if len(text) <= 60 else text[:57] + "..."
