"""KernelMachine: scores by similarity to landmarks, or linear ones; fitted in closed form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

# Beyond these scores the logit is replaced by its tangent.
_LEAST, _MOST = 0.01, 0.99


def squared_exponential(a: Tensor, b: Tensor) -> Tensor:
    """Compute exp(−‖a − b‖² / 2D) for all pairs of rows of two matrices with D columns.

    Two unrelated rows of standardised features are at a squared distance of about 2D, so their
    similarity is about 1/e.

    >>> squared_exponential(torch.zeros(1, 2), torch.tensor([[0.0, 0.0], [2.0, 0.0]]))
    tensor([[1.0000, 0.3679]])
    """
    squares = a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T
    return squares.clamp_(min=0).mul_(-0.5 / max(a.shape[1], 1)).exp_()


def log_odds(score: Tensor) -> Tensor:
    """Turn scores, which may lie beyond 0 and 1, into logits, strictly increasing.

    It is the logit between 0.01 and 0.99 and its tangent outside, so that scores below 0, which
    least squares has in plenty, keep their order.

    >>> log_odds(torch.tensor([-0.01, 0.01, 0.5, 0.99]))
    tensor([-6.6153, -4.5951,  0.0000,  4.5951])
    """
    slope = 1 / (_LEAST * (1 - _LEAST))
    inside = score.clamp(_LEAST, _MOST)
    return torch.logit(inside) + slope * (score - inside)


class KernelMachine(nn.Module):
    """A linear combination of similarities to landmarks; without landmarks, of the features.

    `mean` and `scale` standardise raw features (D each), `landmarks` are M×D standardised rows,
    `coefficients` are M×K, or D×K without landmarks, and `intercept` has K values. All are buffers:
    nothing is trained.
    """

    mean: Tensor
    scale: Tensor
    landmarks: Tensor
    coefficients: Tensor
    intercept: Tensor

    def __init__(
        self,
        mean: Tensor,
        scale: Tensor,
        landmarks: Tensor,
        coefficients: Tensor,
        intercept: Tensor,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)
        self.register_buffer("landmarks", landmarks)
        self.register_buffer("coefficients", coefficients)
        self.register_buffer("intercept", intercept)

    @classmethod
    def empty(cls) -> KernelMachine:
        """Make a machine to load a state into."""
        return cls(*(torch.zeros(*shape) for shape in ((0,), (0,), (0, 0), (0, 0), (0,))))

    def scores(self, x: Tensor) -> Tensor:
        """Compute B×K scores of raw features; maps (B, D, H, W) are averaged over their places."""
        x = x.mean((2, 3)) if x.ndim == 4 else x
        x = (x - self.mean) / self.scale
        if len(self.landmarks):
            x = squared_exponential(x, self.landmarks)
        return x @ self.coefficients + self.intercept

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, not probabilities."""
        return log_odds(self.scores(x))

    def _load_from_state_dict(self, state: Any, prefix: str, *rest: Any) -> None:
        # A machine has as many landmarks as the one that was saved.
        for name, buffer in list(self.named_buffers(recurse=False)):
            if prefix + name in state:
                shape = state[prefix + name].shape
                setattr(self, name, buffer.new_zeros(shape))
        super()._load_from_state_dict(state, prefix, *rest)


class MeanOfLogOdds(nn.Module):
    """The mean of the logits of a trained model and of a kernel machine."""

    def __init__(self, trained: nn.Module, machine: KernelMachine) -> None:
        super().__init__()
        self.trained, self.machine = trained, machine

    def forward(self, x: Tensor) -> Tensor:
        """Return logits, not probabilities."""
        logits: Tensor = (self.trained(x) + self.machine(x)) / 2
        return logits
