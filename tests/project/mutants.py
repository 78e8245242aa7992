"""Changes one line of the package at a time, and reports the tier that detects it: ``python -m tests.project.mutants``.

A seed draws the lines, some from every room. Each mutant runs against the quick tier, its own tests first; survivors
run against the full tier (``--full``). Results are saved to ``mutants.json`` beside this file, so that an interrupted
run resumes. An equivalent mutant is marked there by hand, ``"equivalent": "why"``: another one of its room is drawn
in its place.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULT = Path(__file__).with_name("mutants.json")

LEAST = 2
"""Minimum mutants of each room; the others are distributed by the rooms' lines."""

HOUR = 3600.0

SWAPPED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


@dataclass(frozen=True)
class Mutant:
    """One line of a file, before and after; ``at`` counts equal lines of the file from 0."""

    file: str
    before: str
    after: str
    at: int = 0

    @property
    def key(self) -> str:
        return hashlib.sha1(f"{self.file}|{self.before}|{self.after}|{self.at}".encode()).hexdigest()[:12]

    @property
    def room(self) -> str:
        return room_of(self.file)

    def applied(self, text: str) -> str:
        """Return the text of the file with the change."""
        lines = text.split("\n")
        number = [n for n, line in enumerate(lines) if line == self.before][self.at]
        lines[number] = self.after
        return "\n".join(lines)


def room_of(file: str) -> str:
    """Return the folder of a file below the package, or below ``_torch``; ``""`` for the package's own files."""
    parts = Path(file).parts[1:-1]
    return "/".join(parts[:2] if parts[:1] == ("_torch",) else parts[:1])


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """Return every one-line change that this script can make, within functions."""
    lines = text.split("\n")
    for node in _nodes(ast.parse(text)):
        if node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1]
        start, end = (len(line.encode()[:at].decode()) for at in (node.col_offset, node.end_col_offset or 0))
        for new in _changes(node, line[start:end]):
            after = line[:start] + new + line[end:]
            same = [n for n, other in enumerate(lines) if other == line]
            if after != line:
                yield Mutant(file, line, after, same.index(node.lineno - 1))


def _nodes(tree: ast.AST) -> Iterator[Any]:
    """Yield expressions and statements in the bodies of functions, without type annotations."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    yield from (node for node in ast.walk(statement) if hasattr(node, "lineno"))


def _changes(node: ast.AST, text: str) -> Iterator[str]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _swapped(node.ops[0], text, node.left, node.comparators[0])
    elif isinstance(node, ast.BinOp):
        yield from _swapped(node.op, text, node.left, node.right)
    elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
        yield from _swapped(node.op, text, *node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"bool({text.removeprefix('not').strip()})"
    elif isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        yield "return None"
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield str(node.value + 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield str(not node.value)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "pass"


def _swapped(operator: ast.AST, text: str, left: ast.expr, right: ast.expr) -> Iterator[str]:
    """Return the text with the other operator, if it is the only one of its kind between the operands."""
    if type(operator) in SWAPPED:
        old, new = SWAPPED[type(operator)]
        width = (left.end_col_offset or 0) - left.col_offset
        rest = len(text.encode()) - ((right.end_col_offset or 0) - right.col_offset)
        between = text.encode()[width:rest].decode(errors="replace")
        if between.count(old) == 1 and len(between) < len(old) + 4:
            yield text.encode()[:width].decode() + between.replace(old, new) + text.encode()[rest:].decode()


def _parses(mutant: Mutant, text: str) -> bool:
    try:
        compile(mutant.applied(text), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


def drawn(root: Path, count: int, seed: int, equivalent: frozenset[str] = frozenset()) -> list[Mutant]:
    """Return the mutants of a run: some of every room, one of each file before a second one of any."""
    files = sorted(path.relative_to(root).as_posix() for path in (root / "compile_lens").rglob("*.py"))
    texts = {file: (root / file).read_text(encoding="utf-8") for file in files}
    sizes: Counter[str] = Counter()
    for file, text in texts.items():
        sizes[room_of(file)] += text.count("\n")
    spare = max(0, count - LEAST * len(sizes))
    share = {room: LEAST + math.floor(spare * size / sizes.total()) for room, size in sizes.items()}
    chosen = []
    for room in sorted(share):
        ours = sorted((file for file in files if room_of(file) == room), key=lambda file: _turn(seed, file))
        pools: list[list[Mutant]] = []
        for file in ours:
            if len(pools) == share[room]:
                break
            pool = [one for one in mutants(file, texts[file]) if one.key not in equivalent]
            if pool:
                pools.append(sorted(pool, key=lambda one: _turn(seed, one.key)))
        most = max(map(len, pools), default=0)
        turns = (pool[turn] for turn in range(most) for pool in pools if turn < len(pool))
        valid = (one for one in turns if _parses(one, texts[one.file]))
        chosen += [one for one, _ in zip(valid, range(share[room]))]
    return chosen


def _turn(seed: int, name: str) -> str:
    """Return a position in the order of the draw that does not depend on other files or lines."""
    return hashlib.sha1(f"{seed} {name}".encode()).hexdigest()


def tests_of(mutant: Mutant, root: Path) -> list[list[str]]:
    """Return the tests to run first for a mutant: files that name its module, then the folder of its room."""
    word = re.compile(rf"\b{re.escape(Path(mutant.file).stem)}\b")
    folder = room = mutant.room
    while room and not (root / "tests" / room).is_dir():
        room = room.rpartition("/")[0]
    folder = f"tests/{room}" if room else ""
    naming = [
        path.relative_to(root).as_posix()
        for path in sorted((root / "tests").glob("**/test_*.py"))
        if "browser" not in path.parts and "node_modules" not in path.parts
        if word.search(path.read_text(encoding="utf-8"))
    ]
    near = [file for file in naming if file.startswith(f"{folder or 'tests'}/")][:8]
    return [words for words in (near, [folder] if folder else []) if words]


def killed(root: Path, words: list[str], seconds: float) -> str:
    """Return the first test that failed, ``""`` if all passed."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header", *words]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not done in {seconds:.0f} s"
    if done.returncode in (0, 5):  # 5: there is no test
        return ""
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.M)
    return failed[1] if failed else f"pytest ended with {done.returncode}"


def scratch(place: Path) -> Path:
    """Return a copy of the committed files, to change them in."""
    subprocess.run(["git", "clone", "-q", "--shared", str(ROOT), str(place)], check=True)
    modules = ROOT / "tests" / "viewer" / "node_modules"
    if modules.exists():
        (place / "tests" / "viewer" / "node_modules").symlink_to(modules.resolve())
    return place


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.project.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=60, help="how many to draw (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the draw (%(default)s)")
    parser.add_argument("--most", type=int, default=10**6, help="how many to run now")
    parser.add_argument("--full", action="store_true", help="have the survivors meet the full tier")
    parser.add_argument("--room", action="append", help="only mutants of this room, such as _torch/code")
    parser.add_argument("--near", action="store_true", help="stop after the tests of the mutant's room")
    parser.add_argument("--processes", default="auto", help="of pytest (%(default)s)")
    words = parser.parse_args()
    state = json.loads(RESULT.read_text(encoding="utf-8")) if RESULT.exists() else {}
    if state.get("seed") != words.seed:
        state = {"seed": words.seed, "mutants": {}}
    known: dict[str, dict[str, Any]] = state["mutants"]
    equivalent = frozenset(key for key, met in known.items() if met.get("equivalent"))
    chosen = drawn(ROOT, words.count, words.seed, equivalent)
    chosen.sort(key=lambda one: _turn(words.seed, one.key))  # a part of them covers all rooms
    with tempfile.TemporaryDirectory() as folder:
        root = scratch(Path(folder) / "copy")
        for mutant in [one for one in chosen if not words.room or one.room in words.room][: words.most]:
            met = known.setdefault(mutant.key, {**vars(mutant)})
            before = dict(met)
            _meet(mutant, met, root, words)
            if met != before:
                RESULT.write_text(json.dumps(state, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
                print(
                    f"{mutant.file}: {mutant.before.strip()} → {mutant.after.strip()}\n    {verdict(met)}",
                    flush=True,
                )
    print(summary([known[mutant.key] for mutant in chosen if mutant.key in known]))


def _meet(mutant: Mutant, met: dict[str, Any], root: Path, words: argparse.Namespace) -> None:
    """Run the tiers that the mutant has not met until a test fails; record its name, or ``""``."""
    file = root / mutant.file
    before = file.read_text(encoding="utf-8")
    file.write_text(mutant.applied(before), encoding="utf-8")
    try:
        if "quick" not in met and "near" not in met:
            runs = (killed(root, ["--quick", "-n", "0", *own], HOUR) for own in tests_of(mutant, root))
            met["near"] = next(filter(None, runs), "")
        if "quick" not in met and (met["near"] or not words.near):
            met["quick"] = met["near"] or killed(root, ["--quick", "-n", words.processes], HOUR)
            del met["near"]
        if words.full and met.get("quick") == "" and "full" not in met:
            met["full"] = killed(root, ["--full", "-n", words.processes], 3 * HOUR)
    finally:
        file.write_text(before, encoding="utf-8")


def verdict(met: dict[str, Any]) -> str:
    """Return the outcome in words."""
    if met.get("quick"):
        return f"killed by {met['quick']}"
    if "quick" not in met:
        return "survived the tests of its room"
    return f"killed by the full tier: {met['full']}" if met.get("full") else "survived"


def summary(all_met: list[dict[str, Any]]) -> str:
    """Return the share that each tier killed."""
    ran = [met for met in all_met if "quick" in met and not met.get("equivalent")]
    quick = sum(bool(met["quick"]) for met in ran)
    both = sum(bool(met["quick"] or met.get("full")) for met in ran)
    return f"{len(ran)} mutants: the quick tier killed {quick}, both {both}"


if __name__ == "__main__":
    shutil.which("git") or sys.exit("this needs git")
    main()
