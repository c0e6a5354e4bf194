"""BCE and Mixup: the base of all methods as it stands, without and with `alpha`."""

from __future__ import annotations

from dataclasses import dataclass

from balancemix.methods.base import Method


@dataclass(kw_only=True)
class BCE(Method):
    """Binary cross-entropy on the labels as given: the paper's Default."""


@dataclass(kw_only=True)
class Mixup(Method):
    """Mixup: BCE on each batch mixed with a permutation of itself (Zhang et al., ICLR 2018).

    Idea: train on x = λ·x_a + (1 − λ)·x_b with the labels mixed alike, so that the model is linear
    between rows and cannot memorise one. λ' ~ Beta(α, α), and λ = max(λ', 1 − λ'), which only names
    the larger of the two rows first.
    Fields: `alpha`, α above. Cost: that of BCE. BCE where α = 0.

    A label that is unknown in one of the two rows is that of the other, by its share (`by_weight`).

    Departure: with several processes a row's partner comes from the rows of its own process, since
    the inputs of the others are elsewhere. λ is the same in all of them.

    The paper trains every method but its Default with Mixup, so each of them has an `alpha`.
    """

    alpha: float = 4.0
