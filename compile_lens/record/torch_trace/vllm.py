"""vLLM's entries of a log: its configuration, the pieces of a model, and the sizes that each is compiled for."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field, replace

from ..logged_code import VllmCompilation, VllmPass, VllmPiece
from . import graph_text
from .entries import Entry

_CONFIG, _EVENT, _START = "vllm_compilation_config", "vllm_compile_event", "vllm_piecewise_compile_start"
_SPLIT = "vllm_piecewise_split_graph"
_BEFORE = "before_post_grad_graph"
KINDS = (_CONFIG, _EVENT, _START, _BEFORE)
"""Artifacts that are read; vLLM's graphs are entries of the kind ``graph_dump``."""

_PIECE_NAME = re.compile(r"vllm_(?:subgraph|submod)_(?P<name>.+)")
_PASS_NAME = re.compile(r"vllm_post_grad\.(?P<name>.+)")
_SUBMODULE_CALL = re.compile(r"= self\.(\w+)\(")


@dataclass
class _Model:
    id: str
    event: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    submodules: tuple[str, ...] = ()
    pieces: list[VllmPiece] = field(default_factory=list)
    operators: dict[str, int | None] = field(default_factory=dict)
    passes: list[VllmPass] = field(default_factory=list)


class VllmLog:
    """The models that vLLM compiled, in log order."""

    def __init__(self) -> None:
        self._models: list[_Model] = []
        self._event = ""
        self._before: str | None = None

    def note(self, entry: Entry) -> None:
        """Record an entry that vLLM wrote."""
        text = entry.payload if entry.readable else None
        name = str(entry.facts["name"]) if entry.kind == "graph_dump" else entry.kind
        if name == _EVENT:
            self._event = str(json.loads(text)["type"]) if text is not None else ""
        elif name == _CONFIG:
            known = json.loads(text) if text is not None else {}
            model = self._model_to_configure(entry.id)
            model.settings = tuple((str(key), _setting(value)) for key, value in known.items())
            model.event, self._event = self._event, ""
        elif name == _BEFORE:
            self._before = text
        elif name == _SPLIT:
            self._current_model(entry.id).submodules = tuple(
                dict.fromkeys(_SUBMODULE_CALL.findall(text or ""))
            )
        elif name == _START:
            self._add_piece(self._current_model(entry.id), json.loads(text) if text is not None else {})
        elif match := _PASS_NAME.fullmatch(name):
            self._add_pass(self._current_model(entry.id), match["name"], text)
        elif match := _PIECE_NAME.fullmatch(name):
            model = self._current_model(entry.id)
            own = model.pieces[-1].submodule if model.pieces else match["name"]
            model.operators[own] = None if text is None else graph_text.operators(text)

    def note_module(self, id: str, number: int) -> None:
        """Record that module ``number`` was generated for the last piece."""
        if self._models and self._models[-1].id == id and self._models[-1].pieces:
            piece = self._models[-1].pieces[-1]
            self._models[-1].pieces[-1] = replace(piece, modules=(*piece.modules, number))

    def _model_to_configure(self, id: str) -> _Model:
        """Return the model that a configuration belongs to: the last one if it has none yet, else a new one."""
        if not self._models or self._models[-1].settings or self._models[-1].pieces:
            self._models.append(_Model(id))
        return self._models[-1]

    def _current_model(self, id: str) -> _Model:
        if not self._models:
            self._models.append(_Model(id))
        return self._models[-1]

    def _add_piece(self, model: _Model, facts: dict[str, object]) -> None:
        name = facts.get("submod_name") or f"piece {facts.get('piecewise_index', len(model.pieces))}"
        first, last = (facts.get(f"compile_range_{end}") for end in ("start", "end"))
        known = (first if type(first) is int else 0, last if type(last) is int else 0)
        single = facts.get("is_cudagraph_capture_size") is True
        model.pieces.append(VllmPiece(str(name), known, single))
        self._before = None

    def _add_pass(self, model: _Model, name: str, text: str | None) -> None:
        new = None
        if text is not None and self._before is not None:
            new = (Counter(text.splitlines()) - Counter(self._before.splitlines())).total()
        one = VllmPass(name, None if text is None else graph_text.operators(text), new)
        if model.pieces:
            model.pieces[-1] = replace(model.pieces[-1], passes=(*model.pieces[-1].passes, one))
        else:
            model.passes.append(one)
        self._before = text

    def compilations(self) -> tuple[VllmCompilation, ...]:
        """Return the compilation of each model."""
        return tuple(
            VllmCompilation(
                model.id,
                model.event,
                model.settings,
                model.submodules,
                tuple(replace(one, operators=model.operators.get(one.submodule)) for one in model.pieces),
                tuple(model.passes),
            )
            for model in self._models
        )


def _setting(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
