"""The values that the forward saves for the backward, those that AOTAutograd's default partitioner would save, and the
partitioner's settings.

The default partitioner runs on the joint graph of Inductor's partitioner, after that has built its own graph from it,
and is stopped once it has chosen, since the graphs that it would build are not needed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._ordered_set import OrderedSet

from compile_lens.errors import UsageError

from ...record import claims
from ...record.memory import Partition, SavedTensor
from ..code.buffer_lifetimes import storage_of
from ..ground.hook_calls import Deliberate
from ..ground.hooks import hook, slot_hook
from ..ground.recorder import Draft, Slot
from . import fx_values, graph_chain, operator_kinds
from .provenance import Lineage

Choice = tuple[tuple[SavedTensor, ...] | None, str]
"""The values that the default partitioner would save; None and a reason if unknown."""

CHOICE: Slot[Choice] = Slot()
"""The default partitioner's choice, until Inductor's partitioner has chosen."""

QUERIED: Slot[Lineage] = Slot()
"""The joint graph on which the default partitioner is running; empty otherwise."""


@dataclasses.dataclass
class Query:
    """A joint graph of Inductor's partitioner, and its options."""

    gm: torch.fx.GraphModule
    options: dict[str, Any]


QUERY: Slot[Query] = Slot()
"""The pending query of the default partitioner."""


@dataclasses.dataclass
class ForwardResults:
    """Results of the partitioner's forward: names of nodes (``""`` for other values), the number of them that are the
    function's results, and the partition, with the memory of values in the partitioner's graph."""

    names: tuple[str, ...]
    results: int
    partition: Partition


FORWARD_RESULTS: Slot[ForwardResults] = Slot()
"""The results until the forward is lowered, which decides the memory of each value (``inductor/saved_storage.py``)."""


class _Chosen(Deliberate):
    """Raised when the default partitioner has chosen the ``nodes`` to save."""

    def __init__(self, nodes: list[torch.fx.Node]) -> None:
        super().__init__()
        self.nodes = nodes


class _PassedOn(Deliberate):
    """Raised when the default partitioner calls the min-cut partitioner."""


@hook("torch._inductor.compile_fx:min_cut_rematerialization_partition", claims.SAVED)
def min_cut(draft: Draft, real: Any, gm: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
    """Query the default partitioner after the joint passes: before the min-cut partitioner runs, or later without a
    copy."""
    from torch._functorch import config

    lineage = graph_chain.joint_of(draft)
    if lineage is not None and getattr(config, "cse", False):
        QUERY.put(draft, Query(gm, kwargs))  # it does not use the graph afterwards, so no copy is needed
    elif lineage is not None:
        CHOICE.put(draft, _default_choice(draft, lineage, _copy(gm), kwargs))
    try:
        return real(gm, *args, **kwargs)
    finally:
        QUERY.take(draft)


def query_default(draft: Draft, lineage: Lineage, graph: torch.fx.Graph) -> None:
    """Query the default partitioner about ``graph``, after the min-cut partitioner has built its own graph from it."""
    query = QUERY.of(draft)
    if query is not None and query.gm.graph is graph:
        QUERY.take(draft)
        CHOICE.put(draft, _default_choice(draft, lineage, query.gm, query.options))


@slot_hook("torch._functorch.partitioners:classify_nodes", QUERIED)
def classify_lazily(lineage: Lineage, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Classify nodes only on use: the default partitioner needs the classes for graphs that it does not get to
    build."""
    return _Lazy(functools.partial(real, *args, **kwargs))


class _Lazy:
    """The result of a function, computed on first use."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = functools.cache(work)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._work(), name)


@slot_hook("torch._functorch.partitioners:_extract_fwd_bwd_modules", QUERIED, claims.SAVED)
def extract(lineage: Lineage, real: Any, gm: Any, saved_values: Any, *args: Any, **kwargs: Any) -> Any:
    """Stop the default partitioner, which has chosen, before it builds the two graphs."""
    raise _Chosen([*saved_values, *(kwargs.get("saved_sym_nodes") or ())])


@slot_hook("torch._functorch.partitioners:min_cut_rematerialization_partition", QUERIED, claims.SAVED)
def refuse_min_cut(lineage: Lineage, real: Any, *args: Any, **kwargs: Any) -> Any:
    """Stop the default partitioner when it calls the min-cut partitioner, as for some graphs with checkpoints."""
    raise _PassedOn


def record(draft: Draft, forward: torch.fx.GraphModule, backward: torch.fx.GraphModule, results: Any) -> None:
    """Record the partition; ``forward`` returns the function's ``results`` values, then the saved ones."""
    lineage = graph_chain.joint_of(draft)
    default, note = CHOICE.take(draft) or (None, "Inductor's own partitioner did not run")
    if lineage is None or not isinstance(results, int):
        return
    outputs = fx_values.results(forward.graph)
    chosen = _kept_values(lineage, forward.graph, dict.fromkeys(outputs[results:]), results)
    names = (n.name if isinstance(n, torch.fx.Node) else "" for n in outputs)
    both = {n.name for n in forward.graph.nodes if n.op == "call_function"}
    recomputed_nodes = [n for n in backward.graph.nodes if n.op == "call_function" and n.name in both]
    work = [n for n in recomputed_nodes if operator_kinds.is_work(operator_kinds.kind_of(n.target))]
    recomputed = dict.fromkeys(name for n in work for name in lineage.own(n) or lineage.by_name(n)[0])
    partition = Partition(chosen, tuple(recomputed), default, note)
    FORWARD_RESULTS.put(draft, ForwardResults(tuple(names), results, partition))
    draft.partition = dataclasses.replace(
        partition,
        saved=tuple(map(without_storage, chosen)),
        default=None if default is None else tuple(map(without_storage, default)),
    )


def without_storage(kept: SavedTensor) -> SavedTensor:
    """Return a saved value with unknown memory; a number, which has none, is unchanged."""
    return kept if kept.nbytes == 0 else dataclasses.replace(kept, nbytes=None, alias_of="")


def _default_choice(
    draft: Draft, lineage: Lineage, gm: torch.fx.GraphModule, options: dict[str, Any]
) -> Choice:
    """Return the values that the default partitioner saves for ``gm``, which it may change; None and a reason if
    unknown."""
    from torch._functorch import config, partitioners

    results = options.get("num_fwd_outputs")
    if not isinstance(results, int):
        return None, "the partitioner was not given the function's own results"
    if getattr(config, "_sync_decision_cross_ranks", False):
        return None, "the default partitioner was not run: it would communicate with the other ranks"
    QUERIED.put(draft, lineage)
    try:
        # The choice does not depend on static inputs, but without the argument the nodes would be classified.
        partitioners.default_partition(
            gm, (), num_fwd_outputs=results, static_lifetime_input_nodes=OrderedSet()
        )
    except _Chosen as choice:
        needed = _needed_by_backward(gm.graph, choice.nodes, results)
        return _kept_values(lineage, gm.graph, needed, results), ""
    except _PassedOn:
        return None, "the default partitioner leaves this graph to the min-cut partitioner"
    except Exception as error:  # it raises for some graphs; only this fact is lost
        return None, f"the default partitioner refused the graph ({type(error).__name__}: {error})"
    finally:
        QUERIED.take(draft)
    return None, "the default partitioner of this torch does not report what it saves"


def _copy(gm: torch.fx.GraphModule) -> Any:
    """Return a copy of the graph that shares fake tensors and bodies, which are only read."""
    from torch.fx._lazy_graph_module import _make_graph_module, _use_lazy_graph_module

    graph = torch.fx.Graph()
    output = graph.graph_copy(gm.graph, {}, return_output_node=True)
    graph.output(output[0] if isinstance(output, tuple) else output)
    with _use_lazy_graph_module(True):  # its Python code is never used
        return _make_graph_module(gm, graph)


def _needed_by_backward(
    graph: torch.fx.Graph, saved: Sequence[torch.fx.Node], results: int
) -> dict[torch.fx.Node, None]:
    """Return those of ``saved`` that the backward reads, for the gradients or for nodes with side effects."""
    choice, seen = set(saved), set[torch.fx.Node]()

    def reach(pending: list[torch.fx.Node]) -> None:
        seen.update(pending)
        while pending:
            node = pending.pop()
            if node not in choice:
                new = [source for source in node._input_nodes if source not in seen]
                seen.update(new)
                pending += new

    reach([n for n in fx_values.results(graph)[results:] if isinstance(n, torch.fx.Node)])
    for node in graph.nodes:
        backward = node not in seen and "backward" in str(node.meta.get("partitioner_tag", ""))
        if backward and node.is_impure():
            reach([node])
    return dict.fromkeys(n for n in saved if n in seen)


def _kept_values(
    lineage: Lineage, graph: torch.fx.Graph, nodes: Iterable[Any], results: int
) -> tuple[SavedTensor, ...]:
    owners: dict[int, str] = {}
    given = [n for n in graph.find_nodes(op="placeholder") if not n.name.startswith("tangents")]
    for node in [*given, *fx_values.results(graph)[:results]]:
        if isinstance(node, torch.fx.Node):
            storage = storage_of(node.meta.get("val"))
            if storage is not None:
                owners.setdefault(storage, node.name)
    values = []
    for node in nodes:
        if isinstance(node, torch.fx.Node):
            val = node.meta.get("val")
            shares = owners.get(storage_of(val) or 0, "")
            values.append(SavedTensor(node.name, _nbytes(val), lineage.by_name(node)[0], shares))
    return tuple(values)


def _nbytes(val: Any) -> int | None:
    """Return the bytes of a value's distinct elements; 0 for a number, None for other values."""
    if isinstance(val, (torch.SymInt, torch.SymFloat, torch.SymBool, int, float, bool)):
        return 0
    return fx_values.bytes_of(val) if isinstance(val, torch.Tensor) else None


@contextlib.contextmanager
def patched_settings(settings: Mapping[str, Any]) -> Iterator[None]:
    """Patch, for the duration, settings of the partitioner for which Inductor has no option. Raises ``UsageError`` for
    a setting that this torch lacks."""
    if not settings:
        yield
        return
    from torch._functorch import config

    lacking = [name for name in settings if not hasattr(config, name)]
    if lacking:
        raise UsageError(f"torch._functorch.config has no {', '.join(lacking)}")
    with config.patch(**settings):
        yield
