"""The collectives and messages that this process issues, from wherever it does: Python, a compiled graph, DTensor, or
the reducer of DDP. All of them reach a process group through the operators of ``torch.ops.c10d``. While a watch is open
and ``torch.distributed`` is in use, each of these has a kernel of ours before that of the device.

Not observed: what a CUDA graph replays, which calls no operator.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from ...record import claims
from ...record.collectives import LOCAL_GROUP, NEW_GROUP, Collective, EarlierCollectives, IssuedCollective
from ..ground import placement
from ..ground.undo import Undo
from . import collective_waits, scopes
from .callers import is_between, program_line
from .observers import hidden_from_dynamo, observe, observing

_BEFORE = "BackendSelect"
"""A dispatch key that every call has, and that is asked before the kernel of the device."""
REDUCTIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum")
"""Reductions by torch's number, by their names in functional collectives."""

_OPERATORS: dict[str, tuple[str, str, str]] = {
    "allreduce_": ("all_reduce", "tensors", "tensors"),
    "allreduce_coalesced_": ("all_reduce_coalesced", "tensors", "tensors"),
    "broadcast_": ("broadcast", "tensors", "tensors"),
    "reduce_": ("reduce", "tensors", "tensors"),
    "allgather_": ("all_gather", "input_tensors", "output_tensors"),
    "_allgather_base_": ("all_gather_into_tensor", "input_tensor", "input_tensor"),
    "allgather_coalesced_": ("all_gather_coalesced", "input_list", "input_list"),
    "allgather_into_tensor_coalesced_": ("all_gather_into_tensor_coalesced", "inputs", "inputs"),
    "reduce_scatter_": ("reduce_scatter", "input_tensors", "input_tensors"),
    "_reduce_scatter_base_": ("reduce_scatter_tensor", "input_tensor", "input_tensor"),
    "reduce_scatter_tensor_coalesced_": ("reduce_scatter_tensor_coalesced", "inputs", "inputs"),
    "alltoall_": ("all_to_all", "input_tensors", ""),
    "alltoall_base_": ("all_to_all_single", "input", ""),
    "gather_": ("gather", "input_tensors", "input_tensors"),
    "scatter_": ("scatter", "input_tensors", "output_tensors"),  # one gives for all, the others nothing
    "barrier": ("barrier", "", ""),
    "monitored_barrier_": ("monitored_barrier", "", ""),
    "send": ("send", "tensors", "tensors"),
    "recv_": ("recv", "", "tensors"),
    "recv_any_source_": ("recv", "", "tensors"),
}
"""For each operator its name in ``torch.distributed``, the argument that this process gives, and the one that all
processes must give alike."""

Finish = Callable[[Any, list[torch.Tensor], list[torch.Tensor], IssuedCollective], Any]
_users: set[object] = set()
_placed: list[Undo] = []
_finish: list[Finish] = []
"""The function by which a rehearsal ends a call that no other process takes part in; empty in a watch."""


def process_rank() -> tuple[int, int] | None:
    """Return the rank of this process and how many there are; None if ``torch.distributed`` is not in use."""
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return distributed.get_rank(), distributed.get_world_size()


def keep(undo: Undo, scope: scopes.Scope) -> None:
    """Observe the collectives from now on, or from when the program makes a process group, until ``undo``."""
    user = object()
    undo.add(_leave, user)
    with placement.lock:
        _users.add(user)
    if process_rank() is not None:
        _place()
        if not _finish:  # a rehearsal begins with its group
            scope.issued.earlier = tuple(_earlier())
            scope.issued.groups_before = max(torch.distributed.distributed_c10d._world.group_count - 1, 0)


def _earlier() -> Iterator[EarlierCollectives]:
    for group in torch.distributed.distributed_c10d._world.pg_group_ranks:
        if isinstance(group, torch.distributed.ProcessGroup):
            try:
                count = group._get_sequence_number_for_group()
            except RuntimeError:  # a group that does not count
                count = None
            if count != 0:
                yield EarlierCollectives(*_members(group), count)


def _leave(user: object) -> None:
    with placement.lock:
        _users.discard(user)
        while _placed and not _users:
            _placed.pop().close()


@observe("torch.distributed.distributed_c10d:_new_process_group_helper", claims.COLLECTIVES)
def place_before_group(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Place the observers before the first process group is made."""
    with observing(scopes.owners(), claims.COLLECTIVES):
        _place()
    return real(*args, **kwargs)


@observe("torch.distributed.distributed_c10d:_new_group_with_tag", claims.COLLECTIVES)
def keep_new_group(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Record that a group is made, for which all processes wait; with ``use_local_synchronization`` only its own do,
    it has no number among the others, and its processes find each other only if each has made as many groups before:
    torch names the group by its ranks and by how many groups the process has."""
    before = len(torch.distributed.distributed_c10d._world.pg_names)
    result = real(*args, **kwargs)
    mine = scopes.owners()
    if mine:
        with observing(mine, claims.COLLECTIVES):
            given = inspect.signature(real).bind(*args, **kwargs).arguments
            every = tuple(range(torch.distributed.get_world_size()))
            ranks = tuple(sorted(given.get("ranks") or every))
            words = f"ranks {', '.join(map(str, ranks))}"
            local = bool(given.get("use_local_synchronization"))
            name, waiting = (LOCAL_GROUP, ranks) if local else (NEW_GROUP, every)
            if local:
                words += f", group number {before} of this process"
            one = IssuedCollective(Collective(name, words, (), None, program_line(), waiting, 0))
            for scope in mine if torch.distributed.get_rank() in waiting else ():
                scope.issued.add(one)
    return result


def finish_calls(undo: Undo, finish: Finish) -> None:
    """Have ``finish`` give the result of each call, from that of the group, the tensors that the call fills, those
    that it gives, and the call, until ``undo``."""
    undo.add(_finish.clear)
    _finish.append(finish)


@hidden_from_dynamo
def _place() -> None:
    with placement.lock:
        if _placed or not _users:
            return
        undo = Undo()
        _placed.append(undo)
        library = torch.library.Library("c10d", "IMPL")
        undo.add(library._destroy)
        for name in _OPERATORS:
            packet: Any = getattr(torch.ops.c10d, name, None)
            if packet is not None:
                library.impl(packet.default, _kernel(name, packet.default), _BEFORE, with_keyset=True)
        collective_waits.place(undo)


def _kernel(name: str, operator: Any) -> Callable[..., Any]:
    defaults = {a.name: a.default_value for a in operator._schema.arguments}

    def issue(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        below = keyset.remove(torch._C.DispatchKey.BackendSelect).highestPriorityTypeId()
        # It lets other threads run while it waits. A refused call raises here, so it is not recorded.
        stands_in = bool(_finish) and name == "monitored_barrier_"  # the fake group has none
        result = None if stands_in else operator._op_dk(below, *args, **kwargs)
        if below == torch._C.DispatchKey.Meta:
            return result  # Dynamo asks for the sizes
        values = {**defaults, **dict(zip(defaults, args, strict=False)), **kwargs}
        mine = scopes.owners()
        if mine:
            with observing(mine, claims.COLLECTIVES):
                one = _issued(name, values)
                positions = []
                for scope in mine:
                    scope.process = scope.process or process_rank()
                    position = scope.issued.add(one)
                    if position is not None:
                        positions.append((scope.issued, position))
                outputs = _outputs(values)
                if _finish:
                    inputs = list(_tensors(values.get(_OPERATORS[name][1], ())))
                    result = _finish[-1](result, outputs, inputs, one)
                if not one.waits:
                    filled = outputs if one.waits is None else ()
                    collective_waits.keep_call(collective_waits.handle(result), filled, positions)
        return result

    return hidden_from_dynamo(issue)


def _outputs(values: Mapping[str, Any]) -> list[torch.Tensor]:
    names = ("tensors", "output_tensors", "output_tensor", "outputs", "output_lists", "output")
    return list(_tensors(next((values[name] for name in names if name in values), [])))


def _issued(operator: str, values: Mapping[str, Any]) -> IssuedCollective:
    name, given, agreed = _OPERATORS[operator]
    group = torch.distributed.ProcessGroup.unbox(values["process_group"])
    ranks, number = _members(group)
    inputs = list(_tensors(values.get(given, ())))
    alike = list(_tensors(values.get(agreed, ())))
    if len(inputs) == 1:  # functional collectives call that of several tensors with one
        name = name.removesuffix("_coalesced")
    callers = _callers()
    sent, received, by_value = _splits(operator, values, len(ranks))
    if sent:
        alike = []
    peer = values.get("dst", values.get("src"))
    # Torch's C++ waits where Python does not see it: for the gradients of DDP at the end of the backward.
    has_handle = values.get("async_op", True) is not False and name != "monitored_barrier"
    waits = True if not has_handle else (False if callers else None)
    return IssuedCollective(
        Collective(
            name,
            _arguments(values, ranks),
            tuple(map(_text, inputs)),
            sum(t.nbytes for t in inputs) if inputs else None,
            program_line(),
            ranks,
            number,
        ),
        agreed=tuple(map(_text, alike)) or ((_dtype(inputs[0]),) if sent else ()),
        sent=sent,
        received=received,
        peer=_member(ranks, peer),
        tag=int(values.get("tag", 0)),
        waits=waits,
        sized_by_values=by_value or any("object" in caller for caller in callers),
    )


def _arguments(values: Mapping[str, Any], ranks: tuple[int, ...]) -> str:
    words = []
    if "reduce_op" in values:
        number = values["reduce_op"].op()
        words.append(REDUCTIONS[number] if 0 <= number < len(REDUCTIONS) else str(number))
    if "root_rank" in values:
        words.append(f"root {_member(ranks, values['root_rank'])}")
    return ", ".join(words)


def _member(ranks: tuple[int, ...], number: int | None) -> int | None:
    return ranks[number] if number is not None and 0 <= number < len(ranks) else number


def _splits(
    operator: str, values: Mapping[str, Any], size: int
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Return how many elements go to each process of a group and come from each, and whether the program chose it."""
    if operator == "alltoall_":
        to, of = (tuple(t.numel() for t in _tensors(values[n])) for n in ("input_tensors", "output_tensors"))
        return to, of, len({*to, *of}) > 1
    if operator != "alltoall_base_":
        return (), (), False
    splits = []
    for tensor, rows in (
        (values["input"], values["input_split_sizes"]),
        (values["output"], values["output_split_sizes"]),
    ):
        row = tensor[0].numel() if tensor.dim() and len(tensor) else 1
        splits.append(tuple(n * row for n in rows) if rows else (tensor.numel() // max(size, 1),) * size)
    return splits[0], splits[1], bool(values["input_split_sizes"] or values["output_split_sizes"])


_C10D = "/torch/distributed/distributed_c10d.py"
_LOGGER = "/torch/distributed/c10d_logger.py"


def _callers() -> list[str]:
    """Return the functions of ``torch.distributed`` that Python called for this, the innermost first."""
    names = []
    frame: Any = sys._getframe(1)
    while frame is not None and is_between(frame.f_code.co_filename):
        frame = frame.f_back
    while frame is not None:
        file = frame.f_code.co_filename.replace("\\", "/")
        if file.endswith(_C10D):
            names.append(frame.f_code.co_name)
        elif not file.endswith((_LOGGER, "/contextlib.py")):
            break
        frame = frame.f_back
    return names


_known_groups: dict[str, tuple[Any, tuple[int, ...], int]] = {}
"""By a group's name torch's table of its ranks, these ranks, and its number among groups with the same."""


def members(name: str) -> tuple[tuple[int, ...], int]:
    """Return the ranks of the group that a graph knows by a name, and which of the groups with these ranks it is."""
    groups = torch.distributed.distributed_c10d._world.pg_group_ranks
    group = next((group for group in groups if getattr(group, "group_name", None) == name), None)
    return ((), 0) if group is None else _members(group)


def _members(group: Any) -> tuple[tuple[int, ...], int]:
    """Return the ranks of a group, in its order, and which of the groups with these ranks it is."""
    groups = torch.distributed.distributed_c10d._world.pg_group_ranks
    table = groups.get(group)
    if table is None:
        return (), 0
    known = _known_groups.get(group.group_name)
    if known is None or known[0] is not table:
        before = 0
        for other, ranks in groups.items():
            if other is group or ranks is table:
                break
            before += ranks == table
        known = _known_groups[group.group_name] = (table, tuple(sorted(table, key=table.__getitem__)), before)
    return known[1], known[2]


def _tensors(given: Any) -> Iterator[torch.Tensor]:
    if isinstance(given, torch.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for one in given:
            yield from _tensors(one)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _text(tensor: torch.Tensor) -> str:
    return f"{_dtype(tensor)}[{', '.join(map(str, tensor.shape))}]"
