"""Captures every OpInfo operator, and compares values and launches with torch's own.

    python tests/helpers/opinfo.py [--sample N] [--only NAME ...] [--grad] [--launches] [--out FILE]

The first sample on the CPU of each entry of ``torch.testing._internal.common_methods_invocations.op_db`` that takes
float32 is compiled by plain ``torch.compile``. The generated module counts its own launches while it runs (each
call of a generated kernel, of a library, of an operator that is not a view), and its result is compared with eager
(under eager's random numbers, where it draws any). Then this
project captures it: the ledger must report that number of launches, and ``verify`` must give the same verdict as the
plain comparison. Results are saved to a file, and an interrupted run resumes where it stopped.

It needs ``expecttest`` and a C++ compiler, and builds hundreds of modules: with two cores, more than an hour. With
``--launches`` nothing is built: generated kernels do nothing when they are called, and no value is compared.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import collections
import contextlib
import json
import random
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from full_text import full
from unbuilt import unbuilt

FREE = re.compile(
    r"empty|_efficientzerotensor|_alloc|_reinterpret|assert|item$|sym_|lift_fresh|detach$|set_$|resize"
)
"""Operators in a wrapper that launch nothing: they allocate, query or check."""

UNSPECIFIED = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
"""Operators whose values are, by their documentation, uninitialized memory: no two runs can be compared."""

DONE, REFUSED = ("agrees", "differs"), "torch.compile does not take it"


def entries() -> dict[str, Any]:
    """Return the entries that take float32 on the CPU, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations as described
    # Entries that draw numbers set a seed around each call, where Dynamo gives up. Here every call has the same state.
    described.wrapper_set_seed = _unseeded
    return {
        f"{op.name}{'.' + op.variant_test_name if op.variant_test_name else ''}": op
        for op in described.op_db
        if torch.float32 in op.dtypes
    }


def _unseeded(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return op(*args, **kwargs)


def call_of(op: Any, grad: bool) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return the operator and its first sample, with the same numbers each time."""
    torch.manual_seed(0)
    random.seed(0)
    sample = next(iter(op.sample_inputs("cpu", torch.float32, requires_grad=grad and op.supports_autograd)))
    operator = op.get_op()

    def fn(*args: Any, **kwargs: Any) -> Any:
        return operator(*args, **kwargs)

    return fn, (sample.input, *sample.args), dict(sample.kwargs)


# Plain torch: the value, and the actual launches of a module ---------------------------------------------------------


class _Counting(ast.NodeTransformer):
    """Wraps each call that may launch something in ``compile_lens_launch``."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = ast.unparse(node.func)
        launches = name.startswith(
            ("extern_kernels.", "torch.ops.", "aten.", "prims.", "inductor_ops.", "cpp_")
        )
        if launches or name.endswith(".copy_"):
            label = ast.Constant(name)
            node.args = [label, node.func, *node.args]
            node.func = ast.Name("compile_lens_launch", ast.Load())
        return node


def _counting(source: str) -> str:
    tree = ast.parse(source)
    for item in ast.walk(tree):
        if isinstance(item, ast.FunctionDef) and (item.name == "call" or item.name.startswith("partition_")):
            _Counting().visit(item)
    return ast.unparse(ast.fix_missing_locations(tree))


@contextlib.contextmanager
def counted() -> Iterator[collections.Counter[str]]:
    """Return the names and numbers of launches of every module that is built in between."""
    from torch._inductor.codecache import PyCodeCache

    launches: collections.Counter[str] = collections.Counter()

    def launch(name: str, function: Any, *args: Any, **kwargs: Any) -> Any:
        launches[name] += not _is_free(name, function)
        return function(*args, **kwargs)

    real = PyCodeCache.__dict__["write"]
    builtins.compile_lens_launch = launch  # type: ignore[attr-defined]
    PyCodeCache.write = classmethod(
        lambda cls, source, *a, **k: real.__func__(cls, _counting(source), *a, **k)
    )
    try:
        yield launches
    finally:
        PyCodeCache.write = real
        del builtins.compile_lens_launch  # type: ignore[attr-defined]


def _is_free(name: str, function: Any) -> bool:
    if not isinstance(function, torch._ops.OpOverload):
        return False
    returns = function._schema.returns
    view = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return view or bool(FREE.search(function._schema.name.partition("::")[2]))


def plain(op: Any, grad: bool, build: bool) -> dict[str, Any]:
    """Return torch's own result: whether it compiles the call, its launches, and whether it agrees with eager."""
    import torch._inductor.config as config

    fn, args, kwargs = call_of(op, grad)
    torch.manual_seed(0)
    try:
        before = torch.get_rng_state()
        eager = fn(*args, **kwargs)
        draws = not torch.equal(before, torch.get_rng_state())
        shared = _shared(eager, args, kwargs)
    except Exception as error:  # an entry for another device
        return {"refused": f"eager: {type(error).__name__}: {str(error).strip().splitlines()[0][:150]}"}
    fn, args, kwargs = call_of(op, grad)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    built = contextlib.nullcontext() if build else unbuilt()
    with counted() as launches, built, config.patch(force_disable_caches=True):
        compiled = torch.compile(fn)
        torch.manual_seed(0)
        try:
            result = compiled(*args, **kwargs)
        except Exception as error:  # any error: torch does not compile it, so no claim is needed
            return {"refused": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:150]}"}
        if grad:
            roots = [x for x in torch.utils._pytree.tree_leaves(result) if getattr(x, "requires_grad", False)]
            roots = [x for x in roots if x.layout == torch.strided]  # torch has no ones like a sparse tensor
            if roots:
                torch.autograd.backward(roots, [torch.ones_like(r) for r in roots])
    if not torch._dynamo.utils.counters["stats"]["unique_graphs"]:
        return {"refused": "Dynamo finds no graph in it"}
    row: dict[str, Any] = {"launches": sum(launches.values()), "calls": dict(+launches), "same": None}
    if build:
        row["same"] = same(_with_eagers_numbers(op, grad) if draws else result, eager)
        if row["same"] and _shared(result, args, kwargs) != shared:
            row["same"] = False
    return row


def _shared(result: Any, args: Any, kwargs: Any) -> list[list[bool]]:
    """Return for each tensor of the result the input tensor that it shares memory with."""
    given, results = (
        [x for x in torch.utils._pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]
        for tree in ((args, kwargs), result)
    )
    strided = torch.strided
    return [
        [
            r.layout == g.layout == strided
            and 0 != r.untyped_storage().data_ptr() == g.untyped_storage().data_ptr()
            for g in given
        ]
        for r in results
    ]


def _with_eagers_numbers(op: Any, grad: bool) -> Any:
    import torch._inductor.config as config

    fn, args, kwargs = call_of(op, grad)
    torch._dynamo.reset()
    with config.patch(force_disable_caches=True, fallback_random=True):
        torch.manual_seed(0)
        return torch.compile(fn)(*args, **kwargs)


def same(result: Any, eager: Any) -> bool | None:
    """Return True if torch considers them close; ``None`` for values that it does not compare."""
    try:
        torch.testing.assert_close(result, eager, equal_nan=True)
    except AssertionError:
        return False
    except (TypeError, ValueError):
        return None
    return True


# This project ------------------------------------------------------------------------------------------------------


def ours(op: Any, grad: bool, build: bool) -> dict[str, Any]:
    """Return the results of the record and of ``verify`` for the same call."""
    import compile_lens

    torch._dynamo.reset()
    fn, args, kwargs = call_of(op, grad)
    record = compile_lens.capture(fn, *args, kwargs=kwargs)
    total = record.ledger.total.launches if record.compilations else 0
    if not build:
        return {"launches": total, "verdict": "", "same_code": None}
    fn, args, kwargs = call_of(op, grad)
    report = record.verify(fn, *args, kwargs=kwargs)
    return {
        "launches": total,
        "verdict": report.verdict,
        "same_code": report.same_code,
        "text": full(report)[:1500],
    }


def judged(name: str, op: Any, grad: bool, build: bool = True) -> dict[str, Any]:
    """Return one row of the table. ``ok`` is ``None`` if torch does not compile the entry."""
    started = time.perf_counter()
    row: dict[str, Any] = {"name": name, "ok": None}
    try:
        row["torch"] = plain(op, grad, build)
        if "refused" not in row["torch"]:
            row["ours"] = ours(op, grad, build)
            row["problems"] = problems(name, row["torch"], row["ours"])
            row["ok"] = not row["problems"]
    except Exception as error:  # any error becomes a row of the table and does not end it
        row["problems"] = [f"{type(error).__name__}: {str(error).strip()[:300]}"]
        row["ok"] = False
    row["seconds"] = round(time.perf_counter() - started, 1)
    return row


def problems(name: str, torchs: dict[str, Any], mine: dict[str, Any]) -> list[str]:
    """Return the points in which this project's results differ from torch's."""
    texts = []
    if mine["launches"] != torchs["launches"]:
        texts.append(f"launches {mine['launches']}, torch {torchs['launches']}: {torchs['calls']}")
    verdict = mine["verdict"]
    if name in UNSPECIFIED or verdict == "not comparable: uninitialised memory":
        if not (name in UNSPECIFIED and verdict == "not comparable: uninitialised memory"):
            texts.append(f"verify: {verdict}")
    elif torchs["same"] and verdict not in ("agrees", "nothing to compare"):
        texts.append(f"verify: {verdict}, and plain torch agrees with eager")
    elif torchs["same"] is False and verdict == "agrees":
        texts.append("verify: agrees, and plain torch differs from eager")
    if mine["same_code"] is False:
        texts.append("verify built other code")
    return texts


# The run -----------------------------------------------------------------------------------------------------------


def worker(names: list[str], grad: bool, build: bool) -> None:
    """Judge each name that is read, and write a line of JSON for each."""
    warnings.simplefilter("ignore")
    known = entries()
    for name in names:
        print(json.dumps({"started": name}), flush=True)
        print(json.dumps(judged(name, known[name], grad, build)), flush=True)


def run(
    names: list[str], options: list[str], out: Path, seconds: float, limit: float, script: str = __file__
) -> None:
    """Judge the names that are not yet in ``out``, with ``script``; a process that dies or hangs is one row."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        left = [n for n in names if n not in read(out)]
        if not left:
            return
        _some(left[:50], options, out, seconds, end, script)


def _some(names: list[str], options: list[str], out: Path, seconds: float, end: float, script: str) -> None:
    import selectors

    command = [sys.executable, script, "--worker", *options, "--only", *names]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    selector = selectors.DefaultSelector()
    selector.register(process.stdout, selectors.EVENT_READ)
    doing = names[0]
    while True:
        ready = selector.select(min(seconds, max(1.0, end - time.monotonic())))
        line = process.stdout.readline() if ready else ""
        if not line:
            process.kill()
            died = process.wait()
            if time.monotonic() < end and doing:
                why = f"no answer in {seconds:.0f} s" if not ready else f"the process ended with {died}"
                _write(out, {"name": doing, "ok": False, "problems": [why]})
            return
        row = json.loads(line)
        if "started" in row:
            doing = row["started"]
            continue
        _write(out, row)
        doing = ""
        if row["name"] == names[-1]:
            process.wait()
            return


def _write(out: Path, row: dict[str, Any]) -> None:
    with out.open("a") as file:
        file.write(json.dumps(row) + "\n")


def read(out: Path) -> dict[str, dict[str, Any]]:
    """Return the existing rows, by name."""
    if not out.exists():
        return {}
    return {row["name"]: row for row in map(json.loads, out.read_text().splitlines())}


def table(rows: list[dict[str, Any]]) -> str:
    """Return the faults, and the shares."""
    judged = [r for r in rows if r["ok"] is not None]
    lines = [f"{r['name']:45} {'; '.join(r['problems'])}" for r in judged if not r["ok"]]
    lines += [f"{r['name']:45} {REFUSED}: {r['torch']['refused']}" for r in rows if r["ok"] is None]
    good = sum(bool(r["ok"]) for r in judged)
    share = 100 * good / len(judged) if judged else 0.0
    verdicts = collections.Counter(r["ours"]["verdict"] or "no value compared" for r in judged if "ours" in r)
    lines.append(
        f"{len(rows)} entries, {len(judged)} that torch.compile takes; {good} ({share:.1f} %) as torch has it; "
        f"{dict(verdicts)}"
    )
    return "\n".join(lines)


def sweep_parser(description: str, out: str, seconds: float) -> argparse.ArgumentParser:
    """Return a parser with the options of every sweep over the entries."""
    parser = argparse.ArgumentParser(description=description.partition("\n")[0])
    parser.add_argument("--only", nargs="*", help="these entries")
    parser.add_argument("--out", type=Path, default=Path(out), help="where results are kept")
    parser.add_argument("--seconds", type=float, default=seconds, help="how long an entry may take")
    parser.add_argument("--limit", type=float, default=1e9, help="how long the run may take, in seconds")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser


def main() -> None:
    parser = sweep_parser(str(__doc__), "opinfo.jsonl", seconds=300)
    parser.add_argument("--sample", type=int, help="this many entries, spread over all")
    parser.add_argument("--grad", action="store_true", help="with gradients where an entry has them")
    parser.add_argument("--launches", action="store_true", help="launches alone: nothing is built")
    given = parser.parse_args()
    if given.worker:
        return worker(given.only, given.grad, not given.launches)
    names = given.only or sorted(entries())
    if given.sample:
        random.Random(0).shuffle(names)
        names = names[: given.sample]
    options = [f"--{name}" for name in ("grad", "launches") if getattr(given, name)]
    run(names, options, given.out, given.seconds, given.limit)
    rows = read(given.out)
    print(table([rows[n] for n in names if n in rows]))
    return None


if __name__ == "__main__":
    main()
