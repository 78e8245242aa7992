"""Programs with graph breaks of several kinds; as a script, prints what torch logs for them without compile_lens."""

from __future__ import annotations

import json
import logging

import torch


def in_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = x.sin()
        print(end="")
        x = x.cos()
    return x


def around_the_loop(x: torch.Tensor) -> torch.Tensor:
    return in_loop(x.sin()).cos()


def branch(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()
    return y.cos() if y.sum() > 0 else y.tan()


def in_try(x: torch.Tensor) -> torch.Tensor:
    try:
        return x.sin() * x.sum().item()
    except ValueError:
        return x


def several(x: torch.Tensor) -> torch.Tensor:
    y = in_try(x)
    return branch(y) + in_loop(y)


def branch_in_loop(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2):
        x = branch(x)
    return x


def without_a_graph(x: torch.Tensor) -> torch.Tensor:
    y = x.sin()

    class Empty:
        pass

    Empty()
    print(end="")
    return y.cos()


PROGRAMS = (in_loop, around_the_loop, branch, in_try, several, branch_in_loop, without_a_graph)


class _Count(logging.Handler):
    number = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.number += "Graph Break Reason" in record.getMessage()


def main() -> None:
    """Print, for each program, the ids of the compiles that had a graph, and how many graph breaks torch logged."""
    torch._logging.set_logs(graph_breaks=True)
    log = logging.getLogger("torch._dynamo.symbolic_convert.__graph_breaks")
    found = {}
    for program in PROGRAMS:
        torch._dynamo.reset()
        count, ids = _Count(), []

        def backend(gm: torch.fx.GraphModule, _: object, ids: list[str] = ids) -> torch.fx.GraphModule:
            ids.append(str(torch._guards.CompileContext.current_compile_id()))
            return gm

        log.handlers, log.propagate = [count], False
        torch.compile(program, backend=backend)(torch.rand(4))
        found[program.__name__] = {"ids": ids, "breaks": count.number}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
