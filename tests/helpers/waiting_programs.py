"""More programs of ranks (``rank_programs``), in which the moment a rank waits for its operation matters: handles,
messages, functional collectives, gradients of DDP. gloo buffers no message: a send waits for its receiver."""

from __future__ import annotations

import datetime
from typing import Any

import rank_programs as ranks
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
from rank_programs import compiled, hangs, scaled
from torch import nn


def both() -> list[Any]:
    """Return two groups of the two ranks."""
    return [dist.new_group([0, 1]), dist.new_group([0, 1])]


def calls() -> list[tuple[torch.Tensor, Any]]:
    """Return a tensor for each of two groups, in another order on each rank."""
    own = list(zip((compiled(scaled)(torch.ones(3)), torch.ones(4)), both(), strict=True))
    return own[::-1] if dist.get_rank() else own


@hangs
def handle_waited_for_before_the_next_call_of_two(fault: bool) -> None:
    (x, group), (y, other) = calls()
    first = dist.all_reduce(x, group=group, async_op=True)
    if fault:
        first.wait()
    dist.all_reduce(y, group=other, async_op=True).wait()
    first.wait()


@hangs
def handles_in_a_list_of_two(fault: bool) -> None:
    works = [dist.all_reduce(x, group=group, async_op=True) for x, group in calls()]
    for work in works if dist.get_rank() else works[::-1]:
        work.wait()
    if not (fault and dist.get_rank()):
        dist.barrier()


@hangs
def functional_collectives_used_later_of_two(fault: bool) -> None:
    (x, group), (y, other) = calls()
    first: Any = fc.all_reduce(x, "sum", group)
    if fault:
        first = first + 1
    second: Any = fc.all_reduce(y, "sum", other)
    torch.cat([first, second]).sum().item()


@hangs
def functional_collectives_in_graphs_of_two(fault: bool) -> None:
    operators: Any = torch.ops._c10d_functional

    def step(x: torch.Tensor, group: str, other: str) -> torch.Tensor:
        first = operators.all_reduce(x, "sum", group)
        if fault:
            first = operators.wait_tensor(first)
        second = operators.wait_tensor(operators.all_reduce(x * 2, "sum", other))
        return second + operators.wait_tensor(first)

    names = [group.group_name for group in both()]
    torch.compile(step, backend="aot_eager")(torch.ones(3), *(names[::-1] if dist.get_rank() else names))


@hangs
def message_waited_for_before_the_answer_of_two(fault: bool) -> None:
    other = 1 - dist.get_rank()
    x, y = compiled(scaled)(torch.ones(4)), torch.empty(4)
    receives = dist.irecv(y, other)
    assert receives is not None
    if fault:
        receives.wait()
    sends = dist.isend(x, other)
    assert sends is not None
    sends.wait()
    receives.wait()


@hangs
def both_send_first_of_two(fault: bool) -> None:
    other = 1 - dist.get_rank()
    x, y = compiled(scaled)(torch.ones(4)), torch.empty(4)
    send, receive = (lambda: dist.send(x, other)), (lambda: dist.recv(y, other))
    for call in (send, receive) if fault or dist.get_rank() else (receive, send):
        call()


@hangs
def message_that_is_sent_after_a_barrier_of_two(fault: bool) -> None:
    x = compiled(scaled)(torch.ones(4))
    if dist.get_rank():
        work = dist.irecv(x, 0)
        assert work is not None
        if fault:
            work.wait()
        dist.barrier()
        work.wait()
    else:
        dist.barrier()
        dist.send(x, 1)


@hangs
def batch_that_is_waited_for_too_early_of_two(fault: bool) -> None:
    other = 1 - dist.get_rank()
    x, y = compiled(scaled)(torch.ones(4)), torch.empty(4)
    batches = [[dist.P2POp(dist.isend, x, other)], [dist.P2POp(dist.irecv, y, other)]]
    if not fault:
        batches = [batches[0] + batches[1]]
    for batch in batches:
        for work in dist.batch_isend_irecv(batch):
            work.wait()


@hangs
def gradients_and_another_group_of_two(fault: bool) -> None:
    """DDP's reducer waits without a Python call: at the end of the backward."""
    group, other = both()
    model = nn.parallel.DistributedDataParallel(ranks.net(), process_group=group)
    loss = compiled(lambda x: model(x).sum())(torch.ones(2, 8))

    def reduce() -> None:
        dist.all_reduce(torch.ones(2), group=other)

    for call in (reduce, loss.backward) if fault and dist.get_rank() else (loss.backward, reduce):
        call()


@hangs
def barrier_that_is_monitored_of_two(fault: bool) -> None:
    compiled(scaled)(torch.ones(3))
    for number in range(2):
        if fault and dist.get_rank() and number:
            dist.barrier()
        else:
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=5))


@hangs
def messages_from_any_rank(fault: bool) -> None:
    """Rank 0 receives one message from each other rank, in the order of arrival, and answers it."""
    x = compiled(scaled)(torch.ones(1))
    if dist.get_rank():
        dist.send(x * 0 + dist.get_rank(), 0)
        dist.recv(x, 0)
        if fault and dist.get_rank() == 2:
            return
    else:
        senders = []
        for _ in range(3):
            senders.append(dist.recv(x))
            assert x.item() == senders[-1]
            dist.send(x, senders[-1])
        assert sorted(senders) == [1, 2, 3]
    dist.barrier()
