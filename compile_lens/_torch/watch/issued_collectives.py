"""The collectives and messages that this process issues from Python, compiled graphs, DTensor or DDP's reducer.

All reach a process group through the operators of ``torch.ops.c10d``. While a watch is open and ``torch.distributed``
is in use, each of these operators has a kernel of ours before the device's. Replays of CUDA graphs call no operator and
are not observed.
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
"""A dispatch key of every call, dispatched before the device's kernel."""
REDUCTIONS = ("sum", "avg", "product", "min", "max", "band", "bor", "bxor", "premul_sum")
"""Names of reductions in functional collectives, in the order of torch's numbers."""

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
    "scatter_": ("scatter", "input_tensors", "output_tensors"),  # one rank has input for all, the others none
    "barrier": ("barrier", "", ""),
    "monitored_barrier_": ("monitored_barrier", "", ""),
    "send": ("send", "tensors", "tensors"),
    "recv_": ("recv", "", "tensors"),
    "recv_any_source_": ("recv", "", "tensors"),
}
"""For each operator, its name in ``torch.distributed``, the argument with this process's input, and the argument whose
shapes must agree on all processes."""

Finish = Callable[[Any, list[torch.Tensor], list[torch.Tensor], IssuedCollective], Any]
_users: set[object] = set()
_placed: list[Undo] = []
_finish: list[Finish] = []
"""The function that completes calls in a rehearsal, where there are no other processes; empty in a watch."""


def process_rank() -> tuple[int, int] | None:
    """Return the rank of this process and the world size; None if ``torch.distributed`` is not in use."""
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return None
    return distributed.get_rank(), distributed.get_world_size()


def keep(undo: Undo, scope: scopes.Scope) -> None:
    """Observe collectives until ``undo``, from now on or from the program's first process group."""
    user = object()
    undo.add(_leave, user)
    with placement.lock:
        _users.add(user)
    if process_rank() is not None:
        _place()
        if not _finish:  # a rehearsal starts with a new group
            scope.issued.earlier = tuple(_earlier())
            scope.issued.groups_before = max(torch.distributed.distributed_c10d._world.group_count - 1, 0)


def _earlier() -> Iterator[EarlierCollectives]:
    for group in torch.distributed.distributed_c10d._world.pg_group_ranks:
        if isinstance(group, torch.distributed.ProcessGroup):
            try:
                count = group._get_sequence_number_for_group()
            except RuntimeError:  # this group has no sequence number
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
    """Install the observers before the first process group is created."""
    with observing(scopes.owners(), claims.COLLECTIVES):
        _place()
    return real(*args, **kwargs)


@observe("torch.distributed.distributed_c10d:_new_group_with_tag", claims.COLLECTIVES)
def keep_new_group(real: Any, *args: Any, **kwargs: Any) -> Any:
    """Record the creation of a group, for which all processes wait. With ``use_local_synchronization`` only the group's
    own processes wait, and torch names the group by its ranks and the number of groups in the process. So its processes
    only find each other if each has created the same number before."""
    before = len(torch.distributed.distributed_c10d._world.pg_names)
    result = real(*args, **kwargs)
    watches = scopes.owners()
    if watches:
        with observing(watches, claims.COLLECTIVES):
            arguments = inspect.signature(real).bind(*args, **kwargs).arguments
            every = tuple(range(torch.distributed.get_world_size()))
            ranks = tuple(sorted(arguments.get("ranks") or every))
            description = f"ranks {', '.join(map(str, ranks))}"
            local = bool(arguments.get("use_local_synchronization"))
            name, waiting = (LOCAL_GROUP, ranks) if local else (NEW_GROUP, every)
            if local:
                description += f", group number {before} of this process"
            one = IssuedCollective(Collective(name, description, (), None, program_line(), waiting, 0))
            for scope in watches if torch.distributed.get_rank() in waiting else ():
                scope.issued.add(one)
    return result


def finish_calls(undo: Undo, finish: Finish) -> None:
    """Replace the result of each call, until ``undo``, by that of ``finish``, which takes the group's result, the
    output tensors, the input tensors and the call."""
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
        # Other threads run while the call waits. An invalid call raises here, so it is not recorded.
        stands_in = bool(_finish) and name == "monitored_barrier_"  # the fake group lacks it
        result = None if stands_in else operator._op_dk(below, *args, **kwargs)
        if below == torch._C.DispatchKey.Meta:
            return result  # Dynamo propagates sizes
        values = {**defaults, **dict(zip(defaults, args, strict=False)), **kwargs}
        watches = scopes.owners()
        if watches:
            with observing(watches, claims.COLLECTIVES):
                one = _issued(name, values)
                positions = []
                for scope in watches:
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
    name, input_argument, agreed = _OPERATORS[operator]
    group = torch.distributed.ProcessGroup.unbox(values["process_group"])
    ranks, number = _members(group)
    inputs = list(_tensors(values.get(input_argument, ())))
    agreeing = list(_tensors(values.get(agreed, ())))
    if len(inputs) == 1:  # functional collectives call the coalesced operator with one tensor
        name = name.removesuffix("_coalesced")
    callers = _callers()
    sent, received, by_value = _splits(operator, values, len(ranks))
    if sent:
        agreeing = []
    peer = values.get("dst", values.get("src"))
    # Waits in torch's C++, as for DDP's gradients at the end of the backward, are not observed.
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
        agreed=tuple(map(_text, agreeing)) or ((_dtype(inputs[0]),) if sent else ()),
        sent=sent,
        received=received,
        peer=_member(ranks, peer),
        tag=int(values.get("tag", 0)),
        waits=waits,
        sized_by_values=by_value or any("object" in caller for caller in callers),
    )


def _arguments(values: Mapping[str, Any], ranks: tuple[int, ...]) -> str:
    description = []
    if "reduce_op" in values:
        number = values["reduce_op"].op()
        description.append(REDUCTIONS[number] if 0 <= number < len(REDUCTIONS) else str(number))
    if "root_rank" in values:
        description.append(f"root {_member(ranks, values['root_rank'])}")
    return ", ".join(description)


def _member(ranks: tuple[int, ...], number: int | None) -> int | None:
    return ranks[number] if number is not None and 0 <= number < len(ranks) else number


def _splits(
    operator: str, values: Mapping[str, Any], size: int
) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    """Return the numbers of elements sent to and received from each process of a group, and True if the program chose
    them."""
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
    """Return the names of the Python functions of ``torch.distributed`` on the stack, innermost first."""
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
"""Torch's table of a group's ranks, the ranks, and the group's number among those with the same ranks, by name."""


def members(name: str) -> tuple[tuple[int, ...], int]:
    """Return the ranks of the group with a name, and its number among groups with the same ranks; ``((), 0)`` if
    unknown."""
    groups = torch.distributed.distributed_c10d._world.pg_group_ranks
    group = next((group for group in groups if getattr(group, "group_name", None) == name), None)
    return ((), 0) if group is None else _members(group)


def _members(group: Any) -> tuple[tuple[int, ...], int]:
    """Return the ranks of a group, in its order, and its number among groups with the same ranks."""
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


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _tensors(one)


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _text(tensor: torch.Tensor) -> str:
    return f"{_dtype(tensor)}[{', '.join(map(str, tensor.shape))}]"
