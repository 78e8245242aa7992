"""Compares the eager operators and bytes of a capture with plain eager PyTorch, over OpInfo and the patterns.

    python tests/helpers/eager_sweep.py [--only NAME ...] [--every N] [--out FILE] [--limit SECONDS]

Three samples of four dtypes of each entry of ``op_db`` are captured, and run in eager PyTorch under ``eager_bytes``.
Results are saved to ``--out``; an interrupted run resumes there.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import eager_bytes
import torch
from torch.utils import _pytree as pytree

TYPES = (torch.float32, torch.bfloat16, torch.int64, torch.complex64)
SAMPLES = 3
PARTS = 20
"""Tests that share the entries of OpInfo."""


def entries() -> dict[str, Any]:
    """Return the entries of ``op_db`` by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations as described
    described.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)  # Dynamo gives up at a seed
    return {
        f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}": op for op in described.op_db
    }


def copied(tree: Any) -> Any:
    """Return a tree with tensors of the same values and memory layout, each a leaf if it requires a gradient."""

    def copy(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        other = value.detach()
        if value.layout == torch.strided and not (value.is_conj() or value.is_neg()):
            memory = value.untyped_storage().clone()
            other = torch.empty(0, dtype=value.dtype).set_(
                memory, value.storage_offset(), value.size(), value.stride()
            )
        return other.requires_grad_(value.requires_grad)

    return pytree.tree_map(copy, tree)


def differences(
    fn: Callable[..., Any], args: Any, kwargs: Any, parameters: Iterable[torch.Tensor] = ()
) -> tuple[str, list[str]]:
    """Return why the two cannot be compared, or ``""``, and each figure that differs."""
    import compile_lens

    try:
        oracle = eager_bytes.eager(fn, *copied((args, kwargs)), parameters)
    except Exception as error:  # an entry for another device or dtype
        return f"eager: {type(error).__name__}: {str(error).strip()[:150]}", []
    torch._dynamo.reset()
    try:
        capture = compile_lens.capture(fn, *args, kwargs=kwargs)
    except compile_lens.CaptureError as error:
        return f"capture: {str(error).strip()[:200]}", []
    if capture.breaks or capture.skipped:
        reasons = [*capture.breaks, *(s.cause for s in capture.skipped)]
        return f"Dynamo: {reasons[0].reason.strip().splitlines()[0][:150]}", []
    notes = [c.eager_note for c in capture.compilations if c.eager is None]
    if notes:
        return "", [f"not counted: {notes[0]}"]
    counts: collections.Counter[str] = collections.Counter()
    nbytes: dict[str, Any] = {}
    for op in [op for c in capture.compilations for op in c.eager or ()]:
        counts[op.name] += op.count
        known = nbytes.get(op.name, 0)
        nbytes[op.name] = None if known is None or op.nbytes is None else known + op.nbytes
    rows = []
    for name in sorted(set(counts) | set(oracle.counts)):
        if counts[name] != oracle.counts[name]:
            rows.append(f"{name}: {counts[name]} ops, eager {oracle.counts[name]}")
        elif nbytes[name] != oracle.nbytes[name]:
            rows.append(f"{name}: {nbytes[name]} B, eager {oracle.nbytes[name]}")
    return "", rows


def of_entry(name: str, op: Any, samples: int = SAMPLES) -> list[dict[str, Any]]:
    """Return a row for each sample of each dtype."""
    rows = []
    for dtype in TYPES:
        if dtype not in op.dtypes:
            continue
        torch.manual_seed(0)
        random.seed(0)
        needs_grad = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
        try:
            drawn = list(itertools.islice(op.sample_inputs("cpu", dtype, requires_grad=needs_grad), samples))
        except Exception as error:  # samples that need a library or another device
            rows.append(
                {
                    "name": name,
                    "dtype": str(dtype),
                    "unlike": f"{type(error).__name__}: {error}"[:150],
                    "rows": [],
                }
            )
            continue
        operator = op.get_op()
        for number, sample in enumerate(drawn):

            def fn(*args: Any, operator: Any = operator, **kwargs: Any) -> Any:
                return operator(*args, **kwargs)

            try:
                unlike, differing = differences(fn, (sample.input, *sample.args), dict(sample.kwargs))
            except Exception as error:  # an error in this project, which must be reported
                unlike, differing = "", [f"{type(error).__name__}: {str(error)[:200]}"]
            rows.append(
                {"name": name, "dtype": str(dtype), "sample": number, "unlike": unlike, "rows": differing}
            )
    return rows


def worker(names: list[str], out: Path) -> None:
    """Write the rows of each name."""
    warnings.simplefilter("ignore")
    known = entries()
    for name in names:
        with out.open("a") as file:
            file.write(json.dumps({"begun": name}) + "\n")
        rows = of_entry(name, known[name])
        with out.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
            file.write(json.dumps({"done": name}) + "\n")


def read(out: Path) -> list[dict[str, Any]]:
    """Return the rows of a file."""
    return [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def summary(rows: list[dict[str, Any]]) -> str:
    """Return the differences, and the share of rows that agree."""
    samples = [r for r in rows if "rows" in r and "sample" in r]
    compared = [r for r in samples if not r["unlike"]]
    good = [r for r in compared if not r["rows"]]
    by_reason = collections.Counter(r["unlike"].partition(":")[0] for r in samples if r["unlike"])
    lines = [f"{r['name']} {r['dtype']} {r['sample']}: {'; '.join(r['rows'])}" for r in compared if r["rows"]]
    share = 100 * len(good) / len(compared) if compared else 0.0
    entries_done = len({r["done"] for r in rows if "done" in r})
    died = {r["begun"] for r in rows if "begun" in r} - {r["done"] for r in rows if "done" in r}
    lines.append(
        f"{entries_done} entries, {len(samples)} samples, {len(compared)} compared, {len(good)} equal ({share:.2f} %); "
        f"not compared: {dict(by_reason)}; processes that died at: {sorted(died)}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="these entries")
    parser.add_argument("--every", type=int, default=1, help="one entry of so many")
    parser.add_argument("--out", type=Path, default=Path("eager_sweep.jsonl"), help="where results are kept")
    parser.add_argument("--limit", type=float, default=1e9, help="how long the run may take, in seconds")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return worker(given.only, given.out)
    names = given.only or sorted(entries())[:: given.every]
    end = time.monotonic() + given.limit
    while time.monotonic() < end:
        begun = {r["begun"] for r in read(given.out) if "begun" in r}
        left = [n for n in names if n not in begun]
        if not left:
            break
        command = [sys.executable, __file__, "--worker", "--out", str(given.out), "--only", *left[:40]]
        try:
            subprocess.run(
                command, timeout=min(900, max(1, end - time.monotonic())), stderr=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired:
            pass
    print(summary(read(given.out)))
    return None


if __name__ == "__main__":
    main()
