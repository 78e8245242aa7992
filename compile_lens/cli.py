"""The command line: ``compile-lens demo | show | open | doctor``.

Results go to stdout, progress and errors to stderr. With ``--json`` stdout holds exactly one JSON document,
``{"error": {...}}`` included. Exit codes:

=====  ====================================================================================
0      it worked
1      the function raised or the compiler rejected it; what was seen before is still shown and written
2      bad usage or input: an unknown option, a name, an expression or a file that cannot be used
3      something needed is not installed, or ``doctor`` found that the main job cannot run
=====  ====================================================================================
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import logging
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from . import __version__
from .errors import CaptureError, LayoutError, LensError, RecordError, UsageError
from .progress import progress

if TYPE_CHECKING:
    from .graph import Graph
    from .record import Capture

OK, FAILED, USAGE, NOT_INSTALLED = 0, 1, 2, 3

EXIT_CODES = """exit codes:
  0  it worked
  1  the function raised or the compiler rejected it; what was seen before is still shown and written
  2  bad usage or input: an unknown option, a name, an expression or a file that cannot be used
  3  something needed is not installed, or `doctor` found that the main job cannot run
"""

DEMO = '''"""What `compile-lens demo` captures. Change it and run the demo again."""

import torch


def f(x):
    return torch.sin(x) ** 2 + torch.cos(x) ** 2
'''


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the answer is the exit code. ``argv`` is ``sys.argv[1:]`` if it is not given."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    args = argparse.Namespace(json="--json" in words, traceback="--traceback" in words)
    try:
        if not words:
            _print(parser.format_help())
            return OK
        parser.parse_args(words, namespace=args)
        command: Callable[[argparse.Namespace], int] = args.run
        return command(args)
    except BrokenPipeError:
        # The reader of stdout went away (`| head`): nothing to say, and nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except KeyboardInterrupt:
        print("compile-lens: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        return _fail(args, error)


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    common = _Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    common.add_argument("--quiet", action="store_true", help="no progress on stderr")
    common.add_argument("--traceback", action="store_true", help="show where an error came from")
    parser = _Parser(
        prog="compile-lens",
        description="What torch.compile makes of a function: every stage, every kernel, and a ledger.",
        epilog=EXIT_CODES,
        formatter_class=raw,
    )
    parser.add_argument("--version", action="version", version=f"compile-lens {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], text: str, more: str = ""
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=text,
            description=f"{text}. {more}",
            parents=[common],
            epilog=EXIT_CODES,
            formatter_class=raw,
        )
        command.set_defaults(run=run, command=name)
        return command

    demo = add("demo", _demo, "Capture sin(x)**2 + cos(x)**2, forward and backward, and write its report")
    demo.add_argument(
        "--out", type=Path, default=Path("compile-lens-demo"), metavar="DIR", help="default: %(default)s"
    )

    show = add(
        "show",
        _show,
        "Capture a function and print what became of it",
        "TARGET, --input and --kwarg are\nPython expressions of yours and are run as such.",
    )
    show.add_argument(
        "target", help="pkg.module:function or path/to/file.py:function (or file.py:'Net().eval()')"
    )
    show.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="EXPR",
        help="a positional argument: Python that sees torch and the names of the module; repeatable",
    )
    show.add_argument(
        "--kwarg", action="append", default=[], metavar="NAME=EXPR", help="a keyword argument; repeatable"
    )
    show.add_argument(
        "--backward", choices=("auto", "yes", "no"), default="auto", help="capture the backward too"
    )
    show.add_argument(
        "--dynamic", action=argparse.BooleanOptionalAction, default=None, help="compile for any size"
    )
    show.add_argument("--mode", help="torch.compile's mode, such as max-autotune")
    show.add_argument("--fullgraph", action="store_true", help="a graph break is an error")
    show.add_argument("--build", action="store_true", help="build and run the code (needs a compiler)")
    _add_out(show)

    opened = add(
        "open", _open, "Print or convert a saved record", "Needs no torch and runs no code of the record."
    )
    opened.add_argument("record", type=Path, help="a .json file written by capture.save or --out")
    _add_out(opened)

    add("doctor", _doctor, "Say what works on this machine, what does not, and what to install")
    return parser


def _add_out(parser: argparse.ArgumentParser) -> None:
    from .views.files import FORMS

    text = f"write the capture there, in the form of its ending ({' '.join(FORMS)}); repeatable"
    parser.add_argument("--out", action="append", default=[], type=Path, metavar="FILE", help=text)


def _demo(args: argparse.Namespace) -> int:
    folder: Path = args.out
    program = folder / "demo.py"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not program.exists():  # one that is there may have been changed by its reader
            program.write_text(DEMO, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"cannot write to {folder}: {error.strerror or error}; choose another with --out"
        ) from None
    with _capturing(args, "sin(x)**2 + cos(x)**2"):
        function, scope = _target(f"{program}:f")
        inputs = [_evaluate("torch.rand(1000, requires_grad=True)", scope, "input")]
        capture, failure = _capture(args, function, inputs, {}, backward=True)
    graphs = {
        folder / f"{phase}.svg": capture.compilations[0].graphs[phase]
        for phase in ("forward", "backward")
        if capture.compilations and phase in capture.compilations[0].graphs
    }
    return _report(
        args, capture, [folder / "report.html", folder / "record.json"], failure, [program], graphs
    )


def _show(args: argparse.Namespace) -> int:
    _check_endings(args.out)
    with _capturing(args, args.target):
        function, scope = _target(args.target)
        inputs = [_evaluate(text, scope, "--input") for text in args.input]
        kwargs = {}
        for pair in args.kwarg:
            name, equals, text = pair.partition("=")
            if not equals or not name.isidentifier():
                raise UsageError(f"--kwarg {pair!r} is not NAME=EXPR; write for example --kwarg dim=1")
            kwargs[name] = _evaluate(text, scope, f"--kwarg {name}")
        capture, failure = _capture(
            args,
            function,
            inputs,
            kwargs,
            backward={"auto": "auto", "yes": True, "no": False}[args.backward],
            dynamic=args.dynamic,
            mode=args.mode,
            fullgraph=args.fullgraph,
            build=args.build,
        )
    return _report(args, capture, args.out, failure)


def _open(args: argparse.Namespace) -> int:
    from .views.files import load

    _check_endings(args.out)
    with progress(f"reading {args.record}", quiet=args.quiet):
        capture = load(args.record)
    return _report(args, capture, args.out, None, text=not args.out)


def _doctor(args: argparse.Namespace) -> int:
    from . import doctor

    with progress("looking at torch and its devices", quiet=args.quiet):
        found = doctor.checks()
    _print(json.dumps(doctor.to_dict(found), indent=2) if args.json else doctor.page(found))
    return OK if doctor.healthy(found) else NOT_INSTALLED


@contextlib.contextmanager
def _capturing(args: argparse.Namespace, name: str) -> Iterator[None]:
    """Progress. With ``--json`` what the user's code prints goes to stderr: stdout is one document."""
    apart = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    with progress(f"capturing {name}", quiet=args.quiet), apart:
        yield


def _target(text: str) -> tuple[Any, dict[str, Any]]:
    from .target import resolve

    return resolve(text)


def _evaluate(text: str, scope: dict[str, Any], what: str) -> Any:
    from .target import evaluate

    return evaluate(text, scope, what)


def _capture(
    args: argparse.Namespace, function: Any, inputs: list[Any], kwargs: dict[str, Any], **options: Any
) -> tuple[Capture, CaptureError | None]:
    from .capture import capture

    with _one_voice(args):
        try:
            return capture(function, *inputs, kwargs=kwargs or None, **options), None
        except CaptureError as error:
            return error.capture, error


@contextlib.contextmanager
def _one_voice(args: argparse.Namespace) -> Iterator[None]:
    """Keeps torch from logging an error, traceback and all, that is about to be reported as one line."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "torch"]
    handlers = {h for name in names for h in logging.getLogger(name).handlers if not args.traceback}

    def below_error(record: logging.LogRecord) -> bool:
        return record.levelno < logging.ERROR

    for handler in handlers:
        handler.addFilter(below_error)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(below_error)


def _check_endings(paths: list[Path]) -> None:
    """Before the work, not after it."""
    from .views.files import FORMS

    for path in paths:
        if path.suffix.lower() not in FORMS:
            raise UsageError(f"--out {str(path)!r} has no known ending; use one of {' '.join(FORMS)}")
        if not path.parent.is_dir():
            raise UsageError(f"--out {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")


def _report(
    args: argparse.Namespace,
    capture: Capture,
    paths: list[Path],
    failure: LensError | None,
    written: Sequence[Path] = (),
    graphs: Mapping[Path, Graph] = MappingProxyType({}),
    text: bool = True,
) -> int:
    """Print the capture (a partial one too), then write what was asked for; the exit code."""
    if text and not args.json:
        _print(str(capture))
    done = list(written)
    for path in paths:
        with progress(f"writing {path}", quiet=args.quiet):
            done.append(Path(capture.save(path)))
    for path, graph in graphs.items():
        with progress(f"drawing {path}", quiet=args.quiet):
            done.append(_write_svg(path, graph, f"{capture.function}: {graph.key}"))
    if args.json:
        document = {"command": args.command, **_summary(capture), "written": [str(path) for path in done]}
        if failure is not None:
            document["error"] = _error(failure)
        _print(json.dumps(document, indent=2))
    else:
        for path in done:
            _print(f"wrote {path}")
        if failure is not None:
            _say_error(failure)
    _show_traceback(args, failure)
    return OK if failure is None else FAILED


def _write_svg(path: Path, graph: Graph, title: str) -> Path:
    from .views.files import write_text

    return write_text(path, graph.to_svg(title=title))


def _summary(capture: Capture) -> dict[str, Any]:
    """What a script wants to know of a capture; the whole of it is what ``--out record.json`` writes."""
    kernels = [
        {
            "compilation": c.id,
            **{key: getattr(k, key) for key in ("phase", "name", "language", "kind", "launches")},
        }
        for c in capture.compilations
        for code in c.code.values()
        for k in code.kernels
    ]
    failure = capture.failure
    return {
        "function": capture.function,
        "environment": asdict(capture.environment),
        "compilations": [c.id for c in capture.compilations],
        "nothing": capture.nothing,
        "ledger": capture.ledger.to_dict(),
        "kernels": kernels,
        "breaks": [ending.reason for ending in capture.breaks],
        "recompiles": list(capture.recompiles),
        "missing": [asdict(m) for m in capture.missing],
        "failure": None
        if failure is None
        else {k: getattr(failure, k) for k in ("stage", "type", "message")},
        "notes": list(capture.notes),
        "unknown_fields": list(capture.unknown_fields),
    }


def _fail(args: argparse.Namespace, error: Exception) -> int:
    if args.json:
        _print(json.dumps({"error": _error(error)}, indent=2))
    else:
        _say_error(error)
    _show_traceback(args, error)
    if isinstance(error, ImportError) or (isinstance(error, LayoutError) and not _draws()):
        return NOT_INSTALLED
    return USAGE if isinstance(error, (UsageError, RecordError)) else FAILED


def _draws() -> bool:
    """Whether a Graphviz is here at all."""
    return bool(shutil.which("dot") or importlib.util.find_spec("pygraphviz"))


def _error(error: Exception) -> dict[str, str]:
    return {"type": type(error).__name__.lstrip("_"), "message": _message(error)}


def _message(error: Exception) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error.name} is not installed; `compile-lens doctor` says what to install"
    if not isinstance(error, LensError):
        return f"{type(error).__name__}: {text} (--traceback shows where)"
    return text


def _say_error(error: Exception) -> None:
    _print(f"compile-lens: {' '.join(_message(error).split())}", sys.stderr)


def _show_traceback(args: argparse.Namespace, error: Exception | None) -> None:
    if args.traceback and error is not None:
        _print("".join(traceback.format_exception(error)), sys.stderr)


def _print(text: str, stream: Any = None) -> None:
    """Print also where the terminal's encoding lacks some characters of the text."""
    from .views.characters import printable

    stream = stream or sys.stdout
    print(printable(text, getattr(stream, "encoding", None)).rstrip("\n"), file=stream, flush=True)
