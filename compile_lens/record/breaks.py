"""Places where compiled code ends and Python runs: graph breaks, functions that were skipped, recompiles; and code that
ran eagerly though Dynamo was not asked about it in that call, or leaves its like to Python always."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame

BREAK = "graph break"
"""Kind of an ``Ending``: Dynamo met what it cannot trace."""

LIMIT = "recompile limit"
"""Kind of an ``Ending``: the function was compiled so often that Dynamo gave it up."""

NOT_TRACED = "not traced"
"""Kind of an ``Ending``: Dynamo does not look at such functions, or failed on it."""

WHOLE = "function"
REST = "rest of a function"
NEVER_RAN = "never ran"
"""These and ``LIMIT`` are what ``Skip.kind`` can be."""


@dataclass(frozen=True)
class Ending:
    """End of compiled code, and its reason.

    Attributes:
        kind: ``return``, ``graph break``, ``recompile limit`` or ``not traced``.
        reason: the compiler's own message.
        frames: the stack of the program at that place, callers first: the last one is the line itself.
        hint: what the compiler advises.
        link: the compiler's own page about it, ``""`` where it has none.
        branch: the line that branches on the number that a tensor held there; None where no such line is known.
    """

    kind: str
    reason: str = ""
    frames: tuple[Frame, ...] = ()
    hint: str = ""
    link: str = ""
    branch: Frame | None = None


@dataclass(frozen=True)
class Skip:
    """A part of the program that was not compiled: Python ran it, operator by operator.

    Attributes:
        kind: ``function``: all of it, every time from then on. ``rest of a function``: what follows the end of a
            graph. ``recompile limit``: each call that fits none of the variants. ``never ran``: a
            coroutine or a generator that was made, and whose body nothing ran, compiled or not.
        function, file, line: of which function.
        cause: why; a ``graph break`` is among ``Capture.breaks`` too.
        lines: the lines that run eagerly if Python reaches them, as ranges (first and last, from 1).
        consequence: what became of the function for it, in the compiler's words where those say more than ``kind``.
        compilation: id of the compilation that it is the rest of; ``""`` where there is none.
        count: how often Dynamo gave it up. Calls after that are not seen by Dynamo, and not counted.
    """

    kind: str
    function: str
    file: str
    line: int
    cause: Ending
    lines: tuple[tuple[int, int], ...] = ()
    consequence: str = ""
    compilation: str = ""
    count: int = 1


@dataclass(frozen=True)
class CapturedCall:
    """One of several calls of one capture, and what became of it.

    Attributes:
        inputs: a line for each argument (``x: float32[3] cpu``).
        compiled: ids of the compilations that were made in it.
        executed: ids of the compilations whose graphs it ran, in order; without any, no compiled graph ran.
        skipped: functions that Dynamo gave up in it, each with what was given up (``f: recompile limit``).
    """

    inputs: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    executed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recompile:
    """One time that a function was compiled again, as torch counts: one, however many guards failed.

    Attributes:
        id: the compilation that was made.
        function: its function.
        guards: the guard that failed in each of the older variants, with the variant's compile id.
    """

    id: str
    function: str
    guards: tuple[str, ...]


STANCE = "stance"
EAGER_CALL = "inside an eager call"
TORCH_MODULE = "torch module"
SKIPPED_BEFORE = "skipped before the watch"
KINDS = (STANCE, EAGER_CALL, TORCH_MODULE, SKIPPED_BEFORE)
"""Values of ``EagerFrame.kind``."""


@dataclass(frozen=True)
class EagerFrame:
    """A function that ran without compiled code, or may have, though no frame evaluation says so.

    Attributes:
        kind: ``stance``: the program told torch not to compile (``torch.compiler.set_stance``).
            ``inside an eager call``: its call ran eagerly, most often since the graph broke inside of it, and
            Dynamo was not asked about
            it in that call: what ``torch.utils.checkpoint`` calls outside of a graph was seen to run so, and the rest
            is not certain. ``torch module``: a module of ``torch.nn`` that a wrapper (DDP)
            calls; Dynamo leaves those to Python where no function of the program calls them.
            ``skipped before the watch``: Dynamo left it to Python before the watch, and is not asked again.
        cause: what kept Dynamo from it, with the line and what to try.
        function, file, line: which function, and where it begins; ``""`` and 0 of what is not written in Python.
        code_lines: the lines that have code.
        eager_lines: the lines that run eagerly, if Python reaches them. None where it is not certain
            that any did.
        caller: the line of the program that called it, of the first time.
        count: how often it was called so, counted; 0: it is not known, since Dynamo is not asked about each call, and
            of what a checkpoint calls in turn just the first time was looked at, and of what was left before only the
            calls of what ``torch.compile`` gave back are seen.
        certain: whether each of these calls ran eagerly. Else, under a stance, those did that fitted no variant;
            inside of a call it is so as far as is known: nothing says that Dynamo was off, but that it was not asked;
            of a module that was left before, torch's function around it may have run a variant that another one made.
    """

    kind: str
    cause: Ending
    function: str
    file: str = ""
    line: int = 0
    code_lines: tuple[tuple[int, int], ...] = ()
    eager_lines: tuple[tuple[int, int], ...] = ()
    caller: Frame | None = None
    count: int = 0
    certain: bool = True
