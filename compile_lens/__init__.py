"""Compiler Explorer for ``torch.compile``: every form that a function takes on its way to machine code.

Importing this is instant and changes nothing: a name loads what it needs when it is first used.
"""

from __future__ import annotations

from .record import delegates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import course as course
    from .api.ablate import ablate
    from .api.assemble import assemble
    from .api.capture import capture, show
    from .api.compare import compare
    from .api.divergence import divergence
    from .api.expect import expect
    from .api.generate import generate
    from .api.load import diff, import_trace, load
    from .api.playground.widget import play
    from .api.program import backend, last
    from .api.ranks import merge, rehearse
    from .api.support import support
    from .api.watch import watch
    from .api.what_if import what_if
    from .engine.environment import device
    from .errors import BuildError, ChildError, LayoutError, LensError, RecordError, StageMissing, UsageError
    from .results.capture import Capture, CaptureError, NotOneKernelError
    from .results.expectations import ExpectationError
    from .results.program import Program
    from .trials.benchmark import benchmark
    from .trials.speed import measure_speed
    from .versions import __version__ as __version__

__all__ = [
    "BuildError",
    "Capture",
    "CaptureError",
    "ChildError",
    "ExpectationError",
    "LayoutError",
    "LensError",
    "NotOneKernelError",
    "Program",
    "RecordError",
    "StageMissing",
    "UsageError",
    "ablate",
    "assemble",
    "backend",
    "benchmark",
    "capture",
    "compare",
    "device",
    "diff",
    "divergence",
    "expect",
    "generate",
    "import_trace",
    "last",
    "load",
    "measure_speed",
    "merge",
    "play",
    "rehearse",
    "show",
    "support",
    "watch",
    "what_if",
]

_WITH_CAPTURE = {
    "CaptureError": "results.capture",
    "ExpectationError": "results.expectations",
    "NotOneKernelError": "results.capture",
}
"""Errors that bear the capture that they are about, and their homes."""

_HOMES = {
    "Capture": "results.capture",
    **_WITH_CAPTURE,
    "Program": "results.program",
    "StageMissing": "errors",
    "__version__": "versions",
    "ablate": "api.ablate",
    "assemble": "api.assemble",
    "backend": "api.program",
    "benchmark": "trials.benchmark",
    "capture": "api.capture",
    "compare": "api.compare",
    "device": "engine.environment",
    "diff": "api.load",
    "divergence": "api.divergence",
    "expect": "api.expect",
    "generate": "api.generate",
    "import_trace": "api.load",
    "last": "api.program",
    "load": "api.load",
    "load_ipython_extension": "api.magic",
    "measure_speed": "trials.speed",
    "merge": "api.ranks",
    "play": "api.playground.widget",
    "rehearse": "api.ranks",
    "show": "api.capture",
    "support": "api.support",
    "what_if": "api.what_if",
    "watch": "api.watch",
    **{name: "errors" for name in __all__ if name.endswith("Error") and name not in _WITH_CAPTURE},
}

_ROOMS = ("course",)
"""Rooms that users reach by name: ``compile_lens.course.check``."""

# What users may ask of a thing from a lower room, and where a higher one makes it.
delegates.PLACES.update(
    {
        "Benchmark.__str__": "measures.timing:words",
        "Capture.divergence": "trials.divergence:divergence",
        "Capture.memory_curve": "trials.memory_curve:memory_curve",
        "Capture.unsupported": "api.support:lacking",
        "Capture.verify": "trials.verify:verify",
        "Cost.__str__": "views.findings.cost:text",
        "Expectations.dtype": "api.expect:types",
        "Expectations.no": "api.expect:absence",
        "Graph._repr_html_": "views.render.html.markup:cell_image",
        "Graph._repr_svg_": "views.drawing.svg:for_cell",
        "Graph.to_dot": "views.drawing.dot:to_dot",
        "Graph.to_pydot": "views.drawing.dot:to_pydot",
        "Graph.to_svg": "views.drawing.svg:to_svg",
        "Unsupported.__str__": "views.support:lacking",
        "Program.capture": "api.graph_capture:capture_graph",
        "MemoryUse.__str__": "views.findings.memory:text",
        "Program.what_if": "api.remedies:what_if",
        "Roofline._repr_html_": "views.render.html.markup:cell_image",
        "Roofline.to_svg": "views.drawing.roofline:to_svg",
        "Support.__str__": "views.support:page",
    }
)


def __getattr__(name: str) -> Any:
    __tracebackhide__ = True
    import importlib

    from .errors import needs_torch

    if name in _ROOMS:
        return importlib.import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    try:
        value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise needs_torch(f"compile_lens.{name}") from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS, "__version__", *(name for name in globals() if name.startswith("__"))})
