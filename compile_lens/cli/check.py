"""The command ``check``: files of expectations, without pytest."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError
from ..record.files import write_text
from ..trials.checks import FAILED as NOT_SO
from ..trials.checks import HELD, RAISED, Checked, checks, run_check
from ..trials.progress import progress
from ..views.render.markdown import escape, fenced
from .names import from_file, here
from .output import DIFFERS, FAILED, OK, check_endings, document, say

FORMS = {".md": "Markdown, for a pull request", ".txt": "the text", ".json": "plain data"}
"""File endings of ``--out``, with a description of each format."""


def check(args: argparse.Namespace) -> int:
    """Run the checks of files, print which hold, and save the results to ``--out``."""
    check_endings(args.out, FORMS)
    if args.pages is not None and os.path.exists(args.pages) and not os.path.isdir(args.pages):
        raise UsageError(f"--pages {str(args.pages)!r} is not a folder: name a folder, existing or new")
    here()
    checked: list[Checked] = []
    # With --json the output of the user's code goes to stderr: stdout is one document.
    output = contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext()
    with output:
        files = {str(path): checks(from_file(path, str(path)), str(path), args.only) for path in args.files}
        for file, functions in files.items():
            for function in functions:
                with progress(f"checking {function.__name__}", quiet=args.quiet):
                    one = run_check(function, file, args.pages)
                checked.append(one)
                if not args.json:
                    say(_result_line(one))
    written = []
    for path in args.out:
        makers = {".md": _markdown, ".txt": _text, ".json": _json}
        written.append(str(write_text(path, makers[path.suffix.lower()](checked))))
    if args.json:
        say(document({"command": args.command, **_plain(checked), "written": written}))
    else:
        for line in (_verdict(checked), *(f"wrote {path}" for path in written)):
            say(line)
    outcomes = {one.outcome for one in checked}
    return FAILED if RAISED in outcomes else DIFFERS if NOT_SO in outcomes else OK


def _verdict(checked: Sequence[Checked]) -> str:
    some = [f"{sum(one.outcome == what for one in checked)} {what}" for what in (HELD, NOT_SO, RAISED)]
    return ", ".join(text for text in some if not text.startswith("0 ")) or "no check"


def _result_line(one: Checked) -> str:
    mark = one.outcome if one.outcome == HELD else one.outcome.upper()
    head = f"{mark:6} {_place(one)} {one.name} ({one.seconds:.1f} s)"
    lines = [*one.text.splitlines(), *one.pages]
    return "\n".join((head, *(f"    {line}".rstrip() for line in lines)))


def _place(one: Checked) -> str:
    return f"{one.file}:{one.line}"


def _plain(checked: Sequence[Checked]) -> dict[str, object]:
    return {"verdict": _verdict(checked), "checks": [one.to_dict() for one in checked]}


def _json(checked: Sequence[Checked]) -> str:
    return json.dumps(_plain(checked), indent=2) + "\n"


def _text(checked: Sequence[Checked]) -> str:
    return "\n".join((*(_result_line(one) for one in checked), _verdict(checked))) + "\n"


def _markdown(checked: Sequence[Checked]) -> str:
    parts = [f"# compile-lens check: {_verdict(checked)}"]
    for one in checked:
        if one.outcome == HELD:
            continue
        parts.append(f"## {escape(one.name)} {one.outcome} ({escape(Path(one.file).name)}:{one.line})")
        parts.append(fenced(one.text + "\n"))
        parts += ["\n".join(f"- {escape(line)}" for line in one.pages)] if one.pages else []
    good = [one for one in checked if one.outcome == HELD]
    if good:
        parts.append("\n".join(f"- {escape(one.name)} held" for one in good))
    return "\n\n".join(parts) + "\n"
