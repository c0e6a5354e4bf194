"""How often each class's labels are wrong: T-estimator's per-class rates (Li et al., NeurIPS 2022).

Idea: the classes of a row are correlated, and the error of one label does not depend on another
class's label. Labels i that are certainly right show how given label k goes with *true* label i;
all labels show how it goes with *given* label i. The noise of class i turns the first table into
the second, so each other class k yields an equation for it:

    ρ0 = Pr(given 1 | true 0) = (C11·P10 − C10·P11) / D,   D = C00·C11 − C01·C10
    ρ1 = Pr(given 0 | true 1) = (C00·P01 − C01·P00) / D

C is the joint distribution of true i and given k, P that of given i and given k. Of the K − 1
solutions the one that fits all classes k best is used.

Departure: the published code reads from the truth which side is free of noise; here `one_sided`
says so, where it is known. Departure: a class of too few labels gets the identity matrix; the
published code leaves its matrix zero, and divides by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from balancemix.labels.mixtures import fit_losses, label_loss
from balancemix.labels.table import check_confidence

How = Literal["bilinear", "fallback", "not enough data"]
Side = Literal["positives", "negatives"]


@dataclass(frozen=True)
class NoiseRates:
    """The noise of each class, and how it was estimated; `rho0` and `rho1` are K float64 values.

    "bilinear" is the equation above, "fallback" is Dual-T, "not enough data" assumes no noise.
    """

    rho0: Tensor  # Pr(given 1 | true 0)
    rho1: Tensor  # Pr(given 0 | true 1)
    how: list[How]

    @property
    def matrices(self) -> Tensor:
        """Arrange the rates as transition matrices: (K, 2, 2), a row for each true value."""
        rows = [torch.stack([1 - self.rho0, self.rho0]), torch.stack([self.rho1, 1 - self.rho1])]
        return torch.stack(rows).movedim(2, 0)


def estimate_noise_rates(
    given: Tensor,
    confidence: Tensor,
    selected: Tensor | None = None,
    *,
    verified: Tensor | None = None,
    one_sided: Side | None = None,
    min_labels: int = 50,
) -> NoiseRates:
    """Estimate each class's noise from N×K given labels and a model's confidence in presence.

    `selected` marks the labels assumed right; by default they are selected by their losses.
    `one_sided` names the given labels known to be right: "positives" where labels are only
    missing, "negatives" where they are only superfluous. A class with fewer than `min_labels`
    selected labels on a side is not judged; nor is one whose labels would be no better than chance.
    Unknown labels (−1) are left out. `verified` labels count as right, and not as noisy ones.

    >>> generator = torch.Generator().manual_seed(0)
    >>> rows = torch.rand(9000, 1, generator=generator)  # of many classes, and of few
    >>> truth = torch.rand(9000, 3, generator=generator) < rows
    >>> given = truth & (torch.rand(9000, 3, generator=generator) > 0.3)
    >>> rates = estimate_noise_rates(given, 0.1 + 0.8 * truth, one_sided="positives")
    >>> rates.rho1.round(decimals=1)
    tensor([0.3000, 0.3000, 0.3000], dtype=torch.float64)
    """
    _check(given, confidence, selected)
    positive, confidence = given > 0, confidence.detach().double()
    known = doubtful = (given >= 0) if given.dtype.is_signed else torch.ones_like(positive)
    if verified is not None:
        doubtful = known & ~verified
    if selected is None:
        noisy = torch.where(doubtful, positive.to(torch.int8), -1)
        selected = pick(noisy, label_loss(positive, confidence)) > 0.5
    selected = selected > 0
    if one_sided is not None:
        selected = selected | (positive if one_sided == "positives" else ~positive)
    selected = (selected | (known & ~doubtful)) & known
    rho0, rho1, solved = bilinear_rates(positive, selected, one_sided, known, doubtful)
    other0, other1 = dual_t_rates(positive, confidence, doubtful)
    other0, other1 = _force(other0, other1, one_sided)
    enough = ((selected & positive).sum(0) >= min_labels) & (
        (selected & ~positive).sum(0) >= min_labels
    )
    solved = solved & enough
    # Labels whose rates add up to one are independent of the truth; beyond one the sides swap.
    fallen = enough & ~solved & (other0 + other1 < 1)
    rho0 = torch.where(solved, rho0, torch.where(fallen, other0, 0.0))
    rho1 = torch.where(solved, rho1, torch.where(fallen, other1, 0.0))
    how: list[How] = [
        "bilinear" if by_rule else "fallback" if by_model else "not enough data"
        for by_rule, by_model in zip(solved.tolist(), fallen.tolist(), strict=True)
    ]
    return NoiseRates(rho0, rho1, how)


def scaled_losses(given: Tensor, confidence: Tensor) -> Tensor:
    """Compute N×K losses scaled to [0, 1] within each class and given side, to be averaged.

    The loss of an unknown label (−1) is 0.

    >>> scaled_losses(torch.ones(3, 1), torch.tensor([[0.9], [0.5], [0.1]]))[:, 0]
    tensor([0.0000, 0.2675, 1.0000])
    """
    losses = label_loss(given, confidence)
    result = torch.zeros_like(losses)
    for side in (given > 0, given == 0):
        least = losses.masked_fill(~side, torch.inf).amin(0)
        range_ = losses.masked_fill(~side, -torch.inf).amax(0) - least
        result = torch.where(side, (losses - least) / range_.clamp(min=1e-30), result)
    return result


def pick(given: Tensor, losses: Tensor) -> Tensor:
    """Compute P(clean) by the paper's mixtures: losses in [0, 1], ten steps of wide variances."""
    return fit_losses(given, losses, fit="dividemix").posterior(given, losses)


def bilinear_rates(
    positive: Tensor,
    selected: Tensor,
    one_sided: Side | None = None,
    known: Tensor | None = None,
    doubtful: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Solve for ρ0 and ρ1 of each class by every other class, and mark classes with a solution.

    All matrices are N×K and boolean. `known` marks the labels that count, `doubtful` those of them
    that may be wrong, from which the rates of their class are estimated; by default all. Below, i
    is the row and k the column of K×K matrices.
    """
    classes = positive.shape[1]
    given, right, absent = positive.double(), selected & positive, selected & ~positive
    counts = (torch.ones_like(positive) if known is None else known).double()
    noisy = counts if doubtful is None else doubtful.double()

    def share(rows: Tensor, labels: Tensor) -> Tensor:
        """Compute the share of `labels` k in the `rows` that have i, of those where k is known."""
        return rows.T @ labels / (rows.T @ counts)

    q1 = share(right.double(), given)  # Pr(given k | true i)
    q0 = share(absent.double(), given)  # Pr(given k | not true i)
    both = noisy.T @ counts  # rows in which label i may be wrong, and label k is known
    first, mean = (noisy * given).T @ counts / both, noisy.T @ given / both  # of i, and of k
    prior = (mean - q0) / (q1 - q0)  # of true i, as class k sees it
    c11, c10, c01, c00 = q1 * prior, (1 - q1) * prior, q0 * (1 - prior), (1 - q0) * (1 - prior)
    p11 = (noisy * given).T @ given / both
    p10, p01 = first - p11, mean - p11
    p00 = 1 - p11 - p10 - p01
    determinant = c00 * c11 - c01 * c10
    by0, by1 = c11 * p10 - c10 * p11, c00 * p01 - c01 * p00

    rho0, rho1 = (_rounded(by / determinant) for by in (by0, by1))
    rho0, rho1 = _force(rho0, rho1, one_sided)
    allowed = (prior >= 0) & (prior <= 1) & (rho0 >= 0) & (rho1 >= 0) & (rho0 + rho1 < 1)
    allowed &= ~torch.eye(classes, dtype=torch.bool)
    # A class that occurs with no other yields 0/0: not a candidate, nor usable for the others.
    usable = ~torch.eye(classes, dtype=torch.bool) & determinant.isfinite()
    best = torch.stack(
        [
            _misfit(rho0[i], rho1[i], *(part[i, usable[i]] for part in (determinant, by0, by1)))
            .masked_fill(~allowed[i], torch.inf)
            .argmin()
            for i in range(classes)
        ]
    )[:, None]
    return rho0.gather(1, best)[:, 0], rho1.gather(1, best)[:, 0], allowed.any(1)


def dual_t_rates(
    positive: Tensor, confidence: Tensor, doubtful: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Estimate ρ0 and ρ1 of each class by Dual-T (Yao et al., NeurIPS 2020).

    The most confident row of each side shows how the truth is predicted, the table of predicted and
    given labels how predictions are annotated; their product maps the truth to given labels. Only
    `doubtful` labels are in that table; by default all.

    >>> confidence = torch.tensor([[0.9], [0.8], [0.6], [0.2]])
    >>> rho0, rho1 = dual_t_rates(torch.tensor([[1], [1], [0], [0]]) > 0, confidence)
    >>> round(float(rho0), 3), round(float(rho1), 3)
    (0.133, 0.4)
    """
    counted = torch.ones_like(positive) if doubtful is None else doubtful
    guess, other = (confidence > 0.5) & counted, (confidence <= 0.5) & counted
    # Departure: a side that is never predicted is assumed to be annotated correctly.
    if_present = torch.where(guess.any(0), (guess & positive).sum(0) / guess.sum(0), 1.0)
    if_absent = torch.where(other.any(0), (other & positive).sum(0) / other.sum(0), 0.0)
    low, high = confidence.amin(0), confidence.amax(0)
    given_of_absent = (1 - low) * if_absent + low * if_present
    given_of_present = (1 - high) * if_absent + high * if_present
    return given_of_absent, 1 - given_of_present


def importance(
    given: Tensor, confidence: Tensor, rho0: Tensor, rho1: Tensor, most: float = 20.0
) -> Tensor:
    """Weight B×K given labels y by Pr(y) / Pr(given y), both by the model's confidence.

    >>> rho = torch.tensor([0.25]), torch.tensor([0.0])
    >>> importance(torch.tensor([[1], [1], [0]]), torch.tensor([[0.5], [0.9], [0.5]]), *rho)[:, 0]
    tensor([0.8000, 0.9730, 1.3333])
    """
    present, absent = confidence, 1 - confidence
    as_present = absent * rho0 + present * (1 - rho1)
    as_absent = absent * (1 - rho0) + present * rho1
    truth = torch.where(given > 0, present, absent)
    noisy = torch.where(given > 0, as_present, as_absent)
    # Departure: numerator and denominator are kept above 0, so that no noise gives exactly 1.
    return (truth.clamp(min=1e-6) / noisy.clamp(min=1e-6)).clamp(max=most)


def _rounded(rates: Tensor) -> Tensor:
    """Round rates just below zero to zero, as the published code does."""
    return torch.where((rates < 0) & (rates > -0.3 / len(rates)), 0.0, rates)


def _force(rho0: Tensor, rho1: Tensor, one_sided: Side | None) -> tuple[Tensor, Tensor]:
    """Set the rate of a side that is known to be right to zero."""
    if one_sided == "positives":
        return torch.zeros_like(rho0), rho1
    return (rho0, torch.zeros_like(rho1)) if one_sided == "negatives" else (rho0, rho1)


def _misfit(rho0: Tensor, rho1: Tensor, determinant: Tensor, by0: Tensor, by1: Tensor) -> Tensor:
    """Sum over the other classes how far each candidate is from solving their equations."""
    off0 = (rho0[:, None] * determinant - by0).abs().sum(1)
    return off0 + (rho1[:, None] * determinant - by1).abs().sum(1)


def _check(given: Tensor, confidence: Tensor, selected: Tensor | None) -> None:
    check_confidence(given, confidence)
    if selected is not None and selected.shape != given.shape:
        shapes = f"{tuple(given.shape)} and {tuple(selected.shape)}"
        raise ValueError(f"given and selected must both be N×K, they are {shapes}")
