"""Losses of labels to fit mixtures to."""

import numpy as np
import torch

from balancemix.labels.mixtures import fit_losses

EXACT, BINNED, LARGE = 900, 3_000, 20_000  # up to 1,024 rows every loss is a point of its own


def normal(*parts):
    """Losses around `mean` with `deviation`, a share of the rows each."""

    def draw(n, seed=0):
        rng = np.random.default_rng(seed)
        counts = [round(share * n) for _, _, share in parts]
        counts[0] += n - sum(counts)
        values = [rng.normal(m, s, c) for (m, s, _), c in zip(parts, counts, strict=True)]
        return np.abs(np.concatenate(values))

    return draw


def bce(*parts):
    """Losses of labels whose logit, in favour of the label, is around `mean`."""

    def draw(n, seed=0):
        rng = np.random.default_rng(seed)
        margins = [rng.normal(m, s, round(share * n)) for m, s, share in parts]
        return np.log1p(np.exp(-np.concatenate(margins)))

    return draw


LOSSES = {
    "separated": normal((0.1, 0.03, 0.7), (3, 0.5, 0.3)),
    "overlapping": normal((1, 0.3, 0.7), (2, 0.4, 0.3)),
    "mostly clean": normal((0.2, 0.1, 0.95), (4, 1, 0.05)),
    "mostly noisy": normal((0.2, 0.1, 0.1), (2, 0.3, 0.9)),
    "noisy mode narrower": normal((1, 0.4, 0.7), (3, 0.1, 0.3)),
    "clean mode very narrow": normal((0.02, 0.006, 0.75), (0.6, 1.1, 0.25)),
    "of a classifier": bce((3, 1.5, 0.7), (-2, 1.5, 0.3)),
    "of clean labels": bce((3, 1.5, 1)),
}


def column(losses, dtype=torch.float64):
    """One class, all of it given positive."""
    losses = torch.as_tensor(losses, dtype=dtype)[:, None]
    return torch.ones_like(losses), losses


def clean_of_losses(given, losses, **options):
    return fit_losses(given, losses, **options).posterior(given, losses)
