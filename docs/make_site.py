"""Makes the site: ``python docs/make_site.py [FOLDER]``; ``FOLDER/index.html`` opens without a server.

The lessons are run for it, so that what they show is there and alive. What a lesson gave is kept in ``build/lessons``
for as long as neither it nor the package nor torch is another. Every link inside the site is checked, and a warning is
an error; ``--links`` asks the addresses outside, over the network, and makes nothing.
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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "build" / "lessons"


def main() -> int:
    """The command line."""
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
    parser.add_argument("--links", action="store_true", help="ask the addresses outside; makes no pages")
    given = parser.parse_args()
    if importlib.util.find_spec("sphinx") is None:
        print("Sphinx is not installed: pip install '.[docs]'", file=sys.stderr)
        return 3
    if taken(given.folder) and not given.links:
        print(f"{given.folder} holds something else than a site: name another folder", file=sys.stderr)
        return 2
    code = made(given.folder, given.lessons, given.solutions, "linkcheck" if given.links else "html")
    if code == 0 and not given.links:
        print(f"the site is at {given.folder / 'index.html'}")
    return code


def made(
    folder: Path, lessons: str = "*", solutions: bool = False, builder: str = "html", kept: Path = KEPT
) -> int:
    """Make the site in a folder, in a process of its own; Sphinx's exit code. Every warning is an error.

    Those lessons are run whose path matches the pattern ``lessons``; the others are shown without what they print.
    What they gave is kept in ``kept``.
    """
    chosen = {
        "COMPILE_LENS_LESSONS": lessons,
        "COMPILE_LENS_KEPT": str(kept / _state()),
    }
    strict = ["-W", "--keep-going", "-n", "-q", *(["-t", "solutions"] if solutions else [])]
    with tempfile.TemporaryDirectory() as name:
        new = Path(name) / "site"
        places = ["-c", str(ROOT / "docs"), "-d", str(Path(name) / "doctrees"), str(ROOT), str(new)]
        command = [sys.executable, "-m", "sphinx", *strict, "-b", builder, *places]
        code = subprocess.run(command, env={**os.environ, **chosen}).returncode
        if code == 0 and builder == "html":
            shutil.rmtree(
                folder, ignore_errors=True
            )  # no page of an earlier one stays, such as that of solutions
            shutil.copytree(new, folder)
    return code


def taken(folder: Path) -> bool:
    """Whether there is something in a folder that is no site, and that is not to be overwritten."""
    return folder.exists() and not (folder / ".buildinfo").is_file() and any(folder.iterdir())


def _state() -> str:
    """What lessons' outputs depend on beside their own cells: the package's files, torch and Python."""
    seen = hashlib.sha256(f"{importlib.metadata.version('torch')} {sys.version}".encode())
    for path in sorted((ROOT / "compile_lens").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            seen.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return seen.hexdigest()[:16]


if __name__ == "__main__":
    sys.exit(main())
