"""Under which conditions a compilation may be used again, and which line of the program made each of them."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from ...record.graph import Frame
from ...record.program import GuardOrigin
from ..frames import dynamo, left_to_python
from ..graphs import fx
from ..ground import torch_source
from . import scopes
from .observers import noting, observe

_USER = re.compile(r"^(?P<text>.*)  # (?P<file>\S.*):(?P<line>\d+) in (?P<function>\S+)$", re.DOTALL)


@observe("torch._dynamo.guards:CheckFunctionManager.__init__", "guards")
def check_function(real: Any, manager: Any, code: Any, output: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Dynamo makes the guards of a compile."""
    result = real(manager, code, output, *args, **kwargs)
    visiting = scopes.current()
    if visiting is not None and output is not None:
        with noting(visiting.scopes, "guards"):
            visiting.guards = (*_of_values(output), *_of_sizes(output))
    return result


def _of_values(output: Any) -> list[GuardOrigin]:
    found = []
    for guard in sorted(output.guards):
        create = getattr(guard, "create_fn_name", None)
        kind = str(create() if callable(create) else create or "")
        parts = tuple(dynamo.stable(str(line)) for line in (guard.code_list or ()))
        if kind == "SHAPE_ENV":
            continue  # its parts are told by the sizes
        source = dynamo.stable(str(guard.name or ""))
        found.append(GuardOrigin(" and ".join(parts) or kind, source, kind, _line(guard.user_stack)))
    return found


def _line(stack: Any) -> Frame | None:
    """The line of the program in a stack: the last that is not torch's own."""
    for summary in reversed(stack or ()):
        if not torch_source.of_torch(summary.filename):
            found = fx.frame_of(summary)
            return dataclasses.replace(found, function=left_to_python.plain(found.function))
    return None


def _of_sizes(output: Any) -> list[GuardOrigin]:
    found = []
    for guard in getattr(getattr(output, "shape_env", None), "guards", ()):
        said = _USER.match(str(getattr(guard.sloc, "maybe_user_loc", None) or ""))
        line = None
        if said:
            function = left_to_python.plain(said["function"])
            line = Frame(said["file"], int(said["line"]), function, said["text"].strip())
        found.append(GuardOrigin(str(guard.expr), "", "SHAPE_ENV", line))
    return found
