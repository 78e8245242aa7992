"""Common texts of all views: titles of stages, origins of kernels, places and names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from compile_lens.measures.chain import Chain
from compile_lens.measures.ledger import MODELLED, Figure
from compile_lens.measures.operators import is_alternative, recomputing_kernels
from compile_lens.record import claims
from compile_lens.record.capture import THREADS, Record
from compile_lens.record.compilation import LOWERED_STAGES, PHASES, Compilation, Stage
from compile_lens.record.graph import Frame, Graph
from compile_lens.record.kernel import Code, Kernel
from compile_lens.record.messages import first_names
from compile_lens.record.missing import Missing, NotApplicable

from ..document import Lane, Step
from .derivatives import Derivatives, Whose, of_names, phrase
from .quantities import amount, launched, plural

TITLES = {
    "dynamo": "Dynamo",
    "pre_grad": "pre-grad",
    "joint": "joint",
    "forward": "forward",
    "backward": "backward",
    "inference": "inference",
    "post_grad": "post-grad",
    "loops": "loops",
    "groups": "groups",
    "code": "code",
}
"""Titles of the stages."""

MEANINGS = {
    "dynamo": "the FX graph that Dynamo read from the function's bytecode",
    "pre_grad": "after Inductor's passes that run before autograd",
    "joint": "forward and backward together, in ATen operators",
    "forward": "the half that runs now, as handed to Inductor",
    "backward": "the half that runs in .backward(), as handed to Inductor",
    "inference": "no gradient is needed: one graph, as handed to Inductor",
    "post_grad": "after Inductor's passes on that graph: what is lowered",
    "loops": "Inductor's loop nodes as lowered, before fusion",
    "groups": "the scheduler's nodes after fusion: a kernel or call holds one, on a CPU also several",
    "code": "the module that Inductor generated, with its kernels",
}

STAMPS = {
    "generated only": "generated only: no kernel was built or run",
    "built": "built, not run",
    "ran": "built and run",
}

LANGUAGES = {"cpp": "C++", "triton": "Triton", "metal": "Metal", "extern": "library call"}


SAVED = "saved for backward"
FROM_SIZES = "from sizes, not measured"

UNSAID = "no reason was recorded"


def lanes(capture: Record, compilation: Compilation) -> tuple[Lane, ...]:
    """Return the stages of a compilation in compiler order, one lane for each phase."""
    shared: list[Step] = []
    phases: dict[str, list[Step]] = {}
    for stage in compilation.stages:
        step = _step(capture, compilation, stage)
        phase = phase_of(stage.key)
        if phase:
            phases.setdefault(phase, []).append(step)
        else:
            shared.append(step)
    first = [Lane("", tuple(shared))] if shared else []
    return (*first, *(Lane(p, tuple(phases[p])) for p in PHASES if p in phases))


_RESUME = re.compile(r"torch_dynamo_resume_in_(.*)_at_(\d+)", re.DOTALL)


def readable(function: str, form: str = "{}, after line {}") -> str:
    """Return a readable name of a compiled function: Dynamo's resume function ``"torch_dynamo_resume_in_f_at_7"``
    becomes ``"f, after line 7"``."""
    rest = _RESUME.fullmatch(function)
    return form.format(readable(rest[1], form), rest[2]) if rest else function


def phase_of(key: str) -> str:
    """Return the phase of a stage key: ``"forward"`` for ``"forward"`` and ``"forward.loops"``, ``""`` for
    ``"joint"``."""
    head = key.partition(".")[0]
    return head if head in PHASES else ""


def title(key: str) -> str:
    """Return the title of a stage key without its phase: ``"post-grad"`` for ``"forward.post_grad"``."""
    last = key.rpartition(".")[2]
    return TITLES.get(last, last)


def meaning(key: str) -> str:
    """Return the definition of a stage in a few words; ``""`` for an unknown stage."""
    return MEANINGS.get(key.rpartition(".")[2], "")


def _step(capture: Record, compilation: Compilation, stage: Stage) -> Step:
    key = stage.key
    time = seconds(capture, compilation, key)
    if isinstance(stage, Missing):
        return Step(key, title(key), (), time, stage.reason or UNSAID, stage)
    if isinstance(stage, NotApplicable):
        return Step(key, title(key), (), time, "", stage, stage.reason or UNSAID)
    if isinstance(stage, Code):
        facts = (plural(len(stage.kernels), "kernel"), launched(stage, *stage.kernels))
        return Step(key, title(key), facts, time, "", stage)
    last = key.rpartition(".")[2]
    if last in LOWERED_STAGES and last != "post_grad":
        # As in the ledger, buffers that are only passed on do not count.
        work = sum(1 for node in stage.calls if node.kind != "nop")
        return Step(key, title(key), (plural(work, last.removesuffix("s")),), time, "", stage)
    return Step(
        key, title(key), (plural(len(stage.nodes), "node"), plural(len(stage.calls), "call")), time, "", stage
    )


RUN_EAGERLY = "the call, with the captured graphs run eagerly"
"""Label of a run's time if the generated code was not run."""


def seconds(capture: Record, compilation: Compilation, key: str) -> float | None:
    """Return the wall time of a stage in seconds, None if not measured. A key without a compile id counts only if there
    is one compilation."""
    wanted = {f"{compilation.id} {key}"}
    if len(capture.compilations) == 1:
        wanted.add(key)
    times = [t.seconds for t in capture.timings if t.stage in wanted]
    return sum(times) if times else None


def unplaced(capture: Record) -> tuple[tuple[str, float], ...]:
    """Return the timings of parts of the capture that are not stages, by name, in seconds."""
    placed = {f"{c.id} {s.key}" for c in capture.compilations for s in c.stages}
    if len(capture.compilations) == 1:
        placed |= {s.key for s in capture.compilations[0].stages}
    built = any(code.stamp == "ran" for c in capture.compilations for code in c.code.values())
    called = "run" if built or not capture.compilations else RUN_EAGERLY
    return tuple(
        (called if t.stage == "run" else t.stage, t.seconds) for t in capture.timings if t.stage not in placed
    )


def environment(capture: Record) -> tuple[str, ...]:
    """Return the environment of the capture as short facts in a fixed order."""
    env = capture.environment
    target = env.target or env.device
    # A device model is named in the stamp only: nothing ran on it.
    modelled = capture.target is not None and env.device == capture.target.model.title
    same = target == env.device or capture.target is not None
    device = "" if modelled else env.device if same else f"{env.device}, code for {target}"
    if env.isa:  # for CPU code
        threads = dict(env.settings).get(THREADS, "")
        words = f"{env.isa}, {plural(int(threads), 'thread')}" if threads.isdecimal() else env.isa
        device = f"{device} ({words})".strip()
    facts = [f"torch {env.torch}", device]
    facts = [fact for fact in facts if fact]
    if env.triton:
        facts.append(f"triton {env.triton}")
    return (*facts, f"Python {env.python}", env.platform, f"compile_lens {env.compile_lens}")


def asked(capture: Record) -> str:
    """Return the options that differ from the defaults, as in a call; ``""`` if none do."""
    options = capture.options
    parts = [f"target={options.target!r}"] if options.target else []
    if options.backward != "auto":
        parts.append(f"backward={options.backward}")
    if options.dynamic is not None:
        parts.append(f"dynamic={options.dynamic}")
    if options.mode is not None:
        parts.append(f"mode={options.mode!r}")
    if options.fullgraph:
        parts.append("fullgraph=True")
    if options.build:
        parts.append("build=True")
    parts += [f"{name}={value}" for name, value in options.options]
    return ", ".join(parts)


Shared = tuple[tuple[str, tuple[str, ...]], ...]
"""Operators, each with the names of other kernels that also compute it."""

_PARTED = ("reduction", "scan")
"""Kinds of operators whose results Inductor always stores, so that no kernel recomputes them."""


@dataclass(frozen=True)
class Origin:
    """The origin of a kernel: its operators and their Python lines, or why they are unknown.

    ``again`` has the operators that other kernels of the same module also compute, with those kernels; ``parts`` the
    reductions that are split over other kernels, which compute them once in all. ``whose`` maps each operator of a
    backward to the forward operators of which it computes the gradient; ``needed`` are lines that the kernel does not
    compute but whose gradient needs its results; ``instead`` are alternative kernels, of which a call launches only
    one.
    """

    operators: tuple[str, ...]
    lines: tuple[Frame, ...]
    unknown: str = ""
    again: Shared = ()
    parts: Shared = ()
    whose: Whose = ()
    instead: tuple[str, ...] = ()
    needed: tuple[Frame, ...] = ()


class Origins:
    """Kernel → operators → Python lines, for every kernel of a capture."""

    def __init__(self, capture: Record) -> None:
        self._chain = Chain(capture)
        self._others: dict[int, tuple[Shared, Shared]] = {}
        self._whose: dict[int, Whose] = {}
        self._instead: dict[int, tuple[str, ...]] = {}
        derivatives = Derivatives(capture)
        # Inductor may have copied an origin.
        unseen = capture.lacks(claims.KERNEL_LINES, claims.KERNELS)
        for compilation in capture.compilations:
            for code in compilation.code.values():
                graph = compilation.graphs.get(f"{code.phase}.post_grad")
                kinds = {n.name: n.kind for n in graph.nodes if n.compute} if graph and not unseen else {}
                others = recomputing_kernels(code, kinds)
                for k in code.kernels:
                    self._whose[id(k)] = () if unseen else derivatives.of(compilation.id, k)
                    shared = tuple((o, kernels) for o in k.origins if (kernels := others(k, o)))
                    parts = tuple(pair for pair in shared if kinds[pair[0]] in _PARTED)
                    self._others[id(k)] = tuple(pair for pair in shared if pair not in parts), parts
                    self._instead[id(k)] = tuple(o.name for o in code.kernels if is_alternative(k, o))

    def of(self, kernel: Kernel) -> Origin:
        """Return the origin of one kernel, with each Python line once."""
        lines = _by_line(self._chain.lines(kernel, derivatives=False))
        needed = tuple(f for at, f in _by_line(self._chain.lines(kernel)).items() if at not in lines)
        unknown = ""
        if not kernel.origins:
            unknown = kernel.no_origin or "the record names no operator for it"
        elif not lines and not needed:
            unknown = "no Python line is known for these operators"
        shared = self._others.get(id(kernel), ((), ()))
        whose, instead = self._whose.get(id(kernel), ()), self._instead.get(id(kernel), ())
        return Origin(kernel.origins, tuple(lines.values()), unknown, *shared, whose, instead, needed)


def _by_line(frames: Iterable[Frame]) -> dict[tuple[str, int], Frame]:
    return {(f.file, f.line): f for f in frames}


def needed(origin: Origin) -> str:
    """Return the lines whose gradient needs the results of a forward kernel, in words; ``""`` if there are none."""
    return f"needed by the derivative of {places(origin.needed)}" if origin.needed else ""


def again(origin: Origin) -> str:
    """Return in words for which gradients a kernel exists or is needed, and which operators other kernels compute too,
    or in part: ``computed more than once: cos (also in k1)``."""
    parts = [w for w in (phrase(of_names(origin.whose, origin.operators), 8), needed(origin)) if w]
    parts += [f"{title}: {_shared(pairs)}" for title, pairs in shared(origin) if pairs]
    if origin.instead:
        parts.append(
            f"launched here, or {first_names(origin.instead, 2)} instead: the device measures which is faster"
        )
    return "; ".join(parts)


def shared(origin: Origin) -> tuple[tuple[str, Shared], ...]:
    """Return the operators that a kernel shares with others, by kind of sharing."""
    return ("computed more than once", origin.again), ("computed in parts", origin.parts)


def _shared(pairs: Shared, limit: int = 4) -> str:
    return first_names((f"{name} (also in {first_names(where, 2)})" for name, where in pairs), limit)


def place(frame: Frame) -> str:
    """Return a frame as ``name.py:7``, without its folder."""
    return f"{frame.file.replace(chr(92), '/').rpartition('/')[2] or frame.file}:{frame.line}"


def places(frames: Iterable[Frame], limit: int = 6) -> str:
    """Return frames as ``a.py:7, 9, b.py:3``, each line once; at most ``limit``, then the number of others."""
    every = each_place(frames)
    more = [f"and {len(every) - limit} more"] if len(every) > limit else []
    return ", ".join((*every[:limit], *more))


def each_place(frames: Iterable[Frame]) -> tuple[str, ...]:
    """Return each line of frames once, with its file if it differs from the one before: ``a.py:7``, ``9``,
    ``b.py:3``."""
    out: list[str] = []
    last = ""
    for frame in {(frame.file, frame.line): frame for frame in frames}.values():
        name, _, line = place(frame).rpartition(":")
        out.append(line if name == last else f"{name}:{line}")
        last = name
    return tuple(out)


def without_folders(text: str) -> str:
    """Return a text of torch with file names without the machine's folders; a file of an installed package keeps the
    package's: ``torch/package/package_importer.py``."""
    return _PATH.sub(lambda found: _file(found[0]), text)


_PATH = re.compile(
    r"""(?<=[`'"]) (?:[A-Za-z]:)? [\\/] [^`'"\n]+ (?=[`'"])
      | (?<! [\w:/\\.`'"]) (?:[A-Za-z]:)? [\\/] [^\s`'"<>|:,;()]+""",
    re.VERBOSE,
)
"""Pattern of an absolute path; in quotes it may contain spaces. Paths in URLs do not match."""


def _file(path: str) -> str:
    parts = re.split(r"[\\/]", path)
    if "." not in parts[-1]:
        return path
    installed = [i for i, part in enumerate(parts) if part in ("site-packages", "dist-packages")]
    return "/".join(parts[installed[-1] + 1 :] if installed else parts[-1:])


def traffic(kernel: Kernel) -> str:
    """Return the modelled bytes of a kernel, ``~8,000 B``; ``""`` if unknown."""
    if kernel.reads is None or kernel.writes is None:
        return ""
    return amount(Figure(kernel.reads + kernel.writes, MODELLED))


def unchanged(graph: Graph, before: Graph | None) -> bool:
    """Return True if a stage has the same operations as the one before, with the same names."""
    if before is None or len(graph.nodes) != len(before.nodes) or graph.subgraphs or before.subgraphs:
        return False
    return all(
        (a.name, a.op, a.target, a.args, a.kwargs) == (b.name, b.op, b.target, b.args, b.kwargs)
        for a, b in zip(graph.nodes, before.nodes, strict=True)
    )
