"""Templates that ``max-autotune`` would time on an absent device, recorded without choosing one.

If Inductor has several candidates for an operator, it times them. Here code is generated for the first library call
among them, as in torch without timings; the others are recorded with the text that would be timed.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

from ...record import claims, syntax
from ...record.autotuning import Autotuning
from ...record.kernel import Candidate, Kernel
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
"""Language of a candidate by its class in torch; other classes keep their name."""


@hook(SELECT, claims.AUTOTUNING)
def select(
    draft: Draft, real: Any, selector: Any, name: Any, choices: Any, inputs: Any, *args: Any, **kwargs: Any
) -> Any:
    """Record the candidates for an operator, if there are several for Inductor to time."""
    import torch._inductor.config as config

    model = draft.recorder.target.model
    if draft.recorder.target.stand_in is None or model is None:
        return real(selector, name, choices, inputs, *args, **kwargs)
    for narrowed in getattr(selector, "preprocessing_fns", ()):
        choices = narrowed(choices)
    if len(choices) > 1 and not getattr(config, "deterministic", False):
        contenders = tuple(_contender(choice, draft.phase) for choice in choices)
        externs = [i for i, one in enumerate(contenders) if one.language == "extern"]
        # Torch's timing of a call that the device refuses is infinite.
        refused = {i for i in externs if device_refusals.refusal(model, contenders[i].name, inputs)}
        shown = next((i for i in externs if i not in refused), None)
        shown = next((i for i in range(len(contenders)) if i not in refused), 0) if shown is None else shown
        node, tensors = _node(), tuple(_tensor(one) for one in inputs)
        _record(
            draft, Autotuning(draft.phase, str(name), (node,) if node else (), tensors, contenders, shown)
        )
        choices = [choices[shown]]
    return real(selector, name, choices, inputs, *args, **kwargs)


def _record(draft: Draft, contest: Autotuning) -> None:
    """Record a contest; if an equal one is already recorded, add the node to it."""
    for index, known in enumerate(draft.contests):
        if dataclasses.replace(known, nodes=contest.nodes) == contest:
            nodes = tuple(dict.fromkeys((*known.nodes, *contest.nodes)))
            draft.contests[index] = dataclasses.replace(known, nodes=nodes)
            return
    draft.contests.append(contest)


def _contender(choice: Any, phase: str) -> Kernel:
    kind = type(choice).__name__
    language = _LANGUAGES.get(kind, kind.removesuffix("Caller"))
    settings = _settings(str(getattr(choice, "description", "") or ""))
    candidates = (Candidate(settings),) if settings else ()
    if language == "triton":
        request = choice.bmreq
        text = Path(request.module_path).read_text(encoding="utf-8")
        return Kernel(str(request.kernel_name), phase, language, "template", text, candidates=candidates)
    if language == "extern":
        return Kernel(str(choice.choice.call_name()), phase, language, "extern", "")
    graph: Any = getattr(
        choice, "gm", None
    )  # an operator that is decomposed and lowered as a graph of its own
    text = graph.print_readable(print_output=False) if hasattr(graph, "print_readable") else ""
    return Kernel(re.sub(r"_\d+$", "", str(choice.name)), phase, language, "", text, candidates=candidates)


def _settings(description: str) -> tuple[tuple[str, int], ...]:
    """Return the integers of ``BLOCK_M=128, EVEN_K=True, num_warps=4``: sizes, warps and stages."""
    try:
        call = syntax.parse(f"f({description})", mode="eval").body
        keywords = call.keywords if isinstance(call, ast.Call) else []
        values = [(word.arg, ast.literal_eval(word.value)) for word in keywords]
    except (SyntaxError, ValueError):  # another format; the text has the settings
        return ()
    return tuple((name, value) for name, value in values if name and type(value) is int)


def _node() -> str:
    """Return the name, in the record, of the node being lowered; ``""`` for none."""
    from torch._inductor.virtualized import V

    current = getattr(V.graph, "current_node", None)
    return "" if current is None else f"{scheduler_nodes.prefix(V.graph)}{current.name}"


def _tensor(node: Any) -> str:
    sizes = ", ".join(str(size) for size in node.get_size())
    return f"{str(node.get_dtype()).removeprefix('torch.')}[{sizes}]"
