"""BatchNorm where a batch is split across processes: shared statistics, or averaged ones.

torch's SyncBatchNorm runs only on GPUs, and drops the activation of timm's BatchNormAct2d. This one
runs anywhere, keeps the activation, and has the same weights under the same names.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from balancemix import processes


class SharedBatchNorm(nn.Module):
    """BatchNorm by mean and variance over the rows of all processes, however many each has."""

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor

    def __init__(self, norm: _BatchNorm) -> None:
        super().__init__()
        self.eps, self.momentum = norm.eps, norm.momentum
        self.weight, self.bias = norm.weight, norm.bias
        for name, buffer in norm.named_buffers(recurse=False):
            self.register_buffer(name, buffer)
        for name, child in norm.named_children():  # timm's dropout and activation
            self.add_module(name, child)
        self.train(norm.training)

    def forward(self, x: Tensor) -> Tensor:
        """Normalise, then apply what the replaced module applied."""
        x = self._by_batch(x) if self.training else self._by_running(x)
        for child in self.children():
            x = child(x)
        return x

    def _by_running(self, x: Tensor) -> Tensor:
        mean, var = self.running_mean, self.running_var
        return F.batch_norm(x, mean, var, self.weight, self.bias, eps=self.eps)

    def _by_batch(self, x: Tensor) -> Tensor:
        values = x.float()
        rows = [dim for dim in range(x.ndim) if dim != 1]
        shape = [1, -1] + [1] * (x.ndim - 2)
        count = values.new_full((1,), values.numel() // values.shape[1])
        total = processes.learnable_sum(torch.cat([values.sum(rows), count]))
        mean, count = total[:-1] / total[-1], total[-1].detach()
        centred = values - mean.view(shape)
        var = processes.learnable_sum(centred.square().sum(rows)) / count
        self._update_running(mean.detach(), var.detach() * count / (count - 1).clamp(min=1))
        result = centred * (var + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            result = result * self.weight.view(shape) + self.bias.view(shape)
        return result.to(x.dtype)

    @torch.no_grad()
    def _update_running(self, mean: Tensor, var: Tensor) -> None:
        self.num_batches_tracked += 1
        share = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean.to(self.running_mean), share)
        self.running_var.lerp_(var.to(self.running_var), share)


def share_statistics(model: nn.Module) -> nn.Module:
    """Replace each BatchNorm in a model by one over all processes."""
    if isinstance(model, _BatchNorm) and model.running_mean is not None:
        return SharedBatchNorm(model)
    for name, child in model.named_children():
        setattr(model, name, share_statistics(child))
    return model


def average_statistics(model: nn.Module) -> None:
    """Average BatchNorm's running statistics over all processes.

    Otherwise each process would score, and the first would save, the statistics of its own rows.
    """
    for module in model.modules():
        if isinstance(module, _BatchNorm) and module.running_mean is not None:
            for statistic in (module.running_mean, module.running_var):
                if statistic is not None and processes.world_size() > 1:
                    processes.all_reduce(statistic).div_(processes.world_size())
