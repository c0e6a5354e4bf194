"""Several processes, one run: how they meet, exchange tensors, and split a batch.

The only module that imports torch.distributed.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from balancemix.errors import InputError

if TYPE_CHECKING:
    from torch._C._distributed_c10d import Store

TIMEOUT = 1800  # seconds; torch's default for gloo
PIECE = 1 << 26  # bytes to exchange at once: a whole label table may not fit on a GPU


def _in_group() -> bool:
    return dist.is_available() and dist.is_initialized()


def start(*, cpu: bool = False) -> None:
    """Join the processes that torchrun or `accelerate launch` started along with this one."""
    started = int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1
    if started == 1 or _in_group():
        return
    from accelerate import PartialState

    # Accelerate joins processes on CPUs only if it is told that there are no GPUs.
    cpu = cpu or not (torch.cuda.is_available() or torch.xpu.is_available())
    store = _torchruns_store()
    if store is not None and (cpu or torch.cuda.is_available()):
        number = int(os.environ["RANK"])
        dist.init_process_group(
            "gloo" if cpu else "nccl",
            store=_section(store, _meet(store, number, started)),
            rank=number,
            world_size=started,
            # The first process writes files, which may take longer than NCCL's ten minutes.
            timeout=timedelta(seconds=TIMEOUT),
        )
    PartialState(cpu=cpu)
    # An interpreter that exits before gloo's threads is sometimes aborted.
    atexit.register(_leave)
    if world_size() != started:
        raise InputError(
            f"WORLD_SIZE is {started}, but {world_size()} processes joined; start them by torchrun"
            " or accelerate launch"
        )


def _leave() -> None:
    """Leave the group, after freeing what still uses it."""
    if _in_group():
        gc.collect()
        dist.destroy_process_group()


def _torchruns_store() -> Store | None:
    """Open torchrun's store, which outlives the processes that it starts, if there is one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store: Store = dist.TCPStore(address, port)  # type: ignore[attr-defined]
    return _section(store, "balancemix")


def _section(store: Store, name: str) -> Store:
    section: Store = dist.PrefixStore(name, store)  # type: ignore[attr-defined]
    return section


def _meet(store: Store, rank: int, world: int) -> str:
    """Wait for all processes of this attempt, and return a name for the attempt.

    After a restart, torchrun's store may still hold the addresses of processes that have died, and
    torch would try to reach them. Machines may count the attempts differently, so a process is
    known by a random token.
    """
    token, until = os.urandom(8).hex(), time.monotonic() + TIMEOUT
    store.set(f"here/{rank}", token)
    while time.monotonic() < until:
        present = [_look(store, f"here/{number}") for number in range(world)] if rank == 0 else []
        if present and all(present):
            store.set("met", " ".join(present))
        met = _look(store, "met")
        if token in met:
            # A dead process cannot have seen a list that holds the first process's new token.
            store.set(f"seen/{rank}", met)
            if rank == 0 and all(_look(store, f"seen/{n}") == met for n in range(world)):
                store.set("go", met)
            if _look(store, "go") == met:
                return hashlib.blake2b(met.encode(), digest_size=8).hexdigest()
        time.sleep(0.02)
    raise InputError(
        f"the {world} processes did not meet within {TIMEOUT} seconds; check that each one started"
    )


def _look(store: Store, key: str) -> str:
    return store.get(key).decode() if store.check([key]) else ""


def rank() -> int:
    """Return the number of this process, from 0."""
    return dist.get_rank() if _in_group() else 0


def world_size() -> int:
    """Count the processes."""
    return dist.get_world_size() if _in_group() else 1


def local_world_size() -> int:
    """Count the processes on this machine, which share its processors."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if _in_group() else 1


def mark_started(run: str) -> None:
    """Record that this launch has started a run, for the processes of a restart."""
    store = _torchruns_store()
    if store is not None:
        store.set(f"started/{run}", "yes")


def was_started(run: str) -> bool:
    """Return whether this launch had already started the run before torchrun restarted it."""
    store = _torchruns_store()
    if store is None:
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    return bool(store.check([f"started/{run}"]))


def barrier() -> None:
    """Wait until every process has called this."""
    if world_size() > 1:
        dist.barrier()


def all_reduce(values: Tensor) -> Tensor:
    """Add up a tensor over all processes, in place."""
    if world_size() > 1:
        whole = values.contiguous()
        _exchange(whole, dist.all_reduce)
        values.copy_(whole)
    return values


def broadcast(content: bytes | None) -> bytes | None:
    """Send the first process's bytes, or None, to all; what the others pass is ignored."""
    if world_size() == 1:
        return content
    size = _on_backend_device(torch.tensor([-1 if content is None else len(content)]))
    dist.broadcast(size, 0)
    if int(size) < 0:
        return None
    held = bytearray(int(size)) if rank() or content is None else bytearray(content)
    if held:
        _exchange(torch.frombuffer(held, dtype=torch.uint8), lambda piece: dist.broadcast(piece, 0))
    return bytes(held)


def _exchange(values: Tensor, operation: Callable[[Tensor], object]) -> None:
    """Apply an operation of all processes to a contiguous tensor in place, piece by piece."""
    for piece in torch.split(values.view(-1), max(PIECE // values.element_size(), 1)):
        moved = _on_backend_device(piece)
        operation(moved)
        piece.copy_(moved)


def all_equal(*contents: bytes | Tensor) -> bool:
    """Return whether all processes pass the same bytes and tensors."""
    digest = hashlib.blake2b(digest_size=7)
    for content in contents:
        if isinstance(content, bytes):
            digest.update(content)
        else:  # as bytes: NumPy does not know bfloat16
            flat = content.detach().cpu().contiguous().view(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    number = torch.tensor([int.from_bytes(digest.digest(), "little")])
    both = _on_backend_device(torch.cat([number, -number]))
    if world_size() > 1:
        dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return int(both[0]) == -int(both[1])


class _Sum(torch.autograd.Function):
    """A sum over processes; the gradient of each is the sum of their gradients."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return all_reduce(values.detach().clone())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        return all_reduce(gradients[0].clone())


def learnable_sum(values: Tensor) -> Tensor:
    """Add up a tensor over all processes, and pass gradients back through the sum."""
    if world_size() == 1:
        return values
    total: Tensor = _Sum.apply(values)
    return total


def unwrap(model: nn.Module) -> nn.Module:
    """Take a model out of DistributedDataParallel.

    Its forward pass exchanges buffers, so all processes would have to make equally many passes.
    """
    return model.module if isinstance(model, DistributedDataParallel) else model


def _on_backend_device(values: Tensor) -> Tensor:
    """Move a tensor to where the processes can exchange it: NCCL takes tensors on GPUs only."""
    on_gpus = _in_group() and dist.get_backend() == "nccl"
    return values.cuda() if on_gpus else values.contiguous()


@dataclass(frozen=True)
class Shard:
    """One process's rows of a batch of `total`: every `world`-th, from the `rank`-th on.

    A batch of fewer rows than processes leaves some without any. They get its first row with
    weight 0: a process that skipped a step would leave the others waiting for its gradient.

    >>> Shard(5, rank=1, world=2).places, Shard(5, rank=1, world=2).weight
    ([1, 3], 0.8)
    >>> Shard(1, rank=1, world=2).places, Shard(1, rank=1, world=2).weight
    ([0], 0.0)
    """

    total: int
    rank: int = 0
    world: int = 1

    @property
    def places(self) -> list[int]:
        """Positions of the shard's rows in the batch."""
        return list(range(self.rank, self.total, self.world)) or [0]

    @property
    def weight(self) -> float:
        """Weight of the shard's mean, such that the mean over processes is the batch's."""
        return len(range(self.rank, self.total, self.world)) * self.world / self.total

    def take(self, values: Tensor) -> Tensor:
        """Take the shard's part of `total` values."""
        part = values[self.rank :: self.world]
        return part if len(part) else values[:1]

    def permutation(self, generator: torch.Generator) -> Tensor:
        """Permute the shard's rows in the order that a permutation of the whole batch gives them.

        Every process draws as many random numbers, and a shard of everything gets that permutation.
        """
        return self.take(torch.randperm(self.total, generator=generator)).argsort().argsort()


class BatchIndex(list[int]):
    """The row numbers that a process takes from a `batch`: those at `places`, or all of them.

    A list, so that any data set can be indexed by it. Ours look at the whole batch too: it seeds
    the augmentation of its rows.

    >>> index = BatchIndex([7, 5, 9], [0, 2])
    >>> index, index.batch, index.take(torch.tensor([1, 2, 3]))
    ([7, 9], [7, 5, 9], tensor([1, 3]))
    """

    def __init__(self, batch: Sequence[int], places: Sequence[int] | None = None) -> None:
        super().__init__(batch if places is None else [batch[place] for place in places])
        self.batch = list(batch)
        self.places = None if places is None else list(places)

    def take(self, values: Tensor) -> Tensor:
        """Take this process's part of values made for the whole batch."""
        return values if self.places is None else values[self.places]
