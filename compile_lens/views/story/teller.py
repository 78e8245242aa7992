"""Who puts the sentences down, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from compile_lens.measures.address import Address
from compile_lens.record.absent import Missing, NotApplicable
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation

from ..words.outline import UNSAID
from .language import Amount, Language, Names, Value, text
from .model import Sentence


@dataclass
class Teller:
    """Tells of one capture; ``chapter`` is the heading under which the next sentences stand."""

    capture: Record
    language: Language
    compilation: Compilation | None = None
    chapter: str = ""
    told: list[Sentence] = field(default_factory=list)

    def at(self, compilation: Compilation, chapter: str) -> Teller:
        """The same teller at another chapter; what it tells stands with the rest."""
        many = len(self.capture.compilations) > 1
        head = f"{compilation.id} {text(self.language.function(compilation.function))}: " if many else ""
        return replace(self, compilation=compilation, chapter=head + self.language.words[chapter])

    def say(self, key: str, stage: str = "", about: Iterable[str | Address] = (), **values: Value) -> None:
        """One sentence; a name in ``about`` is one of a node of ``stage``."""
        cid = self.compilation.id if self.compilation is not None else ""
        self.told.append(
            Sentence(
                key,
                self.language.say(key, values),
                self.chapter,
                cid,
                stage,
                tuple((cid, stage, name) if isinstance(name, str) else name for name in about),
                tuple((name, value.value) for name, value in values.items() if isinstance(value, Amount)),
            )
        )

    def absent(self, stages: Callable[[str], bool]) -> None:
        """Which of some stages are not there, and why: those of one reason together."""
        found: dict[tuple[str, str], list[str]] = {}
        for stage in self.compilation.stages if self.compilation is not None else ():
            if isinstance(stage, (Missing, NotApplicable)) and stages(stage.stage):
                kind = "missing" if isinstance(stage, Missing) else "none"
                found.setdefault((kind, stage.reason or UNSAID), []).append(stage.stage)
        for (kind, reason), keys in found.items():
            key = kind if len(keys) == 1 else f"{kind}_many"
            self.say(key, keys[0], names=Names(tuple(keys)), reason=reason)
