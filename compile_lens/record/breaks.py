"""Places where compiled code ends and Python runs: graph breaks, skipped functions, recompiles; and code that ran
eagerly without being evaluated by Dynamo."""

from __future__ import annotations

from dataclasses import dataclass

from .graph import Frame

BREAK = "graph break"
"""Kind of an ``Ending``: Dynamo cannot trace the code."""

LIMIT = "recompile limit"
"""Kind of an ``Ending``: the function reached its recompile limit."""

NOT_TRACED = "not traced"
"""Kind of an ``Ending``: Dynamo does not trace such functions, or failed on this one."""

WHOLE = "function"
REST = "rest of a function"
NEVER_RAN = "never ran"
"""Values of ``Skip.kind``, besides ``LIMIT``."""


@dataclass(frozen=True)
class Ending:
    """End of compiled code, and its reason.

    Attributes:
        kind: ``return``, ``graph break``, ``recompile limit`` or ``not traced``.
        reason: the compiler's own message.
        frames: the program's stack at that place, callers first: the last frame is the line itself.
        hint: the compiler's advice.
        link: the compiler's own page about it, ``""`` if there is none.
        branch: the line that branches on the value of a tensor there; None if no such line is known.
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
        kind: ``function``: all of it, in every later call. ``rest of a function``: the code after the end of a
            graph. ``recompile limit``: each call that matches no variant. ``never ran``: a coroutine or a generator
            that was created but whose body never ran, compiled or not.
        function, file, line: the function.
        cause: the reason; a ``graph break`` is also in ``Capture.breaks``.
        lines: the lines that run eagerly if Python reaches them, as ranges (first and last, from 1).
        consequence: the effect on the function in the compiler's words, if those say more than ``kind``.
        compilation: id of the compilation that ended before it; ``""`` if there is none.
        count: how often Dynamo skipped it. Dynamo does not see later calls, so these are not counted.
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
    """One of several calls of one capture, with its compilations and skipped functions.

    Attributes:
        inputs: a line for each argument (``x: float32[3] cpu``).
        compiled: ids of the compilations made in it.
        executed: ids of the compilations whose graphs it ran, in order; empty if no compiled graph ran.
        skipped: functions that Dynamo skipped in it, each with the kind of skip (``f: recompile limit``).
    """

    inputs: tuple[str, ...] = ()
    compiled: tuple[str, ...] = ()
    executed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Recompile:
    """One recompile of a function, counted once however many guards failed, as torch does.

    Attributes:
        id: the new compilation.
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
    """A function that ran without compiled code, or may have, without a frame evaluation.

    Attributes:
        kind: ``stance``: the program told torch not to compile (``torch.compiler.set_stance``).
            ``inside an eager call``: its caller ran eagerly, mostly after a graph break inside the call, and Dynamo
            did not evaluate it in that call: this was observed for functions that ``torch.utils.checkpoint`` calls
            outside a graph; for others it is not certain. ``torch module``: a module of ``torch.nn`` called by a
            wrapper (DDP); Dynamo leaves these to Python if no function of the program calls them.
            ``skipped before the watch``: Dynamo skipped it before the watch, and does not evaluate it again.
        cause: the reason why Dynamo did not evaluate it, with the line and advice.
        function, file, line: the function and its first line; ``""`` and 0 if it is not written in Python.
        code_lines: the lines that have code.
        eager_lines: the lines that run eagerly if Python reaches them; empty if none certainly did.
        caller: the line of the program that first called it.
        count: number of such calls; 0 if not known: Dynamo is not asked about each call, of the functions that a
            checkpoint calls only the first call was observed, and of those skipped before only calls of the result of
            ``torch.compile``.
        certain: whether each of these calls ran eagerly. If not: under a stance, those did that matched no variant;
            inside a call, Dynamo was not seen to evaluate them, but it was not seen to be off either; for a module
            skipped before, torch's wrapper may have run a variant compiled for another module.
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
