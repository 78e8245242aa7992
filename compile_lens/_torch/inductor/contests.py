"""Templates that ``max-autotune`` would time on a device that is not there: kept, and none of them chosen.

Where Inductor has several ways to compute an operator, it times them. Here the first that is a library's function is
written, as torch itself does where no timing came; the others are in the record with the text that would be timed.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

from ...record.autotuning import Autotuning
from ...record.kernel import Kernel
from ...record.machine_code import Candidate
from ..ground.hooks import hook
from ..ground.recorder import Draft
from ..targets import device_refusals
from . import scheduler_nodes

SELECT = "torch._inductor.select_algorithm:AlgorithmSelectorCache.__call__"

_LANGUAGES = {
    "TritonTemplateCaller": "triton",
    "ExternKernelCaller": "extern",
    "SubgraphChoiceCaller": "graph",
}
"""By the class of torch's that stands for a way. Of another one the name is told."""


def begin(draft: Draft, phase: str) -> None:
    """A phase is lowered, perhaps once more: what was kept of it was of another attempt."""
    draft.contests = [one for one in draft.contests if one.phase != phase]


@hook(SELECT)
def select(
    draft: Draft, real: Any, selector: Any, name: Any, choices: Any, inputs: Any, *args: Any, **kwargs: Any
) -> Any:
    """Inductor has ways for an operator, and would time them if there are several."""
    import torch._inductor.config as config

    model = draft.recorder.target.model
    if draft.recorder.target.stand_in is None or model is None:
        return real(selector, name, choices, inputs, *args, **kwargs)
    for narrowed in getattr(selector, "preprocessing_fns", ()):
        choices = narrowed(choices)
    if len(choices) > 1 and not getattr(config, "deterministic", False):
        contenders = tuple(_contender(choice, draft.phase) for choice in choices)
        externs = [i for i, one in enumerate(contenders) if one.language == "extern"]
        # One that the device refuses is timed as infinitely slow.
        refused = {i for i in externs if device_refusals.find(model, contenders[i].name, inputs)}
        shown = next((i for i in externs if i not in refused), None)
        shown = next((i for i in range(len(contenders)) if i not in refused), 0) if shown is None else shown
        node, given = _node(), tuple(_tensor(one) for one in inputs)
        _put(draft, Autotuning(draft.phase, str(name), (node,) if node else (), given, contenders, shown))
        choices = [choices[shown]]
    return real(selector, name, choices, inputs, *args, **kwargs)


def _put(draft: Draft, found: Autotuning) -> None:
    """Keep it; where it is one that is there already, its node joins that one's."""
    for index, known in enumerate(draft.contests):
        if dataclasses.replace(known, nodes=found.nodes) == found:
            nodes = tuple(dict.fromkeys((*known.nodes, *found.nodes)))
            draft.contests[index] = dataclasses.replace(known, nodes=nodes)
            return
    draft.contests.append(found)


def _contender(choice: Any, phase: str) -> Kernel:
    kind = type(choice).__name__
    language = _LANGUAGES.get(kind, kind.removesuffix("Caller"))
    settings = _settings(str(getattr(choice, "description", "") or ""))
    candidates = (Candidate(settings),) if settings else ()
    if language == "triton":
        asked = choice.bmreq
        text = Path(asked.module_path).read_text(encoding="utf-8")
        return Kernel(str(asked.kernel_name), phase, language, "template", text, candidates=candidates)
    if language == "extern":
        return Kernel(str(choice.choice.call_name()), phase, language, "extern", "")
    graph: Any = getattr(choice, "gm", None)  # an operator that is taken apart, and lowered as its own graph
    text = graph.print_readable(print_output=False) if hasattr(graph, "print_readable") else ""
    return Kernel(re.sub(r"_\d+$", "", str(choice.name)), phase, language, "", text, candidates=candidates)


def _settings(description: str) -> tuple[tuple[str, int], ...]:
    """The numbers of ``BLOCK_M=128, EVEN_K=True, num_warps=4``: sizes, warps and stages. The rest is in the text."""
    try:
        call = ast.parse(f"f({description})", mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) else []
        values = [(word.arg, ast.literal_eval(word.value)) for word in keywords]
    except (SyntaxError, ValueError):  # another form of it: the text has them
        return ()
    return tuple((name, value) for name, value in values if name and type(value) is int)


def _node() -> str:
    """The node that is being lowered, as the record calls it."""
    from torch._inductor.virtualized import V

    current = getattr(V.graph, "current_node", None)
    return "" if current is None else f"{scheduler_nodes.prefix(V.graph)}{current.name}"


def _tensor(node: Any) -> str:
    sizes = ", ".join(str(size) for size in node.get_size())
    return f"{str(node.get_dtype()).removeprefix('torch.')}[{sizes}]"
