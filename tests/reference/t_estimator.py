"""Noise rates by T-estimator (Li et al., NeurIPS 2022) as they read, pair by pair; slow.

Y are the given labels, S the labels taken for right, f the confidence in presence, all N×K.
"""

from operator import itemgetter

import numpy as np


def share(rows, event):
    """Pr(event | rows)."""
    return sum(1 for r, e in zip(rows, event, strict=True) if r and e) / sum(bool(r) for r in rows)


def tables(Y, S, i, k):
    """C: joint of true i and given k. P: joint of given i and given k. And the prior of true i.

    None where given k does not depend on true i, and says nothing of it.
    """
    everyone = [True] * len(Y)
    q1 = share((S[:, i] == 1) & (Y[:, i] == 1), Y[:, k] == 1)
    q0 = share((S[:, i] == 1) & (Y[:, i] == 0), Y[:, k] == 1)
    m = share(everyone, Y[:, k] == 1)
    if q1 == q0:
        return None
    pi = (m - q0) / (q1 - q0)
    C = {(1, 1): q1 * pi, (1, 0): (1 - q1) * pi, (0, 1): q0 * (1 - pi), (0, 0): (1 - q0) * (1 - pi)}
    P = {(a, b): share(everyone, (Y[:, i] == a) & (Y[:, k] == b)) for a in (0, 1) for b in (0, 1)}
    return C, P, pi


def equations(C, P):
    """D, D·ρ0 and D·ρ1."""
    D = C[0, 0] * C[1, 1] - C[0, 1] * C[1, 0]
    return D, C[1, 1] * P[1, 0] - C[1, 0] * P[1, 1], C[0, 0] * P[0, 1] - C[0, 1] * P[0, 0]


def bilinear(Y, S, i, one_sided=None):
    """(ρ0, ρ1) of class i, or None."""
    K = Y.shape[1]
    candidates = []
    for k in range(K):
        if k == i or tables(Y, S, i, k) is None:
            continue
        C, P, pi = tables(Y, S, i, k)
        if pi < 0 or pi > 1:
            continue
        D, by0, by1 = equations(C, P)
        rho0, rho1 = by0 / D, by1 / D
        if -0.3 / K < rho0 < 0:
            rho0 = 0.0
        if -0.3 / K < rho1 < 0:
            rho1 = 0.0
        if one_sided == "positives":
            rho0 = 0.0
        if one_sided == "negatives":
            rho1 = 0.0
        if 0 <= rho0 <= 1 and 0 <= rho1 <= 1 and rho0 + rho1 < 1:
            candidates.append((rho0, rho1))
    residuals = []
    for rho0, rho1 in candidates:
        residual = 0.0
        for k in range(K):
            if k != i and tables(Y, S, i, k) is not None:
                D, by0, by1 = equations(*tables(Y, S, i, k)[:2])
                residual += abs(rho0 * D - by0) + abs(rho1 * D - by1)
        residuals.append(residual)
    return candidates[int(np.argmin(residuals))] if candidates else None


def dual_t(Y, f, i):
    """(ρ0, ρ1) of class i: T of the surest rows times the table of predicted against given."""
    T, confusion = np.empty((2, 2)), np.zeros((2, 2))
    vectors = [np.array([1 - p, p]) for p in f[:, i]]
    for side in (0, 1):
        T[side] = max(vectors, key=itemgetter(side))
    for vector, y in zip(vectors, Y[:, i], strict=True):
        confusion[int(np.argmax(vector)), int(y)] += 1
    for side in (0, 1):
        total = confusion[side].sum()
        confusion[side] = confusion[side] / total if total else np.eye(2)[side]
    both = T @ confusion
    return both[0, 1], both[1, 0]


def estimate(Y, S, f, one_sided=None, min_labels=50):
    """(ρ0, ρ1, how) of each class."""
    result = []
    for i in range(Y.shape[1]):
        sure = S[:, i] == 1
        if one_sided == "positives":
            sure = sure | (Y[:, i] == 1)
        if one_sided == "negatives":
            sure = sure | (Y[:, i] == 0)
        if min((sure & (Y[:, i] == 1)).sum(), (sure & (Y[:, i] == 0)).sum()) < min_labels:
            result.append((0.0, 0.0, "not enough data"))
            continue
        S_i = S.copy()
        S_i[:, i] = sure
        rates, how = bilinear(Y, S_i, i, one_sided), "bilinear"
        if rates is None:
            rates, how = dual_t(Y, f, i), "fallback"
            rates = (
                0.0 if one_sided == "positives" else rates[0],
                0.0 if one_sided == "negatives" else rates[1],
            )
            if sum(rates) >= 1:
                rates, how = (0.0, 0.0), "not enough data"
        result.append((*rates, how))
    return result


def weight(p, y, rho0, rho1):
    """Pr(y | x) / [Tᵀ Pr(· | x)]_y of one label."""
    T, before = np.array([[1 - rho0, rho0], [rho1, 1 - rho1]]), np.array([1 - p, p])
    return before[y] / (T.T @ before)[y]


def losses_to_select_by(history, Y, i, side):
    """Stage B: mean over epochs of the scaled losses of class i's labels of one side."""
    total = 0.0
    for f in history:
        p = f[Y[:, i] == side, i]
        losses = -np.log(p if side else 1 - p)
        total = total + (losses - losses.min()) / (losses.max() - losses.min() + 1e-30)
    return total / len(history)
