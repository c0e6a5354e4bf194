"""Engine: model, optimiser, schedule and averaged weights, on any device."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.utils import DistributedDataParallelKwargs
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from balancemix import processes
from balancemix.models.batchnorm import average_statistics, share_statistics
from balancemix.plan.plan import Plan
from balancemix.plan.sections import TrainPlan
from balancemix.plan.settings import flat
from balancemix.training.devices import check_device, keep_freed_memory, prepare_bf16

if TYPE_CHECKING:
    from balancemix.run import Run


class Engine:
    """Everything a step needs besides the loss; Accelerate handles devices and precision."""

    def __init__(self, model: nn.Module, plan: Plan, run: Run | None = None) -> None:
        train = plan.train
        check_device(train.device)
        processes.start(cpu=train.device == "cpu")
        self.train, self.pending = train, 0
        self.tracked = train.track is not None and run is not None
        # One process may train several plans in turn, each with its precision.
        AcceleratorState._reset_state()
        self.accelerator = Accelerator(
            cpu=train.device == "cpu",
            mixed_precision=train.precision,
            log_with=train.track if self.tracked else None,
            project_dir=run.path / "track" if run is not None else None,
            # Buffers can be broadcast in every forward pass only if all processes make equally
            # many; but they predict, and re-label, unequal numbers of batches.
            kwargs_handlers=[DistributedDataParallelKwargs(broadcast_buffers=False)],
        )
        on_cpu = self.accelerator.device.type == "cpu"
        if on_cpu and train.precision == "bf16":
            prepare_bf16()
        if self.tracked and run is not None:
            # Trackers take numbers and strings; lists and None are written as text.
            plain = (int, float, str)
            settings = flat(plan.tree()).items()
            config = {key: v if isinstance(v, plain) else str(v) for key, v in settings}
            self.accelerator.init_trackers("balancemix", config=config)
        if train.sync_batchnorm and processes.world_size() > 1:
            model = share_statistics(model)
        if on_cpu:
            keep_freed_memory()
        # Convolutions are faster channels last, on CPUs and GPUs; other weights are unaffected.
        self.bare = model = model.to(memory_format=torch.channels_last)
        self.ema: AveragedModel | None = None
        if train.ema:
            average = get_ema_multi_avg_fn(train.ema)  # type: ignore[no-untyped-call]
            self.ema = AveragedModel(model, multi_avg_fn=average, use_buffers=True)
            self.ema.to(self.accelerator.device)
        optimiser = _optimiser(model, train)
        with warnings.catch_warnings():
            # Newer versions of torch have renamed it; older ones do not know the new name.
            warnings.filterwarnings("ignore", "`broadcast_buffers` is deprecated", FutureWarning)
            self.model, self.optimiser = self.accelerator.prepare(model, optimiser)

    def schedule(self, epochs: int, batches: int) -> None:
        """Anneal the rate by a cosine to zero over `epochs` of `batches` each, without restart."""
        total = epochs * math.ceil(batches / self.train.accumulate)  # an epoch's last batch steps

        def factor(step: int) -> float:
            if self.train.schedule == "constant":
                return 1.0
            return 0.5 * (1 + math.cos(math.pi * min(step / total, 1)))

        self.annealing = torch.optim.lr_scheduler.LambdaLR(self.optimiser.optimizer, factor)

    def place(self, x: Tensor | Sequence[Tensor]) -> Tensor | list[Tensor]:
        """Move a batch, or each of its views, to the device."""
        if not isinstance(x, Tensor):
            return [self._place(view) for view in x]
        return self._place(x)

    def _place(self, x: Tensor) -> Tensor:
        layout = torch.channels_last if x.ndim == 4 else torch.preserve_format
        return x.to(self.accelerator.device, non_blocking=True, memory_format=layout)

    def step(self, loss: Tensor, *, last: bool = False) -> float:
        """Backpropagate a batch's loss, and step once enough batches have accumulated."""
        self.pending += 1
        self.accelerator.backward(loss / self.train.accumulate)
        if self.pending == self.train.accumulate or last:
            if self.train.clip:
                self.accelerator.clip_grad_norm_(self.model.parameters(), self.train.clip)
            self.optimiser.step()
            self.optimiser.zero_grad()
            self.annealing.step()
            self.pending = 0
            if self.ema is not None:
                self.ema.update_parameters(self.bare)
        return float(loss.detach())

    def synchronise(self) -> None:
        """Make running statistics, which gradients do not cover, equal in all processes."""
        for model in (self.bare, self.ema):
            if model is not None:
                average_statistics(model)

    @property
    def rate(self) -> float:
        """The learning rate of the next step."""
        return float(self.annealing.get_last_lr()[0])

    @property
    def averaged(self) -> nn.Module:
        """The model to score and save: with averaged weights, if there are any."""
        return self.bare if self.ema is None else self.ema.module

    def weights(self) -> Mapping[str, Tensor]:
        """Return the weights to save."""
        return self.averaged.state_dict()

    def state_dict(self) -> dict[str, Any]:
        """Return everything that the next step depends on."""
        scaler = self.accelerator.scaler
        return {
            "model": self.bare.state_dict(),
            "optimiser": self.optimiser.optimizer.state_dict(),
            "annealing": self.annealing.state_dict(),
            "ema": None if self.ema is None else self.ema.state_dict(),
            "scaler": None if scaler is None else scaler.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from where `state_dict` was taken."""
        self.bare.load_state_dict(state["model"])
        self.optimiser.optimizer.load_state_dict(state["optimiser"])
        self.annealing.load_state_dict(dict(state["annealing"]))
        if self.ema is not None:
            self.ema.load_state_dict(state["ema"])
        if self.accelerator.scaler is not None:
            self.accelerator.scaler.load_state_dict(state["scaler"])

    def track(self, line: Mapping[str, Any]) -> None:
        """Send an epoch's numbers to the tracker, if there is one."""
        if self.tracked:
            numbers = {key: value for key, value in line.items() if isinstance(value, int | float)}
            self.accelerator.log(numbers, step=line["epoch"])

    def end(self) -> None:
        """Close the trackers."""
        if self.tracked:
            # Not end_training, which would also disconnect the processes.
            for tracker in self.accelerator.trackers:
                tracker.finish()


def _optimiser(model: nn.Module, train: TrainPlan) -> torch.optim.Optimizer:
    learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
    # Fused: one pass over the weights, which for small batches is most of a CPU's step.
    if train.optimizer == "adamw":
        return torch.optim.AdamW(learned, lr=train.lr, weight_decay=train.weight_decay, fused=True)
    return torch.optim.SGD(
        learned,
        lr=train.lr,
        momentum=train.momentum,
        weight_decay=train.weight_decay,
        fused=True,
    )
