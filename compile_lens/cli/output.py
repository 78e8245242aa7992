"""Output of the commands: results on stdout, errors on stderr, one JSON document with ``--json``; and exit codes."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import LayoutError, LensError, RecordError, UsageError
from ..record.files import finite
from ..trials.progress import progress
from ..versions import OUTPUT_SCHEMA

if TYPE_CHECKING:
    from ..record.breaks import Ending
    from ..record.graph import Frame, Graph
    from ..record.kernel import Code, Kernel
    from ..results.capture import Capture


def document(body: Mapping[str, Any]) -> str:
    """Return the text of a ``--json`` document: the schema version and the body. Infinities and NaNs become strings."""
    return json.dumps(finite({"schema": OUTPUT_SCHEMA, **body}), indent=2, allow_nan=False)


def check_endings(paths: list[Path], forms: Mapping[str, str] | None = None) -> None:
    """Raise ``UsageError`` if an ``--out`` path has an unknown ending or a missing folder, before any work."""
    from ..views.render.formats import CAPTURE as FORMS

    known = FORMS if forms is None else forms
    for path in paths:
        if path.suffix.lower() not in known:
            raise UsageError(f"--out {str(path)!r} has no known file extension; use one of {' '.join(known)}")
        if not os.path.isdir(path.parent):
            raise UsageError(f"--out {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")


def deliver(args: argparse.Namespace, result: Any, body: Mapping[str, Any], *, text: bool = True) -> None:
    """Print a result and save it to ``--out``; with ``--json`` print one document with ``body`` instead."""
    if text and not args.json:
        say(result.text("full") if getattr(args, "full", False) else str(result))
    written = []
    for path in args.out:
        with progress(f"writing {path}", quiet=args.quiet):
            written.append(str(result.save(path)))
    if args.json:
        say(document({"command": args.command, **body, "written": written}))
    else:
        for path in written:
            say(f"wrote {path}")


def report(
    args: argparse.Namespace,
    capture: Capture,
    paths: list[Path],
    failure: LensError | None,
    written: Sequence[Path] = (),
    graphs: Mapping[Path, Graph] = MappingProxyType({}),
    text: bool = True,
) -> int:
    """Print the capture (also a partial one), save what was requested, and return the exit code."""
    if text and not args.json:
        full = capture.text("full" if getattr(args, "full", False) else "short")
        say(str(capture.story(args.lang)) if getattr(args, "story", False) else full)
    done = list(written)
    for path in paths:
        with progress(f"writing {path}", quiet=args.quiet):
            done.append(Path(capture.save(path, getattr(args, "lang", None))))
    for path, graph in graphs.items():
        with progress(f"drawing {path}", quiet=args.quiet):
            done.append(_svg(path, graph, f"{capture.function}: {graph.key}"))
    if args.json:
        body = {
            "command": args.command,
            **capture_summary(capture),
            **({"story": _story(capture, args.lang)} if getattr(args, "story", False) else {}),
            "written": [str(path) for path in done],
        }
        if failure is not None:
            body["error"] = error_dict(failure)
        say(document(body))
    else:
        for path in done:
            say(f"wrote {path}")
        if failure is not None:
            say_error(failure)
    show_traceback(args, failure)
    return OK if failure is None else FAILED


def _svg(path: Path, graph: Graph, title: str) -> Path:
    from ..record.files import write_text

    return write_text(path, graph.to_svg(title=title))


def _launches(code: Code, kernel: Kernel) -> dict[str, Any]:
    """Return the launches of a kernel per call, as a number (null if they depend on iterations or branches) and in
    words."""
    from ..measures.control_flow import launches
    from ..views.words.quantities import launched

    return {"launches": launches(code, [kernel]).number, "launched": launched(code, kernel)}


def _story(capture: Capture, lang: str) -> list[dict[str, Any]]:
    """Return the sentences of the story, each with the stage and the compilation that it describes."""
    keys = ("text", "chapter", "compilation", "stage", "about")
    return [{key: getattr(sentence, key) for key in keys} for sentence in capture.story(lang).sentences]


def _target(capture: Capture) -> dict[str, Any] | None:
    target = capture.target
    if target is None:
        return None
    codes = [(c.id, code) for c in capture.compilations for code in c.code.values()]
    return {
        "requested": target.requested,
        "model": target.model.name,
        "tracing": target.tracing,
        "transfer": target.transfer,
        "may_differ": list(target.may_differ),
        "queries": [asdict(question) for question in target.queries],
        "code": [
            {"compilation": i, "phase": code.phase, "may_differ": list(code.may_differ)} for i, code in codes
        ],
    }


def _break(ending: Ending) -> dict[str, Any]:
    """Return a graph break in words, with the program's stack (``frames``) and the line of its last frame."""
    from ..views.words.outcome import reason

    sentences = reason(ending)
    words = {key: getattr(sentences, key) for key in ("what", "why", "hint", "link")}
    stack = [f"{frame.file}:{frame.line} in {frame.function}" for frame in ending.frames]
    return {**words, **_place(ending.frames), "frames": stack}


def _place(frames: Sequence[Frame]) -> dict[str, Any]:
    """Return file, line and function of the last frame; null if there is none."""
    return {key: getattr(frames[-1], key) if frames else None for key in ("file", "line", "function")}


def capture_summary(capture: Capture) -> dict[str, Any]:
    """Return the figures of a capture that a script needs; ``--out record.json`` writes all of it."""
    kernels = [
        {
            "compilation": c.id,
            **{key: getattr(k, key) for key in ("phase", "name", "language", "kind")},
            **_launches(code, k),
        }
        for c in capture.compilations
        for code in c.code.values()
        for k in code.kernels
    ]
    from ..measures.quantities import graphs
    from ..views.words.outcome import saved, saving, state, verdict

    failure = capture.failure
    return {
        "function": capture.function,
        "environment": asdict(capture.environment),
        "state": state(capture),
        "verdict": verdict(capture),
        "headline": [saved(part) for part in saving(capture.ledger)],
        "graphs": graphs(capture),
        "compilations": [c.id for c in capture.compilations],
        "nothing": capture.nothing_compiled,
        "ledger": capture.ledger.to_dict(),
        "kernels": kernels,
        "breaks": [_break(ending) for ending in capture.breaks],
        "skipped": [asdict(skip) for skip in capture.skipped],
        "recompiles": [asdict(recompile) for recompile in capture.recompiles],
        "missing": [asdict(m) for m in capture.missing],
        "not_applicable": [asdict(m) for m in capture.not_applicable],
        "failure": None
        if failure is None
        else {
            **{k: getattr(failure, k) for k in ("stage", "type", "message", "hint", "link")},
            **_place(failure.frames),
        },
        "target": _target(capture),
        "profile": None if capture.profile is None else asdict(capture.profile),
        "notes": list(capture.notes),
        "unknown_fields": list(capture.unknown_fields),
    }


def fail(args: argparse.Namespace, error: Exception) -> int:
    if args.json:
        say(document({"error": error_dict(error)}))
    else:
        say_error(error)
    show_traceback(args, error)
    if isinstance(error, ImportError) or (isinstance(error, LayoutError) and not _draws()):
        return NOT_INSTALLED
    return USAGE if isinstance(error, (UsageError, RecordError)) else FAILED


def _draws() -> bool:
    """Return True if a Graphviz is available."""
    return bool(shutil.which("dot") or importlib.util.find_spec("pygraphviz"))


def error_dict(error: Exception) -> dict[str, str]:
    return {"type": type(error).__name__.lstrip("_"), "message": _message(error)}


def _message(error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _not_installed(error, error.name)
    if not isinstance(error, LensError):
        return f"{type(error).__name__}: {text} (--traceback shows where)"
    return text


def _not_installed(error: ModuleNotFoundError, name: str) -> str:
    """Return the message for a missing package: which one, where it was needed, and what to install."""
    from ..trials.doctor import KNOWN

    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<frozen ")]
    ours = str(Path(__file__).resolve().parent.parent)
    theirs = frames and not str(Path(frames[-1].filename).resolve()).startswith(ours + os.sep)
    problem = f"{name} is not installed"
    if theirs:
        problem = f"{frames[-1].filename}:{frames[-1].lineno} imports {name}, which is not installed"
    return f"{problem}; `compile-lens doctor` says what to install" if name in KNOWN else problem


def say_error(error: Exception) -> None:
    say(f"compile-lens: {' '.join(_message(error).split())}", sys.stderr)


def show_traceback(args: argparse.Namespace, error: Exception | None) -> None:
    if args.traceback and error is not None:
        say("".join(traceback.format_exception(error)), sys.stderr)


def say(text: str, stream: Any = None) -> None:
    """Print text, with replacements for characters that the stream's encoding lacks."""
    from ..views.words.characters import printable

    stream = stream or sys.stdout
    print(printable(text, getattr(stream, "encoding", None)).rstrip("\n"), file=stream, flush=True)


OK, FAILED, USAGE, NOT_INSTALLED, DIFFERS, INTERRUPTED = 0, 1, 2, 3, 4, 130

EXIT_CODES = """exit codes:
  0  it worked
  1  the function raised or the compiler rejected it; everything observed before that is still shown and written
  2  bad usage or input: an unknown option, a name, an expression or a file that cannot be used
  3  something needed is not installed, or `doctor` found that the main job cannot run
  4  `check`: an expectation failed; `divergence`: values differ; `--fail-on`: a named figure got worse, or differs
130  interrupted (Ctrl-C); `what-if` first prints and writes what it has
"""
