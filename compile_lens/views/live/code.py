"""The parts of code stages: a generated module and its kernels."""

from __future__ import annotations

from collections.abc import Sequence

from compile_lens.measures.chain import kernel_lines
from compile_lens.record.capture import Record
from compile_lens.record.kernel import Code, Kernel

from ..words import machine, outline, quantities, sentences, stamp
from ..words.derivatives import of_names, phrase
from ..words.folds import Fold, linked_folds, module_folds
from ..words.launches import launched
from .forms import Forms
from .items import Items, SeenStage
from .texts import Place, Text, Texts
from .words import line

MANY = 200
"""Operators of one kernel that are named before the rest is only counted."""


class Codes:
    """The ``CodeData`` of every code stage."""

    def __init__(self, capture: Record, items: Items, texts: Texts) -> None:
        self._items = items
        self._texts = texts
        self._origins = outline.Origins(capture)
        self._forms = Forms(capture)

    @property
    def forms(self) -> dict[str, object]:
        """The parts with the machine code of the kernels that were asked for so far."""
        return self._forms.parts

    def of(self, seen: SeenStage) -> dict[str, object]:
        """The data of one stage."""
        code = seen.stage
        assert isinstance(code, Code)
        module = self._texts.modules[seen.number]
        folds = module_folds(str(module.text["text"]))
        kernels = []
        for kernel, source, place in zip(code.kernels, module.sources, module.places, strict=True):
            inner = linked_folds(kernel, str(source["text"])) if source else []
            if place is not None:
                folds += [fold.moved(place.first - 1) for fold in inner]
            kernels.append(self._kernel(seen, code, kernel, source, place, inner))
        return {
            "phase": line(code.phase),
            "stamp": line(stamp.of_code(code)),
            "device": line(code.device),
            "remarks": _remarks(
                [machine.Remark(stamp.may_differ(code), tuple(stamp.differences(code, MANY)))]
            )
            if code.may_differ
            else [],
            "module": module.text,
            "folds": _folds(folds),
            "kernels": kernels,
        }

    def _kernel(
        self,
        seen: SeenStage,
        code: Code,
        kernel: Kernel,
        source: Text | None,
        place: Place | None,
        folds: Sequence[Fold],
    ) -> dict[str, object]:
        origin = self._origins.of(kernel)
        count = str(source["text"]).count("\n") + 1 if source else 0
        lines = {
            number: seen.item(f"{kernel.name}:{number}")
            for number in (mark.line for mark in kernel_lines(kernel))
            if source and 0 < number <= count
        }
        return {
            "item": seen.item(kernel.name),
            "name": line(kernel.name),
            "language": line(kernel.language),
            "languageTitle": line(outline.LANGUAGES.get(kernel.language, kernel.language)),
            "kind": line(kernel.kind),
            "launches": kernel.launches,
            "launched": line(launched(code, kernel)),
            "launchLines": [number for number in kernel.launch_lines if number > 0],
            "first": place.first if place else 0,
            "last": place.last if place else 0,
            "source": source,
            "folds": _folds(folds),
            "traffic": outline.traffic(kernel),
            "moved": sentences.moved(kernel),
            "sourceless": sentences.sourceless(kernel),
            "operators": _names(origin.operators),
            "whose": [
                [line(name), phrase([line(word) for word in words])] for name, words in origin.whose[:MANY]
            ],
            "again": [[line(name), line(", ".join(where))] for name, where in origin.again[:MANY]],
            "lines": [line(outline.place(frame)) for frame in origin.lines],
            "unknown": line(origin.unknown),
            "facts": [line(fact) for fact in machine.facts(kernel)],
            "remarks": _remarks(self._said(kernel, origin)),
            "forms": [machine.title(form.kind) for form in self._forms.of(kernel)],
            "part": self._forms.part(seen, kernel),
            "whole": not kernel.lines,
            "items": [[number, item] for number, item in sorted(lines.items())],
            "noOrigin": [
                [number, line(self._items.no_origin[item])]
                for number, item in sorted(lines.items())
                if item in self._items.no_origin
            ],
        }

    def _said(self, kernel: Kernel, origin: outline.Origin) -> list[machine.Remark]:
        """What is said of a kernel below its head."""
        whose = phrase([line(word) for word in of_names(origin.whose, origin.operators)], 8)
        found = [machine.Remark(words) for words in (whose, line(outline.needed(origin))) if words]
        for title, shared in outline.shared(origin):
            lines = tuple(f"{name} (also in {outline.names(where)})" for name, where in shared[:MANY])
            if len(shared) > 1:
                found.append(machine.Remark(f"{title}: {quantities.plural(len(shared), 'operator')}", lines))
            elif lines:
                found.append(machine.Remark(f"{title}: {lines[0]}"))
        said = [self._forms.left(kernel)]
        if kernel.source and not kernel.lines:
            said.append("origins of single lines are not recorded: the whole kernel is linked")
        found += [machine.Remark(words) for words in said if words]
        return [*found, *machine.remarks(kernel)]


def _remarks(remarks: Sequence[machine.Remark]) -> list[dict[str, object]]:
    return [{"title": line(r.title), "lines": [line(words) for words in r.lines]} for r in remarks]


def _folds(folds: Sequence[Fold]) -> list[dict[str, object]]:
    """Folds in order; one that reaches into the one before it is left out."""
    made: list[dict[str, object]] = []
    end = 0
    for fold in sorted(folds, key=lambda f: (f.first, f.last)):
        if fold.first > end:
            made.append({"first": fold.first, "last": fold.last, "label": line(fold.label)})
            end = fold.last
    return made


def _names(names: Sequence[str]) -> list[str]:
    shown = [line(name) for name in names[:MANY]]
    return [*shown, f"and {len(names) - MANY} more"] if len(names) > MANY else shown
