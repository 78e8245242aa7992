"""The tools: each answers one question within a token budget.

A tool that needs to run user code starts a job; the others read a record that a job has written, and run no code.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...errors import LensError, UsageError
from ...results.capture import Capture
from ...results.comparison import Difference
from ...results.program import Program
from ...views.brief import MAX_TOKENS, Brief, Question, check_budget
from . import answers, checks
from .job import BAD_CALL, Job, Limits, Outcome

MAX_RECORDS = 32
"""Maximum number of records that a server keeps; the oldest is dropped first."""

CANCELLED: ContextVar[threading.Event] = ContextVar("CANCELLED", default=threading.Event())  # noqa: B039
"""Event that is set when the client cancels the call in this context; the default is never set."""


class Tools:
    """The tools of one server.

    Args:
        folder: the folder in which user code runs; files outside it cannot be named.
        limits: limits of each job.
    """

    def __init__(self, folder: str | Path = ".", limits: Limits | None = None) -> None:
        self.folder = Path(folder).resolve()
        if not os.path.isdir(self.folder):
            raise UsageError(f"there is no folder {str(folder)!r}; give one that exists")
        self.limits = limits or Limits()
        self.records: dict[str, Capture | Program] = {}
        self._calls: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {}
        self._count = 0
        self._job: Job | None = None
        self._job_lock = threading.Lock()
        self._private = Path(tempfile.mkdtemp(prefix="compile-lens-"))

    def close(self) -> None:
        """End a running job, and remove the server's temporary folder."""
        job = self._job
        if job is not None:
            job.stop()
        shutil.rmtree(self._private, ignore_errors=True)

    def capture(
        self,
        function: str,
        inputs: Sequence[str] = (),
        kwargs: Mapping[str, str] | None = None,
        target: str = "",
        backward: str = "auto",
        dynamic: bool | None = None,
        mode: str = "",
        max_tokens: int = MAX_TOKENS,
    ) -> str:
        """Compile a function once and return what happened: graphs, breaks, kernels, bytes, and the name of the record.

        function: path/to/file.py:function, or package.module:function; an expression such as file.py:Net().eval()
        works too. inputs: Python expressions, one for each positional argument, such as torch.rand(64, 128); they see
        torch and the names of the file. kwargs: expressions by name. target: a device that need not be here, such as
        h100. backward: auto, yes or no. The code is generated, not timed.
        """
        what = f"capture of {function[:200]}"
        return self._answered(
            what,
            max_tokens,
            lambda: self._capture(what, function, inputs, kwargs, target, backward, dynamic, mode),
        )

    def _capture(
        self,
        what: str,
        function: str,
        inputs: Sequence[str],
        kwargs: Mapping[str, str] | None,
        target: str,
        backward: str,
        dynamic: bool | None,
        mode: str,
    ) -> Brief:
        words = self._call(function, inputs, kwargs)
        if backward not in ("auto", "yes", "no"):
            raise UsageError(f"backward={backward!r}: give auto, yes or no")
        words += [f"--backward={backward}"]
        words += [f"--target={checks.name(target, 'target')}"] if target else []
        words += [f"--mode={checks.name(mode, 'mode')}"] if mode else []
        words += [] if dynamic is None else ["--dynamic" if dynamic else "--no-dynamic"]
        result = self._file("c")
        outcome = self._run(["show", "--quiet", f"--out={result}", *words])
        if not result.exists():
            return self._failed(outcome, what, answers.plain_call(function, inputs, kwargs or {}))
        name = result.stem
        record = Capture.from_json(result.read_text(encoding="utf-8"))
        self._keep(name, record)
        self._calls[name] = function, tuple(inputs), dict(kwargs or {})
        return self._of_capture(record, name)

    def run(
        self, script: str = "", arguments: Sequence[str] = (), module: str = "", max_tokens: int = MAX_TOKENS
    ) -> str:
        """Run a script (or a module, as python -m) and return what ran eagerly, broke or recompiled, why, and the fix.

        script: a path in the folder. arguments: of the script, as on a command line. module: instead of a script.
        """
        what = f"run of {(script or module)[:200]}"
        return self._answered(what, max_tokens, lambda: self._run_program(what, script, arguments, module))

    def _run_program(self, what: str, script: str, words: Sequence[str], module: str) -> Brief:
        if bool(script) == bool(module):
            raise UsageError("give a script or a module, and not both")
        if script:
            checks.inside(script, self.folder, "script")
        else:
            checks.module(module)
        if len(words) > checks.MAX_ARGUMENTS:
            raise UsageError(f"{len(words)} arguments were given; give at most {checks.MAX_ARGUMENTS}")
        own = [checks.expression(word, f"argument {number}") for number, word in enumerate(words, 1)]
        result = self._file("p")
        program_words = [*([script] if script else ["-m", module]), *own]
        outcome = self._run(["run", "--quiet", f"--out={result}", *program_words])
        if not result.exists():
            return self._failed(outcome, what, shlex.join(["python", *program_words]))
        program = Program.load(result)
        self._keep(result.stem, program)
        call = f"script={script!r}" if script else f"module={module!r}"
        call += f", arguments={own!r}" if own else ""
        brief = self._of_program(program, result.stem, call)
        if outcome.code:
            ended = f"The program itself ended with exit code {outcome.code}."
            brief = replace(brief, facts=(brief.facts[0], ended, *brief.facts[1:]))
        return brief

    def cost(self, record: str, by: str = "line", offset: int = 0, max_tokens: int = MAX_TOKENS) -> str:
        """Return where the cost of a call is, what costs most first, in measured time, time at the roofline or bytes.

        by: line, kernel or module. offset: from which row on.
        """
        return self._answered(
            "cost", max_tokens, lambda: answers.cost(self._captured(record), record, by, _offset(offset))
        )

    def why(
        self,
        record: str,
        a: str = "",
        b: str = "",
        phase: str = "",
        offset: int = 0,
        max_tokens: int = MAX_TOKENS,
    ) -> str:
        """Return why two things are not one kernel, what fusing them would save, and what to try.

        a, b: kernels, operators (gelu), lines (model.py:7), calls in a line (sin@7). Without them: all pairs that share
        data and are not fused, from offset on, the most bytes first.
        """

        def answer() -> Brief:
            capture = self._captured(record)
            if not a and not b:
                return answers.not_fused(capture, record, _offset(offset))
            return answers.why(capture, record, checks.address(a, "a"), checks.address(b, "b"), phase)

        return self._answered("why", max_tokens, answer)

    def chain(self, record: str, address: str, max_tokens: int = MAX_TOKENS) -> str:
        """Return which kernels a Python line became, with their code, or which lines a kernel came from.

        address: a line (model.py:7), a call in it (sin@7), a module (module:layers.3), a kernel's name, or one of its
        lines (kernel:12).
        """
        return self._answered(
            "chain",
            max_tokens,
            lambda: answers.chain(self._captured(record), record, checks.address(address, "address")),
        )

    def memory(self, record: str, max_tokens: int = MAX_TOKENS) -> str:
        """Return the peak of memory of the generated code, and what is saved for the backward, the largest first."""
        return self._answered(
            "memory",
            max_tokens,
            lambda: self._with_call(answers.memory(self._captured(record), record), record),
        )

    def diff(self, before: str, after: str, max_tokens: int = MAX_TOKENS) -> str:
        """Return what changed between two captures, such as those before and after an edit of the file, cause first."""

        def answer() -> Brief:
            from ...measures.diff.levels import difference

            changes = difference(self._captured(before), self._captured(after), Difference)
            return self._with_call(answers.difference(changes, before, after), after)

        return self._answered("diff", max_tokens, answer)

    def divergence(
        self,
        function: str,
        inputs: Sequence[str] = (),
        kwargs: Mapping[str, str] | None = None,
        max_tokens: int = MAX_TOKENS,
    ) -> str:
        """Build a function, compare it with eager PyTorch, and where the values differ return the operation, the cause
        and the setting that restores them. "Both are equally good" is the usual answer. Arguments as for capture."""
        return self._answered(
            f"divergence of {function[:200]}",
            max_tokens,
            lambda: self._plain("divergence", "d", function, inputs, kwargs, answers.divergence),
        )

    def what_if(
        self,
        function: str,
        inputs: Sequence[str] = (),
        kwargs: Mapping[str, str] | None = None,
        switches: Sequence[str] = (),
        max_tokens: int = MAX_TOKENS,
    ) -> str:
        """Compile a function once for each setting that may matter and return which of them lower launches, bytes, the
        peak or recompiles. switches: only these, such as split_reductions. Arguments as for capture."""

        def answer() -> Brief:
            more = [
                f"--switch={checks.name(switch, 'switch')}" for switch in switches[: checks.MAX_ARGUMENTS]
            ]
            return self._plain("what-if", "w", function, inputs, kwargs, answers.what_if, more)

        return self._answered(f"what-if of {function[:200]}", max_tokens, answer)

    def hold(self, record: str, file: str, overwrite: str = "", max_tokens: int = MAX_TOKENS) -> str:
        """Write a test that holds a capture to its graphs, breaks and launches, for pytest or compile-lens check.

        file: a new .py file in the folder. overwrite: the same name again, if the file exists and may be replaced.
        """
        return self._answered("hold", max_tokens, lambda: self._hold(record, file, overwrite))

    def _hold(self, record: str, file: str, overwrite: str) -> Brief:
        from ...record.files import write_text
        from .expectation import text_of

        capture = self._captured(record)
        path = checks.inside(file, self.folder, "file")
        if path.suffix != ".py" or not path.parent.is_dir():
            raise UsageError(f"file {file!r}: give a name that ends in .py, in a folder that exists")
        if path.exists() and overwrite != file:
            raise UsageError(f"{file!r} exists and was not written: to replace it, give overwrite={file!r}")
        if record not in self._calls:
            raise UsageError(f"{record!r} was not made by a call of capture; capture the function first")
        text = text_of(capture, *self._calls[record], path=path, folder=self.folder)
        write_text(path, text)
        return Brief(
            f"compile_lens · {record} · a test of it",
            (f"Wrote {file}. Run it: pytest {file}",),
            (text,),
            ("That the test holds results or times: it holds graphs, breaks and launches.",),
        )

    def _of_capture(self, record: Capture, name: str) -> Brief:
        from ...views.summaries.capture_summary import summary

        questions: tuple[Question, ...] = (
            Question("where is the cost?", f"cost(record={name!r}, by='line')"),
            *answers.kernels_of_first_row(record, name, "line", "which kernels is a line?"),
            Question("why so many kernels?", f"why(record={name!r})"),
            Question("where is the memory?", f"memory(record={name!r})"),
            Question("which setting helps?", f"what_if({answers.CALL})"),
        )
        if not record.kernels:
            change = f"capture({answers.CALL}), then diff(before={name!r}, after=…)"
            questions = (Question("after a change?", change),)
        return self._with_call(answers.of_summary(summary(record), name, questions), name)

    def _with_call(self, brief: Brief, name: str) -> Brief:
        """Return an answer about a record whose proposed calls name the function and inputs of its capture."""
        call = self._calls.get(name)
        return brief if call is None else answers.with_call(brief, *call)

    def _of_program(self, program: Program, name: str, call: str) -> Brief:
        from ...views.summaries.program_summary import summary

        questions = (Question("after a change?", f"run({call})"),)
        return answers.of_summary(summary(program.record), name, questions)

    def _plain(
        self,
        command: str,
        letter: str,
        function: str,
        inputs: Sequence[str],
        kwargs: Mapping[str, str] | None,
        answer: Any,
        more: Sequence[str] = (),
    ) -> Brief:
        """Run a command whose result is plain data, and return the answer made from it."""
        words = self._call(function, inputs, kwargs)
        result = self._file(letter)
        outcome = self._run([command, "--quiet", f"--out={result}", *more, *words])
        if not result.exists():
            plain = answers.plain_call(function, inputs, kwargs or {})
            return self._failed(outcome, f"{command} of {function}", plain)
        data = json.loads(result.read_text(encoding="utf-8"))
        result.unlink()  # not needed for later questions
        brief: Brief = answer(data, function)
        return brief

    def _call(self, function: str, inputs: Sequence[str], kwargs: Mapping[str, str] | None) -> list[str]:
        return checks.call(function, inputs, kwargs or {}, self.folder)

    def _file(self, letter: str) -> Path:
        self._count += 1
        return self._private / f"{letter}{self._count}.json"

    def _run(self, words: Sequence[str]) -> Outcome:
        cancelled = CANCELLED.get()
        with self._job_lock:
            if cancelled.is_set():  # while it waited for its turn
                raise UsageError("the call was cancelled")
            self._job = Job(words, self.folder, self.limits, cancelled)
            try:
                return self._job.wait()
            finally:
                self._job = None

    def _failed(self, outcome: Outcome, what: str, plain: str) -> Brief:
        if outcome.code in BAD_CALL:
            return answers.of_error(outcome.stderr.strip().removeprefix("compile-lens: "), what)
        return answers.of_failed_job(outcome, what, self.limits, plain)

    def _keep(self, name: str, record: Capture | Program) -> None:
        self.records[name] = record
        while len(self.records) > MAX_RECORDS:
            oldest = next(iter(self.records))
            del self.records[oldest]
            self._calls.pop(oldest, None)
            (self._private / f"{oldest}.json").unlink(missing_ok=True)

    def text_of(self, name: str) -> str:
        """Return a record as JSON text. Raises ``UsageError`` if there is no record of this name."""
        self._record(name)
        return (self._private / f"{name}.json").read_text(encoding="utf-8")

    def page_of(self, name: str) -> str:
        """Return the page of a record as HTML. Raises ``UsageError`` if there is no record of this name."""
        record = self._record(name)
        path = self._private / f"{name}.html"
        record.save(path)
        try:
            return path.read_text(encoding="utf-8")
        finally:
            path.unlink()

    def _record(self, name: str) -> Capture | Program:
        known = self.records.get(name)
        if known is None:
            there = ", ".join(self.records) or "none yet: call capture or run"
            raise UsageError(f"there is no record {name[:80]!r}; there is {there}")
        return known

    def _captured(self, name: str) -> Capture:
        known = self._record(name)
        if not isinstance(known, Capture):
            raise UsageError(
                f"{name!r} is the record of a program, and this tool needs one of a capture: call capture"
            )
        return known

    def _answered(self, what: str, max_tokens: int, answer: Any) -> str:
        """Return the answer as text within the budget; an error is an answer too."""
        try:
            check_budget(max_tokens)
        except UsageError as error:
            return answers.of_error(str(error), what).text()
        try:
            brief = answer()
        except (LensError, OSError, KeyError) as error:
            brief = answers.of_error(str(error), what)
        text: str = brief.text(max_tokens)
        return text


def _offset(offset: int) -> int:
    if isinstance(offset, bool) or offset < 0:
        raise UsageError(f"offset={offset!r}: give 0 or more")
    return offset
