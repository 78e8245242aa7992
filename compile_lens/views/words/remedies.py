"""Words for remedies of recompiles, and for the origin of guards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from compile_lens.measures.program import is_library
from compile_lens.measures.remedies import SIZE, sizes_made_dynamic
from compile_lens.record import syntax
from compile_lens.record.dimension_marks import UNMARKED, is_limited, is_static
from compile_lens.record.failed_guards import (
    ABSENT,
    DEFAULT_DEVICE,
    DELETED,
    INFERENCE,
    MODES,
    NORMAL,
    OTHER,
    SAME,
    SET,
    STATE,
    THERE,
)
from compile_lens.record.graph import Frame
from compile_lens.record.guard_values import guarded_values, is_computed
from compile_lens.record.messages import first_names, in_program_words, plain_source, without_stack_names
from compile_lens.record.program import FailedGuard, FrameEvaluation, ProgramFrame, Recompilation

from .break_advice import STEP_COMPILED
from .labels import UNSAID

MAX_ITEMS = 3
"""Maximum number of items listed; the rest is only counted."""

EACH = "compile one function for each"


def for_each(torch: str, sharing: int = 0) -> str:
    """Return the remedy that gives each of several values its own cache entries. ``torch`` is the version, ``sharing``
    the number of compiled functions that share the code; for these, compiling again does not separate the entries."""
    version = re.match(r"(\d+)\.(\d+)", torch)
    if version is not None and (int(version[1]), int(version[2])) < _ISOLATES:
        alone = f"{EACH}, from code of its own"
        return alone if sharing < 2 else f"raise their limit, torch._dynamo.config.{LIMIT_OF_ENTRIES}"
    newer = " (torch 2.13 and newer)" if version is None else ""
    how = f"torch.compile(…, isolate_recompiles=True){newer}"
    if sharing < 2:
        return f"{EACH} with {how}"
    return f"give each of the compiled functions that share this code cache entries of its own with {how}"


_ISOLATES = (2, 13)
"""First torch version with ``isolate_recompiles``."""
LIMIT_OF_ENTRIES = "recompile_limit"


def to_try(
    recompilation: Recompilation,
    through: str = "",
    rest: bool = False,
    each: str = EACH,
    library: bool = False,
) -> str:
    """Return the change that avoids a recompile of this kind; ``""`` if none is known. ``through`` is torch's function
    that calls the compiled one, if any; ``rest``: the code follows a graph break; ``library``: the code is not the
    program's."""
    tried = _to_try(recompilation, through, rest, library).replace(EACH, each)
    if recompilation.change is not None and tried == recompilation.change.hint and EACH not in each:
        tried = f"{tried} Or {each}" if tried else ""
    names = () if recompilation.change is None else recompilation.change.free_variables
    return in_program_words(tried, names)


def _to_try(recompilation: Recompilation, through: str, rest: bool, library: bool) -> str:
    failed = recompilation.change
    if failed is None:
        return ""
    if failed.hint:
        return failed.hint
    if _LEARNING_RATE.fullmatch(failed.source) and _is_number(failed.old):
        return (
            "give the optimizer its lr as a tensor, torch.tensor(0.1) for instance: what a scheduler writes into it "
            "needs no variant"
        )
    if through and failed.source in _WHICH:
        return (
            "torch compiles builtins, partials and its own modules as variants of one function of torch's: compile "
            "functions of your own that call them"
        )
    if ".stride(" in failed.source and ".size(" not in failed.source:
        tensor = failed.source.partition(".stride(")[0]
        return (
            f"give {tensor} one layout each time, as {tensor}.contiguous() before the call does, which copies what has "
            "another one: a layout needs a variant, whatever sizes may vary"
        )
    if ".size(" in failed.source:
        return _of_sizes(recompilation, failed, rest)
    if "nan" in (failed.old, failed.new):
        return "torch has a variant of its own for nan, whatever is changed: give no such number"
    numbers = not two_types(failed) and all(map(_is_number, (failed.old, failed.new)))
    if recompilation.constants_only and numbers:
        return CONSTANTS
    if types := two_types(failed):
        a, b = map(_article, types)
        return (
            f"give {failed.source} one type each time: {a} and {b} need two variants, with torch.compile(dynamic=True) "
            "too"
        )
    if any(plain_source(d.source) == failed.source for d in recompilation.dynamic):
        if (line := recompilation.specializing_line) is not None:
            if failed.old in ("0", "1"):
                return (
                    f"{place(line)} tells {failed.old} from other numbers, by a branch or as a size: it has a variant "
                    "of its own, and the new one takes others"
                )
            asks = f"{place(line)} depends on the value, so that each result needs a variant"
            return asks if is_library(line) else f"{asks}: decide it outside"
        return (
            "the new variant takes other values; torch.compile(dynamic=True) makes such a variant at the first call, "
            "and as a tensor it needs none where only arithmetic uses it"
        )
    if _is_first_step(failed):
        return "an optimizer makes its state in its first step: this is one variant more, whatever is changed"
    if library and not failed.text.startswith(STATE):  # the program cannot change its objects and values
        return EACH
    if (tried := _of_objects(failed)) is not None:
        return tried
    if failed.source.endswith((".dtype", ".device", ".requires_grad", ".dim()")):
        return "call it with one kind of tensor, or compile one function for each"
    return _of_values(failed)


def of_dimensions(remedy: str, recompilations: Iterable[Recompilation]) -> str:
    """Return the remedy for sizes of these recompilations with the tensors and dimensions to mark, as the function
    names them, or with what numbers need that changed too; any other remedy as it is."""
    every = tuple(recompilations)
    sources = dict.fromkeys(source for one in every for source in sizes_made_dynamic(one))
    symbols = dict.fromkeys(plain_source(dim.source) for one in every for dim in one.dynamic)
    numbers = [source for source in symbols if not _OF_LAYOUT.search(source)]
    if numbers and _UNBACKED in remedy:
        names = first_names(numbers, MAX_ITEMS)
        return f"{remedy}. A number changed too, {names}: compile with torch.compile(dynamic=True) as well"
    sizes = [size for source in sources if (size := _dimension(source)) != _ANY_DIMENSION]
    if remedy != MARK or not sizes:
        return remedy
    if numbers:
        return f"{SYMBOLS_AT_FIRST}, {first_names(numbers, MAX_ITEMS)}"
    head, call = MARK.removesuffix(_ANY_DIMENSION).rsplit(" ", 1)
    calls = [f"{call}{size}" for size in sizes]
    head = head if len(calls) == 1 else head.replace("dimension", "dimensions")
    more = f"; and {len(calls) - MAX_ITEMS} more" if len(calls) > MAX_ITEMS else ""
    return f"{head} {'; '.join(calls[:MAX_ITEMS])}{more}"


def _own(line: Frame | None) -> Frame | None:
    """Return the line if it is the program's, else None."""
    return None if line is None or is_library(line) else line


_TENSOR = re.compile(r"\w+\[[\w, ]*\]$")
"""Description of a tensor: ``float32[4, 3]``."""
_LENGTH = re.compile(r"len\((?P<owner>.*)\)$")
_STATE_OF_OPTIMIZER = re.compile(r"self\.state\b.*\]$")
_KEYS = re.compile(r"list\(dict\.keys\((?P<owner>.*)\)\)\[\d+\]$")


def _is_first_step(failed: FailedGuard) -> bool:
    """Return True if an optimizer had no state yet."""
    length = _LENGTH.match(failed.source)
    return failed.old == "0" and length is not None and bool(_STATE_OF_OPTIMIZER.match(length["owner"]))


def _of_values(failed: FailedGuard) -> str:
    """Return the remedy if a value changed; ``""`` if none is known."""
    if not failed.source or not (failed.old or failed.new):
        return ""
    if length := _LENGTH.match(failed.source):
        owner = length["owner"]
        return (
            f"give {owner} one length each time (if the function fills it, fill it outside), or compile one function "
            "for each"
        )
    if keys := _KEYS.match(failed.source):
        return f"give {keys['owner']} the same keys each time, or compile one function for each"
    if failed.source.endswith(".__code__"):
        owner = failed.source.removesuffix(".__code__")
        return f"give {owner} few different functions: each needs a variant; or compile one function for each"
    values = {failed.old, failed.new}
    if "None" in values and any(_TENSOR.match(value) for value in values):
        return f"give {failed.source} a tensor each time or None each time, or compile one function for each"
    if values == {"True", "False"}:
        return (
            "True and False need a variant each, which is one compile more; or compile one function for each"
        )
    if all(_is_number(value) for value in values if value):
        return (
            f"give {failed.source} few different values, or keep it out of the function; as a tensor it needs no "
            "variant where only arithmetic uses it (an if on it breaks the graph)"
        )
    return (
        f"give {failed.source} few different values: each needs a variant; or compile one function for each"
    )


def two_types(failed: FailedGuard) -> tuple[str, str] | None:
    """Return the types of a number whose type changed, such as ``("float", "int")``, which needs two variants; else
    None."""
    try:
        old, new = (type(syntax.literal(text)) for text in (failed.old, failed.new))
    except (ValueError, SyntaxError):
        return None
    return (old.__name__, new.__name__) if old is not new and {old, new} <= {bool, int, float} else None


def _is_name(text: str) -> bool:
    """Return True if a text is an object's own name, not that of its class (``a Config``)."""
    return bool(text) and not text.startswith(("a ", "another "))


def _article(name: str) -> str:
    return f"an {name}" if name == "int" else f"a {name}"


def _is_number(text: str) -> bool:
    try:
        return type(syntax.literal(text.removeprefix("at least ").removeprefix("at most "))) in (int, float)
    except (ValueError, SyntaxError):
        return False


_OF_LAYOUT = re.compile(r"\.(size|stride|storage_offset)\(")
_UNBACKED = "torch._dynamo.decorators.mark_unbacked"
_ANY_DIMENSION = "(tensor, dim)"
MARK = f"mark the dimension before the first call: torch._dynamo.mark_dynamic{_ANY_DIMENSION}"
SYMBOL_AT_FIRST = (
    "torch.compile(dynamic=True) makes the size a symbol at the first call; to mark an argument does not "
    "help where the function made the tensor"
)

SYMBOLS_AT_FIRST = (
    "torch.compile(dynamic=True) makes sizes and numbers symbols at the first call; to mark the dimension alone does "
    "not help, since a number changed too"
)


CONSTANTS = (
    "leave out dynamic=False, or torch._dynamo.config.automatic_dynamic_shapes = False: with it each size and number "
    "has a variant of its own"
)


def _dimension(source: str) -> str:
    """Return the arguments that mark a size as the function names it: ``(x, 0)``."""
    size = SIZE.match(source)
    return _ANY_DIMENSION if size is None else f"({size['tensor']}, {size['dim']})"


def _of_sizes(recompilation: Recompilation, failed: FailedGuard, rest: bool) -> str:
    """Return the remedy if a size changed."""
    line = _own(failed.line) or _own(recompilation.specializing_line)
    computed = is_computed(failed.source)
    own_form = not computed and bool({failed.old, *failed.new.split(", ")} & {"0", "1"})
    asks = f"{place(line)} depends on the size, so that each result needs a variant: decide it outside"
    if not own_form and (tried := _of_marks(failed)):
        return tried
    if line is not None and not own_form:
        return asks
    if own_form:
        alone = (
            "torch has a variant of its own for a size of 0 or 1, which marking it as dynamic does not change: give no "
            "such size"
        )
        if line is not None:
            return f"{alone}. Beside that, {asks}"
        if rest or ", " in failed.source:
            return alone
        return (
            f"{alone}. Where nothing hangs on the size, or makes it as large as another one (there the call raises), "
            f"{_UNBACKED}{_dimension(failed.source)} before the first call makes one "
            "variant for all; one more may be made where another dimension's stride hangs on the size, as in a cache "
            "that grows from empty"
        )
    if computed:
        return f"give sizes of which {failed.source} is the same each time (pad, or bucket), or {EACH}"
    if ", " in failed.source:
        return "a variant holds for sizes that are so to each other: give always such, or compile one function for each"
    if recompilation.constants_only:
        return CONSTANTS
    if _OF_MODULE.search(failed.source):
        return f"torch takes the sizes of a module's own tensors as constants: give few different ones, or {EACH}"
    became = any(plain_source(d.source) == failed.source for d in recompilation.dynamic)
    if rest:  # marking an argument does not mark a tensor created in the function
        return SYMBOL_AT_FIRST
    if failed.new_mark:
        return f"call torch._dynamo.{failed.new_mark} before the first call too: the older variant had no such mark"
    if became and failed.old.isdigit():
        return MARK
    return "give few different sizes (pad, or bucket), or mark the dimension as dynamic before the first call"


def _of_marks(failed: FailedGuard) -> str:
    """Return the remedy if the program's own mark on a size makes variants; ``""`` for other sizes."""
    for mark in filter(is_static, (failed.new_mark, failed.old_mark)):
        return (
            f"torch._dynamo.{mark} gives each size a variant: give few different sizes (pad, or bucket), or mark the "
            "dimension as dynamic instead"
        )
    if is_limited(failed.old_mark):
        return (
            f"the older variant takes only the sizes of torch._dynamo.{failed.old_mark}: give min and max that hold "
            "all sizes, or leave them out"
        )
    return ""


_OF_MODULE = re.compile(r"\._(?:parameters|buffers)\[")

_SAME_OBJECT = "give it the same object each time, made once, or compile one function for each"
_ON_STACK = (
    "each call makes a new one, as the method in xs.append(t.item()), and it waits while the graph breaks: write "
    "value = t.item() on a line before"
)

_LEARNING_RATE = re.compile(r"self\.param_groups\[\d+\]\['lr'\]")
_WHICH = ("fn", "type(fn)", "fn.__code__")
"""Names of the called function in torch's wrapper function."""


def _of_objects(failed: FailedGuard) -> str | None:
    """Return the remedy if a torch setting, a class or the identity of an object changed; None for others."""
    if failed.text.startswith(STATE):
        return f"call it always under one {failed.source}, or compile one function for each"
    if UNMARKED in (failed.old, failed.new) or "mark_" in failed.new:
        return "mark the sizes of a tensor the same way before each call, also before the first one"
    if failed.source == MODES:
        return "call it always under the same ones (torch.set_default_device is one), or compile one function for each"
    if failed.source == DEFAULT_DEVICE:
        return "call it always under one default device, or compile one function for each"
    if failed.source.startswith("type(") and failed.source.endswith(")"):
        return "call it with one class, or compile one function for each"
    if failed.text.startswith("___check_obj_id("):
        if _is_name(failed.old) and _is_name(failed.new):
            return None  # members of an Enum, classes or functions, each of which exists once already
        return _SAME_OBJECT
    if failed.old == DELETED:
        return _ON_STACK if without_stack_names(failed.source) != failed.source else _SAME_OBJECT
    if failed.old.startswith((SAME, OTHER)):  # even if no line tests it
        return (
            "torch makes one variant for arguments that are one object, and another one for others: give it one for "
            "both each time, or different ones each time (as copies)"
        )
    if {failed.old, failed.new} == {NORMAL, INFERENCE}:
        return (
            "make it under torch.inference_mode each time, or never: a clone() that is made outside of that mode is a "
            "normal tensor"
        )
    if failed.old.startswith(("with the key ", "without ")):
        return "call it with one kind of tensor, or compile one function for each"
    if failed.old in (SET, THERE, ABSENT) or "contains" in failed.text.partition("(")[0]:
        return "give it what holds the same names each time, or compile one function for each"
    return None


def of_library(at: Frame, reached: Frame, alone: bool = False) -> str:
    """Return the remedy if the line is in a library that the program called at ``reached``. ``alone``: the compiled
    function is the library's."""
    name = os.path.basename(at.file)
    on_purpose = "/torch/optim/" in at.file.replace(os.sep, "/")
    if alone:
        line = f"the line is in {name}, not in your program"
        return f"{line}. Dynamo breaks there on purpose, and {STEP_COMPILED}" if on_purpose else line
    where = f"{place(reached)}{f' ({reached.text.strip()})' if reached.text.strip() else ''}"
    where = f"the line is in {name}, not in your program, which came there from {where}"
    if on_purpose:
        purpose = "torch breaks there on purpose, and compiles the optimizer's step after it by itself"
        return f"{where}: {purpose}. Keep the call out of the compiled function, or compile it alone"
    return f"{where}: keep that call out of the compiled function, or replace it"


FIRST_USED = "none; first used at"
NOTE = " No line asks for what torch checks of each tensor: it does so from the line on where the tensor is first used."


def place(frame: Frame | None) -> str:
    """Return a line as ``train.py:31``."""
    return f"{os.path.basename(frame.file)}:{frame.line}" if frame is not None and frame.file else UNSAID


class GuardLines:
    """The lines of the program that created the guards of one function."""

    def __init__(self, frame: ProgramFrame) -> None:
        self._variants: dict[str, list[FrameEvaluation]] = {}
        for evaluation in frame.evaluations:
            if evaluation.guards:
                self._variants.setdefault(evaluation.id, []).append(evaluation)

    def of(self, failed: FailedGuard, evaluation: FrameEvaluation) -> str:
        """Return the line (``t.py:3``), or that no line created the guard and where the tensor is first used; ``""`` if
        unknown."""
        if failed.line is not None:
            return place(failed.line)
        if not failed.text.startswith("tensor '"):
            return ""
        older = [one for one in self._variants.get(failed.id, ()) if one.number < evaluation.number]
        names = set(guarded_values(failed.source))
        guards = older[-1].guards if older else ()
        lines = {
            place(guard.line)
            for guard in guards
            if guard.kind == "TENSOR_MATCH" and guard.line is not None and plain_source(guard.source) in names
        }
        return f"{FIRST_USED} {lines.pop()}" if len(lines) == 1 else ""
