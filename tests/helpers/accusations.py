"""Checks the causes that ``divergence`` reports for operators with OpInfo samples against plain torch.

    python tests/helpers/accusations.py [--only NAME ...] [--out FILE] [--limit SECONDS]

The first three float32 and bfloat16 samples of each entry are called, with gradients. Where ``divergence`` reports
that compiled code is wrong, plain ``torch.compile`` is compared with eager: values by ``torch.testing.assert_close``,
and which results share memory with an input. If these agree, the report of ``divergence`` is false. All samples of
an entry are first called together, in one compile; unless every value is compared and agrees, each sample is called
alone. Results are saved to a file, and an interrupted run resumes where it stopped.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import resource
import time
import warnings
from typing import Any

import opinfo
import torch

import compile_lens

SAMPLES = 3
DTYPES = (torch.float32, torch.bfloat16)

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


def call_of(op: Any, dtype: torch.dtype, number: int) -> Call | None:
    """Return the operator and one of its samples, with the same numbers each time; None if it has fewer samples."""
    torch.manual_seed(0)
    random.seed(0)
    samples = op.sample_inputs("cpu", dtype, requires_grad=op.supports_autograd)
    sample = next(itertools.islice(samples, number, None), None)
    if sample is None:
        return None
    operator = op.get_op()

    def fn(*args: Any, **kwargs: Any) -> Any:
        return operator(*args, **kwargs)

    return fn, (sample.input, *sample.args), dict(sample.kwargs)


def outcome(call: Call, compiled: bool) -> list[Any]:
    """Return the result of a call, its gradients, and which results share memory with an input, by plain torch."""
    fn, args, kwargs = call
    torch.manual_seed(0)
    result = (torch.compile(fn) if compiled else fn)(*args, **kwargs)
    leaves = [x for x in torch.utils._pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
    roots = [x for x in leaves if x.requires_grad and x.layout == torch.strided]
    if roots:
        torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])
    given = [x for x in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    memories = {memory(x) for x in given} - {None}
    shared = torch.tensor([memory(x) in memories for x in leaves])
    return [*leaves, *(x.grad for x in given if x.is_leaf), shared]


def memory(tensor: torch.Tensor) -> int | None:
    """Return the address of a tensor's memory; None if it has none, or several."""
    return tensor.untyped_storage().data_ptr() or None if tensor.layout == torch.strided else None


def plain_agrees(op: Any, dtype: torch.dtype, number: int) -> bool:
    """Return True if plain ``torch.compile`` agrees with eager."""
    torch._dynamo.reset()
    first, second = call_of(op, dtype, number), call_of(op, dtype, number)
    assert first is not None and second is not None
    with torch._inductor.config.patch(force_disable_caches=True, fallback_random=True):
        return opinfo.same(outcome(second, True), outcome(first, False)) is not False


def judged(name: str, op: Any) -> dict[str, Any]:
    """Return one row: the verdicts by dtype and sample, and the problems."""
    row: dict[str, Any] = {"name": name, "ok": True, "verdicts": {}, "problems": [], "together": False}
    started, used = time.perf_counter(), processor_seconds()
    keys = [(dtype, number) for dtype in DTYPES if dtype in op.dtypes for number in range(SAMPLES)]
    with contextlib.suppress(Exception):  # any error: each sample is then called alone
        row["verdicts"] = agreeing(op, keys)
    row["together"] = bool(row["verdicts"])
    if not row["together"]:
        for key in keys:
            judge_sample(row, op, *key)
    row["ok"] = not row["problems"]
    row["seconds"] = round(time.perf_counter() - started, 1)
    row["processor"] = round(processor_seconds() - used, 1)
    return row


def processor_seconds() -> float:
    """Return the processor time of this process and of the compilers that it ran."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def label(dtype: torch.dtype, number: int) -> str:
    """Return the key of a sample in a row."""
    return f"{str(dtype).removeprefix('torch.')} {number}"


def agreeing(op: Any, keys: list[tuple[torch.dtype, int]]) -> dict[str, str]:
    """Return the verdicts of all samples, called one after another in one graph; none unless every value agrees."""
    calls = {key: call for key in keys if (call := call_of(op, *key)) is not None}
    samples = [(args, kwargs) for _, args, kwargs in calls.values()]
    operator = op.get_op()

    def every(samples: list[tuple[Any, Any]]) -> list[Any]:
        return [operator(*args, **kwargs) for args, kwargs in samples]

    torch._dynamo.reset()
    divergence = compile_lens.divergence(every, samples)
    verification = divergence.verification
    whole = divergence.agrees and len(divergence.capture.compilations) == 1
    if not whole or verification.not_compared or verification.not_run or verification.random:
        return {}
    return {label(*key): verification.verdict for key in calls}


def judge_sample(row: dict[str, Any], op: Any, dtype: torch.dtype, number: int) -> None:
    """Add the verdict of one sample to a row, or its problem; nothing if there are fewer samples."""
    key = label(dtype, number)
    try:
        call = call_of(op, dtype, number)
        if call is None:
            return
        torch._dynamo.reset()
        divergence = compile_lens.divergence(call[0], *call[1], kwargs=call[2])
        cause = divergence.cause
        row["verdicts"][key] = divergence.verification.verdict
        if divergence.agrees is False:
            text = f"{key}: {cause and cause.kind}: {' '.join(str(divergence).split())[:1500]}"
            if opinfo_refuses(op, dtype, number) or not plain_agrees(op, dtype, number):
                row["verdicts"][key] = f"differs in plain torch too: {text}"
            else:
                row["problems"].append(text)
    except Exception as error:  # any error becomes a row of the table and does not end it
        words = f"{key}: {type(error).__name__}: {str(error).strip()[:300]}"
        if opinfo_refuses(op, dtype, number):
            row["verdicts"][key] = f"torch refuses it: {words}"
        else:
            row["problems"].append(words)


def opinfo_refuses(op: Any, dtype: torch.dtype, number: int) -> bool:
    """Return True if eager or plain ``torch.compile`` raises for a sample."""
    torch._dynamo.reset()
    try:
        for compiled in (False, True):
            call = call_of(op, dtype, number)
            assert call is not None
            outcome(call, compiled)
    except Exception:
        return True
    return not torch._dynamo.utils.counters["stats"]["unique_graphs"]


def main() -> None:
    given = opinfo.sweep_parser(str(__doc__), "accusations.jsonl", seconds=600).parse_args()
    if given.worker:
        warnings.simplefilter("ignore")
        known = opinfo.entries()
        for name in given.only:
            print(json.dumps({"started": name}), flush=True)
            print(json.dumps(judged(name, known[name])), flush=True)
        return
    names = given.only or sorted(opinfo.entries())
    opinfo.run(names, [], given.out, given.seconds, given.limit, __file__)
    rows = opinfo.read(given.out).values()
    for row in rows:
        for problem in row["problems"]:
            print(row["name"], problem)
    print(f"{len(rows)} entries, {sum(not row['ok'] for row in rows)} with a false accusation or a crash")


if __name__ == "__main__":
    main()
