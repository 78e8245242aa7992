"""Captures for users: records with measures and views as methods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import LensError
from ..record.benchmark import DeviceSpeed
from ..record.capture import Record
from ..record.delegates import delegate
from .text_forms import TextForms

if TYPE_CHECKING:
    from ..measures.chain import Chain
    from ..measures.cost import Cost
    from ..measures.coverage import Coverage
    from ..measures.fusion_answer import Why
    from ..measures.ledger import Ledger
    from ..measures.memory_use import MemoryUse
    from ..measures.roofline import Roofline
    from ..measures.traffic import Traffic
    from ..record.kernel import Kernel
    from ..record.support import Unsupported
    from ..record.verification import Verification
    from ..views.document import Document
    from ..views.story import Story
    from ..views.summaries.summary import Summary
    from .divergence import Divergence
    from .memory_curve import MemoryCurve


class Capture(TextForms, Record):
    # The attributes are documented at the record.
    __doc__ = f"""{(Record.__doc__ or "").rstrip()}

    ``failure`` is a ``Failure``, ``benchmark`` a ``Benchmark``, ``profile`` a ``Profile``, ``target`` a ``Target``;
    ``sources`` hold ``Source``, ``skipped`` ``Skip``, ``ablations`` ``Ablation``. From these follow ``ledger``
    (``Ledger``), ``chain`` (``Chain``), ``kernels`` (``Kernel``), ``code`` (texts by phase), ``breaks`` (``Ending``),
    ``recompiles`` (``Recompile``), ``guards`` (``Guard``), ``decisions`` (``Decision``), ``autotuning``
    (``Autotuning``), ``missing`` (``Missing``), ``not_applicable`` (``NotApplicable``), and by a call ``why``
    (``Why``), ``traffic`` (``Traffic``), ``cost`` (``Cost``), ``memory`` (``MemoryUse``), ``roofline``
    (``Roofline``), ``coverage`` (``Coverage``), ``story`` (``Story``), ``unsupported`` (``Unsupported``), ``verify``
    (``Verification``), ``divergence`` (``Divergence``), ``memory_curve`` (``MemoryCurve``), ``text``, ``brief``,
    ``brief_dict``, ``join``, ``save``, ``to_json`` and ``from_json``.
    ``help(type(capture.ledger))`` and the like describe each.
    """

    _translated = True

    @property
    def ledger(self) -> Ledger:
        """Operators, loops, groups, launches and bytes, before and after."""
        from ..measures.ledger import ledger

        return ledger(self)

    @property
    def chain(self) -> Chain:
        """The links between stages, both ways."""
        from ..measures.chain import Chain

        return Chain(self)

    def coverage(self) -> Coverage:
        """Return the share of the generated code that reaches a Python line, a figure about the tool itself."""
        from ..measures.coverage import coverage

        return coverage(self)

    def why(
        self,
        a: Kernel | tuple[str, str, str] | str | int,
        b: Kernel | tuple[str, str, str] | str | int,
        phase: str = "",
    ) -> Why:
        """Return whether ``a`` and ``b`` are one kernel, and why (see ``compile_lens.measures.fusion``).

        Each is a kernel or its name, the name of a node, a loop or a group, a function or operator that is called
        once, a Python line (``"model.py:7"``; a number if there is one file), a call in one by its columns
        (``"model.py:7:11-23"``) or by name (``"sin@7"``), a module (``"module:layers.3"``), or an address: everything
        that ``chain`` accepts. ``phase`` (``"backward"``, ``"0/1 forward"``) selects one of several graphs. Raise
        ``UsageError`` for an unknown or ambiguous item, such as ``"mul"`` if several nodes multiply.
        """
        from ..measures.fusion import why

        return why(self, a, b, phase)

    def traffic(self) -> Traffic:
        """Return modelled bytes and arithmetic of each kernel (see ``compile_lens.measures.traffic``)."""
        from ..measures.traffic import traffic

        return traffic(self)

    def cost(self, by: Literal["line", "kernel", "module"] = "line", basis: str = "") -> Cost:
        """Return the cost of one call by Python line, kernel or module, most expensive first.

        The cost is measured time if every kernel was timed, else the roofline time if the device's speeds are known,
        else bytes moved; ``basis`` selects one of ``"measured"``, ``"roofline"`` and ``"bytes"``. Raise ``UsageError``
        if that one is not known.
        """
        from ..measures.cost import cost

        return cost(self, by, basis)

    def memory(self, by: Literal["line", "name"] = "line") -> MemoryUse:
        """Return the bytes live at the peak, and those saved for the backward, by Python line or by name.

        Names are the qualified names of parameters and buffers, as in ``named_parameters()``, and the expressions that
        made values. The bytes are modelled (see ``compile_lens.measures.memory_use``). Raise ``UsageError`` for
        another ``by``.

        Example::

            print(capture.memory("name"))
        """
        from ..measures.memory_use import memory_use

        return memory_use(self, by)

    def roofline(self, speed: DeviceSpeed | None = None) -> Roofline:
        """Return whether memory or arithmetic bounds each kernel on a device of the given ``speed``.

        The default is the speed that ``benchmark`` measured, or the published peaks of the capture's device.
        """
        from ..measures.roofline import roofline

        return roofline(self, speed)

    def unsupported(self, target: str) -> Unsupported:
        """Return the operators and dtypes of the capture that a target lacks, by torch's own tables (see
        ``compile_lens.support``)."""
        lacking: Unsupported = delegate("Capture.unsupported")(self, target)
        return lacking

    def join(self, trace: str | Path, id: str | Mapping[str, str] = "") -> Capture:
        """Return this capture with kernel times from a trace of torch's profiler (``profiler.export_chrome_trace``) as
        its ``profile``.

        Compiled graphs of the trace are matched with compilations by the names of their launches in code order.
        Graphs that cannot be matched are left out, with the reason.

        Args:
            trace: the file, ``.json`` or ``.json.gz``.
            id: for a capture of one compilation its compile id in the trace (``"3/0"``); for several a dict from ids of
                this capture to those of the trace.

        Raises:
            UsageError: if there is no such file, or the trace or the capture does not have an ``id``.
            RecordError: if it is no trace of the profiler.
        """
        from ..measures.profile import known_ids, profile_of_capture
        from ..record.profiler_trace import read_trace

        parsed = read_trace(Path(trace))
        return replace(self, profile=profile_of_capture(self, parsed, known_ids(self, parsed, id)))

    def story(self, lang: str = "en") -> Story:
        """Return a description of the capture, stage by stage in plain words, from the record alone.

        Its ``str()`` is the text; ``.sentences`` have the subject (stage, addresses of ``chain``) and the counts of
        each sentence. ``lang`` is ``"en"`` or ``"zh"``; texts of the program and the compiler are not translated.
        Raise ``UsageError`` for another language.
        """
        from ..views.story import story

        return story(self, lang)

    def to_json(self) -> str:
        """Return the record as JSON text, from which ``from_json`` restores an equal record."""
        from ..record.codec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Capture:
        """Return the capture in a JSON text, without running code; raise ``RecordError`` if it is invalid or newer."""
        from ..record import codec, consistency

        capture = codec.from_json(text, cls)
        consistency.check(capture)
        return capture

    def save(self, path: str | Path, lang: str | None = None) -> Path:
        """Write the capture to ``path`` atomically and return the path; the suffix selects the form: .html .json .svg
        .md .txt.

        ``lang`` is the language of a page, ``"en"`` or ``"zh"``; the default is that of ``course.language``. Raise
        ``UsageError`` for another language, another suffix or an unwritable path.
        """
        from ..views.exports import save_capture

        return save_capture(self, path, lang)

    def verify(
        self,
        fn: Any = None,
        *args: Any,
        kwargs: dict[str, Any] | None = None,
        target: Any = None,
        **named: Any,
    ) -> Verification:
        """Build the code, run it, and compare results and gradients with eager PyTorch.

        Without arguments it uses the function and inputs of the capture if the caller still holds references to them,
        or if they were kept (``capture(…, keep_inputs=True)``). Arguments are those of ``compile_lens.capture``. Triton
        code for an absent GPU runs in Triton's interpreter; ``target`` names such a device if the capture has none.
        Return a ``Verification`` (see ``compile_lens.record.verification``).
        """
        verification: Verification = delegate("Capture.verify")(self, fn, args, kwargs, target, named)
        return verification

    def divergence(
        self, fn: Any = None, *args: Any, kwargs: dict[str, Any] | None = None, **named: Any
    ) -> Divergence:
        """Compare the built code with eager PyTorch; if they differ, find the operation and the cause.

        Works like ``compile_lens.divergence``. Without arguments it uses the function and inputs of the capture if the
        caller still holds references to them, or if they were kept (``capture(…, keep_inputs=True)``), with their
        current values: an input that the function changes in place was changed by the call of the capture.
        """
        divergence: Divergence = delegate("Capture.divergence")(self, fn, args, kwargs, named)
        return divergence

    def memory_curve(
        self,
        fn: Any = None,
        *args: Any,
        budgets: Iterable[float] | None = None,
        kwargs: dict[str, Any] | None = None,
        **named: Any,
    ) -> MemoryCurve:
        """Capture the call once for each value of ``activation_memory_budget``, and return the bytes saved for the
        backward, the peaks, and the operators that the backward recomputes.

        Each point is a capture of its own, for the target of this one. Code is generated, not run: bytes are modelled.
        The curve becomes ``budget_curve`` of this capture, whose page, text and JSON then show it.
        Without arguments it uses the function and inputs of the capture if the caller still holds references to them,
        or if they were kept (``capture(…, keep_inputs=True)``).

        Args:
            budgets: numbers from 0 (everything is recomputed) to 1 (torch's default); eleven of them by default.

        Raises:
            UsageError: if a budget is no number from 0 to 1, the capture has no backward, or its function or an input
                no longer exists.

        Example::

            curve = compile_lens.capture(step, model, x).memory_curve()
            print(curve.best.budget, curve.best.peak)   # the budget with the lowest peak, and its bytes
            curve.save("curve.html")
        """
        curve: MemoryCurve = delegate("Capture.memory_curve")(self, fn, args, budgets, kwargs, named)
        return curve

    def __repr__(self) -> str:
        from ..views.subjects.capture import line

        return line(self)

    def _summary(self) -> Summary:
        from ..views.summaries.capture_summary import summary

        return summary(self)

    def _document(self) -> Document:
        from ..views.subjects.capture import document

        return document(self)

    def _fragment(self) -> str:
        from ..views.live.page import fragment

        return fragment(self)


class ErrorOfCapture(LensError):
    """Error with the capture in which it occurred."""

    def __init__(self, message: str, capture: Capture) -> None:
        super().__init__(message)
        self.capture = capture


class CaptureError(ErrorOfCapture):
    """Error if the function raised, or a stage of the compiler rejected it.

    Attributes:
        capture: the partial record; every stage before the failure is intact and ``capture.failure``
            names the stage that failed. The original exception is ``__cause__``.
    """

    __module__ = "compile_lens"

    @classmethod
    def of(cls, message: str, capture: str) -> CaptureError:
        """Return the error rebuilt from its message and its capture as JSON."""
        from ..record.codec import from_json

        return cls(message, from_json(capture, Capture))


class NotOneKernelError(ErrorOfCapture):
    """Error for a function that is not exactly one kernel with a source; the message says why, and what to try.

    Attributes:
        capture: the capture of the function.
    """

    __module__ = "compile_lens"
