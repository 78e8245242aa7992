"""Code of a program that ran eagerly without a visit: Dynamo was not asked about it in that call, or leaves its like to
Python always."""

from __future__ import annotations

from dataclasses import dataclass

from .breaks import Ending
from .graph import Frame

STANCE = "stance"
EAGER_CALL = "inside an eager call"
TORCH_MODULE = "torch module"
SKIPPED_BEFORE = "skipped before the watch"
KINDS = (STANCE, EAGER_CALL, TORCH_MODULE, SKIPPED_BEFORE)
"""Values of ``EagerFrame.kind``."""


@dataclass(frozen=True)
class EagerFrame:
    """A function that ran without compiled code, or may have, though no visit says so.

    Attributes:
        kind: ``stance``: the program told torch not to compile (``torch.compiler.set_stance``).
            ``inside an eager call``: its call was left to Python, most often since the graph broke inside of it, and
            Dynamo was not asked about
            it in that call: what ``torch.utils.checkpoint`` calls outside of a graph was seen to run so, and the rest
            is not certain. ``torch module``: a module of ``torch.nn`` that a wrapper (DDP)
            calls; Dynamo leaves those to Python where no function of the program calls them.
            ``skipped before the watch``: Dynamo left it to Python before the watch, and is not asked again.
        cause: what kept Dynamo from it, with the line and what to try.
        function, file, line: which function, and where it begins; ``""`` and 0 of what is not written in Python.
        code_lines: the lines that have code.
        eager_lines: the lines that were left to Python; they ran if Python reached them. None where it is not certain
            that any did.
        caller: the line of the program that called it, of the first time.
        count: how often it was called so, counted; 0: it is not known, since Dynamo is not asked about each call, and
            of what a checkpoint calls in turn just the first time was looked at, and of what was left before only the
            calls of what ``torch.compile`` gave back are seen.
        certain: whether each of these calls ran eagerly. Else, under a stance, those did that fitted no compiled form;
            inside of a call it is so as far as is known: nothing says that Dynamo was off, but that it was not asked;
            of a module that was left before, torch's function around it may have run a form that another one made.
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
