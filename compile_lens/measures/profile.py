"""Join of a profiler's trace with the kernels of a record, by name and by launch order; ambiguous events stay apart."""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from compile_lens.errors import UsageError
from compile_lens.measures.chain import Chain
from compile_lens.record.benchmark import (
    BY_NAME,
    BY_ORDER,
    UNTIMED,
    MeasuredEvents,
    MeasuredGraph,
    MeasuredKernel,
    MeasuredRegion,
    Profile,
)
from compile_lens.record.capture import Record
from compile_lens.record.compilation import Compilation
from compile_lens.record.graph import Frame
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.missing import Missing
from compile_lens.record.profiler_trace import GraphRun, ProfilerTrace, Times, TracedOperation

NO_CPP = (
    "the trace holds no generated C++ kernel: torch marks them only where "
    "torch._inductor.config.cpp.enable_kernel_profile was True when the code was compiled"
)
NO_DEVICE = "the trace holds no kernels of a GPU: profile with ProfilerActivity.CUDA"

Runs = Mapping[tuple[str, str], list[GraphRun]]
"""Runs by compile id and phase, in order of the first run."""


def grouped(trace: ProfilerTrace) -> dict[tuple[str, str], list[GraphRun]]:
    """Return the runs of each compiled graph of a trace."""
    groups: dict[tuple[str, str], list[GraphRun]] = {}
    for run in trace.runs:
        groups.setdefault((run.id, run.phase), []).append(run)
    return groups


def known_ids(record: Record, trace: ProfilerTrace, id: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return the caller's map of the record's compile ids to those of the trace; raise ``UsageError`` for an unknown
    id."""
    own = [c.id for c in record.compilations if c.code]
    traced_ids = list(dict.fromkeys(run.id for run in trace.runs if run.id))
    if isinstance(id, str):
        if id and len(own) != 1:
            raise UsageError(
                f"the capture has {len(own)} compilations with code; give a dict from their ids "
                f"({', '.join(own) or 'none'}) to those of the trace"
            )
        id = {own[0]: id} if id else {}
    for mine, other in id.items():
        if mine not in own:
            raise UsageError(f"the capture has no code of {mine!r}; it has {', '.join(own) or 'none'}")
        if other not in traced_ids:
            raise UsageError(
                f"the trace ran no compiled graph of {other!r}; it has {', '.join(traced_ids) or 'none'}"
            )
    return id


def unmatched(id: str, phase: str, runs: list[GraphRun], why: str, device: str) -> MeasuredGraph:
    """Return the times of a graph whose code is not in the record: its operations by name."""
    return MeasuredGraph(
        id,
        phase,
        "",
        len(runs),
        sum(run.seconds for run in runs),
        unmatched_events=_others((ran for run in runs for ran in run.operations), device),
        missing=(Missing("kernels, lines and modules", why),),
        launches=_launches(runs),
    )


def profile_of_capture(record: Record, trace: ProfilerTrace, ids: Mapping[str, str]) -> Profile:
    """Return the times of a capture's kernels. ``ids`` maps compile ids of the record to those of the trace, if the
    caller knows them; any other is matched if exactly one graph of the trace has the code's launches in order."""
    runs = grouped(trace)
    known = tuple(dict.fromkeys(id for id, _ in runs if id))
    chosen: dict[str, str] = {}
    missing: list[Missing] = []
    for compilation in (c for c in record.compilations if c.code):
        if compilation.id in ids:
            chosen[compilation.id] = ids[compilation.id]
            continue
        fitting = [id for id in known if _fits(compilation, id, runs)]
        if len(fitting) == 1:
            chosen[compilation.id] = fitting[0]
            continue
        why = "no compiled graph of the trace ran the launches of this code in their order"
        if fitting:
            why = f"several compiled graphs of the trace ran these launches: {', '.join(fitting)}; say which by id="
        elif not known:
            why = f"the trace holds no run of a compiled graph{of_readable(trace.missing)}"
        missing.append(Missing(compilation.id, why))
    for id in {id for id, times in Counter(chosen.values()).items() if times > 1}:
        for compilation_id in [c for c, chosen_id in chosen.items() if chosen_id == id and c not in ids]:
            del chosen[compilation_id]
            missing.append(Missing(compilation_id, f"others of its compilations fit {id} of the trace too"))
    by_trace = {id: own for own, id in chosen.items()}
    compilations = {c.id: c for c in record.compilations}
    graphs = []
    for (id, phase), own in runs.items():
        joined = by_trace.get(id) if id else None
        code = compilations[joined].code.get(phase) if joined is not None else None
        if joined is None or code is None:
            why = "it is not in this record" if id else "the trace does not say of which compilation it is"
            graphs.append(unmatched(id, phase, own, why, trace.device))
        else:
            graphs.append(_measured(record, joined, code, id, own, trace.device))
    return _profile(trace, graphs, tuple(missing))


def profile_of_graphs(
    trace: ProfilerTrace, code_of: Callable[[str, str], tuple[Record, Code] | str]
) -> Profile:
    """Return the times of a program's kernels; ``code_of`` gives for a compile id and phase the record and the code
    that ran, or the reason why there is none."""
    graphs = []
    for (id, phase), own in grouped(trace).items():
        resolved = code_of(id, phase) if id else "the trace does not say of which compilation it is"
        if isinstance(resolved, str):
            graphs.append(unmatched(id, phase, own, resolved, trace.device))
        else:
            record, code = resolved
            compilation = next(c.id for c in record.compilations if code in c.code.values())
            measured = _measured(record, compilation, code, id, own, trace.device)
            graphs.append(measured)
    reason = f"the trace holds no run of one{of_readable(trace.missing)}"
    none = () if graphs else (Missing("compiled graphs", reason),)
    return _profile(trace, graphs, none)


def of_readable(missing: Iterable[Missing]) -> str:
    """Return the restriction of a statement on all events of a trace; ``""`` if all could be read."""
    return " that can be read" if any(one.stage == UNTIMED for one in missing) else ""


def profile_alone(trace: ProfilerTrace) -> Profile:
    """Return the times of a trace without a record."""
    return profile_of_graphs(trace, lambda _, __: ALONE)


ALONE = "no record is joined"


def _profile(trace: ProfilerTrace, graphs: list[MeasuredGraph], missing: tuple[Missing, ...]) -> Profile:
    regions = tuple(
        MeasuredRegion(id, len(times), sum(times), *_launched(trace.region_kernels.get(id, ())))
        for id, times in trace.regions.items()
    )
    known = regions, _ranked(trace.kernels), _ranked(trace.operators)
    return Profile(trace.source, trace.device, tuple(graphs), (*missing, *trace.missing), *known)


def _launched(times: Sequence[float | None]) -> tuple[int, float | None]:
    known = [seconds for seconds in times if seconds is not None]
    return len(times), sum(known, 0.0) if len(known) == len(times) else None


def _ranked(times: Times) -> tuple[MeasuredEvents, ...]:
    events = (MeasuredEvents(name, len(own), sum(own)) for name, own in times.items())
    return tuple(sorted(events, key=lambda one: -one.seconds))


def _launches(runs: Iterable[GraphRun]) -> int:
    return sum(len(ran.device_kernels) for run in runs for ran in run.operations)


def _fits(compilation: Compilation, id: str, runs: Runs) -> bool:
    """Return True if all runs of a compile id have the launches of this code in the same order."""
    seen = False
    for (own, phase), runs_of_phase in runs.items():
        if own != id:
            continue
        code = compilation.code.get(phase)
        if code is None:
            return False
        plan = _Plan(code, runs_of_phase)
        if not all(plan.in_order(run) for run in runs_of_phase):
            return False
        seen |= bool(plan.steps)
    return seen


def _measured(
    record: Record, compilation: str, code: Code, id: str, runs: list[GraphRun], device: str
) -> MeasuredGraph:
    plan = _Plan(code, runs)
    operations_by_kernel: dict[str, list[TracedOperation]] = {}
    matched_by: dict[str, str] = {}
    others: list[TracedOperation] = []
    unordered: Counter[str] = Counter()
    for run in runs:
        steps = plan.steps if plan.in_order(run) else None
        seen = iter(steps or ())
        for ran in run.operations:
            name = plan.visible(ran)
            if name in plan.generated:
                operations_by_kernel.setdefault(name, []).append(ran)
                matched_by[name] = BY_NAME
            elif not name:
                others.append(ran)
                continue
            if steps is not None:
                _, launched = next(seen)
                if name not in plan.generated:
                    operations_by_kernel.setdefault(launched, []).append(ran)
                    matched_by[launched] = BY_ORDER
            elif name not in plan.generated:
                others.append(ran)
                unordered[name] += 1
    gpu = code.device != "cpu"
    chain = Chain(record)
    modules = modules_of(record, compilation, code)
    kernels, missing = [], []
    for kernel in code.kernels:
        launches_seen = operations_by_kernel.get(kernel.name, [])
        timed = [ran for ran in launches_seen if not gpu or ran.device_kernels]
        if not timed:
            missing.append(Missing(kernel.name, _why(kernel, plan, launches_seen, unordered, gpu, device)))
            continue
        if len(timed) < len(launches_seen):
            lost = len(launches_seen) - len(timed)
            missing.append(
                Missing(
                    kernel.name, f"{lost} of its {len(launches_seen)} launches have no kernel in the trace"
                )
            )
        times = [sum(s for _, s in ran.device_kernels) if gpu else ran.seconds for ran in timed]
        names = (n for ran in timed for n in ([x for x, _ in ran.device_kernels] if gpu else [ran.name]))
        name = ", ".join(dict.fromkeys(names))
        on_host = sum(ran.seconds for ran in timed) if gpu else None
        kernels.append(measured_kernel(chain, modules, kernel, matched_by[kernel.name], name, times, on_host))
    seconds = sum(run.seconds for run in runs)
    return MeasuredGraph(
        id,
        code.phase,
        compilation,
        len(runs),
        seconds,
        tuple(kernels),
        _others(others, device),
        tuple(missing),
        _launches(runs),
    )


def _why(
    kernel: Kernel,
    plan: _Plan,
    operations: list[TracedOperation],
    unordered: Counter[str],
    gpu: bool,
    device: str,
) -> str:
    name = plan.names.get(kernel.name, "")
    if operations:
        return (
            NO_DEVICE if device == "cpu" else "the trace holds its launches, and no kernel that ran for them"
        )
    if kernel.name in plan.generated:
        return NO_CPP if not gpu and not plan.sees_generated else "the trace does not hold it"
    if not name:
        return "what it calls has no name of one operator, by which the trace could identify it"
    if unordered[name]:
        return (
            f"the trace holds {name} {unordered[name]} times, not in the order of the code's launches: which of them "
            "it is, is not known"
        )
    return f"the trace holds no {name} in the runs of this graph"


class _Plan:
    """The launches of a module in order, as far as a trace can show them.

    Attributes:
        generated: names of the generated kernels.
        names: by kernel, its name in a trace; ``""`` if not known.
        sees_generated: whether the trace shows generated kernels at all.
        steps: pairs of the name in the trace and the kernel, in code order.
    """

    def __init__(self, code: Code, runs: list[GraphRun]) -> None:
        self.generated = {k.name for k in code.kernels if k.language != "extern"}
        self.names = {k.name: k.name if k.name in self.generated else operator(k.name) for k in code.kernels}
        self._known = {name for name in self.names.values() if name}
        self._ordered = code.flow is None and all(all(k.launch_lines) for k in code.kernels)
        shown = {_plain(ran.name) for run in runs for ran in run.operations}
        self.sees_generated = not self.generated.isdisjoint(shown)
        launches = sorted((line, k.name) for k in code.kernels for line in k.launch_lines)
        self.steps = [
            (self.names[name], name)
            for _, name in launches
            if self.names[name] and (self.sees_generated or name not in self.generated)
        ]

    def visible(self, ran: TracedOperation) -> str:
        """Return the trace's name for a launch of the code, ``""`` for any other operation."""
        name = _plain(ran.name)
        return name if name in self._known else ""

    def in_order(self, run: GraphRun) -> bool:
        """Return True if a run shows exactly these launches, in code order."""
        return self._ordered and [n for r in run.operations if (n := self.visible(r))] == [
            n for n, _ in self.steps
        ]


def operator(name: str) -> str:
    """Return the profiler's name for a library call of the generated code (``extern_kernels.mm#2`` is ``aten::mm``);
    ``""`` if it is not a single operator."""
    plain = re.sub(r"#\d+$", "", name)
    own = re.fullmatch(r"extern_kernels\.([a-z]\w*)", plain)
    if own is not None:
        return f"aten::{own[1]}"
    op = re.fullmatch(r"torch\.ops\.(\w+)\.(\w+)(?:\.\w+)?", plain) or re.fullmatch(
        r"(aten)\.(\w+)(?:\.\w+)?", plain
    )
    return f"{op[1]}::{op[2]}" if op is not None else ""


def _plain(name: str) -> str:
    """Return a name without the graph number that torch prefixes to C++ kernels."""
    return re.sub(r"^graph_\d+_(?=cpp_)", "", name)


def measured_kernel(
    chain: Chain,
    modules: Mapping[str, str],
    kernel: Kernel,
    matched_by: str,
    name: str,
    times: Sequence[float],
    on_host: float | None = None,
) -> MeasuredKernel:
    """Return the times of the launches of a kernel, in seconds, with its lines and modules (``modules_of``)."""
    return MeasuredKernel(
        kernel.name,
        matched_by,
        name,
        len(times),
        sum(times),
        min(times),
        statistics.median(times),
        max(times),
        on_host,
        chain.lines(kernel, derivatives=False),
        kernel.origins,
        tuple(dict.fromkeys(modules[o] for o in kernel.origins if modules.get(o))),
    )


def modules_of(record: Record, compilation: str, code: Code) -> dict[str, str]:
    """Return the path of the module of each node from which a graph's code was generated, by the node's name."""
    own = next(c for c in record.compilations if c.id == compilation)
    graph = own.graphs.get(f"{code.phase}.post_grad")
    return {node.name: node.module for node in graph.nodes} if graph is not None else {}


def _others(operations: Iterable[TracedOperation], device: str) -> tuple[MeasuredEvents, ...]:
    """Return the times by name: device times for operations that launch kernels there, if the trace has them."""
    times: dict[str, list[float]] = {}
    for ran in operations:
        if device != "cpu" and ran.launches_on_device and not ran.device_kernels:
            continue
        times.setdefault(ran.name, []).append(
            sum(s for _, s in ran.device_kernels) if ran.device_kernels else ran.seconds
        )
    return tuple(MeasuredEvents(name, len(own), sum(own)) for name, own in times.items())


def by_line(profile: Profile) -> dict[Frame, float]:
    """Return the seconds of the kernels of each Python line, longest first. A kernel of several lines counts in full
    for each of them."""
    seconds: dict[Frame, float] = {}
    for graph in profile.graphs:
        for kernel in graph.kernels:
            lines = {(frame.file, frame.line): frame for frame in kernel.lines}
            for frame in lines.values():
                line = dataclasses.replace(frame, column=None, end_column=None, call="")
                seconds[line] = seconds.get(line, 0.0) + kernel.seconds
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))


def by_module(profile: Profile) -> dict[str, float]:
    """Return the seconds of the kernels of each module by path, longest first. A kernel of several modules counts in
    full for each of them."""
    seconds: dict[str, float] = {}
    for graph in profile.graphs:
        for kernel in graph.kernels:
            for module in kernel.modules:
                seconds[module] = seconds.get(module, 0.0) + kernel.seconds
    return dict(sorted(seconds.items(), key=lambda item: -item[1]))
