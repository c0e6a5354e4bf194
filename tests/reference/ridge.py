"""Kernel ridge regression and leave-one-out, slow and literal, in NumPy."""

import numpy as np


def standardise(features):
    scale = features.std(0)
    return (features - features.mean(0)) / np.where(scale > 0, scale, 1)


def kernel(a, b):
    return np.array([[np.exp(-((p - q) ** 2).sum() / (2 * len(p))) for q in b] for p in a])


def linear(a, b):
    return a @ b.T


def left_out(features, target, penalty, groups=None, similarity=kernel, *, hold=True):
    """Fit again without each row, or without its group; `hold` keeps ȳ and the standardisation."""
    groups = np.arange(len(features)) if groups is None else groups
    scores = np.zeros(target.shape)
    for i in range(len(features)):
        rest = groups != groups[i]
        if hold:
            x, mean = standardise(features), target.mean(0)
        else:
            part = features[rest]
            scale = part.std(0)
            x = (features - part.mean(0)) / np.where(scale > 0, scale, 1)
            mean = target[rest].mean(0)
        a = similarity(x[rest], x[rest]) + penalty * np.eye(rest.sum())
        weights = np.linalg.solve(a, target[rest] - mean)
        scores[i] = similarity(x[i : i + 1], x[rest])[0] @ weights + mean
    return scores


def refined(features, target, penalty, landmarks, sample):
    """Solve A, and estimate the diagonal of its inverse from its values at a sample of rows."""
    x = standardise(features)
    similar = kernel(x, x)
    inverse = np.linalg.inv(similar + penalty * np.eye(len(x)))
    across = similar[:, landmarks]
    low = across @ np.linalg.solve(similar[np.ix_(landmarks, landmarks)], across.T)
    lacking = 1 - np.diag(low)
    near = np.linalg.inv(low + (penalty + lacking.mean()) * np.eye(len(x)))
    diagonal = np.zeros(len(x))
    is_landmark = np.isin(np.arange(len(x)), landmarks)
    for part in (is_landmark, ~is_landmark):
        terms = np.stack([np.ones(len(x)), np.diag(near), lacking * ~is_landmark], 1)
        rows = [i for i in sample if part[i]]
        factors = np.linalg.lstsq(terms[rows], np.diag(inverse)[rows], rcond=None)[0]
        diagonal[part] = terms[part] @ factors
    diagonal[sample] = np.diag(inverse)[sample]
    weights = inverse @ (target - target.mean(0))
    return target - weights / diagonal[:, None]


def log_likelihood(score, given, slope, shift, rho0, rho1):
    """Sum log P(given | score) of the noise model over the rows of one class, one by one."""
    total = 0.0
    for v, y in zip(score, given, strict=True):
        v = np.log(1 + 0.7 * v) / 0.7 if v > 0 else v
        eta = 1 / (1 + np.exp(-(slope * v + shift)))
        p = rho0 * (1 - eta) + (1 - rho1) * eta
        total += np.log(p if y else 1 - p)
    return total
