"""What torch would record as CUDA graphs, and which line keeps the rest from it."""

from __future__ import annotations

from compile_lens.measures.chain import Address, Chain
from compile_lens.record.capture import Record
from compile_lens.record.cuda_graphs import REASONS, CudaGraphs

from ..words.outline import names, plural
from ..words.outline import places as lines
from .model import NAME, NUMBER, TEXT, Finding, Prose, Row, Section, Table, cut
from .places import Place, places

KEY, TITLE = "cuda_graphs", "CUDA graphs"
INTRO = (
    "Which kernels torch would record once and replay under mode='reduce-overhead', by the compiler's own questions. "
    "What is known only when it runs is not in it."
)
WHERE = "capture.compilations[i].cuda_graphs"
RUN_TIME = (
    "Unknown until it runs: whether an input that is written into is itself of an earlier CUDA graph, whether the "
    "addresses that should stay do, how many sizes come (each has a recording of its own), and whether the device "
    "refuses a recording."
)
_ROWS = 300
HEAD, KINDS = ("part", "groups", "recorded", "what", "why", "from"), (NUMBER, NUMBER, NAME, NAME, TEXT, NAME)


def cuda_graphs(capture: Record) -> Finding | None:
    """The finding; ``None`` where nothing was lowered for an NVIDIA GPU."""
    held = [(p, one) for p in places(capture) for one in p.compilation.cuda_graphs if one.phase == p.phase]
    if not held:
        return None
    chain = Chain(capture)
    sections: list[Section] = [_table(chain, place, one) for place, one in held]
    sections.append(Prose("what is not known", (RUN_TIME,)))
    brief = tuple(f"{place.title}: {said(one)}" for place, one in held)
    whole = sum(_whole(one) for _, one in held)
    fact = f"{whole} of {plural(len(held), 'phase')} recorded whole"
    return Finding(KEY, TITLE, INTRO, fact, brief, WHERE, tuple(sections))


def said(one: CudaGraphs) -> str:
    """What becomes of a phase, in a few words."""
    moving = [m.name for m in one.mutated if not m.static]
    if one.unknown:
        return f"not known: {one.unknown}"
    if one.refused:
        return f"nothing is recorded: {one.refused}"
    if moving:
        return (
            f"nothing is recorded unless {names(moving)} come from an earlier CUDA graph: it writes into them"
        )
    kept = sum(part.recorded for part in one.parts)
    if _whole(one):
        return "all of it is recorded"
    return f"{plural(kept, 'part is', 'parts are')} recorded, {len(one.parts) - kept} not"


def _whole(one: CudaGraphs) -> bool:
    fixed = all(m.static for m in one.mutated)
    return bool(one.parts) and not one.refused and fixed and all(part.recorded for part in one.parts)


def _table(chain: Chain, place: Place, one: CudaGraphs) -> Table:
    rows = []
    for number, part in enumerate(one.parts, 1):
        count = str(len(part.groups))
        if part.recorded:
            rows.append(
                Row(
                    (str(number), count, "yes", names(part.groups, 4), "", ""), _at(chain, place, part.groups)
                )
            )
        for group, reason in part.reasons:
            addresses = _at(chain, place, (group,))
            why = f"{REASONS[reason]} ({reason})" if reason in REASONS else reason
            rows.append(Row((str(number), count, "no", group, why, _lines(chain, addresses)), addresses))
    if one.refused:
        at = _known(chain, place, one.node)
        rows.append(Row(("", "", "nothing", one.node, one.refused, _lines(chain, at)), at))
    for mutated in one.mutated:
        at = _known(chain, place, mutated.node)
        why = "it is written into, at an address that stays" if mutated.static else (
            "it is written into: unless it is itself of an earlier CUDA graph, nothing is recorded"
        )  # fmt: skip
        rows.append(
            Row(("", "", "yes" if mutated.static else "no", mutated.name, why, _lines(chain, at)), at)
        )
    shown, left = cut(rows, _ROWS)
    words = [said(one)]
    if not one.asked:
        words.append(
            "the code was compiled without CUDA graphs, and the questions were asked of it, in the order that torch "
            "would give its kernels for them"
        )
    if not one.partitioned:
        words.append(
            "torch._inductor.config.graph_partition is off: one that cannot be recorded keeps all from it"
        )
    return Table(place.title, HEAD, KINDS, shown, tuple(words), False, left, WHERE)


def _at(chain: Chain, place: Place, groups: tuple[str, ...]) -> tuple[Address, ...]:
    return tuple(address for group in groups if (address := place.at("groups", group)) in chain)


def _known(chain: Chain, place: Place, node: str) -> tuple[Address, ...]:
    address = place.at("post_grad", node)
    return (address,) if node and address in chain else ()


def _lines(chain: Chain, addresses: tuple[Address, ...]) -> str:
    return lines(dict.fromkeys(frame for address in addresses for frame in chain.lines(address)))
