"""Shortens the names in the viewer's script: ``python assets/make.py`` does it with everything else.

Needs Node.js and ``npm ci`` in ``tests/viewer``. The modules stay what people read and debug; a page carries
the shortened script, since each page carries its own.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from compile_lens.views.viewer import embed

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "compile_lens" / "views" / "static" / "viewer.min.js"
TERSER = ROOT / "tests" / "viewer" / "node_modules" / ".bin" / "terser"
OPTIONS = (
    "--ecma",
    "2022",
    "--mangle",
    "--compress",
    "passes=3,ecma=2022,unsafe_arrows=true,pure_getters=true",
)


def missing() -> str:
    """Why the script cannot be shortened here, ``""`` if it can."""
    if shutil.which("node") is None:
        return "Node.js is not installed"
    return "" if TERSER.exists() else "terser is not installed: npm ci --prefix tests/viewer"


def shortened() -> str:
    """The script with short names, after a line that says which modules it was made from."""
    if reason := missing():
        raise SystemExit(f"the script cannot be shortened: {reason}")
    whole = embed.joined()
    done = subprocess.run([TERSER, *OPTIONS], input=whole, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"terser could not read the script:\n{done.stderr}")
    return f"{embed.digest(whole)}\n{done.stdout.strip()}\n"


def write() -> None:
    """Writes the file that the package carries."""
    SCRIPT.write_text(shortened(), encoding="utf-8")


def fresh() -> bool:
    """Whether the file was made from the modules as they are. Needs no Node.js."""
    return SCRIPT.is_file() and SCRIPT.read_text(encoding="utf-8").partition("\n")[0] == embed.digest(
        embed.joined()
    )


if __name__ == "__main__":
    write()
