"""The other processes of a run, if there are any, and how a batch is split across them.

The only file that talks to torch.distributed.
"""

from __future__ import annotations

import atexit
import gc
import hashlib
import os
import time
from collections.abc import Sequence
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

TIMEOUT = 1800  # seconds; as long as torch waits for a process
PIECE = 1 << 26  # bytes to exchange at once: a GPU may have no room for a whole label table


def _in_group() -> bool:
    return dist.is_available() and dist.is_initialized()


def start(*, cpu: bool = False) -> None:
    """Join the processes that torchrun or `accelerate launch` started along with this one."""
    started = int(os.environ.get("WORLD_SIZE", "1")) if "LOCAL_RANK" in os.environ else 1
    if started == 1 or _in_group():
        return
    from accelerate import PartialState

    # Left to itself, Accelerate joins CPUs only where it is told that there is nothing else.
    cpu = cpu or not (torch.cuda.is_available() or torch.xpu.is_available())
    store = _torchruns_store()
    if store is not None and (cpu or torch.cuda.is_available()):
        number = int(os.environ["RANK"])
        own = _section(store, _meet(store, number, started))
        backend = "gloo" if cpu else "nccl"
        # The first one writes files that may take longer than NCCL's ten minutes.
        timeout = timedelta(seconds=TIMEOUT)
        dist.init_process_group(
            backend, store=own, rank=number, world_size=started, timeout=timeout
        )
    PartialState(cpu=cpu)
    # An interpreter that ends before gloo's threads do is aborted, now and then.
    atexit.register(_leave)
    if world_size() != started:
        raise InputError(
            f"WORLD_SIZE is {started}, but {world_size()} of the processes came together"
        )


def _leave() -> None:
    """Leave the group, once nothing is left that would use it."""
    if _in_group():
        gc.collect()
        dist.destroy_process_group()


def _torchruns_store() -> Store | None:
    """Open the store that outlives the processes which torchrun starts, if there is one."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return None
    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store: Store = dist.TCPStore(address, port)  # type: ignore[attr-defined]
    return _section(store, "balancemix")


def _section(store: Store, name: str) -> Store:
    section: Store = dist.PrefixStore(name, store)  # type: ignore[attr-defined]
    return section


def _meet(store: Store, rank: int, world: int) -> str:
    """Find the other processes of this attempt, and no dead ones, and a name for the attempt.

    When torchrun starts processes again, its store still holds the addresses of those before, and
    torch would try to reach them. Nor do all machines count the attempts alike.
    """
    own, until = os.urandom(8).hex(), time.monotonic() + TIMEOUT
    store.set(f"here/{rank}", own)
    while time.monotonic() < until:
        present = [_look(store, f"here/{number}") for number in range(world)] if rank == 0 else []
        if present and all(present):
            store.set("met", " ".join(present))
        met = _look(store, "met")
        if own in met:
            # A dead process cannot have seen what holds the first one's newest sign of life.
            store.set(f"seen/{rank}", met)
            if rank == 0 and all(_look(store, f"seen/{n}") == met for n in range(world)):
                store.set("go", met)
            if _look(store, "go") == met:
                return hashlib.blake2b(met.encode(), digest_size=8).hexdigest()
        time.sleep(0.02)
    raise InputError(f"the {world} processes did not come together within {TIMEOUT} seconds")


def _look(store: Store, key: str) -> str:
    return store.get(key).decode() if store.check([key]) else ""


def rank() -> int:
    """Number this process, from 0."""
    return dist.get_rank() if _in_group() else 0


def world_size() -> int:
    """Count the processes."""
    return dist.get_world_size() if _in_group() else 1


def local_world_size() -> int:
    """Count the processes on this machine, which share its processors."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if _in_group() else 1


def begin(what: str) -> None:
    """Note that this launch has started a run, for the processes of a restart."""
    store = _torchruns_store()
    if store is not None:
        store.set(f"begun/{what}", "yes")


def begun(what: str) -> bool:
    """Return whether this launch had already started the run before torchrun restarted it."""
    store = _torchruns_store()
    if store is None:
        return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
    return bool(store.check([f"begun/{what}"]))


def barrier() -> None:
    """Wait until every process has come here."""
    if world_size() > 1:
        dist.barrier()


def all_reduce(values: Tensor) -> Tensor:
    """Add up a tensor over all processes, in place."""
    if world_size() > 1:
        whole = values.contiguous()
        for piece in torch.split(whole.view(-1), max(PIECE // whole.element_size(), 1)):
            moved = _on_backend_device(piece)
            dist.all_reduce(moved)
            if moved is not piece:
                piece.copy_(moved)
        if whole is not values:
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
        for piece in torch.split(torch.frombuffer(held, dtype=torch.uint8), PIECE):
            moved = _on_backend_device(piece)
            dist.broadcast(moved, 0)
            if moved is not piece:
                piece.copy_(moved)
    return bytes(held)


def all_equal(*contents: bytes | Tensor) -> bool:
    """Tell whether all processes hold the same bytes, or tensors."""
    digest = hashlib.blake2b(digest_size=7)
    for content in contents:
        if isinstance(content, bytes):
            digest.update(content)
        else:  # by its bytes: NumPy does not know all types
            flat = content.detach().cpu().contiguous().view(-1)
            digest.update(flat.view(torch.uint8).numpy().data)
    number = torch.tensor([int.from_bytes(digest.digest(), "little")])
    both = _on_backend_device(torch.cat([number, -number]))
    if world_size() > 1:
        dist.all_reduce(both, op=dist.ReduceOp.MAX)
    return int(both[0]) == -int(both[1])


class _Sum(torch.autograd.Function):
    """A sum over processes, of which each one's gradient is the sum of all of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return all_reduce(values.detach().clone())

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Tensor:
        return all_reduce(gradients[0].clone())


def learnable_sum(values: Tensor) -> Tensor:
    """Add up a tensor over all processes, so that a loss can be traced back through the sum."""
    if world_size() == 1:
        return values
    total: Tensor = _Sum.apply(values)
    return total


def unwrap(model: nn.Module) -> nn.Module:
    """Take the model out of what averages its gradients.

    That exchanges buffers in a forward pass, for which all processes would have to make as many.
    """
    return model.module if isinstance(model, DistributedDataParallel) else model


def _on_backend_device(values: Tensor) -> Tensor:
    """Put a tensor where the processes can exchange it: NCCL knows nothing but GPUs."""
    on_gpus = dist.is_available() and _in_group() and dist.get_backend() == "nccl"
    return values.cuda() if on_gpus else values.contiguous()


@dataclass(frozen=True)
class Shard:
    """One process's part of `total` rows: every `world`-th, from the `rank`-th on.

    A batch of fewer rows than processes leaves some without any. They are shown its first row,
    with no weight: one that sat out a step would leave the others waiting for its gradient.

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
        """Where the part's rows stand in the batch."""
        return list(range(self.rank, self.total, self.world)) or [0]

    @property
    def weight(self) -> float:
        """What the part's mean counts for, if the mean over processes is to be the batch's."""
        return len(range(self.rank, self.total, self.world)) * self.world / self.total

    def take(self, values: Tensor) -> Tensor:
        """Take the part's of `total` values."""
        own = values[self.rank :: self.world]
        return own if len(own) else values[:1]

    def permutation(self, generator: torch.Generator) -> Tensor:
        """Permute the part's rows, drawing as many numbers as a permutation of the whole takes.

        The order in which a permutation of the whole has them; of the whole, it is that itself.
        """
        return self.take(torch.randperm(self.total, generator=generator)).argsort().argsort()


class BatchIndex(list[int]):
    """The row numbers that a process takes of a `batch`: those at `places`, or all of them.

    A list, so that any data set can be asked for it; ours look at the whole, which decides what
    random variation each of its rows gets.

    >>> share = BatchIndex([7, 5, 9], [0, 2])
    >>> share, share.batch, share.take(torch.tensor([1, 2, 3]))
    ([7, 9], [7, 5, 9], tensor([1, 3]))
    """

    def __init__(self, batch: Sequence[int], places: Sequence[int] | None = None) -> None:
        super().__init__(batch if places is None else [batch[place] for place in places])
        self.batch = list(batch)
        self.places = None if places is None else list(places)

    def take(self, values: Tensor) -> Tensor:
        """Take the share of what was made for the whole batch."""
        return values if self.places is None else values[self.places]
