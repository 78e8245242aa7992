"""Operator support of backends, by torch's own tables. No torch is needed to read one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from .delegates import delegate
from .graph import Frame

BACKENDS = ("cpu", "cuda", "mps")
"""Devices that the tables cover completely."""

KIND_MEANINGS = {
    "kernel": "a kernel of its own",
    "composite": "made of other operators, and works where those do",
    "on the CPU": "handed to the CPU by the MPS backend itself, with a copy there and back",
    "registered": "something in this process runs it, though torch's table names no kernel",
    "none": "no implementation",
    "unknown": "not in torch's table, and not registered in this process",
}
"""Values of ``Implementation.kind`` with their meanings."""

NO_TYPES = {"mps": ("float64", "complex128")}
"""Types that a device lacks for all operators: Metal has no 64-bit floating point."""

TYPES_NOTE = (
    "Types are not in the table: an existing kernel may reject some of them. On MPS there is no float64 and no "
    "complex128, whatever the operator."
)
"""Limits of the tables."""


@dataclass(frozen=True)
class Implementation:
    """One operator on one backend.

    Attributes:
        backend: ``cpu``, ``cuda`` or ``mps``.
        kind: a key of ``KIND_MEANINGS``.
        function: the C++ function, or the operator that it is generated from; ``""`` if the table names none.
    """

    backend: str
    kind: str
    function: str = ""


@dataclass(frozen=True)
class Overload:
    """One overload of an operator.

    Attributes:
        name: ``"aten.sort.stable"``.
        schema: torch's signature.
        implementations: one for each of ``BACKENDS``.
        others: further dispatch keys that the table lists (``SparseCPU``, ``QuantizedCPU``, ``XPU``).
        inductor: how Inductor handles it: ``lowering``, ``decomposition``, ``library call``, ``library or template`` or
            ``not registered``.
        inductor_note: the same in a sentence, with the gaps of some devices.
    """

    name: str
    schema: str
    implementations: tuple[Implementation, ...]
    others: tuple[str, ...] = ()
    inductor: str = ""
    inductor_note: str = ""

    def on(self, backend: str) -> Implementation:
        """Return the implementation on a backend."""
        return next(i for i in self.implementations if i.backend == backend)


@dataclass(frozen=True, repr=False)
class Support:
    """Result of ``compile_lens.support``.

    Attributes:
        operator: the operator, as requested.
        overloads: its overloads, without those that write to ``out=`` unless requested.
        source: the table behind it, with torch's version.
        notes: limits of the table.
    """

    operator: str
    overloads: tuple[Overload, ...]
    source: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return this as plain JSON data."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"<Support of {self.operator}: {len(self.overloads)} overloads>"

    def __str__(self) -> str:
        page: str = delegate("Support.__str__")(self)
        return page


@dataclass(frozen=True)
class UnsupportedOperator:
    """An operator of a capture that a target lacks, or a tensor of a type that it lacks.

    Attributes:
        op: the operator (``"aten.histc"``).
        places: where it occurs: ``inference graph`` (the graph handed to Inductor), ``library call in inference``,
            ``eager inference``; the same for other phases.
        frames: the Python lines that it came from; empty if none is known.
        reason: what the target lacks.
        compiled: the effect on compiled code: Inductor generates the operator itself, or calls the missing function.
    """

    op: str
    places: tuple[str, ...]
    frames: tuple[Frame, ...]
    reason: str
    compiled: str = ""


@dataclass(frozen=True, repr=False)
class Unsupported:
    """Result of ``Capture.unsupported``: everything of a capture that a target lacks.

    Attributes:
        function: the captured function.
        target: the target; ``device`` is torch's type of it.
        checked: operators that were looked up.
        operators: unsupported operators, in program order.
        unknown: operators that are not in torch's table.
        source: the table behind it.
        notes: remarks for the reader.
    """

    function: str
    target: str
    device: str
    checked: tuple[str, ...]
    operators: tuple[UnsupportedOperator, ...]
    unknown: tuple[str, ...] = ()
    source: str = ""
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Return True if the target lacks anything."""
        return bool(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    def to_dict(self) -> dict[str, Any]:
        """Return this as plain JSON data."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"<Unsupported on {self.target}: {len(self.operators)} of {len(self.checked)} operators>"

    def __str__(self) -> str:
        page: str = delegate("Unsupported.__str__")(self)
        return page


NEEDS = {
    **dict.fromkeys(("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"), ("SCAN", "scans")),
    "sort": ("SORT", "sorts"),
    **dict.fromkeys(("bucketize", "searchsorted"), ("BUCKETIZE", "searches in sorted values")),
}
"""Operators whose lowering needs more than loops: the backend feature that torch requires, and a word for it
(``torch/_inductor/ir.py``: ``Scan.create``, ``Sort.create``; ``torch/_inductor/lowering.py``: ``bucketize``)."""
