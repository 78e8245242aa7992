"""Programs of four ranks (two where their name says so), each in a correct version and with one fault: data, tensor,
pipeline and expert parallel, HSDP, FSDP2. Expected results are by hand: ``HANGS`` deadlock or compute wrong values,
``DIFFERS`` compile different code on one rank, and finish.

``run`` is a process of those that run some of them with gloo.
"""

from __future__ import annotations

import datetime
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as fc
from torch import nn

Program = Callable[[bool], None]
HANGS: dict[str, Program] = {}
DIFFERS: dict[str, Program] = {}


def backend(gm: torch.fx.GraphModule, inputs: Any) -> Any:
    """Run the graph as is; given a name, torch would import all of its backends."""
    return gm.forward


def hangs(program: Program) -> Program:
    HANGS[program.__name__] = program
    return program


def differs(program: Program) -> Program:
    DIFFERS[program.__name__] = program
    return program


def compiled(function: Any) -> Any:
    return torch.compile(function, backend=backend)


def is_rank(rank: int) -> bool:
    return dist.get_rank() == rank


def mesh(*names: str) -> Any:
    return dist.device_mesh.init_device_mesh("cpu", (2, 2), mesh_dim_names=names)


def pairs() -> list[Any]:
    """Return two groups of two ranks, created by all; the first is that of this rank."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    return groups if dist.get_rank() < 2 else groups[::-1]


class Layer(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.weight, self.bias)


def net(linear: type[nn.Linear] = nn.Linear) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(linear(8, 16), nn.ReLU(), linear(16, 8))


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def reduced(x: torch.Tensor, group: Any) -> torch.Tensor:
    return fc.all_reduce(x.sin(), "sum", group).cos()


def gathered(x: torch.Tensor, group: Any) -> torch.Tensor:
    return fc.all_gather_tensor(x * 2, 0, group).relu()


# Data parallel


@hangs
def uneven_last_batch_of_two_in_ddp(fault: bool) -> None:
    model = nn.parallel.DistributedDataParallel(net())
    step = compiled(lambda x: model(x).sum())
    for _ in range(2 if fault and is_rank(1) else 3):
        step(torch.ones(4, 8)).backward()


@hangs
def uneven_last_batch_in_a_graph(fault: bool) -> None:
    step = compiled(reduced)
    for _ in range(4 if fault and is_rank(3) else 5):
        step(torch.ones(4), dist.group.WORLD)


@hangs
def early_stop_on_one_rank(fault: bool) -> None:
    step = compiled(scaled)
    for number in range(4):
        loss = step(torch.ones(3)).sum()
        if fault and is_rank(2) and number == 2:
            break
        dist.all_reduce(loss)


@hangs
def loss_that_one_rank_logs(fault: bool) -> None:
    loss = compiled(scaled)(torch.ones(3)).sum()
    if not fault or is_rank(0):
        dist.all_reduce(loss)
    dist.barrier()


@hangs
def gradients_in_another_order_of_two(fault: bool) -> None:
    model = net()
    compiled(model)(torch.ones(2, 8)).sum().backward()
    parameters = list(model.parameters())
    for one in reversed(parameters) if fault and is_rank(1) else parameters:
        dist.all_reduce(one.grad)


@hangs
def another_reduction(fault: bool) -> None:
    total = compiled(scaled)(torch.ones(3))
    dist.all_reduce(total, dist.ReduceOp.MAX if fault and is_rank(2) else dist.ReduceOp.SUM)


@hangs
def another_root(fault: bool) -> None:
    for one in net().parameters():
        dist.broadcast(one.data, dist.get_rank() if fault else 0)
    compiled(scaled)(torch.ones(3))


@hangs
def another_order_at_step_two_of_two(fault: bool) -> None:
    one, other = compiled(reduced), compiled(gathered)
    for number in range(3):
        for step in (other, one) if fault and is_rank(1) and number == 1 else (one, other):
            step(torch.ones(4), dist.group.WORLD)


@hangs
def barrier_before_a_save(fault: bool) -> None:
    compiled(scaled)(torch.ones(3))
    if fault and is_rank(0):
        dist.barrier()
    dist.barrier()


@hangs
def objects_of_other_sizes(fault: bool) -> None:
    compiled(scaled)(torch.ones(3))
    names: list[Any] = [None] * dist.get_world_size()
    if not (fault and is_rank(2)):
        dist.all_gather_object(names, "x" * (dist.get_rank() + 1))
    values = [list(range(100))] if is_rank(0) else [None]
    dist.broadcast_object_list(values, 0)


@hangs
def gather_on_another_rank(fault: bool) -> None:
    root = 1 if fault and is_rank(3) else 0
    x = compiled(scaled)(torch.ones(3))
    dist.gather(x, [torch.empty(3) for _ in range(4)] if is_rank(root) else None, dst=root)


@hangs
def a_rank_that_raises(fault: bool) -> None:
    step = compiled(reduced)
    step(torch.ones(4), dist.group.WORLD)
    if fault and is_rank(1):
        raise ValueError("no batch")
    step(torch.ones(4), dist.group.WORLD)


# Decisions of a program that depend on values of all ranks


@hangs
def stop_that_all_ranks_agree_on(fault: bool) -> None:
    """Rank 1 requests a stop at step 2."""
    step = compiled(scaled)
    for number in range(5):
        step(torch.ones(3))
        stop = torch.tensor([float(is_rank(1) and number == 2)])
        dist.all_reduce(stop)
        if is_rank(3) and fault:
            stop.zero_()
        if stop.item():
            break
    dist.all_reduce(torch.ones(300))


@hangs
def batches_that_one_rank_skips(fault: bool) -> None:
    step = compiled(scaled)
    for number in range(4):
        loss = step(torch.ones(3))
        sound = torch.tensor(not (is_rank(1) and number == 1), dtype=torch.int32)
        if not fault:
            dist.all_reduce(sound, dist.ReduceOp.MIN)
        if sound:
            dist.all_reduce(loss)


@hangs
def as_many_batches_as_the_shortest_of_two(fault: bool) -> None:
    lengths: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(lengths, 3 + dist.get_rank())
    for _ in range(lengths[dist.get_rank()] if fault else min(lengths)):
        dist.all_reduce(compiled(scaled)(torch.ones(3)))


@hangs
def rows_padded_to_the_longest(fault: bool) -> None:
    own = torch.tensor([dist.get_rank() + 1])
    sizes = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, own)
    longest = max(int(size) for size in sizes) if not (fault and is_rank(2)) else 3
    compiled(scaled)(torch.ones(3))
    dist.all_to_all_single(torch.empty(4 * longest), torch.ones(4 * longest))


@hangs
def parts_of_a_sum_that_decide(fault: bool) -> None:
    """Each rank receives one of the sums; the third is 6."""
    world, rank = dist.get_world_size(), dist.get_rank()
    part = torch.empty(1)
    dist.reduce_scatter_tensor(part, torch.arange(world) * torch.tensor(float(rank == 1)) * 3)
    every = torch.empty(world)
    dist.all_gather_into_tensor(every, part)
    compiled(scaled)(torch.ones(3))
    if (every[2] if not fault or rank else part[0]) == 6:
        dist.barrier()


# Tensor parallel


@hangs
def tensor_parallel_layers(fault: bool) -> None:
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    plan: dict[str, Any] = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = torch.compile(parallelize_module(net(), mesh("dp", "tp")["tp"], plan), backend="aot_eager")
    for _ in range(1 if fault and is_rank(3) else 2):
        model(torch.ones(4, 8)).sum().backward()


@hangs
def tensor_parallel_by_hand(fault: bool) -> None:
    group = mesh("dp", "tp")["tp"].get_group()
    compiled(gathered if fault and is_rank(1) else reduced)(torch.ones(4), group)


@hangs
def rows_then_columns(fault: bool) -> None:
    both = mesh("dp", "tp")
    groups = [both["tp"].get_group(), both["dp"].get_group()]
    step = compiled(reduced)
    for group in groups[::-1] if fault and dist.get_rank() in (1, 2) else groups:
        step(torch.ones(4), group)


@hangs
def sequence_parallel(fault: bool) -> None:
    def step(x: torch.Tensor, group: Any) -> torch.Tensor:
        whole = fc.all_gather_tensor(x, 0, group)
        return fc.reduce_scatter_tensor(whole * 2, "sum", 0, group)

    compiled(step)(torch.ones(6 if fault and is_rank(2) else 4, 2), pairs()[0])


# FSDP2, HSDP


def sharded(on: Any) -> nn.Sequential:
    from torch.distributed.fsdp import fully_shard

    model = net(Layer)
    for layer in (model[0], model[2], model):
        fully_shard(layer, mesh=on)
        layer.compile(backend=backend)
    return model


@hangs
def fsdp_with_an_extra_forward(fault: bool) -> None:
    model = sharded(dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),)))
    model(torch.ones(2, 8)).sum().backward()
    if fault and is_rank(2):
        model(torch.ones(2, 8))


@hangs
def hsdp_without_a_last_backward(fault: bool) -> None:
    model = sharded(mesh("replicate", "shard"))
    for number in range(2):
        loss = model(torch.ones(2, 8)).sum()
        if not (fault and is_rank(1) and number == 1):
            loss.backward()


@hangs
def fsdp_with_a_norm_on_some_ranks(fault: bool) -> None:
    model = sharded(dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),)))
    model(torch.ones(2, 8)).sum().backward()
    if not (fault and is_rank(2)):
        dist.all_reduce(torch.ones(()))


# Pipeline parallel


@hangs
def pipeline_that_receives_once_too_often(fault: bool) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    stage = compiled(scaled)
    for number in range(3):
        if fault and rank == 0 and number == 2:
            break
        x = torch.ones(4)
        if rank:
            dist.recv(x, rank - 1)
        x = stage(x)
        if rank < world - 1:
            dist.send(x, rank + 1)


@hangs
def pipeline_of_another_size(fault: bool) -> None:
    rank, world = dist.get_rank(), dist.get_world_size()
    stage = compiled(scaled)
    x = torch.ones(4)
    if rank:
        size = 8 if fault and rank == 2 else 4
        x = torch.ones(size)
        dist.batch_isend_irecv([dist.P2POp(dist.irecv, x, rank - 1)])[0].wait()
    x = stage(x)
    if rank < world - 1:
        dist.batch_isend_irecv([dist.P2POp(dist.isend, x[:4].contiguous(), rank + 1)])[0].wait()


@hangs
def pipeline_with_a_schedule(fault: bool) -> None:
    """Torch's own pipeline: each rank first receives the shapes from the previous rank and sends those of the next."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, world = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(torch.compile(Layer(8, 8), backend=backend), rank, world, torch.device("cpu"))
    batches = 8 if fault and rank == 2 else 4
    schedule = Schedule1F1B(stage, n_microbatches=batches, loss_fn=nn.functional.mse_loss)
    x = (torch.ones(8, 8),) if rank == 0 else ()
    schedule.step(*x, **({"target": torch.ones(8, 8), "losses": []} if rank == world - 1 else {}))


@hangs
def exchange_of_two(fault: bool) -> None:
    other = 1 - dist.get_rank()
    x, y = compiled(scaled)(torch.ones(4)), torch.empty(4)
    if fault:
        dist.recv(y, other)
        dist.send(x, other)
        return
    for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]):
        work.wait()


@hangs
def pipeline_and_data_parallel(fault: bool) -> None:
    """Ranks 0 and 1 are the first stage, 2 and 3 the second."""
    rank, mine = dist.get_rank(), pairs()[0]
    x = torch.ones(4)
    if fault and rank == 3:
        dist.all_reduce(x, group=mine)
    if rank >= 2:
        dist.recv(x, rank - 2)
    x = compiled(scaled)(x)
    if not (fault and rank == 3):
        dist.all_reduce(x, group=mine)
    if fault and rank in (0, 1):  # each waits for the other stage before it sends
        dist.barrier()
    if rank < 2:
        dist.send(x, rank + 2)
    if not (fault and rank in (0, 1)):
        dist.barrier()


# Expert parallel


@hangs
def experts_with_equal_splits(fault: bool) -> None:
    x = compiled(scaled)(torch.ones(8))
    y = torch.empty(8)
    if fault and is_rank(1):
        dist.all_gather_into_tensor(torch.empty(32), x)
    else:
        dist.all_to_all_single(y, x)
    dist.all_to_all_single(x, y)


@hangs
def experts_with_own_splits(fault: bool) -> None:
    """Rank r sends r + 1 rows to each: it receives 1, 2, 3 and 4."""
    rank = dist.get_rank()
    dtype = torch.float64 if fault and rank == 1 else torch.float32
    x = compiled(scaled)(torch.ones(4 * (rank + 1), dtype=dtype))
    dist.all_to_all_single(torch.empty(10, dtype=dtype), x, [1, 2, 3, 4], [rank + 1] * 4)


@hangs
def experts_and_tensor_parallel(fault: bool) -> None:
    both = mesh("ep", "tp")
    ep, tp = both["ep"].get_group(), both["tp"].get_group()
    x = compiled(scaled)(torch.ones(8))

    def exchange() -> None:
        dist.all_to_all_single(torch.empty(8), x, group=ep)

    def reduce() -> None:
        dist.all_reduce(x, group=tp)

    for call in (reduce, exchange) if fault and dist.get_rank() in (0, 3) else (exchange, reduce):
        call()


# Groups


@hangs
def two_groups_of_the_same_two(fault: bool) -> None:
    groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]
    x = compiled(scaled)(torch.ones(4))
    for group in groups[::-1] if fault and is_rank(1) else groups:
        dist.all_reduce(x, group=group)


@hangs
def disjoint_groups(fault: bool) -> None:
    mine = pairs()[0]
    step = compiled(reduced)
    for number in range(3):
        if fault and is_rank(2) and number == 1:
            continue
        step(torch.ones(4), mine)


@hangs
def work_that_is_waited_for_later(fault: bool) -> None:
    groups = [dist.group.WORLD, pairs()[0]]
    x, y = compiled(scaled)(torch.ones(4)), torch.ones(3)
    order = [(x, groups[0]), (y, groups[1])]
    works = [
        dist.all_reduce(tensor, group=group, async_op=True)
        for tensor, group in (order[::-1] if is_rank(1) else order)
        if not (fault and is_rank(3) and tensor is y)
    ]
    for work in works:
        work.wait()


@hangs
def group_that_not_all_make(fault: bool) -> None:
    even = dist.new_group([0, 2])
    odd = dist.new_group([1, 3]) if not (fault and is_rank(1)) else even
    if not fault or not is_rank(1):
        dist.all_reduce(compiled(scaled)(torch.ones(2)), group=odd if dist.get_rank() % 2 else even)


@hangs
def group_that_its_own_ranks_make_alone(fault: bool) -> None:
    compiled(scaled)(torch.ones(2))
    ranks = [0, 1] if dist.get_rank() < 2 else [2, 3]
    if not (fault and is_rank(1)):
        dist.all_reduce(torch.ones(2), group=dist.new_group(ranks, use_local_synchronization=True))


@hangs
def groups_that_overlap_and_are_made_by_their_own_ranks(fault: bool) -> None:
    """Torch names such a group by the number of groups in the process: 2 in ranks 0 and 1, 1 in the others."""
    y = compiled(scaled)(torch.ones(2))
    rows = [[0, 1], [0, 1, 2, 3]] if fault else [[0, 1, 2, 3], [0, 1]]
    for ranks in rows:
        if dist.get_rank() in ranks:
            dist.all_reduce(y, group=dist.new_group(ranks, use_local_synchronization=True))


@hangs
def groups_made_in_another_order(fault: bool) -> None:
    ranks = [[0, 1], [2, 3]]
    groups = [dist.new_group(one) for one in (ranks[::-1] if fault and is_rank(3) else ranks)]
    own = groups[0 if fault and is_rank(3) else dist.get_rank() // 2]
    dist.all_reduce(compiled(scaled)(torch.ones(2)), group=own)


# Compiled code


@differs
def another_operator(fault: bool) -> None:
    compiled(torch.cos if fault and is_rank(1) else torch.sin)(torch.ones(4))

    def step(x: torch.Tensor, other: bool) -> torch.Tensor:
        return (x.cos() if other else x.sin()) + 1

    compiled(step)(torch.ones(4), fault and is_rank(1))


@differs
def another_shape(fault: bool) -> None:
    compiled(scaled)(torch.ones(7 if fault and is_rank(3) else 8))


@differs
def a_break_on_one_rank(fault: bool) -> None:
    def step(x: torch.Tensor, breaks: bool) -> torch.Tensor:
        y = x + 1
        if breaks:
            torch._dynamo.graph_break()
        return y * 2

    compiled(step)(torch.ones(4), fault and is_rank(0))


@differs
def another_placement(fault: bool) -> None:
    """On CPUs torch gathers instead of exchanging, so the ranks issue the same collectives."""
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    on = dist.device_mesh.init_device_mesh("cpu", (dist.get_world_size(),))

    def step(x: Any, placement: Any) -> torch.Tensor:
        return x.redistribute(on, [placement]).to_local() + 1

    x = distribute_tensor(torch.ones(8, 8), on, [Shard(0)])
    torch.compile(step, backend="aot_eager")(x, Shard(1) if fault and is_rank(1) else Replicate())


def world_of(name: str) -> int:
    return 2 if "two" in name.split("_")[-1:] or "of_two" in name else 4


def main(rank: int, world: int, store: str, fault: bool, *names: str) -> None:
    for name in names:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{store}.{name}",
            rank=rank,
            world_size=world,
            timeout=datetime.timedelta(seconds=5 if fault else 100),
        )
        try:
            {**HANGS, **DIFFERS}[name](fault)
            dist.barrier()
            print("done", name, flush=True)
        except (RuntimeError, ValueError) as error:
            print(type(error).__name__, name, str(error)[:200].replace("\n", " "), flush=True)
        if not fault:
            dist.destroy_process_group()


def run(rank: str, world: str, store: str, fault: str, *names: str) -> None:
    warnings.filterwarnings("ignore")
    main(int(rank), int(world), store, fault == "fault", *names)
