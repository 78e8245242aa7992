"""Remedies for calls of a library: the templates that ``max-autotune`` times in their place."""

from __future__ import annotations

from compile_lens.record.autotuning import TEMPLATES, no_template_reason
from compile_lens.record.capture import Record

from . import operators

MAX_AUTOTUNE = "mode='max-autotune' times Inductor's own templates against the library"


def no_templates(capture: Record, operator: str) -> str:
    """Return why ``max-autotune`` has no template of an operator to time for the device that the code is for; ``""``
    where it may have some for one of its calls."""
    if operator not in TEMPLATES:
        return "Inductor has no template of it"
    model = capture.target.model if capture.target is not None else None
    types = {
        node.outputs[0].dtype if node.outputs else ""
        for compilation in capture.compilations
        for stage, graph in compilation.graphs.items()
        if stage.endswith("post_grad")
        for node in graph.calls
        if operators.base_name(node.target.removeprefix("aten.").partition(".")[0]) == operator
    }
    reasons = [
        no_template_reason(capture.environment.target, model, operator, dtype) for dtype in types or {""}
    ]
    return reasons[0] if all(reasons) else ""


def template_remedy(capture: Record, operator: str) -> str:
    """Return how the templates of an operator are tried; ``""`` where there is none, or they are tried already."""
    if no_templates(capture, operators.base_name(operator)) or times_templates(capture):
        return ""
    return MAX_AUTOTUNE if capture.target is None else f"{MAX_AUTOTUNE}, which needs the device"


def times_templates(capture: Record) -> bool:
    """Return True if the capture was made with templates to be timed."""
    options = dict(capture.options.options)
    mode = capture.options.mode or ""
    return mode.startswith("max-autotune") or "True" in (
        options.get("max_autotune"),
        options.get("max_autotune_gemm"),
    )
