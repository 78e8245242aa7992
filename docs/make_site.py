"""Make the site: ``python docs/make_site.py [FOLDER]``; ``FOLDER/index.html`` opens without a server.

The lessons run for it, so that their outputs are there and alive. The outputs of a lesson are kept in ``build/lessons``
until the lesson, the package or torch changes. Every link inside the site is checked, and a warning is an error;
``--links`` checks the addresses outside, over the network, and makes nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / "build" / "lessons"


def main() -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument(
        "folder", type=Path, nargs="?", default=ROOT / "build" / "site", help="where it is made"
    )
    parser.add_argument(
        "--lessons", default="*", metavar="PATTERN", help="the lessons that are run; '' for none"
    )
    parser.add_argument(
        "--solutions", action="store_true", help="for lecturers: also the guide, and a page of solutions"
    )
    parser.add_argument("--links", action="store_true", help="check the addresses outside; makes no pages")
    args = parser.parse_args()
    if importlib.util.find_spec("sphinx") is None:
        print("Sphinx is not installed: pip install '.[docs]'", file=sys.stderr)
        return 3
    if holds_other_files(args.folder) and not args.links:
        print(f"{args.folder} holds files that are no site: name another folder", file=sys.stderr)
        return 2
    code = build(args.folder, args.lessons, args.solutions, "linkcheck" if args.links else "html")
    if code == 0 and not args.links:
        print(f"the site is at {args.folder / 'index.html'}")
    return code


def build(
    folder: Path,
    lessons: str = "*",
    solutions: bool = False,
    builder: str = "html",
    cache: Path = CACHE,
    options: Sequence[str] = (),
) -> int:
    """Make the site in a folder, in a process of its own, and return Sphinx's exit code; every warning is an error.

    Lessons whose path matches the pattern ``lessons`` are run; the others are shown without outputs. Outputs are kept
    in ``cache``. ``options`` are more of Sphinx's own.
    """
    settings = {
        "COMPILE_LENS_LESSONS": lessons,
        "COMPILE_LENS_KEPT": str(kept_outputs(cache)),
    }
    strict = ["-W", "--keep-going", "-n", "-q", *(["-t", "solutions"] if solutions else []), *options]
    with tempfile.TemporaryDirectory() as name:
        new = Path(name) / "site"
        places = ["-c", str(ROOT / "docs"), "-d", str(Path(name) / "doctrees"), str(ROOT), str(new)]
        command = [sys.executable, "-m", "sphinx", *strict, "-b", builder, *places]
        code = subprocess.run(command, env={**os.environ, **settings}).returncode
        if code == 0 and builder == "html":
            # No page of an earlier site remains, such as that of solutions.
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(new, folder)
    return code


def holds_other_files(folder: Path) -> bool:
    """Return True if a folder holds files that are no site, and must not be overwritten."""
    return folder.exists() and not (folder / ".buildinfo").is_file() and any(folder.iterdir())


def kept_outputs(cache: Path = CACHE) -> Path:
    """Return the folder of outputs that fit the present state: the package's files, torch, and Python."""
    digest = hashlib.sha256(f"{importlib.metadata.version('torch')} {sys.version}".encode())
    for path in sorted((ROOT / "compile_lens").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return cache / digest.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
