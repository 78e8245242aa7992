"""Torch's table of operators, ``native_functions.yaml`` of the package ``torchgen`` in its wheel, and torch's
namespaces.

A wheel registers kernels only for the devices for which it was built; the table has those of every device. Its format
is so regular that no YAML parser is needed.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PATH = "packaged/ATen/native/native_functions.yaml"

COMPOSITE = (
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
"""Dispatch keys of implementations that call other operators, on any device."""

_LINE = re.compile(r"^(- func|  \w+|    [\w, ]+):(.*)$", re.MULTILINE)
"""The beginning of an entry, a field, or a kernel, distinguished by indentation."""

_COMMENT = re.compile(r"\s+#.*$")


@dataclass(frozen=True)
class Entry:
    """One operator of the table.

    Attributes:
        schema: as in the table, without a namespace.
        dispatch: C++ functions by dispatch key; None without the field, for a differentiable composite of other
            operators.
        delegate: the structured operator that has its kernels, or ``""``.
        loops: True if its kernels for CPU and CUDA are generated from one inner loop (``ufunc_inner_loop``).
    """

    schema: str
    dispatch: Mapping[str, str] | None = None
    delegate: str = ""
    loops: bool = False


@dataclass
class _Draft:
    schema: str
    fields: dict[str, str] = field(default_factory=dict)
    dispatch: dict[str, str] = field(default_factory=dict)


def find() -> Path | None:
    """Return the path of the table; None if this torch lacks it."""
    spec = importlib.util.find_spec("torchgen")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / PATH
        if path.is_file():
            return path
    return None


@functools.cache
def table() -> Mapping[str, Entry]:
    """Return the entries by name (``"sort.stable"``); empty without a table."""
    path = find()
    return parse(path.read_text(encoding="utf-8")) if path is not None else {}


def parse(text: str) -> dict[str, Entry]:
    """Return the entries of a table, including those of generated operators."""
    drafts: list[_Draft] = []
    key = ""
    for name, value in _LINE.findall(text):
        value = (_COMMENT.sub("", value) if "#" in value else value).strip()
        if name == "- func":
            drafts.append(_Draft(value))
            key = ""
        elif not name.startswith("    "):
            key = name.strip()
            drafts[-1].fields[key] = value
        elif key == "dispatch" and value:
            drafts[-1].dispatch.update((one.strip(), value) for one in name.split(","))
    entries: dict[str, Entry] = {}
    for draft in drafts:
        name = draft.schema.partition("(")[0]
        has_dispatch = "dispatch" in draft.fields
        entries[name] = Entry(
            draft.schema,
            draft.dispatch if has_dispatch else None,
            draft.fields.get("structured_delegate", ""),
            "ufunc_inner_loop" in draft.fields,
        )
    for draft in drafts:
        source = draft.schema.partition("(")[0]
        for generated in filter(None, (n.strip() for n in draft.fields.get("autogen", "").split(","))):
            entries.setdefault(generated, Entry(f"{generated}(…)", {COMPOSITE[1]: source}))
    return entries


def implementation(entries: Mapping[str, Entry], name: str, key: str) -> tuple[str, str]:
    """Return the kind and function of an operator's implementation for a dispatch key (``"CUDA"``), as in
    ``Implementation``."""
    entry = entries[name]
    delegate = entries.get(entry.delegate)
    for candidate in (entry, delegate):
        if candidate is None:
            continue
        if candidate.dispatch and key in candidate.dispatch:
            return "kernel", candidate.dispatch[key]
        if candidate.loops and key in ("CPU", "CUDA"):
            return "kernel", f"{candidate.schema.partition('.')[0]}, an elementwise loop"
    for candidate in (entry, delegate):
        for alias in COMPOSITE if candidate is not None and candidate.dispatch else ():
            if candidate is not None and candidate.dispatch and alias in candidate.dispatch:
                return "composite", candidate.dispatch[alias]
    if entry.dispatch is None and delegate is None:
        return "composite", name.partition(".")[0]
    return "none", ""


def other_keys(entries: Mapping[str, Entry], name: str, without: tuple[str, ...]) -> tuple[str, ...]:
    """Return the dispatch keys with a kernel for an operator, except those in ``without``."""
    entry = entries[name]
    delegate = entries.get(entry.delegate)
    keys = {**(entry.dispatch or {}), **((delegate.dispatch or {}) if delegate is not None else {})}
    return tuple(sorted(k for k in keys if k not in without and k not in COMPOSITE))


@functools.cache
def beside_composites(key: str) -> tuple[str, ...]:
    """Return differentiable composite operators that also have a kernel for a dispatch key. If torch was built with the
    kernel, autograd uses the operator's own formula; otherwise it differentiates the other operators."""
    entries = table()
    return tuple(
        name
        for name, entry in entries.items()
        if COMPOSITE[0] in (entry.dispatch or {}) and implementation(entries, name, key)[0] == "kernel"
    )


TORCH_NAMESPACES = frozenset(
    "aten prim prims quantized quantized_decomposed inductor rngprims mkldnn c10d _c10d_functional mkl onednn profiler "
    "symm_mem fsdp higher_order".split()
)
"""Namespaces of torch's own operators."""

BARE_NAMESPACES = frozenset("aten prims inductor _inductor_test prim mkldnn mkl quantized".split())
"""Namespaces whose operators are recognised by name alone; an operator of another namespace may have the same name."""
