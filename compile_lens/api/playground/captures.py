"""Captures of a playground under each chosen torch version, with one reusable child process for each."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import LensError, UsageError
from ...trials.environments import Environment
from .capture_process import CaptureProcess, Limits
from .faults import error_data
from .torch_versions import UPGRADE, TorchVersions

Report = Callable[[dict[str, Any]], None]


class Captures:
    """Child processes by torch version; they answer requests one at a time.

    A child under another torch answers with a record, since its environment lacks what pages need; the child under this
    process's torch creates the page.

    Args:
        folder: parent of the children's folders.
    """

    def __init__(self, folder: Path, limits: Limits, versions: TorchVersions) -> None:
        self._folder, self._limits, self._versions = folder, limits, versions
        self._own = CaptureProcess(folder / "work", limits)
        self._others: dict[str, CaptureProcess] = {}
        self._asking, self._changing = threading.Lock(), threading.Lock()

    @property
    def seconds(self) -> float:
        """Time limit of one capture, in seconds."""
        return self._limits.seconds

    def start(self) -> None:
        """Start the child under the torch of this process."""
        self._own.start()

    def ready(self, request: dict[str, Any]) -> bool:
        """Return True if all children that a request needs have answered before."""
        name = _torch(request)
        other = self._others.get(name)
        return self._own.ready and (not name or (other is not None and other.ready))

    def ask(
        self, request: dict[str, Any], unwanted: threading.Event, early: Report | None = None
    ) -> dict[str, Any]:
        """Return the answer to a request, as ``CaptureProcess.ask`` does; an error if its torch version is not
        installed."""
        with self._asking:  # a replaced page may still wait for its last answer
            name = _torch(request)
            if not name:
                return self._own.ask(request, unwanted, early)
            try:
                process, environment = self._process(name)
                return self._under(process, environment, request, unwanted, early)
            except LensError as error:
                return {"error": error_data(error)}

    def _process(self, name: str) -> tuple[CaptureProcess, Environment]:
        """Return the process for an environment. Raises ``UsageError`` for a name that is not offered."""
        try:
            environment = self._versions.environment(name)
        except UsageError:
            self._drop(name)
            raise
        if name in self._others and self._others[name].environment != environment:  # it was created again
            self._drop(name)
        if name not in self._others:
            process = CaptureProcess(self._folder / f"torch-{name}", self._limits, environment)
            with self._changing:
                process.closed = self._own.closed
                self._others[name] = process
        return self._others[name], environment

    def _drop(self, name: str) -> None:
        """End the process of an environment that was removed or replaced."""
        with self._changing:
            process = self._others.pop(name, None)
        if process is not None:
            process.forget()

    def _under(
        self,
        process: CaptureProcess,
        environment: Environment,
        request: dict[str, Any],
        unwanted: threading.Event,
        early: Report | None,
    ) -> dict[str, Any]:
        """Return the answer of a process under another torch, with the page added."""
        began = time.monotonic()

        def page_of(answer: dict[str, Any], spent: float = 0.0) -> dict[str, Any]:
            environment.check(answer["torch"])
            wanted = {"record": answer.pop("record"), "kind": answer.pop("kind"), "page": request.get("page")}
            return self._own.ask(wanted, unwanted, spent=spent)

        def report(traced: dict[str, Any]) -> None:
            answer = page_of(traced)
            if "traced" in answer and early is not None:
                early({"traced": answer["traced"]})

        starts = not process.ready
        answer = process.ask(request, unwanted, report if early else None)
        if "record" not in answer:
            return _not_started(environment, answer) if starts and not answer.get("began", True) else answer
        page = page_of(answer, 0.0 if starts else time.monotonic() - began)
        seconds = answer["seconds"] + page.get("seconds", 0.0)
        return {**answer, **page, "seconds": seconds} if "parts" in page else page

    def close(self) -> None:
        """End all children, and start no other."""
        with self._changing:
            for process in (self._own, *self._others.values()):
                process.close()


def _torch(request: dict[str, Any]) -> str:
    return str(request["program"]["settings"].get("torch", ""))


def _not_started(environment: Environment, answer: dict[str, Any]) -> dict[str, Any]:
    words = (
        f"torch {environment.torch} did not start from {environment.folder}: {answer['message']}\n"
        f"To create it again: {UPGRADE} --remove {environment.asked}, then {UPGRADE} --torch {environment.asked}"
    )
    return {"error": error_data(UsageError(words))}
