"""Generated modules of a log and its ahead-of-time compiles, which have no compile id."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..graph import Frame
from ..logged_code import (
    AOT_AUTOGRAD,
    AOT_INDUCTOR,
    EXPORT,
    INDUCTOR,
    AheadCompilation,
    ExportCondition,
    GeneratedModule,
    LoggedKernel,
)
from . import graph_text
from .entries import Entry

_PRE_GRAD_KINDS = ("before_pre_grad_graph", "inductor_pre_grad_graph")
_AOT_KINDS = ("aot_inference_graph", "aot_forward_graph", "aot_joint_graph")
_FINDINGS = {
    "guard_added": "checked",
    "propagate_real_tensors_provenance": "assumed",
    "missing_fake_kernel": "wrong",
    "mismatched_fake_kernel": "wrong",
}
_MAPPING = "inductor_provenance_tracking_node_mappings"
_OLD_MAPPING = "inductor_triton_kernel_to_post_grad_nodes"
_SCHEDULE = "inductor_collective_schedule"
_CALL_KINDS = ("graph_execution", "inductor_graph_execution")
_STACKS = "inductor_provenance_tracking_kernel_stack_traces"
CODE_KINDS = ("inductor_output_code", "graph_dump", _MAPPING, _OLD_MAPPING, _STACKS, _SCHEDULE, *_CALL_KINDS)
"""Kinds of entries about generated code."""
_KERNEL_DEFINITION = re.compile(
    r"^(?P<python>\w+) = async_compile\.\w+\(|^static inline void call_(?P<triton>\w+)\(|"
    r'^extern "C"\s+(?:\w+ )?void (?P<cpp>\w+)\(',
    re.MULTILINE,
)
_TORCH_FILE = re.compile(r"[/\\]torch[/\\](?:nn|_\w+|utils|export|fx)[/\\]")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d{1,9})(?:, in (?P<function>[^\n\\]+))?')


class _Module:
    def __init__(self, id: str, file: str) -> None:
        self.id, self.file = id, file
        self.lines: int | None = None
        self.defined: dict[str, None] = {}
        self.collectives: tuple[str, ...] | None = ()
        self.provenance: dict[str, dict[str, tuple[str, ...]]] = {}  # by kind of entry and kernel

    def add(self, text: str | None) -> None:
        if text is not None:
            self.lines = (self.lines or 0) + text.count("\n") + 1
            self.defined |= {match[match.lastgroup or 0]: None for match in _KERNEL_DEFINITION.finditer(text)}


class _Ahead:
    def __init__(self) -> None:
        self.kind = ""
        self.graph: str | None = None
        self.aot_graph: str | None = None
        self.modules: list[int] = []
        self.conditions: list[ExportCondition] = []
        self.sources: list[str] = []


class CodeLog:
    """The generated modules of a log and its compiles without an id, in order."""

    def __init__(self) -> None:
        self._modules: list[_Module] = []
        self._last: dict[str, _Module] = {}
        self._provenance: dict[
            str, dict[str, dict[str, tuple[str, ...]]]
        ] = {}  # for the next module with a compile id, by kind and kernel
        self._ahead: list[_Ahead] = []
        self._open: _Ahead | None = None
        self._traced: _Ahead | None = None
        """The strict export whose exported program has not been logged yet."""
        self.exports = 0
        self._calls: list[str] = []

    def __len__(self) -> int:
        return len(self._modules)

    def note(self, entry: Entry, files: Mapping[int, str]) -> None:
        """Record an entry about generated code or an ahead-of-time compile."""
        kind, facts = entry.kind, entry.facts
        text = entry.payload if entry.readable else None
        if kind == "graph_dump":
            kind = str(facts["name"])
        if kind in ("inductor_output_code", "inductor_aot_wrapper_code"):
            self._add_module(entry.id, str(facts.get("filename") or ""), text)
            if not entry.id:
                self._current().modules.append(len(self._modules) - 1)
                self._current().kind = INDUCTOR if kind == "inductor_output_code" else AOT_INDUCTOR
        elif kind == "inductor_aot_kernel_code" and entry.id in self._last:
            self._last[entry.id].add(text)
        elif kind in (_MAPPING, _OLD_MAPPING, _STACKS):
            if text is not None:
                self._note_provenance(entry.id, kind, json.loads(text))
        elif kind == _SCHEDULE and entry.id in self._last:
            self._last[entry.id].collectives = None if text is None else tuple(map(str, json.loads(text)))
        elif kind in _CALL_KINDS and text is not None:
            self._note_calls(json.loads(text))
        elif not entry.id:
            self._note_ahead(kind, facts, text, files)

    def _add_module(self, id: str, file: str, text: str | None) -> None:
        self._last[id] = _Module(id, file)
        self._last[id].add(text)
        self._last[id].provenance |= self._provenance.pop(id, {})
        self._modules.append(self._last[id])

    def _note_provenance(self, id: str, kind: str, facts: Mapping[str, Any]) -> None:
        """Record provenance for the last module with this id, or for the next one if that already has some."""
        kernels = facts["cppCodeToPost"] if kind == _MAPPING else facts
        own = {str(name): tuple(map(str, values)) for name, values in kernels.items()}
        module = self._last.get(id)
        if module is None or kind in module.provenance:
            self._provenance.setdefault(id, {})[kind] = own
        else:
            module.provenance[kind] = own

    def _note_calls(self, facts: Mapping[str, Any]) -> None:
        """Record the order of graph calls: compile ids, or, from an older torch, one module number per entry."""
        for one in facts.get("graph_execution_order", [facts]):
            if one.get("compile_id"):
                self._calls.append(str(one["compile_id"]).strip("[]"))
            else:
                number = int(str(one["graph"]).rpartition("_")[2])
                self._calls.append(self._modules[number].id)

    @property
    def calls(self) -> tuple[str, ...]:
        """Compile ids of the called graphs in call order, as far as they are logged."""
        return tuple(self._calls)

    def _current(self) -> _Ahead:
        """Return the open compile without an id; begin one if none is open."""
        if self._open is None:
            self._open = _Ahead()
            self._ahead.append(self._open)
        return self._open

    def _note_ahead(self, kind: str, facts: Any, text: str | None, files: Mapping[int, str]) -> None:
        if kind in _PRE_GRAD_KINDS:
            if self._open is not None and (self._open.graph is not None or self._open.modules):
                self._open = None
            own = self._current()
            own.kind, own.graph = own.kind or INDUCTOR, text or ""
        elif kind in _AOT_KINDS:
            own = self._current()
            own.kind, own.aot_graph = own.kind or AOT_AUTOGRAD, text or own.aot_graph
        elif kind == "exported_program":
            if self._traced is not None:
                self._ahead.remove(self._traced)
                self._traced = None
            own = self._current()
            own.kind, own.graph, own.aot_graph = EXPORT, text, text
            self.exports += 1
            self._open = None
        elif kind in _FINDINGS:
            self._current().conditions.append(_condition(kind, facts, files))
        elif kind == "compilation_metrics":
            self._open = None

    def note_traced(self, graph: str | None, sources: list[str], exports_before: int) -> None:
        """Record the graph of a strict export unless its program was logged since ``exports_before``."""
        if self.exports == exports_before:
            own = self._traced = _Ahead()
            own.kind, own.graph, own.aot_graph, own.sources = EXPORT, graph, graph, sources
            self._ahead.append(own)

    def modules(self) -> tuple[GeneratedModule, ...]:
        """Return the generated modules in order."""
        return tuple(
            GeneratedModule(m.id, m.file, m.lines, tuple(_kernels(m)), m.collectives) for m in self._modules
        )

    def ahead(self) -> tuple[AheadCompilation, ...]:
        """Return the compiles without an id, leaving out those that only added guards."""
        compiles = []
        for own in self._ahead:
            if own.kind:
                operators = graph_text.operators(own.aot_graph) if own.aot_graph else None
                inputs = graph_text.inputs(own.graph or own.aot_graph or "", own.sources)
                known = tuple(own.modules), tuple(own.conditions)
                compiles.append(AheadCompilation(own.kind, operators, inputs, *known))
        return tuple(compiles)


def _condition(kind: str, facts: Mapping[str, Any], files: Mapping[int, str]) -> ExportCondition:
    text = str(facts.get("expr") or facts.get("op") or "")
    if kind == "propagate_real_tensors_provenance":
        text = f"{text} was taken to be {facts.get('result')}, as it is for the given values"
    elif kind in ("missing_fake_kernel", "mismatched_fake_kernel"):
        text = f"{kind.replace('_', ' ')} of {text}: {facts.get('reason', '')}"
    stack = [
        Frame(files.get(int(f["filename"]), ""), int(f["line"]), str(f["name"]), str(f.get("loc") or ""))
        for f in facts.get("user_stack") or ()
    ]
    own = [at for at in stack if not _TORCH_FILE.search(at.file)]
    return ExportCondition(_FINDINGS[kind], text, own[-1] if own else None)


def _kernels(module: _Module) -> Iterable[LoggedKernel]:
    nodes = module.provenance.get(_MAPPING) or module.provenance.get(_OLD_MAPPING, {})
    stacks = module.provenance.get(_STACKS, {})
    for name in dict.fromkeys((*nodes, *stacks)) or module.defined:
        lines = (_program_line(stack) for stack in stacks.get(name, ()))
        known = tuple(dict.fromkeys(line for line in lines if line is not None))
        yield LoggedKernel(name, nodes.get(name, ()), known)


def _program_line(stack: str) -> Frame | None:
    """Return the program's innermost line in a printed stack, whose line breaks may be escaped as ``\\n``."""
    own = [
        Frame(at["file"], int(at["line"]), (at["function"] or "").strip())
        for at in _FRAME.finditer(stack)
        if not _TORCH_FILE.search(at["file"])
    ]
    return own[-1] if own else None
