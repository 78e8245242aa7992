"""Commands of the command line, with their arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from ..child.limits import parse_limit
from ..errors import UsageError
from ..measures.cost import BY as COST_BY
from ..measures.launch_costs import BASES
from ..measures.memory_use import BY as MEMORY_BY
from ..versions import __version__
from . import commands
from .agents.commands import declare as declare_agents
from .brief import brief
from .check import check
from .compare import compare, diff, merge, what_if
from .cost import cost, memory
from .output import EXIT_CODES
from .play import declare as declare_play
from .upgrade import upgrade


class Parser(argparse.ArgumentParser):
    """Argument parser that raises ``UsageError`` where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see `{self.prog} --help`")


def program_start(words: Sequence[str]) -> int:
    """Return the index of the program that ``run`` runs, its ``-m`` or its path, as on Python's command line. All words
    that follow are the program's, even ``--`` and our own options."""
    at = 1 if words[:1] == ["run"] else len(words)
    while at < len(words):
        word = words[at]
        if word == "--":  # as in Python: a path follows, even if it starts with a dash
            return at
        if not word.startswith("-") or word == "-" or (word.startswith("-m") and not word.startswith("--")):
            return at
        at += 2 if _takes_next(word) else 1
    return at


def _takes_next(option: str) -> bool:
    """Return True if the value of an option of ``run`` is the next word; argparse also accepts abbreviated long
    options."""
    return option == "-o" or any(len(option) > 2 and name.startswith(option) for name in _WITH_VALUE)


_WITH_VALUE = ("--out", "--cuda-graphs", "--time-limit")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    common = Parser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON document on stdout")
    common.add_argument("--quiet", action="store_true", help="no progress on stderr")
    common.add_argument("--traceback", action="store_true", help="show where an error came from")
    whole = Parser(
        prog="compile-lens",
        description="Show what torch.compile does to a function: every stage, every kernel, and a ledger.",
        epilog=EXIT_CODES,
        formatter_class=raw,
    )
    whole.add_argument("--version", action="version", version=f"compile-lens {__version__}")
    each = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def add(
        name: str, run: Callable[[argparse.Namespace], int], text: str, more: str = ""
    ) -> argparse.ArgumentParser:
        command = each.add_parser(
            name,
            help=text,
            description=f"{text}. {more}",
            parents=[common],
            epilog=EXIT_CODES,
            formatter_class=raw,
        )
        command.set_defaults(run=run, command=name)
        return command

    demo = add(
        "demo", commands.demo, "Capture sin(x)**2 + cos(x)**2, forward and backward, and write its report"
    )
    demo.add_argument(
        "--out", type=Path, default=Path("compile-lens-demo"), metavar="DIR", help="default: %(default)s"
    )

    expressions = "FUNCTION, --input and --kwarg are\nPython expressions, and are evaluated."
    show = add("show", commands.show, "Capture a function and print what became of it", expressions)
    _add_call(show)
    _add_target(show, "h100, mps, cpu:avx2, …")
    show.add_argument(
        "--memory-curve",
        action="store_true",
        help="also capture it once for each activation_memory_budget, and show what each saves and recomputes",
    )
    _add_story(show)
    _add_full(show)
    _add_out(show)

    briefly = add(
        "brief",
        brief,
        "Capture a function, or open a record, and print facts, evidence and next steps for a coding agent",
        expressions,
    )
    _add_call(briefly)
    _add_target(briefly, "h100, mps, cpu:avx2, …")
    briefly.add_argument(
        "--max-tokens",
        type=int,
        default=2000,
        metavar="N",
        help="print at most this many tokens, counted as three bytes of UTF-8 each (default: %(default)s)",
    )

    costly = add(
        "cost",
        cost,
        "Capture a function, or open a record, and print what a call costs, most expensive first",
        expressions,
    )
    _add_call(costly)
    _add_target(costly, "h100, mps, …")
    costly.add_argument("--by", choices=COST_BY, default="line", help="default: %(default)s")
    costly.add_argument("--basis", choices=BASES, help="the unit (default: the first of these that is known)")
    _add_full(costly, "all rows, not the first 12")

    large = add(
        "memory",
        memory,
        "Capture a function, or open a record, and print its memory by line, by name or by budget",
        expressions,
    )
    _add_call(large)
    _add_target(large, "h100, mps, …")
    large.add_argument("--by", choices=MEMORY_BY, default="line", help="default: %(default)s")
    _add_full(large, "all rows, not the first 12")
    large.add_argument(
        "--curve",
        nargs="*",
        type=float,
        metavar="BUDGET",
        help="capture it with each of these values of activation_memory_budget (default: 1, 0.9, … 0)",
    )
    _add_out(large, "curve")

    compared = add(
        "compare", compare, "Capture a function for several targets and put them side by side", expressions
    )
    _add_call(compared)
    _repeatable(
        compared,
        "--target",
        "NAME",
        "a device, which may be absent; repeatable (default: cpu, h100 and mps)",
    )
    _add_full(compared)
    _add_out(compared, "comparison")

    changing = add(
        "what-if",
        what_if,
        "Turn one switch of the compiler at a time and report which change launches, bytes or the peak",
        expressions + "\nCtrl-C ends it, and what was tried by then is still shown and written.",
    )
    _add_call(changing)
    _add_target(changing, "h100, mps, …")
    _repeatable(
        changing,
        "--switch",
        "NAME",
        "try this one, such as split_reductions; repeatable (default: all that may matter)",
    )
    changing.add_argument(
        "--pairs",
        type=int,
        metavar="N",
        help="try at most this many pairs of the switches that matter; 0 for none (default: 6)",
    )
    _add_out(changing, "outcome")

    divergent = add(
        "divergence",
        commands.divergence,
        "Build a function, compare it with eager PyTorch and, where they differ, find the cause",
        expressions + "\nThe exit code is 4 if the values differ by more than rounding explains.",
    )
    _add_call(divergent)
    _add_target(divergent, "h100, whose kernels run in Triton's interpreter")
    _add_out(divergent, "divergence")

    differing = add(
        "diff",
        diff,
        "Report what differs between two saved records, the cause first",
        "Needs no torch and runs no code of the records.",
    )
    differing.add_argument("a", type=Path, help="the first .json record")
    differing.add_argument("b", type=Path, help="the second")
    _add_fail_on(differing)
    _add_full(differing)
    _add_out(differing, "difference")

    checked = add(
        "check",
        check,
        "Check files of expectations, without pytest",
        "Each function whose name begins\nwith check or test is a check; it takes no argument, or compile_lens.",
    )
    checked.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a Python file, which is run")
    _repeatable(checked, "--only", "NAME", "one check of each file; repeatable")
    checked.add_argument(
        "--pages", type=Path, metavar="DIR", help="keep a page of each capture of a check that fails"
    )
    _add_out(checked, "result")

    upgraded = add(
        "upgrade",
        upgrade,
        "Capture a function under several versions of torch and report what differs",
        expressions
        + "\nEach version has an environment of its own, made by pip once and kept (several GB each).",
    )
    _add_call(upgraded, required=False)
    upgraded.add_argument(
        "--torch",
        nargs="+",
        default=[],
        metavar="VERSION",
        help="two or more versions: 2.13 2.15; without a function, only create the environments (one or more)",
    )
    _add_target(upgraded, "h100, mps, …")
    upgraded.add_argument(
        "--with",
        dest="extra",
        action="append",
        default=[],
        metavar="NAME",
        help="a package that the function imports besides torch, as pip names it: transformers; repeatable",
    )
    upgraded.add_argument("--index-url", default="", metavar="URL", help="where pip looks for packages")
    upgraded.add_argument(
        "--folder", type=Path, metavar="DIR", help="for the environments (default: the user's cache)"
    )
    upgraded.add_argument("--records", type=Path, metavar="DIR", help="keep each version's record there")
    upgraded.add_argument("--list", action="store_true", help="list the environments that are kept")
    upgraded.add_argument(
        "--remove", nargs="+", default=[], metavar="VERSION", help="remove environments; `all`: every one"
    )
    _add_fail_on(upgraded)
    _add_full(upgraded)
    _add_out(upgraded, "difference")

    supported = add(
        "support",
        commands.support,
        "Report which backends implement an operator, or which operators of a record a target lacks",
        "By torch's own tables.",
    )
    supported.add_argument(
        "op",
        nargs="*",
        help="an ATen operator: sort, aten.sort.stable; several are reported one after another",
    )
    supported.add_argument("--capture", type=Path, metavar="FILE", help="a .json record; needs --target")
    supported.add_argument(
        "--target", metavar="NAME", help="the target that the record is checked for: mps, h100, …"
    )

    program = add(
        "run",
        commands.run,
        "Run a program unchanged and report what torch.compile did in it",
        "Its options come first: those after\nSCRIPT or -m MODULE are the program's, as are output and exit code.",
    )
    # Declared for the help only: ``program_start`` has already split off the program's words.
    program.add_argument("script", nargs="*", metavar="SCRIPT …", help="a Python file, and its arguments")
    program.add_argument("-m", metavar="MODULE …", help="a module instead, and its arguments")
    program.add_argument(
        "--cuda-graphs",
        metavar="NAME",
        help="report what an NVIDIA GPU, which may be absent, would record as CUDA graphs: h100, …",
    )
    program.add_argument(
        "--what-if",
        action="store_true",
        help="run it again, once with each setting of torch's that may help and once with all that helped: as many "
        "runs as the report counts, each of which writes the files that the program writes; may also come last",
    )
    program.add_argument(
        "--time-limit",
        type=parse_limit,
        metavar="SECONDS",
        help="limit of each further run of --what-if (default: four times the first, at least 60)",
    )
    _add_full(program)
    _add_out(program, "program")

    opened = add(
        "open",
        commands.opened,
        "Print or convert a saved record",
        "Needs no torch and runs no code of the record.",
    )
    opened.add_argument("record", type=Path, help="a .json file written by capture.save or --out")
    _add_story(opened)
    _add_full(opened)
    _add_out(opened)

    imported = add(
        "import",
        commands.imported,
        "Read what torch logged of a program that ran with TORCH_TRACE set, or what its profiler measured",
        "Needs no torch and runs nothing\nof the log.",
    )
    imported.add_argument(
        "record",
        type=Path,
        metavar="LOG",
        help="the folder that TORCH_TRACE named, a log in it, or a trace of torch.profiler",
    )
    imported.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help="a saved .json record of a capture or a program, whose kernels get the profiler's times",
    )
    imported.add_argument(
        "--id",
        default="",
        metavar="ID",
        help="which compiled graph of the profiler's trace the capture is of: 3/0 (default: that with its launches)",
    )
    _add_full(imported)
    _add_out(imported, "program")

    merged = add(
        "merge",
        merge,
        "Merge the programs of several ranks and report what differs",
        "Needs no torch and runs\nno code of the records.",
    )
    merged.add_argument(
        "records",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="for each rank, the .json that `run` wrote under torchrun, or a .log of TORCH_TRACE; or a folder of logs",
    )
    _add_full(merged)
    _add_out(merged, "ranks")

    declare_agents(add)
    declare_play(add)
    add("doctor", commands.doctor, "Report what works on this machine, what does not, and what to install")
    return whole


def _add_fail_on(command: argparse.ArgumentParser) -> None:
    _repeatable(
        command,
        "--fail-on",
        "NAMES",
        "exit with 4 if one of these gets worse, such as kernels,breaks,bytes (more launched or moved); a level "
        "without better or worse, such as operators, fails if it differs, and so does a name followed by != "
        "(kernels!=); `changes` means any difference; repeatable",
    )


def _add_call(command: argparse.ArgumentParser, required: bool = True) -> None:
    command.add_argument(
        "function",
        nargs=None if required else "?",
        metavar="FUNCTION",
        help="pkg.module:function or path/to/file.py:function (or file.py:'Net().eval()')",
    )
    _repeatable(
        command,
        "--input",
        "EXPR",
        "a positional argument: Python that can use torch and the module's names, or *EXPR for several; repeatable",
    )
    _repeatable(command, "--kwarg", "NAME=EXPR", "a keyword argument; repeatable")
    command.add_argument(
        "--backward", choices=("auto", "yes", "no"), default="auto", help="capture the backward too"
    )
    command.add_argument(
        "--dynamic", action=argparse.BooleanOptionalAction, default=None, help="compile for any size"
    )
    command.add_argument("--mode", help="torch.compile's mode, such as max-autotune")
    command.add_argument("--fullgraph", action="store_true", help="a graph break is an error")
    command.add_argument(
        "--build",
        action="store_true",
        help="build and run the code (needs a compiler); with --target, translate the kernels to machine code",
    )


def _add_full(command: argparse.ArgumentParser, what: str = "everything, not the first 25 lines") -> None:
    command.add_argument("--full", action="store_true", help=f"print {what}")


def _add_story(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--story",
        action="store_true",
        help="print it as a story in plain words, stage by stage, instead of the page",
    )
    command.add_argument(
        "--lang",
        choices=("en", "zh"),
        default="en",
        help="the language of the story and of pages (default: %(default)s)",
    )


def _add_target(command: argparse.ArgumentParser, such_as: str) -> None:
    text = f"generate code for a device that may be absent: {such_as}"
    command.add_argument("--target", metavar="NAME", help=text)


def _repeatable(command: argparse.ArgumentParser, option: str, metavar: str, help: str) -> None:
    command.add_argument(option, action="append", default=[], metavar=metavar, help=help)


def _add_out(command: argparse.ArgumentParser, what: str = "capture") -> None:
    from ..views.render.formats import FORMS
    from .check import FORMS as CHECK_FORMS

    shown = "comparison" if what == "ranks" else what
    endings = " ".join(CHECK_FORMS if what == "result" else FORMS[what])
    text = f"write the {shown} there, in the format of its extension ({endings}); repeatable"
    command.add_argument("-o", "--out", action="append", default=[], type=Path, metavar="FILE", help=text)
