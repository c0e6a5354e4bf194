"""Mixup: each batch mixed with a permutation of itself (Zhang et al., ICLR 2018).

Idea: train on x = λ·x_a + (1 − λ)·x_b with the labels mixed alike, so that the model is linear
between rows and cannot memorise one. λ' ~ Beta(α, α), and λ = max(λ', 1 − λ'), which only names
the larger of the two rows first.
Fields: `alpha`, α above. Cost: that of BCE. BCE where α = 0.

Departure: with several processes a row's partner comes from the rows of its own process, of which
it is a permutation: others' inputs are elsewhere. λ is the same in all of them.

The paper trains every method but its Default with Mixup: the other methods extend this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn

from balancemix.methods.base import Input, Method, first_view
from balancemix.methods.mixing import draw_lambda, mix


@dataclass(kw_only=True)
class Mixup(Method):
    """BCE on mixed rows; `alpha` is the Beta distribution's parameter."""

    alpha: float = 4.0

    def loss(self, model: nn.Module, x: Input, index: Tensor) -> Tensor:
        """Mix the batch with a permutation of itself."""
        x = first_view(x)
        target, weight = self.table.rows(index, x.device)
        x, target = self.mixed(x, target)
        return self.reduce(weight * self.criterion(model(x), target))

    def mixed(self, *batches: Tensor) -> tuple[Tensor, ...]:
        """Mix inputs and what is known of them, all with one permutation and one λ."""
        partner = self.part_of(len(batches[0])).permutation(self.generator)
        lam = draw_lambda(self.alpha, self.generator)
        return tuple(mix(batch, batch[partner], lam) for batch in batches)
