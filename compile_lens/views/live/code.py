"""Page parts of code stages: a generated module and its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from compile_lens.measures.chain import kernel_lines
from compile_lens.measures.control_flow import launches
from compile_lens.record.capture import Record
from compile_lens.record.kernel import Code, Form, Kernel
from compile_lens.record.messages import first_names

from ..words import labels, machine, quantities, sentences, stamp
from ..words.characters import clean, line
from ..words.derivatives import of_names, phrase
from ..words.folds import Fold, linked_folds, machine_folds, module_folds
from ..words.quantities import launched
from .costs import Costs
from .items import Items, SeenStage
from .texts import Place, Text, Texts

MAX_NAMES = 200
"""Maximum operators of one kernel that are named; the rest is only counted."""


class Codes:
    """The ``CodeData`` of every code stage."""

    def __init__(self, capture: Record, items: Items, texts: Texts) -> None:
        self._items = items
        self._texts = texts
        self._origins = labels.Origins(capture)
        self._forms = Forms(capture)
        self._costs = Costs(capture)

    @property
    def forms(self) -> dict[str, object]:
        """Return the parts with the machine code of the kernels requested so far."""
        return self._forms.parts

    def of(self, seen: SeenStage) -> dict[str, object]:
        """Return the data of one stage."""
        code = seen.stage
        assert isinstance(code, Code)
        module = self._texts.modules[seen.number]
        folds = module_folds(str(module.text["text"]))
        kernels = []
        costs = self._costs.of(self._items.compilations[seen.compilation].id, code)
        for kernel, source, place, cost in zip(
            code.kernels, module.sources, module.places, costs, strict=True
        ):
            inner = linked_folds(kernel, str(source["text"])) if source else []
            if place is not None:
                folds += [fold.moved(place.first - 1) for fold in inner]
            kernels.append({**self._kernel(seen, code, kernel, source, place, inner), "cost": cost})
        return {
            "phase": line(code.phase),
            "stamp": line(stamp.of_code(code)),
            "device": line(code.device),
            "remarks": _remarks(
                [machine.Remark(stamp.may_differ(code), tuple(stamp.differences(code, MAX_NAMES)))]
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
            "languageTitle": line(labels.LANGUAGES.get(kernel.language, kernel.language)),
            "kind": line(kernel.kind),
            "launches": launches(code, [kernel]).number,
            "launched": line(launched(code, kernel)),
            "launchLines": [number for number in kernel.launch_lines if number > 0],
            "first": place.first if place else 0,
            "last": place.last if place else 0,
            "source": source,
            "folds": _folds(folds),
            "traffic": labels.traffic(kernel),
            "moved": sentences.moved(kernel),
            "sourceless": sentences.sourceless(kernel),
            "operators": _names(origin.operators),
            "whose": [
                [line(name), phrase([line(word) for word in words])]
                for name, words in origin.whose[:MAX_NAMES]
            ],
            "again": [[line(name), line(", ".join(where))] for name, where in origin.again[:MAX_NAMES]],
            "lines": [line(labels.place(frame)) for frame in origin.lines],
            "unknown": line(origin.unknown),
            "facts": [line(fact) for fact in machine.facts(kernel)],
            "remarks": _remarks(self._remarks_of(kernel, origin)),
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

    def _remarks_of(self, kernel: Kernel, origin: labels.Origin) -> list[machine.Remark]:
        """Return the remarks below the head of a kernel."""
        whose = phrase([line(word) for word in of_names(origin.whose, origin.operators)], 8)
        remarks = [machine.Remark(words) for words in (whose, line(labels.needed(origin))) if words]
        for title, shared in labels.shared(origin):
            lines = tuple(f"{name} (also in {first_names(where)})" for name, where in shared[:MAX_NAMES])
            if len(shared) > 1:
                remarks.append(
                    machine.Remark(f"{title}: {quantities.plural(len(shared), 'operator')}", lines)
                )
            elif lines:
                remarks.append(machine.Remark(f"{title}: {lines[0]}"))
        sentences_of = [self._forms.left(kernel)]
        if kernel.source and not kernel.lines:
            sentences_of.append("origins of single lines are not recorded: the whole kernel is linked")
        remarks += [machine.Remark(words) for words in sentences_of if words]
        return [*remarks, *machine.remarks(kernel)]


def _remarks(remarks: Sequence[machine.Remark]) -> list[dict[str, object]]:
    return [{"title": line(r.title), "lines": [line(words) for words in r.lines]} for r in remarks]


def _folds(folds: Sequence[Fold]) -> list[dict[str, object]]:
    """Return the folds in order, without overlapping ones."""
    kept: list[dict[str, object]] = []
    end = 0
    for fold in sorted(folds, key=lambda f: (f.first, f.last)):
        if fold.first > end:
            kept.append({"first": fold.first, "last": fold.last, "label": line(fold.label)})
            end = fold.last
    return kept


def _names(names: Sequence[str]) -> list[str]:
    shown = [line(name) for name in names[:MAX_NAMES]]
    return [*shown, f"and {len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else shown


ROOM = 6_000_000
"""Maximum characters of all forms of a page; unopened ones only add to its size."""

MAX_FORM_CHARACTERS = 1_000_000
"""Maximum characters of one form; a longer one is omitted, since cutting it would lose its end."""

_FORMS = ("sass", "assembly", "amdgcn", "ptx", "ttgir", "ttir", "llir")
"""Priority of forms if not all can be shown."""


class Forms:
    """The ``FormsData`` of every kernel that has machine code, by the name of its part."""

    def __init__(self, capture: Record) -> None:
        self.parts: dict[str, object] = {}
        self._shown: set[int] = set()
        room = ROOM
        every = [form for k in capture.kernels if k.machine is not None for form in k.machine.forms]
        for form in sorted(every, key=_form_rank):
            if len(form.text) <= min(room, MAX_FORM_CHARACTERS):
                room -= len(form.text)
                self._shown.add(id(form))

    def of(self, kernel: Kernel) -> tuple[Form, ...]:
        """Return the forms of a kernel that are on the page."""
        forms = kernel.machine.forms if kernel.machine is not None else ()
        return tuple(form for form in forms if id(form) in self._shown)

    def left(self, kernel: Kernel) -> str:
        """Return a note on omitted forms and where they are; ``""`` if there are none."""
        forms = kernel.machine.forms if kernel.machine is not None else ()
        names = ", ".join(f"kernel.{form.kind}" for form in forms if id(form) not in self._shown)
        return f"left out to keep the page small: {names}" if names else ""

    def part(self, seen: SeenStage, kernel: Kernel) -> str:
        """Return the name of the part with a kernel's forms, after adding it; ``""`` if it has none."""
        shown = self.of(kernel)
        if not shown:
            return ""
        name = f"m{len(self.parts)}"
        self.parts[name] = {"forms": [_form(seen, kernel, form) for form in shown]}
        return name


def _form(seen: SeenStage, kernel: Kernel, form: Form) -> dict[str, object]:
    text = clean(form.text)
    last = text.count("\n") + 1
    pairs = ((line, seen.locals.get(f"{kernel.name}:{of}")) for line, of in form.links if 0 < line <= last)
    return {
        "text": text,
        "items": [[line, seen.start + local] for line, local in pairs if local is not None],
        "folds": [asdict(fold) for fold in machine_folds(form.kind, text, {line for line, _ in form.links})],
    }


def _form_rank(form: Form) -> int:
    return _FORMS.index(form.kind) if form.kind in _FORMS else len(_FORMS)
