"""The command ``upgrade``: one function under several versions of torch, each in a separate environment."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import LensError, UsageError
from ..trials import environments
from ..trials.environments import Environment
from ..trials.progress import progress
from .compare import failures, levels, say_failed
from .names import call_words
from .output import DIFFERS, FAILED, OK, check_endings, document, say, say_error

if TYPE_CHECKING:
    from ..results.capture import Capture
    from ..results.comparison import Difference


BOOTSTRAP = Path(__file__).resolve().with_name("bootstrap.py")
"""Script that runs the command line under another Python."""


class _CaptureFailed(LensError):
    """Nothing could be captured under one of the versions."""


def upgrade(args: argparse.Namespace) -> int:
    """Capture a function under each version and print the differences from one to the next; or create, list or remove
    environments."""
    from ..views.render.formats import DIFFERENCE as FORMS

    folder = args.folder or environments.home()
    if args.list:
        return _list(args, folder, environments.kept(folder))
    if args.remove:
        return _remove(args, folder)
    if args.torch and not args.function:
        versions = [environments.checked(version) for version in args.torch]
        return _list(args, folder, [_environment(args, version, folder) for version in versions])
    check_endings(args.out, FORMS)
    wanted = levels(args.fail_on)
    versions = _versions(args)
    if args.records is not None and not os.path.isdir(args.records):
        raise UsageError(f"--records {str(args.records)!r}: there is no such folder; make it first")
    with tempfile.TemporaryDirectory(prefix="compile-lens-") as temporary:
        records = args.records or Path(temporary)
        captures = [_captured(args, version, folder, records) for version in versions]
    from ..api.load import diff

    differences = [diff(a, b) for a, b in pairwise(captures)]
    names = [f"{a}-{b}" for a, b in pairwise(versions)]
    written = _write_differences(differences, names, args.out)
    failed: dict[str, str] = {}
    for one in differences:
        failed = {**failures(one, wanted), **failed}
    if args.json:
        body = {
            "command": args.command,
            "torch": [capture.environment.torch for capture in captures],
            "differences": [one.to_dict() for one in differences],
            "failed_on": list(failed),
            "written": written,
        }
        say(document(body))
    else:
        say("\n\n".join(one.text("full" if args.full else "short") for one in differences))
        for path in written:
            say(f"wrote {path}")
        say_failed(failed)
    stopped = [capture for capture in captures if capture.failure is not None]
    for capture in stopped if not args.json else ():
        failure = capture.failure
        assert failure is not None
        say_error(LensError(f"torch {capture.environment.torch}: {failure.type}: {failure.message}"))
    return FAILED if stopped else DIFFERS if failed else OK


def _versions(args: argparse.Namespace) -> list[str]:
    if not args.function:
        raise UsageError(
            "name a function: compile-lens upgrade net.py:f --input 'torch.rand(8)' --torch 2.13 2.15; or --list"
        )
    versions = [environments.checked(version) for version in args.torch]
    if len(dict.fromkeys(versions)) < 2:
        raise UsageError(f"--torch needs two versions or more, such as 2.13 2.15, not {versions or 'none'}")
    return versions


def _environment(args: argparse.Namespace, version: str, folder: Path) -> Environment:
    """Return the existing environment of a version, or create it."""
    one = environments.find(version, folder)
    if not (one.whole and set(args.extra) <= set(one.extra)):
        say(f"compile-lens: making an environment with torch {version} in {one.folder}", sys.stderr)
    return environments.make(version, folder, args.extra, args.index_url, args.quiet)


def _captured(args: argparse.Namespace, version: str, folder: Path, records: Path) -> Capture:
    """Capture under one version, in its environment, and return the capture."""
    one = _environment(args, version, folder)
    path = records / f"torch-{version}.json"
    path.unlink(missing_ok=True)
    command = [str(one.python), str(BOOTSTRAP), "show", *call_words(args)]
    command += ["--json", "--quiet", "--out", str(path)]
    with progress(f"capturing under torch {one.torch}", quiet=args.quiet):
        variables = {k: v for k, v in os.environ.items() if k != "PYTHONHOME"}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, errors="replace")
    if not os.path.exists(path):
        raise _CaptureFailed(f"torch {one.torch}: {_reason(done, one)}")
    from ..api.load import load

    capture = load(path)
    one.check(capture.environment.torch)
    return capture


def _reason(done: subprocess.CompletedProcess[str], one: Environment) -> str:
    """Return why a capture left no record: its error, or how its process ended."""
    try:
        message = str(json.loads(done.stdout)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        last = done.stderr.strip().rpartition("\n")[2]
        return f"the process of its capture ended with {done.returncode}: {last or 'it printed nothing'}"
    if "is not installed" in message:
        message += f"; into {one.folder}: --with NAME, which pip installs there"
    return message


def _write_differences(differences: list[Difference], names: list[str], paths: list[Path]) -> list[str]:
    """Save the differences and return the paths; if there are several, each file name has the two versions."""
    done = []
    for path in paths:
        for difference, name in zip(differences, names, strict=True):
            own = path if len(differences) == 1 else path.with_name(f"{path.stem}-{name}{path.suffix}")
            done.append(str(difference.save(own)))
    return done


def _list(args: argparse.Namespace, folder: Path, listed: list[Environment]) -> int:
    if args.json:
        body = [
            {"asked": o.asked, "torch": o.torch, "whole": o.whole, "with": list(o.extra), "bytes": o.size(),
             "folder": str(o.folder)}
            for o in listed
        ]  # fmt: skip
        say(document({"command": args.command, "folder": str(folder), "environments": body}))
        return OK
    if not listed:
        say(f"no environment is kept in {folder}")
    for one in listed:
        what = f"torch {one.torch}" if one.whole else "incomplete: it is created again on request"
        more = f", with {', '.join(one.extra)}" if one.extra else ""
        say(f"{one.asked:8} {one.size() / 1e9:6.1f} GB  {what}{more}  {one.folder}")
    return OK


def _remove(args: argparse.Namespace, folder: Path) -> int:
    environment = environments.kept(folder)
    for version in args.remove:
        if version != "all" and version not in {one.asked for one in environment}:
            there = ", ".join(dict.fromkeys(one.asked for one in environment)) or "none"
            raise UsageError(
                f"--remove {version!r}: no such environment in {folder}; there are: {there}; or all"
            )
    gone = [one for one in environment if "all" in args.remove or one.asked in args.remove]
    for one in gone:
        with progress(f"removing {one.folder}", quiet=args.quiet):
            environments.remove(one)
    if args.json:
        say(document({"command": args.command, "removed": [str(one.folder) for one in gone]}))
    else:
        for one in gone:
            say(f"removed {one.folder}")
    return OK
