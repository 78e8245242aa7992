"""A capture as users hold it: what was seen, with its measures and views at hand."""

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
    # The attributes are the record's, told once.
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
    ``help(type(capture.ledger))`` and the like tell more of each.
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
        """Return the share of the generated code that reaches a Python line, a figure that the tool reports about
        itself."""
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
        once, a Python line (``"model.py:7"``; a number where there is one file), a call in one by its columns
        (``"model.py:7:11-23"``) or by a name at it (``"sin@7"``), a module (``"module:layers.3"``), or an address: all
        that ``chain`` takes. ``phase``
        (``"backward"``, ``"0/1 forward"``) picks one where they are in several. Raises ``UsageError`` for what is
        unknown or ambiguous, such as ``"mul"`` where several nodes multiply.
        """
        from ..measures.fusion import why

        return why(self, a, b, phase)

    def traffic(self) -> Traffic:
        """Bytes and arithmetic of each kernel, modelled (see ``compile_lens.measures.traffic``)."""
        from ..measures.traffic import traffic

        return traffic(self)

    def cost(self, by: Literal["line", "kernel", "module"] = "line", basis: str = "") -> Cost:
        """Return the cost of one call by Python line, by kernel or by module, what costs most first.

        Measured time where every kernel was timed, else the least time at the roofline where the device's speeds are
        known, else bytes moved; ``basis`` picks one of ``"measured"``, ``"roofline"`` and ``"bytes"``. Raises
        ``UsageError`` for one that is not known.
        """
        from ..measures.cost import cost

        return cost(self, by, basis)

    def memory(self, by: Literal["line", "name"] = "line") -> MemoryUse:
        """Return the bytes that are live at the peak, and those saved for the backward, by Python line or by name.

        By name: parameters and buffers by the qualified names that ``named_parameters()`` gives them, values by the
        expressions that made them. Modelled, in bytes (see ``compile_lens.measures.memory_use``). Raises
        ``UsageError`` for another ``by``.

        Example::

            print(capture.memory("name"))
        """
        from ..measures.memory_use import memory_use

        return memory_use(self, by)

    def roofline(self, speed: DeviceSpeed | None = None) -> Roofline:
        """Return whether memory or arithmetic bounds each kernel on a device of that ``speed``.

        Without one: the speed that ``benchmark`` measured, or the published peaks of the capture's device.
        """
        from ..measures.roofline import roofline

        return roofline(self, speed)

    def unsupported(self, target: str) -> Unsupported:
        """Return the operators and dtypes of the capture that a target lacks, by torch's own tables (see
        ``compile_lens.support``)."""
        lacking: Unsupported = delegate("Capture.unsupported")(self, target)
        return lacking

    def join(self, trace: str | Path, id: str | Mapping[str, str] = "") -> Capture:
        """This capture with the times that torch's profiler measured of its kernels, from a trace that it exported
        (``profiler.export_chrome_trace``): ``profile`` of what is returned.

        Which compiled graph of the trace is which compilation is told by its launches: their names, in the order of
        the code. What cannot be told so is left out, with the reason.

        Args:
            trace: the file, ``.json`` or ``.json.gz``.
            id: compile id in the trace (``"3/0"``), for a capture of one compilation; a dict from those of this
                capture to those of the trace, for several.

        Raises:
            UsageError: there is no such file, or an ``id`` that the trace or the capture does not have.
            RecordError: it is no trace of the profiler.
        """
        from ..measures.profile import known_ids, profile_of_capture
        from ..record.profiler_trace import read_trace

        parsed = read_trace(Path(trace))
        return replace(self, profile=profile_of_capture(self, parsed, known_ids(self, parsed, id)))

    def story(self, lang: str = "en") -> Story:
        """The capture told stage by stage in plain words, made of the record alone.

        ``str()`` of it is the text, ``.sentences`` say what each is about (stage, addresses of ``chain``) and what
        it counts. ``lang`` is ``"en"`` or ``"zh"``; what the program and the compiler said stays in their words.
        Raises ``UsageError`` for a language that there is not.
        """
        from ..views.story import story

        return story(self, lang)

    def to_json(self) -> str:
        """The record as JSON text; ``from_json`` gives an equal record back."""
        from ..record.codec import to_json

        return to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Capture:
        """A record from its JSON text. Runs no code. Raises ``RecordError`` if it is not one, or is newer."""
        from ..record import codec, consistency

        capture = codec.from_json(text, cls)
        consistency.check(capture)
        return capture

    def save(self, path: str | Path, lang: str | None = None) -> Path:
        """Write the capture to ``path``; the ending chooses the form: .html .json .svg .md .txt.

        The file appears whole or not at all. ``lang`` is the language of a page: ``"en"`` or ``"zh"``; that of
        ``course.language`` if not given. Raises ``UsageError`` for another one, another ending or an unwritable place.
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

        Without arguments it uses the function and inputs of the capture while the caller still holds them, or if they
        were kept (``capture(…, keep_inputs=True)``). Arguments are given as to ``compile_lens.capture``. Triton code
        for a GPU that is not there runs in Triton's interpreter; ``target`` asks for such a device where the capture
        is not for one. Returns a ``Verification`` (see ``compile_lens.record.verification``).
        """
        verification: Verification = delegate("Capture.verify")(self, fn, args, kwargs, target, named)
        return verification

    def divergence(
        self, fn: Any = None, *args: Any, kwargs: dict[str, Any] | None = None, **named: Any
    ) -> Divergence:
        """Compare the built code with eager PyTorch; where they differ, find the operation and the cause.

        As ``compile_lens.divergence``. Without arguments it uses the function and inputs of the capture while the
        caller still holds them, or if they were kept (``capture(…, keep_inputs=True)``), with the values that they
        have now: the capture made the call, so that an input in which the function writes holds what it wrote.
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
        backward, the peaks, and what the backward computes again.

        Each point is a capture of its own, for the target of this one. Code is generated, not run: bytes are modelled.
        This capture has the curve as ``budget_curve`` from then on: its page, text and JSON show it.
        Without arguments it uses the function and inputs of the capture while the caller still holds them, or if they
        were kept (``capture(…, keep_inputs=True)``).

        Args:
            budgets: numbers from 0 (all is computed again) to 1 (torch's default); eleven of them if not given.

        Raises:
            UsageError: a budget is no number from 0 to 1, the capture has no backward, or its function or an input is
                gone.

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
    """An error with the capture that it is of."""

    def __init__(self, message: str, capture: Capture) -> None:
        super().__init__(message)
        self.capture = capture


class CaptureError(ErrorOfCapture):
    """The function raised, or a stage of the compiler rejected it.

    Attributes:
        capture: the partial record; every stage before the failure is intact and ``capture.failure``
            names the stage that failed. The original exception is ``__cause__``.
    """

    __module__ = "compile_lens"

    @classmethod
    def of(cls, message: str, capture: str) -> CaptureError:
        """The error anew, of its message and its capture as JSON."""
        from ..record.codec import from_json

        return cls(message, from_json(capture, Capture))


class NotOneKernelError(ErrorOfCapture):
    """A function is not exactly one kernel with a source: the message says what it is instead, why, and what to try.

    Attributes:
        capture: what was captured.
    """

    __module__ = "compile_lens"
