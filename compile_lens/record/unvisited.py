"""Code of a program that ran eagerly and is in no visit: Dynamo was not asked about it, or leaves its like to Python
always."""

from __future__ import annotations

from dataclasses import dataclass

from .breaks import Ending
from .graph import Frame

STANCE = "stance"
INSIDE = "inside of a call"
WRAPPED = "module of torch's"
KINDS = (STANCE, INSIDE, WRAPPED)
"""What ``Unvisited.kind`` can be."""


@dataclass(frozen=True)
class Unvisited:
    """A function that ran without compiled code, or may have, though no visit says so.

    Attributes:
        kind: ``stance``: the program told torch not to compile (``torch.compiler.set_stance``). ``inside of a call``:
            the graph broke inside of it, its call was left to Python, and Dynamo was not asked about it in that call,
            as in ``torch.utils.checkpoint``. ``module of torch's``: a module of ``torch.nn`` that a wrapper (DDP)
            calls; Dynamo leaves those to Python where no function of the program calls them.
        why: what kept Dynamo from it, with the line and what to try.
        function, file, line: which function, and where it begins; ``""`` and 0 of what is not written in Python.
        code: the lines that have code.
        eager: the lines that were left to Python; they ran if Python reached them. None where it is not certain that
            any did.
        caller: the line of the program that called it, of the first time.
        times: how often it was called so, counted; 0: it is not known, since Dynamo is not asked about each call.
        certain: whether each of these calls ran eagerly; else those did that fitted no compiled form.
    """

    kind: str
    why: Ending
    function: str
    file: str = ""
    line: int = 0
    code: tuple[tuple[int, int], ...] = ()
    eager: tuple[tuple[int, int], ...] = ()
    caller: Frame | None = None
    times: int = 0
    certain: bool = True
