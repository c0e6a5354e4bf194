"""Many errors seen: what the judge expects of every picture makes the estimate sharper."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from balancemix.estimates.estimate import HIGH, Estimate, Floats

_CAP = 99  # percentile


def regression_total(errors: Floats, sums: Floats, all_sums: Floats) -> Estimate:
    """Estimate all errors of N pictures by least squares on two sums of each picture.

    `errors` are those of the n pictures drawn at random, `sums` (n×2) what the judge expects of
    them, `all_sums` (N×2) of all pictures. The total is N times the fit at the mean of all
    pictures; it is right on average whatever the sums are (up to 1/n), they only shorten the
    interval (Cochran 1977, chapter 7). Residuals are leave-one-out (HC3).
    """
    weight, left_out = _weights(errors, sums, all_sums)
    n, size = len(errors), len(all_sums)
    error = np.sqrt(float(((weight * left_out) ** 2).sum()) * n / (n - 1) * (1 - n / size))
    total = float(weight @ errors)
    half = float(stdtrit(n - 3, HIGH)) * error
    return Estimate(size * total, size * (total - half), size * (total + half), False)


def left_out_totals(errors: Floats, sums: Floats, all_sums: Floats) -> Floats:
    """Estimate the total n times, each time without one of the pictures."""
    weight, left_out = _weights(errors, sums, all_sums)
    return len(all_sums) * (float(weight @ errors) - weight * left_out)


def _weights(errors: Floats, sums: Floats, all_sums: Floats) -> tuple[Floats, Floats]:
    """Find weights of the pictures with Σ weight·errors the mean, and leave-one-out residuals."""
    cap = np.percentile(all_sums, _CAP, axis=0)
    x = np.column_stack([np.ones(len(sums)), np.minimum(sums, cap)])
    mean = np.concatenate([[1.0], np.minimum(all_sums, cap).mean(0)])
    inverse = np.linalg.pinv(x.T @ x, hermitian=True)
    weight = x @ (inverse @ mean)
    residual = errors - x @ (inverse @ (x.T @ errors))
    leverage = np.einsum("ij,jk,ik->i", x, inverse, x)
    return weight, residual / np.maximum(1 - leverage, 1e-6)
